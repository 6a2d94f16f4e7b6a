"""Loads and stores that are known to be in bounds of their views, lanes side by side, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.lower.extents import Extents, Span
from tessera.targets.cpu.lower.nests import shape_of


def is_inside(extents: Extents, op: tile.LoadOp | tile.StoreOp) -> bool:
    """Whether an access is known to lie inside its view, its lanes side by side, before anything runs."""
    proofs = [proof for _, _, proof in questions(extents, op)]
    if any(proof is None for proof in proofs):
        return False
    for proof in proofs:
        extents.decide(*proof or ())
    return True


def questions(extents: Extents, op: tile.LoadOp | tile.StoreOp) -> Iterator[tuple[str, int, tuple[Span, ...] | None]]:
    """Each condition of an access, the axis it is about, and the spans that prove it; None where nothing does."""
    shape = shape_of(moved(op))
    for axis, (offset, size) in enumerate(zip(op.offsets, shape, strict=True)):
        at, there = extents.span(offset), extents.size(op.view, axis)
        yield "low", axis, () if at.low >= 0 else None
        yield "high", axis, (at, there) if at.high + size <= there.low else None
    if shape:
        step = extents.stride(op.view, lane_axis(shape))
        yield "stride", lane_axis(shape), (step,) if step.number == 1 else None


def moved(op: tile.LoadOp | tile.StoreOp) -> SSAValue:
    """The tile that a load or store moves."""
    return op.result if isinstance(op, tile.LoadOp) else op.value


def lane_axis(shape: Sequence[int]) -> int:
    """The axis of a tile whose elements become the lanes of vectors."""
    return 0 if len(shape) == 1 or (shape[1] == 1 and shape[0] != 1) else 1
