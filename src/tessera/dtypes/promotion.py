"""Which types meet in which: names to types, exactness, implicit promotion, accumulators and compute types."""

from __future__ import annotations

import functools
from itertools import product
from typing import Any

import numpy as np

from tessera.dtypes.types import (
    ALL,
    BY_NAME,
    FLOATS,
    INTEGERS,
    DType,
    Kind,
    Specials,
    bool_,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    tf32,
    u32,
    u64,
)
from tessera.errors import DtypeError

# tf32 shares its storage with f32: it is how a product is computed, and is only ever asked for by name.
_BY_STORAGE: dict[np.dtype[Any], DType] = {dtype.storage: dtype for dtype in ALL if dtype is not tf32}
_BY_STORAGE_NAME = {storage.name: dtype for storage, dtype in _BY_STORAGE.items()}
_BY_PYTHON_TYPE: dict[type, DType] = {bool: bool_, int: i64, float: f32}


def as_dtype(x: DType | str | np.dtype[Any] | type) -> DType:
    """The type that `x` names: a DType, "bf16", "bfloat16", a NumPy dtype or scalar type, bool, int or float.

    Python's `int` is i64; its `float` is f32, the default float of the package.
    """
    if isinstance(x, DType):
        return x
    found = None
    if isinstance(x, str):
        found = BY_NAME.get(x) or _BY_STORAGE_NAME.get(x)
    elif isinstance(x, np.dtype):
        found = _BY_STORAGE.get(x)
    elif isinstance(x, type):
        found = _BY_PYTHON_TYPE.get(x) or _from_scalar_type(x)
    if found is None:
        raise DtypeError(
            f"{x!r} is not an element type",
            hint=f"give one of {', '.join(BY_NAME)}; a NumPy name ({', '.join(_BY_STORAGE_NAME)}), dtype or "
            "scalar type; or bool, int (i64), float (f32)",
        )
    return found


def _from_scalar_type(x: type) -> DType | None:
    # ml_dtypes' scalar types do not derive from np.generic, so that only NumPy can tell; it refuses np.generic.
    try:
        return _BY_STORAGE.get(np.dtype(x))
    except TypeError:
        return None


@functools.cache
def can_cast(source: DType, target: DType) -> bool:
    """Whether casting changes no value: every number, infinity and NaN of `source` is there in `target`."""
    if source is target:
        return True
    if source.policy.scale_axis is not None or target.policy.scale_axis is not None:
        return False
    wide, narrow = target.float_format, source.float_format
    if wide is None:
        same_family = target.kind is not Kind.BOOL or source.kind is Kind.BOOL
        in_range = target.min_value <= source.min_value and source.max_value <= target.max_value
        return narrow is None and same_family and in_range
    scale = (target.policy.loss_scale or 1.0) / (source.policy.loss_scale or 1.0)
    if narrow is None:
        # Integers 0 … N are all there exactly when N needs no more than the significand.
        largest = max(-source.min_value, source.max_value)
        fits = largest <= 2 << wide.mantissa_bits and largest * scale <= wide.max_finite
        return fits and scale >= wide.smallest_subnormal
    loses_infinity = target.policy.saturate and narrow.specials is Specials.IEEE
    return wide.contains(narrow, scale) and not loses_infinity


def promote(*dtypes: DType) -> DType:
    """The type in which values of all these types meet without a cast; only exact meetings are implicit."""
    if not dtypes:
        raise DtypeError("promote needs at least one type, got none", hint="give the types of the operands")
    return functools.reduce(_join, dtypes)


def _join(left: DType, right: DType) -> DType:
    if left is right:
        return left
    base = _JOINS.get((left.base, right.base))
    if base is None:
        raise DtypeError(f"{left} and {right} do not promote implicitly: {_reason(left, right)}", hint=_HINT)
    if left.policy.scale_axis is not None or right.policy.scale_axis is not None:
        raise DtypeError(
            f"{left} and {right} do not promote implicitly: integers with scales meet only their own type",
            hint="dequantize first",
        )
    try:
        return base.with_policy(left.policy @ right.policy)
    except DtypeError as contradiction:
        raise DtypeError(
            f"{left} and {right} have policies that do not fit together: {contradiction.message}", hint=_HINT
        ) from None


_HINT = "cast one operand explicitly"


def _reason(left: DType, right: DType) -> str:
    if Kind.BOOL in (left.kind, right.kind):
        return "bool meets only bool"
    if left.is_float != right.is_float:
        return "an integer and a float meet in no exact common type"
    narrow = min(left, right, key=lambda dtype: dtype.bits)
    if narrow.bits <= (8 if narrow.is_float else 4):
        return f"{narrow.name} is a storage type and meets only itself"
    return "no signed integer type holds both"


def _join_table() -> dict[tuple[DType, DType], DType]:
    joins = {(dtype, dtype): dtype for dtype in ALL}
    # bf16 and f16 meet in f32 and not in tf32, and so must all pairs with tf32: joining stays associative.
    for left, right in product([dtype for dtype in FLOATS if dtype.bits >= 16], repeat=2):
        if left is not right:
            joins[left, right] = f64 if f64 in (left, right) else f32
    signed = (i8, i16, i32, i64)
    for left, right in product([dtype for dtype in INTEGERS if dtype.bits >= 8], repeat=2):
        candidates = (left, right) if left.kind is right.kind else signed
        both = [wide for wide in candidates if can_cast(left, wide) and can_cast(right, wide)]
        if both:
            joins[left, right] = min(both, key=lambda dtype: dtype.bits)
    return joins


_JOINS = _join_table()


def accumulator(dtype: DType) -> DType:
    """The type in which sums and dot products of `dtype` are carried; the `accum` policy decides where given."""
    if dtype.policy.accum is not None:
        return dtype.policy.accum
    if dtype.is_float:
        return compute_type(dtype)
    narrow, wide = (u32, u64) if dtype.kind is Kind.UINT else (i32, i64)
    # Sums of bool are counts, and there can be more than 2³¹ elements.
    return wide if dtype.bits >= 32 or dtype.kind is Kind.BOOL else narrow


def compute_type(dtype: DType) -> DType:
    """The plain type in which elementwise work on `dtype` is done before one rounding into `dtype`.

    Floats narrower than 32 bits and tf32 work in f32. Integers that saturate work in the narrower of i32 and
    i64 that holds every sum, difference and product, so that clamping sees the true result.
    """
    if dtype.is_float:
        return f32 if dtype.bits < 32 else dtype.base
    if not (dtype.policy.saturate and dtype.is_integer):
        return dtype.base
    largest = max(-dtype.min_value, dtype.max_value)
    for wide in (i32, i64):
        if largest * largest <= wide.max_value:
            return wide
    raise DtypeError(
        f"arithmetic on {dtype} would need integers of more than 64 bits to clamp correctly",
        hint="work in i32 @ saturate or narrower, or cast to the plain type, which wraps around",
    )
