"""f64 functions that no instruction computes, without a mathematics library: for GPUs, which have none.

They take any number, in scalars or vectors, and need products and sums that fuse (`Floats` at level avx2 and above):
what a product or a sum loses by rounding is then found exactly, and added where it counts. So most results are the
nearest number, and none is two units in the last place away. There are no branches but one: angles from 2^30 on.
docs/numerics.md has the largest errors that were measured, and the tests measure them again.

Coefficients are minimax fits, rounded to f64 one after another with the rest fitted again; the errors beside them are
those of the polynomials in units of 2^-53 of the function, without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tessera.targets.llvm import angles
from tessera.targets.llvm.elements import NAN
from tessera.targets.llvm.floats import Floats, any_lane, logarithm_at_ends, power_at_one
from tessera.targets.llvm.text import Operand, Value

Recipe = Callable[..., Value]


class Pair(NamedTuple):
    """A number in two parts: the nearest one that f64 has, and what that lacks."""

    high: Value
    low: Value


def _sum(k: Floats, a: Operand, b: Operand) -> Pair:
    """a + b exactly, for |a| ≥ |b| or a = 0."""
    total = k.add(a, b)
    return Pair(total, k.sub(b, k.sub(total, a)))


def _product(k: Floats, a: Operand, b: Operand) -> Pair:
    """a · b exactly."""
    found = k.mul(a, b)
    return Pair(found, k.fma(a, b, k.neg(found)))


def _quotient(k: Floats, a: Pair, b: Pair) -> Value:
    """a / b: a quotient of the first parts, and what it leaves of a, divided again."""
    inverse = k.div(1.0, b.high)
    near = k.mul(a.high, inverse)
    left = k.add(k.fma(k.neg(near), b.high, a.high), k.fma(k.neg(near), b.low, a.low))
    return k.fma(left, inverse, near)


# Exponentials: x = n · ln 2 + r, or n + r, with |r| at most half of the step.

# Adding this rounds to a whole number, found in the lowest bits of the sum.
_WHOLE = 1.5 * 2.0**52
_LOG2_E, _LOG2_E_REST = 1.4426950408889634, 2.0355273740931033e-17
_LN_2, _LN_2_REST = 0.6931471805599453, 2.3190468138462996e-17

# (e^r − 1 − r) / r² for |r| ≤ ln 2 / 2: 0.004 of e^r − 1
_E_TO = (
    *(0.5, 0.16666666666666677, 0.04166666666666669, 0.008333333333321733, 0.0013888888888884264),
    *(0.00019841269885583396, 2.48015872990643e-05, 2.7557244796388014e-06, 2.755731677851762e-07),
    *(2.510885569254279e-08, 2.08953892108622e-09),
)
# (2^r − 1 − r · ln 2) / r² for |r| ≤ 1/2: 0.001
_TWO_TO = (
    *(0.24022650695910072, 0.055504108664821646, 0.00961812910762787, 0.0013333558146399287, 0.00015403530394570976),
    *(1.5252733849643002e-05, 1.3215485802966792e-06, 1.0178053476323575e-07, 7.0552747079024344e-09),
    *(4.4563803909900673e-10, 2.520675078041835e-11),
)


def exp(k: Floats, x: Value) -> Value:
    """e^x."""
    power, found = _e_to(k, k.at_least(k.at_most(x, 710.0), -746.0))
    return _scaled(k, found.high, power)


def exp2(k: Floats, x: Value) -> Value:
    """2^x."""
    inside = k.at_least(k.at_most(x, 1025.0), -1076.0)
    return _two_to(k, inside, k.of(0.0))


def expm1(k: Floats, x: Value) -> Value:
    """e^x − 1."""
    half = _half_less_one(k, k.at_least(k.at_most(x, 710.0), -40.0)).high
    # x itself where that is the nearest number: half of a subnormal number may be none, and −0 is one.
    return k.select(k.compare("olt", k.absolute(x), 2.0**-54), x, k.add(half, half))


def tanh(k: Floats, x: Value) -> Value:
    """−h / (1 + h) with h = (e^(−2|x|) − 1) / 2."""
    half = _half_less_one(k, k.mul(k.at_most(k.absolute(x), 22.0), -2.0))
    return k.with_sign(_quotient(k, half, _and_one(k, half)), x)


def sigmoid(k: Floats, x: Value) -> Value:
    """1 / (1 + e^-x), without overflow on either side."""
    power, decay = _e_to(k, k.at_least(k.neg(k.absolute(x)), -746.0))
    below = _and_one(k, Pair(*(_scaled(k, part, power) for part in decay)))
    positive = k.compare("oge", x, 0.0)
    above = Pair(k.select(positive, 1.0, decay.high), k.select(positive, 0.0, decay.low))
    found = _quotient(k, above, below)
    # Scaled last, so that a result too small for the format is rounded once.
    return k.select(positive, found, _scaled(k, found, power))


def _and_one(k: Floats, x: Pair) -> Pair:
    """1 + x for |x| ≤ 1."""
    total, rest = _sum(k, 1.0, x.high)
    return Pair(total, k.add(rest, x.low))


def _split(k: Floats, x: Value) -> tuple[Value, Value, Value]:
    """n + 1.5 · 2^52, r, and of e^r − 1 all but r itself: r²/2 + … and what r lacks."""
    shifted = k.fma(x, _LOG2_E, _WHOLE)
    n = k.sub(shifted, _WHOLE)
    # Exact: both terms are multiples of 2^-54, and the difference is less than 2^53 of these.
    first = k.fma(n, -_LN_2, x)
    r = k.fma(n, -_LN_2_REST, first)
    lost = k.fma(n, -_LN_2_REST, k.sub(first, r))
    return shifted, r, k.fma(k.mul(r, r), k.polynomial(r, _E_TO), lost)


def _e_to(k: Floats, x: Value) -> tuple[Value, Pair]:
    """n + 1.5 · 2^52 and e^r."""
    shifted, r, rest = _split(k, x)
    found = _and_one(k, Pair(r, rest))
    return shifted, _sum(k, *found)


def _half_less_one(k: Floats, x: Value) -> Pair:
    """(e^x − 1) / 2: half of everything, because 2^n itself may be too large."""
    shifted, r, rest = _split(k, x)
    power = k.of_bits(k.on_bits("shl", k.on_bits("add", k.bits(shifted), 1022), 52))
    # The sum is exact up to a power of 2^53, beyond which what it loses hardly counts.
    start, start_rest = _sum(k, -0.5, power)
    found = k.fma(power, r, start)
    lost = k.fma(power, r, k.sub(start, found))
    return _sum(k, found, k.fma(power, rest, k.add(lost, start_rest)))


def _two_to(k: Floats, x: Value, rest: Value) -> Value:
    """2^(x + rest), for a rest that is small beside 1."""
    shifted = k.add(x, _WHOLE)
    r = k.sub(x, k.sub(shifted, _WHOLE))
    line = _product(k, r, _LN_2)
    curve = k.fma(k.mul(r, r), k.polynomial(r, _TWO_TO), k.fma(r, _LN_2_REST, line.low))
    total, lost = _sum(k, 1.0, line.high)
    # 2^rest is nearly 1 + rest · ln 2.
    found = k.add(total, curve)
    more = k.fma(k.mul(rest, _LN_2), found, k.add(lost, curve))
    return _scaled(k, k.add(total, more), shifted)


def _scaled(k: Floats, x: Value, shifted: Value) -> Value:
    """x · 2^n in two steps, as 2^n itself may be out of range; the first step is exact."""
    n = k.on_bits("sub", k.bits(shifted), k.bits(_WHOLE))
    first = k.on_bits("ashr", n, 1)
    for exponent in (first, k.on_bits("sub", n, first)):
        x = k.mul(x, k.of_bits(k.on_bits("shl", k.on_bits("add", exponent, 1023), 52)))
    return x


# erf(x) / x − 1 in x² for |x| ≤ 1: 0.13
_ERF = (
    *(0.12837916709551256, -0.37612638903183343, 0.11283791670936942, -0.0268661706419561, 0.005223977596695229),
    *(-0.000854832548224954, 0.00012055280389578861, -1.4924463098825448e-05, 1.6444113159901044e-06),
    *(-1.6183658008161348e-07, 1.3615056327818141e-08, -7.604370595732832e-10),
)
# ln(1 − erf(x)) for 1 ≤ x ≤ 5.95: 0.07 of erf(x)
_ERF_TAIL = (
    *(-5.028481858741291e-07, -1.1283740894977807, -0.6366436279658804, -0.10270343991442063, 0.018990179690350006),
    *(0.0004106266951400383, -0.0019159421284985867, 0.0007706423728177613, -0.00013504998437285725),
    *(-2.0266762749759433e-05, 2.2822504616999407e-05, -8.667152500498622e-06, 2.135671428070442e-06),
    *(-3.733011061391514e-07, 4.642254857599119e-08, -3.934219254515505e-09, 2.044934979147364e-10),
    -4.928538562907634e-12,
)


def erf(k: Floats, x: Value) -> Value:
    """2/√π · ∫ e^(−t²) from 0 to x."""
    size = k.at_most(k.absolute(x), 5.95)
    near = k.fma(k.polynomial(k.mul(x, x), _ERF), x, x)
    half = _half_less_one(k, k.polynomial(size, _ERF_TAIL)).high
    far = k.with_sign(k.add(half, half), x)
    return k.select(k.compare("olt", size, 1.0), near, far)


# Logarithms: x = m · 2^e with m = 1 + f in [√½, √2), and s = f / (2 + f), so that m = (1 + s) / (1 − s).

_HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of √½
_ONE = 0x3FF0000000000000
# ln 2 in two parts, the first of which has 42 bits, so that its products with exponents are exact.
_LN_2_SHORT, _LN_2_SHORT_REST = 0.6931471805598903, 5.497923018708371e-14

# (ln((1 + s) / (1 − s)) − 2s) / s³ in s²: 0.012
_LOG = (
    *(0.6666666666666734, 0.3999999999941696, 0.28571428741973903, 0.2222219860811799, 0.18183562776942683),
    *(0.15314086037021982, 0.14795617485164714),
)


def log(k: Floats, x: Value) -> Value:
    e, f = _exponent(k, x)
    return logarithm_at_ends(k, x, _logarithm(k, e, f, _curve(k, f)))


def log1p(k: Floats, x: Value) -> Value:
    """ln(1 + x), with what 1 + x loses by rounding added at the end: its part of 1 + x."""
    larger, smaller = (k.select(k.compare(predicate, 1.0, x), 1.0, x) for predicate in ("ogt", "olt"))
    total, lost = _sum(k, larger, smaller)
    e, f = _exponent(k, total)
    # Nothing is lost where the sum is 0 or infinite.
    lost = k.div(lost, total)
    lost = k.select(k.compare("ord", lost, 0.0), lost, 0.0)
    found = _logarithm(k, e, f, k.add(_curve(k, f), lost))
    return k.with_sign(logarithm_at_ends(k, total, found), x)


def log2(k: Floats, x: Value) -> Value:
    e, f = _exponent(k, x)
    natural = _sum(k, f, _curve(k, f))
    found, rest = _product(k, natural.high, _LOG2_E)
    rest = k.add(rest, k.fma(natural.high, _LOG2_E_REST, k.mul(natural.low, _LOG2_E)))
    total, lost = _sum(k, e, found)
    return logarithm_at_ends(k, x, k.add(total, k.add(lost, rest)))


def _exponent(k: Floats, x: Value) -> tuple[Value, Value]:
    """e and f, of a number that is positive and finite."""
    # Subnormal numbers are scaled up first.
    small = k.compare("olt", x, 2.0**-1022)
    words = k.bits(k.select(small, k.mul(x, 2.0**54), x))
    # The bits of √½ are subtracted and those of 1 added, which keeps everything positive.
    exponent = k.on_bits("lshr", k.on_bits("add", words, _ONE - _HALF_ROOT), 52)
    m = k.of_bits(k.on_bits("sub", words, k.on_bits("shl", k.on_bits("sub", exponent, 1023), 52)))
    e = k.sub(k.of_bits(k.on_bits("or", exponent, 0x4330000000000000)), 2.0**52 + 1023)
    return k.sub(e, k.select(small, 54.0, 0.0)), k.sub(m, 1.0)


def _curve(k: Floats, f: Value) -> Value:
    """ln(1 + f) − f = s · (f²/2 + …) − f²/2."""
    s = k.div(f, k.add(f, 2.0))
    square = k.mul(s, s)
    half = k.mul(k.mul(f, f), 0.5)
    return k.fma(s, k.fma(square, k.polynomial(square, _LOG), half), k.neg(half))


def _logarithm(k: Floats, e: Value, f: Value, rest: Value) -> Value:
    """e · ln 2 + f + rest."""
    total, lost = _sum(k, k.mul(e, _LN_2_SHORT), f)
    return k.add(total, k.add(k.fma(e, _LN_2_SHORT_REST, lost), rest))


# Powers: 2^(b · log2(a)), with the logarithm in two parts.

# log2((1 + s) / (1 − s)) / s in s²: 2/ln 2 and 2/(3 ln 2) in two parts each, then the rest with an error of 2^-73.
_TWICE_LOG2_E = _LOG2_E * 2, _LOG2_E_REST * 2
_THIRD_OF_IT = 0.9617966939259756, 5.0577616648125907e-17
_LOG2 = (
    *(0.5770780163555851, 0.41219858311134566, 0.3205988979127999, 0.26230819865633226, 0.2219522704222319),
    *(0.19240132193750895, 0.16845147245767317, 0.17281807470300997),
)


def power(k: Floats, a: Value, b: Value) -> Value:
    """a^b as C defines it."""
    size = k.absolute(a)
    logarithm = _log2_pair(k, size)
    found, rest = _product(k, b, logarithm.high)
    rest = k.fma(b, logarithm.low, rest)
    # Beyond the range only the side counts, and the rest may be infinite or NaN.
    outside = k.compare("ogt", k.absolute(found), 1080.0)
    found = _two_to(k, k.select(outside, k.with_sign(1080.0, found), found), k.select(outside, 0.0, rest))
    # Of whole exponents, the odd ones keep the sign of a. Others are for what is not negative, and for −∞.
    whole, even = (k.compare("oeq", k.f.intrinsic("rint", part), part) for part in (b, k.mul(b, 0.5)))
    signed = k.select(even, found, k.with_sign(found, a))
    negative = k.both(k.compare("olt", a, 0.0), k.compare("ogt", a, -math.inf))
    found = k.select(whole, signed, k.select(negative, NAN, found))
    return power_at_one(k, a, b, found)


def _log2_pair(k: Floats, x: Value) -> Pair:
    """log2(x) to 2^-64 of it, for x that is not negative."""
    e, f = _exponent(k, x)
    below = _sum(k, 2.0, f)
    inverse = k.div(1.0, below.high)
    s = k.mul(f, inverse)
    s_rest = k.mul(k.fma(k.neg(s), below.low, k.fma(k.neg(s), below.high, f)), inverse)
    square, square_rest = _product(k, s, s)
    square_rest = k.fma(k.add(s, s), s_rest, square_rest)
    # Of the series only the first two terms need two parts.
    others = k.fma(square, k.polynomial(square, _LOG2), k.mul(square_rest, _LOG2[0]))
    third, third_rest = _sum(k, _THIRD_OF_IT[0], others)
    third_rest = k.add(third_rest, _THIRD_OF_IT[1])
    more, more_rest = _product(k, square, third)
    more_rest = k.add(more_rest, k.fma(square, third_rest, k.mul(square_rest, third)))
    slope, slope_rest = _sum(k, _TWICE_LOG2_E[0], more)
    slope_rest = k.add(slope_rest, k.add(more_rest, _TWICE_LOG2_E[1]))
    found, rest = _product(k, s, slope)
    rest = k.add(rest, k.fma(s, slope_rest, k.mul(s_rest, slope)))
    total, lost = _sum(k, e, found)
    total, lost = _sum(k, total, k.add(lost, rest))
    # 0, infinity and NaN have no second part.
    total = k.select(k.compare("oeq", x, 0.0), -math.inf, k.select(k.compare("ult", x, math.inf), total, x))
    ends = k.either(k.compare("oeq", x, 0.0), k.compare("oeq", x, math.inf))
    return Pair(k.select(k.compare("uno", x, 0.0), x, total), k.select(ends, 0.0, lost))


# Angles: x = n · π/2 + r with |r| ≤ π/4.

_LARGE = 2.0**30
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)

# (sin r − r) / r³ and (cos r − 1 + r²/2) / r⁴ in r² for |r| ≤ π/4: 0.034 and 0.001
_SIN = (
    *(-0.1666666666666663, 0.00833333333332184, -0.00019841269829359032, 2.7557313538913813e-06),
    *(-2.5050734484851236e-08, 1.5895440460386164e-10),
)
_COS = (
    *(0.041666666666666595, -0.001388888888887334, 2.480158728899932e-05, -2.7557314215883296e-07),
    *(2.0875705199041197e-09, -1.1358737454138134e-11),
)

# 2/π, 64 bits at a time, behind 64 zeros.
_TWO_OVER_PI_WORDS = (
    *(0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0),
    *(0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4),
    *(0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D),
    *(0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB),
)


def sin(k: Floats, x: Value) -> Value:
    quarter, r = _range_reduced(k, x)
    sine, cosine = _sine_and_cosine(k, r)
    found = k.select(angles.is_odd(k, quarter), k.add(*cosine), k.add(*sine))
    # The sign of sin(−0), which the sum has lost.
    return k.select(k.compare("oeq", x, 0.0), x, angles.signed_by_quarter(k, found, quarter))


def cos(k: Floats, x: Value) -> Value:
    quarter, r = _range_reduced(k, x)
    sine, cosine = _sine_and_cosine(k, r)
    found = k.select(angles.is_odd(k, quarter), k.add(*sine), k.add(*cosine))
    return angles.signed_by_quarter(k, found, k.on_bits("add", quarter, 1))


def tan(k: Floats, x: Value) -> Value:
    quarter, r = _range_reduced(k, x)
    odd = angles.is_odd(k, quarter)
    sine, cosine = (_sum(k, *part) for part in _sine_and_cosine(k, r))
    above = Pair(*(k.select(odd, *parts) for parts in zip(cosine, sine, strict=True)))
    below = Pair(*(k.select(odd, k.neg(of_sine), of_cosine) for of_sine, of_cosine in zip(sine, cosine, strict=True)))
    return k.select(k.compare("oeq", x, 0.0), x, _quotient(k, above, below))


def _sine_and_cosine(k: Floats, r: Pair) -> tuple[Pair, Pair]:
    """Each as a sum of two numbers, of which the first may still be far from the sum."""
    square, square_rest = _product(k, r.high, r.high)
    flat, flat_rest = _sum(k, 1.0, k.mul(square, -0.5))
    curve = k.fma(k.mul(square, r.high), k.polynomial(square, _SIN), k.mul(r.low, flat))
    # What cos(r) loses where r and r² lack something.
    lost = k.fma(square_rest, -0.5, k.fma(k.neg(r.high), r.low, flat_rest))
    return Pair(r.high, curve), Pair(flat, k.fma(k.mul(square, square), k.polynomial(square, _COS), lost))


def _range_reduced(k: Floats, x: Value) -> tuple[Value, Pair]:
    """The lowest bits of n, and r."""
    shifted = k.fma(x, _TWO_OVER_PI, _WHOLE)
    n = k.sub(shifted, _WHOLE)
    # Exact: both terms are multiples of 2^-53, and the difference is less than 2^53 of these.
    first = k.fma(n, -_HALF_PI[0], x)
    second = _product(k, n, _HALF_PI[1])
    r = k.sub(first, second.high)
    moved = k.sub(r, first)
    lost = k.sub(k.sub(first, k.sub(r, moved)), k.add(second.high, moved))
    rest = k.fma(n, -_HALF_PI[2], k.sub(lost, second.low))
    small = [k.bits(shifted), r, rest]
    # NaN and infinities go the other way too, and come out as NaN.
    large = k.compare("uge", k.absolute(x), _LARGE)

    def other() -> Sequence[Value]:
        found = _large_range_reduced(k, x)
        return [k.f.select(large, *parts) for parts in zip(found, small, strict=True)]

    quarter, *parts = k.f.branch(any_lane(k.f, large), other, lambda: small, rare=True)
    return quarter, Pair(*parts)


def _large_range_reduced(k: Floats, x: Value) -> Sequence[Value]:
    """The same for any angle of 2^30 or more: the quarter, and r in two parts.

    x is m · 2^e with 53 bits in m, and of 2/π only the bits count that give parts of a period: those above give whole
    periods, and those 192 bits below give nothing that r could show: no angle leaves less than 2^-62 of a quarter.
    """
    f, words = k.f, k.bits(k.absolute(x))
    exponent = k.on_bits("sub", k.on_bits("lshr", words, 52), 1023)
    mantissa = k.on_bits("or", k.on_bits("and", words, (1 << 52) - 1), 1 << 52)
    # The first bit that counts has the weight 2 with the mantissa: bit e − 53 behind the point, or e + 10 of the table.
    first_bit = k.on_bits("add", exponent, 10)
    low, middle, high = reversed(_window(k, k.on_bits("lshr", first_bit, 6), k.on_bits("and", first_bit, 63)))
    carried, (upper, below) = _product_words(k, mantissa, low)[0], _product_words(k, mantissa, middle)
    below = f.binary("add", below, carried)
    overflow = f.convert("zext", f.compare("ult", below, carried), "i64")
    periods = f.binary("add", f.binary("mul", mantissa, high), f.binary("add", upper, overflow))
    # The upper two bits are the quarter, those below it a part of one: rounded to the nearest, it has a sign.
    quarter = k.on_bits("lshr", k.on_bits("add", periods, 1 << 61), 62)
    part = f.intrinsic("fshl", periods, below, k.word(2))
    below = k.on_bits("shl", below, 2)
    units = [
        f.convert("sitofp", piece, "double")
        for piece in (
            *(k.on_bits("ashr", part, 32), k.on_bits("and", part, 0xFFFFFFFF)),
            *(k.on_bits("lshr", below, 32), k.on_bits("and", below, 0xFFFFFFFF)),
        )
    ]
    first, second, third, fourth = (k.mul(unit, 2.0 ** (-32 * at)) for at, unit in enumerate(units, 1))
    part, rest = _sum(k, first, second)
    part, rest = _sum(k, part, k.add(rest, third))
    rest = k.add(rest, fourth)
    r, lost = _product(k, part, _HALF_PI[0])
    lost = k.add(lost, k.fma(part, _HALF_PI[1], k.mul(rest, _HALF_PI[0])))
    negative = k.compare("olt", x, 0.0)
    quarter = f.select(negative, f.binary("sub", k.word(0), quarter), quarter)
    # What is not finite less itself is NaN.
    r = k.add(k.select(negative, k.neg(r), r), k.sub(x, x))
    return [quarter, r, k.select(negative, k.neg(lost), lost)]


def _product_words(k: Floats, a: Value, b: Value) -> tuple[Value, Value]:
    """The upper and the lower 64 bits of a product."""
    wide = k.f.binary("mul", *(k.f.convert("zext", factor, "i128") for factor in (a, b)))
    upper = k.f.binary("lshr", wide, 64)
    return k.f.convert("trunc", upper, "i64"), k.f.convert("trunc", wide, "i64")


def _window(k: Floats, word: Value, bit: Value) -> list[Value]:
    """192 bits of the table from a bit on, the first in one of the words 0 to 16: each digit of that moves all."""
    entries = [k.word(entry) for entry in _TWO_OVER_PI_WORDS]
    for digit, count in ((16, 4), (8, 11), (4, 7), (2, 5), (1, 4)):
        moves = k.f.compare("ne", k.on_bits("and", word, digit), k.word(0))
        moved = [k.f.select(moves, entries[at + digit], entries[at]) for at in range(count)]
        # The first digit is that of the last word, of which only the first four entries count.
        entries = moved + entries[4:19] if digit == 16 else moved
    return [k.f.intrinsic("fshl", entries[at], entries[at + 1], bit) for at in range(3)]


# (atan t − t) / t³ in t² for 0 ≤ t ≤ 1: 0.06
_ATAN = (
    *(-0.3333333333333307, 0.19999999999951748, -0.1428571428258794, 0.11111111007334717, -0.09090907007583936),
    *(0.07692279885001088, -0.06666404377194897, 0.058805294395416104, -0.05253524708267849, 0.04722339898160807),
    *(-0.042192179388091056, 0.03664257565860829, -0.02990473840771897, 0.021985757297134735, -0.01390127738984637),
    *(0.007196937870400651, -0.0028851150032223735, 0.0008313850793947016, -0.00015217390910003103),
    1.322637966595711e-05,
)


def atan2(k: Floats, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with all the cases that C defines."""
    steep, ratio = angles.slope(k, y, x)
    square = k.mul(ratio, ratio)
    # Mirrored at the diagonal and at the vertical axis.
    backward = k.f.compare("slt", k.bits(x), k.word(0))
    mirrored = k.f.binary("xor", steep, backward)
    ratio = k.select(mirrored, k.neg(ratio), ratio)
    curve = k.mul(k.mul(square, ratio), k.polynomial(square, _ATAN))
    start, start_rest = (
        k.select(steep, upright, k.select(backward, 2 * upright, 0.0)) for upright in (_HALF_PI[0], _HALF_PI[1])
    )
    total, lost = _sum(k, start, ratio)
    angle = k.add(total, k.add(lost, k.add(start_rest, curve)))
    return k.select(k.compare("uno", x, y), NAN, k.with_sign(angle, y))


F64: Mapping[str, Recipe] = MappingProxyType(
    {
        "exp": exp,
        "exp2": exp2,
        "expm1": expm1,
        "tanh": tanh,
        "sigmoid": sigmoid,
        "erf": erf,
        "log": log,
        "log2": log2,
        "log1p": log1p,
        "pow": power,
        "sin": sin,
        "cos": cos,
        "tan": tan,
        "atan2": atan2,
    }
)
