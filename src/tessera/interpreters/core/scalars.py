"""Scalars: the `arith` and `scf` ops that kernels may use, and what they mean.

Integers are Python ints wrapped to their width (`index` has 64 bits), booleans are i1; floats are 0-d arrays and
follow the elementwise table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tessera.dtypes.casting import cast
from tessera.dtypes.types import ALL, DType, Kind, bool_, f64
from tessera.errors import CompileError, DtypeError
from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.ir.common import elementwise
from tessera.ir.common.elements import dtype_of

IntegerFunction = Callable[[int, int], int]
_NUMBERS = {dtype.storage: dtype for dtype in ALL}


def wrap(value: int, type_: Attribute) -> int:
    """The value modulo the width of an integer type, in its range; i1 is 0 or 1."""
    dtype = dtype_of(type_)
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.kind is Kind.INT and low >> (dtype.bits - 1) else low


def _unsigned(value: int) -> int:
    return value & ((1 << 64) - 1)


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_ZERO = "check where the divisor comes from, or give another where it is 0: tile.maximum(n, 1)"
# Division by zero has no value: the kernel is wrong, and the interpreter says so.
DIVISIONS = (arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)
INTEGER: Mapping[type[Operation], IntegerFunction] = MappingProxyType(
    {
        arith.AddiOp: lambda a, b: a + b,
        arith.SubiOp: lambda a, b: a - b,
        arith.MuliOp: lambda a, b: a * b,
        arith.DivSIOp: _truncated_quotient,
        arith.RemSIOp: lambda a, b: a - b * _truncated_quotient(a, b),
        arith.FloorDivSIOp: lambda a, b: a // b,
        arith.CeilDivSIOp: lambda a, b: -(-a // b),
        arith.MinSIOp: min,
        arith.MaxSIOp: max,
        arith.AndIOp: lambda a, b: a & b,
        arith.OrIOp: lambda a, b: a | b,
        arith.XOrIOp: lambda a, b: a ^ b,
    }
)
# In the order of MLIR's predicate numbers.
COMPARE: tuple[IntegerFunction, ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: _unsigned(a) < _unsigned(b),
    lambda a, b: _unsigned(a) <= _unsigned(b),
    lambda a, b: _unsigned(a) > _unsigned(b),
    lambda a, b: _unsigned(a) >= _unsigned(b),
)
FLOAT: Mapping[type[Operation], str] = MappingProxyType(
    {
        arith.AddfOp: "add",
        arith.SubfOp: "sub",
        arith.MulfOp: "mul",
        arith.DivfOp: "div",
        arith.NegfOp: "neg",
        arith.MaximumfOp: "max",
        arith.MinimumfOp: "min",
    }
)
# Ordered comparisons are false on NaN, which is what the table's rows are; `une` is its `ne`.
ORDERED: Mapping[int, str] = MappingProxyType({1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"})
CASTS = (arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.FPToSIOp)
INTEGER_CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)
SCALAR_OPS: frozenset[type[Operation]] = frozenset(
    {
        *INTEGER,
        *FLOAT,
        *CASTS,
        *INTEGER_CASTS,
        arith.ConstantOp,
        arith.CmpiOp,
        arith.CmpfOp,
        arith.SelectOp,
        scf.ForOp,
        scf.IfOp,
        scf.YieldOp,
    }
)


def scalar(value: Any, type_: Attribute) -> Any:
    """A scalar as interpreters hold it, from a Python number or 0-d array."""
    dtype = dtype_of(type_)
    if dtype.is_float:
        return cast(np.asarray(value, np.float64), f64, dtype)
    return wrap(int(value), type_)


def argument(what: str, value: Any, type_: Attribute) -> Any:
    """A scalar that a caller gives: floats are rounded; integers and booleans must be values of their type."""
    dtype, given = dtype_of(type_), np.asarray(value)
    fits = given.ndim == 0 and given.dtype in _NUMBERS
    if fits and not dtype.is_float:
        fits = not _NUMBERS[given.dtype].is_float and dtype.min_value <= int(given) <= dtype.max_value
    if not fits:
        wanted = f"from {dtype.min_value} to {dtype.max_value}"
        raise DtypeError(
            f"{what}: expected a number of {dtype}, got {value!r}",
            hint="give one number" if dtype.is_float else f"give one whole number {wanted}",
        )
    return scalar(given, type_)


def as_array(value: Any, dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    """A scalar as a 0-d array of its storage type."""
    return np.asarray(bool(value) if dtype is bool_ else value).astype(dtype.storage)


@meaning(arith.ConstantOp)
def _constant(frame: Frame, op: arith.ConstantOp, operands: Values) -> Values:
    match op.value:
        case IntegerAttr() | FloatAttr():
            return [scalar(op.value.value.data, op.result.type)]
        case DenseIntOrFPElementsAttr() | _:
            raise CompileError(f"arith.constant holds a scalar here, not {op.value}", hint="use graph.constant")


def _integer_rule(function: IntegerFunction) -> Callable[[Frame, Operation, Values], Values]:
    def rule(frame: Frame, op: Operation, operands: Values) -> Values:
        a, b = operands
        if b == 0 and isinstance(op, DIVISIONS):
            raise CompileError(f"divides {a} by zero", hint=_ZERO)
        return [wrap(function(a, b), op.results[0].type)]

    return rule


def _float_rule(name: str) -> Callable[[Frame, Operation, Values], Values]:
    def rule(frame: Frame, op: Operation, operands: Values) -> Values:
        return [elementwise.apply(name, operands, [dtype_of(value.type) for value in op.operands])]

    return rule


for _kind, _function in INTEGER.items():
    meaning(_kind)(_integer_rule(_function))
for _kind, _name in FLOAT.items():
    meaning(_kind)(_float_rule(_name))


@meaning(arith.CmpiOp)
def _compare_integers(frame: Frame, op: arith.CmpiOp, operands: Values) -> Values:
    return [int(COMPARE[op.predicate.value.data](operands[0], operands[1]))]


@meaning(arith.CmpfOp)
def _compare_floats(frame: Frame, op: arith.CmpfOp, operands: Values) -> Values:
    name = ORDERED.get(op.predicate.value.data)
    if name is None:
        raise CompileError(f"arith.cmpf predicate {op.predicate.value.data} is not one that kernels may use")
    return [int(elementwise.apply(name, operands, [dtype_of(value.type) for value in op.operands]))]


@meaning(arith.SelectOp)
def _select(frame: Frame, op: arith.SelectOp, operands: Values) -> Values:
    condition, first, second = operands
    return [first if condition else second]


def _cast_rule(frame: Frame, op: Operation, operands: Values) -> Values:
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    result = cast(as_array(operands[0], source), source, target)
    return [result if target.is_float else int(result)]


def _integer_cast_rule(frame: Frame, op: Operation, operands: Values) -> Values:
    return [wrap(int(operands[0]), op.results[0].type)]


for _kind in CASTS:
    meaning(_kind)(_cast_rule)
for _kind in INTEGER_CASTS:
    meaning(_kind)(_integer_cast_rule)


@meaning(scf.ForOp)
def _for(frame: Frame, op: scf.ForOp, operands: Values) -> Values:
    start, stop, step, *carried = operands
    if step <= 0:
        raise CompileError(f"a loop needs a positive step, got {step}", hint="loops go upward: check the step")
    for position in range(start, stop, step):
        carried = list(frame.run(op.body.block, [position, *carried]))
    return carried


@meaning(scf.WhileOp)
def _while(frame: Frame, op: scf.WhileOp, operands: Values) -> Values:
    carried = list(operands)
    while True:
        condition, *handed = frame.run(op.before_region.block, carried)
        if not condition:
            return handed
        carried = list(frame.run(op.after_region.block, handed))


@meaning(scf.IfOp)
def _if(frame: Frame, op: scf.IfOp, operands: Values) -> Values:
    branch = op.true_region if operands[0] else op.false_region
    return frame.run(branch.block, []) if branch.blocks else []


# Unsigned numbers


_UNSIGNED: dict[type[Operation], Callable[[int, int], int]] = {
    arith.DivUIOp: lambda a, b: a // b,
    arith.RemUIOp: lambda a, b: a % b,
    arith.ShLIOp: lambda a, b: a << b,
    arith.ShRUIOp: lambda a, b: a >> b,
}


def _unsigned_rule(function: Callable[[int, int], int]) -> Callable[[Frame, Operation, Values], Values]:
    def rule(frame: Frame, op: Operation, operands: Values) -> Values:
        type_ = op.results[0].type
        mask = (1 << dtype_of(type_).bits) - 1
        a, b = (value & mask for value in operands)
        if b == 0 and isinstance(op, arith.DivUIOp | arith.RemUIOp):
            raise CompileError(f"divides {a} by zero", hint=_ZERO)
        return [wrap(function(a, b), type_)]

    return rule


for _kind, _function in _UNSIGNED.items():
    meaning(_kind)(_unsigned_rule(_function))


@meaning(arith.ExtUIOp)
def _extend(frame: Frame, op: arith.ExtUIOp, operands: Values) -> Values:
    return [int(operands[0]) & ((1 << dtype_of(op.input.type).bits) - 1)]
