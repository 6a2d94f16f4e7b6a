"""sin, cos, tan and atan2 in f32.

An angle is split as x = n · π/2 + r with |r| ≤ π/4, with enough digits of π for angles below 2^17. Larger ones are
left to the mathematics library, lane by lane, in a branch that is taken only where there is one. Coefficients are
minimax fits, rounded to f32 one after another with the rest fitted again.
"""

from __future__ import annotations

import math

from tessera.targets.llvm.elements import NAN, fuses
from tessera.targets.llvm.floats import Floats, any_lane, lane_by_lane
from tessera.targets.llvm.text import Function, Value

_LARGE = 2.0**17
_TWO_OVER_PI = 0.6366197723675814
_WHOLE = 1.5 * 2.0**23

# π/2 in three parts of f32, and in two of f64, the first of which has 33 bits so that its products are exact.
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
_HALF_PI_WIDE = (1.5707963267341256, 6.077100506506192e-11)

# (sin r − r) / r³ and (cos r − 1 + r²/2) / r⁴ in r² for |r| ≤ π/4: 0.07 and 0.002 · 2^-24
_SIN = (-0.166666552, 0.00833218731, -0.000195179033)
_COS = (0.0416666456, -0.00138873095, 2.44323273e-05)

# (atan t − t) / t³ in t² for 0 ≤ t ≤ 1: 0.05 · 2^-24
_ATAN = (
    -0.333332986,
    0.199985296,
    -0.142640159,
    0.109508805,
    -0.0839930624,
    0.0578813888,
    -0.0310969856,
    0.0108686853,
    -0.00178281718,
)


def sin(k: Floats, x: Value) -> Value:
    quarter, r = _split(k, x)
    found = k.select(_odd(k, quarter), _cosine(k, r), _sine(k, r))
    # The sign of sin(−0); r has lost it where n is −0.
    found = k.select(k.compare("oeq", x, 0.0), x, found)
    return _with_large(k, "sinf", x, _turned(k, found, quarter))


def cos(k: Floats, x: Value) -> Value:
    quarter, r = _split(k, x)
    found = k.select(_odd(k, quarter), _sine(k, r), _cosine(k, r))
    return _with_large(k, "cosf", x, _turned(k, found, k.on_bits("add", quarter, 1)))


def tan(k: Floats, x: Value) -> Value:
    quarter, r = _split(k, x)
    odd = _odd(k, quarter)
    sine, cosine = _sine(k, r), _cosine(k, r)
    found = k.div(k.select(odd, cosine, sine), k.select(odd, k.neg(sine), cosine))
    return _with_large(k, "tanf", x, k.select(k.compare("oeq", x, 0.0), x, found))


def _split(k: Floats, x: Value) -> tuple[Value, Value]:
    """The lowest bits of n, and r."""
    shifted = k.fma(x, _TWO_OVER_PI, _WHOLE)
    n = k.sub(shifted, _WHOLE)
    if fuses(k.level):
        r = x
        for part in _HALF_PI:
            r = k.fma(n, -part, r)
        return k.bits(shifted), r
    # Without fused operations the products would be rounded.
    wide = k.changed("double")
    r, times = (k.f.convert("fpext", value, "double") for value in (x, n))
    for part in _HALF_PI_WIDE:
        r = wide.sub(r, wide.mul(times, part))
    return k.bits(shifted), k.f.convert("fptrunc", r, "float")


def _odd(k: Floats, quarter: Value) -> Value:
    return k.f.compare("ne", k.on_bits("and", quarter, 1), k.word(0))


def _turned(k: Floats, found: Value, quarter: Value) -> Value:
    """The other sign in every other half of a turn."""
    sign = k.on_bits("shl", k.on_bits("and", quarter, 2), 30)
    return k.of_bits(k.on_bits("xor", k.bits(found), sign))


def _sine(k: Floats, r: Value) -> Value:
    square = k.mul(r, r)
    return k.fma(k.mul(square, r), k.polynomial(square, _SIN), r)


def _cosine(k: Floats, r: Value) -> Value:
    square = k.mul(r, r)
    return k.fma(k.mul(square, square), k.polynomial(square, _COS), k.fma(square, -0.5, 1.0))


def _with_large(k: Floats, name: str, x: Value, found: Value) -> Value:
    """What was found, or what the library says if there is a large angle among the lanes."""

    def slow(g: Function, scalar: Value) -> Value:
        return g.call(name, "float", [scalar])

    large = any_lane(k.f, k.compare("oge", k.absolute(x), _LARGE))
    chosen = k.f.branch(large, lambda: [lane_by_lane(k.f, name, [x], slow)], lambda: [found], rare=True)
    return chosen[0]


def atan2(k: Floats, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with all the cases that C defines."""
    height, width = k.absolute(y), k.absolute(x)
    steep = k.compare("ogt", height, width)
    smaller, larger = k.select(steep, width, height), k.select(steep, height, width)
    ratio = k.div(smaller, larger)
    # 0/0 is a ratio of 0, and ∞/∞ one of 1.
    ratio = k.select(k.compare("oeq", larger, 0.0), 0.0, ratio)
    ratio = k.select(k.compare("oeq", smaller, math.inf), 1.0, ratio)
    square = k.mul(ratio, ratio)
    angle = k.fma(k.mul(square, ratio), k.polynomial(square, _ATAN), ratio)
    # Mirrored at the diagonal and at the vertical axis.
    backward = k.f.compare("slt", k.bits(x), k.word(0))
    mirrored = k.f.binary("xor", steep, backward)
    angle = k.select(mirrored, k.neg(angle), angle)
    upright = _parts(math.pi / 2)
    reverse = _parts(math.pi)
    for at in (1, 0):
        start = k.select(steep, upright[at], k.select(backward, reverse[at], 0.0))
        angle = k.add(start, angle)
    return k.select(k.compare("uno", x, y), NAN, k.with_sign(angle, y))


def _parts(angle: float) -> tuple[float, float]:
    """An angle in two parts of f32, the second of which is what the first lacks."""
    first = {math.pi: 3.1415927410125732, math.pi / 2: 1.5707963705062866}[angle]
    return first, angle - first
