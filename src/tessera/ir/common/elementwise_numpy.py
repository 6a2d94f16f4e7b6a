"""The NumPy meaning of each elementwise function.

The functions take arrays of native NumPy types: float32 or float64 (narrower floats arrive as float32), integers
(4-bit ones arrive in 8 bits) or booleans. Where float32 arithmetic would round on the way, they answer in float64
instead; the caller rounds once, to the type of the result. Warnings are the caller's to silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Meaning: TypeAlias = Callable[..., Any]


def wide(ufunc: np.ufunc) -> Meaning:
    """`ufunc` evaluated in float64, so that its rounding to float32 is the only one."""
    return lambda *operands: ufunc(*operands, dtype=np.float64)


def to_integral(ufunc: np.ufunc) -> Meaning:
    """A rounding of floats to whole numbers; integers are whole already."""

    def rounded(x: Array) -> Any:
        return ufunc(x) if x.dtype.kind == "f" else x.copy()

    return rounded


def same(x: Array) -> Any:
    """A cast: all there is to it is how the caller rounds."""
    return x


def sort_key(x: Array) -> Array:
    """The bits of a float, those below the sign inverted where it is negative: NaN last, zeros alike."""
    words = np.int64 if x.dtype == np.float64 else np.int32
    largest = np.iinfo(words).max
    bits = np.asarray(x + 0.0, x.dtype).view(words)
    return np.where(np.isnan(x), largest, np.where(bits < 0, bits ^ largest, bits))


def from_sort_key(x: Array) -> Array:
    """The float of a key; −1, which no float has, is -0."""
    words = np.int64 if x.dtype == np.int64 else np.int32
    bits = np.where(x < 0, x ^ np.iinfo(words).max, x).astype(words)
    return bits.view(np.float64 if words is np.int64 else np.float32)


def rsqrt(x: Array) -> Any:
    return 1.0 / np.sqrt(x, dtype=np.float64)


def reciprocal(x: Array) -> Any:
    return x.dtype.type(1) / x


_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Any:
    return np.asarray(_erf(x), np.float64)


def sigmoid(x: Array) -> Any:
    """1 / (1 + e^-x), without overflow on either side."""
    decay = np.exp(-np.abs(x), dtype=np.float64)
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


def floordiv(a: Array, b: Array) -> Any:
    """Integers: 0 where b is 0, and the quotient wraps where it does not fit."""
    return np.floor_divide(a, b, dtype=np.float64) if a.dtype.kind == "f" else np.floor_divide(a, b)


def rem(a: Array, b: Array) -> Any:
    """The remainder of `floordiv`, with the sign of b.

    Integers: a where b is 0, so that `a == b * floordiv(a, b) + rem(a, b)` always holds.
    """
    if a.dtype.kind == "f":
        return np.remainder(a, b, dtype=np.float64)
    return np.where(b == 0, a, np.remainder(a, b))


def power(a: Array, b: Array) -> Any:
    """Integers wrap; negative exponents give the exact power cut towards zero, and 0 for a base of 0."""
    if a.dtype.kind == "f":
        return np.power(a, b, dtype=np.float64)
    if a.dtype.kind == "u":
        return np.power(a, b)
    inverse = np.where(np.abs(a) == 1, np.where(b & 1, a, 1), 0)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


def maximum(a: Array, b: Array) -> Any:
    """NaN if either is; +0 is above -0, which NumPy leaves to the machine."""
    found = np.asarray(np.maximum(a, b))
    if a.dtype.kind == "f" and not found.all():
        np.add(a, b, out=found, where=(a == 0) & (b == 0))
    return found


def minimum(a: Array, b: Array) -> Any:
    """NaN if either is; -0 is below +0, which NumPy leaves to the machine."""
    found = np.asarray(np.minimum(a, b))
    if a.dtype.kind == "f" and not found.all():
        np.negative(-a - b, out=found, where=(a == 0) & (b == 0))
    return found


def fma(a: Array, b: Array, c: Array) -> Any:
    """a·b + c, rounded once: float64 through exact fractions, float32 through float64.

    A float32 product is exact in float64. The sum is rounded to odd there (of its two neighbours, the one whose last
    bit is 1), which leaves the final rounding to any narrower format as if it came straight from the exact sum.
    """
    if a.dtype.kind != "f":
        return a * b + c
    if a.dtype == np.float64:
        return np.asarray(_fused(a, b, c), np.float64)
    product = np.multiply(a, b, dtype=np.float64)
    total = np.asarray(product + c)
    rest = total - product
    error = (product - (total - rest)) + (c - rest)
    odd = np.nextafter(total, np.copysign(np.inf, error))
    even = total.view(np.int64) & 1 == 0
    return np.where(even & (np.abs(error) > 0), odd, total)


def _fused_scalar(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    from fractions import Fraction  # loads decimal

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_fused = np.frompyfunc(_fused_scalar, 3, 1)
