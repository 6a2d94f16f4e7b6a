"""Elementwise functions of the Array API: rows of the elementwise table under the standard's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera.dtypes.promotion import is_higher
from tessera.dtypes.types import Kind, bool_
from tessera.lang.operator import operator, operator_called
from tessera.lang.operators.operands import refusal, tensors
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, in_row, stored, tensor
from tessera.lang.tracing.values import Array, Traced

_OPERAND = "x: a tensor, an array of another library, or a traced value. The result has its shape."
_OPERANDS = "x1, x2: tensors, arrays of other libraries, numbers or traced values. Shapes broadcast, types promote."


def _unary(name: str, row: str, said: str) -> Callable[[Array], Traced]:
    def function(x: Array, /) -> Traced:
        return in_row(row, tensor(x))

    return operator_called(name, f"{said}\n\n{_OPERAND}", function)


def _binary(name: str, row: str, said: str) -> Callable[[Array, Array], Traced]:
    def function(x1: Array, x2: Array, /) -> Traced:
        # Of numbers alone, too, the result has a type of its own, as it has outside of a trace.
        return elementwise(row, *tensors(name, x1, x2))

    return operator_called(name, f"{said}\n\n{_OPERANDS}", function)


abs = _unary("abs", "abs", "The absolute value of each element.")  # noqa: A001  (the standard's name)
ceil = _unary("ceil", "ceil", "Each element rounded up to a whole number.")
cos = _unary("cos", "cos", "The cosine of each angle, in radians.")
exp = _unary("exp", "exp", "e to the power of each element.")
exp2 = _unary("exp2", "exp2", "2 to the power of each element.")
expm1 = _unary("expm1", "expm1", "e to the power of each element, less 1, without cancellation near 0.")
floor = _unary("floor", "floor", "Each element rounded down to a whole number.")
isfinite = _unary("isfinite", "isfinite", "Where elements are neither infinite nor NaN.")
isinf = _unary("isinf", "isinf", "Where elements are infinite.")
isnan = _unary("isnan", "isnan", "Where elements are NaN.")
log = _unary("log", "log", "The natural logarithm of each element.")
log1p = _unary("log1p", "log1p", "The natural logarithm of 1 plus each element, without cancellation near 0.")
log2 = _unary("log2", "log2", "The logarithm of each element to base 2.")
negative = _unary("negative", "neg", "-x of each element.")
reciprocal = _unary("reciprocal", "reciprocal", "1 / x of each element.")
round = _unary("round", "round", "Each element rounded to the nearest whole number, of two the even one.")  # noqa: A001  (the standard's name)
rsqrt = _unary("rsqrt", "rsqrt", "1 / √x of each element.")
sign = _unary("sign", "sign", "The sign of each element: -1, 0 or 1; NaN for NaN.")
sin = _unary("sin", "sin", "The sine of each angle, in radians.")
sqrt = _unary("sqrt", "sqrt", "The square root of each element; NaN below 0.")
tan = _unary("tan", "tan", "The tangent of each angle, in radians.")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent of each element.")
trunc = _unary("trunc", "trunc", "Each element rounded towards 0.")
erf = _unary("erf", "erf", "The error function of each element.")
sigmoid = _unary("sigmoid", "sigmoid", "1 / (1 + e^-x) of each element, without overflow on either side.")

add = _binary("add", "add", "The sum x1 + x2.")
atan2 = _binary("atan2", "atan2", "The angle of the point (x2, x1), from -π to π.")
bitwise_and = _binary("bitwise_and", "and", "x1 & x2: bits that are set in both.")
bitwise_left_shift = _binary("bitwise_left_shift", "shl", "x1 << x2: bits of x1 shifted left by x2.")
bitwise_or = _binary("bitwise_or", "or", "x1 | x2: bits that are set in either.")
bitwise_right_shift = _binary(
    "bitwise_right_shift", "shr", "x1 >> x2: bits of x1 shifted right by x2; the sign is kept."
)
bitwise_xor = _binary("bitwise_xor", "xor", "x1 ^ x2: bits that are set in one and not in the other.")
copysign = _binary("copysign", "copysign", "The absolute value of x1 with the sign of x2.")
divide = _binary("divide", "div", "The quotient x1 / x2 of floats.")
equal = _binary("equal", "eq", "x1 == x2, elementwise: bools.")
floor_divide = _binary("floor_divide", "floordiv", "x1 // x2: the quotient, rounded down to a whole number.")
greater = _binary("greater", "gt", "x1 > x2, elementwise: bools.")
greater_equal = _binary("greater_equal", "ge", "x1 >= x2, elementwise: bools.")
less = _binary("less", "lt", "x1 < x2, elementwise: bools.")
less_equal = _binary("less_equal", "le", "x1 <= x2, elementwise: bools.")
maximum = _binary("maximum", "max", "The larger of two; NaN where one is.")
minimum = _binary("minimum", "min", "The smaller of two; NaN where one is.")
multiply = _binary("multiply", "mul", "The product x1 · x2.")
not_equal = _binary("not_equal", "ne", "x1 != x2, elementwise: bools.")
pow = _binary("pow", "pow", "x1 ** x2: x1 to the power of x2.")  # noqa: A001  (the standard's name)
remainder = _binary("remainder", "rem", "x1 % x2: the remainder of `floor_divide`, with the sign of x2.")
subtract = _binary("subtract", "sub", "The difference x1 - x2.")


def _row_of_one(fn: str, x: Array) -> Traced:
    return elementwise(fn, x)


def _row_of_two(fn: str, x1: Array, x2: Array) -> Traced:
    return elementwise(fn, x1, x2)


# One for each kind of operands: calls are generated for the first that comes.
ROW_PROGRAMS: dict[tuple[bool, ...], Callable[..., Traced]] = {
    (False,): operator(_row_of_one),
    (False, False): operator(_row_of_two),
    (False, True): operator(_row_of_two),
    (True, False): operator(_row_of_two),
}


def row(fn: str, *xs: Array) -> Any:
    """One row of the elementwise table on tensors and numbers, as Python's operators on tensors name it."""
    return ROW_PROGRAMS[tuple([x.__class__ in _NUMBERS for x in xs])](fn, *xs)


_NUMBERS = (bool, int, float)


@operator
def bitwise_invert(x: Array, /) -> Traced:
    """~x: every bit inverted."""
    return primitives.ew("not", tensor(x))


@operator
def positive(x: Array, /) -> Traced:
    """+x: each element as it is."""
    made = tensor(x)
    if made.dtype.kind is Kind.BOOL:
        raise refusal("positive", "numbers", [made], "use the tensor itself")
    return made


@operator
def square(x: Array, /) -> Traced:
    """x² of each element."""
    made = tensor(x)
    return in_row("mul", made, made)


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
    """Whether the sign bit of each element is set, as it is for -0.0 too."""
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
    """x1 and x2 of bools, elementwise."""
    return elementwise("and", *_logical("logical_and", x1, x2))


@operator
def logical_or(x1: Array, x2: Array, /) -> Traced:
    """x1 or x2 of bools, elementwise."""
    return elementwise("or", *_logical("logical_or", x1, x2))


@operator
def logical_xor(x1: Array, x2: Array, /) -> Traced:
    """Whether exactly one of two bools is true, elementwise."""
    return elementwise("xor", *_logical("logical_xor", x1, x2))


@operator
def logical_not(x: Array, /) -> Traced:
    """not x of bools, elementwise."""
    return primitives.ew("not", *_logical("logical_not", x))


@operator
def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Traced:  # noqa: A002  (standard's names)
    """Limits each element to the range from `min` to `max`; NaN stays NaN. The result has the type of `x`.

    Only a float as a bound of integers makes them floats.
    """
    made = tensor(x)
    for row, bound in (("max", min), ("min", max)):
        if bound is not None:
            limit = bound if isinstance(bound, bool | int | float) else primitives.lift(bound)
            if isinstance(limit, Traced) and limit.dtype is not made.dtype and not limit.weak:
                tensors("clip", made, limit)  # refuses what does not meet
                if not is_higher(limit.dtype.kind, made.dtype.kind):
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
    return elementwise("select", *_logical("masked_fill", mask), stored("masked_fill", value, made.dtype), made)
