"""Computed places, as kernels give them: a tile of indices along one axis, or a tile for each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tessera.dtypes.types import bool_, i64
from tessera.errors import DtypeError, ShapeError
from tessera.tile.language.values import AxisBound, AxisBounds, Places, Scalar, Tile, Undefined, View, as_tuple, shown

if TYPE_CHECKING:
    from tessera.tile.language.tracer import Tracer


def box_places(work: Tracer, view: View, at: Sequence[Any], shape: Sequence[int], mask: Any) -> Places:
    """The places of a box that begins at `at`: those beyond the array are left out, as a store leaves them out."""
    made = _Box(work, view, tuple(shape))
    for axis, start in enumerate(at):
        made.along(axis, axis, start)
    return made.places(work.broadcast(_mask(mask, shape), tuple(shape)))


def places_along(
    work: Tracer, view: View, indices: Any, axis: int, at: object, shape: Sequence[int], mask: Any
) -> Places:
    """The places of a box whose positions along one axis are given by a tile.

    `shape` has the extents of the other axes, `at` where the box begins along them: at 0 unless it is given.
    """
    index = index_tile(work, indices)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -view.rank <= axis < view.rank:
        raise ShapeError(f"{view}, has no axis {axis!r}", hint=f"its axes are 0 to {view.rank - 1}")
    axis %= view.rank
    others = [other for other in range(view.rank) if other != axis]
    starts = [0] * len(others) if at is None else as_tuple(at)
    if len(starts) != len(others) or len(shape) != len(others):
        sizes = f" and {len(others)} sizes (shape=)" if len(shape) != len(others) else ""
        raise ShapeError(
            f"indices along axis {axis} of {view}, {len(starts)} offsets and {len(shape)} sizes for its other axes",
            hint=f"give {len(others)} offsets (at=){sizes}: those of all axes but {axis}",
        )
    extents = (*shape[:axis], *index.shape, *shape[axis:])
    made = _Box(work, view, extents)
    made.given(axis, axis, index)
    for other, start in zip(others, starts, strict=True):
        made.along(other, other if other < axis else other + index.ndim - 1, start)
    return made.places(None if mask is None else _spread(work, _mask(mask, index.shape), axis, extents))


def places_of_each(work: Tracer, view: View, indices: Sequence[Any], mask: Any) -> Places:
    """One tile of indices for each axis; they are broadcast against each other."""
    if len(indices) != view.rank:
        raise ShapeError(
            f"{len(indices)} tiles of indices for {view}", hint=f"give one for each of its {view.rank} axes, or axis="
        )
    tiles = [index_tile(work, one) for one in indices if isinstance(one, Tile)]
    if not tiles:
        raise DtypeError("none of the indices is a tile", hint="tile.item(x, i, …) gives one element as a scalar")
    like = tiles[0]
    found = [index_tile(work, one) if isinstance(one, Tile) else work.tile_like(_whole(one), like) for one in indices]
    aligned = work.align(found, "indices")
    bounds = {axis: held for one in tiles if one.shape == aligned[0].shape for axis, held in one.axis_bounds.items()}
    return Places(
        aligned, None if mask is None else work.broadcast(_mask(mask, aligned[0].shape), aligned[0].shape), bounds
    )


def _whole(value: Any) -> Any:
    if isinstance(value, Scalar) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise DtypeError(f"{shown(value)} is no index", hint="give tiles, scalars and numbers that are integers")


def index_tile(work: Tracer, value: object) -> Tile:
    """A tile of indices, as i64."""
    if isinstance(value, Undefined):
        value.refuse()
    if not isinstance(value, Tile):
        raise DtypeError(
            f"expected a tile of indices, got {shown(value)}",
            hint="load one with tile.load, or make it of tile.iota; for one element there is tile.item",
        )
    if not value.dtype.is_integer:
        raise DtypeError(f"indices are integers, and this is {value}", hint="cast it: tile.cast(x, i32)")
    return work.cast(value, i64)


def _mask(value: object, shape: Sequence[int]) -> Tile:
    if not isinstance(value, Tile) or value.dtype is not bool_:
        hint = "compare something: positions < end"
        if isinstance(value, View):
            hint = "load a tile of it: tile.load(...)"
        elif isinstance(value, Scalar | bool):
            hint = "put the access under an if, or compare something: positions < end"
        raise DtypeError(f"a mask is a tile of conditions, got {shown(value)}", hint=hint)
    if value.ndim > len(shape) or any(
        size not in (1, extent) for size, extent in zip(value.shape[::-1], tuple(shape)[::-1], strict=False)
    ):
        raise ShapeError(
            f"the mask has the shape {list(value.shape)}, what it is for {list(shape)}",
            hint="a mask has a condition for each, or sizes of 1 where one is for all: mask[:, None]",
        )
    return value


def _spread(work: Tracer, value: Tile, axis: int, extents: tuple[int, ...]) -> Tile:
    """A tile over the axes from `axis` on, repeated along all others."""
    while value.ndim + axis < len(extents):
        value = work.expand(value, value.ndim)
    return work.broadcast(value, extents)


class _Box:
    """The places of a box under construction."""

    def __init__(self, work: Tracer, view: View, extents: tuple[int, ...]) -> None:
        self._work, self._view, self._extents = work, view, extents
        self._indices: dict[int, Tile] = {}
        self._inside: list[Tile] = []
        self._bounds: dict[int, AxisBounds] = {}

    def given(self, axis: int, at: int, index: Tile) -> None:
        """Positions along an axis of the view are those of a tile, whose axes begin at axis `at` of the box."""
        self._indices[axis] = _spread(self._work, index, at, self._extents)
        self._bounds |= {at + own: bounds for own, bounds in index.axis_bounds.items()}

    def along(self, axis: int, at: int, start: Any) -> None:
        """Positions along an axis of the view count up from `start`, along axis `at` of the box."""
        work, extent = self._work, self._extents[at]
        shape = tuple(extent if other == at else 1 for other in range(len(self._extents)))
        index = work.iota(shape, at, start, i64)
        size = work.size(self._view, axis)
        covers = isinstance(size, int) and isinstance(start, int) and 0 <= start <= size - extent
        if not covers:
            self._inside.append(work.combine("lt", index, size))
        bound = AxisBound(start, size, work.symbolic_size(self._view, axis))
        self._bounds[at] = AxisBounds((bound,), not covers)
        self._indices[axis] = work.broadcast(index, self._extents)

    def places(self, mask: Tile | None) -> Places:
        """All of them; those of a ragged edge are left out, and those that the mask leaves out."""
        for inside in self._inside:
            mask = inside if mask is None else self._work.combine("and", mask, inside)
        whole = None if mask is None else self._work.broadcast(mask, self._extents)
        return Places([self._indices[axis] for axis in range(self._view.rank)], whole, self._bounds)


def given_indices(value: Any) -> Sequence[Any] | None:
    """Indices of all axes, where they are given one by one."""
    return as_tuple(value) if isinstance(value, tuple | list) else None
