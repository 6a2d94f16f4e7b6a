"""e^x and what is made of it in f32: exp, exp2, expm1, tanh, sigmoid, erf.

Every function splits its argument as x = (n + r) · ln 2 or x = n + r with |r| ≤ 1/2, computes 2^r or e^r − 1 by a
polynomial and scales by 2^n. Coefficients are minimax fits, rounded to f32 one after another with the rest fitted
again; the errors beside them are those of the polynomials in units of 2^-24, without rounding.

Processors take a hundred times as long for a result too small for the format. Masks are made of large negative
numbers, so that zeros are written where e^x is certain to be one, and not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from tessera.targets.llvm.floats import Floats, Operand, Sixteen
from tessera.targets.llvm.text import Value

# log2(e) and ln 2 in two parts. ln 2's first part has 15 bits, so that its products with exponents are exact.
_LOG2_E, _LOG2_E_REST = 1.4426950216293335, 1.925963033500011e-08
_LN_2, _LN_2_REST = 0.693145751953125, 1.428606765330187e-06

# Where e^x is the largest number, and the smallest one that is normal.
_LARGEST, _SMALLEST = 88.72283, -87.33654

# Adding this rounds to a whole number, found in the lowest bits of the sum.
_WHOLE = 1.5 * 2.0**23
_SIXTEENTHS = 1.5 * 2.0**19
# The same with what exponents of f32 are counted from, but for one: so that half of each power is a number.
_EXPONENT = _WHOLE + 126

_POWERS_OF_TWO = [2.0 ** (j / 16) for j in range(16)]

# (2^r − 1) / r for |r| ≤ 1/32, and for 0 ≤ r ≤ 1/16: 0.03
_NEAR_ZERO = (0.693147182, 0.240234315, 0.0555023514)
# 2^r for 0 ≤ r < 1 with much less: 1255
_APPROXIMATE_EXP2 = (0.999925256, 0.695833504, 0.2260672, 0.0780245364)
_ABOVE_ZERO = (0.6931476, 0.240184903, 0.0566629842)
# 2^-r for |r| ≤ 1/2 with much less: 1255
_APPROXIMATE_EXP2_BELOW = (0.999928057, -0.693260968, 0.242611125, -0.0551716685)
# (2^r − 1) / r for |r| ≤ 1/2: 0.05
_TWO_TO = (0.693147182, 0.240226477, 0.0555035993, 0.00961850584, 0.00133908121, 0.000153264933)
_TWICE_TWO_TO = tuple([2 * coefficient for coefficient in _TWO_TO])
_TWICE_APPROXIMATE_EXP2 = tuple(
    [2 * (-1) ** power * coefficient for power, coefficient in enumerate(_APPROXIMATE_EXP2_BELOW)]
)
# (e^r − 1 − r) / r² for |r| ≤ ln 2 / 2: 0.05 relative to e^r, 0.007 relative to e^r − 1
_E_TO = (0.49999994, 0.166665211, 0.0416682586, 0.00836866815, 0.00138212577)
_E_TO_LESS_ONE = (0.5, 0.166666657, 0.0416664928, 0.00833354704, 0.00139323156, 0.000197609945)


def exp(k: Floats, x: Value) -> Value:
    """e^x."""
    return _exp(k, k.at_most(x, 89.0))


def _exp(k: Floats, x: Value) -> Value:
    """e^x, for x that is at most 89."""
    some = k.compare("uge", x, -103.98)
    if isinstance(k, Sixteen):
        shifted = k.fma(x, _LOG2_E, _SIXTEENTHS)
        n = k.sub(shifted, _SIXTEENTHS)
        r = k.fma(x, _LOG2_E_REST, k.fma(x, _LOG2_E, k.neg(n)))
        power = k.look_up(_POWERS_OF_TWO, shifted)
        return k.scaled(k.fma(k.mul(power, r), k.polynomial(r, _NEAR_ZERO), power), n, some)
    shifted, r = _split(k, k.at_least(x, -104.0))
    return _scaled(k, k.add(_less_one(k, r, _E_TO), 1.0), shifted, some)


def flushed_exp(k: Floats, x: Value) -> Value:
    """e^x where zeros stand for subnormal results: then one step scales, by adding to the exponent."""
    shifted, r = _split(k, x)
    return _raised(k, x, k.add(_less_one(k, r, _E_TO), 1.0), shifted)


def flushed_exp2(k: Floats, x: Value) -> Value:
    """2^x where zeros stand for what is nearly subnormal, or is."""
    inside, shifted, r = _split_by_two(k, x)
    return _lifted(k, inside, k.fma(r, k.polynomial(r, _TWICE_TWO_TO), 2.0), shifted)


def exp2(k: Floats, x: Value) -> Value:
    """2^x."""
    some = k.compare("uge", x, -150.0)
    if isinstance(k, Sixteen):
        # Everything is rounded down here, as scaling does with its exponent.
        r = k.fraction(x, 4)
        power = k.look_up(_POWERS_OF_TWO, k.add_down(x, _SIXTEENTHS))
        return k.scaled(k.fma(k.mul(power, r), k.polynomial(r, _ABOVE_ZERO), power), x, some)
    inside = k.at_least(k.at_most(x, 129.0), -151.0)
    shifted = k.add(inside, _WHOLE)
    r = k.sub(inside, k.sub(shifted, _WHOLE))
    return _scaled(k, k.fma(r, k.polynomial(r, _TWO_TO), 1.0), shifted, some)


def expm1(k: Floats, x: Value) -> Value:
    """e^x − 1."""
    inside = k.at_least(k.at_most(x, 89.0), -18.0)
    shifted, r = _split(k, inside)
    # Half of everything, because 2^n itself may be too large.
    half = _power(k, shifted, -1)
    found = k.fma(half, _less_one(k, r, _E_TO_LESS_ONE), k.sub(half, 0.5))
    return k.with_sign(k.add(found, found), x)


def tanh(k: Floats, x: Value) -> Value:
    """(1 − d) / (1 + d) with d = e^(−2|x|)."""
    size = k.at_most(k.absolute(x), 10.0)
    shifted, r = _split(k, k.mul(size, -2.0))
    power = _power(k, shifted, 0)
    less_one = k.fma(power, _less_one(k, r, _E_TO_LESS_ONE), k.sub(power, 1.0))
    return k.with_sign(_quotient(k, less_one, k.add(less_one, 2.0)), x)


def sigmoid(k: Floats, x: Value) -> Value:
    """1 / (1 + e^-x), without overflow on either side."""
    decay = _exp(k, k.neg(k.absolute(x)))
    above = k.select(k.compare("oge", x, 0.0), 1.0, decay)
    return _quotient(k, above, k.add(decay, 1.0))


# ln(1 − erf(x)) + x for 0.92 ≤ x ≤ 3.95, from the power x on: 0.01 of 1 − erf(x)
_ERF_TAIL = (-0.128653213, -0.635131657, -0.106270164, 0.0237913784, -0.00365661085, 0.000326352223, -1.15921875e-05)
# erf(x) / x − 1 in x² for |x| ≤ 0.92: 0.26
_ERF = (0.128379151, -0.376124978, 0.112818435, -0.0267673489, 0.00499403803, -0.00059945049)
# erf(j/4 + u) for 0 ≤ u ≤ 1/4: six rows, for u^0 to u^5, of sixteen coefficients, for j = 0 to 15; 0.9 at most
_ERF_WORDS = """
0 0.276326388 0.520499885 0.711155653 0.842700779 0.92290014 0.966105163 0.986671686 0.995322287 0.998537302
0.999593019 0.999899387 0.999977887 0.999995708 0.999999285 0.999999881
1.12837911 1.06001341 0.878780544 0.642926872 0.415110469 0.236519203 0.11892727 0.052772101 0.0206625499
0.00713854749 0.00218392676 0.000584402122 0.000143798883 2.69418852e-05 -1.57690138e-07 1.97522877e-06
9.80899404e-06 -0.264952123 -0.439300418 -0.482053131 -0.415212154 -0.2956056 -0.178309485 -0.0922671184
-0.0411912203 -0.0159476306 -0.00562433992 -0.00155153533 -0.000562624424 -2.29701691e-05 0.000158645082
-3.82374092e-05
-0.37638399 -0.310216457 -0.147936612 0.0249905586 0.139683157 0.167263761 0.137960806 0.0892179832 0.0466119312
0.0203202683 0.0103217643 0.00206766417 0.00240352517 -0.000610095158 -0.00194375613 0.000398504402
0.00233799173 0.135840639 0.193876401 0.160477728 0.0621168837 -0.00692390697 -0.0424746126 -0.0443521589
-0.0269945245 -0.0123928366 -0.0173995979 2.51547408e-05 -0.00836460385 0.00340992305 0.0090045277
-0.00179571635
0.105341986 0.0472656563 -0.0296353307 -0.0774368942 -0.0539534129 -0.0367681459 -0.0109611284 0.00353651191
0.000946832413 -0.0013072486 0.0190621894 -0.00309441984 0.0124581186 -0.00568276085 -0.0144425957 0.00286005437
"""
# The same with much less, for u^0 to u^3: 115
_APPROXIMATE_ERF_WORDS = """
0 0.276322812 0.520493031 0.711151063 0.842699587 0.922901511 0.966107547 0.986673832 0.995323658 0.998538017
0.999593377 0.999899507 0.999977946 0.999995708 0.999999285 0.999999881
1.12855136 1.0605408 0.879575133 0.643462956 0.41525647 0.236382291 0.11868234 0.0525536537 0.0205238555 0.00706813764
0.00214627385 0.000574176956 0.000135729846 2.816491e-05 3.29991462e-06 1.25160261e-06
-0.00363254547 -0.276226014 -0.454381615 -0.492464781 -0.418238044 -0.293374568 -0.174024194 -0.0884090886
-0.0387664437 -0.0147406356 -0.0048758518 -0.00140118739 -0.000355143769 -7.71781779e-05 5.23613744e-06
-6.90112256e-06
-0.357555985 -0.23681435 -0.0535328165 0.0934755355 0.161646008 0.156454101 0.113343351 0.0663255453 0.0323843285
0.0134075154 0.00475217355 0.00143630849 0.000385421648 8.48680211e-05 -3.7008831e-05 1.45687827e-05
"""
# tanh(j/2 + u) for 0 ≤ u ≤ 1/2, for u^0 to u^4, with 1 at the end: 119
_APPROXIMATE_TANH_WORDS = """
0 0.462112248 0.761592329 0.905148625 0.964028001 0.986614466 0.995054841 0.998177946 0.999329329 0.999753237
0.999909222 0.999966621 0.999987721 0.99999547 0.999998331 0.999999404
0.99968195 0.78691119 0.420141995 0.18067871 0.0706163198 0.026576519 0.00985879451 0.00363722909 0.00133897481
0.000491985411 0.000180593735 6.55438125e-05 2.40684349e-05 9.5131636e-06 3.69838517e-06 1.19209e-06
0.00682656001 -0.370195329 -0.322472245 -0.163207009 -0.0676145628 -0.0260012485 -0.00971342064 -0.00358580588
-0.00131630164 -0.000477476366 -0.000171956301 -5.53830323e-05 -1.99858896e-05 -1.31807092e-05 -7.02950092e-06 0
-0.379613757 -0.0597097911 0.118853107 0.0862689763 0.0395141505 0.0157423429 0.00593103748 0.00217604847
0.000786165125 0.000268465868 8.77877101e-05 9.13389522e-06 2.21695996e-06 1.8047067e-05 1.39776566e-05 0
0.128227353 0.0966623053 -0.0120467329 -0.0230784863 -0.0121214557 -0.00504837139 -0.00190975738 -0.000684760453
-0.000236637308 -6.727867e-05 -1.43955613e-05 1.64990906e-05 7.14573525e-06 -1.36714407e-05 -1.2603401e-05 0
"""


def _in_rows(words: str) -> list[list[float]]:
    """Sixteen numbers in a row."""
    found = [float(word) for word in words.split()]
    return [found[start : start + 16] for start in range(0, len(found), 16)]


_ERF_PIECES, _APPROXIMATE_ERF_PIECES, _APPROXIMATE_TANH_PIECES = map(
    _in_rows, (_ERF_WORDS, _APPROXIMATE_ERF_WORDS, _APPROXIMATE_TANH_WORDS)
)


def _in_pieces(k: Sixteen, x: Value, per_unit: float, pieces: list[list[float]]) -> Value:
    """An odd function by sixteen polynomials, so many of them from one whole number to the next."""
    size = k.at_most(k.absolute(x), 16 / per_unit * (1 - 2.0**-24))
    whole = _WHOLE / per_unit
    shifted = k.add_down(size, whole)
    u = k.sub(size, k.sub(shifted, whole))
    *rest, found = [k.look_up(row, shifted) for row in pieces]
    for coefficient in reversed(rest):
        found = k.fma(found, u, coefficient)
    return k.with_sign(found, x)


def erf(k: Floats, x: Value) -> Value:
    """2/√π · ∫ e^(−t²) from 0 to x."""
    if isinstance(k, Sixteen):
        return _in_pieces(k, x, 4.0, _ERF_PIECES)
    size = k.at_most(k.absolute(x), 4.0)
    square = k.mul(x, x)
    near = k.fma(k.polynomial(square, _ERF), x, x)
    tail = k.fma(k.polynomial(size, _ERF_TAIL), size, k.neg(size))
    shifted, r = _split(k, tail)
    power = _power(k, shifted, 0)
    less_one = k.fma(power, _less_one(k, r, _E_TO), k.sub(power, 1.0))
    far = k.with_sign(less_one, x)
    return k.select(k.compare("olt", size, 0.921875), near, far)


def _split(k: Floats, x: Value) -> tuple[Value, Value]:
    """n + 1.5 · 2^23 and r, for x = n · ln 2 + r."""
    shifted = k.fma(x, _LOG2_E, _WHOLE)
    n = k.sub(shifted, _WHOLE)
    return shifted, k.fma(n, -_LN_2_REST, k.fma(n, -_LN_2, x))


def _less_one(k: Floats, r: Value, coefficients: tuple[float, ...]) -> Value:
    """e^r − 1."""
    return k.fma(k.mul(r, r), k.polynomial(r, coefficients), r)


def _power(k: Floats, shifted: Value, more: int) -> Value:
    """2^(n + more), which must be a normal number."""
    return k.of_bits(k.on_bits("add", k.on_bits("shl", k.bits(shifted), 23), (127 + more) << 23))


def _scaled(k: Floats, x: Value, shifted: Value, some: Value) -> Value:
    """x · 2^n in two steps, as 2^n itself may be out of range; the first step is exact. 0 where not `some`."""
    n = k.on_bits("sub", k.bits(shifted), 0x4B400000)
    first = k.on_bits("ashr", n, 1)
    factors = [
        k.of_bits(k.on_bits("shl", k.on_bits("add", exponent, 127), 23))
        for exponent in (first, k.on_bits("sub", n, first))
    ]
    return k.mul(k.mul(x, factors[0]), k.select(some, factors[1], 0.0))


def _raised(k: Floats, x: Value, mantissa: Value, shifted: Value) -> Value:
    """mantissa · 2^n for e^x; 0 where that is no normal number, and infinity where it is none."""
    found = k.of_bits(k.on_bits("add", k.bits(mantissa), k.on_bits("shl", k.bits(shifted), 23)))
    # A NaN has any bits, so that what is added to may be none: a multiple of it is one.
    found = k.select(k.compare("ugt", x, _LARGEST), k.mul(x, 2.0**127), found)
    return k.select(k.compare("olt", x, _SMALLEST), 0.0, found)


def _split_by_two(k: Floats, x: Value) -> tuple[Value, Value, Value]:
    """x, but 129 at most, then n in the lowest bits, as an exponent of f32 has it, and r, for x = n + r."""
    inside = k.at_most(x, 129.0)
    shifted = k.add(inside, _EXPONENT)
    return inside, shifted, k.sub(inside, k.sub(shifted, _EXPONENT))


def _lifted(k: Floats, x: Value, twice: Value, shifted: Value) -> Value:
    """`twice` · 2^(n − 1) for 2^x; 0 where that is below 2^-125. 2^129 is infinite, and NaN stays NaN."""
    found = k.mul(twice, k.of_bits(k.on_bits("shl", k.bits(shifted), 23)))
    return k.select(k.compare("olt", x, -125.0), 0.0, found)


def _quotient(k: Floats, a: Operand, b: Value) -> Value:
    """a / b for b in [1, 2], within 1.5 units in the last place where that is quicker than dividing."""
    if not isinstance(k, Sixteen):
        return k.div(a, b)
    inverse = k.nearly_inverse(b)
    error = k.fma(k.neg(b), inverse, 1.0)
    return k.mul(a, k.fma(inverse, error, inverse))


def _approximate_exp(k: Floats, x: Value) -> Value:
    if not isinstance(k, Sixteen):
        shifted = k.fma(x, _LOG2_E, _WHOLE)
        less = k.fma(k.neg(x), _LOG2_E, k.sub(shifted, _WHOLE))
        return _raised(k, x, k.polynomial(less, _APPROXIMATE_EXP2_BELOW), shifted)
    y = k.mul(x, _LOG2_E)
    r = k.fraction(y, 0)
    # Subnormal results are nothing beside others.
    some = None if k.flushes else k.compare("uge", x, -87.0)
    return k.scaled(k.polynomial(r, _APPROXIMATE_EXP2), y, some)


def _approximate_exp2(k: Floats, x: Value) -> Value:
    if not isinstance(k, Sixteen):
        inside, shifted, r = _split_by_two(k, x)
        return _lifted(k, inside, k.polynomial(r, _TWICE_APPROXIMATE_EXP2), shifted)
    some = None if k.flushes else k.compare("uge", x, -126.0)
    return k.scaled(k.polynomial(k.fraction(x, 0), _APPROXIMATE_EXP2), x, some)


def _approximate_sigmoid(k: Sixteen, x: Value) -> Value:
    return k.nearly_inverse(k.add(_approximate_exp(k, k.neg(x)), 1.0))


def _approximate_tanh(k: Sixteen, x: Value) -> Value:
    return _in_pieces(k, x, 2.0, _APPROXIMATE_TANH_PIECES)


def _approximate_erf(k: Sixteen, x: Value) -> Value:
    return _in_pieces(k, x, 4.0, _APPROXIMATE_ERF_PIECES)


@dataclass(frozen=True)
class ApproximateForm:
    """A less exact, faster form of a function, for results that are rounded to 8 bits later, and its largest errors.

    They are in parts of the result, absolute, and in parts of 1 − |result| (beyond half a unit of f32, which takes
    that difference away from the exact forms as well). `everywhere`: the form needs nothing that AVX-512 alone has.
    """

    work: Callable[[Any, Value], Value]
    relative: float
    absolute: float = inf
    beside_one: float = inf
    everywhere: bool = False


APPROXIMATE_FORMS: Mapping[str, ApproximateForm] = {
    "exp": ApproximateForm(_approximate_exp, 8e-5, everywhere=True),
    "exp2": ApproximateForm(_approximate_exp2, 8e-5, everywhere=True),
    "sigmoid": ApproximateForm(_approximate_sigmoid, 2e-4),
    "tanh": ApproximateForm(_approximate_tanh, 3.2e-4, 7.2e-6, 1.4e-5),
    "erf": ApproximateForm(_approximate_erf, 1.6e-4, 7e-6, 9.7e-4),
}

FLUSHED: Mapping[str, Callable[[Floats, Value], Value]] = {"exp": flushed_exp, "exp2": flushed_exp2}
"""Forms that are quicker where zeros stand for subnormal results, but for vectors that have steps of AVX-512."""
