"""instrument-checks: writes a program's safety checks into the program, as asserts that every target knows.

`bounds`: a load, store or atomic starts inside its view (reaching over the end is legal, and so is anything in an empty
view). `nan`: no op makes a NaN of operands that are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_dtype, tile_type, view_type
from tessera.transforms.rewriting import adopt_location

CHECKS = ("bounds", "nan")
_AT_LEAST, _BELOW, _EQUAL = 5, 2, 0
"""Predicates of `arith.cmpi`."""


@dataclass(frozen=True)
class Instrument(ModulePass):
    """Puts asserts beside the ops that a check watches."""

    name = "instrument-checks"
    bounds: bool = True
    nan: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if self.bounds and isinstance(inner, tile.LoadOp | tile.StoreOp | tile.AtomicOp):
                _insert(inner, _starts_inside(inner), before=True)
            if self.nan and type(inner) in _MAKERS and tile_dtype(inner.results[0]).is_float:
                _insert(inner, _MAKERS[type(inner)](inner), before=False)


def _insert(op: Operation, new: Sequence[Operation], *, before: bool) -> None:
    adopt_location(new, op)
    Rewriter.insert_op(list(new), InsertPoint.before(op) if before else InsertPoint.after(op))


class _Builder:
    """Ops in a list; each call gives the value of the one it adds."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]

    def compare(self, a: SSAValue, predicate: int, b: SSAValue) -> SSAValue:
        return self.add(arith.CmpiOp(a, b, predicate))

    def check(self, condition: SSAValue, message: str) -> None:
        self.ops.append(tile.AssertOp(condition, message))

    def is_nan(self, value: SSAValue) -> SSAValue:
        return self.add(tile.EwOp("isnan", [value]))


def _starts_inside(op: tile.LoadOp | tile.StoreOp | tile.AtomicOp) -> list[Operation]:
    build = _Builder()
    zero = build.add(arith.ConstantOp(IntegerAttr(0, IndexType())))
    sizes = [build.add(tile.DimOp(op.view, axis)) for axis in range(view_type(op.view).rank.data)]
    empty = build.add(arith.ConstantOp(IntegerAttr(0, IntegerType(1))))
    for size in sizes:
        empty = build.add(arith.OrIOp(empty, build.compare(size, _EQUAL, zero)))
    for axis, (offset, size) in enumerate(zip(op.offsets, sizes, strict=True)):
        low, high = build.compare(offset, _AT_LEAST, zero), build.compare(offset, _BELOW, size)
        inside = build.add(arith.OrIOp(empty, build.add(arith.AndIOp(low, high))))
        build.check(inside, f"{op.name} starts outside its view, along axis {axis}")
    return build.ops


def _of_elementwise(op: tile.EwOp) -> list[Operation]:
    if op.fn.data == "select":
        return []
    build = _Builder()
    operands = [operand for operand in dict.fromkeys(op.operands_) if tile_dtype(operand).is_float]
    fine = build.add(tile.EwOp("not", [build.is_nan(op.result)]))
    for operand in operands:
        fine = build.add(tile.EwOp("or", [fine, build.is_nan(operand)]))
    build.check(fine, f"{op.fn.data} made NaN of operands that are none")
    return build.ops


def _of_reduce(op: tile.ReduceOp) -> list[Operation]:
    build = _Builder()
    before = build.add(tile.ReduceOp("or", build.is_nan(op.operand), op.axis.value.data))
    fine = build.add(tile.EwOp("not", [build.is_nan(op.result)]))
    build.check(build.add(tile.EwOp("or", [fine, before])), f"{op.kind.data} made NaN of numbers")
    return build.ops


def _of_dot(op: tile.DotOp) -> list[Operation]:
    build = _Builder()
    shape = tile_type(op.result).get_shape()
    fine = build.add(tile.EwOp("not", [build.is_nan(op.result)]))
    fine = build.add(tile.EwOp("or", [fine, build.is_nan(op.c)]))
    for operand, folded, kept in ((op.a, 1, 1), (op.b, 0, 0)):
        found = build.add(tile.ReduceOp("or", build.is_nan(operand), folded))
        spread = build.add(tile.BroadcastOp(build.add(tile.ExpandOp(found, kept)), shape))
        fine = build.add(tile.EwOp("or", [fine, spread]))
    build.check(fine, "dot made NaN of operands that are none")
    return build.ops


_MAKERS: Mapping[type[Operation], Callable[[Any], list[Operation]]] = {
    tile.EwOp: _of_elementwise,
    tile.ReduceOp: _of_reduce,
    tile.DotOp: _of_dot,
}
