"""x.at[...].set(v): a new tensor that differs in some elements. Values in a trace are never changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tessera.dtypes.types import i64
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.indexing import (
    INDICES,
    Cut,
    Given,
    Key,
    Spans,
    axes_of_parts,
    check_mask,
    is_mask,
    spans_of,
    taken_apart,
    whole,
    without_masks,
)
from tessera.lang.operators.operands import known
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.arithmetic import stored as into
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.values import Array, Traced, current_or_none, shown, stories
from tessera.shapes import rules
from tessera.shapes.expr import Size

_ROWS = {"set": None, "add": "add", "multiply": "mul", "max": "max", "min": "min"}


class At:
    """`x.at`: updates of parts of a tensor, each of which gives a new tensor.

    x.at[2:4].set(0)
    x.at[rows].add(updates)
    """

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, key: Any) -> UpdatedPart:
        return UpdatedPart(self.x, key)


class UpdatedPart:
    """The elements x[key] of a tensor. Each method gives a new tensor; the old one stays as it is."""

    __slots__ = ("key", "x")

    def __init__(self, x: Any, key: Any) -> None:
        self.x, self.key = x, key

    def set(self, values: Any) -> Any:
        """The tensor with `values` at x[key]; where several go to one element, the last."""
        return _update(self.x, values, "set", self.key)

    def add(self, values: Any) -> Any:
        """The tensor with `values` added at x[key]; where several go to one element, all of them."""
        return _update(self.x, values, "add", self.key)

    def multiply(self, values: Any) -> Any:
        """The tensor with x[key] times `values`."""
        return _update(self.x, values, "multiply", self.key)

    def max(self, values: Any) -> Any:
        """The tensor with the larger of x[key] and `values`."""
        return _update(self.x, values, "max", self.key)

    def min(self, values: Any) -> Any:
        """The tensor with the smaller of x[key] and `values`."""
        return _update(self.x, values, "min", self.key)


def _update(x: Array, values: Array, kind: str, key: Any) -> Traced:
    """A new tensor with `values` set, added, … at x[key]; `values` broadcast to its shape."""
    static, arrays = taken_apart(key)
    masks = [part.index for part in static if isinstance(part, Given) and is_mask(arrays[part.index])]
    if not masks:
        return _at(x, values, kind, static, arrays)
    if current_or_none() is None and (len(arrays) > 1 or getattr(values, "ndim", np.ndim(values))):  # pyright: ignore[reportArgumentType]  (a number)
        return _at(x, values, kind, *without_masks(x, static, arrays))
    return _where_masked(x, values, kind, static, arrays)


def stored(x: Array, key: Any, values: Array) -> Traced:
    """The tensor after x[key] = values."""
    return _update(x, values, "set", key)


@operator
def _where_masked(x: Array, values: Array, kind: str, key: Key, given: Sequence[Array]) -> Traced:
    """Values wherever a mask over some axes holds, one for all of those; how many they are need not be known."""
    made, arrays = tensor(x), [tensor(one) for one in given]
    value = primitives.lift(values)
    if len(arrays) > 1:
        raise ShapeError(
            "an update in a traced function takes one mask, and no arrays of indices beside it",
            shapes=shown(made, *arrays),
            story=stories([made, *arrays]),
            hint="choose elements of two tensors with ts.where(mask, values, x)",
        )
    mask = arrays[0]
    if not mask.ndim and len(key) == 1:  # all of it, or nothing
        whole_of_it = _joined(kind, made, _given(made, value, made.sizes))
        return elementwise("select", mask, whole_of_it, made)
    at = next(number for number, part in enumerate(key) if isinstance(part, Given))
    axis = axes_of_parts(made, key, arrays)[at]
    check_mask(made, axis, mask)
    # Whole axes instead of those that the mask selects from; its axis in the result is that of what it selects.
    rest = (*key[:at], *(Cut(None, None, None) for _ in range(mask.ndim)), *key[at + 1 :])
    spans = spans_of(made, rest, ())
    box = spans.cut(made)
    order = spans.order(box.ndim)
    first = order.index(axis)
    sizes = spans.laid(box)
    chosen = (*sizes[:first], 1, *sizes[first + mask.ndim :])
    if ruled(rules.broadcast, value.sizes, chosen, histories=[value.history]) != chosen:
        raise ShapeError(
            "an update at a mask takes one value for all elements that the mask selects",
            shapes=shown(made, mask, value),
            story=stories([made, mask, value]),
            hint="choose elements of two tensors with ts.where(mask, values, x)",
        )
    laid = primitives.reshape(_given(made, value, chosen), (*sizes[:first], *(1,) * mask.ndim, *chosen[first + 1 :]))
    part = primitives.reshape(box, sizes)
    new = _joined(kind, part, primitives.broadcast_to(laid, sizes))
    inside = primitives.reshape(mask, (*mask.sizes, *(1,) * (len(sizes) - first - mask.ndim)))
    return _at_spans(made, elementwise("select", inside, new, part), "set", spans)


@operator
def _at(x: Array, values: Array, kind: str, key: Key, given: Sequence[Array]) -> Traced:
    made = tensor(x)
    return _at_spans(made, values, kind, spans_of(made, key, given))


def _at_spans(x: Traced, values: Any, kind: str, spans: Spans) -> Traced:
    if not spans.arrays and all(one.step in (None, 1, -1) for one in spans.slices):
        return _in_box(x, values, kind, spans)
    return _at_indices(x, values, kind, spans)


def _given(x: Traced, values: Any, shape: tuple[Size, ...]) -> Traced:
    """Values in the type of the tensor, and in the shape of the part that is updated."""
    return primitives.broadcast_to(into("an update", values, x.dtype), shape)


def _joined(kind: str, old: Traced, new: Traced) -> Traced:
    row_name = _ROWS[kind]
    return new if row_name is None else primitives.ew(row_name, old, new)


def _in_box(x: Traced, values: Any, kind: str, spans: Spans) -> Traced:
    """Updates by slices of neighbours, which replace a box of the tensor."""
    box = spans.cut(x)
    if any(size == 0 for size in box.sizes):
        return x
    new = _joined(kind, box, primitives.reshape(_given(x, values, spans.laid(box)), box.sizes))
    if any(one.step == -1 for one in spans.slices):
        new = primitives.slice_(new, [None] * x.ndim, [None] * x.ndim, [one.step for one in spans.slices])
    if box.sizes == x.sizes and not spans.moving:
        return new
    return primitives.dynamic_update(x, new, [whole(_start(x, axis, spans, box)[0]) for axis in range(x.ndim)])


def _start(x: Traced, axis: int, spans: Spans, box: Traced) -> tuple[Any, int]:
    """Where a slice begins, and its step: the first element of a box for steps of 1 either way."""
    size, length = x.sizes[axis], box.sizes[axis]
    if axis in spans.moving:
        start = spans.start(x, axis)
        last = elementwise("sub", size if isinstance(size, int) else primitives.size_value(size, i64), length)
        return elementwise("max", elementwise("min", start, last), 0), 1
    step = spans.slices[axis].step or 1
    if length == size and abs(step) == 1:
        return 0, 1
    start = _first(size, spans.slices[axis].start, step)
    return (start, step) if step != -1 else (elementwise("sub", start, known(box, axis, "an update") - 1), 1)


def _first(size: Size, start: Any, step: int) -> Any:
    """The first element of a slice that has some, along an axis of some size."""
    if start is None:
        start = 0 if step > 0 else -1
    if not isinstance(start, int):
        return primitives.size_value(start, i64)
    if isinstance(size, int):
        return slice(start, None, step).indices(size)[0]
    return start if start >= 0 else primitives.size_value(size + start, i64)


def _at_indices(x: Traced, values: Any, kind: str, spans: Spans) -> Traced:
    """Updates at integer indices along some axes; those of other slices are indices as well, whole axes are not."""
    box, indices, axes = spans.cut(x), spans.indices(x), sorted(spans.arrays)
    sizes = indices[0].sizes if indices else ()
    laid = _given(x, values, spans.laid(box, sizes))
    order = [one for one in spans.order(x.ndim) if one is not None]
    # The axes of indices in front, then all axes of the box that have no indices.
    front = [number for number, one in enumerate(order) if one == INDICES]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    named = [axis for axis in kept if axis in spans.moving or not _is_whole(x, axis, spans, box)]
    rest = [axis for axis in kept if axis not in named]
    without_new = [size for one in order for size in (sizes if one == INDICES else (box.sizes[int(one)],))]
    laid = primitives.reshape(laid, without_new)
    at: dict[Any, list[int]] = {}
    position = 0
    for one in order:
        width = len(sizes) if one == INDICES else 1
        at[one], position = list(range(position, position + width)), position + width
    permutation = [
        axis for one in ([INDICES] if front else []) + [axis for axis in kept if axis in at] for axis in at[one]
    ]
    laid = primitives.reshape(primitives.transpose(laid, permutation), (*sizes, *(box.sizes[axis] for axis in kept)))
    # Where an update goes: in order of the axes of indices, and of the slices that are named.
    along = sorted([*axes, *named])
    if not along:
        return _joined(kind, x, laid)
    grid = (*sizes, *(box.sizes[axis] for axis in named))
    places: dict[int, Traced] = {}
    for axis, found in zip(axes, indices, strict=True):
        spread = primitives.reshape(found, (*sizes, *(1,) * len(named)))
        places[axis] = primitives.broadcast_to(spread, grid)
    for number, axis in enumerate(named):
        start, step = _start(x, axis, spans, box)
        counts = primitives.iota(grid, len(sizes) + number)
        places[axis] = elementwise("add", elementwise("mul", counts, step), start)
    before = [axis for axis in rest if axis < along[0]]
    behind = [axis for axis in rest if axis > along[0]]
    found_at = {axis: len(sizes) + number for number, axis in enumerate(kept)}
    laid = primitives.transpose(
        laid,
        [*(found_at[axis] for axis in before), *range(len(sizes)), *(found_at[axis] for axis in [*named, *behind])],
    )
    row_name = _ROWS[kind]
    return primitives.scatter("set" if row_name is None else row_name, x, [places[one] for one in along], laid, along)


def _is_whole(x: Traced, axis: int, spans: Spans, box: Traced) -> bool:
    return box.sizes[axis] == x.sizes[axis] and spans.slices[axis].step in (None, 1)
