"""Sorting along an axis, stable, NaN last: short rows and rows of unknown length by counting, long ones by merging."""

from __future__ import annotations

import math
from typing import Any

from tessera.dtypes.types import Kind, i64, u8
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.by_rows import MOST_SELECTED, goes_by_rows, order_of_rows, selected, sorted_rows
from tessera.lang.operators.operands import expanded, known, moved_from_last, moved_last, one_axis
from tessera.lang.operators.searching import before, halved
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes.expr import Size, element_count

_SHORT = 64
"""Rows up to this length are sorted by counting: n² compares in one pass are less than log n passes."""
_HELD = 16384
"""Rows up to this length are sorted by one program instance of a GPU."""
_MOST_COUNTED = 1024
"""Rows of unknown length are, too, up to here; each longer length is a program of its own."""


def _sorting_order(rows: Traced, descending: bool) -> Traced:
    """For keys [rows, n], the index in the row that each element of the sorted row comes from."""
    if rows.dtype.kind is Kind.BOOL:
        rows = primitives.cast(rows, u8)
    size = rows.sizes[1]
    if not isinstance(size, int) and not rows.trace.sizes.ask(size, "<=", _MOST_COUNTED):
        size = known(rows, 1, "sorting a long row")
    if not isinstance(size, int) or size <= _SHORT:
        return _by_counting(rows, size, descending)
    whole = goes_by_rows(rows, size, most_bits=32)
    if whole and size <= _HELD:
        return order_of_rows(rows, descending=descending)
    run, blocks = _HELD if whole else _SHORT, 1
    while blocks * run < size:
        blocks *= 2
    keys = _padded(rows, size, blocks * run, descending)
    apart = primitives.reshape(keys, (rows.sizes[0] * blocks, run))
    first = order_of_rows(apart, descending=descending) if whole else _by_counting(apart, run, descending)
    order = primitives.reshape(first, keys.sizes)
    index = primitives.iota(keys.sizes, 1)
    order = primitives.ew("add", order, primitives.ew("sub", index, elementwise("rem", index, run)))
    keys = _along_rows(keys, order)
    while blocks > 1:
        source = _merged(keys, run, descending)
        keys, order = _along_rows(keys, source), _along_rows(order, source)
        run, blocks = 2 * run, blocks // 2
    return primitives.slice_(order, [None, None], [None, size])


def _padded(rows: Traced, size: int, target: int, descending: bool) -> Traced:
    """Rows made longer by elements that no other comes after; equal ones stand before them already."""
    if size == target:
        return rows
    last: Any = math.nan
    if not rows.dtype.is_float:
        last = int(rows.dtype.min_value if descending else rows.dtype.max_value)
    filler = primitives.constant(last, (rows.sizes[0], target - size), rows.dtype)
    return primitives.concatenate([rows, filler], 1)


def _by_counting(rows: Traced, size: Size, descending: bool) -> Traced:
    """The order by counting: the rank of an element is the number of those that come before it."""
    cube = (rows.sizes[0], size, size)
    mine = primitives.broadcast_to(expanded(rows, [2]), cube)
    other = primitives.broadcast_to(expanded(rows, [1]), cube)
    my_index, other_index = primitives.iota(cube, 1), primitives.iota(cube, 2)
    earlier = primitives.ew("lt", other_index, my_index)
    ahead = elementwise(
        "or",
        before(other, mine, descending=descending, or_equal=False),
        elementwise("and", earlier, primitives.ew("not", before(mine, other, descending=descending, or_equal=False))),
    )
    ranks = primitives.reduce("sum", primitives.cast(ahead, i64), [2])
    asked = primitives.ew("eq", primitives.broadcast_to(expanded(ranks, [1]), cube), my_index)
    return primitives.reduce("max", elementwise("select", asked, other_index, 0), [2])


def _along_rows(x: Traced, indices: Traced) -> Traced:
    """Elements of [rows, n] at indices [rows, k] of the same row; n is known."""
    size = x.sizes[1]
    first = elementwise("mul", primitives.iota(indices.sizes, 0), size)
    flat = primitives.reshape(x, (x.sizes[0] * size,))
    return primitives.gather(flat, primitives.ew("add", first, indices), 0)


def _merged(keys: Traced, run: int, descending: bool) -> Traced:
    """Where elements come from when sorted runs are merged in pairs, found for each index of the result by itself.

    Of the first k elements of a merged pair, i come from the left run: the least i for which the left run's next
    element does not belong before the right run's last one taken. Halving finds it.
    """
    index = primitives.iota(keys.sizes, 1)
    k = elementwise("rem", index, 2 * run)
    start = primitives.ew("sub", index, k)
    low = elementwise("max", elementwise("sub", k, run), 0)
    high = elementwise("min", k, run)

    def element(first: int, at: Traced) -> Traced:
        # Indices that are not asked for in the end are kept inside the run.
        held = elementwise("min", elementwise("max", at, 0), run - 1)
        return _along_rows(keys, elementwise("add", primitives.ew("add", start, held), first))

    def keeps(i: Traced, j: Traced) -> Traced:
        return before(element(0, i), element(run, j), descending=descending, or_equal=True)

    i = halved(low, high, run, lambda i: keeps(i, elementwise("sub", primitives.ew("sub", k, i), 1)))
    j = primitives.ew("sub", k, i)
    left_over, right_over = elementwise("ge", i, run), elementwise("ge", j, run)
    takes_left = primitives.ew("and", primitives.ew("not", left_over), primitives.ew("or", right_over, keeps(i, j)))
    of_left, of_right = primitives.ew("add", start, i), elementwise("add", primitives.ew("add", start, j), run)
    return primitives.ew("select", takes_left, of_left, of_right)


def _as_rows(x: Traced, axis: int) -> Traced:
    last = primitives.transpose(x, moved_last(x.ndim, axis))
    return primitives.reshape(last, (element_count(last.sizes[:-1]), last.sizes[-1]))


def _from_rows(rows: Traced, x: Traced, axis: int) -> Traced:
    sizes = [size for at, size in enumerate(x.sizes) if at != axis]
    laid = primitives.reshape(rows, (*sizes, rows.sizes[1]))
    return primitives.transpose(laid, moved_from_last(x.ndim, axis))


def _picked(rows: Traced, order: Traced) -> Traced:
    """The keys in their order; in rows of unknown length each is found by its index."""
    if isinstance(rows.sizes[1], int):
        return _along_rows(rows, order)
    return primitives.gather_along(rows, [primitives.iota(order.sizes, 0), order], [0, 1])


def _sorted(name: str, x: Any, axis: int, descending: bool) -> tuple[Traced, int, Traced, Traced]:
    made = tensor(x)
    if not made.ndim:
        raise ShapeError(f"{name}: a number has no axis to sort along", shapes=shown(made), hint="give a row")
    axis = one_axis(made, axis, name)
    rows = _as_rows(made, axis)
    return made, axis, rows, _sorting_order(rows, descending)


def _sorted_at_once(x: object, axis: int, descending: bool) -> Traced | None:
    """Values without their places; None where that is no way: derivatives go by places."""
    made = tensor(x)
    if not made.ndim:
        return None
    axis = one_axis(made, axis, "sort")
    if made.trace.derived or not goes_by_rows(made, made.sizes[axis]):
        return None
    found = sorted_rows(_as_rows(made, axis), descending=descending)
    return None if found is None else _from_rows(found, made, axis)


@operator
def argsort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Traced:
    """The indices that sort `x` along `axis`; equal elements keep their order, NaN comes last."""
    made, axis, _, order = _sorted("argsort", x, axis, descending)
    return _from_rows(order, made, axis)


@operator
def sort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Traced:
    """`x` sorted along `axis`; equal elements keep their order, NaN comes last."""
    if (found := _sorted_at_once(x, axis, descending)) is not None:
        return found
    made, axis, rows, order = _sorted("sort", x, axis, descending)
    return _from_rows(_picked(rows, order), made, axis)


def _selected(x: object, k: int, axis: int, largest: bool) -> tuple[Traced, Traced] | None:
    """Few elements of each row without sorting all; None where that is no way."""
    made = tensor(x)
    if not made.ndim or not 0 < k <= MOST_SELECTED:
        return None
    axis = one_axis(made, axis, "topk")
    length = made.sizes[axis]
    if not goes_by_rows(made, length, most_bits=32) or not isinstance(length, int) or k > length:
        return None
    rows = _as_rows(made, axis)
    values, places = selected(rows, k, largest=largest)
    if made.trace.derived:
        values = _picked(rows, places)
    return _from_rows(values, made, axis), _from_rows(places, made, axis)


@operator
def topk(x: Array, k: int, /, axis: int = -1, *, largest: bool = True) -> tuple[Traced, Traced]:
    """The k largest elements along `axis`, the largest first, and their indices; the smallest without `largest`."""
    if (found := _selected(x, k, axis, largest)) is not None:
        return found
    made, axis, rows, order = _sorted("topk", x, axis, largest)
    count = rows.sizes[1]
    if k < 0 or (isinstance(count, int) and k > count):
        raise ShapeError(f"topk: {k} of {count} elements", shapes=shown(made), hint="ask for no more than there are")
    first = primitives.slice_(order, [None, None], [None, k])
    return _from_rows(_picked(rows, first), made, axis), _from_rows(first, made, axis)
