"""Accesses at computed places: which elements of a tile they touch, and where those are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tessera.interpreters.core.engine import Values
from tessera.interpreters.core.views import Array
from tessera.ir.tile import dialect as tile


@dataclass(frozen=True)
class Placed:
    """An access at computed places: the index of each element along each axis, which are asked for, and which exist."""

    indices: Sequence[Array]
    asked: Array
    inside: Array

    @property
    def taken(self) -> Array:
        """The elements that are read or written."""
        return self.asked & self.inside

    @property
    def index(self) -> tuple[Array, ...]:
        """The places of those, as NumPy's index."""
        return tuple(index[self.taken] for index in self.indices)


def placed(op: tile.AtPlaces, operands: Values) -> Placed:
    """Where an access with these operands is."""
    *most, last = operands
    *_, view = (given := most if op.mask is not None else operands)[: -len(op.indices)]
    indices: list[Array] = list(given[-len(op.indices) :])
    inside = np.ones(indices[0].shape, np.bool_)
    for index, size in zip(indices, view.sizes, strict=True):
        inside &= (index >= 0) & (index < size)
    return Placed(indices, last if op.mask is not None else np.ones_like(inside), inside)


def taken(source: Array, indices: Sequence[Array]) -> Array:
    """The elements of a tile at computed places; 0 where they lie outside of it."""
    inside = np.ones(indices[0].shape, np.bool_)
    for index, size in zip(indices, source.shape, strict=True):
        inside &= (index >= 0) & (index < size)
    found = np.zeros(inside.shape, source.dtype)
    found[inside] = source[tuple(index[inside] for index in indices)]
    return found
