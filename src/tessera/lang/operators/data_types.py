"""Element types: casts, limits, kinds, and which types meet in which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tessera.dtypes import promotion
from tessera.dtypes.promotion import as_dtype, beside_number, promote
from tessera.dtypes.types import DType, Kind, bool_
from tessera.errors import DtypeError
from tessera.lang.operator import operator
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import tensor
from tessera.lang.tracing.values import Array, Traced
from tessera.runtime.tensor.creation import DeviceLike
from tessera.runtime.tensor.creation import asarray as host_array
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.operators import number_class
from tessera.runtime.tensor.tensor import Tensor


@operator
def cast(x: Array, dtype: DType, seed: int | None = None) -> Traced:
    """`x` in another element type; `seed` drives stochastic rounding."""
    return primitives.cast(tensor(x), dtype, seed=seed)


def astype(x: Array, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None) -> Any:
    """Casts `x` to another element type; with copy=False, `x` itself where it has that type."""
    target = as_dtype(dtype)
    made: Any = x if isinstance(x, Traced | Tensor) else host_array(x)
    same = isinstance(made, Tensor) and made.dtype is target
    made = cast(made, target) if not same else made.copy() if copy else made
    return made if device is None or isinstance(made, Traced) else made.to(device)


@operator
def cast_like(x: Array, like: Array, /) -> Traced:
    """Casts `x` to the element type of `like`."""
    return primitives.cast(tensor(x), tensor(like).dtype)


def _type_of(x: Any) -> DType:
    """The element type of an array, or the one that `x` names."""
    if isinstance(x, Traced | Tensor):
        return x.dtype
    if isinstance(x, DType | str | type):
        return as_dtype(x)
    found = getattr(x, "dtype", None)
    return host_array(x).dtype if found is None or hasattr(x, "__dlpack__") else as_dtype(found)


def can_cast(from_: Any, to: DTypeLike, /) -> bool:
    """Whether a cast changes no value: every number of the first type, or of an array's, is there in the second."""
    return promotion.can_cast(_type_of(from_), as_dtype(to))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type in which arrays and types meet; Python's numbers take the type of what they stand beside."""
    numbers = [found for x in arrays_and_dtypes if (found := number_class(x)) is not None]
    strong = [_type_of(x) for x in arrays_and_dtypes if number_class(x) is None]
    if not arrays_and_dtypes:
        raise DtypeError("result_type needs at least one array or type, got none", hint="give the operands")
    found = promote(*strong) if strong else bool_
    for number in numbers:
        found = beside_number(found, number)
    return found


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a float type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerLimits:
    """The limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatLimits:  # noqa: A002  (the standard's name)
    """The limits of a float type, or of an array's."""
    dtype = _type_of(type)
    limits = dtype.float_format
    if limits is None:
        raise DtypeError(f"finfo is for floats, got {dtype}", hint="use iinfo for integers")
    return FloatLimits(
        dtype.bits,
        2.0**-limits.mantissa_bits,
        float(dtype.max_value),
        float(dtype.min_value),
        2.0**limits.min_exponent,
        dtype.base,
    )


def iinfo(type: Any, /) -> IntegerLimits:  # noqa: A002  (the standard's name)
    """The limits of an integer type, or of an array's."""
    dtype = _type_of(type)
    if not dtype.is_integer:
        raise DtypeError(f"iinfo is for integers, got {dtype}", hint="use finfo for floats")
    return IntegerLimits(dtype.bits, int(dtype.max_value), int(dtype.min_value), dtype.base)


_KINDS: dict[str, frozenset[Kind]] = {
    "bool": frozenset({Kind.BOOL}),
    "signed integer": frozenset({Kind.INT}),
    "unsigned integer": frozenset({Kind.UINT}),
    "integral": frozenset({Kind.INT, Kind.UINT}),
    "real floating": frozenset({Kind.FLOAT}),
    "complex floating": frozenset(),
    "numeric": frozenset({Kind.INT, Kind.UINT, Kind.FLOAT}),
}


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Whether a type is of a kind, the same as another type, or one of several."""
    given = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(given, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return given.kind in _KINDS[kind]
    if isinstance(kind, str):
        try:
            return given.base is as_dtype(kind)
        except DtypeError:
            raise DtypeError(
                f"{kind!r} is neither a kind of types nor a type", hint=f"give one of {', '.join(_KINDS)}, or a type"
            ) from None
    return given.base is as_dtype(kind)
