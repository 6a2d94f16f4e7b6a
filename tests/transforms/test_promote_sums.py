"""Checks that sums of narrow products are added up outside of them: where they lose bits, and nowhere else."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten_programs import check_same, count

from tessera.dialects import tile
from tessera.transforms.promote_sums import is_nothing, promote_sums

SOURCE = """
tile.func @k(%a: !tile.view<2, A, global>, %b: !tile.view<2, A, global>, %c: !tile.view<2, f32, global>) outputs 1
    shapes [[16, K], [8, K], [16, 8]] grid [1] {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %depth = tile.dim %a, 1 : !tile.view<2, A, global>
  %first = arith.constant START : f32
  %start = tile.full %first : tensor<16x8xf32>
  %sums = scf.for %k = %c0 to %depth step %c32 iter_args(%acc = %start) -> (tensor<16x8xf32>) {
    %left = tile.load %a[%c0, %k] : !tile.view<2, A, global> -> tensor<16x32xA>
    %stored = tile.load %b[%c0, %k] : !tile.view<2, A, global> -> tensor<8x32xA>
    %right = tile.trans %stored, [1, 0] : tensor<8x32xA> -> tensor<32x8xA>
    %next = tile.dot %left, %right, %accHOW : tensor<16x32xA>, tensor<32x8xA>, tensor<16x8xf32> -> tensor<16x8xf32>
    scf.yield %next : tensor<16x8xf32>
  }
  tile.store %sums, %c[%c0, %c0] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}
"""


def source(element: str, how: str = "", start: str = "0.0") -> str:
    return SOURCE.replace("HOW", how).replace("START", start).replace("A,", f"{element},").replace("xA", f"x{element}")


def arguments(dtype: Any, depth: int, seed: int = 0) -> list[Any]:
    """Small whole numbers: their sums are the same however they are added."""
    chance = np.random.default_rng(seed)
    return [*(chance.integers(-4, 5, (rows, depth)).astype(dtype) for rows in (16, 8)), np.zeros((16, 8), np.float32)]


@pytest.mark.parametrize(
    ("element", "dtype"), [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)]
)
@pytest.mark.parametrize("start", ["0.0", "1.5"])
def test_sums_are_added_outside(element: str, dtype: Any, start: str) -> None:
    for depth in (0, 1, 32, 65):
        function = check_same(source(element, start=start), promote_sums, arguments(dtype, depth))
        (dot,) = (op for op in function.body.walk() if isinstance(op, tile.DotOp))
        assert is_nothing(dot.c)
        assert count(function, tile.EwOp) == 1


@given(depth=st.integers(0, 200), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_any_depth(depth: int, seed: int) -> None:
    check_same(source("f8E4M3FN"), promote_sums, arguments(ml_dtypes.float8_e4m3fn, depth, seed))


def test_twice_is_once() -> None:
    def twice(function: tile.FuncOp) -> None:
        promote_sums(function)
        promote_sums(function)

    function = check_same(source("f8E4M3FN"), twice, arguments(ml_dtypes.float8_e4m3fn, 40))
    assert count(function, tile.EwOp) == 1


@pytest.mark.parametrize(
    ("element", "dtype", "how"),
    [
        ("bf16", ml_dtypes.bfloat16, ""),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn, " in f16"),
        ("f8E5M2", ml_dtypes.float8_e5m2, " in bf16"),
    ],
)
def test_sums_that_keep_their_bits_stay(element: str, dtype: Any, how: str) -> None:
    function = check_same(source(element, how), promote_sums, arguments(dtype, 40))
    assert count(function, tile.EwOp) == 0


def test_a_type_that_keeps_more_bits_is_not_enough() -> None:
    function = check_same(source("f8E4M3FN", " in f32"), promote_sums, arguments(ml_dtypes.float8_e4m3fn, 40))
    assert count(function, tile.EwOp) == 1
