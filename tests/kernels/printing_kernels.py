"""Kernels that print, and the text that calls write to the standard output."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import numpy as np

import tessera as ts
from tessera import DType, Schedule, f32, kernel, knobs, tile

if TYPE_CHECKING:
    Filled = Any
else:
    from tessera import Out as Filled


@kernel.schedule(Schedule(block=(3,)))
def everything(x: Any, n: int, scale: float, flag: bool):
    """Prints tiles and numbers of all kinds, nothing but a label, in a loop, and on one side of a branch."""
    rows, here = tile.load(x), tile.program_id(0)
    tile.debug_print("rows", rows, here, n, scale, flag, here > 0, 2.5, True, 7)
    for step in tile.range(n):
        tile.debug_print("step", step, tile.sum(tile.cast(rows, f32)))
        if step > here:
            tile.debug_print("above")
        else:
            tile.debug_print("below", rows)
    tile.debug_print("sum", tile.sum(tile.sum(tile.cast(rows, f32))))
    return rows


@kernel.schedule(Schedule(block=(4,)))
def halves(x: Any):
    """Prints once in each program instance, and twice in every other one."""
    rows = tile.load(x)
    if tile.program_id(0) % 2 == 0:
        tile.debug_print("even")
    tile.debug_print("rows", tile.program_id(0), rows)
    return rows * 2.0


@kernel
def silent(x: Any):
    """Prints nothing."""
    return tile.load(x) * 2.0


@kernel
def until(x: Any, limit: int):
    """Prints in a loop whose condition is a number of the program."""
    rows, n = tile.load(x, at=(0,), shape=(8,)), 1
    while n < limit:
        tile.debug_print("n", n, rows)
        rows, n = rows * 2.0, n * 2
    tile.store(x, rows, at=(0,))


@kernel.schedule(Schedule(block=(64, 32, 32), warps=4, stages=3))
def products(a: Any, b: Any, c: Filled):
    """Prints operands and sums of a product of matrices, while they are summed."""
    own = tile.context()
    row, column = tile.program_id(0) * own.m, tile.program_id(1) * own.n
    total = tile.zeros((own.m, own.n), f32)
    for k in tile.range(0, a.shape[1], own.k):
        left = tile.load(a, at=(row, k), shape=(own.m, own.k))
        total = tile.dot(left, tile.load(b, at=(k, column), shape=(own.k, own.n)), total)
        tile.debug_print("k", k, total, left)
    tile.debug_print("product", total)
    tile.store(c, total, at=(row, column))


@kernel.schedule(Schedule(block=(64, 32, 64), warps=4, stages=2))
def sums(a: Any, b: Any, c: Filled):
    """Prints the sums alone: nothing but products reads the operands, so that they can be read ahead."""
    own = tile.context()
    row, column = tile.program_id(0) * own.m, tile.program_id(1) * own.n
    total = tile.zeros((own.m, own.n), f32)
    for k in tile.range(0, a.shape[1], own.k):
        left, right = (
            tile.load(a, at=(row, k), shape=(own.m, own.k)),
            tile.load(b, at=(k, column), shape=(own.k, own.n)),
        )
        total = tile.dot(left, right, total)
        tile.debug_print("total", total)
    tile.store(c, total, at=(row, column))


@kernel.schedule(Schedule(block=(4,)))
def bounded(x: Any, limit: int):
    """Prints, and fails in some program instances."""
    rows = tile.load(x)
    tile.debug_print("before", tile.program_id(0))
    tile.assert_(tile.program_id(0) < limit, "too far")  # noqa: PT009  (a kernel's)
    return rows


def text_of(call: Callable[..., Any], *args: Any, **settings: Any) -> tuple[str, Any]:
    """What a call writes to the standard output, and its result, under knobs with these settings."""
    written = io.StringIO()
    held = [getattr(knobs, name).using(value) for name, value in settings.items()]
    for one in held:
        one.__enter__()
    try:
        with redirect_stdout(written):
            result = call(*args)
    finally:
        for one in reversed(held):
            one.__exit__(None, None, None)
    return written.getvalue(), result


def small_numbers(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Any:
    """An array of whole numbers that every type has, and whose sums are exact in any order."""
    low = -3 if dtype.is_float or dtype.kind.name == "INT" else 0
    found = np.random.default_rng(seed).integers(low, 4, shape).astype(np.float32)
    return ts.asarray(found).to(dtype)
