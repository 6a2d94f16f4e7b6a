"""Checks what scalar ops mean at their edges: wrap-around, division, comparisons, casts, branches and loops."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_values import Array, assert_same, rounded, stored, wrapped
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.dialects.builtin import f32 as f32_type
from xdsl.dialects.builtin import i32 as i32_type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tessera.dtypes.types import BY_NAME, DType, Kind, bf16, bool_, f8e4m3, f16, f32, f64, i4, i8, i16, i32, i64
from tessera.errors import CompileError
from tessera.interpreters.core.engine import RULES, Frame
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.scalars import SCALAR_OPS, scalar
from tessera.ir import text
from tessera.ir.common.elements import dtype_of, element_of
from tessera.transforms.core.folding import materialize

index = IndexType()
SIGNED = (i64, i32, i16, i8, i4)
FLOATS = (f64, f32, bf16, f16, f8e4m3)
TYPES: dict[str, Attribute] = {"index": index, **{dtype.name: element_of(dtype) for dtype in (*SIGNED, bool_)}}
CASES: dict[type[Operation], str] = {}


def covers(*kinds: type[Operation]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Says which ops a test is about."""

    def register(test: Callable[..., None]) -> Callable[..., None]:
        CASES.update(dict.fromkeys(kinds, test.__name__))
        return test

    return register


def run(build: Callable[[Sequence[SSAValue]], Sequence[Operation]], types: Sequence[Attribute], *values: Any) -> Any:
    """The result of the last op that `build` makes of arguments of these types and values."""
    block = Block(arg_types=types)
    ops = build(block.args)
    block.add_ops([*ops, scf.YieldOp(*ops[-1].results)])
    for op in ops:
        op.verify()
    results = Frame(Machine()).run(block, [scalar(v, t) for v, t in zip(values, types, strict=True)])
    return results[0] if len(results) == 1 else results


def made(kind: type[Operation], operands: Sequence[SSAValue]) -> Operation:
    """An op of a kind whose constructor takes its operands one by one."""
    return cast("Callable[..., Operation]", kind)(*operands)


def integers(dtype: DType) -> st.SearchStrategy[int]:
    low, high = int(dtype.min_value), int(dtype.max_value)
    return st.sampled_from([low, high, 0, 1, -1 if low else 0]) | st.integers(low, high)


def floats(dtype: DType) -> st.SearchStrategy[float]:
    edges = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, float(dtype.max_value), float(dtype.min_value)]
    return (st.sampled_from(edges) | st.floats(width=32)).map(lambda number: rounded(number, dtype))


# Integers.

INTEGER: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.DivSIOp: lambda a, b: int(Fraction(a, b)),
    arith.RemSIOp: lambda a, b: a - b * int(Fraction(a, b)),
    arith.FloorDivSIOp: lambda a, b: math.floor(Fraction(a, b)),
    arith.CeilDivSIOp: lambda a, b: math.ceil(Fraction(a, b)),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
}
DIVISIONS = (arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)


@covers(*INTEGER)
@pytest.mark.parametrize("kind", INTEGER, ids=lambda kind: kind.name)
@settings(max_examples=25)
@given(data=st.data())
def test_integers_wrap(kind: type[Operation], data: st.DataObject) -> None:
    type_ = TYPES[data.draw(st.sampled_from([*TYPES]))]
    dtype = dtype_of(type_)
    a, b = (data.draw(integers(dtype)) for _ in range(2))
    if b == 0 and kind in DIVISIONS:
        b = 1
    found = run(lambda a: [made(kind, a)], [type_, type_], a, b)
    assert found == wrapped(INTEGER[kind](a, b), dtype)


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        (arith.DivSIOp, -7, 2, -3),
        (arith.RemSIOp, -7, 2, -1),
        (arith.RemSIOp, 7, -2, 1),
        (arith.FloorDivSIOp, -7, 2, -4),
        (arith.CeilDivSIOp, -7, 2, -3),
        (arith.CeilDivSIOp, 7, 2, 4),
        (arith.DivSIOp, -(2**31), -1, -(2**31)),
        (arith.RemSIOp, -(2**31), -1, 0),
        (arith.FloorDivSIOp, -(2**31), -1, -(2**31)),
        (arith.CeilDivSIOp, -(2**31), -1, -(2**31)),
        (arith.AddiOp, 2**31 - 1, 1, -(2**31)),
        (arith.MuliOp, 2**16, 2**16, 0),
    ],
)
def test_known_results(kind: type[Operation], a: int, b: int, expected: int) -> None:
    assert run(lambda a: [made(kind, a)], [i32_type, i32_type], a, b) == expected


def test_an_index_has_64_bits() -> None:
    assert run(lambda a: [arith.AddiOp(a[0], a[1])], [index, index], 2**63 - 1, 1) == -(2**63)
    assert run(lambda a: [arith.MuliOp(a[0], a[1])], [index, index], 2**32, 2**32) == 0
    assert scalar(2**64 + 5, index) == 5


@pytest.mark.parametrize("kind", DIVISIONS, ids=lambda kind: kind.name)
def test_dividing_by_zero_is_an_error(kind: type[Operation]) -> None:
    with pytest.raises(CompileError, match="divides 6 by zero"):
        run(lambda a: [made(kind, a)], [index, index], 6, 0)


PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "ult": operator.lt,
    "ule": operator.le,
    "ugt": operator.gt,
    "uge": operator.ge,
}


@covers(arith.CmpiOp)
@pytest.mark.parametrize("predicate", PREDICATES)
@settings(max_examples=15)
@given(data=st.data())
def test_comparisons_of_integers(predicate: str, data: st.DataObject) -> None:
    type_ = TYPES[data.draw(st.sampled_from([*TYPES]))]
    dtype = dtype_of(type_)
    a, b = (data.draw(integers(dtype)) for _ in range(2))
    seen = (a % 2**dtype.bits, b % 2**dtype.bits) if predicate.startswith("u") else (a, b)
    assert run(lambda a: [arith.CmpiOp(a[0], a[1], predicate)], [type_, type_], a, b) == PREDICATES[predicate](*seen)


# Floats.


def exactly(formula: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def quiet(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return float(formula(np.float64(a), np.float64(b)))

    return quiet


def _largest(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return max(a, b, key=lambda number: (number, math.copysign(1, number)))


FLOAT: dict[type[Operation], Callable[[float, float], float]] = {
    arith.AddfOp: exactly(operator.add),
    arith.SubfOp: exactly(operator.sub),
    arith.MulfOp: exactly(operator.mul),
    arith.DivfOp: exactly(lambda a, b: a / b),
    arith.MaximumfOp: _largest,
    arith.MinimumfOp: lambda a, b: -_largest(-a, -b),
}


def in_type(number: float, dtype: DType) -> Array:
    return stored(rounded(rounded(number, f32), dtype) if dtype.bits < 32 else rounded(number, dtype), dtype)


@covers(*FLOAT)
@pytest.mark.parametrize("kind", FLOAT, ids=lambda kind: kind.name)
@settings(max_examples=25)
@given(data=st.data())
def test_floats_follow_ieee_and_round_once(kind: type[Operation], data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(FLOATS))
    a, b = (data.draw(floats(dtype)) for _ in range(2))
    found = run(lambda a: [made(kind, a)], [element_of(dtype)] * 2, a, b)
    assert_same(found, in_type(FLOAT[kind](a, b), dtype))


@covers(arith.NegfOp)
@settings(max_examples=20)
@given(number=floats(f16))
def test_negating_changes_the_sign_of_zero_too(number: float) -> None:
    assert_same(run(lambda a: [arith.NegfOp(a[0])], [element_of(f16)], number), stored(-number, f16))


# What may be asked: ordered comparisons are false on NaN; only `une` is true on it.
ALLOWED: dict[str, Callable[[float, float], bool]] = {
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "une": operator.ne,
}
REFUSED = ("false", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "uno", "true")
NUMBERS = (-math.inf, -1.0, -0.0, 0.0, 2.0, math.inf, math.nan)


@covers(arith.CmpfOp)
@pytest.mark.parametrize("predicate", ALLOWED)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_comparisons_of_floats_know_nan(predicate: str, dtype: DType) -> None:
    for a in NUMBERS:
        for b in NUMBERS:
            x, y = rounded(a, dtype), rounded(b, dtype)
            found = run(lambda a: [arith.CmpfOp(a[0], a[1], predicate)], [element_of(dtype)] * 2, x, y)
            assert found == ALLOWED[predicate](x, y)


@pytest.mark.parametrize("predicate", REFUSED)
def test_other_comparisons_of_floats_are_refused(predicate: str) -> None:
    with pytest.raises(CompileError, match="not one that kernels may use"):
        run(lambda a: [arith.CmpfOp(a[0], a[1], predicate)], [f32_type] * 2, 1.0, 2.0)


# Constants, selections, casts.


def _constant(op: arith.ConstantOp, _: Sequence[SSAValue]) -> list[Operation]:
    return [op]


@covers(arith.ConstantOp)
@pytest.mark.parametrize("dtype", [*SIGNED, bool_, *FLOATS], ids=str)
def test_constants_are_values_of_their_type(dtype: DType) -> None:
    if dtype.is_float:
        for number in (0.1, -0.0, math.inf, math.nan):
            op = materialize(number, element_of(dtype))
            assert_same(run(partial(_constant, op), []), stored(rounded(number, dtype), dtype))
    else:
        for value in {0, 1, int(dtype.max_value), int(dtype.min_value)}:
            assert run(partial(_constant, materialize(value, element_of(dtype))), []) == value


def test_constants_of_many_elements_are_not_scalars() -> None:
    many = DenseIntOrFPElementsAttr.from_list(TensorType(i32_type, [2]), [1, 2])
    with pytest.raises(CompileError, match="holds a scalar"):
        run(lambda _: [arith.ConstantOp(many)], [])


@covers(arith.SelectOp)
def test_select_takes_the_first_where_true() -> None:
    types = [IntegerType(1), index, index]
    assert run(lambda a: [arith.SelectOp(*a)], types, 1, 5, 6) == 5
    assert run(lambda a: [arith.SelectOp(*a)], types, 0, 5, 6) == 6


def cast_of(kind: type[Operation], source: DType | None, target: DType | None, value: Any) -> Any:
    """A cast between element types; None is `index`."""
    types = [index if dtype is None else element_of(dtype) for dtype in (source, target)]
    return run(lambda a: [kind(a[0], types[1])], [types[0]], value)  # pyright: ignore[reportCallIssue]  # casts take a value and a type


@covers(arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp)
@settings(max_examples=60)
@given(data=st.data())
def test_integer_casts_keep_the_value_modulo_the_width(data: st.DataObject) -> None:
    source, target = (data.draw(st.sampled_from([None, *SIGNED])) for _ in range(2))
    value = data.draw(integers(source or i64))
    widths = (source or i64).bits, (target or i64).bits
    if (source is None) != (target is None):
        kind: type[Operation] = arith.IndexCastOp
    elif widths[0] == widths[1]:
        return
    else:
        kind = arith.ExtSIOp if widths[0] < widths[1] else arith.TruncIOp
    assert cast_of(kind, source, target, value) == wrapped(value, target or i64)


def test_booleans_are_0_and_1_wherever_a_number_is_asked_for() -> None:
    assert cast_of(arith.ExtSIOp, bool_, i32, 1) == 1
    assert cast_of(arith.IndexCastOp, bool_, None, 1) == 1
    assert cast_of(arith.SIToFPOp, bool_, f32, 1) == 1.0
    assert cast_of(arith.TruncIOp, i8, bool_, 2) == 0
    assert cast_of(arith.TruncIOp, i8, bool_, -1) == 1


@covers(arith.ExtFOp, arith.TruncFOp)
@settings(max_examples=40)
@given(data=st.data())
def test_float_casts_round_once(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from([(a, b) for a in FLOATS for b in FLOATS if a.bits != b.bits]))
    number = data.draw(floats(source))
    kind = arith.ExtFOp if source.bits < target.bits else arith.TruncFOp
    assert_same(cast_of(kind, source, target, number), stored(rounded(number, target), target))


@covers(arith.SIToFPOp)
@settings(max_examples=40)
@given(data=st.data())
def test_integers_become_the_nearest_float(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from(SIGNED)), data.draw(st.sampled_from(FLOATS))
    value = data.draw(integers(source))
    assert_same(cast_of(arith.SIToFPOp, source, target, value), stored(rounded(Fraction(value), target), target))


@covers(arith.FPToSIOp)
@settings(max_examples=40)
@given(data=st.data())
def test_floats_are_cut_towards_zero_and_clamped(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from(FLOATS)), data.draw(st.sampled_from(SIGNED))
    number = data.draw(floats(source))
    if math.isnan(number):
        expected = 0
    elif math.isinf(number):
        expected = int(target.max_value if number > 0 else target.min_value)
    else:
        expected = max(int(target.min_value), min(int(target.max_value), math.trunc(number)))
    assert cast_of(arith.FPToSIOp, source, target, number) == expected


# Control.


def loop(start: int, stop: int, step: int) -> list[int]:
    """How often a loop runs, the sum of its positions, and twice-carried values in the end."""
    types: list[Attribute] = [index] * 3
    block = Block(arg_types=types)
    zero = arith.ConstantOp(IntegerAttr(0, index))
    one = arith.ConstantOp(IntegerAttr(1, index))
    body = Block(arg_types=[index] * 4)
    position, count, total, previous = body.args
    counted, summed = arith.AddiOp(count, one.result), arith.AddiOp(total, position)
    # The carried values are swapped, so that one step's results must not leak into the same step.
    body.add_ops([counted, summed, scf.YieldOp(counted.result, summed.result, total)])
    del previous
    low, high, by = block.args
    each = scf.ForOp(low, high, by, [zero.result] * 3, Region(body))
    block.add_ops([zero, one, each, scf.YieldOp(*each.results)])
    return list(Frame(Machine()).run(block, [start, stop, step]))


@covers(scf.ForOp, scf.YieldOp)
@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (0, 5, 2), (3, 3, 1), (5, 3, 1), (-4, 4, 3), (0, 1, 100), (2, 9, 7)]
)
def test_a_loop_runs_like_a_range(start: int, stop: int, step: int) -> None:
    positions = list(range(start, stop, step))
    assert loop(start, stop, step) == [len(positions), sum(positions), sum(positions[:-1])]


@pytest.mark.parametrize("step", [0, -1])
def test_a_loop_needs_a_positive_step(step: int) -> None:
    with pytest.raises(CompileError, match=f"positive step, got {step}"):
        loop(0, 5, step)


NESTED = """
tile.func @k(%a: index, %b: index, %y: !tile.view<1, i32, global>) outputs 1 shapes [[], [], [N]] grid [] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %more = arith.cmpi sgt, %a, %zero : index
  %r = scf.if %more -> (index) {
    %even = arith.cmpi sgt, %b, %zero : index
    %s = scf.if %even -> (index) {
      %sum = scf.for %i = %zero to %a step %one iter_args(%t = %zero) -> (index) {
        %u = scf.for %j = %zero to %b step %one iter_args(%v = %t) -> (index) {
          %w = arith.addi %v, %j : index
          scf.yield %w : index
        }
        scf.yield %u : index
      }
      scf.yield %sum : index
    } else {
      %minus = arith.subi %zero, %a : index
      scf.yield %minus : index
    }
    scf.yield %s : index
  } else {
    scf.yield %b : index
  }
  %out = tile.iota %r, 0 : tensor<1xi32>
  %never = arith.cmpi slt, %a, %zero : index
  scf.if %never {
    tile.debug_print "negative"
  }
  tile.store %out, %y[%zero] : tensor<1xi32>, !tile.view<1, i32, global>
  tile.return
}
"""


@covers(scf.IfOp)
def test_branches_and_loops_nest() -> None:
    from tessera.interpreters.levels.tile import run_kernel

    module, written = text.read(NESTED), list[str]()
    for a, b in ((3, 4), (3, 0), (0, 7), (-1, 7)):
        y = np.zeros(1, np.int32)
        run_kernel(module, "k", [a, b, y], machine=Machine(write=written.append))
        assert y[0] == (sum(j for _ in range(a) for j in range(b)) if a > 0 and b > 0 else -a if a > 0 else b)
    assert written == ["[] negative\n"]


def test_every_scalar_op_has_a_test() -> None:
    assert set(CASES) == SCALAR_OPS


def test_every_scalar_op_but_the_terminator_has_a_rule() -> None:
    assert SCALAR_OPS - RULES.keys() == {scf.YieldOp}


def test_scalars_of_every_type_are_in_its_range() -> None:
    for dtype in BY_NAME.values():
        if dtype.kind in (Kind.INT, Kind.UINT, Kind.BOOL):
            values: list[SSAValue | int] = [int(dtype.min_value), int(dtype.max_value)]
            assert [scalar(value, element_of(dtype)) for value in values] == values
            assert scalar(int(dtype.max_value) + 1, element_of(dtype)) == dtype.min_value
