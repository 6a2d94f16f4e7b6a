"""Operators: the functions of the Array API standard and the deep-learning set, for traced values and tensors alike.

A new one is imported and listed here, and in `lang/operator_names.py`, which `import tessera` reads instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera.dtypes.types import bf16 as bfloat16
from tessera.dtypes.types import bool_ as bool  # noqa: A004  (the standard's name)
from tessera.dtypes.types import f16 as float16
from tessera.dtypes.types import f32 as float32
from tessera.dtypes.types import f64 as float64
from tessera.dtypes.types import i8 as int8
from tessera.dtypes.types import i16 as int16
from tessera.dtypes.types import i32 as int32
from tessera.dtypes.types import i64 as int64
from tessera.dtypes.types import u8 as uint8
from tessera.dtypes.types import u16 as uint16
from tessera.dtypes.types import u32 as uint32
from tessera.dtypes.types import u64 as uint64
from tessera.lang.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from tessera.lang.operators.attention import flash_attention, merge_heads, rope, scaled_dot_product_attention, split_qkv
from tessera.lang.operators.composed_elementwise import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cosh,
    gelu,
    hypot,
    log10,
    logaddexp,
    relu,
    silu,
    sinh,
    softplus,
)
from tessera.lang.operators.creation import meshgrid, one_hot, tril, triu
from tessera.lang.operators.data_types import astype, can_cast, cast, cast_like, finfo, iinfo, isdtype, result_type
from tessera.lang.operators.elementwise import (
    abs,  # noqa: A004  (the standard's name)
    add,
    atan2,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    divide,
    equal,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    masked_fill,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    pow,  # noqa: A004  (the standard's name)
    real,
    reciprocal,
    remainder,
    round,  # noqa: A004  (the standard's name)
    row,
    rsqrt,
    sigmoid,
    sign,
    signbit,
    sin,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from tessera.lang.operators.indexing import get_item
from tessera.lang.operators.inspection import API_VERSION, __array_namespace_info__, e, inf, nan, newaxis, pi
from tessera.lang.operators.linear_algebra import einsum, linear, matmul, outer, tensordot, vecdot
from tessera.lang.operators.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flatten,
    flip,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    tile,
    transpose,
    unstack,
)
from tessera.lang.operators.networks import (
    avg_pool,
    conv1d,
    conv2d,
    cross_entropy,
    dropout,
    max_pool,
    mse_loss,
    residual,
)
from tessera.lang.operators.normalization import (
    batchnorm,
    groupnorm,
    layernorm_safe,
    log_softmax,
    rmsnorm_safe,
    softmax,
    softmax_safe,
)
from tessera.lang.operators.searching import argmax, argmin, count_nonzero, searchsorted
from tessera.lang.operators.sets import nonzero, unique_all, unique_counts, unique_inverse, unique_values
from tessera.lang.operators.sorting import argsort, sort, topk
from tessera.lang.operators.statistics import (
    all,  # noqa: A004  (the standard's name)
    any,  # noqa: A004  (the standard's name)
    cumulative_prod,
    cumulative_sum,
    logsumexp_safe,
    max,  # noqa: A004  (the standard's name)
    mean,
    min,  # noqa: A004  (the standard's name)
    prod,
    std,
    sum,  # noqa: A004  (the standard's name)
    var,
)
from tessera.lang.operators.taking import embedding, take, take_along_axis
from tessera.lang.operators.updates import At, stored
from tessera.lang.tracing.values import current_or_none
from tessera.tile.calls.settings import settings

__array_api_version__ = API_VERSION


def _several(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items of `f(2, 3)` or `f((2, 3))`."""
    first: Any = given[0] if len(given) == 1 else given
    return tuple(first) if isinstance(first, tuple | list) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _permuted(x: Any, *axes: Any) -> Any:
    return permute_dims(x, _several(axes))


def _reshaped(x: Any, *shape: Any, copy: Any = None) -> Any:
    return reshape(x, _several(shape), copy=copy)


def _broadcast(x: Any, *shape: Any) -> Any:
    return broadcast_to(x, _several(shape))


def _squeezed(x: Any, axis: Any = None) -> Any:
    ones_there = tuple(at for at, size in enumerate(x.shape) if size == 1) if axis is None else axis
    return squeeze(x, ones_there)


def _cast_to(x: Any, dtype: Any) -> Any:
    return astype(x, dtype, copy=False)


def _namespace(x: Any, /, *, api_version: str | None = None) -> Any:
    """The module with the functions of the standard."""
    import sys

    from tessera.errors import TesseraError

    if api_version not in (None, "2021.12", "2022.12", API_VERSION):
        raise TesseraError(f"revision {api_version} of the Array API is not implemented", hint=f"ask for {API_VERSION}")
    return sys.modules[__name__]


def _transposed(x: Any) -> Any:
    from tessera.errors import ShapeError

    if x.ndim != 2:
        raise ShapeError(f".T is for matrices, this tensor has {x.ndim} axes", hint="use .mT, or permute")
    return matrix_transpose(x)


def _has_machine_code() -> Any:
    """Whether operators of the host are compiled here and now: not by the interpreter, and not part of a trace."""
    return current_or_none() is None and settings() is not None


METHODS: Mapping[str, Callable[..., Any]] = {
    "__getitem__": get_item,
    "__setitem__": stored,
    "__matmul__": matmul,
    "__elementwise__": row,
    "__cast__": cast,
    "__has_machine_code__": _has_machine_code,
    "__array_namespace__": _namespace,
    "all": all,
    "any": any,
    "argmax": argmax,
    "argmin": argmin,
    "astype": astype,
    "broadcast_to": _broadcast,
    "clip": clip,
    "copy": positive,
    "cos": cos,
    "exp": exp,
    "expand_dims": expand_dims,
    "flatten": flatten,
    "log": log,
    "max": max,
    "mean": mean,
    "min": min,
    "permute": _permuted,
    "prod": prod,
    "reshape": _reshaped,
    "rsqrt": rsqrt,
    "sigmoid": sigmoid,
    "sin": sin,
    "softmax": softmax,
    "sqrt": sqrt,
    "squeeze": _squeezed,
    "std": std,
    "sum": sum,
    "tanh": tanh,
    "to": _cast_to,
    "transpose": transpose,
    "var": var,
}
"""The methods of tensors and traced values, by name."""

PROPERTIES: Mapping[str, Callable[[Any], Any]] = {"T": _transposed, "at": At, "mT": matrix_transpose}
"""The properties of tensors and traced values, by name."""

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "avg_pool",
    "batchnorm",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "cast_like",
    "ceil",
    "clip",
    "concat",
    "conj",
    "conv1d",
    "conv2d",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cross_entropy",
    "cumulative_prod",
    "cumulative_sum",
    "divide",
    "dropout",
    "e",
    "einsum",
    "embedding",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flash_attention",
    "flatten",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "gelu",
    "greater",
    "greater_equal",
    "groupnorm",
    "hypot",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "layernorm_safe",
    "less",
    "less_equal",
    "linear",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp_safe",
    "masked_fill",
    "matmul",
    "matrix_transpose",
    "max",
    "max_pool",
    "maximum",
    "mean",
    "merge_heads",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "mse_loss",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nonzero",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "residual",
    "result_type",
    "rmsnorm_safe",
    "roll",
    "rope",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "searchsorted",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "softmax",
    "softmax_safe",
    "softplus",
    "sort",
    "split",
    "split_qkv",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "topk",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return sorted(__all__)
