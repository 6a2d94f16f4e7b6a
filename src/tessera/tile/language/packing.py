"""Bytes that hold two elements of 4 bits each, and tiles of those elements."""

from __future__ import annotations

from tessera.dtypes.types import BYTES, FOURS, DType, u8
from tessera.errors import DtypeError, ShapeError
from tessera.shapes.expr import dim, size
from tessera.tile.language.current_tracer import tracer
from tessera.tile.language.rearrange import axis_of, checked_tile
from tessera.tile.language.values import AxisBound, AxisBounds, Scalar, Tile

__all__ = ["pack", "unpack"]


def _one_of(dtype: object, possible: tuple[DType, ...], what: str) -> DType:
    """A type of a list, without a policy."""
    if not isinstance(dtype, DType) or dtype not in possible:
        raise DtypeError(
            f"{what}, and {dtype!r} is no such type",
            hint=f"give one of {', '.join(map(str, possible))}; tile.cast goes on from there",
        )
    return dtype


def unpack(x: Tile, dtype: DType, axis: int = -1) -> Tile:
    """The elements of 4 bits that bytes hold, twice as many along an axis: each byte's low half, then its high one.

    Bytes are u8 or i8, elements i4, u4 or f4e2m1: numbers like those of any type, to be cast before they are
    multiplied.
    """
    along, work = axis_of(checked_tile(x, "unpack"), axis, "unpack"), tracer()
    if x.dtype.base not in BYTES:
        raise DtypeError(
            f"tile.unpack takes bytes apart, and {x} has none",
            hint="load an array of u8 or i8, in which each byte holds two elements",
        )
    made = _one_of(dtype, FOURS, "tile.unpack gives elements of 4 bits")
    bounds = {one: _doubled(held) if one == along else held for one, held in x.axis_bounds.items()}
    return work.unpacked(x, along, made, bounds)


def pack(x: Tile, axis: int = -1, dtype: DType = u8) -> Tile:
    """Two neighbours along an axis in one byte, the first in its low half; what `unpack` undoes.

    Elements have 4 bits: i4, u4 or f4e2m1. Bytes are u8, or i8 if `dtype` says so.
    """
    along, work = axis_of(checked_tile(x, "pack"), axis, "pack"), tracer()
    if x.dtype.base not in FOURS:
        raise DtypeError(
            f"tile.pack puts two elements of 4 bits into a byte, and {x} has wider ones",
            hint=f"cast it first: tile.cast(x, dtype) with {', '.join(map(str, FOURS))}",
        )
    made = _one_of(dtype, BYTES, "tile.pack gives bytes")
    if x.shape[along] % 2:
        raise ShapeError(
            f"tile.pack takes two neighbours at a time, and {x} has {x.shape[along]} elements along axis {along}",
            hint="load a block of an even size: what lies beyond the array is 0",
        )
    # A byte at the end of an array may hold one element that lies inside, and one that does not.
    bounds = {one: held for one, held in x.axis_bounds.items() if one != along}
    return work.packed(x, along, made, bounds)


def _doubled(held: AxisBounds) -> AxisBounds:
    """Where elements lie of which each byte of an array holds two."""
    bounds = (
        AxisBound(None if one.start is None else _twice(one.start), _twice(one.limit), size(dim(one.size) * 2))
        for one in held.bounds
    )
    return AxisBounds(tuple(bounds), held.ragged)


def _twice(position: int | Scalar) -> int | Scalar:
    return tracer().combine("mul", position, 2) if isinstance(position, Scalar) else 2 * position
