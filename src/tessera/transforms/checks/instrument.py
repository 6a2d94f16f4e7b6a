"""instrument-checks: writes safety checks into tile functions, as asserts that every target knows.

`bounds`: a load, store or atomic starts inside its view (reaching over the end is legal, and so is anything in an empty
view), and computed places are inside, unless a mask leaves them out. `nan`: no op makes a NaN of operands that are
none. Unless `everywhere`, values from beyond an array are let be, as the interpreter does: a row of padding does no
harm. The function then computes where those are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.dtypes.types import i64
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type, view_type
from tessera.transforms.checks.guard_parts import OUT_OF_RANGE
from tessera.transforms.checks.padding_marks import Builder, Marks

_OUTSIDE, _NAN = "starts outside its view", "made NaN of"
_BEYOND = "has an index outside its view"
_AT_LEAST, _BELOW, _EQUAL = 5, 2, 0
"""Predicates of `arith.cmpi`."""
_ALIKE, _UNLIKE = 1, 13
"""Predicates of `arith.cmpf`: a NaN is unlike itself."""


@dataclass(frozen=True)
class Instrument(ModulePass):
    """Puts asserts beside the ops that a check watches."""

    name = "instrument-checks"
    bounds: bool = True
    nan: bool = True
    everywhere: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            watched = self.bounds and tile.OPEN not in inner.attributes
            if watched and isinstance(inner, tile.AtPlaces):
                _lies_inside(inner)
            elif watched and isinstance(inner, tile.LoadOp | tile.ItemOp | tile.StoreOp | tile.AtomicOp):
                _starts_inside(inner)
            if self.nan and isinstance(inner, tile.FuncOp):
                _watch_for_nan(inner, Marks(inner, none=self.everywhere))


def title(op: Operation) -> str:
    """An op as its user knows it."""
    match op:
        case tile.EwOp():
            return op.fn.data
        case tile.ReduceOp() | tile.ScanOp():
            return op.kind.data
        case tile.ReadOp() | tile.WriteOp() | tile.AtomicAtOp() | tile.AtomicOp():
            return tile.title(op)
        case _:
            return op.name.split(".")[-1]


def check_of(message: str) -> str | None:
    """Which check a message is from; None where it is from none."""
    if any(f" {words}, " in message for words in (_BEYOND, OUT_OF_RANGE)):
        return "indices"
    if f" {_OUTSIDE}, " in message:
        return "bounds"
    return "nan" if f" {_NAN} " in message else None


def _lies_inside(op: tile.AtPlaces) -> None:
    build, shape = Builder(), tile_type(op.indices[0]).get_shape()
    excuses = [] if op.mask is None else [build.ew("not", op.mask)]
    for axis, index in enumerate(op.indices):
        size = build.add(arith.IndexCastOp(build.add(tile.DimOp(op.view, axis)), element_of(i64)))
        low = build.ew("ge", index, build.full(0, element_of(i64), shape))
        high = build.ew("lt", index, build.add(tile.FullOp(size, shape)))
        build.check(build.any([build.ew("and", low, high), *excuses]), f"{title(op)} {_BEYOND}, along axis {axis}")
    build.insert(op, before=True)


def _starts_inside(op: tile.LoadOp | tile.StoreOp | tile.AtomicOp | tile.ItemOp) -> None:
    build = Builder()
    zero = build.add(arith.ConstantOp(IntegerAttr(0, IndexType())))
    sizes = [build.add(tile.DimOp(op.view, axis)) for axis in range(view_type(op.view).rank.data)]
    empty = build.add(arith.ConstantOp(IntegerAttr(0, IntegerType(1))))
    for size in sizes:
        empty = build.add(arith.OrIOp(empty, build.compare(size, _EQUAL, zero)))
    for axis, (offset, size) in enumerate(zip(op.offsets, sizes, strict=True)):
        low, high = build.compare(offset, _AT_LEAST, zero), build.compare(offset, _BELOW, size)
        inside = build.add(arith.OrIOp(empty, build.add(arith.AndIOp(low, high))))
        words = _BEYOND if isinstance(op, tile.ItemOp) else _OUTSIDE
        build.check(inside, f"tile.{title(op)} {words}, along axis {axis}")
    build.insert(op, before=True)


def _watch_for_nan(function: tile.FuncOp, marks: Marks) -> None:
    def visit(op: Operation, behind: Operation) -> None:
        if isinstance(op, _SCALARS):
            _check_scalar(op)
        elif type(op) in _EXCUSES and title(op) not in _NEVER and tile_dtype(op.results[0]).is_float:
            build, mark = Builder(), marks.of(op.results[0])
            fine = build.ew("not", build.is_nan(op.results[0]))
            excuses = [*_EXCUSES[type(op)](build, op), *([] if mark is None else [mark])]
            build.check(build.any([fine, *excuses]), f"{title(op)} {_NAN} operands that are none")
            build.insert(op, behind=behind)

    marks.write(function.body.block, visit)


_NEVER = frozenset({"select", "max", "min", "top", "neg", "abs", "from_sort_key"})
_SCALARS = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp)


def _check_scalar(op: Operation) -> None:
    build, result = Builder(), op.results[0]
    fine = build.add(arith.CmpfOp(result, result, _ALIKE))
    for operand in op.operands:
        fine = build.add(arith.OrIOp(fine, build.add(arith.CmpfOp(operand, operand, _UNLIKE))))
    build.check(fine, f"{title(op)} {_NAN} operands that are none")
    build.insert(op)


# Where operands account for a NaN in the result.


def _of_elementwise(build: Builder, op: tile.EwOp) -> list[SSAValue]:
    return [build.is_nan(operand) for operand in dict.fromkeys(op.operands_) if tile_dtype(operand).is_float]


def _of_reduce(build: Builder, op: tile.ReduceOp) -> list[SSAValue]:
    return [build.add(tile.ReduceOp("or", build.is_nan(op.operand), op.axis.value.data))]


def _of_scan(build: Builder, op: tile.ScanOp) -> list[SSAValue]:
    return [build.add(tile.ScanOp("or", build.is_nan(op.operand), op.axis.value.data))]


def _of_dot(build: Builder, op: tile.DotOp) -> list[SSAValue]:
    found = [build.is_nan(op.c)]
    row = tile_type(op.c).get_num_dims() - 2
    for operand, folded in ((op.a, row + 1), (op.b, row)):
        line = build.add(tile.ReduceOp("or", build.is_nan(operand), folded))
        found.append(build.add(tile.BroadcastOp(build.add(tile.ExpandOp(line, folded)), tile_type(op.c).get_shape())))
    return found


_EXCUSES: Mapping[type[Operation], Callable[[Builder, Any], list[SSAValue]]] = {
    tile.EwOp: _of_elementwise,
    tile.ReduceOp: _of_reduce,
    tile.ScanOp: _of_scan,
    tile.DotOp: _of_dot,
}
