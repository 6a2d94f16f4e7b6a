"""x.at[...].set(v): a new tensor that differs in some elements. Values in a trace are never changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera.dtypes.types import i64
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.indexing import Key, Spans, is_mask, spans_of, taken_apart
from tessera.lang.operators.operands import expanded, known
from tessera.lang.operators.taking import from_front
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.arithmetic import stored as into
from tessera.lang.tracing.values import Array, Traced, shown, stories
from tessera.shapes.expr import Size, element_count

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
    if len(static) == len(arrays) == 1 and is_mask(arrays[0]):
        return _where_masked(x, arrays[0], values, kind)
    return _at(x, values, kind, static, arrays)


def stored(x: Array, key: Any, values: Array) -> Traced:
    """The tensor after x[key] = values."""
    return _update(x, values, "set", key)


@operator
def _where_masked(x: Array, mask: Array, values: Array, kind: str) -> Traced:
    """One value wherever a mask over the first axes holds; how many elements these are need not be known."""
    made, chosen = tensor(x), tensor(mask)
    value = _given(made, values, ()) if not primitives.lift(values).sizes else None
    if value is None or chosen.sizes != made.sizes[: chosen.ndim]:
        raise ShapeError(
            "an update at a mask takes one value, and a mask with the shape of the first axes",
            shapes=shown(made, chosen, primitives.lift(values)),
            story=stories([made, chosen]),
            hint="choose elements of two tensors with ts.where(mask, values, x)",
        )
    laid = primitives.broadcast_to(value, made.sizes)
    new = laid if (row_name := _ROWS[kind]) is None else primitives.ew(row_name, made, laid)
    return elementwise("select", expanded(chosen, range(chosen.ndim, made.ndim)), new, made)


@operator
def _at(x: Array, values: Array, kind: str, key: Key, given: Sequence[Array]) -> Traced:
    made = tensor(x)
    spans = spans_of(made, key, given)
    if spans.arrays:
        return _at_indices(made, values, kind, spans)
    return _in_box(made, values, kind, spans)


def _given(x: Traced, values: Any, shape: tuple[Size, ...]) -> Traced:
    """Values in the type of the tensor, and in the shape of the part that is updated."""
    return primitives.broadcast_to(into("an update", values, x.dtype), shape)


def _in_box(x: Traced, values: Any, kind: str, spans: Spans) -> Traced:
    """Updates by slices: each element that lies in the box takes the value at its place there."""
    box = spans.cut(x)
    laid = primitives.reshape(_given(x, values, spans.laid(box)), box.sizes)
    inside: Traced | None = None
    for axis, one in enumerate(spans.slices):
        if box.sizes[axis] == x.sizes[axis] and one.step in (None, 1):
            continue
        start, count, step = _counted(x, axis, one, box.sizes[axis])
        if not count:
            return x
        indices = primitives.iota(x.sizes, axis)
        apart = elementwise("sub", indices, start)
        index = elementwise("floordiv", apart, step)
        hit = elementwise("and", elementwise("ge", index, 0), elementwise("lt", index, count))
        if step not in (1, -1):
            hit = elementwise("and", hit, elementwise("eq", elementwise("mul", index, step), apart))
        inside = hit if inside is None else elementwise("and", inside, hit)
        row = primitives.iota((x.sizes[axis],), 0)
        spot = elementwise("floordiv", elementwise("sub", row, start), step)
        spot = elementwise("max", elementwise("min", spot, count - 1), 0)
        laid = primitives.gather(laid, spot, axis)
    row_name = _ROWS[kind]
    new = laid if row_name is None else primitives.ew(row_name, x, laid)
    return new if inside is None else elementwise("select", inside, new, x)


def _counted(x: Traced, axis: int, cut: slice, size: Size) -> tuple[int, int, int]:
    """The start of a slice, the number of its elements, and its step."""
    if isinstance(size, int) and (cut.start is None or cut.start >= 0) and (cut.step is None or cut.step > 0):
        return cut.start or 0, size, cut.step or 1
    start, stop, step = cut.indices(known(x, axis, "an update of a slice"))
    return start, len(range(start, stop, step)), step


def _at_indices(x: Traced, values: Any, kind: str, spans: Spans) -> Traced:
    """Integer indices along one axis: each slice looks for the updates that name it."""
    if len(spans.arrays) > 1 or spans.new or any(one != slice(None) for one in spans.slices):
        raise ShapeError(
            "an update takes integer indices along one axis, and whole slices along the others",
            shapes=shown(x),
            story=x.history.lines(),
            hint="reshape the tensor so that the indices lie along one axis",
        )
    ((axis, indices),) = spans.arrays.items()
    size = x.sizes[axis]
    given = _given(x, values, (*x.sizes[:axis], *indices.sizes, *x.sizes[axis + 1 :]))
    count = element_count(indices.sizes)
    flat = primitives.cast(primitives.reshape(from_front(x, axis, indices), (count,)), i64)
    given = primitives.reshape(given, (*x.sizes[:axis], count, *x.sizes[axis + 1 :]))
    if kind != "multiply":
        return primitives.scatter(kind, x, flat, given, axis)
    # Factors of one element are multiplied first: each slice looks for those that name it.
    flat = primitives.looked_at(flat, size, f"axis {axis}")
    grid, rest = (size, count), x.ndim - axis - 1
    names = primitives.ew("eq", primitives.iota(grid, 0), primitives.broadcast_to(expanded(flat, [0]), grid))
    shape = (*x.sizes[:axis], size, count, *x.sizes[axis + 1 :])
    hits = primitives.broadcast_to(primitives.reshape(names, (*(1,) * axis, size, count, *(1,) * rest)), shape)
    factors = elementwise("select", hits, primitives.broadcast_to(expanded(given, [axis]), shape), True)
    return primitives.ew("mul", x, primitives.reduce("prod", factors, [axis + 1]))
