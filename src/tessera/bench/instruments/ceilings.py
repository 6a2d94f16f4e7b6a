"""Measured ceilings of this machine: operations per second of its arithmetic, bytes per second of its memory.

Rates of kernels are held against these, not against a data sheet. The arithmetic is a loop of independent products and
sums in registers, the memory a buffer that no cache holds; both are machine code that runs on the same threads as
kernels do. A ceiling is the best of many short repeats: anything else that the machine does only makes it slower.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tessera import knobs
from tessera.bench.instruments.hardware import available_memory_bytes, last_level_cache_bytes
from tessera.bench.results.definitions import BenchError
from tessera.runtime.native import launch, pool
from tessera.runtime.program.executable import start_pool
from tessera.targets.cpu import features

PRECISIONS = ("f32", "bf16", "f64")

_CHUNK_ITERATIONS = 1024  # of the loop, between two looks at the queue
_CHUNK_BYTES = 1 << 20
_REPEAT_SECONDS = 0.5e-3  # shorter than a time slice of another process, so that some repeats have the core alone
_SLICE_BYTES = 12 << 20  # for each thread
_LEAST_REPEATS = 3
_CACHE_MULTIPLE = 4  # the buffer, in sizes of the last cache
_LEAST_BUFFER, _MOST_BUFFER = 256 << 20, 4 << 30
_MEMORY_SHARE = 0.5  # of the time: how much of it is for memory
_ENOUGH_SHARE = 0.9
_START_SECONDS = 0.2
_FREE_SHARE = 4  # at most a quarter of what is free

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Unit:
    """Instructions that do the most arithmetic of a precision: how many operations an iteration of the loop has."""

    text: str
    operations: int
    how: str


def measure(threads: int | None = None, precisions: Sequence[str] = PRECISIONS, seconds: float = 1.2) -> dict[str, Any]:
    """The ceilings for so many threads, or for as many as kernels have. Measuring takes about `seconds`, and setting up
    half a second the first time.

    GB are 1e9 bytes. What cannot be measured is in `unavailable`; `warnings` says which ceilings are too low because
    something else had the processors.
    """
    count = pool.threads() if threads is None else threads
    if count < 1 or seconds <= 0:
        raise BenchError(f"expected threads and seconds above 0, got {threads} and {seconds}")
    level = features.host_level()
    rates: dict[str, float] = {}
    found: dict[str, Ceiling] = {}
    unavailable: dict[str, str] = {}
    with _threads(count):
        share = seconds * (1 - _MEMORY_SHARE) / max(1, len(precisions))
        for precision in precisions:
            unit = unit_of(precision, level)
            if isinstance(unit, str):
                unavailable[precision] = unit
            else:
                found[precision] = _arithmetic(unit, level, count, share)
                rates[precision] = found[precision].rate
        try:
            moves = _memory(level, count, seconds * _MEMORY_SHARE)
        except MemoryError:
            moves: dict[str, Ceiling] = {}
            unavailable["memory_gbps"] = "there is no memory for a buffer that is larger than the caches"
    best = max(moves.values(), key=lambda one: one.rate, default=None)
    if best is not None:
        found["memory_gbps"] = best
    return {
        "memory_gbps": None if best is None else best.rate / 1e9,
        **{f"memory_{name}_gbps": one.rate / 1e9 for name, one in moves.items()},
        "flops_per_second": rates,
        "threads": count,
        "how": {name: f"{one.how}; best of {one.repeats} repeats" for name, one in found.items()},
        "warnings": [
            f"{name}: the threads had {one.processors:.1f} processors on average, so the ceiling may be too low"
            for name, one in found.items()
            if one.processors < _ENOUGH_SHARE * min(count, knobs.usable_processors())
        ],
        "unavailable": unavailable,
    }


@contextmanager
def _threads(count: int) -> Generator[None]:
    """So many threads, each with a processor of its own as far as there are enough: on a machine that does other work,
    the system may well keep all of them on one."""
    start_pool()
    before = pool.threads()
    if count > before:
        pool.set_threads(count)
    launcher(_NOTHING, features.up_to(features.host_level())[0], (), count)()  # starts the workers
    processors = sorted(os.sched_getaffinity(0))
    threads = [threading.get_native_id(), *_workers(count - 1)]
    held = {thread: os.sched_getaffinity(thread) for thread in threads}
    try:
        if count <= len(processors):
            for thread, processor in zip(threads, itertools.cycle(processors[:count]), strict=False):
                os.sched_setaffinity(thread, {processor})
        yield
    finally:
        for thread, allowed in held.items():
            with suppress(ProcessLookupError):  # a worker that left
                os.sched_setaffinity(thread, allowed)
        if count > before:
            pool.set_threads(before)


def _workers(count: int) -> list[int]:
    """The pool's threads, by the numbers of the system. They name themselves, so the last may take a moment."""
    tasks, found = Path("/proc/self/task"), list[int]()
    until = time.perf_counter() + _START_SECONDS
    while len(found) < count and time.perf_counter() < until:
        found = [int(task.name) for task in tasks.iterdir() if _name_of(task) == "tessera-worker"]
    return found


def _name_of(task: Path) -> str | None:
    try:
        return (task / "comm").read_text(encoding="utf-8").strip()
    except OSError:  # it has ended
        return None


@dataclass(frozen=True)
class Ceiling:
    """A rate per second, of the best repeat; and how many processors the threads had, on average over all repeats."""

    rate: float
    processors: float
    repeats: int
    how: str

    @staticmethod
    def of(laps: Sequence[tuple[float, float]], amount: float, how: str) -> Ceiling:
        """From the time of each repeat, on the wall and of the process. The latter is exact over many of them only."""
        walls, used = zip(*laps, strict=True)
        return Ceiling(amount / min(walls), sum(used) / sum(walls), len(laps), how)


def unit_of(precision: str, level: str) -> Unit | str:
    """The unit with the most arithmetic of a precision at a level; or the reason why there is none."""
    if precision not in _UNITS:
        return f"no unit for {precision} is known; there are {', '.join(_UNITS)}"
    return _UNITS[precision](level)


def _float_unit(element: str, bits: int) -> Callable[[str], Unit]:
    def unit(level: str) -> Unit:
        return _vector_unit(level, element, features.lanes(level, bits))

    return unit


def _vector_unit(level: str, element: str, lanes: int) -> Unit:
    """acc = acc + x·y, in as many chains as hide the latency: two units, four or five cycles, and some to spare."""
    chains = 24 if features.vector_registers(level) == 32 else 12  # of 32 registers, or of 16
    vector = f"<{lanes} x {element}>"
    if level == "base":
        body = f"  %p{{i}} = fmul {vector} %a{{i}}, %x\n  %n{{i}} = fadd {vector} %p{{i}}, %y"
        declared, how = "", "products and sums"
    else:
        suffix = {"float": "f32", "double": "f64", "half": "f16"}[element]
        name = f"@llvm.fma.v{lanes}{suffix}"
        body = f"  %n{{i}} = call {vector} {name}({vector} %x, {vector} %y, {vector} %a{{i}})"
        declared, how = f"declare {vector} {name}({vector}, {vector}, {vector})\n", "fused products and sums"
    text = _chains(vector, body, chains, declared)
    return Unit(text, 2 * lanes * chains, f"{how} of {lanes} {element}s in {chains} chains")


def _bf16_unit(level: str) -> Unit:
    if features.has_matrix_unit(level):
        return _tile_unit("tdpbf16ps", 2 * 16 * 16 * 32, "bf16")
    if "avx512_bf16" in features.extras(level):
        name, pair = "@llvm.x86.avx512bf16.dpbf16ps.512", "<32 x bfloat>"
        body = f"  %n{{i}} = call <16 x float> {name}(<16 x float> %a{{i}}, {pair} %x, {pair} %y)"
        declared = f"declare <16 x float> {name}(<16 x float>, {pair}, {pair})\n"
        text = _chains("<16 x float>", body, 24, declared, operand=pair)
        return Unit(text, 2 * 32 * 24, "dot products of pairs of bf16, 16 sums in f32, in 24 chains")
    if "bf16" in features.extras(level):
        return _arm_unit("bfmmla", "<4 x float>", "<8 x bfloat>", 2 * 16, "bf16")
    unit = _float_unit("float", 32)(level)
    return Unit(unit.text, unit.operations, f"as f32, there are no instructions for bf16: {unit.how}")


def _f16_unit(level: str) -> Unit:
    if "amx_fp16" in features.extras(level):
        return _tile_unit("tdpfp16ps", 2 * 16 * 16 * 32, "f16")
    if "avx512_fp16" in features.extras(level):
        return _vector_unit(level, "half", 32)
    if "asimdhp" in features.extras(level):
        return _vector_unit(level, "half", 8)
    unit = _float_unit("float", 32)(level)
    return Unit(unit.text, unit.operations, f"as f32, there is no arithmetic in f16: {unit.how}")


def _i8_unit(level: str) -> Unit | str:
    if "amx_int8" in features.extras(level):
        return _tile_unit("tdpbssd", 2 * 16 * 16 * 64, "i8")
    if "i8mm" in features.extras(level):
        return _arm_unit("smmla.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 2 * 32, "i8")
    if "asimddp" in features.extras(level):
        return _arm_unit("sdot.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 2 * 16, "i8")
    return "only the products of i8 of AMX and NEON are measured, and this processor has none"


def _arm_unit(name: str, vector: str, operand: str, operations: int, element: str) -> Unit:
    """Products of small matrices, or of four elements each, in vector registers."""
    called = f"@llvm.aarch64.neon.{name}"
    body = f"  %n{{i}} = call {vector} {called}({vector} %a{{i}}, {operand} %x, {operand} %y)"
    declared = f"declare {vector} {called}({vector}, {operand}, {operand})\n"
    text = _chains(vector, body, 24, declared, operand=operand)
    return Unit(text, operations * 24, f"{name.partition('.')[0]} of {element} in 24 chains")


_UNITS: dict[str, Callable[[str], Unit | str]] = {
    "f32": _float_unit("float", 32),
    "f64": _float_unit("double", 64),
    "f16": _f16_unit,
    "bf16": _bf16_unit,
    "i8": _i8_unit,
}

_NOTHING = "define i64 @work(ptr %args, i64 %thread, i64 %threads, ptr %workspace) { ret i64 0 }"

# Slots of the args block: the operands, where results go so that the work is not in vain, how many chunks there are.
_HEAD = """
define i64 @work(ptr %args, i64 %thread, i64 %threads, ptr %workspace) {{
entry:
  %operands_at = getelementptr i64, ptr %args, i64 8
  %results_at = getelementptr i64, ptr %args, i64 9
  %chunks_at = getelementptr i64, ptr %args, i64 10
  %operands = load ptr, ptr %operands_at
  %all_results = load ptr, ptr %results_at
  %chunks = load i64, ptr %chunks_at
  %mine = shl i64 %thread, 12
  %results = getelementptr i8, ptr %all_results, i64 %mine
{setup}
  br label %next
next:
  %chunk = atomicrmw add ptr %args, i64 1 monotonic
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %begin, label %end
begin:
{begin}
  br label %loop
loop:
"""
_TAIL = """
end:
{end}
  ret i64 0
}}
"""


def _chains(vector: str, body: str, chains: int, declared: str, operand: str | None = None) -> str:
    """The loop over chains in vector registers; `body` is one step of the chain {i}, from %a{i} to %n{i}."""
    operand = vector if operand is None else operand
    setup = [
        "  %y_at = getelementptr i8, ptr %operands, i64 64",
        f"  %x = load {operand}, ptr %operands, align 64",
        f"  %y = load {operand}, ptr %y_at, align 64",
    ]
    starts = "\n".join(
        f"  %s{i}_at = getelementptr i8, ptr %results, i64 {64 * i}\n  %s{i} = load {vector}, ptr %s{i}_at, align 64"
        for i in range(chains)
    )
    carried = "\n".join(f"  %a{i} = phi {vector} [%s{i}, %begin], [%n{i}, %loop]" for i in range(chains))
    steps = "\n".join(body.format(i=i) for i in range(chains))
    stores = "\n".join(f"  store {vector} %n{i}, ptr %s{i}_at, align 64" for i in range(chains))
    return (
        declared
        + _HEAD.format(setup="\n".join(setup), begin=starts)
        + f"  %t = phi i64 [{_CHUNK_ITERATIONS}, %begin], [%t_next, %loop]\n{carried}\n{steps}\n"
        + "  %t_next = sub i64 %t, 1\n  %again = icmp ne i64 %t_next, 0\n  br i1 %again, label %loop, label %done\n"
        + f"done:\n{stores}\n  br label %next\n"
        + _TAIL.format(end="")
    )


def _tile_unit(name: str, operations: int, element: str) -> Unit:
    """Products of the matrix unit: six sums, so that none waits for its last one, of two operands of 1 KiB."""
    sums = 6
    configuration = [1, 0, *[0] * 14, *([64, 0] * 8), *[0] * 16, *[16] * 8, *[0] * 8]
    shape = ", ".join(f"i8 {word}" for word in configuration)
    declared = (
        f"@shape = private constant [64 x i8] [{shape}], align 64\n"
        "declare void @llvm.x86.ldtilecfg(ptr)\ndeclare void @llvm.x86.tilerelease()\n"
        "declare void @llvm.x86.tileloadd64(i8, ptr, i64)\ndeclare void @llvm.x86.tilezero(i8)\n"
        f"declare void @llvm.x86.{name}(i8, i8, i8)\n"
    )
    setup = [
        "  call void @llvm.x86.ldtilecfg(ptr @shape)",
        "  %b = getelementptr i8, ptr %operands, i64 1024",
        "  call void @llvm.x86.tileloadd64(i8 6, ptr %operands, i64 64)",
        "  call void @llvm.x86.tileloadd64(i8 7, ptr %b, i64 64)",
        *(f"  call void @llvm.x86.tilezero(i8 {total})" for total in range(sums)),
    ]
    steps = "\n".join(f"  call void @llvm.x86.{name}(i8 {total}, i8 6, i8 7)" for total in range(sums))
    text = (
        declared
        + _HEAD.format(setup="\n".join(setup), begin="")
        + f"  %t = phi i64 [{_CHUNK_ITERATIONS}, %begin], [%t_next, %loop]\n{steps}\n"
        + "  %t_next = sub i64 %t, 1\n  %again = icmp ne i64 %t_next, 0\n  br i1 %again, label %loop, label %next\n"
        + _TAIL.format(end="  call void @llvm.x86.tilerelease()")
    )
    return Unit(text, operations * sums, f"{name} of whole tiles of {element}, {sums} sums")


@cache
def launcher(text: str, level: str, arguments: tuple[str, ...], threads: int) -> launch.Launch:
    """The function `work` of a text, as a callable that takes arguments of these kinds."""
    from tessera.targets.llvm import image, machine

    processor, extras = features.target(level)
    loaded = image.load(image.flatten(machine.compile_text(text, cpu=processor, features=extras)))
    template = bytes(launch.WORD * (launch.FIRST_SLOT + len(arguments)))
    slots = [(kind, launch.FIRST_SLOT + index) for index, kind in enumerate(arguments)]
    return launch.make(loaded.address("work"), template, slots, 0, threads, keep=loaded)


def _arithmetic(unit: Unit, level: str, threads: int, seconds: float) -> Ceiling:
    work = launcher(unit.text, level, ("array", "array", "i64"), threads)
    operands = aligned_bytes(4096)
    operands[:] = _ordinary(unit, operands.nbytes)
    results = aligned_bytes(4096 * pool.MOST_THREADS)

    def run(chunks: int) -> Any:
        return work(operands, results, chunks)

    chunks = threads
    while min(_laps(partial(run, chunks), 0.0))[0] < _REPEAT_SECONDS:
        chunks *= 2
    laps = _laps(partial(run, chunks), seconds)
    return Ceiling.of(laps, float(unit.operations) * _CHUNK_ITERATIONS * chunks, unit.how)


def _ordinary(unit: Unit, size: int) -> Array:
    """Bytes that are numbers in (0.25, 0.75) for the unit's operands.

    Below 1 they keep sums bounded, which stop growing where products are too small for them. Bits that vary take the
    power that real operands take.
    """
    import ml_dtypes

    random = np.random.default_rng(0).uniform(0.25, 0.75, size)
    kinds: tuple[tuple[str, Any], ...] = (
        ("double", np.float64),
        ("half", np.float16),
        ("fp16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("bfmmla", ml_dtypes.bfloat16),
        ("tdpbssd", np.int8),
        ("x i8>", np.int8),
    )
    kind: Any = next((found for word, found in kinds if word in unit.text), np.float32)
    values = random * 128 if kind is np.int8 else random
    return values.astype(kind).view(np.uint8)[:size]


def _memory(level: str, threads: int, seconds: float) -> dict[str, Ceiling]:
    """Bytes per second of reading, and of reading two arrays and writing a third."""
    cached = last_level_cache_bytes() or _LEAST_BUFFER // _CACHE_MULTIPLE
    wanted = min(max(_CACHE_MULTIPLE * cached, _LEAST_BUFFER), _MOST_BUFFER)
    size = min(wanted, available_memory_bytes() // _FREE_SHARE)
    part = size // 3 // _CHUNK_BYTES * _CHUNK_BYTES
    if 3 * part <= cached:
        raise MemoryError  # it would measure a cache
    buffer = aligned_bytes(3 * part)
    results = aligned_bytes(4096 * pool.MOST_THREADS)
    vector = f"<{features.lanes(level, 64)} x double>"
    fill, read, triad = (
        launcher(text(vector), level, ("array", "array", "i64", "i64"), threads)
        for text in (fill_text, read_text, triad_text)
    )
    # Memory that was never written is one page of zeros, which is in the cache. The threads that use it write it.
    fill(buffer, results, 3 * part // _CHUNK_BYTES, 0)
    found: dict[str, Ceiling] = {}
    # Writes of the triad go around the caches, so each of its three streams moves its bytes once.
    for name, move, whole, streams in (("read", read, 3 * part, 1), ("triad", triad, part, 3)):
        # A repeat takes the next slice, so that all the others have been through the caches in between.
        count = max(1, min(_SLICE_BYTES * threads // streams, whole) // _CHUNK_BYTES)
        starts = range(0, whole - count * _CHUNK_BYTES + 1, count * _CHUNK_BYTES)
        offsets = itertools.cycle(starts)
        laps = _laps(
            lambda move=move, offsets=offsets, count=count: move(buffer[next(offsets) :], results, count, part),
            seconds / 2,
            len(starts),
        )
        how = f"{name} of a buffer of {3 * part >> 20} MiB"
        found[name] = Ceiling.of(laps, streams * count * _CHUNK_BYTES, how)
    return found


_CHUNK_START = f"""  %from = mul i64 %chunk, {_CHUNK_BYTES}
  %first = getelementptr i8, ptr %operands, i64 %from"""
_CHUNK_AGAIN = f"""  %i_next = add i64 %i, {{step}}
  %again = icmp slt i64 %i_next, {_CHUNK_BYTES}
  br i1 %again, label %loop, label %done
done:
"""


def fill_text(vector: str) -> str:
    """Writes every byte of the buffer."""
    width = _bytes_of(vector)
    lanes = ", ".join(["double 0.5"] * (width // 8))
    return (
        _HEAD.format(setup="", begin=_CHUNK_START)
        + "  %i = phi i64 [0, %begin], [%i_next, %loop]\n  %here = getelementptr i8, ptr %first, i64 %i\n"
        + f"  store {vector} <{lanes}>, ptr %here, align {width}\n"
        + _CHUNK_AGAIN.format(step=width)
        + "  br label %next\n"
        + _TAIL.format(end="")
    )


def read_text(vector: str) -> str:
    """Adds up the buffer; eight sums, so that loads are all that takes time."""
    width, sums = _bytes_of(vector), 8
    carried = "\n".join(f"  %a{i} = phi {vector} [zeroinitializer, %begin], [%n{i}, %loop]" for i in range(sums))
    steps = "\n".join(
        f"  %p{i} = getelementptr i8, ptr %here, i64 {width * i}\n"
        f"  %v{i} = load {vector}, ptr %p{i}, align {width}\n"
        f"  %n{i} = fadd {vector} %a{i}, %v{i}"
        for i in range(sums)
    )
    stores = "\n".join(
        f"  %o{i} = getelementptr i8, ptr %results, i64 {width * i}\n  store {vector} %n{i}, ptr %o{i}, align {width}"
        for i in range(sums)
    )
    return (
        _HEAD.format(setup="", begin=_CHUNK_START)
        + f"  %i = phi i64 [0, %begin], [%i_next, %loop]\n{carried}\n"
        + f"  %here = getelementptr i8, ptr %first, i64 %i\n{steps}\n"
        + _CHUNK_AGAIN.format(step=width * sums)
        + f"{stores}\n  br label %next\n"
        + _TAIL.format(end="")
    )


def triad_text(vector: str) -> str:
    """third = first + second, past the caches: an ordinary store would read the line that it overwrites."""
    width, steps_per_iteration = _bytes_of(vector), 4
    setup = "  %part_at = getelementptr i64, ptr %args, i64 11\n  %part = load i64, ptr %part_at"
    begin = f"""{_CHUNK_START}
  %second = getelementptr i8, ptr %first, i64 %part
  %third = getelementptr i8, ptr %second, i64 %part"""
    steps = "\n".join(
        f"  %j{i} = add i64 %i, {width * i}\n"
        f"  %p{i} = getelementptr i8, ptr %first, i64 %j{i}\n"
        f"  %q{i} = getelementptr i8, ptr %second, i64 %j{i}\n"
        f"  %r{i} = getelementptr i8, ptr %third, i64 %j{i}\n"
        f"  %v{i} = load {vector}, ptr %p{i}, align {width}\n"
        f"  %w{i} = load {vector}, ptr %q{i}, align {width}\n"
        f"  %n{i} = fadd {vector} %v{i}, %w{i}\n"
        f"  store {vector} %n{i}, ptr %r{i}, align {width}, !nontemporal !0"
        for i in range(steps_per_iteration)
    )
    return (
        _HEAD.format(setup=setup, begin=begin)
        + f"  %i = phi i64 [0, %begin], [%i_next, %loop]\n{steps}\n"
        + _CHUNK_AGAIN.format(step=width * steps_per_iteration)
        + "  br label %next\n"
        + _TAIL.format(end="  fence seq_cst")
        + "!0 = !{i32 1}\n"
    )


def _bytes_of(vector: str) -> int:
    return 8 * int(vector.partition(" ")[0].removeprefix("<"))


def aligned_bytes(size: int) -> Array:
    """Bytes on a boundary that every vector is content with."""
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def _lap(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the wall, and of all threads of the process."""
    used, began = time.process_time(), time.perf_counter()
    call()
    return time.perf_counter() - began, time.process_time() - used


def _laps(call: Callable[[], Any], seconds: float, least: int = _LEAST_REPEATS) -> list[tuple[float, float]]:
    """One repeat after another, for so long."""
    laps: list[tuple[float, float]] = []
    began = time.perf_counter()
    while len(laps) < least or time.perf_counter() - began < seconds:
        laps.append(_lap(call))
    return laps
