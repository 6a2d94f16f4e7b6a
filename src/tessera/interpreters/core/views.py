"""Strided NumPy memory as kernels see it: views of arguments, and the part of a tile that lies inside one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tessera.cached_property import cached_property

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ArrayView:
    """Elements of an argument: `first` counts from the argument's first element, strides count elements too."""

    argument: Array
    first: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(argument: Array) -> ArrayView:
        return ArrayView(argument, 0, argument.shape, tuple(stride // argument.itemsize for stride in argument.strides))

    @property
    def reach(self) -> tuple[int, int]:
        """The lowest and highest element seen, counted from the argument's first; empty views see none."""
        if 0 in self.sizes:
            return 0, -1
        steps = [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]
        return self.first + sum(min(0, step) for step in steps), self.first + sum(max(0, step) for step in steps)

    @property
    def elements(self) -> Array:
        """Where each element lies, counted from the first."""
        offsets = np.zeros((), np.int64)
        for size, stride in zip(self.sizes, self.strides, strict=True):
            offsets = offsets[..., np.newaxis] + stride * np.arange(size, dtype=np.int64)
        return offsets

    def index_of(self, offset: int) -> str | None:
        """The index of the element at some offset from the first, in words; None where no element lies there."""
        found = np.argwhere(self.elements == offset)
        return str(found[0].tolist()) if len(found) else None

    @cached_property
    def array(self) -> Array:
        if 0 in self.sizes:
            return np.empty(self.sizes, self.argument.dtype)
        item, far = self.argument.itemsize, abs(self.first)
        # As words: NumPy's interface for strides does not know all types of ml_dtypes.
        words = as_strided(self.argument.view(f"u{item}"), (far + 1,), (item if self.first >= 0 else -item,))
        strided = as_strided(words[far:], self.sizes, tuple(item * stride for stride in self.strides))
        return strided.view(self.argument.dtype)


def read_window(view: ArrayView, offsets: Sequence[int], shape: Sequence[int], pad: Any = 0) -> Array:
    """The tile at some offsets of a view, and a number where it leaves the view."""
    found = np.full(shape, pad, view.array.dtype)
    inside, within = window(view, offsets, shape)
    found[within] = view.array[inside]
    return found


def read_boxes(
    view: ArrayView, starts: Sequence[int], axes: Sequence[int], shape: Sequence[int], until: int | None
) -> Array:
    """Boxes of a view along some axes, one behind the other along the first axis of a tile.

    0 where they leave the view, and in rows from `until` on.
    """
    rank, extents = len(view.sizes), [1] * len(view.sizes)
    count = len(starts) // rank
    part = (shape[0] // count, *shape[1:])
    for axis, extent in zip(axes, part, strict=True):
        extents[axis] = extent
    boxes = [read_window(view, starts[box * rank : (box + 1) * rank], extents).reshape(part) for box in range(count)]
    found: Array = np.concatenate(boxes)
    if until is not None:
        found[max(0, until) :] = 0
    return found


def window(
    view: ArrayView, offsets: Sequence[int], shape: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part of a tile that lies inside a view: slices of the view, and of the tile."""
    inside: list[slice] = []
    within: list[slice] = []
    for size, offset, extent in zip(view.sizes, offsets, shape, strict=True):
        low = min(max(0, -offset), extent)
        high = max(low, min(extent, size - offset))
        inside.append(slice(offset + low, offset + high) if high > low else slice(0, 0))
        within.append(slice(low, high))
    return tuple(inside), tuple(within)
