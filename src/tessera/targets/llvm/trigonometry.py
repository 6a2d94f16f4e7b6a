"""sin, cos, tan and atan2 in f32.

There are enough digits of π for angles below 2^17. Larger ones are left to the mathematics library, lane by lane, in a
branch that is taken only where there is one.
"""

from __future__ import annotations

import math

from tessera.targets.llvm import angles
from tessera.targets.llvm.elements import NAN, fuses
from tessera.targets.llvm.floats import Floats, any_lane, lane_by_lane
from tessera.targets.llvm.text import Function, Value

# π/2 in two parts of f64, the first of which has 33 bits so that its products are exact.
_HALF_PI_WIDE = (1.5707963267341256, 6.077100506506192e-11)

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
    return _with_large(k, "sinf", x, angles.sine(k, x, *_split(k, x)))


def cos(k: Floats, x: Value) -> Value:
    return _with_large(k, "cosf", x, angles.cosine(k, *_split(k, x)))


def tan(k: Floats, x: Value) -> Value:
    return _with_large(k, "tanf", x, angles.tangent(k, x, *_split(k, x)))


def _split(k: Floats, x: Value) -> tuple[Value, Value]:
    """The lowest bits of n, and r."""
    if fuses(k.level):
        return angles.split(k, x)
    # Without fused operations the products would be rounded.
    n, shifted = angles.quarters(k, x)
    wide = k.changed("double")
    r, times = (k.f.convert("fpext", value, "double") for value in (x, n))
    for part in _HALF_PI_WIDE:
        r = wide.sub(r, wide.mul(times, part))
    return k.bits(shifted), k.f.convert("fptrunc", r, "float")


def _with_large(k: Floats, name: str, x: Value, found: Value) -> Value:
    """The result, or the library's if there is a large angle among the lanes."""

    def slow(g: Function, scalar: Value) -> Value:
        return g.call(name, "float", [scalar])

    large = any_lane(k.f, k.compare("oge", k.absolute(x), angles.LARGE))
    chosen = k.f.branch(large, lambda: [lane_by_lane(k.f, name, [x], slow)], lambda: [found], rare=True)
    return chosen[0]


def atan2(k: Floats, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with all the cases that C defines."""
    steep, ratio = angles.slope(k, y, x)
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
