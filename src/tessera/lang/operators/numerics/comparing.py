"""Comparing numbers: within tolerances, as whole tensors, with sets of others; neighbours and replacements."""

from __future__ import annotations

from tessera.dtypes.types import bool_, f32, f64
from tessera.errors import TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import expanded, narrow, refusal, tensors, wide
from tessera.lang.operators.searching import searchsorted
from tessera.lang.operators.sorting import sort
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_all, elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced

_FEW = 64
"""So many elements of a set are compared one by one; more of them are sorted."""


def _both_nan(a: Traced, b: Traced) -> Traced:
    return ew("and", ew("isnan", a), ew("isnan", b))


def _close(name: str, x1: object, x2: object, rtol: float, atol: float, equal_nan: bool) -> Traced:
    if not (rtol >= 0 and atol >= 0):
        raise TesseraError(f"{name}: tolerances are numbers from 0 on, got rtol={rtol}, atol={atol}", hint="give these")
    a, b = broadcast_all(tensors(name, x1, x2), name)
    if a.dtype.is_float:
        a, b = wide(a), wide(b)
    else:
        a, b = primitives.cast(a, f64), primitives.cast(b, f64)
    apart = ew("abs", ew("sub", a, b))
    allowed = elementwise("add", elementwise("mul", ew("abs", b), rtol), atol)
    # Beside an infinite one all numbers would be within reach of a relative tolerance.
    near = ew("and", ew("le", apart, allowed), ew("isfinite", b))
    found = ew("or", near, ew("eq", a, b))
    return ew("or", found, _both_nan(a, b)) if equal_nan else found


@operator
def isclose(x1: Array, x2: Array, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Traced:
    """Where |x1 - x2| ≤ atol + rtol · |x2|, elementwise: bools. As in NumPy and torch.

    Infinities are close to themselves, NaN to NaN with `equal_nan`. Integers are compared in f64.
    """
    return _close("isclose", x1, x2, rtol, atol, equal_nan)


@operator
def allclose(x1: Array, x2: Array, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Traced:
    """Whether all elements are close, as `isclose` says: one bool. As in NumPy and torch."""
    close = _close("allclose", x1, x2, rtol, atol, equal_nan)
    return primitives.reduce("and", close, range(close.ndim))


@operator
def array_equal(x1: Array, x2: Array, /, *, equal_nan: bool = False) -> Traced:
    """Whether two tensors have one shape and the same elements: one bool. As in NumPy.

    With `equal_nan`, NaN is the same as NaN.
    """
    a, b = tensors("array_equal", x1, x2)
    if a.ndim != b.ndim or any(one != other for one, other in zip(a.shape, b.shape, strict=True)):
        return primitives.constant(False, (), bool_)
    same = ew("eq", *broadcast_all([a, b], "array_equal"))
    if equal_nan and a.dtype.is_float:
        same = ew("or", same, _both_nan(a, b))
    return primitives.reduce("and", same, range(same.ndim))


@operator
def isin(x1: Array, x2: Array, /, *, invert: bool = False) -> Traced:
    """Where elements of x1 are among those of x2: bools in the shape of x1. As in NumPy; NaN is never there.

    With `invert`, where they are not.
    """
    values, others = tensors("isin", x1, x2)
    row = primitives.reshape(others, (-1,))
    size = row.sizes[0]
    if isinstance(size, int) and size > _FEW:
        found = _in_sorted(values, sort(row), size)
    else:
        shape = (*values.sizes, size)
        spread = primitives.broadcast_to(expanded(values, [values.ndim]), shape)
        same = ew("eq", spread, primitives.broadcast_to(row, shape))
        found = primitives.reduce("or", same, [values.ndim])
    return ew("not", found) if invert else found


def _in_sorted(values: Traced, row: Traced, size: int) -> Traced:
    """The element before which each value belongs is that value, if any is."""
    at = elementwise("min", searchsorted(row, values), size - 1)
    return ew("eq", primitives.gather(row, at, 0), values)


@operator
def nan_to_num(x: Array, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Traced:
    """x with `nan` for NaN, and other numbers for infinities: the largest and the least of the type, unless given.

    As in NumPy and torch. Integers stay as they are.
    """
    made = tensor(x)
    if not made.dtype.is_float:
        return made
    most, least = (
        primitives.constant(bound if number is None else number, (), made.dtype)
        for number, bound in ((posinf, float(made.dtype.max_value)), (neginf, float(made.dtype.min_value)))
    )
    above = elementwise("select", elementwise("gt", made, 0.0), most, least)
    finite = elementwise("select", ew("isinf", made), above, made)
    return elementwise("select", ew("isnan", made), nan, finite)


@operator
def nextafter(x1: Array, x2: Array, /) -> Traced:
    """The number of the type that comes next after x1 in the direction of x2, elementwise; NaN beside NaN.

    As the Array API says; equal numbers give x2.
    """
    a, b = broadcast_all(tensors("nextafter", x1, x2), "nextafter")
    if not a.dtype.is_float or a.dtype.bits < 16:
        raise refusal("nextafter", "floats of 16 bits and more", [a, b], "cast them first: ts.astype(x, ts.f32)")
    upward = ew("lt", a, b)
    stepped = _next_by_key(a, upward) if a.dtype.base in (f32, f64) else _next_by_sum(a, upward)
    found = ew("select", ew("eq", a, b), b, stepped)
    unordered = ew("or", ew("isnan", a), ew("isnan", b))
    return elementwise("select", unordered, float("nan"), found)


def _next_by_key(x: Traced, upward: Traced) -> Traced:
    """By the whole number that sorts as the float does: its neighbours are one more and one less."""
    key = ew("sort_key", x)
    # Both zeros have key 0, and -1, which comes next below it, is -0.
    below = elementwise("select", elementwise("eq", key, 0), -2, elementwise("sub", key, 1))
    return primitives.cast(
        ew("from_sort_key", elementwise("select", upward, elementwise("add", key, 1), below)), x.dtype
    )


def _next_by_sum(x: Traced, upward: Traced) -> Traced:
    """By a sum in f32 that is rounded: with a bit more than half of the distance to the next number, and less than 1½.

    After Rump, Zimmermann, Boldo and Melquiond: Computing predecessor and successor in rounding to nearest (2009).
    """
    form = x.dtype.float_format
    assert form is not None
    unit = 2.0 ** -(form.mantissa_bits + 1)
    values = primitives.cast(x, f32)
    size = ew("abs", values)
    step = elementwise("max", elementwise("mul", size, unit * (1 + 2 * unit)), 0.75 * form.smallest_subnormal)
    signed = ew("select", upward, step, ew("neg", step))
    largest = ew("copysign", primitives.constant(float(x.dtype.max_value), values.sizes, f32), values)
    found = narrow(ew("select", ew("isinf", values), largest, ew("add", values, signed)), x.dtype)
    # From the number next to 0, the step to it keeps the sign, as it does in NumPy.
    zero = elementwise("eq", found, 0.0)
    return ew("select", zero, ew("copysign", found, x), found)
