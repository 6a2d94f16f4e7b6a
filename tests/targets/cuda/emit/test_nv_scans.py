"""Running reductions and sorts as PTX: what the machine for tests makes of it is what the interpreter does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emitted_runs import run
from gpu_options import gpu
from ptx_runs import numbers

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.dtypes.types import DType
from tessera.targets.cuda.compile import lower_kernel
from tessera.targets.cuda.ptx.assembler import assemble


@kernel
def running(x: Any, *, axis: int) -> Any:
    return tile.cumsum(tile.load(x), axis=axis)


@kernel
def back(x: Any, *, axis: int) -> Any:
    return tile.cumsum(tile.load(x), axis=axis, reverse=True)


@kernel
def ordered(x: Any, *, axis: int) -> Any:
    return tile.sort(tile.load(x), axis=axis)


def check(function: Any, dtype: DType, shape: tuple[int, int], rows: int, warps: int, axis: int, arch: str) -> None:
    x = numbers(rows + axis, shape, dtype)
    if dtype.is_float and function is not ordered:
        # Sums of small whole numbers are exact in any order.
        x = np.round(4 * x.astype(np.float32)).astype(dtype.storage)
    made = function.with_schedule(ts.Schedule(block=(rows, 16), warps=warps))
    given = ts.array(x, dtype)
    with knobs.interpret.using(True):
        expected = made(given, axis=axis).numpy()
    arrays = [x, np.zeros_like(x)]
    module = made.lower(given, axis=axis).module
    found = run(lower_kernel(module, function.__name__, gpu(arch)).module, function.__name__, arrays, arch=arch)
    assert found.message is None
    assert assemble(found.program.ptx, arch).kernels[function.__name__].spill_stores == 0
    assert np.array_equal(arrays[1], expected)


# Digits of registers alone, of lanes, of warps, and of all of them; rows that end inside of a thread's part.
SHAPES = [((2, 5), 2, 1), ((3, 64), 1, 1), ((2, 300), 1, 4), ((4, 257), 2, 2), ((2, 1024), 1, 4), ((1, 2048), 1, 8)]


@pytest.mark.parametrize(("shape", "rows", "warps"), SHAPES)
def test_rows_are_summed_up(shape: tuple[int, int], rows: int, warps: int) -> None:
    check(running, ts.f32, shape, rows, warps, 1, "sm_90a")


@pytest.mark.parametrize("dtype", [ts.bf16, ts.i32, ts.i64, ts.f64, ts.u8])
def test_of_any_width(dtype: DType) -> None:
    check(running, dtype, (2, 300), 1, 2, 1, "sm_90a")


@pytest.mark.parametrize(("shape", "rows", "warps"), [((16, 8), 16, 1), ((64, 40), 64, 4), ((96, 3), 96, 4)])
def test_columns_are_summed_up(shape: tuple[int, int], rows: int, warps: int) -> None:
    check(running, ts.f32, shape, rows, warps, 0, "sm_80")


def test_backwards() -> None:
    check(back, ts.f32, (2, 100), 1, 1, 1, "sm_90a")


@pytest.mark.parametrize(("shape", "rows", "warps"), [*SHAPES, ((1, 33), 1, 1), ((4, 64), 4, 2)])
def test_rows_are_sorted(shape: tuple[int, int], rows: int, warps: int) -> None:
    check(ordered, ts.i32, shape, rows, warps, 1, "sm_90a")


@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.f64, ts.u8, ts.i16, ts.u32, ts.i64])
def test_rows_of_any_width_are_sorted(dtype: DType) -> None:
    check(ordered, dtype, (2, 300), 1, 2, 1, "sm_80")


def test_columns_are_sorted() -> None:
    check(ordered, ts.i32, (60, 5), 60, 2, 0, "sm_90a")
