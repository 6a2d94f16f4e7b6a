"""Element types in IR: the one mapping between `DType` and xDSL's builtin types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes import types as dt
from tessera.dtypes.types import DType

_ELEMENT_OF: dict[DType, TypeAttribute] = {
    dt.f64: Float64Type(),
    dt.f32: Float32Type(),
    dt.tf32: FloatTF32Type(),
    dt.bf16: BFloat16Type(),
    dt.f16: Float16Type(),
    dt.f8e5m2: Float8E5M2Type(),
    dt.f8e4m3: Float8E4M3FNType(),
    dt.f6e3m2: Float6E3M2FNType(),
    dt.f6e2m3: Float6E2M3FNType(),
    dt.f4e2m1: Float4E2M1FNType(),
    # MLIR's signless integers carry our signed types; unsigned ones say so.
    **{getattr(dt, f"i{bits}"): IntegerType(bits) for bits in (64, 32, 16, 8, 4)},
    **{getattr(dt, f"u{bits}"): IntegerType(bits, Signedness.UNSIGNED) for bits in (64, 32, 16, 8, 4)},
    dt.bool_: IntegerType(1),
}
_DTYPE_OF: dict[Attribute, DType] = {element: dtype for dtype, element in _ELEMENT_OF.items()}

TileType: TypeAlias = TensorType[Attribute]
AttributeT = TypeVar("AttributeT", bound=Attribute)


def typed(kind: type[AttributeT]) -> Callable[[SSAValue], AttributeT]:
    """The function that gives the types of values which have types of one kind."""

    def type_of(value: SSAValue) -> AttributeT:
        assert isinstance(value.type, kind)
        return value.type

    return type_of


def element_of(dtype: DType) -> TypeAttribute:
    """The IR type of one element; policies are not part of it."""
    return _ELEMENT_OF[dtype.base]


def dtype_of(element: Attribute) -> DType:
    """The dtype of an IR element type; `index` counts as i64."""
    if isinstance(element, IndexType):
        return dt.i64
    try:
        return _DTYPE_OF[element]
    except KeyError:
        raise VerifyException(f"{element} is not a Tessera element type") from None


def is_element(element: Attribute) -> bool:
    return element in _DTYPE_OF


def tile_of(shape: tuple[int, ...], dtype: DType) -> TileType:
    """The type of a tile value."""
    return TensorType(element_of(dtype), shape)
