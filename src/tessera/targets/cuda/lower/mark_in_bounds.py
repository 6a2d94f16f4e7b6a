"""Marks loads and stores that never leave their view: sizes and grids that are known decide it, and no test is written.

An analysis of bounds: an offset is a number, a program id times a number, or a sum of such.
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.emit.memory import INSIDE
from tessera.targets.cuda.ir import dialect as nv

Bounds: TypeAlias = tuple[int, int]


def mark_in_bounds(function: nv.FuncOp) -> None:
    """Marks the accesses of a function."""
    for op in function.body.walk():
        if isinstance(op, tile.LoadOp | tile.StoreOp) and _is_inside(op, function):
            op.attributes[INSIDE] = UnitAttr()


def _is_inside(op: tile.LoadOp | tile.StoreOp, function: nv.FuncOp) -> bool:
    extents = tile_type(op.result if isinstance(op, tile.LoadOp) else op.value).get_shape()
    sizes = _sizes(op.view, function)
    if sizes is None or len(sizes) != len(extents):
        return False
    for size, offset, extent in zip(sizes, op.offsets, extents, strict=True):
        found = _bounds(offset, function)
        if found is None or size is None or found[0] < 0 or found[1] + extent > size:
            return False
    return True


def _sizes(view: SSAValue, function: nv.FuncOp) -> list[int | None] | None:
    """The least sizes that a view may have."""
    if isinstance(op := view.owner, tile.ViewOp):
        bounds = [_bounds(size, function) for size in op.sizes]
        return [None if one is None else one[0] for one in bounds]
    if view not in function.arguments:
        return None
    shape = function.shapes.data[function.arguments.index(view)].data
    return [size if isinstance(size, int) else None for size in shape]


def _bounds(value: SSAValue, function: nv.FuncOp) -> Bounds | None:
    """The least and the greatest that a number can be."""
    op = value.owner
    match op:
        case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
            return op.value.value.data, op.value.value.data
        case tile.ProgramIdOp():
            extent = function.grid.data[op.axis.value.data]
            return (0, extent - 1) if isinstance(extent, int) and extent > 0 else None
        case tile.DimOp():
            sizes = _sizes(op.view, function)
            size = None if sizes is None else sizes[op.axis.value.data]
            return None if size is None or isinstance(op.view.owner, tile.ViewOp) else (size, size)
        case arith.AddiOp() | arith.MuliOp():
            a, b = _bounds(op.lhs, function), _bounds(op.rhs, function)
            if a is None or b is None or min(*a, *b) < 0:
                return None
            if isinstance(op, arith.AddiOp):
                return a[0] + b[0], a[1] + b[1]
            return a[0] * b[0], a[1] * b[1]
        case _:
            return None
