"""The partial derivatives of elementwise functions, written in elementwise functions.

A rule takes a builder, the operands and the result, and gives one partial derivative per operand; None stands for
zero. It is generic over values: arrays when tested, IR values when a function is differentiated. Where a function
has a kink, the rule takes the middle: 0 for `abs` at 0, a half each for `max` of equal operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

V = TypeVar("V")


class Builder(Protocol[V]):
    """Applies a function of the table to values, and makes constants."""

    def __call__(self, name: str, *values: V) -> V: ...

    def constant(self, value: float, like: V) -> V:
        """A value of the type and shape of `like`."""
        ...


Partials: TypeAlias = tuple[V | None, ...]
Derivative: TypeAlias = Callable[..., tuple[Any, ...]]


def neg(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew.constant(-1.0, x),)


def absolute(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("sign", x),)


def exp(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (result,)


def exp2(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("mul", result, ew.constant(math.log(2.0), x)),)


def expm1(ew: Builder[V], x: V, result: V) -> Partials[V]:
    # exp(x) rather than result + 1, which loses everything where the result is close to -1.
    return (ew("exp", x),)


def log(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("reciprocal", x),)


def log2(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("div", ew.constant(1.0 / math.log(2.0), x), x),)


def log1p(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("reciprocal", ew("add", ew.constant(1.0, x), x)),)


def sqrt(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("div", ew.constant(0.5, x), result),)


def rsqrt(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("mul", ew.constant(-0.5, x), ew("div", result, x)),)


def reciprocal(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("neg", ew("mul", result, result)),)


def sin(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("cos", x),)


def cos(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("neg", ew("sin", x)),)


def tan(ew: Builder[V], x: V, result: V) -> Partials[V]:
    return (ew("fma", result, result, ew.constant(1.0, x)),)


def tanh(ew: Builder[V], x: V, result: V) -> Partials[V]:
    one = ew.constant(1.0, x)
    return (ew("mul", ew("sub", one, result), ew("add", one, result)),)


def erf(ew: Builder[V], x: V, result: V) -> Partials[V]:
    bell = ew("exp", ew("neg", ew("mul", x, x)))
    return (ew("mul", ew.constant(2.0 / math.sqrt(math.pi), x), bell),)


def sigmoid(ew: Builder[V], x: V, result: V) -> Partials[V]:
    # sigmoid(-x) is 1 - result without the cancellation.
    return (ew("mul", result, ew("sigmoid", ew("neg", x))),)


def add(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    one = ew.constant(1.0, result)
    return one, one


def sub(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    return ew.constant(1.0, result), ew.constant(-1.0, result)


def mul(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    return b, a


def div(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    return ew("reciprocal", b), ew("neg", ew("div", result, b))


def rem(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    return ew.constant(1.0, result), ew("neg", ew("floordiv", a, b))


def power(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    zero, one = ew.constant(0.0, result), ew.constant(1.0, result)
    by_base = ew("mul", b, ew("pow", a, ew("sub", b, one)))
    by_exponent = ew("mul", result, ew("log", a))
    # Both factors can be infinite or NaN where the other makes the product 0.
    return ew("select", ew("eq", b, zero), zero, by_base), ew("select", ew("eq", a, zero), zero, by_exponent)


def maximum(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    share = _share(ew, ew("gt", a, b), a, b)
    return share, ew("sub", ew.constant(1.0, result), share)


def minimum(ew: Builder[V], a: V, b: V, result: V) -> Partials[V]:
    share = _share(ew, ew("lt", a, b), a, b)
    return share, ew("sub", ew.constant(1.0, result), share)


def _share(ew: Builder[V], wins: V, a: V, b: V) -> V:
    zero, half, one = ew.constant(0.0, a), ew.constant(0.5, a), ew.constant(1.0, a)
    return ew("select", wins, one, ew("select", ew("eq", a, b), half, zero))


def atan2(ew: Builder[V], y: V, x: V, result: V) -> Partials[V]:
    square = ew("fma", x, x, ew("mul", y, y))
    return ew("div", x, square), ew("neg", ew("div", y, square))


def copysign(ew: Builder[V], size: V, sign: V, result: V) -> Partials[V]:
    one = ew.constant(1.0, result)
    same = ew("mul", ew("copysign", one, size), ew("copysign", one, sign))
    return same, ew.constant(0.0, result)


def fma(ew: Builder[V], a: V, b: V, c: V, result: V) -> Partials[V]:
    return b, a, ew.constant(1.0, result)


def select(ew: Builder[V], condition: V, a: V, b: V, result: V) -> Partials[V]:
    zero, one = ew.constant(0.0, result), ew.constant(1.0, result)
    return None, ew("select", condition, one, zero), ew("select", condition, zero, one)


def cast(ew: Builder[V], x: V, result: V) -> Partials[V]:
    """One, in the type of the result: the cotangent itself is cast back to the operand's type."""
    return (ew.constant(1.0, result),)
