"""Checks that asserts about sizes and strides go to the caller: they fail for the same arguments, in the same order."""

from __future__ import annotations

import json
import random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten_programs import Array, count, rewritten
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, i1
from xdsl.ir import Operation, SSAValue

from tessera.compiler.launch_plan import Failure
from tessera.dtypes.types import f32
from tessera.errors import ShapeError, TesseraError
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.conditions import Geometry, evaluate, frozen
from tessera.shapes.expr import dim
from tessera.targets import text
from tessera.transforms.checks.host_checks import CHECKED, HostCheck, TakeHostChecks, take_host_checks
from tessera.transforms.checks.instrument import Instrument
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Facts

index = IndexType()
PROGRAM = """
tile.func @k(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[M, N], []] grid [{grid}] {{
  %m = tile.dim %x, 0 : !tile.view<2, f32, global>
  %w = tile.dim %x, 1 : !tile.view<2, f32, global>
  %s = tile.stride %x, 0 : !tile.view<2, f32, global>
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
{body}
  tile.return
}}
"""
IS_FOUR = """%r{0} = arith.remsi %{0}, %four : index
  %is{0} = arith.cmpi eq, %r{0}, %zero : index
  tile.assert %is{0}, "{0} is a multiple of four" : i1"""


def taken(body: str, grid: str = "1") -> tuple[tile.FuncOp, list[HostCheck]]:
    checks: list[HostCheck] = []
    _, function, _ = rewritten(
        PROGRAM.format(body=body, grid=grid), lambda function: checks.extend(take_host_checks(function))
    )
    return function, checks


def geometry(values: list[Any]) -> list[Geometry]:
    def of(value: Any) -> Geometry:
        if not isinstance(value, np.ndarray):
            return None
        array = cast("Array", value)
        return array.shape, tuple(stride // array.itemsize for stride in array.strides)

    return [of(value) for value in values]


def failing(checks: list[HostCheck], values: list[Any]) -> str | None:
    """What a caller would say: the first check that fails; one that divides by zero has an earlier one that says so."""
    for check in checks:
        try:
            if not evaluate(check.condition, geometry(values)):
                return check.message
        except ZeroDivisionError:
            continue
    return None


def test_asserts_about_sizes_go_to_the_caller() -> None:
    function, checks = taken(IS_FOUR.format("m") + "\n" + IS_FOUR.format("w"))
    assert count(function, tile.AssertOp) == 0
    assert [check.condition for check in checks] == [
        ("eq", ("remsi", ("dim", 0, 0), 4), 0),
        ("eq", ("remsi", ("dim", 0, 1), 4), 0),
    ]
    assert checks[0].message == "assertion failed: m is a multiple of four"
    assert checks[0].span is not None
    assert checks[0].span.line == 10
    assert failing(checks, [np.zeros((8, 12), np.float32), 0]) is None
    assert failing(checks, [np.zeros((8, 3), np.float32), 0]) == "assertion failed: w is a multiple of four"
    assert failing(checks, [np.zeros((6, 3), np.float32), 0]) == "assertion failed: m is a multiple of four"


def test_safety_checks_are_the_errors_that_they_are_in_a_kernel() -> None:
    module = text.read(
        PROGRAM.format(body="%t = tile.load %x[%four, %zero] : !tile.view<2, f32, global> -> tensor<4x4xf32>", grid="1")
    )
    context = CompileContext.with_facts(Facts())
    for step in (Instrument(nan=False), TakeHostChecks()):
        step.apply(context, module)
    below, _ = context.host_checks
    assert (below.check, below.message) == ("bounds", "tile.load starts outside its view, along axis 0")
    assert failing(context.host_checks, [np.zeros((5, 4), np.float32), 0]) is None
    assert failing(context.host_checks, [np.zeros((4, 4), np.float32), 0]) == below.message
    assert isinstance(Failure(below.message, below.span, below.check).error(), ShapeError)


def test_strides_and_truths() -> None:
    body = """%true = arith.constant true
      %a = arith.cmpi sgt, %s, %w : index
      %same = arith.cmpi eq, %a, %true : i1
      tile.assert %same, "rows are apart" : i1
      %both = arith.andi %a, %true : i1
      tile.assert %both, "rows are apart indeed" : i1"""
    function, checks = taken(body)
    assert count(function, tile.AssertOp) == 0
    apart = np.zeros((4, 8), np.float32)[:, :5]
    assert failing(checks, [apart, 0]) is None
    assert failing(checks, [np.zeros((4, 8), np.float32), 0]) == "assertion failed: rows are apart"


STAY = {
    "a number that is given": """%is = arith.cmpi eq, %n, %zero : index
      tile.assert %is, "n" : i1""",
    "program_id": """%p = tile.program_id 0
      %is = arith.cmpi eq, %p, %zero : index
      tile.assert %is, "p" : i1""",
    "what is in memory": """%a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<4x4xf32>
      %is = tile.ew<eq> %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xi1>
      tile.assert %is, "a" : tensor<4x4xi1>""",
    "a view that is made here": """%one = arith.constant 1 : index
      %v = tile.view %x offset %zero sizes[%n] strides[%one] : !tile.view<2, f32, global> -> !tile.view<1, f32, global>
      %d = tile.dim %v, 0 : !tile.view<1, f32, global>
      %is = arith.cmpi eq, %d, %zero : index
      tile.assert %is, "v" : i1""",
    "what need not run": """%some = arith.cmpi sgt, %n, %zero : index
      scf.if %some {
        %is = arith.cmpi eq, %m, %zero : index
        tile.assert %is, "m" : i1
      }""",
    "numbers without a sign": """%is = arith.cmpi ult, %m, %four : index
      tile.assert %is, "m" : i1""",
}


@pytest.mark.parametrize("name", STAY)
def test_what_the_caller_does_not_know_stays(name: str) -> None:
    function, checks = taken(STAY[name])
    assert checks == []
    assert count(function, tile.AssertOp) == 1


def divisions(function: tile.FuncOp) -> list[bool]:
    return [CHECKED in op.attributes for op in function.body.walk() if isinstance(op, arith.FloorDivSIOp)]


def test_divisions_by_sizes_are_checked_ahead() -> None:
    body = """%a = arith.floordivsi %n, %m : index
      %b = arith.floordivsi %n, %four : index
      %c = arith.floordivsi %n, %n : index"""
    function, checks = taken(body)
    assert divisions(function) == [True, True, False]
    assert [(check.condition, check.message) for check in checks] == [(("dim", 0, 0), "divides by zero")]


def test_a_division_by_the_constant_zero_is_found() -> None:
    _, checks = taken("%a = arith.floordivsi %n, %zero : index")
    assert failing(checks, [np.zeros((4, 4), np.float32), 1]) == "divides by zero"


def test_divisions_in_branches_are_not_checked_ahead() -> None:
    """They need not run. But what was checked for others holds for them, too."""
    inner = """%some = arith.cmpi sgt, %n, %zero : index
      scf.if %some {
        %i = arith.floordivsi %n, %m : index
        %j = arith.floordivsi %n, %w : index
      }"""
    function, checks = taken(inner)
    assert checks == []
    assert divisions(function) == [False, False]
    function, checks = taken(inner + "\n%a = arith.floordivsi %n, %m : index")
    assert len(checks) == 1
    assert divisions(function) == [True, False, True]


def test_errors_come_in_the_order_of_the_program() -> None:
    """A division comes before the assert that uses it, which says nothing then."""
    body = """%a = arith.floordivsi %w, %m : index
      %is = arith.cmpi eq, %a, %four : index
      tile.assert %is, "four times as wide" : i1"""
    _, checks = taken(body)
    assert failing(checks, [np.zeros((0, 8), np.float32), 0]) == "divides by zero"
    assert failing(checks, [np.zeros((2, 6), np.float32), 0]) == "assertion failed: four times as wide"
    assert failing(checks, [np.zeros((2, 8), np.float32), 0]) is None


def test_a_grid_without_programs_checks_nothing() -> None:
    """So it is at the tile level; code that evaluates checks has to leave them out there, too."""
    source = PROGRAM.format(body=IS_FOUR.format("w"), grid="M")
    run_kernel(text.read(source), "k", [np.zeros((0, 3), np.float32), 0])
    with pytest.raises(TesseraError, match="w is a multiple of four"):
        run_kernel(text.read(source), "k", [np.zeros((1, 3), np.float32), 0])


# Random conditions


BINARY = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.DivSIOp,
    arith.RemSIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
)
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


def random_program(seed: int) -> ModuleOp:
    chance = random.Random(seed)
    view = ViewType(2, element_of(f32))
    shapes = [[dim("A"), dim("B")], [dim("C"), dim("D")]]
    function = tile.FuncOp("k", [view, view], 0, shapes, [1])
    block = function.body.block

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    def number(depth: int) -> SSAValue:
        choice = chance.random()
        if depth == 0 or choice < 0.2:
            if choice < 0.1:
                return add(arith.ConstantOp(IntegerAttr(chance.randint(-3, 5), index)))
            kind = tile.DimOp if choice < 0.8 else tile.StrideOp
            return add(kind(chance.choice(block.args), chance.randrange(2)))
        if choice < 0.3:
            return add(arith.SelectOp(truth(depth - 1), number(depth - 1), number(depth - 1)))
        return add(chance.choice(BINARY)(number(depth - 1), number(depth - 1)))

    def truth(depth: int) -> SSAValue:
        choice = chance.random()
        if choice < 0.2:
            return add(arith.ConstantOp(IntegerAttr(chance.randint(0, 1), i1)))
        if depth and choice < 0.4:
            return add(chance.choice((arith.AndIOp, arith.OrIOp))(truth(depth - 1), truth(depth - 1)))
        if depth and choice < 0.5:
            return add(arith.CmpiOp(truth(depth - 1), truth(depth - 1), chance.choice(("eq", "ne"))))
        return add(arith.CmpiOp(number(depth), number(depth), chance.choice(PREDICATES)))

    for position in range(chance.randint(1, 3)):
        block.add_op(tile.AssertOp(truth(2), f"assert {position}"))
    block.add_op(tile.ReturnOp())
    return ModuleOp([function])


@settings(max_examples=120)
@given(st.integers(0, 10**9))
def test_checks_fail_where_programs_fail(seed: int) -> None:
    module = random_program(seed)
    checks: list[HostCheck] = []
    after, function, _ = rewritten(module, lambda function: checks.extend(take_host_checks(function)))
    assert count(function, tile.AssertOp) == 0
    generator = np.random.default_rng(seed)
    for _ in range(4):
        arrays = [np.zeros(generator.integers(0, 5, 2), np.float32) for _ in range(2)]
        values: list[Any] = [array.T if generator.random() < 0.5 else array for array in arrays]
        said = failing(checks, values)
        if said is None:
            run_kernel(module, "k", values)
            run_kernel(after, "k", values)
        else:
            words = "zero" if said == "divides by zero" else said.removeprefix("assertion failed: ")
            with pytest.raises(TesseraError, match=words):
                run_kernel(module, "k", values)


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_conditions_travel_as_json(seed: int) -> None:
    checks: list[HostCheck] = []
    rewritten(random_program(seed), lambda function: checks.extend(take_host_checks(function)))
    for check in checks:
        assert frozen(json.loads(json.dumps(check.condition))) == check.condition


def test_what_is_no_condition_is_refused() -> None:
    for wrong in (["open", "/etc"], ["addi", ["eval", 1], 2]):
        with pytest.raises(ValueError, match=r"open|eval"):
            frozen(wrong)
