"""Searching: indices of the largest and smallest elements and in a sorted row; counts of elements that are not 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tessera.dtypes.types import Kind, i64, u8
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators import statistics
from tessera.lang.operators.by_rows import extreme_places, goes_by_rows
from tessera.lang.operators.operands import expanded, folded, moved_last, one_axis, replaced, require_elements, tensors
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes.expr import Size, element_count


def _extreme_index(kind: str, x: Any, axis: int | None, keepdims: bool) -> Traced:
    """The first index of the extreme; a NaN is more extreme than any number."""
    made = tensor(x)
    name = f"arg{kind}"
    rank = made.ndim
    if made.dtype.kind is Kind.BOOL:
        made = primitives.cast(made, u8)
    if axis is None:
        made, along = primitives.reshape(made, (-1,)), 0
    else:
        along = one_axis(made, axis, name)
    require_elements(made, [along], name)
    if goes_by_rows(made, made.sizes[along]):
        last = primitives.transpose(made, moved_last(made.ndim, along))
        rows = primitives.reshape(last, (element_count(last.sizes[:-1]), last.sizes[-1]))
        first = extreme_places(rows, largest=kind == "max")
        kept = primitives.reshape(first, replaced(made.sizes, along, 1))
        if axis is None:
            return primitives.reshape(kept, (1,) * rank if keepdims else ())
        return folded(kept, [along], keepdims)
    extreme = primitives.broadcast_to(primitives.reduce(kind, made, [along], keepdims=True), made.sizes)
    hit = primitives.ew("eq", made, extreme)
    if made.dtype.is_float:
        hit = primitives.ew("or", hit, primitives.ew("isnan", made))
    indices = primitives.iota(made.sizes, along)
    first = primitives.reduce("min", elementwise("select", hit, indices, 2**62), [along], keepdims=True)
    if axis is None:
        return primitives.reshape(first, (1,) * rank if keepdims else ())
    return folded(first, [along], keepdims)


@operator
def argmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Traced:
    """The index of the first largest element along `axis`, or of the flat array; that of a NaN if there is one."""
    return _extreme_index("max", x, axis, keepdims)


@operator
def argmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Traced:
    """The index of the first smallest element along `axis`, or of the flat array; that of a NaN if there is one."""
    return _extreme_index("min", x, axis, keepdims)


def before(a: Traced, b: Traced, *, descending: bool = False, or_equal: bool) -> Traced:
    """Whether `a` comes before `b` in sorted order, NaN after all numbers; with `or_equal` also where neither does."""
    row = ("ge" if or_equal else "gt") if descending else ("le" if or_equal else "lt")
    found = elementwise(row, a, b)
    if not a.dtype.is_float:
        return found
    nan_a, nan_b = primitives.ew("isnan", a), primitives.ew("isnan", b)
    if or_equal:
        return elementwise("or", found, nan_b)
    return elementwise("or", found, elementwise("and", nan_b, primitives.ew("not", nan_a)))


def halved(low: Traced, high: Traced, size: int, passes: Callable[[Traced], Traced]) -> Traced:
    """The first index from `low` on that does not pass, or `high`, which is at most `size` further."""
    for _ in range(size.bit_length()):
        middle = elementwise("shr", primitives.ew("add", low, high), 1)
        still = primitives.ew("lt", low, high)
        passed = passes(middle)
        low, high = (
            elementwise("select", primitives.ew("and", still, passed), elementwise("add", middle, 1), low),
            elementwise("select", primitives.ew("and", still, primitives.ew("not", passed)), middle, high),
        )
    return low


@operator
def searchsorted(
    x1: Array, x2: Array, /, *, side: Literal["left", "right"] = "left", sorter: Array | None = None
) -> Traced:
    """The index in the sorted x1 before which each element of x2 belongs; behind equal ones with side="right"."""
    if sorter is not None:
        x1 = primitives.gather(tensor(x1), tensor(sorter), 0)
    row, values = tensors("searchsorted", x1, x2)
    if row.ndim != 1 or side not in ("left", "right"):
        raise ShapeError(
            f"searchsorted takes a row of sorted elements and a side, left or right; got {side!r}",
            shapes=shown(row, values),
            hint="search one row at a time",
        )
    if row.dtype.kind is Kind.BOOL:
        row, values = primitives.cast(row, u8), primitives.cast(values, u8)
    size = row.sizes[0]
    if isinstance(size, int):
        return _by_halves(row, values, size, side)
    return _by_counting(row, values, size, side)


def _passes(element: Traced, value: Traced, side: str) -> Traced:
    """Whether an element of the row lies before the index that is searched."""
    return before(element, value, or_equal=side == "right")


def _by_halves(row: Traced, values: Traced, size: int, side: str) -> Traced:
    low = primitives.constant(0, values.sizes, i64)
    if size == 0:
        return low
    high = primitives.constant(size, values.sizes, i64)

    def passes(middle: Traced) -> Traced:
        # Where the search has ended the middle may be the size itself.
        element = primitives.gather(row, elementwise("min", middle, size - 1), 0)
        return _passes(element, values, side)

    return halved(low, high, size, passes)


def _by_counting(row: Traced, values: Traced, size: Size, side: str) -> Traced:
    shape = (*values.sizes, size)
    elements = primitives.broadcast_to(row, shape)
    spread = primitives.broadcast_to(expanded(values, [values.ndim]), shape)
    return primitives.reduce("sum", primitives.cast(_passes(elements, spread, side), i64), [values.ndim])


@operator
def count_nonzero(x: Array, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Traced:
    """The number of elements over `axis` that are not 0."""
    return statistics.sum(statistics.truth(x), axis=axis, keepdims=keepdims)
