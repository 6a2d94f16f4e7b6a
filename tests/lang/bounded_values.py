"""Arrays in float64 beside a bound of how far a computation in a narrower type may be from them.

Each function computes in NumPy, and says how errors of its operands and its own rounding add up: a running error
analysis, so that the tolerance of a whole program follows from its steps and their numbers. What is not continuous
(compares, sorting, rounding to whole numbers) is refused where an error could change the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

UNITS = {"f64": 2.0**-52, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""How far a rounding goes, in parts of the number."""
_SMALLEST = {"f64": 2.0**-1073, "f32": 2.0**-148, "f16": 2.0**-24, "bf16": 2.0**-132}
_ULPS = 8  # of functions that no instruction computes


class UnfitError(Exception):
    """A step that cannot be compared: outside of a function's domain, on a jump of it, or too inexact."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """What a value is, and how far from it a right computation may be; integers and bools are exact."""

    exact: Array
    error: Array
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.exact.shape

    @property
    def is_exact(self) -> bool:
        return not self.error.any()

    def at(self, take: Callable[[Array], Array]) -> Bounded:
        """The same elements, arranged otherwise or in part."""
        return Bounded(np.asarray(take(self.exact)), np.asarray(take(self.error)), self.dtype)

    def over(self, other: Bounded, take: Callable[[Array, Array], Array]) -> Bounded:
        """Elements of two values."""
        return Bounded(take(self.exact, other.exact), take(self.error, other.error), self.dtype)


def whole(exact: Any, dtype: str) -> Bounded:
    """Integers or bools."""
    found = np.asarray(exact)
    return Bounded(found, np.zeros(found.shape), dtype)


def computing(x: Bounded) -> Bounded:
    """In the type that arithmetic is done in."""
    return Bounded(x.exact, x.error, "f32" if x.dtype in ("f16", "bf16") else x.dtype)


def rounded(exact: Array, error: Array, dtype: str, ulps: float = 1) -> Bounded:
    """A result with its own rounding."""
    exact, error = np.asarray(exact, np.float64), np.asarray(error, np.float64)
    return Bounded(exact, error + ulps * UNITS[dtype] * (np.abs(exact) + error) + _SMALLEST[dtype], dtype)


def cast(x: Bounded, dtype: str) -> Bounded:
    if x.dtype == dtype or x.dtype not in UNITS:
        return Bounded(np.asarray(x.exact, np.float64), x.error, dtype)
    return Bounded(x.exact, x.error, dtype) if UNITS[dtype] <= UNITS[x.dtype] else rounded(x.exact, x.error, dtype)


def number(value: float, like: Bounded) -> Bounded:
    return rounded(np.asarray(value), np.zeros(()), like.dtype)


def add(a: Bounded, b: Bounded) -> Bounded:
    return rounded(a.exact + b.exact, a.error + b.error, a.dtype)


def sub(a: Bounded, b: Bounded) -> Bounded:
    return rounded(a.exact - b.exact, a.error + b.error, a.dtype)


def mul(a: Bounded, b: Bounded) -> Bounded:
    return bilinear(np.multiply, a, b, 1)


def div(a: Bounded, b: Bounded) -> Bounded:
    least = np.abs(b.exact) - b.error
    if (least <= 1e-3).any():
        raise UnfitError
    return rounded(a.exact / b.exact, (a.error + np.abs(a.exact / b.exact) * b.error) / least, a.dtype, 2)


def monotone(function: Callable[[Array], Array], x: Bounded, low: float = -np.inf, ulps: float = _ULPS) -> Bounded:
    """A monotone function from `low` on: an error of its operand moves it as far as at the ends."""
    exact = function(x.exact)
    ends = [function(np.maximum(x.exact + sign * x.error, low)) for sign in (-1, 1)]
    return rounded(exact, np.maximum(*(np.abs(end - exact) for end in ends)), x.dtype, ulps)


def smooth(function: Callable[[Array], Array], x: Bounded, slope: float = 1.0) -> Bounded:
    """A function that is nowhere steeper than `slope`."""
    return rounded(function(x.exact), slope * x.error, x.dtype, _ULPS)


def exp(x: Bounded) -> Bounded:
    return monotone(np.exp, x)


def log(x: Bounded) -> Bounded:
    if (x.exact - x.error <= 0).any():
        raise UnfitError
    found = monotone(np.log, x)
    return Bounded(found.exact, found.error + UNITS[x.dtype], x.dtype)


def sqrt(x: Bounded) -> Bounded:
    if (x.exact < 0).any():
        raise UnfitError
    return monotone(np.sqrt, x, 0.0)


def sigmoid(x: Bounded) -> Bounded:
    return smooth(lambda v: 1 / (1 + np.exp(-v)), x)


def erf(x: Bounded) -> Bounded:
    return smooth(lambda v: np.reshape([math.erf(one) for one in v.flat], v.shape), x, 1.13)


def larger(a: Bounded, b: Bounded) -> Bounded:
    return Bounded(np.maximum(a.exact, b.exact), np.maximum(a.error, b.error) + np.zeros(a.shape), a.dtype)


def smaller(a: Bounded, b: Bounded) -> Bounded:
    return Bounded(np.minimum(a.exact, b.exact), np.maximum(a.error, b.error) + np.zeros(a.shape), a.dtype)


def compared(name: str, a: Bounded, b: Bounded) -> Bounded:
    """A compare, where no error can change its outcome."""
    error = a.error + b.error
    if ((np.abs(a.exact - b.exact) <= error) & (error > 0)).any():
        raise UnfitError
    return whole(getattr(np, name)(a.exact, b.exact), "bool")


def steps(function: Callable[[Array], Array], x: Bounded) -> Bounded:
    """A function with jumps, where no error reaches one."""
    low, high = function(x.exact - x.error), function(x.exact + x.error)
    if (low != high).any():
        raise UnfitError
    return Bounded(function(x.exact), np.zeros(x.shape), x.dtype)


Axes = int | tuple[int, ...] | None


def _count(x: Bounded, axes: Axes) -> int:
    listed = range(x.exact.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    return int(np.prod([x.shape[axis] for axis in listed], dtype=np.int64))


def total(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    def fold(v: Array) -> Array:
        return np.sum(v, axis=axes, keepdims=keepdims)

    own = computing(x)
    rounding = (_count(x, axes) + 1) * UNITS[own.dtype] * fold(np.abs(x.exact) + x.error)
    return cast(rounded(fold(x.exact), fold(x.error) + rounding, own.dtype), x.dtype)


def mean(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    count = _count(x, axes)
    if not count:
        raise UnfitError
    found = total(computing(x), axes, keepdims)
    return cast(div(found, number(count, found)), x.dtype)


def product(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    def fold(v: Array) -> Array:
        return np.prod(v, axis=axes, keepdims=keepdims)

    exact, own = fold(x.exact), computing(x)
    apart = fold(np.abs(x.exact) + x.error + 1e-30) - fold(np.abs(x.exact) + 1e-30)
    return cast(rounded(exact, apart, own.dtype, _count(x, axes) + 1), x.dtype)


def most(x: Bounded, axes: Axes, keepdims: bool = False, least: bool = False) -> Bounded:
    if not _count(x, axes):
        raise UnfitError
    fold = np.min if least else np.max
    return Bounded(
        np.asarray(fold(x.exact, axis=axes, keepdims=keepdims)),
        np.asarray(np.max(x.error, axis=axes, keepdims=keepdims)),
        x.dtype,
    )


def variance(x: Bounded, axes: Axes, keepdims: bool = False, correction: float = 0.0) -> Bounded:
    count = _count(x, axes) - correction
    if count <= 0:
        raise UnfitError
    values = computing(x)
    apart = sub(values, mean(values, axes, True))
    found = total(mul(apart, apart), axes, keepdims)
    return cast(div(found, number(count, found)), x.dtype)


def shares(x: Bounded, axes: Axes) -> Bounded:
    """A softmax."""
    values = computing(x)
    if not values.exact.size:
        return x
    powers = exp(sub(values, most(values, axes, True)))
    return cast(div(powers, total(powers, axes, True)), x.dtype)


def log_total(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    """log Σ eˣ."""
    values = computing(x)
    top = most(values, axes, True)
    found = add(log(total(exp(sub(values, top)), axes, True)), top)
    listed = tuple(range(x.exact.ndim)) if axes is None else axes
    return cast(found if keepdims else found.at(lambda v: np.squeeze(v, listed)), x.dtype)


def bilinear(function: Callable[[Array, Array], Array], a: Bounded, b: Bounded, terms: int) -> Bounded:
    """A sum of so many products of elements of `a` and `b`."""
    x, y = np.abs(a.exact), np.abs(b.exact)
    error = function(x, b.error) + function(a.error, y) + function(a.error, b.error)
    own = "f32" if a.dtype in ("f16", "bf16") else a.dtype
    rounding = (terms + 2) * UNITS[own] * function(x + a.error, y + b.error) if terms > 1 else 0.0
    return (
        cast(rounded(function(a.exact, b.exact), error + rounding, own), a.dtype)
        if terms > 1
        else rounded(function(a.exact, b.exact), error, a.dtype)
    )


def running(x: Bounded, axis: int) -> Bounded:
    def fold(v: Array) -> Array:
        return np.cumsum(v, axis=axis)

    own = computing(x)
    rounding = (x.shape[axis] + 1) * UNITS[own.dtype] * fold(np.abs(x.exact) + x.error)
    return cast(rounded(fold(x.exact), fold(x.error) + rounding, own.dtype), x.dtype)


def ordered(x: Bounded, axis: int, descending: bool) -> Bounded:
    """Sorted values: none moves further than the largest error."""
    found = np.sort(x.exact, axis=axis)
    error = np.max(x.error, axis=axis, keepdims=True, initial=0.0) + np.zeros(x.shape)
    return Bounded(np.flip(found, axis) if descending else found, error, x.dtype)


def order(x: Bounded, axis: int, descending: bool) -> Array:
    """The indices that sort values, where no error can exchange two."""
    indices = np.argsort(-x.exact if descending else x.exact, axis=axis, kind="stable")
    if not x.is_exact:
        found = np.take_along_axis(x.exact, indices, axis)
        error = 2 * np.max(x.error, axis=axis, keepdims=True, initial=0.0)
        if (np.abs(np.diff(found, axis=axis)) <= error).any():
            raise UnfitError
    return indices


def joined(xs: Sequence[Bounded], join: Callable[[Sequence[Array]], Array]) -> Bounded:
    return Bounded(join([x.exact for x in xs]), join([x.error for x in xs]), xs[0].dtype)
