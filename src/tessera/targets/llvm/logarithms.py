"""Logarithms in f32, log, log2 and log1p, and pow, which is made of log2 and exp2 in f64.

A number is split as m · 2^e with m in [√½, √2), and the logarithm of m = 1 + d computed by a polynomial. Coefficients
are minimax fits, rounded one after another with the rest fitted again.
"""

from __future__ import annotations

import math

from tessera.targets.llvm.elements import NAN
from tessera.targets.llvm.floats import Floats, Sixteen, logarithm_at_ends, power_at_one
from tessera.targets.llvm.text import Value

_LN_2, _LN_2_REST = 0.693145751953125, 1.428606765330187e-06
_LOG2_E = 1.4426950408889634
_HALF_ROOT = 0x3F3504F3  # the bits of √½

# (ln(1 + d) − d + d²/2) / d³ for √½ ≤ 1 + d ≤ √2: 0.013 · 2^-24 relative to ln(1 + d)
_LOG = (
    0.333333135,
    -0.250000089,
    0.200020716,
    -0.166679889,
    0.142203584,
    -0.124062337,
    0.118835494,
    -0.116701007,
    0.0674927011,
)


def log(k: Floats, x: Value) -> Value:
    e, d = _split(k, x)
    return _defined(k, x, _sum(k, e, d))


def log1p(k: Floats, x: Value) -> Value:
    """ln(1 + x), with what 1 + x loses by rounding added to the part behind the 1."""
    larger, smaller = (k.select(k.compare(predicate, 1.0, x), 1.0, x) for predicate in ("ogt", "olt"))
    total = k.add(larger, smaller)
    lost = k.sub(smaller, k.sub(total, larger))
    e, d = _split(k, total)
    # Of the sum's size 2^e only d is left. Nothing is lost where the sum is 0 or infinite.
    lost = k.scaled(lost, k.neg(e)) if isinstance(k, Sixteen) else k.mul(k.div(lost, total), k.add(d, 1.0))
    d = k.add(d, k.select(k.compare("ord", lost, 0.0), lost, 0.0))
    return k.with_sign(_defined(k, total, _sum(k, e, d)), x)


def log2(k: Floats, x: Value) -> Value:
    e, d = _split(k, x)
    # (d + curve) · log2(e), with log2(e) = 1 + 0.44… at d, which so stays exact.
    rest = k.fma(d, _LOG2_E - 1, k.mul(_curve(k, d), _LOG2_E))
    return _defined(k, x, k.add(e, k.add(d, rest)))


def _split(k: Floats, x: Value) -> tuple[Value, Value]:
    """e and m − 1."""
    if isinstance(k, Sixteen):
        m, e = k.mantissa(x), k.exponent(x)
        large = k.compare("ogt", m, math.sqrt(2))
        m = k.select(large, k.mul(m, 0.5), m)
        return k.select(large, k.add(e, 1.0), e), k.sub(m, 1.0)
    # Subnormal numbers are scaled up first.
    small = k.compare("olt", x, 2.0**-126)
    words = k.bits(k.select(small, k.mul(x, 2.0**24), x))
    shifted = k.on_bits("ashr", k.on_bits("sub", words, _HALF_ROOT), 23)
    m = k.of_bits(k.on_bits("sub", words, k.on_bits("shl", shifted, 23)))
    e = k.f.convert("sitofp", shifted, "float")
    return k.sub(e, k.select(small, 24.0, 0.0)), k.sub(m, 1.0)


def _curve(k: Floats, d: Value) -> Value:
    """ln(1 + d) − d."""
    square = k.mul(d, d)
    return k.mul(square, k.fma(d, k.polynomial(d, _LOG), -0.5))


def _sum(k: Floats, e: Value, d: Value) -> Value:
    """e · ln 2 + ln(1 + d), the small parts first."""
    return k.fma(e, _LN_2, k.add(d, k.fma(e, _LN_2_REST, _curve(k, d))))


def _defined(k: Floats, x: Value, found: Value) -> Value:
    """Infinite for 0 and infinity, NaN below; sixteen lanes have that already."""
    if isinstance(k, Sixteen):
        return found
    return logarithm_at_ends(k, x, found)


# log2((1 + s) / (1 − s)) / s in s² for |s| ≤ 0.1716: 2^-45
_LOG2_WIDE = (
    2.885390081777851,
    0.9617966941129487,
    0.5770779424063963,
    0.41220925174692274,
    0.31990562993131355,
    0.2829020826636951,
)
# (2^r − 1) / r for |r| ≤ 1/2: 2^-34
_TWO_TO_WIDE = (
    0.693147180704766,
    0.2402265106701054,
    0.0555041036538501,
    0.009618038058373857,
    0.001333393535844999,
    0.00015466781964107722,
    1.51961344974821e-05,
)
_WHOLE = 1.5 * 2.0**52


def power(k: Floats, a: Value, b: Value) -> Value:
    """a^b as C defines it. The way through f64 leaves one rounding that counts."""
    wide = k.changed("double")
    base, exponent = (k.f.convert("fpext", operand, "double") for operand in (a, b))
    logarithm = _log2_wide(wide, wide.absolute(base))
    found = _exp2_wide(wide, wide.mul(exponent, logarithm))
    # Whole exponents, of which the odd ones keep the sign of a; beyond 2^30 all are even.
    whole = wide.at_least(wide.at_most(exponent, 2.0**30), -(2.0**30))
    shifted = wide.add(whole, _WHOLE)
    broken = wide.compare("une", wide.sub(shifted, _WHOLE), whole)
    sign = wide.on_bits("and", wide.on_bits("shl", wide.bits(shifted), 63), wide.bits(base))
    sign = wide.f.select(broken, wide.word(0), sign)
    found = wide.of_bits(wide.on_bits("xor", wide.bits(found), sign))
    negative = wide.both(wide.compare("olt", base, 0.0), wide.compare("ogt", base, -math.inf))
    found = wide.select(wide.both(negative, broken), NAN, found)
    return k.f.convert("fptrunc", power_at_one(wide, base, exponent, found), "float")


def _log2_wide(k: Floats, x: Value) -> Value:
    """For x that is not negative and comes from f32: there are no subnormal numbers among those."""
    words = k.bits(x)
    # The bits of √½ are subtracted and those of 1 added, which keeps everything positive.
    moved = k.on_bits("add", words, 0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    exponent = k.on_bits("lshr", moved, 52)
    m = k.of_bits(k.on_bits("sub", words, k.on_bits("shl", k.on_bits("sub", exponent, 1023), 52)))
    e = k.sub(k.of_bits(k.on_bits("or", exponent, 0x4330000000000000)), 2.0**52 + 1023)
    s = k.div(k.sub(m, 1.0), k.add(m, 1.0))
    found = k.fma(s, k.polynomial(k.mul(s, s), _LOG2_WIDE), e)
    found = k.select(k.compare("oeq", x, 0.0), -math.inf, found)
    return k.select(k.compare("olt", x, math.inf), found, x)


def _exp2_wide(k: Floats, x: Value) -> Value:
    """2^x, as far as f32 reaches."""
    inside = k.at_least(k.at_most(x, 200.0), -200.0)
    shifted = k.add(inside, _WHOLE)
    r = k.sub(inside, k.sub(shifted, _WHOLE))
    power_ = k.of_bits(k.on_bits("shl", k.on_bits("add", k.bits(shifted), 1023), 52))
    return k.mul(power_, k.fma(r, k.polynomial(r, _TWO_TO_WIDE), 1.0))
