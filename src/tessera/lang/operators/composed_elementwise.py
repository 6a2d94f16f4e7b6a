"""Elementwise functions composed of others, computed wide and rounded once; rows of the table are in elementwise.py."""

from __future__ import annotations

import math

from tessera.lang.operator import operator
from tessera.lang.operators.operands import computed
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced

_LN2 = math.log(2.0)


def _with_sign_of(x: Traced, size: Traced) -> Traced:
    return ew("copysign", size, x)


@operator
def atan(x: Array, /) -> Traced:
    """The arc tangent of each element, from -π/2 to π/2."""

    def by(x: Traced) -> Traced:
        return elementwise("atan2", x, 1.0)

    return computed("atan", x, by=by)


def _leg(x: Traced) -> Traced:
    """√(1 - x²), without cancellation near ±1; NaN beyond."""
    return ew("sqrt", ew("mul", elementwise("sub", 1.0, x), elementwise("add", 1.0, x)))


@operator
def asin(x: Array, /) -> Traced:
    """The arc sine of each element, from -π/2 to π/2; NaN outside of [-1, 1]."""

    def by(x: Traced) -> Traced:
        return ew("atan2", x, _leg(x))

    return computed("asin", x, by=by)


@operator
def acos(x: Array, /) -> Traced:
    """The arc cosine of each element, from 0 to π; NaN outside of [-1, 1]."""

    def by(x: Traced) -> Traced:
        return ew("atan2", _leg(x), x)

    return computed("acos", x, by=by)


def _half_power(size: Traced) -> Traced:
    """e^x / 2 by two factors, so that it overflows only where the result does."""
    root = ew("exp", elementwise("mul", size, 0.5))
    return ew("mul", elementwise("mul", root, 0.5), root)


# Where e^-x no longer counts beside e^x, and e^x is still far from overflow, in f32 and in f64.
_ALONE = 20.0


@operator
def sinh(x: Array, /) -> Traced:
    """The hyperbolic sine of each element."""

    def by(x: Traced) -> Traced:
        size = ew("abs", x)
        above = ew("expm1", elementwise("min", size, _ALONE))
        near = elementwise("mul", ew("add", above, ew("div", above, elementwise("add", above, 1.0))), 0.5)
        return _with_sign_of(x, elementwise("select", elementwise("lt", size, _ALONE), near, _half_power(size)))

    return computed("sinh", x, by=by)


@operator
def cosh(x: Array, /) -> Traced:
    """The hyperbolic cosine of each element."""

    def by(x: Traced) -> Traced:
        size = ew("abs", x)
        power = ew("exp", elementwise("min", size, _ALONE))
        near = elementwise("mul", ew("add", power, ew("reciprocal", power)), 0.5)
        return elementwise("select", elementwise("lt", size, _ALONE), near, _half_power(size))

    return computed("cosh", x, by=by)


# Where 1 no longer counts beside x², in f64.
_LARGE = 2.0**28


@operator
def asinh(x: Array, /) -> Traced:
    """The inverse hyperbolic sine of each element."""

    def by(x: Traced) -> Traced:
        size = ew("abs", x)
        held = elementwise("min", size, _LARGE)
        square = ew("mul", held, held)
        root = ew("sqrt", elementwise("add", square, 1.0))
        near = ew("log1p", ew("add", held, ew("div", square, elementwise("add", root, 1.0))))
        far = elementwise("add", ew("log", size), _LN2)
        return _with_sign_of(x, elementwise("select", elementwise("lt", size, _LARGE), near, far))

    return computed("asinh", x, by=by)


@operator
def acosh(x: Array, /) -> Traced:
    """The inverse hyperbolic cosine of each element; NaN below 1."""

    def by(x: Traced) -> Traced:
        above = elementwise("sub", elementwise("min", x, _LARGE), 1.0)
        root = ew("sqrt", ew("mul", above, elementwise("add", above, 2.0)))
        near = ew("log1p", ew("add", above, root))
        far = elementwise("add", ew("log", x), _LN2)
        found = elementwise("select", elementwise("lt", x, _LARGE), near, far)
        return elementwise("select", elementwise("lt", x, 1.0), math.nan, found)

    return computed("acosh", x, by=by)


@operator
def atanh(x: Array, /) -> Traced:
    """The inverse hyperbolic tangent of each element; ±infinity at ±1, NaN beyond."""

    def by(x: Traced) -> Traced:
        size = ew("abs", x)
        ratio = ew("div", elementwise("mul", size, 2.0), elementwise("sub", 1.0, size))
        return _with_sign_of(x, elementwise("mul", ew("log1p", ratio), 0.5))

    return computed("atanh", x, by=by)


@operator
def log10(x: Array, /) -> Traced:
    """The logarithm of each element to base 10."""

    def by(x: Traced) -> Traced:
        # 1/ln 10 in two parts of one sign, of which f32 holds the first exactly.
        first = 0.4342944622039795
        rest = 0.4342944819032518 - first
        found = ew("log", x)
        return elementwise("fma", found, first, elementwise("mul", found, rest))

    return computed("log10", x, by=by)


@operator
def hypot(x1: Array, x2: Array, /) -> Traced:
    """√(x1² + x2²), without overflow on the way; infinite where one side is, even beside NaN."""

    def by(a: Traced, b: Traced) -> Traced:
        a, b = ew("abs", a), ew("abs", b)
        most, least = elementwise("max", a, b), elementwise("min", a, b)
        ratio = ew("div", least, most)
        found = ew("mul", most, ew("sqrt", elementwise("add", ew("mul", ratio, ratio), 1.0)))
        infinite = elementwise("or", elementwise("isinf", a), elementwise("isinf", b))
        found = elementwise("select", elementwise("eq", most, 0.0), most, found)
        return elementwise("select", infinite, math.inf, found)

    return computed("hypot", x1, x2, by=by)


@operator
def logaddexp(x1: Array, x2: Array, /) -> Traced:
    """log(e^x1 + e^x2), without overflow on the way."""

    def by(a: Traced, b: Traced) -> Traced:
        apart = ew("neg", ew("abs", elementwise("sub", a, b)))
        found = ew("add", elementwise("max", a, b), ew("log1p", ew("exp", apart)))
        # Equal infinities are apart by NaN.
        return elementwise("select", elementwise("eq", a, b), elementwise("add", a, _LN2), found)

    return computed("logaddexp", x1, x2, by=by)


@operator
def relu(x: Array, /) -> Traced:
    """max(x, 0) of each element."""
    return elementwise("max", x, 0)


@operator
def silu(x: Array, /) -> Traced:
    """SiLU: x · sigmoid(x)."""

    def by(x: Traced) -> Traced:
        return ew("mul", x, ew("sigmoid", x))

    return computed("silu", x, by=by)


@operator
def softplus(x: Array, /) -> Traced:
    """Softplus: log(1 + e^x), without overflow."""

    def by(x: Traced) -> Traced:
        return ew("add", elementwise("max", x, 0.0), ew("log1p", ew("exp", ew("neg", ew("abs", x)))))

    return computed("softplus", x, by=by)


@operator
def gelu(x: Array, /, *, approximate: bool | str = False) -> Traced:
    """GELU: x · Φ(x), with the normal distribution's Φ; with `approximate`, True or "tanh", by the formula in tanh."""

    def exact(x: Traced) -> Traced:
        # In this form it is seen how exact erf has to be: next to one it is no more exact than one.
        return ew(
            "mul", elementwise("mul", x, 0.5), elementwise("add", ew("erf", elementwise("mul", x, math.sqrt(0.5))), 1.0)
        )

    def by_tanh(x: Traced) -> Traced:
        cube = ew("mul", ew("mul", x, x), x)
        inner = elementwise("mul", elementwise("fma", cube, 0.044715, x), math.sqrt(2 / math.pi))
        return ew("mul", elementwise("mul", x, 0.5), elementwise("add", ew("tanh", inner), 1.0))

    return computed("gelu", x, by=by_tanh if approximate and approximate != "none" else exact)
