"""Operators by kernels of rows: how arrays become rows that program instances hold, and what becomes of their parts.

Rows that an instance holds are one launch. Longer ones are cut into parts that are rows of their own, as many as keep
the machine busy where rows are few, and what the parts give is combined in order: results are the same in every run.
"""

from __future__ import annotations

import math

from tessera.dtypes.types import Kind
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.values import Traced
from tessera.shapes.expr import element_count

_LEAST = 256
"""Rows shorter than this are left to other ways: so little is done by algebra of graphs."""
_BUSY = 1024
"""Program instances that keep a GPU busy."""
_LONG = 16384
"""Parts of rows that are read once, piece by piece: longer ones need no other instances."""
MOST_SELECTED = 128
"""Selected elements are put in order by comparing all with all."""


def goes_by_rows(x: Traced, length: object, *, most_bits: int = 64) -> bool:
    """Whether an operator on rows of a length calls kernels: on GPUs, where the length is known."""
    numbers = x.dtype.kind in (Kind.FLOAT, Kind.INT, Kind.UINT) and 8 <= x.dtype.bits <= most_bits
    here = _on_a_gpu(x) and x.trace.sizes.numbers is not None and 0 not in x.sizes
    return here and numbers and isinstance(length, int) and length >= _LEAST


def _on_a_gpu(x: Traced) -> bool:
    return not x.trace.device.is_host


def _part(length: int, most: int) -> int | None:
    """The longest part, no longer than `most`, that rows of a length are whole numbers of; None where all are short."""
    least = -(-length // most)
    count = next((parts for parts in range(least, 4 * least + 1) if length % parts == 0), None)
    return None if count is None else length // count


def _cut(rows: Traced, filler: float, most: int) -> tuple[Traced, int]:
    """Rows in parts that are rows of their own, and how many of them a row is; the last part is filled up."""
    length = rows.sizes[1]
    assert isinstance(length, int)
    part = _part(length, most)
    if part is None:
        part = most
        more = -length % part
        rows = primitives.concatenate([rows, primitives.constant(filler, (rows.sizes[0], more), rows.dtype)], 1)
        length += more
    count = length // part
    return primitives.reshape(rows, (element_count([rows.sizes[0], count]), part)), count


# Running results


def running_rows(kind: str, rows: Traced) -> Traced:
    """Running reductions of rows [n, length]: those of parts, each with what all parts before it come to."""
    from tessera.lang.operators.row_kernels import PART, held, running_along_rows, running_parts, totals_of_rows

    length = rows.sizes[1]
    assert isinstance(length, int)
    if length <= 2 * PART:
        return held(running_along_rows, length, rows.dtype)(rows, kind=kind)
    neutral = {"sum": 0, "prod": 1}[kind]
    parts, count = _cut(rows, neutral, PART)
    width = parts.sizes[1]
    assert isinstance(width, int)
    totals = held(totals_of_rows, width, rows.dtype)(parts, kind=kind)
    upto = running_rows(kind, primitives.reshape(totals, (rows.sizes[0], count)))
    first = primitives.constant(neutral, (rows.sizes[0], 1), totals.dtype)
    before = primitives.concatenate([first, primitives.slice_(upto, [None, None], [None, count - 1])], 1)
    found = held(running_parts, width, rows.dtype)(parts, primitives.reshape(before, totals.sizes), kind=kind)
    whole = primitives.reshape(found, (rows.sizes[0], count * width))
    return whole if count * width == length else primitives.slice_(whole, [None, None], [None, length])


# Places of extremes


def extreme_places(rows: Traced, *, largest: bool) -> Traced:
    """The place of the first extreme of each row of [n, length], as [n, 1] of i64."""
    from tessera.lang.operators.row_kernels import PART, worst

    count, length = rows.sizes
    assert isinstance(length, int)
    if not isinstance(count, int) or count >= _BUSY or length <= PART:
        return _extremes(rows, largest=largest)[1]
    most = max(PART, min(_LONG, -(-length * count // _BUSY)))
    parts, several = _cut(rows, worst(rows.dtype, largest=largest), most)
    width = parts.sizes[1]
    values, places = (primitives.reshape(one, (count, several)) for one in _extremes(parts, largest=largest))
    which = extreme_places(values, largest=largest)
    row = primitives.iota((count, several), 1)
    hit = primitives.ew("eq", row, primitives.broadcast_to(which, row.sizes))
    starts = elementwise("mul", row, width)
    at = primitives.ew("add", starts, places)
    return primitives.reduce("sum", elementwise("select", hit, at, 0), [1], keepdims=True)


def _extremes(rows: Traced, *, largest: bool) -> tuple[Traced, Traced]:
    from tessera.lang.operators.row_kernels import PART, extremes_of_rows, held

    length = rows.sizes[1]
    assert isinstance(length, int)
    values, places = held(extremes_of_rows, min(length, PART))(rows, largest=largest)
    return values, places


# Selection


def selected(rows: Traced, k: int, *, largest: bool) -> tuple[Traced, Traced]:
    """The k elements of each row of [n, length] that come first in order, and their places, of i64."""
    from tessera.lang.operators.row_kernels import SELECTED, held, order_selected, selecting, worst

    count, length = rows.sizes
    assert isinstance(length, int)
    if length <= SELECTED:
        found = held(selecting(k), length)(rows, largest=largest)
        values, places = held(order_selected, k * k)(found, rows, largest=largest)
        return values, places
    # NaN come last either way, also behind what is made up: that has to be NaN, too.
    last = math.nan if rows.dtype.is_float else worst(rows.dtype, largest=largest)
    parts, several = _cut(rows, last, SELECTED)
    width = parts.sizes[1]
    # Of equal elements those of the first parts come first, as they do in the row.
    best, at = selected(parts, k, largest=largest)
    starts = elementwise("mul", primitives.iota((count, several, k), 1), width)
    places = primitives.ew("add", primitives.reshape(at, (count, several, k)), starts)
    values, which = selected(primitives.reshape(best, (count, several * k)), k, largest=largest)
    flat = primitives.reshape(places, (element_count([count, several * k]),))
    first = elementwise("mul", primitives.iota(which.sizes, 0), several * k)
    return values, primitives.gather(flat, primitives.ew("add", first, which), 0)


# Sorting


def sorted_rows(rows: Traced, *, descending: bool) -> Traced | None:
    """Rows of [n, length] in order; None where no program instance holds one."""
    from tessera.lang.operators.row_kernels import MOST, in_order, sort_rows

    length = rows.sizes[1]
    if not isinstance(length, int) or length > MOST:
        return None
    return in_order(sort_rows, length, rows.dtype.bits)(rows, descending=descending)


def order_of_rows(rows: Traced, *, descending: bool) -> Traced:
    """The places that sort rows of [n, length], which program instances hold."""
    from tessera.lang.operators.row_kernels import in_order, packs, places_of_rows

    length = rows.sizes[1]
    assert isinstance(length, int)
    bits = 32 if packs(rows.dtype, length) else 64
    return in_order(places_of_rows, length, bits)(rows, descending=descending)
