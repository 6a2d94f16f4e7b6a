"""Which types meet in which: names to types, exactness, implicit promotion, accumulators and compute types."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from tessera.dtypes.types import (
    ALL,
    BY_NAME,
    FLOATS,
    INTEGERS,
    OF_PYTHON,
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
        found = OF_PYTHON.get(x) or _from_scalar_type(x)
    if found is None:
        raise DtypeError(
            f"{x!r} is not an element type",
            hint=("a shape is one argument, ts.zeros((2, 3)); for a dtype " if isinstance(x, int) else "")
            + f"give one of {', '.join(BY_NAME)}; a NumPy name ({', '.join(_BY_STORAGE_NAME)}), dtype or "
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
    """The type in which arrays of all these types meet without a cast.

    It holds every value of each, but for integers beside f32 and f64, which are rounded into these.
    """
    return _met(dtypes, _JOINS)


def promote_exactly(*dtypes: DType) -> DType:
    """The same within one kind of types, where it changes no value: the rule between tiles of a kernel."""
    return _met(dtypes, _EXACT_JOINS)


def beside_number(dtype: DType, number: type) -> DType:
    """The type of an array of `dtype` and of a Python number of this class that it meets.

    Numbers are weak: they take the array's type. One of a kind that the array does not have takes it to its default
    type: a float takes integers and bools to f32, an int takes bools to i64.
    """
    own = OF_PYTHON[number]
    return dtype if _RANK[own.kind] <= _RANK[dtype.kind] else promote(dtype, own)


def as_float(dtype: DType) -> DType:
    """The type in which functions of floats take arrays of `dtype`: integers and bools are taken in f32."""
    return dtype if dtype.is_float else promote(dtype, f32)


_RANK = {Kind.BOOL: 0, Kind.UINT: 1, Kind.INT: 1, Kind.FLOAT: 2}


def is_higher(kind: Kind, than: Kind) -> bool:
    """Whether values of a kind cannot be stored as another: floats as integers, numbers as bools."""
    return _RANK[kind] > _RANK[than]


_Joins = Mapping[tuple[DType, DType], DType]


def _met(dtypes: Sequence[DType], joins: _Joins) -> DType:
    if not dtypes:
        raise DtypeError("promote needs at least one type, got none", hint="give the types of the operands")
    # Floats first: what integers meet is the type of all floats, whatever their order.
    ordered = dtypes if len(dtypes) < 3 else sorted(dtypes, key=lambda dtype: -_RANK[dtype.kind])
    return functools.reduce(lambda left, right: _join(left, right, joins), ordered)


def _join(left: DType, right: DType, joins: _Joins) -> DType:
    if left is right:
        return left
    base = joins.get((left.base, right.base))
    if base is None:
        raise DtypeError(f"{left} and {right} do not promote implicitly: {_reason(left, right, joins)}", hint=_HINT)
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


def _reason(left: DType, right: DType, joins: _Joins) -> str:
    if Kind.BOOL in (left.kind, right.kind):
        return "bool meets only bool"
    if left.is_float != right.is_float and joins is _EXACT_JOINS:
        return "an integer and a float meet in no exact common type"
    narrow = min(left, right, key=lambda dtype: dtype.bits)
    real = left.float_format or right.float_format
    if (
        left.is_float != right.is_float
        and real is not None
        and min(left.bits, right.bits) >= 8
        and real.mantissa_bits > 3
    ):
        return f"integers meet f32 and f64, and narrower floats round whole numbers above {2 << real.mantissa_bits}"
    if narrow.bits <= (8 if narrow.is_float else 4):
        return f"{narrow.name} is a storage type and meets only itself and bool"
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


def _with_more_joins(joins: _Joins) -> _Joins:
    """Those of arrays: as torch and JAX have it, integers go with floats, and bools, which are 0 and 1, with all.

    Of floats only f32 and f64: narrower ones round the numbers that integers are for, such as positions.
    """
    found = dict(joins)
    for dtype in ALL:
        found[dtype, bool_] = found[bool_, dtype] = dtype
    for whole, real in product([dtype for dtype in INTEGERS if dtype.bits >= 8], (f32, f64)):
        found[whole, real] = found[real, whole] = real
    return found


_EXACT_JOINS: _Joins = _join_table()
_JOINS: _Joins = _with_more_joins(_EXACT_JOINS)


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
