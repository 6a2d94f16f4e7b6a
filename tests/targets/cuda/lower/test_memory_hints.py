"""Hints of loads, stores, loops and schedules on GPUs: they change PTX and no results; what changes nothing is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from emitted_runs import run
from gpu_options import gpu
from hinted_kernels import blocks_multiplied, product, rows_added, scaled
from ptx_checks import check_clean, instructions

from tessera import Schedule, bf16, kernel, tile
from tessera import empty as empty_tensor
from tessera.compiler.options import CompileOptions
from tessera.interpreters.levels.tile import run_kernel
from tessera.targets.cuda.compile import compile_lowered, lower_kernel

SM_80, SM_90A = gpu("sm_80"), gpu("sm_90a", row_aligned=range(3))


class Made(NamedTuple):
    """A kernel as it was compiled: its PTX, how often it has each instruction, its way, and the hints in vain."""

    ptx: str
    counts: dict[str, int]
    way: str
    unheeded: list[str]
    slower: list[str]


def made_for(function: Any, *args: Any, options: CompileOptions = SM_80, **static: Any) -> Made:
    made = function.lower(*args, **static)
    lowered = lower_kernel(made.module, made.name, options)
    program = compile_lowered(lowered.module, made.name, options)
    check_clean(program.ptx, options.level)
    report = lowered.report
    words = [f"{one.way}: {one.reason}" for one in report.refusals if one.is_hint]
    slower = [one.reason for one in report.fallbacks]
    return Made(program.ptx, dict(instructions(program.ptx)), report.way, words, slower)


def check_results(function: Any, *args: Any, **static: Any) -> None:
    """The PTX, run thread by thread, gives what the interpreter gives."""
    made = function.lower(*args, **static)
    right, found = [np.array(one) for one in args], [np.array(one) for one in args]
    run_kernel(made.module, made.name, right)
    ran = run(lower_kernel(made.module, made.name, SM_80).module, made.name, found, arch="sm_80")
    assert ran.message is None
    for mine, other in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-2, atol=1e-3)


def counted(made: Made, part: str) -> int:
    """How many instructions have this in their names."""
    return sum(count for name, count in made.counts.items() if part in name)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


MATRICES = numbers(30, 64), np.zeros((30, 64), np.float32)
LONG_ROWS = numbers(14, 150), np.zeros((14, 32), np.float32)
OPERANDS = numbers(16, 40).astype(np.float16), numbers(40, 16).astype(np.float16), np.zeros((16, 16), np.float32)

of_two, of_rows, of_dots = scaled[2], rows_added[2], product[1]
unswizzled = of_dots.with_schedule(Schedule(swizzle="none"))
in_pairs = of_two.with_schedule(Schedule(vector=2))

ACTS: list[tuple[Any, Any, dict[str, Any], Callable[[Made, Made], bool]]] = [
    (of_two, MATRICES, {"memory": "smem"}, lambda made, _: counted(made, "cp.async.cg") > 0),
    (of_rows, LONG_ROWS, {"memory": "smem"}, lambda made, _: counted(made, "cp.async.cg") == 1),
    (of_dots, OPERANDS, {"memory": "registers"}, lambda made, old: counted(made, "cp.a") < counted(old, "cp.a")),
    (of_two, MATRICES, {"vector": 1}, lambda made, _: "ld.global.nc.v4.b32" not in made.counts),
    (of_two, MATRICES, {"vector": 2}, lambda made, _: made.counts["ld.global.nc.v2.b32"] == 8),
    (of_two, MATRICES, {"vector": 8}, lambda made, _: made.counts["ld.global.nc.v4.b32"] == 4),
    (of_two, MATRICES, {"stored": 1}, lambda made, _: "st.global.v4.b32" not in made.counts),
    (of_two, MATRICES, {"stored": 16}, lambda made, _: made.counts["st.global.v4.b32"] == 8),
    (in_pairs, MATRICES, {}, lambda made, _: made.counts["st.global.v2.b32"] == 8),
    (of_rows, LONG_ROWS, {"prefetch": 1}, lambda made, _: counted(made, "cp.async.cg") == 2),
    (of_rows, LONG_ROWS, {"prefetch": 3}, lambda made, _: counted(made, "cp.async.cg") == 4),
    (of_rows, LONG_ROWS, {"ahead": 2}, lambda made, _: counted(made, "cp.async.cg") == 3),
    (of_dots, OPERANDS, {"prefetch": 1}, lambda made, old: counted(made, "mma") < counted(old, "mma")),
    (unswizzled, OPERANDS, {}, lambda made, _: counted(made, "cp.async.cg") > 0),
]


def _id(value: Any) -> str:
    return getattr(value, "__name__", "") if callable(value) else "" if isinstance(value, tuple) else str(value)


@pytest.mark.quick(5)
@pytest.mark.parametrize(("function", "args", "hints", "has"), ACTS, ids=_id)
def test_hints_change_code_and_no_results(function: Any, args: Any, hints: dict[str, Any], has: Any) -> None:
    made, plain = made_for(function, *args, **hints), _plain(function.__name__)
    assert made.ptx != plain.ptx
    assert made.unheeded == []
    assert has(made, plain)
    check_results(function, *args, **hints)


@cache
def _plain(name: str) -> Made:
    """The kernel of this name without hints."""
    found = {"scaled": (of_two, MATRICES), "rows_added": (of_rows, LONG_ROWS), "product": (of_dots, OPERANDS)}
    return made_for(found[name][0], *found[name][1])


@kernel
def in_vain(x: Any, y: Any, *, what: str):
    row = tile.load(x[0], at=(0,), shape=(12,), memory="smem" if what == "one axis" else None)
    best = tile.load(x, at=(0, 0), shape=(8, 8), pad=-1.0, memory="smem" if what == "padded" else None)
    whole = tile.load(x, at=(0, 0), shape=(8, 12), prefetch=2 if what == "no loop" else None)
    pieces = tile.load(x, at=(0, 0), shape=(8, 12), vector=8 if what == "pieces" else None)
    copied = tile.load(x, at=(0, 0), shape=(8, 8), memory="smem", vector=4 if what == "copied" else None)
    total, at = tile.sum(row + whole + pieces) + tile.sum(best + copied), 0
    for _ in tile.range(3, prefetch=2 if what == "nothing loaded" else None):
        total = total * 2.0
    for _ in tile.range(3, prefetch=2 if what == "left early" else None):
        total = total + tile.sum(tile.load(x, at=(0, 0), shape=(8, 8)))
        if tile.item(x, 0, 0) > 0:
            break
    for _ in tile.range(3):
        total = total + tile.sum(tile.load(x, at=(at, 0), shape=(8, 8), prefetch=2 if what == "moved" else None))
        at = at + tile.item(y, 0, 0)
    for i in tile.range(3, prefetch=2 if what == "written" else None):
        total = total + tile.cast(tile.sum(tile.load(y, at=(i, 0), shape=(8, 8))), total.dtype)
    tile.store(y[0], tile.cast(total, y.dtype), at=(0,))


REASONS = {
    "one axis": "memory=smem: copies to shared memory are of tiles with two axes, and this one has 1",
    "padded": "memory=smem: copies to shared memory leave 0 where a tile leaves its array",
    "no loop": "prefetch=2: it is in no loop that counts, so there is nothing to run ahead of",
    "pieces": "vector=8: rows of 12 elements are no whole pieces of 8",
    "copied": "vector=4: it is copied to shared memory, 16 bytes at a time",
    "nothing loaded": "prefetch=2: the loop loads no tile itself; branches and loops within it may",
    "left early": "prefetch=2: a loop that may be left early does not know what it will load",
    "moved": "prefetch=2: where it reads follows from what the loop computes, and not from its counter alone",
    "written": "prefetch=2: the kernel writes that array",
}


@pytest.mark.parametrize("what", REASONS)
def test_hints_that_change_nothing_are_told(what: str) -> None:
    args = numbers(30, 64), np.zeros((30, 64), np.int64)
    assert made_for(in_vain[1], *args, what=what).unheeded == [REASONS[what]]


def test_a_hint_of_a_schedule_is_told_once() -> None:
    made = made_for(of_two.with_schedule(Schedule(swizzle="none")), *MATRICES)
    assert made.unheeded == ["swizzle=none: the kernel has no tiles in shared memory that dots or hints ask for"]
    made = made_for(of_dots.with_schedule(Schedule(vector=4)), *OPERANDS)
    assert made.unheeded == ["vector=4 in 2 places: it is copied to shared memory, 16 bytes at a time"]


@pytest.mark.acceptance
def test_rings_of_specialized_warps_are_as_deep_as_asked() -> None:
    def form(schedule: Schedule, **hints: Any) -> Made:
        a, b, c = (empty_tensor(shape, dtype=bf16) for shape in ((64, 640), (640, 64), (64, 64)))
        return made_for(blocks_multiplied[1].with_schedule(schedule), a, b, c, options=SM_90A, **hints)

    plain, ahead = form(Schedule()), form(Schedule(), prefetch=2)
    assert plain.way != ahead.way
    assert "rings of 3" in ahead.way
    assert counted(plain, "wgmma.mma_async") > 0 < counted(ahead, "wgmma.mma_async")
    assert ahead.unheeded == plain.unheeded == []
    assert form(Schedule(swizzle="none")).unheeded == ["swizzle=none: wgmma reads operands whose chunks are swizzled"]
    assert form(Schedule(vector=2)).unheeded == [
        "vector=2 in 2 places: a copy takes it as one box",
        "vector=2: it has the layout of the dots that it meets, and no more than that are moved at once",
    ]
    kept = form(Schedule(), memory="registers")
    assert counted(kept, "wgmma.mma_async") == 0
    assert kept.slower == ["an operand of a dot is to be loaded into registers, and wgmma's come from shared memory"]
