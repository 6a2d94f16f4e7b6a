"""x[...]: integers, slices, None and ... as views of the program, integer arrays and traced starts as look-ups."""

from __future__ import annotations

import operator as python
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from tessera.dtypes.types import Kind, i64
from tessera.errors import DtypeError, RangeError, ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.manipulation import data_dependent
from tessera.lang.operators.sets import masked, nonzero
from tessera.lang.operators.taking import counted_from_front, from_front
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_all, tensor
from tessera.lang.tracing.known_distances import apart
from tessera.lang.tracing.sizes import TracedSize, plain_size
from tessera.lang.tracing.values import Array, Traced, current_or_none, shown, stories
from tessera.shapes.expr import Size, format_shape

INDICES = "indices"
"""The axes of index arrays, in the order of a result's axes."""

Value: TypeAlias = Any
"""A tensor, traced or not, an array of NumPy, or a number."""


@dataclass(frozen=True)
class Moving:
    """A slice from a traced start on, of known length."""

    start: Traced
    length: Size


@dataclass(frozen=True)
class Spans:
    """A key over the axes of a tensor: per axis a slice, an integer as a slice of one, or an integer array."""

    slices: tuple[slice, ...]
    dropped: frozenset[int]
    """Axes with an integer, which the result lacks."""
    arrays: dict[int, Traced]
    moving: dict[int, Moving]
    new: tuple[int, ...]
    """The axes that a new one is inserted before, once for each."""
    together: bool
    """Whether nothing stands between the arrays; the axes of their indices are in front otherwise."""

    def cut(self, x: Traced) -> Traced:
        """The box of the slices, with all axes."""
        ends: list[Value] = [[getattr(one, end) for one in self.slices] for end in ("start", "stop", "step")]
        box = primitives.slice_(x, *ends)
        if not self.moving:
            return box
        starts = [self.start(box, axis) if axis in self.moving else 0 for axis in range(x.ndim)]
        sizes = [self.moving[axis].length if axis in self.moving else size for axis, size in enumerate(box.sizes)]
        return primitives.dynamic_slice(box, [whole(one) for one in starts], sizes)

    def start(self, x: Traced, axis: int) -> Traced:
        """Where a slice with a traced start begins: counted from the front, and still to be moved inside."""
        return counted_from_front(self.moving[axis].start, x.sizes[axis])

    def order(self, rank: int) -> list[int | str | None]:
        """The axes of the result: the axis of the tensor that each is, INDICES once, and None for a new one."""
        found: list[int | str | None] = []
        for axis in range(rank + 1):
            found += [None] * self.new.count(axis)
            if axis in self.arrays:
                found += [INDICES] if INDICES not in found else []
            elif axis < rank and axis not in self.dropped:
                found.append(axis)
        if self.arrays and not self.together:
            found.remove(INDICES)
            found.insert(0, INDICES)
        return found

    def laid(self, box: Traced, indices: Sequence[Size] = ()) -> tuple[Size, ...]:
        """The sizes of the result, for those of the box and of index arrays."""
        sizes: list[Size] = []
        for one in self.order(box.ndim):
            sizes += indices if one == INDICES else [1 if one is None else box.sizes[int(one)]]
        return tuple(sizes)

    def indices(self, x: Traced) -> list[Traced]:
        """The index arrays in the order of their axes, from the front, in one shape."""
        given = [from_front(x, axis, self.arrays[axis]) for axis in sorted(self.arrays)]
        return broadcast_all([primitives.cast(one, i64) for one in given], "indexing") if given else []


def whole(number: Value) -> Traced:
    """A number as one of i64."""
    return primitives.constant(number, (), i64) if isinstance(number, int) else primitives.cast(number, i64)


@dataclass(frozen=True)
class Cut:
    """A slice, as something that can be part of a dictionary's key."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True)
class Given:
    """The index in a key of one of the arrays beside it."""

    index: int


Key: TypeAlias = tuple[Value, ...]


def _parts(key: Value) -> tuple[Value, ...]:
    return key if key.__class__ is tuple else (key,)


def taken_apart(key: Value) -> tuple[Key, list[Value]]:
    """A key as something static, and the arrays in it."""
    static: list[Value] = []
    arrays: list[Value] = []

    def given(part: Value) -> Given:
        arrays.append(part)
        return Given(len(arrays) - 1)

    for part in _parts(key):
        if type(part) is slice:
            ends: tuple[Value, ...] = (part.start, part.stop, part.step)
            static.append(Cut(*(given(end) if isinstance(end, Traced) else _end(end) for end in ends)))
        elif isinstance(part, list):
            listed = _listed(part)
            if listed.dtype == bool:  # it is known, so that the indices of what it selects are
                static += [given(one) for one in np.nonzero(listed)]
            else:
                static.append(given(listed))
        elif hasattr(part, "shape") and not isinstance(part, np.generic):
            static.append(given(part))
        else:
            static.append(part)
    return tuple(static), arrays


def _end(end: Value) -> Value:
    """An end of a slice that is known: a tensor of one number is that number."""
    return python.index(end) if hasattr(end, "shape") and not isinstance(end, TracedSize) else end


def _listed(part: Value) -> Value:
    return np.asarray(part, None if part else np.int64)


def spans_of(x: Traced, key: Key, given: Sequence[Value]) -> Spans:
    """The parts of a key by axis; an error where it does not fit the shape."""
    parts = [_part(x, given[part.index] if isinstance(part, Given) else part, given) for part in key]
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
    has_arrays = any(isinstance(part, Traced) for part in parts)
    advanced = [at for at, part in enumerate(parts) if isinstance(part, Traced | int)]
    together = not has_arrays or advanced == list(range(advanced[0], advanced[-1] + 1))
    rest = [slice(None)] * (x.ndim - taken)
    parts = [*parts[: dots[0]], *rest, *parts[dots[0] + 1 :]] if dots else [*parts, *rest]
    slices: list[slice] = []
    dropped: set[int] = set()
    arrays: dict[int, Traced] = {}
    moving: dict[int, Moving] = {}
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
        elif isinstance(part, Moving):
            moving[axis] = part
            slices.append(slice(None))
        else:
            _check_inside(x, axis, part)
            if has_arrays:  # as in NumPy it is then one of the arrays
                arrays[axis] = primitives.constant(part, (), i64)
                slices.append(slice(None))
            else:
                dropped.add(axis)
                slices.append(slice(part, part + 1 if part != -1 else None))
    return Spans(tuple(slices), frozenset(dropped), arrays, moving, tuple(new), together)


def _part(x: Traced, part: Value, given: Sequence[Value]) -> Value:
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, Cut):
        ends = [given[end.index] if isinstance(end, Given) else end for end in (part.start, part.stop, part.step)]
        if any(isinstance(end, Traced) for end in ends):
            return _moving(x, *ends)
        return slice(*map(_bound, ends))
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


def _bound(end: Value) -> Value:
    return end if end is None else plain_size(end) if isinstance(end, TracedSize) else python.index(end)


def _moving(x: Traced, start: Value, stop: Value, step: Value) -> Moving:
    """A slice whose ends are traced: how long it is must be known."""
    ends = [tensor(end) for end in (start, stop) if end is not None]
    for end in ends:
        if end.ndim or not end.dtype.is_integer:
            raise DtypeError(
                f"the ends of a slice are whole numbers, got {format_shape(end.sizes)} of {end.dtype}",
                shapes=shown(x, *ends),
                story=end.history.lines(),
                hint="give integers without axes",
            )
    length = apart(ends[0], ends[1]) if len(ends) == 2 and step in (None, 1) else None
    if length is None:
        raise ShapeError(
            "a slice from a traced start on must have a length that is known, and step 1",
            shapes=shown(x, *ends),
            story=stories(ends),
            hint="write x[i : i + n] with a number n, or index with i + ts.arange(n)",
        )
    return Moving(ends[0], length)


def _check_inside(x: Traced, axis: int, index: int) -> None:
    size = x.sizes[axis]
    if isinstance(size, int) and not -size <= index < size:
        raise RangeError(
            f"index {index} is out of range for axis {axis} of size {size}",
            shapes=shown(x),
            story=x.history.lines(),
            hint=f"use an index from {-size} to {size - 1}" if size else "an axis without elements has no index",
        )


def get_item(x: Array, key: Value) -> Traced:
    """x[key] for slices, integers, integer arrays, masks, None and `...`."""
    static, arrays = taken_apart(key)
    if current_or_none() is None and any(map(is_mask, arrays)):
        if len(arrays) == len(static) == 1:
            return masked(x, arrays[0])
        static, arrays = _without_masks(x, static, arrays)
    return _item(x, static, arrays)


def is_mask(x: Value) -> bool:
    """Whether an index of any library chooses by true and false."""
    return str(x.dtype).removeprefix("torch.") == "bool"


def axes_of_parts(x: Value, static: Key, arrays: Sequence[Value]) -> list[int]:
    """The first axis that each part of a key is about; a mask is about as many as it has."""
    counts = [
        arrays[part.index].ndim
        if isinstance(part, Given) and is_mask(arrays[part.index])
        else int(part is not None and part is not Ellipsis)
        for part in static
    ]
    found: list[int] = []
    axis = 0
    for part, count in zip(static, counts, strict=True):
        found.append(axis)
        axis += x.ndim - sum(counts) if part is Ellipsis else count
    return found


def check_mask(x: Value, axis: int, mask: Value) -> None:
    """Refuses a mask that has not the shape of the axes from one on."""
    sizes = tuple(getattr(x, "sizes", x.shape))[axis : axis + mask.ndim]
    if sizes != tuple(getattr(mask, "sizes", mask.shape)) or not mask.ndim:
        raise ShapeError(
            "the index does not fit: a mask has the shape of the axes that it selects from",
            shapes=[f"{format_shape(tuple(one.shape))} of {one.dtype}" for one in (x, mask)],
            hint="compare the tensor itself, or one of its shape",
        )


def _without_masks(x: Value, static: Key, arrays: Sequence[Value]) -> tuple[Key, list[Value]]:
    """A key outside of a trace with the indices of what a mask selects instead of the mask."""
    parts: list[Value] = []
    found: list[Value] = list(arrays)
    for part, axis in zip(static, axes_of_parts(x, static, arrays), strict=True):
        if isinstance(part, Given) and is_mask(mask := arrays[part.index]):
            check_mask(x, axis, mask)
            chosen = nonzero(mask)
            parts += [Given(len(found) + number) for number in range(len(chosen))]
            found += chosen
        else:
            parts.append(part)
    used = [part.index for part in _givens(parts)]
    order = {index: number for number, index in enumerate(used)}
    return tuple(_renumbered(part, order) for part in parts), [found[index] for index in used]


def without_masks(x: Value, static: Key, arrays: Sequence[Value]) -> tuple[Key, list[Value]]:
    """The same for keys that may have none."""
    return _without_masks(x, static, arrays) if any(map(is_mask, arrays)) else (static, list(arrays))


def _givens(parts: Sequence[Value]) -> list[Given]:
    found: list[Given] = []
    for part in parts:
        ends = (part.start, part.stop, part.step) if isinstance(part, Cut) else (part,)
        found += [end for end in ends if isinstance(end, Given)]
    return found


def _renumbered(part: Value, order: Mapping[int, int]) -> Value:
    if isinstance(part, Cut):
        return Cut(*(_renumbered(end, order) for end in (part.start, part.stop, part.step)))
    return Given(order[part.index]) if isinstance(part, Given) else part


@operator
def _item(x: Array, key: Key, given: Sequence[Array]) -> Traced:
    made = tensor(x)
    spans = spans_of(made, key, given)
    cut = spans.cut(made)
    if not spans.arrays:
        return primitives.reshape(cut, spans.laid(cut))
    indices, axes = spans.indices(cut), sorted(spans.arrays)
    found = primitives.gather_along(cut, indices, axes)
    # The indices' axes stand where the first of those axes was.
    rank, first = indices[0].ndim, axes[0]
    kept = iter((*range(first), *range(first + rank, found.ndim)))
    at: dict[Value, list[int]] = {axis: [next(kept)] for axis in range(cut.ndim) if axis not in axes}
    at[INDICES] = list(range(first, first + rank))
    order = [axis for one in spans.order(cut.ndim) if one is not None for axis in at[one]]
    return primitives.reshape(primitives.transpose(found, order), spans.laid(cut, indices[0].sizes))
