"""Narrow whole numbers that become floats by their bits, and products of pairs: run by the machine for tests."""

from __future__ import annotations

import numpy as np
import pytest
from emitted_runs import run
from nv_cases import tile_text, view_text
from nv_layouts import Array

from tessera.dtypes.types import DType, bf16, f16, f32, i4, i8, u4, u8
from tessera.targets import text
from tessera.targets.cuda.ir.layouts import Layout, blocked

THREADS, ROWS, COLUMNS = 32, 16, 32


def source(read: DType, opened: DType, result: DType, axis: int | None, layout: Layout) -> str:
    """A function that casts a tile, unpacked first along an axis if there is one, and multiplies it by another."""
    shape = [ROWS, COLUMNS]
    if axis is not None:
        shape[axis] //= 2
    halved = layout if axis is None else layout.halved(axis)
    assert halved is not None
    packed = tile_text(shape, read, halved)
    narrow, wide = (tile_text((ROWS, COLUMNS), dtype, layout) for dtype in (opened, result))
    unpack = "" if axis is None else f"%n = tile.unpack %p, {axis} : {packed} -> {narrow}\n  "
    views = [view_text(2, dtype) for dtype in (read, result, result)]
    sizes = f"[{shape[0]}, {shape[1]}], [{ROWS}, {COLUMNS}], [{ROWS}, {COLUMNS}]"
    return f"""
nv.func @k(%x: {views[0]}, %s: {views[1]}, %y: {views[2]}) outputs 0 shapes [{sizes}] grid [1] threads {THREADS} {{
  %zero = arith.constant 0 : index
  %p = tile.load %x[%zero, %zero] : {views[0]} -> {packed}
  %scale = tile.load %s[%zero, %zero] : {views[1]} -> {wide}
  {unpack}%w = tile.ew<cast> {"%n" if axis is not None else "%p"} {{bitwise}} : {narrow} -> {wide}
  %z = tile.ew<mul> %w, %scale {{bitwise}} : {wide}, {wide} -> {wide}
  tile.store %z, %y[%zero, %zero] : {wide}, {views[2]}
  nv.return
}}
"""


def check(read: DType, opened: DType, result: DType, axis: int | None, layout: Layout, numbers: Array) -> str:
    chance = np.random.default_rng(7)
    packed = numbers
    if axis is not None:
        low, high = (numbers.take(range(half, numbers.shape[axis], 2), axis).astype(np.uint8) & 15 for half in (0, 1))
        packed = low | high << 4
    scale = (chance.random((ROWS, COLUMNS)) + 0.5).astype(result.storage)
    found = np.full((ROWS, COLUMNS), np.nan, result.storage)
    module = text.read(source(read, opened, result, axis, layout))
    made = run(module, "k", [packed.astype(read.storage), scale, found])
    expected = (numbers.astype(np.float32) * scale.astype(np.float32)).astype(result.storage)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    return made.program.ptx


@pytest.mark.parametrize("result", [f32, bf16, f16], ids=str)
@pytest.mark.parametrize("dtype", [i8, u8], ids=str)
def test_bytes(dtype: DType, result: DType) -> None:
    every = np.resize(np.arange(int(dtype.min_value), int(dtype.max_value) + 1), (ROWS, COLUMNS))
    ptx = check(dtype, dtype, result, None, blocked((ROWS, COLUMNS), THREADS, 8), every)
    assert "cvt.rn.f32.s" not in ptx
    assert "cvt.rn.f32.u" not in ptx


@pytest.mark.parametrize("result", [f32, bf16, f16], ids=str)
@pytest.mark.parametrize("dtype", [i4, u4], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_halves(axis: int, dtype: DType, result: DType) -> None:
    shape = [ROWS, COLUMNS]
    shape[axis] //= 2
    layout = blocked(shape, THREADS, 4).doubled(axis)
    every = np.resize(np.arange(int(dtype.min_value), int(dtype.max_value) + 1), (ROWS, COLUMNS))
    ptx = check(
        u8, dtype, result, axis, layout, np.random.default_rng(axis).permuted(every.reshape(-1)).reshape(every.shape)
    )
    if result is not f32 and axis == 0:
        assert f"sub.rn.{result}x2" in ptx, "two of them are in a word"


def test_products_are_rounded_once() -> None:
    """As a product in f32 would be, of all bytes with many scales."""
    layout = blocked((ROWS, COLUMNS), THREADS, 8)
    for seed in range(4):
        numbers = np.random.default_rng(seed).integers(-128, 128, (ROWS, COLUMNS))
        assert "mul.rn.bf16x2" in check(i8, i8, bf16, None, layout, numbers)
