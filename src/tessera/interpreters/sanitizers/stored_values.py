"""Bounds on the values that a kernel stores: the first float that lies outside, or is NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, f64
from tessera.errors import GuardError
from tessera.interpreters.core.places import placed
from tessera.interpreters.core.views import Array, ArrayView, window
from tessera.interpreters.sanitizers.sentinels import title
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype

Limits = tuple[float, float]


def limits_in(dtype: DType, limits: Limits) -> Limits:
    """Limits as numbers of a type: like every number beside a tile, they take its element type."""
    low, high = (_number_in(dtype, limit) for limit in limits)
    return low, high


def _number_in(dtype: DType, limit: float) -> float:
    if not dtype.is_float or abs(limit) > dtype.max_value:  # beyond the type, it is no limit there
        return limit
    return float(cast(np.asarray(limit, np.float64), f64, dtype.base))


def outside(values: Array, dtype: DType, limits: Limits) -> Array:
    """Where values are not between the limits; NaN never is."""
    low, high = limits_in(dtype, limits)
    wide = values.astype(np.float64)
    return ~((wide >= low) & (wide <= high))


def check_stored(op: tile.Writer, operands: Sequence[Any], limits: Limits, program: Sequence[int]) -> None:
    """Refuses the first float out of bounds: of a store what it will store, of an atomic what it has left in memory."""
    value, view, *offsets = operands
    dtype = tile_dtype(op.value)
    if not dtype.is_float:
        return
    if isinstance(op, tile.AtPlaces):
        at = placed(op, operands)
        axes: Sequence[Array] = at.index
        stored = operands[0][at.taken]
    else:
        inside, within = window(view, offsets, value.shape)
        ranges = [np.arange(int(part.start), int(part.stop), dtype=np.int64) for part in inside]
        axes = np.meshgrid(*ranges, indexing="ij")
        stored = value[within]
    found = np.asarray(view.array[tuple(axes)] if isinstance(op, tile.Atomic) else stored)
    wrong = outside(found, dtype, limits)
    if not wrong.any():
        return
    place = tuple(int(one) for one in np.argwhere(wrong)[0])
    position = [int(axis[place]) for axis in axes]
    name = tile.base_of(op.view).name_hint or "an array"
    raise GuardError(
        f"{name}{element_at(view, position)} is {found[place]!s}, outside of the bounds "
        f"[{limits[0]:g}, {limits[1]:g}], in program instance {list(program)}",
        story=_maker(op),
        hint="scale or clamp the tile before it is stored, or widen the bounds",
    )


def element_at(view: ArrayView, position: Sequence[int]) -> str:
    """An element of a view by its index in the whole argument, where it has one there."""
    reached = view.first + sum(at * stride for at, stride in zip(position, view.strides, strict=True))
    return ArrayView.of(view.argument).index_of(reached) or f" at element {reached} of its memory"


def _maker(op: tile.Writer) -> list[str]:
    owner = op.value.owner
    span = span_of(owner.location) if isinstance(owner, Operation) else None
    return [f"{title(owner)} at {span} gave it"] if isinstance(owner, Operation) and span is not None else []
