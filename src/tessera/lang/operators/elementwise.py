"""Elementwise functions of the Array API: rows of the elementwise table under the standard's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera.dtypes.types import Kind, bool_
from tessera.lang.operator import operator
from tessera.lang.operators.operands import refusal, tensors
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.values import Array, Traced


def _unary(name: str, row: str, said: str) -> Callable[[Array], Traced]:
    def function(x: Array, /) -> Traced:
        return primitives.ew(row, tensor(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = said
    return operator(function)


def _binary(name: str, row: str, said: str) -> Callable[[Array, Array], Traced]:
    def function(x1: Array, x2: Array, /) -> Traced:
        # Of numbers alone, too, the result has a type of its own, as it has outside of a trace.
        return elementwise(row, *tensors(name, x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = said
    return operator(function)


abs = _unary("abs", "abs", "The size of each element.")  # noqa: A001  (the standard's name)
ceil = _unary("ceil", "ceil", "Each element rounded up to a whole number.")
cos = _unary("cos", "cos", "The cosine of each angle, in radians.")
exp = _unary("exp", "exp", "e to the power of each element.")
exp2 = _unary("exp2", "exp2", "2 to the power of each element.")
expm1 = _unary("expm1", "expm1", "e to the power of each element, less 1, without cancellation near 0.")
floor = _unary("floor", "floor", "Each element rounded down to a whole number.")
isfinite = _unary("isfinite", "isfinite", "Where elements are neither infinite nor NaN.")
isinf = _unary("isinf", "isinf", "Where elements are infinite.")
isnan = _unary("isnan", "isnan", "Where elements are NaN.")
log = _unary("log", "log", "The natural logarithm.")
log1p = _unary("log1p", "log1p", "The natural logarithm of 1 plus each element, without cancellation near 0.")
log2 = _unary("log2", "log2", "The logarithm to base 2.")
negative = _unary("negative", "neg", "Each element with the other sign.")
reciprocal = _unary("reciprocal", "reciprocal", "1 over each element.")
round = _unary("round", "round", "The nearest whole number, of two the even one.")  # noqa: A001  (the standard's name)
rsqrt = _unary("rsqrt", "rsqrt", "1 over the square root of each element.")
sign = _unary("sign", "sign", "-1, 0 or 1; NaN for NaN.")
sin = _unary("sin", "sin", "The sine of each angle, in radians.")
sqrt = _unary("sqrt", "sqrt", "The square root.")
tan = _unary("tan", "tan", "The tangent of each angle, in radians.")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent.")
trunc = _unary("trunc", "trunc", "Each element without what comes after the point.")
erf = _unary("erf", "erf", "The error function.")
sigmoid = _unary("sigmoid", "sigmoid", "1 / (1 + e^-x), without overflow on either side.")

add = _binary("add", "add", "The sum.")
atan2 = _binary("atan2", "atan2", "The angle of the point (x2, x1), from -π to π.")
bitwise_and = _binary("bitwise_and", "and", "Bits set in both.")
bitwise_left_shift = _binary("bitwise_left_shift", "shl", "Bits of x1 moved up by x2 places.")
bitwise_or = _binary("bitwise_or", "or", "Bits set in either.")
bitwise_right_shift = _binary("bitwise_right_shift", "shr", "Bits of x1 moved down by x2 places; the sign is kept.")
bitwise_xor = _binary("bitwise_xor", "xor", "Bits set in one and not in the other.")
copysign = _binary("copysign", "copysign", "The size of x1 with the sign of x2.")
divide = _binary("divide", "div", "The quotient of floats.")
equal = _binary("equal", "eq", "Where elements are equal.")
floor_divide = _binary("floor_divide", "floordiv", "The quotient, rounded down to a whole number.")
greater = _binary("greater", "gt", "Where x1 is above x2.")
greater_equal = _binary("greater_equal", "ge", "Where x1 is above x2 or equal.")
less = _binary("less", "lt", "Where x1 is below x2.")
less_equal = _binary("less_equal", "le", "Where x1 is below x2 or equal.")
maximum = _binary("maximum", "max", "The larger of two; NaN where one is.")
minimum = _binary("minimum", "min", "The smaller of two; NaN where one is.")
multiply = _binary("multiply", "mul", "The product.")
not_equal = _binary("not_equal", "ne", "Where elements differ.")
pow = _binary("pow", "pow", "x1 to the power of x2.")  # noqa: A001  (the standard's name)
remainder = _binary("remainder", "rem", "What `floor_divide` leaves, with the sign of x2.")
subtract = _binary("subtract", "sub", "The difference.")


def _row_of_one(fn: str, x: Array) -> Traced:
    return elementwise(fn, x)


def _row_of_two(fn: str, x1: Array, x2: Array) -> Traced:
    return elementwise(fn, x1, x2)


# One for each kind of operands: calls are generated for the first that comes.
_ROWS: dict[tuple[bool, ...], Callable[..., Traced]] = {
    (False,): operator(_row_of_one),
    (False, False): operator(_row_of_two),
    (False, True): operator(_row_of_two),
    (True, False): operator(_row_of_two),
}


def row(fn: str, *xs: Array) -> Any:
    """One row of the elementwise table on tensors and numbers, as Python's operators on tensors name it."""
    return _ROWS[tuple([x.__class__ in _NUMBERS for x in xs])](fn, *xs)


def row_programs() -> Any:
    """The operators behind `row`, for those who look inside."""
    return list(_ROWS.values())


_NUMBERS = (bool, int, float)


@operator
def bitwise_invert(x: Array, /) -> Traced:
    """Every bit turned over."""
    return primitives.ew("not", tensor(x))


@operator
def positive(x: Array, /) -> Traced:
    """Each element as it is."""
    made = tensor(x)
    if made.dtype.kind is Kind.BOOL:
        raise refusal("positive", "numbers", [made], "use the tensor itself")
    return made


@operator
def square(x: Array, /) -> Traced:
    """Each element times itself."""
    made = tensor(x)
    return primitives.ew("mul", made, made)


@operator
def real(x: Array, /) -> Traced:
    """The real part of numbers that are real: themselves."""
    return tensor(x)


@operator
def conj(x: Array, /) -> Traced:
    """The complex conjugate of numbers that are real: themselves."""
    return tensor(x)


@operator
def signbit(x: Array, /) -> Traced:
    """Where the sign is set, as it is for -0.0 too."""
    made = tensor(x)
    one = primitives.constant(1.0, made.sizes, made.dtype)
    return elementwise("lt", primitives.ew("copysign", one, made), 0.0)


def _logical(name: str, *xs: Any) -> list[Traced]:
    given = [tensor(x) for x in xs]
    if any(x.dtype.base is not bool_ for x in given):
        raise refusal(name, "bool tensors", given, "compare them first, such as x != 0")
    return given


@operator
def logical_and(x1: Array, x2: Array, /) -> Traced:
    """Where both are true."""
    return elementwise("and", *_logical("logical_and", x1, x2))


@operator
def logical_or(x1: Array, x2: Array, /) -> Traced:
    """Where one or both are true."""
    return elementwise("or", *_logical("logical_or", x1, x2))


@operator
def logical_xor(x1: Array, x2: Array, /) -> Traced:
    """Where one is true and the other is not."""
    return elementwise("xor", *_logical("logical_xor", x1, x2))


@operator
def logical_not(x: Array, /) -> Traced:
    """Where it is not true."""
    return primitives.ew("not", *_logical("logical_not", x))


@operator
def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Traced:  # noqa: A002  (standard's names)
    """Each element, or the bound that it lies beyond; NaN stays NaN. The result has the type of `x`."""
    made = tensor(x)
    for row, bound in (("max", min), ("min", max)):
        if bound is not None:
            limit = bound if isinstance(bound, bool | int | float) else primitives.lift(bound)
            if isinstance(limit, Traced) and limit.dtype is not made.dtype and not limit.weak:
                tensors("clip", made, limit)  # refuses what does not meet
                limit = primitives.cast(limit, made.dtype)
            made = elementwise(row, made, limit)
    return made


@operator
def where(condition: Array, x1: Array, x2: Array, /) -> Traced:
    """x1 where the condition holds, x2 elsewhere; all three broadcast. Numbers alone are f32, i64 or bool."""
    return elementwise("select", *_logical("where", condition), *tensors("where", x1, x2))


@operator
def masked_fill(x: Array, mask: Array, value: Array) -> Traced:
    """`value` where the mask holds, `x` elsewhere."""
    made = tensor(x)
    filled = elementwise("select", *_logical("masked_fill", mask), value, made)
    return primitives.cast(filled, made.dtype)
