"""Element types: one interned `DType` per (format, policy), with policies attached by `@`."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from tessera.errors import DtypeError


class Kind(enum.Enum):
    """The families of element types; their order is the order of implicit promotion."""

    BOOL = "bool"
    UINT = "uint"
    INT = "int"
    FLOAT = "float"


class Specials(enum.Enum):
    """The meaning of the top exponent of a float format."""

    IEEE = "infinities and NaNs"
    NAN_ONLY = "one NaN per sign, no infinities"
    FINITE = "numbers only"


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """sign · 2^(e−bias) · 1.m, with gradual underflow."""

    exponent_bits: int
    mantissa_bits: int
    specials: Specials

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal number; subnormals share its spacing."""
        return 1 - self.bias

    @property
    def max_finite(self) -> float:
        top = (1 << self.exponent_bits) - 1 - self.bias
        units = (1 << (self.mantissa_bits + 1)) - 1
        if self.specials is Specials.IEEE:
            top -= 1
        elif self.specials is Specials.NAN_ONLY:
            units -= 1
        return float(units) * 2.0 ** (top - self.mantissa_bits)

    @property
    def smallest_subnormal(self) -> float:
        return 2.0 ** (self.min_exponent - self.mantissa_bits)

    def contains(self, other: FloatFormat, scale: float = 1.0) -> bool:
        """Whether every value of `other`, multiplied by the power of two `scale`, is a value of this format."""
        return (
            (other.specials is Specials.FINITE or self.specials in (Specials.IEEE, other.specials))
            and other.mantissa_bits <= self.mantissa_bits
            and other.max_finite * scale <= self.max_finite
            and other.smallest_subnormal * scale >= self.smallest_subnormal
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """How values are accumulated, rounded, scaled and clamped; part of the type."""

    accum: DType | None = None
    stochastic: bool = False
    loss_scale: float | None = None
    saturate: bool = False
    scale_axis: int | None = None

    def __matmul__(self, other: Policy) -> Policy:
        changes = {f.name: value for f in fields(other) if (value := getattr(other, f.name)) != f.default}
        for name, value in changes.items():
            mine = getattr(self, name)
            # By identity: `scaled(0)` is a policy, although 0 == False.
            if mine is not None and mine is not False and mine != value:
                raise DtypeError(f"policy {name} is given twice: {mine} and {value}", hint="keep one of the two")
        return replace(self, **changes)

    def __str__(self) -> str:
        parts = [
            f"accum({self.accum.name})" if self.accum else "",
            "stochastic_round" if self.stochastic else "",
            f"loss_scale({self.loss_scale:.17g})" if self.loss_scale is not None else "",
            "saturate" if self.saturate else "",
            f"scaled({self.scale_axis})" if self.scale_axis is not None else "",
        ]
        return " @ ".join(part for part in parts if part)

    __repr__ = __str__


NO_POLICY = Policy()


class DType:
    """An element type; equal types are the same object, so `is` and `==` agree.

    `bits` counts what the format needs; `storage` is the NumPy dtype that holds one element (types narrower
    than a byte take a whole byte, tf32 takes 32 bits). `dtype.base` is the type without its policy.
    """

    __slots__ = ("base", "bits", "float_format", "kind", "name", "policy", "storage")

    _interned: ClassVar[dict[tuple[str, Policy], DType]] = {}

    name: str
    kind: Kind
    bits: int
    storage: np.dtype[Any]
    float_format: FloatFormat | None
    policy: Policy
    base: DType

    def __init__(
        self,
        name: str,
        kind: Kind,
        bits: int,
        storage: np.dtype[Any],
        float_format: FloatFormat | None = None,
        policy: Policy = NO_POLICY,
        base: DType | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits
        self.storage = storage
        self.float_format = float_format
        self.policy = policy
        self.base = self if base is None else base
        if DType._interned.setdefault((name, policy), self) is not self:
            raise ValueError(f"dtype {name} is defined already")

    def with_policy(self, policy: Policy) -> DType:
        """This format under exactly `policy`."""
        found = DType._interned.get((self.name, policy))
        if found is not None:
            return found
        _check_policy(self, policy)
        return DType(self.name, self.kind, self.bits, self.storage, self.float_format, policy, self.base)

    def __matmul__(self, policy: Policy) -> DType:
        if not isinstance(policy, Policy):
            raise DtypeError(
                f"{self} @ {policy!r}: expected a numerics policy, got {type(policy).__name__}",
                hint="policies are accum(dtype), stochastic_round, loss_scale(k), saturate and scaled(axis)",
            )
        return self.with_policy(self.policy @ policy)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def itemsize(self) -> int:
        """The bytes that an element takes in an array; types narrower than a byte take a whole one."""
        return self.storage.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of NumPy whose elements mean the same: `np.dtype(f32)` and NumPy's `dtype=` find it here."""
        policy = self.policy
        if self.base is tf32 or policy.loss_scale is not None or policy.scale_axis is not None:
            raise AttributeError(f"no dtype of NumPy means what {self} does", name="dtype", obj=self)
        return self.storage

    __numpy_dtype__ = dtype  # where NumPy 2.4 and later look

    def __eq__(self, other: object) -> bool:
        """Types are equal where they are the same; a name, or a type of NumPy, that means this type equals it, too."""
        if self is other or isinstance(other, DType):
            return self is other
        if isinstance(other, str):
            return other == str(self) or (self.policy == NO_POLICY and STANDARD_NAMES.get(other) is self)
        if isinstance(other, type):
            return OF_PYTHON.get(other) is self.base or (other is self.storage.type and hasattr(self, "dtype"))
        if isinstance(other, np.dtype):
            return hasattr(self, "dtype") and self.storage == other
        return NotImplemented

    # Names equal to a type have hashes of their own: as keys of dictionaries types are themselves alone.
    __hash__ = object.__hash__

    @property
    def min_value(self) -> float | int:
        """The smallest finite value."""
        if self.float_format is not None:
            return -self.float_format.max_finite
        return -(1 << (self.bits - 1)) if self.kind is Kind.INT else 0

    @property
    def max_value(self) -> float | int:
        """The largest finite value."""
        if self.float_format is not None:
            return self.float_format.max_finite
        return (1 << (self.bits - (self.kind is Kind.INT))) - 1

    def __repr__(self) -> str:
        return self.name if self.policy == NO_POLICY else f"{self.name} @ {self.policy}"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.name, self.policy)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DType:
        return self


def _restore(name: str, policy: Policy) -> DType:
    return BY_NAME[name].with_policy(policy)


def _check_policy(dtype: DType, policy: Policy) -> None:
    def refuse(why: str, hint: str) -> DtypeError:
        return DtypeError(f"{dtype.name} @ {policy}: {why}", hint=hint)

    if policy.accum is not None:
        wide = policy.accum
        if wide.kind is not dtype.kind:
            raise refuse(
                f"a {dtype.kind.value} type cannot accumulate in {wide.name}",
                f"accumulate in a {dtype.kind.value} type of at least {dtype.bits} bits",
            )
        if wide.policy != NO_POLICY:
            raise refuse(f"the accumulator {wide} has a policy", f"accumulate in plain {wide.name}")
        holds = wide.bits >= dtype.bits
        if wide.float_format is not None and dtype.float_format is not None:
            holds = wide.float_format.contains(dtype.float_format)
        if not holds:
            raise refuse(
                f"the accumulator {wide} cannot hold every {dtype.name} value",
                f"accumulate in {dtype.name} itself or a wider {dtype.kind.value} type",
            )
    if policy.stochastic and not dtype.is_float:
        raise refuse("stochastic rounding is defined for float types", "use it on a float type")
    if policy.loss_scale is not None:
        if not dtype.is_float:
            raise refuse("a loss scale is defined for float types", "use it on a float type")
        # A power of two scales without rounding, so that a scaled cast still rounds once.
        if not 0.0 < policy.loss_scale < math.inf or math.frexp(policy.loss_scale)[0] != 0.5:
            raise refuse("the loss scale must be a power of two", "use a power of two such as 1024")
    if policy.scale_axis is not None and not dtype.is_integer:
        raise refuse("per-channel scales are defined for integer types", "use them on i8 or i4")


def accum(dtype: DType) -> Policy:
    """Sums and dot products are accumulated in `dtype`."""
    return Policy(accum=dtype)


def loss_scale(factor: float) -> Policy:
    """Values are stored multiplied by `factor`; casting in multiplies, casting out divides."""
    return Policy(loss_scale=float(factor))


def scaled(axis: int) -> Policy:
    """Integers with one scale per index of `axis`."""
    return Policy(scale_axis=axis)


stochastic_round = Policy(stochastic=True)
saturate = Policy(saturate=True)


def _float(name: str, bits: int, storage: Any, exponent: int, mantissa: int, specials: Specials) -> DType:
    return DType(name, Kind.FLOAT, bits, np.dtype(storage), FloatFormat(exponent, mantissa, specials))


def _integer(name: str, kind: Kind, bits: int, storage: Any) -> DType:
    return DType(name, kind, bits, np.dtype(storage))


f64 = _float("f64", 64, np.float64, 11, 52, Specials.IEEE)
f32 = _float("f32", 32, np.float32, 8, 23, Specials.IEEE)
tf32 = _float("tf32", 19, np.float32, 8, 10, Specials.IEEE)
bf16 = _float("bf16", 16, ml_dtypes.bfloat16, 8, 7, Specials.IEEE)
f16 = _float("f16", 16, np.float16, 5, 10, Specials.IEEE)
f8e5m2 = _float("f8e5m2", 8, ml_dtypes.float8_e5m2, 5, 2, Specials.IEEE)
f8e4m3 = _float("f8e4m3", 8, ml_dtypes.float8_e4m3fn, 4, 3, Specials.NAN_ONLY)
f6e3m2 = _float("f6e3m2", 6, ml_dtypes.float6_e3m2fn, 3, 2, Specials.FINITE)
f6e2m3 = _float("f6e2m3", 6, ml_dtypes.float6_e2m3fn, 2, 3, Specials.FINITE)
f4e2m1 = _float("f4e2m1", 4, ml_dtypes.float4_e2m1fn, 2, 1, Specials.FINITE)
i64 = _integer("i64", Kind.INT, 64, np.int64)
i32 = _integer("i32", Kind.INT, 32, np.int32)
i16 = _integer("i16", Kind.INT, 16, np.int16)
i8 = _integer("i8", Kind.INT, 8, np.int8)
i4 = _integer("i4", Kind.INT, 4, ml_dtypes.int4)
u64 = _integer("u64", Kind.UINT, 64, np.uint64)
u32 = _integer("u32", Kind.UINT, 32, np.uint32)
u16 = _integer("u16", Kind.UINT, 16, np.uint16)
u8 = _integer("u8", Kind.UINT, 8, np.uint8)
u4 = _integer("u4", Kind.UINT, 4, ml_dtypes.uint4)
bool_ = DType("bool", Kind.BOOL, 1, np.dtype(np.bool_))

FLOATS = (f64, f32, tf32, bf16, f16, f8e5m2, f8e4m3, f6e3m2, f6e2m3, f4e2m1)
INTEGERS = (i64, i32, i16, i8, i4, u64, u32, u16, u8, u4)
ALL = (*FLOATS, *INTEGERS, bool_)
FOURS = tuple(dtype for dtype in ALL if dtype.bits == 4)
"""Types of 4 bits: the codes of two elements are a byte, where they are packed."""
BYTES = (u8, i8)
"""Types of bytes that hold two such codes."""
BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in ALL}
STANDARD_NAMES: dict[str, DType] = {
    dtype.storage.name: dtype for dtype in (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, f16, bf16)
}
"""Types by the Array API's names for them, which are NumPy's."""
OF_PYTHON: dict[type, DType] = {bool: bool_, int: i64, float: f32}
"""The default types: those of Python's numbers where nothing else says one."""
