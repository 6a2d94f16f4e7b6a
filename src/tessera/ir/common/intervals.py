"""Interval arithmetic: bounds on the results of elementwise functions from bounds on their operands.

A rule takes the operands' element type and one interval per operand. Its bounds hold for the exact result and for a
float64 evaluation that is off by a few units in the last place; `rounded` then carries them into the result's type,
where a sum may overflow, an integer may wrap and any rounding, even a stochastic one, stays inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from tessera.dtypes.types import DType, FloatFormat, Kind, Specials, i32, i64

INFINITY = math.inf


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `lo` to `hi`, both included and possibly infinite, and NaN where `may_nan`."""

    lo: float
    hi: float
    may_nan: bool = False

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:
            raise ValueError(f"an interval needs lo <= hi, got {self.lo} and {self.hi}")

    def __contains__(self, value: float) -> bool:
        return self.may_nan if math.isnan(value) else self.lo <= value <= self.hi

    @property
    def may_be_infinite(self) -> bool:
        return self.lo == -INFINITY or self.hi == INFINITY

    @property
    def is_point(self) -> bool:
        return self.lo == self.hi and not self.may_nan

    def with_nan(self, may_nan: bool = True) -> Interval:
        return Interval(self.lo, self.hi, self.may_nan or may_nan)


EVERYTHING = Interval(-INFINITY, INFINITY, may_nan=True)
FALSE, TRUE, EITHER = Interval(0, 0), Interval(1, 1), Interval(0, 1)

Rule: TypeAlias = Callable[..., Interval]
RULES: dict[str, Rule] = {}
"""The interval rule of each elementwise function of the table."""


def all_values(dtype: DType) -> Interval:
    """Every value that `dtype` can hold."""
    if dtype.float_format is None:
        return Interval(float(dtype.min_value), float(dtype.max_value))
    if dtype.float_format.specials is Specials.IEEE:
        return EVERYTHING
    limit = dtype.float_format.max_finite
    return Interval(-limit, limit, may_nan=dtype.float_format.specials is Specials.NAN_ONLY)


def rounded(exact: Interval, dtype: DType) -> Interval:
    """The interval of `exact` after rounding to `dtype`."""
    if dtype.policy.loss_scale is not None:
        # Gradients are scaled because their range is unknown; nothing here would be tighter.
        return EVERYTHING
    if dtype.kind is Kind.BOOL:
        return Interval(float(0 not in exact), float(exact != FALSE))
    if dtype.float_format is None:
        lo, hi = _trunc(exact.lo), _trunc(exact.hi)
        least, most = dtype.min_value, dtype.max_value
        if dtype.policy.saturate and not exact.may_nan:
            return Interval(min(max(lo, least), most), min(max(hi, least), most))
        fits = not exact.may_nan and least <= lo and hi <= most
        return Interval(lo, hi) if fits else all_values(dtype)
    return _rounded_float(exact, dtype, dtype.float_format)


def _rounded_float(exact: Interval, dtype: DType, fmt: FloatFormat) -> Interval:
    lo, hi, limit = _format_floor(exact.lo, fmt), -_format_floor(-exact.hi, fmt), fmt.max_finite
    overflows = lo < -limit or hi > limit
    if fmt.specials is Specials.IEEE:
        # Saturating moves infinities to the limit; both are kept.
        return (
            Interval(min(lo, limit), max(hi, -limit), exact.may_nan)
            if dtype.policy.saturate
            else Interval(lo, hi, exact.may_nan)
        )
    if fmt.specials is Specials.FINITE and exact.may_nan:
        return all_values(dtype)
    nan = exact.may_nan or (overflows and fmt.specials is Specials.NAN_ONLY and not dtype.policy.saturate)
    return Interval(min(max(lo, -limit), limit), min(max(hi, -limit), limit), nan)


def _format_floor(x: float, fmt: FloatFormat) -> float:
    """The largest value of the format that is not above x."""
    if x == 0 or math.isinf(x):
        return x
    _, exponent = math.frexp(x)
    quantum = max(exponent - 1, fmt.min_exponent) - fmt.mantissa_bits
    below = math.ldexp(math.floor(math.ldexp(x, -quantum)), quantum)
    return -INFINITY if below < -fmt.max_finite else min(below, fmt.max_finite)


def _float_below(exact: Fraction) -> float:
    """The largest float64 that is not above `exact`."""
    try:
        near = float(exact)
    except OverflowError:
        return math.nextafter(INFINITY, 0) if exact > 0 else -INFINITY
    return near if Fraction(near) <= exact else math.nextafter(near, -INFINITY)


def _float_above(exact: Fraction) -> float:
    return -_float_below(-exact)


def _less(x: float) -> float:
    """Below every float64 that a library may give for the exact value near x: four units and a bit."""
    return x if x == -INFINITY else math.nextafter(x if x == INFINITY else x - abs(x) * 2.0**-50, -INFINITY)


def _more(x: float) -> float:
    return -_less(-x)


def hull(parts: Iterable[Interval]) -> Interval:
    """The smallest interval around all parts; around none, everything."""
    parts = list(parts)
    if not parts:
        return EVERYTHING
    return Interval(min(part.lo for part in parts), max(part.hi for part in parts), any(part.may_nan for part in parts))


def _with_operands_nan(rule: Rule) -> Rule:
    """NaN in gives NaN out."""

    def propagating(dtype: DType, *operands: Interval) -> Interval:
        return rule(dtype, *operands).with_nan(any(operand.may_nan for operand in operands))

    return propagating


def _rule(name: str) -> Callable[[Rule], Rule]:
    """Makes a rule that of a function."""

    def register(rule: Rule) -> Rule:
        RULES[name] = rule
        return rule

    return register


def _with_nan(name: str) -> Callable[[Rule], Rule]:
    """Makes a rule that of a function which gives NaN for NaN."""
    return lambda rule: _rule(name)(_with_operands_nan(rule))


# Signs and rounding to whole numbers.


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: x if math.isinf(x) else float(function(x))


_floor, _trunc = _whole(math.floor), _whole(math.trunc)


def _to_integral(function: Callable[[float], int]) -> Rule:
    apply = _whole(function)

    def bounds(_: DType, x: Interval) -> Interval:
        return Interval(apply(x.lo), apply(x.hi))

    return _with_operands_nan(bounds)


RULES.update(
    {
        "floor": _to_integral(math.floor),
        "ceil": _to_integral(math.ceil),
        "round": _to_integral(round),
        "trunc": _to_integral(math.trunc),
    }
)


@_with_nan("neg")
def neg(_: DType, x: Interval) -> Interval:
    return Interval(-x.hi, -x.lo)


@_with_nan("abs")
def absolute(_: DType, x: Interval) -> Interval:
    return Interval(max(0.0, x.lo, -x.hi), max(-x.lo, x.hi))


@_with_nan("sign")
def sign(_: DType, x: Interval) -> Interval:
    return Interval((x.lo > 0) - (x.lo < 0), (x.hi > 0) - (x.hi < 0))


# Functions of one operand.


def _increasing(function: Callable[[float], float], least: float = -INFINITY, most: float = INFINITY) -> Rule:
    """An increasing function with results between `least` and `most`; overflow means a huge result."""

    def at(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return INFINITY

    def bounds(_: DType, x: Interval) -> Interval:
        return Interval(max(_less(at(x.lo)), least), min(_more(at(x.hi)), most))

    return _with_operands_nan(bounds)


def _increasing_from(start: float, function: Callable[[float], float], at_start: float) -> Rule:
    """An increasing function that is NaN below `start`."""

    def bounds(_: DType, x: Interval) -> Interval:
        if x.hi < start:
            return EVERYTHING
        lo = at_start if x.lo <= start else max(_less(function(x.lo)), at_start)
        hi = at_start if x.hi == start else _more(function(x.hi))
        return Interval(lo, hi, x.lo < start)

    return _with_operands_nan(bounds)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


sqrt = _increasing_from(0.0, math.sqrt, 0.0)
RULES.update(
    {
        "exp": _increasing(math.exp, least=0.0),
        "exp2": _increasing(math.exp2, least=0.0),
        "expm1": _increasing(math.expm1, least=-1.0),
        "tanh": _increasing(math.tanh, least=-1.0, most=1.0),
        "erf": _increasing(math.erf, least=-1.0, most=1.0),
        "sigmoid": _increasing(_sigmoid, least=0.0, most=1.0),
        "log": _increasing_from(0.0, math.log, -INFINITY),
        "log2": _increasing_from(0.0, math.log2, -INFINITY),
        "log1p": _increasing_from(-1.0, math.log1p, -INFINITY),
        "sqrt": sqrt,
    }
)


@_with_nan("rsqrt")
def rsqrt(dtype: DType, x: Interval) -> Interval:
    root = sqrt(dtype, x)
    # The root of -0 is -0, whose reciprocal is -inf.
    return div(dtype, Interval(1, 1), root).with_nan(x.lo < 0)


@_with_nan("reciprocal")
def reciprocal(dtype: DType, x: Interval) -> Interval:
    return div(dtype, Interval(1, 1), x)


# Beyond this, float64 has lost where a point is within its period.
_PERIODIC_LIMIT = 1e6


def _meets(x: Interval, point: float, period: float) -> bool:
    """Whether some point + k·period lies in x; errs on the side of yes."""
    if max(-x.lo, x.hi) > _PERIODIC_LIMIT:
        return True
    slack = 1e-9
    return math.floor((x.hi - point) / period + slack) >= math.ceil((x.lo - point) / period - slack)


@_with_nan("sin")
def sin(_: DType, x: Interval) -> Interval:
    if x.may_be_infinite:
        return Interval(-1, 1, may_nan=True)
    ends = math.sin(x.lo), math.sin(x.hi)
    period, quarter = 2 * math.pi, math.pi / 2
    lo = -1.0 if _meets(x, -quarter, period) else max(-1.0, _less(min(ends)))
    hi = 1.0 if _meets(x, quarter, period) else min(1.0, _more(max(ends)))
    return Interval(lo, hi)


@_with_nan("cos")
def cos(_: DType, x: Interval) -> Interval:
    if x.may_be_infinite:
        return Interval(-1, 1, may_nan=True)
    ends = math.cos(x.lo), math.cos(x.hi)
    period = 2 * math.pi
    lo = -1.0 if _meets(x, math.pi, period) else max(-1.0, _less(min(ends)))
    hi = 1.0 if _meets(x, 0.0, period) else min(1.0, _more(max(ends)))
    return Interval(lo, hi)


@_with_nan("tan")
def tan(_: DType, x: Interval) -> Interval:
    if x.may_be_infinite:
        return EVERYTHING
    if _meets(x, math.pi / 2, math.pi):
        return Interval(-INFINITY, INFINITY)
    return Interval(_less(math.tan(x.lo)), _more(math.tan(x.hi)))


# Arithmetic: exact fractions at the corners, then outwards to float64.


@_with_nan("add")
def add(_: DType, a: Interval, b: Interval) -> Interval:
    opposite = (a.lo == -INFINITY and b.hi == INFINITY) or (a.hi == INFINITY and b.lo == -INFINITY)
    lo = -INFINITY if -INFINITY in (a.lo, b.lo) else _sum_below(a.lo, b.lo)
    hi = INFINITY if INFINITY in (a.hi, b.hi) else -_sum_below(-a.hi, -b.hi)
    return Interval(lo, hi, opposite)


def _sum_below(x: float, y: float) -> float:
    return x + y if math.isinf(x) or math.isinf(y) else _float_below(Fraction(x) + Fraction(y))


@_with_nan("sub")
def sub(dtype: DType, a: Interval, b: Interval) -> Interval:
    return add(dtype, a, neg(dtype, b))


@_with_nan("mul")
def mul(_: DType, a: Interval, b: Interval) -> Interval:
    undefined = (0 in a and b.may_be_infinite) or (0 in b and a.may_be_infinite)
    return hull(_product(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)).with_nan(undefined)


def _product(x: float, y: float) -> Interval:
    if x == 0 or y == 0:
        return Interval(0, 0)
    if math.isinf(x) or math.isinf(y):
        return Interval(x * y, x * y)
    return _around(Fraction(x) * Fraction(y))


def _around(exact: Fraction) -> Interval:
    return Interval(_float_below(exact), _float_above(exact))


@_with_nan("div")
def div(_: DType, a: Interval, b: Interval) -> Interval:
    undefined = (0 in a and 0 in b) or (a.may_be_infinite and b.may_be_infinite)
    if 0 in b:
        return Interval(-INFINITY, INFINITY, undefined)
    corners = [(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi) if not (math.isinf(x) and math.isinf(y))]
    return hull(_quotient(x, y) for x, y in corners).with_nan(undefined)


def _quotient(x: float, y: float) -> Interval:
    if math.isinf(y):
        return Interval(0, 0)
    if math.isinf(x):
        return Interval(x * y, x * y)
    return _around(Fraction(x) / Fraction(y))


def _nonzero_parts(b: Interval) -> list[Interval]:
    """The parts of an integer interval below and above zero."""
    ends = ((b.lo, min(b.hi, -1.0)), (max(b.lo, 1.0), b.hi))
    return [Interval(lo, hi) for lo, hi in ends if lo <= hi]


@_with_nan("floordiv")
def floordiv(dtype: DType, a: Interval, b: Interval) -> Interval:
    if dtype.is_integer:
        quotients = [div(dtype, a, part) for part in _nonzero_parts(b)]
        by_zero = [Interval(0, 0)] if 0 in b else []
        return hull([Interval(_floor(q.lo), _floor(q.hi)) for q in quotients] + by_zero)
    quotient = div(dtype, a, b)
    lo, hi = _less(_floor(quotient.lo)), _more(_floor(quotient.hi))
    if b.may_be_infinite:
        # A quotient that vanishes is still floored: -1 where the signs differ.
        lo, hi = min(lo, -1.0), max(hi, 0.0)
    return Interval(lo, hi, quotient.may_nan or a.may_be_infinite)


@_with_nan("rem")
def rem(dtype: DType, a: Interval, b: Interval) -> Interval:
    if a.lo >= 0 and a.hi < b.lo:
        return a
    if dtype.is_integer:
        parts = [Interval(min(part.lo + 1, 0), max(part.hi - 1, 0)) for part in _nonzero_parts(b)]
        return hull([*parts, a] if 0 in b else parts)
    return Interval(min(b.lo, 0), max(b.hi, 0), 0 in b or a.may_be_infinite)


@_with_nan("pow")
def power(dtype: DType, a: Interval, b: Interval) -> Interval:
    if a.lo > 0 and not (dtype.is_integer and b.lo < 0):
        return hull(_power(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi))
    if b.lo == b.hi and b.lo >= 0 and b.lo % 1 == 0:
        ends = hull((_power(a.lo, b.lo), _power(a.hi, b.lo)))
        return Interval(min(0.0, ends.lo), ends.hi) if b.lo % 2 == 0 and a.lo < 0 < a.hi else ends
    # A negative base has no power unless the exponent is whole.
    return Interval(-INFINITY, INFINITY, a.lo < 0 and dtype.is_float)


def _power(x: float, y: float) -> Interval:
    try:
        value = math.pow(x, y)
    except OverflowError:
        value = -INFINITY if x < 0 and y % 2 == 1 else INFINITY
    return Interval(value, value) if _is_exact_power(x, y, value) else Interval(_less(value), _more(value))


def _is_exact_power(x: float, y: float, value: float) -> bool:
    """Small whole powers are exact; integer rows need that."""
    return x % 1 == 0 and y % 1 == 0 and y >= 0 and abs(value) < 2.0**53


@_with_nan("atan2")
def atan2(_: DType, y: Interval, x: Interval) -> Interval:
    if x.lo > 0 or y.lo > 0 or y.hi < 0:
        ends = [math.atan2(v, u) for v in (y.lo, y.hi) for u in (x.lo, x.hi)]
        return Interval(_less(min(ends)), _more(max(ends)))
    return Interval(_less(-math.pi), _more(math.pi))


@_rule("copysign")
def copysign(dtype: DType, size: Interval, sign: Interval) -> Interval:
    sizes = absolute(dtype, size)
    # A NaN has a sign too, and so has a zero.
    if sign.lo > 0 and not sign.may_nan:
        return sizes
    return neg(dtype, sizes) if sign.hi < 0 and not sign.may_nan else Interval(-sizes.hi, sizes.hi, size.may_nan)


@_with_nan("fma")
def fma(dtype: DType, a: Interval, b: Interval, c: Interval) -> Interval:
    return add(dtype, mul(dtype, a, b), c)


@_with_nan("min")
def minimum(_: DType, a: Interval, b: Interval) -> Interval:
    return Interval(min(a.lo, b.lo), min(a.hi, b.hi))


@_with_nan("max")
def maximum(_: DType, a: Interval, b: Interval) -> Interval:
    return Interval(max(a.lo, b.lo), max(a.hi, b.hi))


# Bits. Results that depend on the width of the type are left to `rounded`.


def _bitwise(function: Callable[[int, int], int], *, narrows: bool) -> Rule:
    """`and` never exceeds its smaller operand (`narrows`); `or` and `xor` set no bit above the highest one."""

    def bounds(_: DType, a: Interval, b: Interval) -> Interval:
        if a.is_point and b.is_point:
            return _around(Fraction(function(int(a.lo), int(b.lo))))
        if a.lo < 0 or b.lo < 0:
            return EVERYTHING
        if narrows:
            return Interval(0, min(a.hi, b.hi))
        return Interval(0, float((1 << int(max(a.hi, b.hi)).bit_length()) - 1))

    return bounds


RULES.update(
    {
        "and": _bitwise(lambda a, b: a & b, narrows=True),
        "or": _bitwise(lambda a, b: a | b, narrows=False),
        "xor": _bitwise(lambda a, b: a ^ b, narrows=False),
    }
)


@_rule("not")
def invert(dtype: DType, x: Interval) -> Interval:
    top = Fraction(-1 if dtype.kind is Kind.INT else int(dtype.max_value))
    return Interval(_float_below(top - Fraction(x.hi)), _float_above(top - Fraction(x.lo)))


@_rule("shl")
def shift_left(dtype: DType, a: Interval, b: Interval) -> Interval:
    if not b.is_point or not 0 <= b.lo < dtype.bits:
        return all_values(dtype)
    return mul(dtype, a, Interval(2.0**b.lo, 2.0**b.lo))


@_rule("shr")
def shift_right(dtype: DType, a: Interval, b: Interval) -> Interval:
    if not b.is_point or not 0 <= b.lo < dtype.bits:
        return Interval(min(a.lo, -1.0 if a.lo < 0 else 0.0), max(a.hi, 0.0))
    return Interval(_floor(a.lo / 2.0**b.lo), _floor(a.hi / 2.0**b.lo))


# Questions and choices.


def _answer(always: bool, never: bool) -> Interval:
    return TRUE if always else FALSE if never else EITHER


@_rule("isnan")
def is_nan(_: DType, x: Interval) -> Interval:
    return EITHER if x.may_nan else FALSE


@_rule("sort_key")
def sort_key(dtype: DType, x: Interval) -> Interval:
    return all_values(i64 if dtype.bits > 32 else i32)


@_rule("from_sort_key")
def from_sort_key(dtype: DType, x: Interval) -> Interval:
    return Interval(-INFINITY, INFINITY, may_nan=True)


@_rule("isinf")
def is_infinite(_: DType, x: Interval) -> Interval:
    return _answer(x.is_point and math.isinf(x.lo), not x.may_be_infinite)


@_rule("isfinite")
def is_finite(_: DType, x: Interval) -> Interval:
    return _answer(not x.may_be_infinite and not x.may_nan, x.lo == x.hi and math.isinf(x.lo))


@_rule("eq")
def equal(_: DType, a: Interval, b: Interval) -> Interval:
    return _answer(a.is_point and b.is_point and a.lo == b.lo, a.hi < b.lo or b.hi < a.lo)


@_rule("ne")
def not_equal(dtype: DType, a: Interval, b: Interval) -> Interval:
    same = equal(dtype, a, b)
    return Interval(1 - same.hi, 1 - same.lo)


@_rule("lt")
def less(_: DType, a: Interval, b: Interval) -> Interval:
    return _answer(a.hi < b.lo and not (a.may_nan or b.may_nan), a.lo >= b.hi)


@_rule("le")
def less_equal(_: DType, a: Interval, b: Interval) -> Interval:
    return _answer(a.hi <= b.lo and not (a.may_nan or b.may_nan), a.lo > b.hi)


@_rule("gt")
def greater(dtype: DType, a: Interval, b: Interval) -> Interval:
    return less(dtype, b, a)


@_rule("ge")
def greater_equal(dtype: DType, a: Interval, b: Interval) -> Interval:
    return less_equal(dtype, b, a)


@_rule("select")
def select(_: DType, condition: Interval, a: Interval, b: Interval) -> Interval:
    return a if condition.lo > 0 else b if condition.hi == 0 else hull((a, b))


@_rule("cast")
def cast(_: DType, x: Interval) -> Interval:
    return x
