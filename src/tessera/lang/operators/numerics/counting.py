"""Elements by groups: counts of whole numbers, histograms, and folds of the slices that belong to a segment."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence

import numpy as np

from tessera.dtypes.types import Kind, f64, i64
from tessera.errors import DtypeError, ShapeError, TesseraError
from tessera.ir.common import reductions
from tessera.lang.operator import operator, operator_called
from tessera.lang.operators import statistics
from tessera.lang.operators.operands import narrow, refusal, same_sizes, wide
from tessera.lang.operators.searching import searchsorted
from tessera.lang.operators.statistics import summed_type
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.sizes import plain_size
from tessera.lang.tracing.values import Array, Traced, shown, stories
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import DimLike, format_shape


def _one_more_than_all(name: str, x: Array, parameter: str) -> int:
    """One more than the largest of whole numbers, which are known outside of a trace."""
    if isinstance(x, Traced):
        raise ShapeError(
            f"{name}: without {parameter}= the size of the result depends on elements, which are not known while a "
            "function is traced",
            shapes=shown(x),
            story=stories([x]),
            hint=f"give {parameter}=, one more than the largest number",
        )
    made = x if isinstance(x, Tensor) else asarray(x)
    if not made.dtype.is_integer:
        raise DtypeError(
            f"{name} expects whole numbers, got {made.dtype}",
            shapes=[f"{format_shape(made.shape)} of {made.dtype}"],
            hint="cast them: ts.astype(x, ts.i64)",
        )
    return int(statistics.max(made)) + 1 if made.size else 0


def bincount(x: Array, weights: Array | None = None, /, minlength: int = 0, *, length: int | None = None) -> Traced:
    """How often each number from 0 on is in a row of whole numbers, or the sum of its weights. As in NumPy.

    The result has `minlength` elements, or as many as the largest number asks for. In a trace that is not known: give
    `length`. Numbers outside of it are indices out of range.
    """
    if length is None:
        length = builtins.max(minlength, _one_more_than_all("bincount", x, "length"))
    return _bincount(x, weights, length)


@operator
def _bincount(x: Array, weights: Array | None, length: DimLike) -> Traced:
    made = tensor(x)
    if not made.dtype.is_integer:
        raise refusal("bincount", "whole numbers", [made], "cast them: ts.astype(x, ts.i64)")
    if made.ndim != 1:
        raise ShapeError("bincount: expected one row of numbers", shapes=shown(made), hint="flatten them first")
    made = primitives.looked_at(made, plain_size(length), "the counts")
    if weights is None:
        return _totals(made, primitives.constant(1, made.sizes, i64), length)
    given = tensor(weights)
    same_sizes("bincount", made, given)
    carried = _carried(given)
    found = _totals(made, primitives.broadcast_to(carried, made.sizes), length)
    return narrow(found, given.dtype) if given.dtype.is_float else found


def _carried(x: Traced) -> Traced:
    """Values in the type that they are added up in."""
    return wide(x) if x.dtype.is_float else primitives.cast(x, summed_type(x, None))


def _totals(groups: Traced, values: Traced, length: DimLike) -> Traced:
    """For each group the sum of the values that are named so."""
    start = primitives.constant(0, (length,), values.dtype)
    return primitives.scatter("add", start, [primitives.cast(groups, i64)], values, [0])


# Histograms


def histogram(
    x: Array,
    /,
    bins: int | Sequence[float] | Array = 10,
    *,
    range: tuple[float, float] | None = None,
    weights: Array | None = None,
    density: bool = False,
) -> tuple[Traced, Traced]:
    """How many elements lie in each bin, or the sum of their weights, and the edges of the bins. As in NumPy.

    `bins` is a number of equal bins from the least element to the largest, or over `range`, or the sorted edges of
    all bins. A bin has its lower edge in it, the last bin both. `density` divides by the total and by widths. Elements
    outside of all bins, and NaN, count nowhere.
    """
    if isinstance(bins, int):
        if bins < 1:
            raise ShapeError(f"histogram: expected at least one bin, got {bins}", hint="the usual number is 10")
        if range is not None and not (np.isfinite(range).all() and range[0] <= range[1]):
            raise TesseraError(f"histogram: {range} is no range of numbers", hint="give (least, largest)")
        return _histogram(x, weights, bins, None if range is None else (float(range[0]), float(range[1])), density)
    if range is not None:
        raise TesseraError("histogram: a range is for a number of bins", hint="leave it out beside edges of bins")
    edges = bins if isinstance(bins, Traced | Tensor) else asarray(bins)
    return _histogram_between(x, weights, edges, density)


@operator
def _histogram(
    x: Array, weights: Array | None, count: int, bounds: tuple[float, float] | None, density: bool
) -> tuple[Traced, Traced]:
    values = _flat_floats(x)
    if bounds is None:
        low, high = (primitives.cast(primitives.reduce(kind, values, [0]), f64) for kind in ("min", "max"))
        nothing = ew("gt", low, high)
        low, high = (elementwise("select", nothing, end, one) for one, end in ((low, 0.0), (high, 1.0)))
    else:
        low, high = (primitives.constant(end, (), f64) for end in bounds)
    alone = ew("eq", low, high)
    low, high = (
        elementwise("select", alone, elementwise("add", one, by), one) for one, by in ((low, -0.5), (high, 0.5))
    )
    index = primitives.iota((count + 1,), 0)
    step = elementwise("div", ew("sub", high, low), float(count))
    line = elementwise("add", elementwise("mul", primitives.cast(index, f64), step), low)
    edges = elementwise("select", elementwise("eq", index, count), high, line)
    return _in_bins(values, weights, primitives.cast(edges, values.dtype), density)


@operator
def _histogram_between(x: Array, weights: Array | None, edges: Array, density: bool) -> tuple[Traced, Traced]:
    values, ends = _flat_floats(x), tensor(edges)
    size = ends.sizes[0] if ends.ndim == 1 else 0
    if isinstance(size, int) and size < 2:
        raise ShapeError("histogram: expected a row of two edges or more", shapes=shown(ends), hint="give sorted edges")
    if ends.dtype is not values.dtype:
        values, ends = primitives.cast(values, f64), primitives.cast(ends, f64)
    return _in_bins(values, weights, ends, density)


def _flat_floats(x: Array) -> Traced:
    """Elements as floats along one axis: integers in f64, as NumPy has them."""
    made = primitives.reshape(tensor(x), (-1,))
    return wide(made) if made.dtype.is_float else primitives.cast(made, f64)


def _in_bins(values: Traced, weights: Array | None, edges: Traced, density: bool) -> tuple[Traced, Traced]:
    count = plain_size(edges.sizes[0] - 1)
    last = primitives.gather(edges, primitives.size_value(count), 0)
    bin_ = elementwise("sub", searchsorted(edges, values, side="right"), 1)
    most = elementwise("sub", primitives.size_value(count), 1)
    bin_ = elementwise("select", elementwise("eq", values, last), most, bin_)
    inside = ew(
        "and",
        elementwise("ge", values, primitives.gather(edges, primitives.constant(0, (), i64), 0)),
        elementwise("le", values, last),
    )
    # What lies outside goes to one more bin, which is left out then.
    bin_ = elementwise("select", inside, bin_, primitives.size_value(count))
    given = primitives.constant(1, values.sizes, i64)
    if weights is not None:
        given = _carried(primitives.reshape(tensor(weights), (-1,)))
        same_sizes("histogram", values, given)
    totals = _totals(bin_, primitives.broadcast_to(given, values.sizes), plain_size(count + 1))
    found = primitives.slice_(totals, [None], [-1])
    if not density:
        return found, edges
    widths = ew("sub", primitives.slice_(edges, [1], [None]), primitives.slice_(edges, [None], [-1]))
    shares = primitives.cast(found, edges.dtype)
    shares = elementwise("div", shares, primitives.reduce("sum", shares, [0]))
    return ew("div", shares, widths), edges


# Segments


def _segmented(name: str, kind: str) -> Callable[..., Traced]:
    """An operator that folds the slices of each segment; how many segments there are is known."""

    def function(x: Array, segments: Array, count: DimLike) -> Traced:
        made, which = tensor(x), tensor(segments)
        if not which.dtype.is_integer:
            raise refusal(name, "numbers of segments that are whole", [which], "cast them: ts.astype(x, ts.i64)")
        if which.ndim != 1 or not made.ndim:
            raise ShapeError(
                f"{name}: expected the number of a segment for each slice along the first axis",
                shapes=shown(made, which),
                hint="give a row of numbers; an axis of segments comes to the front with ts.moveaxis",
            )
        if made.dtype.kind is Kind.BOOL or (kind == "mean" and not made.dtype.is_float):
            raise refusal(name, "floats" if kind == "mean" else "numbers", [made], "cast them first")
        same_sizes(name, made, which, axes=1)
        spots = primitives.cast(primitives.looked_at(which, plain_size(count), "the segments"), i64)
        shape = (count, *made.sizes[1:])
        if kind in ("max", "min"):
            start = primitives.constant(reductions.check(kind, made.dtype).identity(made.dtype), shape, made.dtype)
            return primitives.scatter(kind, start, [spots], made, [0])
        values = _carried(made)
        totals = primitives.scatter("add", primitives.constant(0, shape, values.dtype), [spots], values, [0])
        if kind == "sum":
            return narrow(totals, made.dtype) if made.dtype.is_float else totals
        counts = _totals(spots, primitives.constant(1.0, spots.sizes, values.dtype), count)
        laid = primitives.reshape(counts, (count, *(1,) * (made.ndim - 1)))
        return narrow(elementwise("div", totals, laid), made.dtype)

    return operator_called(f"_{name}", f"{name} of a known number of segments.", function)


_segment_sum = _segmented("segment_sum", "sum")
_segment_mean = _segmented("segment_mean", "mean")
_segment_max = _segmented("segment_max", "max")
_segment_min = _segmented("segment_min", "min")


def segment_sum(x: Array, segments: Array, /, num_segments: int | None = None) -> Traced:
    """For each segment the sum of the slices x[i] with segments[i] of its number; 0 of none. As in JAX.

    There are `num_segments`, or as many as the largest number asks for, which in a trace is not known. Numbers outside
    are indices out of range. Integers add up in 64 bits, as in `sum`.
    """
    return _segment_sum(x, segments, _count(segments, num_segments))


def segment_mean(x: Array, segments: Array, /, num_segments: int | None = None) -> Traced:
    """For each segment the mean of its slices of floats, as `segment_sum` counts segments; NaN of none."""
    return _segment_mean(x, segments, _count(segments, num_segments))


def segment_max(x: Array, segments: Array, /, num_segments: int | None = None) -> Traced:
    """For each segment the largest elements of its slices, the least of the type of none; see `segment_sum`."""
    return _segment_max(x, segments, _count(segments, num_segments))


def segment_min(x: Array, segments: Array, /, num_segments: int | None = None) -> Traced:
    """For each segment the least elements of its slices, the largest of the type of none; see `segment_sum`."""
    return _segment_min(x, segments, _count(segments, num_segments))


def _count(segments: Array, given: int | None) -> int:
    return _one_more_than_all("segments", segments, "num_segments") if given is None else given
