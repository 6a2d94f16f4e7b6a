"""Checks that taking fewer rows at a time changes no bit, and that kernels in which rows meet are left alone."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from rewritten_programs import check_same, count, rewritten
from xdsl.dialects import scf

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets import text
from tessera.transforms.checks.host_checks import take_host_checks
from tessera.transforms.pipelining.partition_rows import PartitionRows, partition_rows, rows_of, spread_rows

lib: Any = import_module("library")

PROGRAM = """
tile.func @k(%x: !tile.view<2, f32, global>, %v: !tile.view<1, f32, global>, %n: index, %y: !tile.view<2, f32, global>,
    %z: !tile.view<1, f32, global>) outputs 2 shapes [[M, 4], [W], [], [A, 4], [B]] grid [2] {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %instance = tile.program_id 0
  %row = arith.muli %instance, %eight : index
  %nothing = arith.constant 0.0 : f32
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
{body}
  tile.return
}}
"""
STORE = "tile.store {value}, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>"
# Kernels whose rows are independent.
ROWS = {
    "sums": """
      %s = tile.reduce<sum> %a, 1 : tensor<8x4xf32> -> tensor<8xf32>
      %e = tile.expand %s, 1 : tensor<8xf32> -> tensor<8x1xf32>
      %b = tile.broadcast %e : tensor<8x1xf32> -> tensor<8x4xf32>
      %c = tile.ew<sub> %a, %b : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      tile.store %s, %z[%row] : tensor<8xf32>, !tile.view<1, f32, global>""",
    "shared": """
      %w = tile.load %v[%one] : !tile.view<1, f32, global> -> tensor<4xf32>
      %t = tile.reduce<max> %w, 0 : tensor<4xf32> -> tensor<f32>
      %u = tile.expand %t, 0 : tensor<f32> -> tensor<1xf32>
      %p = tile.broadcast %u : tensor<1xf32> -> tensor<4xf32>
      %q = tile.ew<add> %w, %p : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      %e = tile.expand %q, 0 : tensor<4xf32> -> tensor<1x4xf32>
      %b = tile.broadcast %e : tensor<1x4xf32> -> tensor<8x4xf32>
      %c = tile.ew<mul> %a, %b : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "positions": """
      %r = tile.iota %row, 0 : tensor<8x4xi32>
      %s = tile.iota %row, 1 : tensor<8x4xi32>
      %t = tile.ew<sub> %r, %s : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi32>
      %u = tile.iota %one, 0 : tensor<8xi32>
      %p = tile.expand %u, 1 : tensor<8xi32> -> tensor<8x1xi32>
      %q = tile.broadcast %p : tensor<8x1xi32> -> tensor<8x4xi32>
      %m = tile.ew<lt> %t, %q : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi1>
      %f = tile.full %nothing : tensor<8x4xf32>
      %c = tile.ew<select> %m, %a, %f : tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "transposed": """
      %t = tile.trans %a, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
      %s = tile.reduce<sum> %t, 0 : tensor<4x8xf32> -> tensor<8xf32>
      %d = tile.ew<add> %t, %t : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
      %c = tile.trans %d, [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
      tile.store %s, %z[%row] : tensor<8xf32>, !tile.view<1, f32, global>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "loops": """
      %f = tile.full %nothing : tensor<8xf32>
      %p, %q, %i = scf.for %k = %zero to %n step %one iter_args(%b = %a, %s = %f, %at = %zero)
          -> (tensor<8x4xf32>, tensor<8xf32>, index) {
        %t = tile.reduce<sum> %b, 1 : tensor<8x4xf32> -> tensor<8xf32>
        %u = tile.ew<add> %s, %t : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
        %r = arith.addi %row, %at : index
        %c = tile.load %x[%r, %k] : !tile.view<2, f32, global> -> tensor<8x4xf32>
        %next = arith.addi %at, %one : index
        scf.yield %c, %u, %next : tensor<8x4xf32>, tensor<8xf32>, index
      }
      %w = tile.load %v[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
      %e = tile.expand %w, 0 : tensor<4xf32> -> tensor<1x4xf32>
      %b = tile.broadcast %e : tensor<1x4xf32> -> tensor<8x4xf32>
      %c = tile.ew<add> %p, %b : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      tile.store %q, %z[%row] : tensor<8xf32>, !tile.view<1, f32, global>""",
    "a shared value in a loop": """
      %f = tile.full %nothing : tensor<4xf32>
      %p, %q = scf.for %k = %zero to %n step %one iter_args(%b = %a, %s = %f) -> (tensor<8x4xf32>, tensor<4xf32>) {
        %w = tile.load %v[%k] : !tile.view<1, f32, global> -> tensor<4xf32>
        %t = tile.ew<add> %s, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
        %e = tile.expand %t, 0 : tensor<4xf32> -> tensor<1x4xf32>
        %g = tile.broadcast %e : tensor<1x4xf32> -> tensor<8x4xf32>
        %c = tile.ew<add> %b, %g : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
        scf.yield %c, %t : tensor<8x4xf32>, tensor<4xf32>
      }
      tile.store %p, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "halves of the same rows": """
      %two = arith.constant 2 : index
      %h = tile.load %x[%row, %two] : !tile.view<2, f32, global> -> tensor<8x2xf32>
      %d = tile.ew<add> %h, %h : tensor<8x2xf32>, tensor<8x2xf32> -> tensor<8x2xf32>
      tile.store %h, %y[%row, %two] : tensor<8x2xf32>, !tile.view<2, f32, global>
      %again = arith.muli %instance, %eight : index
      tile.store %d, %y[%again, %one] : tensor<8x2xf32>, !tile.view<2, f32, global>""",
    "halves of bytes": """
      %i = tile.ew<cast> %a : tensor<8x4xf32> -> tensor<8x4xi4>
      %p = tile.pack %i, 1 : tensor<8x4xi4> -> tensor<8x2xui8>
      %h = tile.unpack %p, 1 : tensor<8x2xui8> -> tensor<8x4xui4>
      %c = tile.ew<cast> %h : tensor<8x4xui4> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
}
# Kernels whose rows meet, or that would do something else in another order.
MEETING = {
    "sums of columns": """
      %s = tile.reduce<sum> %a, 0 : tensor<8x4xf32> -> tensor<4xf32>
      %e = tile.expand %s, 0 : tensor<4xf32> -> tensor<1x4xf32>
      %b = tile.broadcast %e : tensor<1x4xf32> -> tensor<8x4xf32>
      %c = tile.ew<sub> %a, %b : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "halves of one byte": """
      %i = tile.ew<cast> %a : tensor<8x4xf32> -> tensor<8x4xi4>
      %p = tile.pack %i, 0 : tensor<8x4xi4> -> tensor<4x4xui8>
      %h = tile.unpack %p, 0 : tensor<4x4xui8> -> tensor<8x4xui4>
      %c = tile.ew<cast> %h : tensor<8x4xui4> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "sums of columns that a loop carries": """
      %f = tile.full %nothing : tensor<4xf32>
      %p, %q = scf.for %k = %zero to %n step %one iter_args(%b = %a, %s = %f) -> (tensor<8x4xf32>, tensor<4xf32>) {
        %e = tile.expand %s, 0 : tensor<4xf32> -> tensor<1x4xf32>
        %g = tile.broadcast %e : tensor<1x4xf32> -> tensor<8x4xf32>
        %c = tile.ew<add> %b, %g : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
        %t = tile.reduce<sum> %b, 0 : tensor<8x4xf32> -> tensor<4xf32>
        scf.yield %c, %t : tensor<8x4xf32>, tensor<4xf32>
      }
      tile.store %p, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "rows that become columns": """
      %s = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<8x8xf32>
      %t = tile.trans %s, [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
      %c = tile.ew<add> %s, %t : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>""",
    "a start that is rows, and no rows after": """
      %p, %q = scf.for %k = %zero to %n step %one iter_args(%b = %a, %c = %a) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
        %f = tile.full %nothing : tensor<8x4xf32>
        scf.yield %b, %f : tensor<8x4xf32>, tensor<8x4xf32>
      }
      tile.store %p, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "a value without users": """
      %s = tile.reduce<sum> %a, 0 : tensor<8x4xf32> -> tensor<4xf32>
      tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "dots": """
      %s = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<4x4xf32>
      %c = tile.dot %a, %s, %a : tensor<8x4xf32>, tensor<4x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "stores that overlap": """
      %b = tile.ew<add> %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      tile.store %b, %y[%four, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "views that overlap": """
      %b = tile.ew<add> %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      %u = tile.view %y offset %eight sizes[%eight, %four] strides[%four, %one]
          : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
      tile.store %a, %y[%zero, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      tile.store %b, %u[%zero, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "memory that is read and written": """
      %b = tile.load %y[%four, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
      %c = tile.ew<add> %a, %b : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "atomics": """
      tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      %s = tile.reduce<sum> %a, 1 : tensor<8x4xf32> -> tensor<8xf32>
      tile.atomic<sum> %s, %z[%zero] : tensor<8xf32>, !tile.view<1, f32, global>""",
    "asserts": """
      %m = tile.ew<eq> %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xi1>
      tile.assert %m, "numbers" : tensor<8x4xi1>
      tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "a store in a branch": """
      %is = arith.cmpi slt, %n, %four : index
      scf.if %is {
        tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      }
      tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "rows of a branch": """
      %is = arith.cmpi slt, %n, %four : index
      %b = scf.if %is -> (tensor<8x4xf32>) {
        scf.yield %a : tensor<8x4xf32>
      } else {
        %c = tile.ew<add> %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
        scf.yield %c : tensor<8x4xf32>
      }
      tile.store %b, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "rounding at random": """
      %b = tile.ew<cast> %a policy <stochastic_round> seed 7 : tensor<8x4xf32> -> tensor<8x4xbf16>
      %c = tile.ew<cast> %b : tensor<8x4xbf16> -> tensor<8x4xf32>
      tile.store %c, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>""",
    "stores of different heights": """
      %s = tile.reduce<sum> %a, 0 : tensor<8x4xf32> -> tensor<4xf32>
      tile.store %a, %y[%row, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
      tile.store %s, %z[%row] : tensor<4xf32>, !tile.view<1, f32, global>""",
}


def arguments(rows: int = 13) -> list[object]:
    generator = np.random.default_rng(0)
    x, v = generator.integers(-4, 5, (rows, 4)).astype(np.float32), generator.integers(-4, 5, 9).astype(np.float32)
    return [x, v, 3, np.full((21, 4), 7, np.float32), np.full(17, 7, np.float32)]


@pytest.mark.quick
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_no_bit_changes(name: str, group: int) -> None:
    source = PROGRAM.format(body=ROWS[name])
    for rows in (13, 16, 0):
        function = check_same(source, lambda function: partition_rows(function, group), arguments(rows))
        loop = function.body.block.last_op
        assert loop is not None
        assert isinstance(loop.prev_op, scf.ForOp)
    stored = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    assert all(tile_type(op.value).get_shape()[0] == group for op in stored)


@pytest.mark.quick
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("group", [1, 4])
def test_no_bit_changes_where_more_instances_take_the_rows(name: str, group: int) -> None:
    source = PROGRAM.format(body=ROWS[name])
    for rows in (13, 16, 0):
        function = check_same(source, lambda function: spread_rows(function, group), arguments(rows))
        assert function.grid.data == (2, 8 // group)
        assert count(function, scf.ForOp) == source.count("scf.for")


@pytest.mark.parametrize("name", MEETING)
def test_kernels_in_which_rows_meet_stay_as_they_are(name: str) -> None:
    source = PROGRAM.format(body=MEETING[name])
    before = text.write(text.read(source))
    for group in (1, 4):
        for divide in (partition_rows, spread_rows):
            module, _, said = rewritten(source, lambda function, divide=divide, group=group: divide(function, group))
            assert said is False
            assert text.write(module) == before


def test_groups_divide_the_rows() -> None:
    source = PROGRAM.format(body=ROWS["sums"])
    for group in (3, 8, 16):
        assert rewritten(source, lambda function, group=group: partition_rows(function, group))[2] is False


def test_rows_are_those_of_all_stores() -> None:
    def rows(name: str) -> int | None:
        _, function, _ = rewritten(PROGRAM.format(body={**ROWS, **MEETING}[name]), lambda _: None)
        return rows_of(function)

    assert rows("sums") == 8
    assert rows("stores of different heights") is None
    module = text.read(
        """
        tile.func @k(%x: f32, %y: !tile.view<0, f32, global>) outputs 1 shapes [[], []] grid [1] {
          %a = tile.full %x : tensor<f32>
          tile.store %a, %y[] : tensor<f32>, !tile.view<0, f32, global>
          tile.return
        }
        """
    )
    (function,) = module.body.block.ops
    assert isinstance(function, tile.FuncOp)
    assert rows_of(function) is None
    assert partition_rows(function, 1) is False


def test_what_all_rows_share_is_made_once() -> None:
    _, function, _ = rewritten(PROGRAM.format(body=ROWS["shared"]), lambda function: partition_rows(function, 2))
    (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
    inside = [op for op in loop.body.walk() if isinstance(op, tile.LoadOp)]
    assert (count(function, tile.LoadOp), len(inside)) == (2, 1)
    assert not any(isinstance(op, tile.ReduceOp) for op in loop.body.walk())


KERNELS: dict[str, Callable[[Any], tuple[Any, list[Any]]]] = {
    "softmax": lambda a: (lib.softmax, [a(21, 9)]),
    "layernorm": lambda a: (lib.layernorm, [a(21, 9), a(9), a(9)]),
    "rmsnorm": lambda a: (lib.rmsnorm, [a(21, 9), a(9), 1e-6]),
    "logsumexp": lambda a: (lib.logsumexp, [a(21, 70)]),
    "rope": lambda a: (lib.rope, [a(2, 21, 8), a(2, 21, 8)]),
    "saxpy": lambda a: (lib.saxpy, [a(21), a(21), 2.0]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_work_row_by_row_are_divided(name: str) -> None:
    generator = np.random.default_rng(1)

    def array(*shape: int) -> Any:
        return generator.standard_normal(shape).astype(np.float32)

    kernel, given = KERNELS[name](array)
    made = kernel.lower(*given)
    function = next(op for op in made.module.body.block.ops if isinstance(op, tile.FuncOp))
    take_host_checks(function)
    assert partition_rows(function, 16) is True
    text.verify(made.module)


def test_the_pass() -> None:
    module = text.read(PROGRAM.format(body=ROWS["sums"]))
    PartitionRows(rows=2).apply(text.new_context(), module)
    assert "tensor<2x4xf32>" in text.write(module)
