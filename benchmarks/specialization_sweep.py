"""How long kernels take under every specialisation that can be recommended: the table that models are fitted to.

    python benchmarks/specialization_sweep.py --device cuda --out benchmarks/results/sweep-h200.json
    python benchmarks/specialization_sweep.py --device cpu --out benchmarks/results/sweep-cpu-x86.json

A row is a kernel, its sizes, and a state: element type, how the second operand lies, schedule, what is assumed. All
programs are compiled beforehand, by many processes. Then the states of a problem, a kernel with its sizes, are
interleaved. The first rounds are a row's `trial`, as `Recommender` makes it; `seconds` is the median of as many rounds
after those.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import tessera as ts
from tessera import Schedule, subprocesses
from tessera.metatracing.analysis.trials import ROUNDS, InterleavedRuns, timed_on
from tessera.metatracing.clients.kernels import KernelClient, KernelProgram
from tessera.metatracing.clients.worker import build
from tessera.runtime.device.device import Device
from tessera.stdlib import flash_attention, gemm, layernorm, softmax
from tessera.tiers.client import TierLevel, facts_of
from tessera.tiers.records import ExecutionTier
from tessera.tile.calls.function import Kernel

TIER2, TIER3 = ExecutionTier.TIER2_STANDARD, ExecutionTier.TIER3_SPECIALIZED
DTYPES = {"f32": ts.f32, "bf16": ts.bf16, "f16": ts.f16}
KERNELS: Mapping[str, Kernel] = {"attention": flash_attention, "gemm": gemm, "softmax": softmax, "layernorm": layernorm}


@dataclass(frozen=True)
class State:
    """A kernel with sizes, and how it is specialised. `block` None is the kernel's own choice."""

    kernel: str
    sizes: tuple[int, ...]
    causal: bool = False
    dtype: str = "bf16"
    layout: str = "rows"
    block: tuple[int, ...] | None = None
    warps: int | None = None
    assumed: bool = False

    @property
    def program(self) -> tuple[Any, ...]:
        """What its program depends on: states with the same one share it."""
        sizes = self.sizes if self.assumed or self.kernel == "gemm" else self.sizes[-1:]
        return self.kernel, sizes, self.causal, self.dtype, self.layout, self.block, self.warps, self.assumed

    @property
    def problem(self) -> tuple[Any, ...]:
        """What is computed: models are judged by problems that they were not fitted to."""
        return self.kernel, self.sizes, self.causal

    def schedule(self) -> Schedule | None:
        if self.block is None and self.warps is None:
            return None
        return Schedule(block=self.block, warps=self.warps)

    def form(self) -> Kernel:
        """The kernel, with the grid that its sizes ask for where it has to be given one."""
        kernel = KERNELS[self.kernel]
        if self.kernel == "gemm":
            block = self.block or (128, 128)
            kernel = kernel.with_schedule(Schedule(block=block, warps=self.warps))
            m, n, _ = self.sizes
            return kernel[-(-m // block[0]), -(-n // block[1])]
        chosen = self.schedule()
        return kernel if chosen is None else kernel.with_schedule(chosen)

    def arguments(self, make: Callable[..., Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arrays and numbers. Columns: the operand that is read most lies the other way round."""
        dtype, transposed = DTYPES[self.dtype], self.layout == "columns"

        def lying(*shape: int) -> Any:
            *outer, rows, columns = shape
            return make((*outer, columns, rows), dtype).mT if transposed else make(shape, dtype)

        if self.kernel == "attention":
            batch, heads, length, width = self.sizes
            shape = (batch, heads, length, width)
            return (
                (make(shape, dtype), make(shape, dtype), lying(*shape), make(shape, dtype), width**-0.5),
                {"causal": self.causal},
            )
        if self.kernel == "gemm":
            m, n, k = self.sizes
            return (make((m, k), dtype), lying(k, n), make((m, n), dtype)), {}
        rows, width = self.sizes
        x = lying(rows, width)
        return ((x, make((width,), dtype), make((width,), dtype)) if self.kernel == "layernorm" else (x,)), {}


@dataclass(frozen=True)
class Sweep:
    """What is measured on a kind of machine: sizes, and schedules as blocks with numbers of warps."""

    dtype: str
    other: str
    widths: tuple[int, ...]
    attention: tuple[tuple[int, ...], ...]
    attention_schedules: tuple[tuple[tuple[int, ...], int | None], ...]
    attention_assumed: tuple[int, ...]
    """The block that is also compiled for its sizes."""
    gemm: tuple[tuple[int, ...], ...]
    gemm_schedules: tuple[tuple[tuple[int, ...], int | None], ...]
    gemm_varied: tuple[tuple[int, ...], ...]
    """Blocks that other layouts and element types are measured with."""
    rows: tuple[tuple[int, ...], ...]
    row_schedules: tuple[tuple[tuple[int, ...], int | None], ...]
    row_dtypes: tuple[str, ...]
    row_other: tuple[str, ...] = ()
    """Element types that are measured with nothing else changed."""

    def states(self) -> Iterator[State]:
        for index, outer in enumerate(self.attention):
            for width, causal in product(self.widths, (False, True)):
                start = State("attention", (*outer, width), causal, dtype=self.dtype)
                yield start
                for block, warps in self.attention_schedules:
                    yield replace(start, block=block, warps=warps)
                if index % 2 == 0:
                    yield replace(start, assumed=True)
                    yield replace(start, block=self.attention_assumed, assumed=True)
                if index % 3 == 0:
                    yield replace(start, layout="columns")
                    yield replace(start, dtype=self.other)
        for index, sizes in enumerate(self.gemm):
            start = State("gemm", sizes, dtype=self.dtype)
            for block, warps in self.gemm_schedules:
                yield replace(start, block=block, warps=warps)
            for block in self.gemm_varied:
                yield replace(start, block=block, layout="columns")
                yield replace(start, block=block, dtype=self.other)
                if index % 2 == 0:
                    yield replace(start, block=block, assumed=True)
        for name, sizes, dtype in product(("softmax", "layernorm"), self.rows, self.row_dtypes):
            start = State(name, sizes, dtype=dtype)
            yield start
            for block, warps in self.row_schedules:
                yield replace(start, block=block, warps=warps)
            yield replace(start, assumed=True)
            yield replace(start, layout="columns")
            for other in self.row_other:
                yield replace(start, dtype=other)


SWEEPS = {
    "cuda": Sweep(
        dtype="bf16",
        other="f32",
        widths=(64, 128),
        attention=(
            *((1, 8, 512), (1, 8, 1024), (2, 8, 1024), (1, 16, 2048), (4, 16, 1024), (4, 16, 2048)),
            *((2, 8, 4096), (8, 16, 512), (1, 4, 300), (3, 5, 777), (1, 32, 4096), (2, 16, 1536)),
        ),
        attention_schedules=(
            *(((64, 64), None), ((128, 64), None), ((128, 128), None), ((64, 128), None), ((192, 96), None)),
            *(((64, 64), 8), ((128, 64), 4)),
        ),
        attention_assumed=(64, 64),
        gemm=(
            *((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 1024)),
            *((1000, 1000, 1000), (768, 3072, 768), (256, 4096, 4096), (3000, 2000, 1024)),
        ),
        gemm_schedules=(
            *(((64, 64, 64), None), ((128, 128, 64), None), ((128, 256, 64), None)),
            *(((64, 128, 64), None), ((128, 64, 64), None), ((192, 128, 64), None)),
            *(((64, 64, 32), 2), ((128, 128, 32), 4), ((64, 128, 32), 8)),
        ),
        gemm_varied=((64, 64, 64), (128, 128, 64)),
        rows=((4096, 1024), (8192, 1000), (16384, 512), (2048, 4096), (1024, 1000), (30000, 512), (512, 1024)),
        row_schedules=(((64, 64), 1), ((8, 64), 4), ((16, 64), 16)),
        row_dtypes=("f32", "bf16"),
    ),
    "cpu": Sweep(
        dtype="f32",
        other="bf16",
        widths=(32, 64),
        attention=(
            *((1, 2, 128), (1, 4, 256), (2, 4, 256), (1, 4, 512)),
            *((1, 8, 384), (1, 2, 1000), (2, 3, 333), (4, 8, 128)),
        ),
        attention_schedules=(
            *(((16, 16), None), ((32, 32), None), ((64, 64), None)),
            *(((32, 128), None), ((64, 256), None), ((128, 128), None)),
        ),
        attention_assumed=(32, 32),
        gemm=((128, 128, 128), (256, 256, 256), (512, 512, 512), (300, 300, 300), (64, 1024, 512), (512, 128, 1024)),
        gemm_schedules=(
            *(((16, 16, 16), None), ((32, 32, 64), None), ((64, 64, 64), None)),
            *(((64, 128, 64), None), ((128, 128, 128), None), ((32, 256, 64), None)),
        ),
        gemm_varied=((32, 32, 64), (64, 128, 64)),
        rows=((512, 512), (2048, 256), (1000, 1000), (128, 4096), (4096, 128), (3000, 77)),
        row_schedules=(((1, 64), None), ((8, 64), None), ((256, 64), None)),
        row_dtypes=("f32",),
        row_other=("bf16",),
    ),
}
"""Everything that is measured, by the kind of device."""


# Arrays


class Arrays:
    """Arrays of random numbers, made once for each shape."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._made: dict[tuple[Any, ...], list[Any]] = {}
        self._given: dict[tuple[Any, ...], int] = {}

    def start(self) -> None:
        """For the next row: arrays are handed out from the first on."""
        self._given = {}

    def __call__(self, shape: tuple[int, ...], dtype: ts.DType) -> Any:
        key = (shape, str(dtype))
        several, index = self._made.setdefault(key, []), self._given.get(key, 0)
        self._given[key] = index + 1
        if len(several) <= index:
            several.append(self._drawn(shape, dtype, len(several)))
        return several[index]

    def _drawn(self, shape: tuple[int, ...], dtype: ts.DType, seed: int) -> Any:
        if self.device == "cpu":
            return ts.randn(shape, seed=seed).to(dtype)
        from tessera.bench.instruments.libraries import library

        torch = library("torch")
        kinds = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
        generator = torch.Generator(device="cuda").manual_seed(seed)
        return ts.from_dlpack(torch.randn(shape, device="cuda", dtype=kinds[str(dtype)], generator=generator))


def level_of(state: State, client: KernelClient, call: Any) -> TierLevel:
    words = tuple(sorted(facts_of(client.paths, call.described))) if state.assumed else ()
    return TierLevel(TIER3 if state.assumed else TIER2, words)


# Measuring

BUSY, MOST_TRIES = 1.1, 2
"""A problem is measured again, so often, where a known state beside it took so much longer than at its best."""


def bound(state: State, arrays: Arrays) -> tuple[Callable[[], Any], dict[str, Any]]:
    """What runs a state, and facts about its launch."""
    arrays.start()
    args, static = state.arguments(arrays)
    client = KernelClient(state.form())
    call = client.call(args, static)
    assert call is not None
    compiled = client.compile(call, level_of(state, client, call))
    run = compiled.bind(call)
    assert isinstance(compiled, KernelProgram)
    facts = compiled.launch_facts(call)._asdict()
    facts["schedule"] = str(compiled.program.schedule)
    device = compiled.program.executable.plan.device if compiled.program.executable is not None else None
    facts["agents"] = bool(device is not None and device.maps)
    flat = [one.geometry if isinstance(one, ts.Tensor) else one for one in call.values]
    return (lambda: run(*flat)), facts


def packed(state: State, arrays: Arrays) -> bytes | None:
    """What another process needs to compile a state."""
    arrays.start()
    args, static = state.arguments(arrays)
    client = KernelClient(state.form())
    call = client.call(args, static)
    assert call is not None
    return client.request(call, [level_of(state, client, call)])


def measured_interleaved(states: list[State], arrays: Arrays, interleaved: InterleavedRuns) -> Iterator[dict[str, Any]]:
    """The rows of a problem."""
    running: list[tuple[State, Callable[[], Any], dict[str, Any]]] = []
    for state in states:
        try:
            running.append((state, *bound(state, arrays)))
        except ts.TesseraError as error:
            yield {**asdict(state), "seconds": None, "error": error.message[:200]}
    for (state, _, facts), taken in zip(
        running, interleaved.measure([run for _, run, _ in running], 2 * ROUNDS), strict=True
    ):
        trial, after = taken[:ROUNDS], taken[ROUNDS:]
        yield {**asdict(state), "seconds": statistics.median(after), "trial": trial, "facts": facts}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0, help="stop measuring after so long")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="only every so many rows: to try it out")
    chosen = parser.parse_args()
    states = list(dict.fromkeys(SWEEPS[chosen.device].states()))[:: chosen.every]
    arrays, began = Arrays(chosen.device), time.perf_counter()
    firsts = {state.program: state for state in reversed(states)}
    requests = [one for state in firsts.values() if (one := packed(state, arrays)) is not None]
    if chosen.processes > 1:
        with (
            subprocesses.spawning(),
            ProcessPoolExecutor(chosen.processes, multiprocessing.get_context("spawn")) as pool,
        ):
            for answer in pool.map(build, requests):
                if (wrong := json.loads(answer)) != [None]:
                    print("not compiled:", str(wrong)[:150], flush=True)
    print(f"{len(states)} states, {len(requests)} programs, {time.perf_counter() - began:.1f} s", flush=True)
    if chosen.compile_only:
        return 0
    rows, until = list[dict[str, Any]](), time.perf_counter() + chosen.seconds
    problems: dict[tuple[Any, ...], list[State]] = {}
    for state in states:
        problems.setdefault(state.problem, []).append(state)
    # In random order, so that what changes with time does not look like an effect.
    several = list(problems.values())
    waiting = [(several[int(index)], 0) for index in np.random.default_rng(0).permutation(len(several))]
    interleaved = InterleavedRuns(timed_on(Device("cuda", 0) if chosen.device == "cuda" else None))
    known, _ = bound(states[0], arrays)
    count, least, again = interleaved.count(known), float("inf"), 0
    while waiting and time.perf_counter() < until:
        problem, tries = waiting.pop(0)
        before = interleaved.timed(known, count)
        found = list(measured_interleaved(problem, arrays, interleaved))
        after = interleaved.timed(known, count)
        least = min(least, before, after)
        if max(before, after) > BUSY * least and tries < MOST_TRIES:
            waiting.append((problem, tries + 1))  # something else was at work
            again += 1
        else:
            rows += found
    print(f"{again} problems were measured again")
    host = f"{platform.machine()}, {os.cpu_count()} processors"
    said = {"device": chosen.device, "host": host, "threads": len(os.sched_getaffinity(0)), "rows": rows}
    chosen.out.write_text(json.dumps(said), encoding="utf-8")
    failed = sum(row["seconds"] is None for row in rows)
    print(f"{len(rows)} of {len(states)} rows, {failed} without a time, {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
