"""The common part of functions of angles on all targets: angles in quarters of a period, points in eighths of one.

An angle is split as x = n · π/2 + r with |r| ≤ π/4. Coefficients are minimax fits, rounded to f32 one after another,
with the rest fitted again.
"""

from __future__ import annotations

import math

from tessera.targets.llvm.floats import Floats
from tessera.targets.llvm.text import Value, bits_of

LARGE = 2.0**17
"""Angles from here on are not split exactly by three parts of π/2."""
_TWO_OVER_PI = 0.6366197723675814
_WHOLE = 1.5 * 2.0**23
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)  # in three parts of f32

# (sin r − r) / r³ and (cos r − 1 + r²/2) / r⁴ in r² for |r| ≤ π/4: 0.07 and 0.002 · 2^-24
_SIN = (-0.166666552, 0.00833218731, -0.000195179033)
_COS = (0.0416666456, -0.00138873095, 2.44323273e-05)


def quarters(k: Floats, x: Value) -> tuple[Value, Value]:
    """The nearest n, as a number of f32, and one that has its lowest bits."""
    shifted = k.fma(x, _TWO_OVER_PI, _WHOLE)
    return k.sub(shifted, _WHOLE), shifted


def split(k: Floats, x: Value) -> tuple[Value, Value]:
    """The lowest bits of n, and r, where products and sums fuse."""
    n, shifted = quarters(k, x)
    r = x
    for part in _HALF_PI:
        r = k.fma(n, -part, r)
    return k.bits(shifted), r


def sine(k: Floats, x: Value, quarter: Value, r: Value) -> Value:
    """The sine of x, of the lowest bits of n and of r."""
    found = k.select(is_odd(k, quarter), _cosine(k, r), _sine(k, r))
    # The sign of sin(−0); r has lost it where n is −0.
    found = k.select(k.compare("oeq", x, 0.0), x, found)
    return signed_by_quarter(k, found, quarter)


def cosine(k: Floats, quarter: Value, r: Value) -> Value:
    found = k.select(is_odd(k, quarter), _sine(k, r), _cosine(k, r))
    return signed_by_quarter(k, found, k.on_bits("add", quarter, 1))


def tangent(k: Floats, x: Value, quarter: Value, r: Value) -> Value:
    odd = is_odd(k, quarter)
    sine, cosine = _sine(k, r), _cosine(k, r)
    found = k.div(k.select(odd, cosine, sine), k.select(odd, k.neg(sine), cosine))
    return k.select(k.compare("oeq", x, 0.0), x, found)


def is_odd(k: Floats, quarter: Value) -> Value:
    """Whether the number of a quarter is odd."""
    return k.f.compare("ne", k.on_bits("and", quarter, 1), k.word(0))


def signed_by_quarter(k: Floats, found: Value, quarter: Value) -> Value:
    """The result, negated in the second half of a period."""
    sign = k.on_bits("shl", k.on_bits("and", quarter, 2), bits_of(k.type) - 2)
    return k.of_bits(k.on_bits("xor", k.bits(found), sign))


def _sine(k: Floats, r: Value) -> Value:
    square = k.mul(r, r)
    return k.fma(k.mul(square, r), k.polynomial(square, _SIN), r)


def _cosine(k: Floats, r: Value) -> Value:
    square = k.mul(r, r)
    return k.fma(k.mul(square, square), k.polynomial(square, _COS), k.fma(square, -0.5, 1.0))


def slope(k: Floats, y: Value, x: Value) -> tuple[Value, Value]:
    """Whether a point is nearer to the vertical axis, and the tangent, up to 1, of its angle to the nearer one."""
    height, width = k.absolute(y), k.absolute(x)
    steep = k.compare("ogt", height, width)
    smaller, larger = k.select(steep, width, height), k.select(steep, height, width)
    ratio = k.div(smaller, larger)
    # 0/0 is a ratio of 0, and ∞/∞ one of 1.
    ratio = k.select(k.compare("oeq", larger, 0.0), 0.0, ratio)
    return steep, k.select(k.compare("oeq", smaller, math.inf), 1.0, ratio)
