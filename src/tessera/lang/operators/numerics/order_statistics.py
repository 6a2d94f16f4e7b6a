"""Order statistics: medians, quantiles and percentiles of sorted elements, as NumPy defines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tessera.dtypes.types import f64, i64
from tessera.errors import RangeError, TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import Axis, axes_of, floats, narrow, require_elements, wide
from tessera.lang.operators.sorting import sort
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import element_count

Shares: TypeAlias = "float | Sequence[float] | Tensor | Traced"
Method = Literal["linear", "lower", "higher", "nearest", "midpoint"]

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


@operator
def median(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Traced:
    """The middle element over `axis`, or over all axes, or the mean of the two in the middle; NaN if there is one.

    As in NumPy: torch's median is the lower of the two, `quantile(x, 0.5, method="lower")`.
    """
    half = primitives.constant(0.5, (), f64)
    return _quantiles("median", x, half, axis, keepdims, "linear")


@operator
def quantile(x: Array, q: Shares, /, axis: Axis = None, *, keepdims: bool = False, method: Method = "linear") -> Traced:
    """The q-quantiles over `axis`, or over all axes, of q from 0 to 1; NaN where there is a NaN. As in NumPy.

    q is a number, a tuple of numbers or a tensor, whose axes come first in the result; elements of a tensor outside of
    that range give NaN. Between two elements, `method` says what is taken: "linear" the number on the line between
    them, "lower", "higher" or "nearest" one of the two, "midpoint" their mean.
    """
    return _quantiles("quantile", x, _shares("quantile", q, 1), axis, keepdims, method)


@operator
def percentile(
    x: Array, q: Shares, /, axis: Axis = None, *, keepdims: bool = False, method: Method = "linear"
) -> Traced:
    """`quantile` of q from 0 to 100. As in NumPy."""
    return _quantiles("percentile", x, _shares("percentile", q, 100), axis, keepdims, method)


def _shares(name: str, q: Shares, most: int) -> Traced:
    """Shares from 0 to 1, in f64; numbers are checked, elements of a tensor are not known yet."""
    if not isinstance(q, Tensor | Traced):
        numbers = [q] if isinstance(q, int | float) else list(q)
        for one in numbers:
            if not 0 <= one <= most:
                raise RangeError(f"{name}: q is from 0 to {most}, got {one}", hint="give shares of the elements")
        if isinstance(q, int | float):
            return primitives.constant(q / most, (), f64)
        return primitives.constant_array([one / most for one in numbers], f64)
    shares = primitives.cast(primitives.lift(q), f64)
    return shares if most == 1 else elementwise("div", shares, float(most))


def _quantiles(name: str, x: Array, shares: Traced, axis: Axis, keepdims: bool, method: str) -> Traced:
    if method not in _METHODS:
        raise TesseraError(f"{name}: method is one of {', '.join(_METHODS)}, got {method!r}", hint="choose one of them")
    (made,) = floats(name, x)
    axes = axes_of(made, axis, name)
    require_elements(made, axes, name)
    kept = [at for at in range(made.ndim) if at not in axes]
    lead = [made.sizes[at] for at in kept]
    count = element_count([made.sizes[at] for at in axes])
    rows = primitives.reshape(primitives.transpose(wide(made), [*kept, *axes]), (*lead, count))
    row = len(lead)
    ordered = sort(rows)
    # Elements of a tensor may be no shares, or NaN.
    inside = ew("and", elementwise("ge", shares, 0.0), elementwise("le", shares, 1.0))
    held = elementwise("select", inside, shares, 0.0)
    last = elementwise("sub", primitives.size_value(count, f64), 1.0)
    place = elementwise("mul", held, last)
    whole = ew({"higher": "ceil", "nearest": "round"}.get(method, "floor"), place)
    first = primitives.gather(ordered, primitives.cast(whole, i64), row)
    if method in ("linear", "midpoint"):
        after = elementwise("min", elementwise("add", whole, 1.0), last)
        second = primitives.gather(ordered, primitives.cast(after, i64), row)
        part = ew("sub", place, whole)
        if method == "midpoint":
            part = elementwise("select", elementwise("gt", part, 0.0), 0.5, 0.0)
        first = _between(first, second, primitives.cast(part, rows.dtype))
    broken = primitives.reduce("or", ew("isnan", rows), [row], keepdims=True)
    broken = primitives.reshape(broken, (*lead, *(1,) * shares.ndim))
    broken = elementwise("or", broken, ew("not", inside))
    found = elementwise("select", broken, float("nan"), first)
    found = primitives.transpose(found, [*range(row, row + shares.ndim), *range(row)])
    if keepdims:
        sizes = [1 if at in axes else size for at, size in enumerate(made.sizes)]
        found = primitives.reshape(found, (*shares.sizes, *sizes))
    return narrow(found, made.dtype)


def _between(low: Traced, high: Traced, part: Traced) -> Traced:
    """low + part · (high - low) from the nearer end, as NumPy does; low where it is that or both are: infinities."""
    apart = ew("sub", high, low)
    near = elementwise("add", low, elementwise("mul", apart, part))
    far = elementwise("sub", high, elementwise("mul", apart, elementwise("sub", 1.0, part)))
    found = elementwise("select", elementwise("ge", part, 0.5), far, near)
    settled = elementwise("or", ew("eq", low, high), elementwise("eq", part, 0.0))
    return ew("select", settled, low, found)
