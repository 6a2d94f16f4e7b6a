"""x[...]: integers, slices, None and ... as views of the program, integer arrays as gathers."""

from __future__ import annotations

import operator as python
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from tessera.dtypes.types import Kind, i64
from tessera.errors import DtypeError, RangeError
from tessera.lang.operator import operator
from tessera.lang.operators.manipulation import data_dependent
from tessera.lang.operators.operands import known
from tessera.lang.operators.sets import masked
from tessera.lang.operators.taking import from_front
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_all, elementwise, tensor
from tessera.lang.tracing.sizes import TracedSize, plain_size
from tessera.lang.tracing.values import Array, Traced, current_or_none, shown
from tessera.shapes.expr import Size, element_count


@dataclass(frozen=True)
class Spans:
    """A key over the axes of a tensor: per axis a slice, an integer as a slice of one, or an integer array."""

    slices: tuple[slice, ...]
    dropped: frozenset[int]
    """Axes with an integer, which the result lacks."""
    arrays: dict[int, Traced]
    new: tuple[int, ...]
    """The axes that a new one is inserted before, once for each."""

    def cut(self, x: Traced) -> Traced:
        """The box of the slices, with all axes."""
        ends: list[Any] = [[getattr(one, end) for one in self.slices] for end in ("start", "stop", "step")]
        return primitives.slice_(x, *ends)

    def laid(self, box: Traced) -> tuple[Size, ...]:
        """The sizes of a box without the axes of integers, and with the new ones."""
        sizes: list[Size] = [1] * self.new.count(0)
        for axis, size in enumerate(box.sizes):
            sizes += ([] if axis in self.dropped else [size]) + [1] * self.new.count(axis + 1)
        return tuple(sizes)


@dataclass(frozen=True)
class Cut:
    """A slice, as something that can be part of a dictionary's key."""

    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True)
class Given:
    """The index in a key of one of the arrays beside it."""

    index: int


Key: TypeAlias = tuple[Any, ...]


def taken_apart(key: Any) -> tuple[Key, list[Any]]:
    """A key as something static, and the arrays in it."""
    static: list[Any] = []
    arrays: list[Any] = []
    parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)  # pyright: ignore[reportUnknownVariableType]
    for part in parts:
        if isinstance(part, slice):
            static.append(_cut(part))
        elif isinstance(part, list) or (hasattr(part, "shape") and not isinstance(part, np.generic)):
            static.append(Given(len(arrays)))
            arrays.append(_listed(part) if isinstance(part, list) else part)
        else:
            static.append(part)
    return tuple(static), arrays


def _cut(part: Any) -> Cut:
    return Cut(part.start, part.stop, part.step)


def _listed(part: Any) -> Any:
    return np.asarray(part, None if part else np.int64)


def spans_of(x: Traced, key: Key, given: Sequence[Any]) -> Spans:
    """The parts of a key by axis; an error where it does not fit the shape."""
    parts = [_part(x, given[part.index] if isinstance(part, Given) else part) for part in key]
    dots = [at for at, part in enumerate(parts) if part is Ellipsis]
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or taken > x.ndim:
        problem = "two ellipses" if len(dots) > 1 else f"{taken} indices"
        raise RangeError(
            f"the index does not fit: {problem} for {x.ndim} axes",
            shapes=shown(x),
            story=x.history.lines(),
            hint="give at most one index per axis, and ... at most once",
        )
    rest = [slice(None)] * (x.ndim - taken)
    parts = [*parts[: dots[0]], *rest, *parts[dots[0] + 1 :]] if dots else [*parts, *rest]
    has_arrays = any(isinstance(part, Traced) for part in parts)
    slices: list[slice] = []
    dropped: set[int] = set()
    arrays: dict[int, Traced] = {}
    new: list[int] = []
    for part in parts:
        axis = len(slices)
        if part is None:
            new.append(axis)
        elif isinstance(part, slice):
            slices.append(part)  # pyright: ignore[reportUnknownArgumentType]  (ends of any kind)
        elif isinstance(part, Traced):
            arrays[axis] = part
            slices.append(slice(None))
        else:
            _check_inside(x, axis, part)
            if has_arrays:  # as in NumPy it is then one of the arrays
                arrays[axis] = primitives.constant(part, (), i64)
                slices.append(slice(None))
            else:
                dropped.add(axis)
                slices.append(slice(part, part + 1 if part != -1 else None))
    return Spans(tuple(slices), frozenset(dropped), arrays, tuple(new))


def _part(x: Traced, part: Any) -> Any:
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, Cut):
        return slice(*(_bound(end) for end in (part.start, part.stop, part.step)))
    if isinstance(part, bool | np.bool_):
        raise data_dependent("a bool as an index", x)
    if isinstance(part, TracedSize):
        return int(part)
    if hasattr(part, "shape") and not isinstance(part, np.generic):
        made = tensor(part)
        if made.dtype.kind is Kind.BOOL:
            raise data_dependent("a mask as an index", x, made)
        if not made.dtype.is_integer:
            raise DtypeError(
                f"expected integer indices, got {made.dtype}",
                shapes=shown(x, made),
                story=made.history.lines(),
                hint="cast the indices to i64",
            )
        return made
    if isinstance(part, SupportsIndex):
        return python.index(part)
    raise DtypeError(
        f"expected an index, got {part!r}",
        shapes=shown(x),
        hint="index with integers, slices, None, ... and integer arrays",
    )


def _bound(end: Any) -> Any:
    return end if end is None else plain_size(end) if isinstance(end, TracedSize) else python.index(end)


def _check_inside(x: Traced, axis: int, index: int) -> None:
    size = x.sizes[axis]
    if isinstance(size, int) and not -size <= index < size:
        raise RangeError(
            f"index {index} is out of range for axis {axis} of size {size}",
            shapes=shown(x),
            story=x.history.lines(),
            hint=f"use an index from {-size} to {size - 1}" if size else "an axis without elements has no index",
        )


def get_item(x: Array, key: Any) -> Traced:
    """x[key] for slices, integers, integer arrays, masks, None and `...`."""
    static, arrays = taken_apart(key)
    if current_or_none() is None and len(arrays) == 1 and len(static) == 1 and is_mask(arrays[0]):
        return masked(x, arrays[0])
    return _item(x, static, arrays)


def is_mask(x: Any) -> bool:
    """Whether an index of any library chooses by true and false."""
    return str(x.dtype).removeprefix("torch.") == "bool"


@operator
def _item(x: Array, key: Key, given: Sequence[Array]) -> Traced:
    made = tensor(x)
    spans = spans_of(made, key, given)
    cut = spans.cut(made)
    if spans.arrays:
        return _gathered(cut, spans)
    return primitives.reshape(cut, spans.laid(cut))


def _gathered(x: Traced, spans: Spans) -> Traced:
    """Indices along one or more axes together; their axes stand where the first was, or in front if apart."""
    axes = sorted(spans.arrays)
    together = axes == list(range(axes[0], axes[-1] + 1)) and not any(axes[0] < at <= axes[-1] for at in spans.new)
    found, positions = _one_index(x, [(axis, spans.arrays[axis]) for axis in axes])
    # The indices' axes are in front now, then the other axes in order.
    rank = positions.ndim
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    front = sum(axis < axes[0] for axis in rest) if together else 0
    order = [*range(rank, rank + front), *range(rank), *range(rank + front, found.ndim)]
    found = primitives.transpose(found, order)
    if not spans.new:
        return found
    # New axes keep their positions among the axes that are left.
    kept: list[Size | None] = []
    for axis in range(x.ndim + 1):
        kept += [1] * spans.new.count(axis)
        if axis < x.ndim:
            kept.append(None if axis in axes else x.sizes[axis])
    sizes: list[Size] = []
    laid = not together
    if laid:
        sizes += positions.sizes
    for size in kept:
        if size is not None:
            sizes.append(size)
        elif not laid:
            sizes += positions.sizes
            laid = True
    return primitives.reshape(found, sizes)


def _one_index(x: Traced, indices: Sequence[tuple[int, Traced]]) -> tuple[Traced, Traced]:
    """Slices at indices along several axes at once, the indices' axes in front; and the indices as one."""
    axes = [axis for axis, _ in indices]
    transposed = primitives.transpose(x, [*axes, *(axis for axis in range(x.ndim) if axis not in axes)])
    given = [primitives.cast(from_front(x, axis, positions), i64) for axis, positions in indices]
    if len(given) > 1:  # one that is outside may be the index of another element in the joint index
        given = [
            primitives.looked_at(one, x.sizes[axis], f"axis {axis}") for one, axis in zip(given, axes, strict=True)
        ]
    spread = broadcast_all(given, "indexing")
    flat = spread[0]
    for at, positions in enumerate(spread[1:], 1):
        size = known(transposed, at, "an index along several axes")
        flat = primitives.ew("add", elementwise("mul", flat, size), positions)
    sizes = transposed.sizes
    rows = primitives.reshape(transposed, (element_count(sizes[: len(axes)]), *sizes[len(axes) :]))
    return primitives.gather(rows, flat, 0), flat
