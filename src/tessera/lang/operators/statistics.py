"""Folding axes: sums, means and their like, extremes, questions about all elements, running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera.dtypes.promotion import accumulator, as_dtype, compute_type
from tessera.dtypes.types import DType, Kind, bool_, f32, i64, u64
from tessera.lang.operator import operator
from tessera.lang.operators.by_rows import goes_by_rows, running_rows
from tessera.lang.operators.operands import (
    Axis,
    as_floats,
    axes_of,
    counted,
    expanded,
    folded,
    moved_from_last,
    moved_last,
    narrow,
    one_axis,
    refusal,
    replaced,
    require_elements,
    wide,
)
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced
from tessera.runtime.tensor.interface import DTypeLike
from tessera.shapes.expr import element_count


def summed_type(x: Traced, dtype: DTypeLike | None) -> DType:
    """The standard's rule: integers add up in 64 bits, floats in their own type, as their policy says."""
    if dtype is not None:
        return as_dtype(dtype)
    if x.dtype.is_float or x.dtype.policy.saturate:
        return x.dtype
    return u64 if x.dtype.kind is Kind.UINT else i64


def _total(kind: str, x: Any, axis: Axis, dtype: DTypeLike | None, keepdims: bool) -> Traced:
    made = tensor(x)
    return primitives.reduce(kind, primitives.cast(made, summed_type(made, dtype)), axes_of(made, axis, kind), keepdims)


@operator
def sum(  # noqa: A001  (the standard's name)
    x: Array, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Traced:
    """The sum over `axis`, or over all axes. Integers and bools add up in 64 bits unless `dtype` says otherwise."""
    return _total("sum", x, axis, dtype, keepdims)


@operator
def prod(x: Array, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Traced:
    """The product over `axis`, or over all axes, in the types of `sum`."""
    return _total("prod", x, axis, dtype, keepdims)


def _extreme(kind: str, x: Any, axis: Axis, keepdims: bool) -> Traced:
    made = tensor(x)
    axes = axes_of(made, axis, kind)
    if made.dtype.kind is Kind.BOOL:
        raise refusal(kind, "numbers", [made], "use any or all, or cast them to i8")
    require_elements(made, axes, kind)
    return primitives.reduce(kind, made, axes, keepdims)


@operator
def max(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Traced:  # noqa: A001  (the standard's name)
    """The largest element over `axis`, or over all axes; NaN if there is one."""
    return _extreme("max", x, axis, keepdims)


@operator
def min(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Traced:  # noqa: A001  (the standard's name)
    """The smallest element over `axis`, or over all axes; NaN if there is one."""
    return _extreme("min", x, axis, keepdims)


def averaged(x: Traced, axes: tuple[int, ...]) -> Traced:
    """The mean with the axes kept, of values in their compute type."""
    total = primitives.reduce("sum", x, axes, keepdims=True)
    return elementwise("div", total, counted(x, axes, x.dtype))


def spread(x: Traced, axes: tuple[int, ...], correction: float = 0.0) -> tuple[Traced, Traced, Traced]:
    """Mean, distances from it, and variance, of values in their compute type, with the axes kept.

    The distances are squared, not the values: no digits are lost where the mean is large.
    """
    middle = averaged(x, axes)
    apart = elementwise("sub", x, middle)
    squares = primitives.reduce("sum", primitives.ew("mul", apart, apart), axes, keepdims=True)
    return middle, apart, elementwise("div", squares, counted(x, axes, x.dtype, less=correction))


def _of_floats(
    name: str, fold: Callable[[Traced, tuple[int, ...]], Traced], x: Any, axis: Axis, keepdims: bool
) -> Traced:
    """A fold of floats that keeps its axes, computed wide and rounded once."""
    (made,) = as_floats(name, x)
    axes = axes_of(made, axis, name)
    return narrow(folded(fold(wide(made), axes), axes, keepdims), made.dtype)


@operator
def mean(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Traced:
    """The mean over `axis`, or over all axes; of integers and bools in f32, from their exact sum."""
    made = tensor(x)
    if made.dtype.is_float:
        return _of_floats("mean", averaged, made, axis, keepdims)
    axes = axes_of(made, axis, "mean")
    total = primitives.reduce("sum", primitives.cast(made, summed_type(made, None)), axes, keepdims=True)
    return folded(elementwise("div", total, counted(made, axes, f32)), axes, keepdims)


@operator
def var(x: Array, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Traced:
    """The variance over `axis`, or over all axes; the sum of squares is divided by their number less `correction`."""
    return _of_floats("var", lambda values, axes: spread(values, axes, correction)[2], x, axis, keepdims)


@operator
def std(x: Array, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Traced:
    """The standard deviation over `axis`, or over all axes: the root of `var`."""

    def root(values: Traced, axes: tuple[int, ...]) -> Traced:
        return primitives.ew("sqrt", spread(values, axes, correction)[2])

    return _of_floats("std", root, x, axis, keepdims)


def truth(x: Any) -> Traced:
    """Where elements are not 0; bools as they are."""
    made = tensor(x)
    return made if made.dtype.base is bool_ else elementwise("ne", made, 0)


@operator
def all(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Traced:  # noqa: A001  (the standard's name)
    """Whether all elements over `axis` are true, or not 0."""
    made = truth(x)
    return primitives.reduce("and", made, axes_of(made, axis, "all"), keepdims)


@operator
def any(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Traced:  # noqa: A001  (the standard's name)
    """Whether some element over `axis` is true, or not 0."""
    made = truth(x)
    return primitives.reduce("or", made, axes_of(made, axis, "any"), keepdims)


@operator
def logsumexp_safe(x: Array, /, axis: Axis = -1, *, keepdims: bool = False) -> Traced:
    """log Σ e^x without overflow; -infinity, not NaN, where all elements are -infinity."""

    def logarithm(values: Traced, axes: tuple[int, ...]) -> Traced:
        _, powers, highest = exponentials(values, axes)
        total = primitives.reduce("sum", powers, axes, keepdims=True)
        return primitives.ew("add", primitives.ew("log", total), highest)

    return _of_floats("logsumexp_safe", logarithm, x, axis, keepdims)


def exponentials(x: Traced, axes: tuple[int, ...]) -> tuple[Traced, Traced, Traced]:
    """Distances from the largest element, e to their power, and that element, or 0 where all are -infinity."""
    highest = primitives.reduce("max", x, axes, keepdims=True)
    least = elementwise("eq", highest, float("-inf"))
    held = elementwise("select", least, 0.0, highest)
    apart = elementwise("sub", x, held)
    return apart, primitives.ew("exp", apart), held


@operator
def cumulative_sum(
    x: Array, /, axis: int | None = None, *, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Traced:
    """Running sums along `axis`, which may be left out for one axis; `include_initial` puts a 0 before them."""
    return _running("sum", x, axis, dtype, include_initial)


@operator
def cumulative_prod(
    x: Array, /, axis: int | None = None, *, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Traced:
    """Running products along `axis`, which may be left out for one axis; `include_initial` puts a 1 before them."""
    return _running("prod", x, axis, dtype, include_initial)


def _running(kind: str, x: Any, axis: int | None, dtype: DTypeLike | None, include_initial: bool) -> Traced:
    made = tensor(x)
    name = f"cumulative_{kind}"
    if axis is None and made.ndim != 1:
        raise refusal(name, "an axis for a tensor of more or fewer than one", [made], "give axis=")
    axis = one_axis(made, 0 if axis is None else axis, name)
    values = primitives.cast(made, summed_type(made, dtype))
    found = running(kind, values, axis)
    if not include_initial:
        return found
    sizes = replaced(values.sizes, axis, 1)
    start = primitives.constant({"sum": False, "prod": True}[kind], sizes, values.dtype)
    return primitives.concatenate([start, found], axis)


_BLOCK = 64
_LONG = 1024
"""Rows longer than this are folded in blocks, all at once, and then the blocks' totals."""
_JOINS = {"sum": ("add", False), "prod": ("mul", True)}


def running(kind: str, x: Traced, axis: int) -> Traced:
    """Partial results of a reduction along an axis: each element with all before it, carried as sums are."""
    size = x.sizes[axis]
    if goes_by_rows(x, size) and not x.trace.derived:
        last = primitives.transpose(x, moved_last(x.ndim, axis))
        rows = primitives.reshape(last, (element_count(last.sizes[:-1]), size))
        found = primitives.reshape(running_rows(kind, rows), last.sizes)
        return primitives.transpose(found, moved_from_last(x.ndim, axis))
    if not isinstance(size, int) or size <= _LONG:
        return primitives.cumulate(kind, x, axis)
    values = primitives.cast(x, accumulator(x.dtype) if kind == "sum" else compute_type(x.dtype))
    last = primitives.transpose(values, moved_last(x.ndim, axis))
    found = _in_blocks(kind, last, size)
    return narrow(primitives.transpose(found, moved_from_last(x.ndim, axis)), x.dtype)


def _in_blocks(kind: str, x: Traced, size: int) -> Traced:
    """Along the last axis: each block by itself, then what all blocks before it give."""
    join, neutral = _JOINS[kind]
    lead, rank, blocks = x.sizes[:-1], x.ndim, -(-size // _BLOCK)
    filler = primitives.constant(neutral, (*lead, blocks * _BLOCK - size), x.dtype)
    whole = primitives.concatenate([x, filler], rank - 1) if blocks * _BLOCK > size else x
    inner = primitives.cumulate(kind, primitives.reshape(whole, (*lead, blocks, _BLOCK)), rank)
    ends: list[Any] = [None] * rank
    totals = primitives.reshape(primitives.slice_(inner, [*ends, _BLOCK - 1], [*ends, None]), (*lead, blocks))
    if blocks <= _LONG:
        before = primitives.cumulate(kind, totals, rank - 1, exclusive=True)
    else:
        upto = primitives.slice_(_in_blocks(kind, totals, blocks), ends, [*ends[:-1], blocks - 1])
        before = primitives.concatenate([primitives.constant(neutral, (*lead, 1), x.dtype), upto], rank - 1)
    spread_out = primitives.broadcast_to(expanded(before, [rank]), inner.sizes)
    joined = primitives.reshape(primitives.ew(join, inner, spread_out), whole.sizes)
    return primitives.slice_(joined, ends, [*ends[:-1], size])
