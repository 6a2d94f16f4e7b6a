"""Python's operators on tensors: weakly typed scalars, promotion, broadcasting, and the elementwise table."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, MethodType
from typing import Any, TypeAlias, TypeGuard, TypeVar
from typing import cast as cast_type

import numpy as np

from tessera import knobs
from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import as_dtype, as_float, beside_number, promote
from tessera.dtypes.types import INTEGERS, DType, Kind, bool_, f16, f32, f64
from tessera.errors import DtypeError
from tessera.ir.common import elementwise
from tessera.runtime.device.memory import Array, aligned
from tessera.runtime.tensor.interface import TensorInterface, asarray
from tessera.runtime.tensor.tracking import tracked
from tessera.shapes import rules
from tessera.shapes.expr import format_shape

Scalar: TypeAlias = bool | int | float
# A tensor, a Python scalar, or anything with __dlpack__ or __array__: torch, JAX and NumPy arrays.
Operand: TypeAlias = Any
_Parts: TypeAlias = tuple[object, ...]
T = TypeVar("T", bound=TensorInterface)

_FITTING_KINDS: dict[type, tuple[Kind, ...]] = {
    bool: tuple(Kind),
    int: (Kind.FLOAT, Kind.INT, Kind.UINT),
    float: (Kind.FLOAT,),
}
_MOST_NUMBER = 1 << 63  # programs take whole numbers of 64 bits; those above are for u64 alone
# Types into which NumPy itself converts a Python scalar with one rounding.
_DIRECT = frozenset({f64, f32, f16, bool_, *(dtype for dtype in INTEGERS if dtype.bits >= 8)})


Surface: TypeAlias = tuple[Mapping[str, Callable[..., Any]], Mapping[str, Callable[..., Any]]]
NumpyFunctions: TypeAlias = Mapping[object, Callable[..., Any]]


def _no_attribute(what: str, name: str) -> AttributeError:
    return AttributeError(f"{what} has no attribute {name!r}")


class _Operators:
    """The operators of the language above: methods and properties of tensors, and all work away from the host."""

    def __init__(self) -> None:
        self._surface: Callable[[], Surface] | None = None
        self.aliases = frozenset[str]()
        """Other names of operators and methods."""
        self.missing: Callable[[str, str], AttributeError] = _no_attribute
        self._numpy_functions: Callable[[], NumpyFunctions] | None = None

    def use(
        self,
        surface: Callable[[], Surface],
        aliases: frozenset[str],
        missing: Callable[[str, str], AttributeError],
        numpy_functions: Callable[[], NumpyFunctions],
    ) -> None:
        """Says where the operators are, and what NumPy's functions are among them, which load when first used.

        And what is said of one that is not there.
        """
        self._surface, self._numpy_functions = surface, numpy_functions
        self.aliases, self.missing = aliases, missing

    def surface(self) -> Surface:
        return ({}, {}) if self._surface is None else self._surface()

    def method(self, name: str) -> Callable[..., Any]:
        return self.surface()[0][name]

    def attribute(self, value: object, what: str, name: str) -> Any:
        """The method or property of a tensor, or of what stands for one, that an operator is."""
        methods, properties = self.surface()
        if (made := properties.get(name)) is not None:
            return made(value)
        try:
            return MethodType(methods[name], value)
        except KeyError:
            raise self.missing(what, name) from None

    def numpy_function(self, function: object) -> Callable[..., Any] | None:
        """The operator that a function of NumPy is on tensors, with that function's parameters; None for others."""
        return None if self._numpy_functions is None else self._numpy_functions().get(function)

    def compiled(self, name: str, elements: int) -> Callable[..., Any] | None:
        """The operator, where work on so many elements of the host is for machine code; None where it is done here.

        What decides is the size alone, so that equal calls give equal bits, and checks, which only kernels do.
        """
        if elements < _least_elements() or self._surface is None:
            return None
        methods = self.surface()[0]
        return methods[name] if methods["__has_machine_code__"]() else None


OPERATORS = _Operators()


def _least_elements() -> int:
    derived = knobs.scope().derived
    if derived.eager_elements is None:
        derived.eager_elements = 0 if knobs.checks.value else knobs.eager_elements.value
    return derived.eager_elements


def is_traced(value: object) -> bool:
    """Whether a value stands for a tensor of a function that is traced: whatever meets it is part of the trace."""
    return hasattr(type(value), "__traced__")


def _is_slice(key: object) -> TypeGuard[slice]:
    return isinstance(key, slice)


def traced_in(key: object) -> bool:
    """Whether a value is traced, or part of an index is."""
    if isinstance(key, tuple):
        return any(map(traced_in, cast_type(_Parts, key)))
    if _is_slice(key):
        return is_traced(key.start) or is_traced(key.stop) or is_traced(key.step)
    return is_traced(key)


def nearest(dtype: DType) -> DType:
    """`dtype` with rounding to nearest: a single value that is written has no seed to be rounded by."""
    policy = dtype.policy
    return dtype.with_policy(replace(policy, stochastic=False)) if policy.stochastic else dtype


def plain_number(value: Any) -> Scalar:
    """A number of any class, such as NumPy's, as one of Python's own."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return cast_type("Any", value).item()
    for plain in _FITTING_KINDS:
        if isinstance(value, plain):
            return plain(value)
    raise DtypeError(f"expected a number, got {value!r}", hint="give a bool, an int or a float")


def weak_scalar(value: Scalar, dtype: DType) -> Array:
    """A Python scalar as an element of `dtype`; an error where `dtype` has no such numbers."""
    if type(value) not in _FITTING_KINDS:
        value = plain_number(value)
    if dtype.kind not in _FITTING_KINDS[type(value)]:
        raise DtypeError(
            f"the Python {type(value).__name__} {value!r} does not go with a tensor of {dtype}",
            hint=f"cast the tensor first, such as .to({as_dtype(type(value))}), or use a number of the tensor's kind",
        )
    low, high = _limits(dtype)
    inside = low <= value <= high
    if inside and dtype.base in _DIRECT and dtype.policy.loss_scale is None:
        return np.array(value, dtype.storage)
    if not inside and type(value) is not float:
        raise DtypeError(
            f"{value} is out of range for {dtype}, which goes from {low:g} to {high:g}",
            hint="cast the tensor to a wider type first",
        )
    number = float(value) if dtype.is_float else value
    return _cast_scalar(number, math.copysign(1.0, number), dtype)


@functools.lru_cache
def _cast_scalar(value: Scalar, _sign: float, dtype: DType) -> Array:
    """One rounding by `cast`, remembered; the sign is there because 0.0 equals -0.0."""
    given = np.array(value)
    element = cast(given, as_dtype(given.dtype), nearest(dtype))
    element.flags.writeable = False
    return element


@functools.cache
def _limits(dtype: DType) -> tuple[float | int, float | int]:
    return dtype.min_value, dtype.max_value


def operand(value: Operand, dtype: DType) -> tuple[Array, DType] | None:
    """The elements and the type of `value` beside a tensor of `dtype`; None for what is not an operand."""
    number = number_class(value)
    if number is not None:
        return weak_scalar(number(value), dtype), dtype
    if is_traced(value):  # it knows what to do with a tensor
        return None
    if not isinstance(value, type) and (hasattr(value, "__dlpack__") or hasattr(value, "__array__")):
        tensor = asarray(value)
        return tensor.numpy(), tensor.dtype
    return None


def number_class(value: object) -> type[Scalar] | None:
    """The class of Python that a number is of, as a member of an IntEnum is an int and NumPy's f64 a float."""
    if type(value) in _FITTING_KINDS:
        return type(value)  # pyright: ignore[reportReturnType]  (one of these)
    return next((plain for plain in _FITTING_KINDS if isinstance(value, plain)), None)


def _plain(value: Operand) -> Operand:
    """An operand that is a number as one of Python's own classes, of which operators have programs."""
    number = number_class(value)
    return value if number is None else number(value)


def operand_beside(name: str, value: Operand, dtype: DType) -> tuple[Array, DType] | None:
    """The same of an operator, where a number may take the tensor's type higher: see `beside_number`."""
    number = number_class(value)
    if number is not None:
        dtype = _beside(name, dtype, number)
    elif type(value) in (list, tuple):
        raise DtypeError(
            f"{name}: expected a tensor or a number, got a {type(value).__name__} of {len(value)}",
            hint="make a tensor of it: ts.asarray(...)",
        )
    return operand(value, dtype)


@functools.cache
def _beside(name: str, dtype: DType, number: type[Scalar]) -> DType:
    return beside_number(as_float(dtype) if elementwise.takes_only_floats(name) else dtype, number)


def check_power(dtype: DType, exponent: Operand) -> None:
    """Refuses a power of integers that is none: they have no fractions."""
    if type(exponent) is int and exponent < 0 and not dtype.is_float:
        raise DtypeError(
            f"integers have no power of {exponent}: {dtype} holds no fractions",
            hint=f"give a float, x ** {float(exponent)}, or cast the tensor",
        )


@functools.cache
def _typing(name: str, left: DType, right: DType) -> tuple[str, DType, DType]:
    """The row, the type that both operands are cast to, and the type of the result."""
    row, common = elementwise.row_for(name, promote(left, right))
    return row, common, _seedless(name, elementwise.result_dtype(row, (common, common)))


@functools.cache
def _unary_typing(name: str, dtype: DType) -> tuple[DType, DType]:
    """The type that the operand is cast to, and the type of the result."""
    _, taken = elementwise.row_for(name, dtype)
    return taken, _seedless(name, elementwise.result_dtype(name, (taken,)))


def _seedless(name: str, result: DType) -> DType:
    if result.policy.stochastic:
        raise DtypeError(
            f"{name} gives {result}, which is rounded at random, and an operator takes no seed",
            hint=f"compute in {nearest(result)} and round at the end: .to({result}, seed=...)",
        )
    return result


def _evaluate(
    self: T, name: str, given: tuple[Operand, Operand], left: tuple[Array, DType], right: tuple[Array, DType]
) -> T:
    """One row on two operands, which are `given` as Python has them, and as elements with their types."""
    (a, a_dtype), (b, b_dtype) = left, right
    try:
        row, common, result = _typing(name, a_dtype, b_dtype)
    except DtypeError as error:
        error.shapes = (f"{format_shape(a.shape)} of {a_dtype}", f"{format_shape(b.shape)} of {b_dtype}")
        raise
    count = a.size if a.size > b.size else b.size
    if a.shape != b.shape and a.ndim and b.ndim:
        shape = cast_type("tuple[int, ...]", rules.broadcast(a.shape, b.shape, where=name))
        count = math.prod(shape)
    compiled = OPERATORS.compiled("__elementwise__", count)
    if compiled is not None and not any(type(one) is int and abs(one) >= _MOST_NUMBER for one in given):
        return compiled(name, *given)
    if a_dtype is not common:
        a = cast(a, a_dtype, nearest(common))
    if b_dtype is not common:
        b = cast(b, b_dtype, nearest(common))
    # Fresh memory is always C-ordered and 64-byte aligned, so that equal calls give equal metas.
    return self.wrap(aligned(elementwise.apply(row, (a, b), (common, common))), result)


def binary(name: str) -> Callable[[T, Operand], T]:
    """The operator `tensor ∘ other` of one row of the elementwise table."""

    def operate(self: T, other: Operand) -> T:
        if name == "pow":
            check_power(self.dtype, other)
        if self.device.is_accelerator or (type(other) is type(self) and other.device.is_accelerator):
            return OPERATORS.method("__elementwise__")(name, self, other)
        if type(other) is type(self):
            sides = (self.numpy(), self.dtype), (other.numpy(), other.dtype)
            return _evaluate(self, name, (self, other), *sides)
        coerced = operand_beside(name, other, self.dtype)
        if coerced is None:
            return NotImplemented
        return _evaluate(self, name, (self, _plain(other)), (self.numpy(), self.dtype), coerced)

    operate.__name__ = name
    return tracked(operate)


def reflected(name: str) -> Callable[[T, Operand], T]:
    """The operator `other ∘ tensor`, which Python asks for where `other` does not know tensors."""

    def operate(self: T, other: Operand) -> T:
        if self.device.is_accelerator:
            return OPERATORS.method("__elementwise__")(name, other, self)
        coerced = operand_beside(name, other, self.dtype)
        if coerced is None:
            return NotImplemented
        return _evaluate(self, name, (_plain(other), self), coerced, (self.numpy(), self.dtype))

    operate.__name__ = name
    return tracked(operate)


def unary(name: str) -> Callable[[T], T]:
    """The operator with a single operand of one row of the elementwise table."""

    def operate(self: T) -> T:
        if self.device.is_accelerator:
            return OPERATORS.method("__elementwise__")(name, self)
        array, dtype = self.numpy(), self.dtype
        taken, result = _unary_typing(name, dtype)
        compiled = OPERATORS.compiled("__elementwise__", array.size)
        if compiled is not None:
            return compiled(name, self)
        if taken is not dtype:
            array = cast(array, dtype, taken)
        return self.wrap(aligned(elementwise.apply(name, (array,), (taken,))), result)

    operate.__name__ = name
    return tracked(operate)


ROWS_OF_NUMPY: Mapping[str, str] = MappingProxyType(
    {
        "absolute": "abs",
        "negative": "neg",
        "invert": "not",
        "rint": "round",
        **{name: name for name in ("sign", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "reciprocal")},
        **{name: name for name in ("sin", "cos", "tan", "tanh", "floor", "ceil", "trunc")},
        **{name: name for name in ("isnan", "isinf", "isfinite", "copysign")},
        "add": "add",
        "subtract": "sub",
        "multiply": "mul",
        "divide": "div",
        "true_divide": "div",
        "floor_divide": "floordiv",
        "remainder": "rem",
        "power": "pow",
        "maximum": "max",
        "minimum": "min",
        "arctan2": "atan2",
        "bitwise_and": "and",
        "bitwise_or": "or",
        "bitwise_xor": "xor",
        "left_shift": "shl",
        "right_shift": "shr",
        "less": "lt",
        "less_equal": "le",
        "greater": "gt",
        "greater_equal": "ge",
        "equal": "eq",
        "not_equal": "ne",
    }
)
"""The rows of the elementwise table that functions of NumPy are, by their names there."""


def row_on(name: str, left: Operand, *right: Operand) -> Operand:
    """A row on operands of which one is a tensor, as NumPy's functions have them; NotImplemented as for operators."""
    if not right:
        return _unary_of(name)(left)
    (other,) = right
    return _binary_of(name)(left, other) if hasattr(left, "geometry") else _reflected_of(name)(other, left)


def rounded(x: Operand, digits: int | None) -> Operand:
    """`round(x, digits)` of a tensor or a traced value: to so many decimal places, of two the even one."""
    by_row = OPERATORS.method("__elementwise__") if is_traced(x) else row_on
    nearest_whole = functools.partial(by_row, "round")
    if digits is None:
        return nearest_whole(x)
    if x.dtype.is_integer and digits >= 0:
        return +x
    scale = 10.0 ** abs(digits)
    wide = x if x.dtype.is_float and x.dtype.bits >= 32 else x.to(f32 if x.dtype.is_float else f64)
    whole = nearest_whole(wide * scale if digits > 0 else wide / scale)
    return (whole / scale if digits > 0 else whole * scale).to(x.dtype)


def takes(function: Callable[..., Operand], args: Sequence[Operand], kwargs: Mapping[str, Operand]) -> bool:
    """Whether a function has parameters for these arguments."""
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


_signature = functools.cache(inspect.signature)
_unary_of, _binary_of, _reflected_of = functools.cache(unary), functools.cache(binary), functools.cache(reflected)
