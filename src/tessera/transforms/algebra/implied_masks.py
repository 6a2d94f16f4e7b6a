"""Masks that say what an access at computed places does anyway: places outside of the view are left out.

A store under a mask ends with its array, so its mask tests positions against sizes. Machine code of the access does the
same, once for neighbours where it can: conditions of the mask that only say that are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps


def drop_implied_masks(function: tile.FuncOp) -> None:
    """Drops the conditions of masks that hold wherever a place is in its view."""
    for op in list(function.body.walk()):
        if not isinstance(op, tile.AtPlaces) or op.mask is None:
            continue
        conditions = list(_conditions(op.mask))
        kept = [condition for condition in conditions if not _is_implied(op, condition)]
        if len(kept) < len(conditions):
            _give(op, kept)


DropImpliedMasks = function_pass("drop-implied-masks", drop_implied_masks)


def _conditions(mask: SSAValue) -> Iterator[SSAValue]:
    """The conditions that a mask is the conjunction of."""
    owner = mask.owner
    if isinstance(owner, tile.EwOp) and owner.fn.data == "and":
        for operand in owner.operands_:
            yield from _conditions(operand)
    else:
        yield mask


def _is_implied(op: tile.AtPlaces, condition: SSAValue) -> bool:
    asked = _spread(condition).owner
    if not isinstance(asked, tile.EwOp) or asked.fn.data not in ("lt", "ge"):
        return False
    position, bound = asked.operands_
    axes = [axis for axis, index in enumerate(op.indices) if _spread(index) is _spread(position)]
    if asked.fn.data == "ge":
        return bool(axes) and constant_of(bound) == 0
    full = _spread(bound).owner
    return isinstance(full, tile.FullOp) and any(_is_size(full.value, op.view, axis) for axis in axes)


def _spread(value: SSAValue) -> SSAValue:
    """A tile before it was repeated along axes of size 1."""
    while isinstance(owner := value.owner, tile.BroadcastOp):
        value = owner.operand
    return value


def _is_size(value: SSAValue, view: SSAValue, axis: int) -> bool:
    """Whether a scalar is the size of a view along an axis."""
    while isinstance(owner := value.owner, arith.IndexCastOp):
        value = owner.input
    if isinstance(owner := value.owner, tile.DimOp) and owner.view is view:
        return owner.axis.value.data == axis
    made = view.owner
    if not isinstance(made, tile.ViewOp):
        return False
    size = made.sizes[axis]
    return size is value or (isinstance(at := size.owner, tile.DimOp) and _is_size(value, at.view, at.axis.value.data))


def _give(op: tile.AtPlaces, conditions: list[SSAValue]) -> None:
    """Writes an access anew with the conjunction of some conditions for its mask, or without one."""
    ops, mask = TileOps(), None
    for condition in conditions:
        whole = ops.spread(condition, tile_type(op.mask or condition).get_shape())
        mask = whole if mask is None else ops.ew("and", mask, whole)
    match op:
        case tile.ReadOp():
            made = tile.ReadOp(op.view, op.indices, mask=mask)
        case tile.WriteOp():
            made = tile.WriteOp(op.value, op.view, op.indices, mask=mask)
        case tile.AtomicAtOp():
            made = tile.AtomicAtOp(op.kind.data, op.value, op.view, op.indices, mask=mask)
    made.attributes.update(op.attributes)
    replace(op, [*ops.ops, made])
