"""guard-parts: parts of views see nothing where an index is out of range, and checks report it.

An index that memory decides can be anything, so kernels guard their parts at such indices as they are traced. Where
checks are asked for, all parts are guarded, and assert that their indices are in range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.errors import ShapeError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.parts import BELOW, PART, conditions_of, indices_of, rests_on_memory
from tessera.transforms.core.rewriting import insert_before

OUT_OF_RANGE = "has an index out of range"


@dataclass(frozen=True)
class GuardParts(ModulePass):
    """Guards all parts, and asserts that their indices are in range."""

    name = "guard-parts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, tile.ViewOp) and tile.OPEN not in inner.attributes and inner.sizes:
                if PART not in inner.attributes and (indices := indices_of(inner.offset, inner.base)):
                    guard(inner, indices)
                for condition in conditions_of(inner):
                    insert_before(inner, [_check(condition)])


def guard_looked_up(function: tile.FuncOp) -> None:
    """Guards the parts at indices that rest on memory; launches test the others, as far as they are known."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.ViewOp) and PART not in op.attributes:
            indices = indices_of(op.offset, op.base) or {}
            looked_up = {axis: index for axis, index in indices.items() if rests_on_memory(index)}
            if looked_up:
                guard(op, looked_up)


def guard(op: tile.ViewOp, indices: Mapping[int, SSAValue | int]) -> None:
    """Makes a part of a view without elements where one of its indices is out of range."""
    if not op.sizes:
        raise ShapeError(
            "a view without axes at an index from memory",
            span=span_of(op.location),
            hint="tile.item(x, i, …) is one element, 0 where there is none; tile.scatter writes some",
        )
    made: list[Operation] = []

    def add(one: Operation) -> SSAValue:
        made.append(one)
        return one.results[0]

    inside: SSAValue | None = None
    for axis, index in sorted(indices.items()):
        number = add(arith.ConstantOp.from_int_and_width(index, IndexType())) if isinstance(index, int) else index
        one = add(arith.CmpiOp(number, add(tile.DimOp(op.base, axis)), BELOW))
        inside = one if inside is None else add(arith.AndIOp(inside, one))
    assert inside is not None
    nothing = add(arith.ConstantOp.from_int_and_width(0, IndexType()))
    sizes = [add(arith.SelectOp(inside, size, nothing)) for size in op.sizes]
    insert_before(op, made)
    op.operands = [op.base, op.offset, *sizes, *op.strides]
    op.attributes[PART] = UnitAttr()


def _check(condition: arith.CmpiOp) -> tile.AssertOp:
    size = condition.rhs.owner
    where = f", along axis {size.axis.value.data}" if isinstance(size, tile.DimOp) else ", along an axis"
    return tile.AssertOp(condition.result, f"view {OUT_OF_RANGE}{where}")
