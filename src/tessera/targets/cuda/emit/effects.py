"""nv level → LLVM text: atomics, semaphores that order blocks, and prints."""

from __future__ import annotations

from collections.abc import Mapping

from tessera.compiler.launch_plan import PRINTS
from tessera.dtypes.types import DType, Kind, bf16, f16, f32, f64
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import WORD, Emitter, emits
from tessera.targets.cuda.emit.global_access import Access, Path
from tessera.targets.cuda.emit.memory import Places
from tessera.targets.cuda.emit.thread_tiles import ThreadTile
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ptx.inline import asm, barrier
from tessera.targets.llvm import elements, elementwise
from tessera.targets.llvm.prints import RecordWriter
from tessera.targets.llvm.text import Function, Value, number

# Atomics

_ALONE = 'syncscope("device") monotonic'
_WHOLE: Mapping[str, tuple[str, str]] = {
    "sum": ("add", "add"),
    "and": ("and", "and"),
    "or": ("or", "or"),
    "xor": ("xor", "xor"),
    "max": ("max", "umax"),
    "top": ("max", "umax"),
    "min": ("min", "umin"),
}
"""Instructions on whole numbers, with and without a sign."""
_HALVES = {f16: "half", bf16: "bfloat"}


@emits(tile.AtomicOp)
def _atomic(emitter: Emitter, op: tile.AtomicOp) -> None:
    """Every element of the tile once: not ghosts, not what is outside, and by the first of those that hold it."""
    value, kind = emitter.tile(op.value), op.kind.data

    def each() -> None:
        access = Access(emitter, op.view, list(op.offsets), value.layout, value.shape)
        if kind == "sum" and access.pieces.in_words and _adds_pairs(emitter, value.dtype):
            access.by_paths(lambda path: _combine(emitter, path, kind, value), inside=False)
        else:
            _combine(emitter, Path(access, pieces=False, tested=True), kind, value)

    emitter.where(emitter.first_replica(value.layout), each)


@emits(tile.AtomicAtOp)
def _atomic_at(emitter: Emitter, op: tile.AtomicAtOp) -> None:
    f, value = emitter.f, emitter.tile(op.value)

    def each() -> None:
        places = Places(emitter, op, value.layout, value.shape)
        for register in range(value.count):
            _combine_at(emitter, op.kind.data, places.of(register), value.element(register), value.dtype)

    def by_one(thread: Value, _: list[Value]) -> None:
        emitter.where(f.all_of([emitter.first_replica(value.layout), f.compare("eq", emitter.thread, thread)]), each)
        barrier(f)

    if nv.ORDERED in op.attributes:
        f.loop(number(0, "i32"), emitter.source.thread_count, 1, [], by_one, runs=True)
    else:
        emitter.where(emitter.first_replica(value.layout), each)


def _combine_at(emitter: Emitter, kind: str, place: tuple[Value, Value], given: Value, dtype: DType) -> None:
    pointer, inside = place
    emitter.where(inside, lambda: _step(emitter, kind, pointer, given, dtype))


def _adds_pairs(emitter: Emitter, dtype: DType) -> bool:
    """Whether the machine adds two small floats to their neighbours in memory at once."""
    return dtype is f16 or (dtype is bf16 and emitter.machine >= 90)


def _combine(emitter: Emitter, path: Path, kind: str, value: ThreadTile) -> None:
    for register in range(0, value.count, path.count):
        _combine_piece(emitter, path, kind, value, register)


def _combine_piece(emitter: Emitter, path: Path, kind: str, value: ThreadTile, register: int) -> None:
    """One element, or the pairs of one piece."""
    f, (pointer, offset), where = emitter.f, path.address(register), path.inside(register)
    at = f.op(pointer.type, f"getelementptr i8, {pointer}, i64 {offset}")

    def step() -> None:
        if path.count == 1:
            _step(emitter, kind, at, value.element(register), value.dtype)
            return
        for first in range(0, path.count, 2):
            text = f"red.relaxed.gpu.global.add.noftz.{value.dtype}x2 [$0+{2 * first}], $1;"
            asm(f, text, arguments=[at, value.word((register + first) // 2)], effects=True)

    emitter.where(where, step)


def _step(emitter: Emitter, kind: str, pointer: Value, given: Value, dtype: DType) -> None:
    """Combines one element into memory."""
    f = emitter.f
    stored = elements.to_memory(f, given, dtype)
    if not dtype.is_float and kind in _WHOLE and dtype.bits in (1, 8, 16, 32, 64):
        opcode = _WHOLE[kind][0 if dtype.kind is Kind.INT else 1]
        f.op(stored.type, f"atomicrmw {opcode} {pointer}, {stored} {_ALONE}")
    elif kind == "sum" and dtype in (f32, f64):
        f.op(stored.type, f"atomicrmw fadd {pointer}, {stored} {_ALONE}")
    elif kind == "sum" and dtype in _HALVES:
        half = f.convert("bitcast", stored, _HALVES[dtype])
        f.op(half.type, f"atomicrmw fadd {pointer}, {half} {_ALONE}")
    else:
        _exchange(emitter, kind, pointer, given, dtype)


def _exchange(emitter: Emitter, kind: str, pointer: Value, given: Value, dtype: DType) -> None:
    """Computes what memory should hold, and writes it unless another thread was faster: then again."""
    f, memory = emitter.f, elements.memory_type(dtype)
    bits, align = f"i{8 * dtype.storage.itemsize}", dtype.storage.itemsize
    first = f.load(bits, pointer, align=align)
    number_ = first.name.removeprefix("%.")
    start, top, out = f"found{number_}", f"again{number_}", f"settled{number_}"
    _jump(f, start)
    _jump(f, top)
    seen, got = Value(f"%seen{number_}", bits), Value(f"%got{number_}", bits)
    f.do(f"{seen.name} = phi {bits} [ {first.name}, %{start} ], [ {got.name}, %{top} ]")
    old = elements.to_register(f, f.convert("bitcast", seen, memory), dtype)
    new = elementwise.combine(f, kind, old, given, dtype, emitter.level)
    stored = f.convert("bitcast", elements.to_memory(f, new, dtype), bits)
    pair = f.op(f"{{ {bits}, i1 }}", f'cmpxchg {pointer}, {seen}, {stored} syncscope("device") monotonic monotonic')
    f.do(f"{got.name} = extractvalue {pair.type} {pair.name}, 0")
    done = f.op("i1", f"extractvalue {pair.type} {pair.name}, 1")
    f.do(f"br {done}, label %{out}, label %{top}")
    f.label(out)


def _jump(f: Function, label: str) -> None:
    f.jump(label)
    f.label(label)


# Semaphores

_UNTIL = "{ .reg .pred p; .reg .u32 v; AGAIN: ld.acquire.gpu.global.u32 v, [$0]; setp.ne.u32 p, v, $1; @p bra AGAIN; }"
_PASS = "fence.acq_rel.gpu; st.release.gpu.global.u32 [$0], $1;"


def _to_the_counter(emitter: Emitter, text: str, given: Value) -> None:
    """One thread does something with the semaphore's counter."""
    f = emitter.f

    def run() -> None:
        asm(f, text, arguments=[emitter.global_address(emitter.block_layout.counters), given], effects=True)

    emitter.branch(f.compare("eq", emitter.thread, 0), run)


@emits(nv.SemaphoreWaitOp)
def _semaphore_wait(emitter: Emitter, op: nv.SemaphoreWaitOp) -> None:
    _to_the_counter(emitter, _UNTIL, emitter.sreg("ctaid.x"))
    barrier(emitter.f)


@emits(nv.SemaphoreSignalOp)
def _semaphore_signal(emitter: Emitter, op: nv.SemaphoreSignalOp) -> None:
    f = emitter.f
    following = f.add(emitter.sreg("ctaid.x"), 1)
    ends = f.compare("eq", following, emitter.sreg("nctaid.x"))
    barrier(f)
    _to_the_counter(emitter, _PASS, f.select(ends, number(0, "i32"), following))


# Prints


@emits(tile.PrintRecordOp)
def _print_record(emitter: Emitter, op: tile.PrintRecordOp) -> None:
    """One thread takes the room of a record, and tells the others where it is."""
    f = emitter.f
    buffer = f.at(emitter.record(), PRINTS)
    writer, place = RecordWriter(emitter, op, buffer, 'syncscope("device") '), emitter.shared_pointer(WORD)
    barrier(f)
    emitter.branch(f.compare("eq", emitter.thread, 0), lambda: f.store(writer.take(), place, align=WORD))
    barrier(f)
    writer.bind(f.load("i64", place, align=WORD))
