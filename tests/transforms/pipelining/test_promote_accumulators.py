"""Checks that accumulators of narrow dots are added outside of the tensor cores where these lose bits only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import check_partitions
from rewritten_programs import check_same, count
from xdsl.dialects import scf

from tessera.interpreters.core.machine import Machine
from tessera.ir.tile import dialect as tile
from tessera.transforms.loops.unroll_loop import unroll
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.promote_accumulators import DEPTH, is_zero, promote_accumulators
from tessera.transforms.pipelining.warp_specialize import warp_specialize

SOURCE = """
tile.func @k(%a: !tile.view<2, A, global>, %b: !tile.view<2, A, global>, %c: !tile.view<2, f32, global>) outputs 1
    shapes [[16, K], [8, K], [16, 8]] grid [1] {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %depth = tile.dim %a, 1 : !tile.view<2, A, global>
  %first = arith.constant START : f32
  %start = tile.full %first : tensor<16x8xf32>
  %total = scf.for %k = %c0 to %depth step %c32 iter_args(%acc = %start) -> (tensor<16x8xf32>) {
    %left = tile.load %a[%c0, %k] : !tile.view<2, A, global> -> tensor<16x32xA>
    %stored = tile.load %b[%c0, %k] : !tile.view<2, A, global> -> tensor<8x32xA>
    %right = tile.trans %stored, [1, 0] : tensor<8x32xA> -> tensor<32x8xA>
    %next = tile.dot %left, %right, %accHOW : tensor<16x32xA>, tensor<32x8xA>, tensor<16x8xf32> -> tensor<16x8xf32>
    scf.yield %next : tensor<16x8xf32>
  }
  tile.store %total, %c[%c0, %c0] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}
"""


def source(element: str, how: str = "", start: str = "0.0") -> str:
    return SOURCE.replace("HOW", how).replace("START", start).replace("A,", f"{element},").replace("xA", f"x{element}")


def arguments(dtype: Any, depth: int, seed: int = 0) -> list[Any]:
    """Small whole numbers: their sums are the same however they are added."""
    chance = np.random.default_rng(seed)
    return [*(chance.integers(-4, 5, (rows, depth)).astype(dtype) for rows in (16, 8)), np.zeros((16, 8), np.float32)]


def promoted(depth: int = DEPTH) -> Callable[[tile.FuncOp], None]:
    return lambda function: promote_accumulators(function, depth)


def dots(function: tile.FuncOp) -> list[tile.DotOp]:
    return [op for op in function.body.walk() if isinstance(op, tile.DotOp)]


@pytest.mark.parametrize(
    ("element", "dtype"), [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)]
)
@pytest.mark.parametrize("start", ["0.0", "1.5"])
def test_accumulators_are_added_outside(element: str, dtype: Any, start: str) -> None:
    for depth in (0, 1, 32, 65):
        function = check_same(source(element, start=start), promoted(32), arguments(dtype, depth))
        (dot,) = dots(function)
        assert is_zero(dot.c)
        assert count(function, tile.EwOp) == 1


@pytest.mark.parametrize("iterations", [2, 3, 8])
def test_several_iterations_at_a_time(iterations: int) -> None:
    """As many as the depth allows; iterations that are left are added up one by one."""
    for depth in (0, 1, 32, 33, 64, 65, 96, 97, 256, 257, 600):
        given = arguments(ml_dtypes.float8_e4m3fn, depth)
        function = check_same(source("f8E4M3FN"), promoted(32 * iterations), given)
        assert [is_zero(dot.c) for dot in dots(function)] == [True, *[False] * (iterations - 1), True]
        assert count(function, tile.EwOp) == 2


@given(depth=st.integers(0, 600), most=st.integers(0, 300), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_any_depth(depth: int, most: int, seed: int) -> None:
    check_same(source("f8E4M3FN"), promoted(most), arguments(ml_dtypes.float8_e4m3fn, depth, seed))


def test_twice_is_once() -> None:
    def twice(function: tile.FuncOp) -> None:
        promote_accumulators(function)
        promote_accumulators(function)

    function = check_same(source("f8E4M3FN"), twice, arguments(ml_dtypes.float8_e4m3fn, 400))
    assert count(function, tile.EwOp) == 2


def test_a_loop_that_begins_anywhere_has_all_its_iterations() -> None:
    for first, stop, step in ((3, 90, 7), (5, 5, 1), (9, 2, 3), (0, 13, 4)):
        body = f"""
        tile.func @k(%c: !tile.view<1, i64, global>) outputs 1 shapes [[1]] grid [1] {{
          %c0 = arith.constant 0 : index
          %first = arith.constant {first} : index
          %stop = arith.constant {stop} : index
          %step = arith.constant {step} : index
          %start = arith.constant 1 : i64
          %found = scf.for %i = %first to %stop step %step iter_args(%x = %start) -> (i64) {{
            %n = arith.index_cast %i : index to i64
            %three = arith.constant 3 : i64
            %y = arith.muli %x, %three : i64
            %z = arith.addi %y, %n : i64
            scf.yield %z : i64
          }}
          %t = tile.full %found : tensor<1xi64>
          tile.store %t, %c[%c0] : tensor<1xi64>, !tile.view<1, i64, global>
          tile.return
        }}
        """

        def unrolled(function: tile.FuncOp) -> None:
            (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
            unroll(loop, 3)

        check_same(body, unrolled, [np.zeros(1, np.int64)])


@pytest.mark.parametrize(
    ("element", "dtype", "how"),
    [
        ("bf16", ml_dtypes.bfloat16, ""),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn, " in f16"),
        ("f8E5M2", ml_dtypes.float8_e5m2, " in bf16"),
    ],
)
def test_accumulators_that_keep_their_bits_stay(element: str, dtype: Any, how: str) -> None:
    function = check_same(source(element, how), promote_accumulators, arguments(dtype, 40))
    assert count(function, tile.EwOp) == 0


def test_a_type_that_keeps_more_bits_is_not_enough() -> None:
    function = check_same(source("f8E4M3FN", " in f32"), promoted(32), arguments(ml_dtypes.float8_e4m3fn, 40))
    assert count(function, tile.EwOp) == 1


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_consumers_promote_in_every_order(slots: int) -> None:
    """Few slots: what the first iterations of a group have read is released before the last one is waited for."""
    for depth, iterations in ((0, 2), (40, 2), (100, 2), (200, 3), (290, 8)):

        def rewrite(function: tile.FuncOp, iterations: int = iterations) -> None:
            assert warp_specialize(function, consumers=2, depth=slots)
            promote_accumulators(function, 32 * iterations)
            insert_waits(function)

        worlds = [Machine(), *(Machine(ctas=1, chance=np.random.default_rng(seed)) for seed in (depth, 7))]
        check_partitions(source("f8E4M3FN"), rewrite, arguments(ml_dtypes.float8_e4m3fn, depth), worlds)
