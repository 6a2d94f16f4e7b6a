"""Elementwise functions composed of others, computed wide and rounded once; rows of the table are in elementwise.py."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable

from tessera.lang.operator import operator
from tessera.lang.operators.operands import computed
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced

_LN2 = math.log(2.0)


def _rounded_once(by: Callable[..., Traced]) -> Callable[..., Traced]:
    """Makes an operator on floats of a function of values in their compute type; its result is rounded once."""

    @functools.wraps(by)
    def function(*xs: Array) -> Traced:
        return computed(by.__name__, *xs, by=by)

    signature = inspect.signature(by)
    taken = [one.replace(annotation="Array") for one in signature.parameters.values()]
    vars(function)["__signature__"] = signature.replace(parameters=taken)
    return operator(function)


def _with_sign_of(x: Traced, size: Traced) -> Traced:
    return ew("copysign", size, x)


@_rounded_once
def atan(x: Traced, /) -> Traced:
    """The arc tangent of each element, from -π/2 to π/2."""
    return elementwise("atan2", x, 1.0)


def _leg(x: Traced) -> Traced:
    """√(1 - x²), without cancellation near ±1; NaN beyond."""
    return ew("sqrt", ew("mul", elementwise("sub", 1.0, x), elementwise("add", 1.0, x)))


@_rounded_once
def asin(x: Traced, /) -> Traced:
    """The arc sine of each element, from -π/2 to π/2; NaN outside of [-1, 1]."""
    return ew("atan2", x, _leg(x))


@_rounded_once
def acos(x: Traced, /) -> Traced:
    """The arc cosine of each element, from 0 to π; NaN outside of [-1, 1]."""
    return ew("atan2", _leg(x), x)


def _half_power(size: Traced) -> Traced:
    """e^x / 2 by two factors, so that it overflows only where the result does."""
    root = ew("exp", elementwise("mul", size, 0.5))
    return ew("mul", elementwise("mul", root, 0.5), root)


# Where e^-x no longer counts beside e^x, and e^x is still far from overflow, in f32 and in f64.
_ALONE = 20.0


@_rounded_once
def sinh(x: Traced, /) -> Traced:
    """The hyperbolic sine of each element."""
    size = ew("abs", x)
    above = ew("expm1", elementwise("min", size, _ALONE))
    near = elementwise("mul", ew("add", above, ew("div", above, elementwise("add", above, 1.0))), 0.5)
    return _with_sign_of(x, elementwise("select", elementwise("lt", size, _ALONE), near, _half_power(size)))


@_rounded_once
def cosh(x: Traced, /) -> Traced:
    """The hyperbolic cosine of each element."""
    size = ew("abs", x)
    power = ew("exp", elementwise("min", size, _ALONE))
    near = elementwise("mul", ew("add", power, ew("reciprocal", power)), 0.5)
    return elementwise("select", elementwise("lt", size, _ALONE), near, _half_power(size))


# Where 1 no longer counts beside x², in f64.
_LARGE = 2.0**28


@_rounded_once
def asinh(x: Traced, /) -> Traced:
    """The inverse hyperbolic sine of each element."""
    size = ew("abs", x)
    held = elementwise("min", size, _LARGE)
    square = ew("mul", held, held)
    root = ew("sqrt", elementwise("add", square, 1.0))
    near = ew("log1p", ew("add", held, ew("div", square, elementwise("add", root, 1.0))))
    far = elementwise("add", ew("log", size), _LN2)
    return _with_sign_of(x, elementwise("select", elementwise("lt", size, _LARGE), near, far))


@_rounded_once
def acosh(x: Traced, /) -> Traced:
    """The inverse hyperbolic cosine of each element; NaN below 1."""
    above = elementwise("sub", elementwise("min", x, _LARGE), 1.0)
    root = ew("sqrt", ew("mul", above, elementwise("add", above, 2.0)))
    near = ew("log1p", ew("add", above, root))
    far = elementwise("add", ew("log", x), _LN2)
    found = elementwise("select", elementwise("lt", x, _LARGE), near, far)
    return elementwise("select", elementwise("lt", x, 1.0), math.nan, found)


@_rounded_once
def atanh(x: Traced, /) -> Traced:
    """The inverse hyperbolic tangent of each element; ±infinity at ±1, NaN beyond."""
    size = ew("abs", x)
    ratio = ew("div", elementwise("mul", size, 2.0), elementwise("sub", 1.0, size))
    return _with_sign_of(x, elementwise("mul", ew("log1p", ratio), 0.5))


@_rounded_once
def log10(x: Traced, /) -> Traced:
    """The logarithm of each element to base 10."""
    # 1/ln 10 in two parts of one sign, of which f32 holds the first exactly.
    first = 0.4342944622039795
    rest = 0.4342944819032518 - first
    found = ew("log", x)
    return elementwise("fma", found, first, elementwise("mul", found, rest))


@_rounded_once
def hypot(x1: Traced, x2: Traced, /) -> Traced:
    """√(x1² + x2²), without overflow on the way; infinite where one side is, even beside NaN."""
    a, b = ew("abs", x1), ew("abs", x2)
    most, least = elementwise("max", a, b), elementwise("min", a, b)
    ratio = ew("div", least, most)
    found = ew("mul", most, ew("sqrt", elementwise("add", ew("mul", ratio, ratio), 1.0)))
    infinite = elementwise("or", elementwise("isinf", a), elementwise("isinf", b))
    found = elementwise("select", elementwise("eq", most, 0.0), most, found)
    return elementwise("select", infinite, math.inf, found)


@_rounded_once
def logaddexp(x1: Traced, x2: Traced, /) -> Traced:
    """log(e^x1 + e^x2), without overflow on the way."""
    apart = ew("neg", ew("abs", elementwise("sub", x1, x2)))
    found = ew("add", elementwise("max", x1, x2), ew("log1p", ew("exp", apart)))
    # Equal infinities are apart by NaN.
    return elementwise("select", elementwise("eq", x1, x2), elementwise("add", x1, _LN2), found)


@operator
def relu(x: Array, /) -> Traced:
    """max(x, 0) of each element."""
    return elementwise("max", x, 0)


@_rounded_once
def silu(x: Traced, /) -> Traced:
    """SiLU: x · sigmoid(x)."""
    return ew("mul", x, ew("sigmoid", x))


@_rounded_once
def softplus(x: Traced, /) -> Traced:
    """Softplus: log(1 + e^x), without overflow."""
    return ew("add", elementwise("max", x, 0.0), ew("log1p", ew("exp", ew("neg", ew("abs", x)))))


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
