"""The registry of operators: each by the module that defines it; a light file, read when the package is imported.

This is the only list of operators. `tessera.NAME` and `tessera.ops.NAME`, `dir()` and `help()`, methods of tensors and
the stubs that type checkers read come from it. Tests compare it with the modules, with the page Operators and with the
Array API standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

ARRAY_API_VERSION = "2023.12"
"""The revision of the Array API standard that has the operators' names and meanings."""

_DEFINED_IN: Mapping[str, tuple[str, ...]] = {
    "creation": (
        *("arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace"),
        *("ones", "ones_like", "zeros", "zeros_like"),
    ),
    "operators.attention": ("flash_attention", "merge_heads", "rope", "scaled_dot_product_attention", "split_qkv"),
    "operators.creation": ("meshgrid", "one_hot", "tril", "triu"),
    "operators.data_types": ("astype", "can_cast", "cast_like", "finfo", "iinfo", "isdtype", "result_type"),
    "operators.elementwise": (
        *("abs", "ceil", "conj", "cos", "erf", "exp", "exp2", "expm1", "floor", "log", "log1p", "log2"),
        *("negative", "positive", "real", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sqrt"),
        *("square", "tan", "tanh", "trunc"),
        *("isfinite", "isinf", "isnan", "signbit"),
        *("add", "atan2", "copysign", "divide", "floor_divide", "maximum", "minimum", "multiply", "pow"),
        *("remainder", "subtract"),
        *("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"),
        *("bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor"),
        *("logical_and", "logical_not", "logical_or", "logical_xor"),
        *("clip", "masked_fill", "where"),
    ),
    "operators.composed_elementwise": (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh"),
        *("hypot", "log10", "logaddexp"),
        *("gelu", "relu", "silu", "softplus"),
    ),
    "operators.inspection": ("__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi"),
    "operators.layers.activations": (
        *("celu", "elu", "glu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_sigmoid", "mish", "prelu"),
        *("relu6", "selu", "softsign"),
    ),
    "operators.layers.convolution": ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    "operators.layers.losses": (
        *("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "kl_div", "l1_loss", "nll_loss"),
        *("smooth_l1_loss",),
    ),
    "operators.layers.pooling": ("adaptive_avg_pool", "adaptive_max_pool"),
    "operators.layers.resizing": ("fold", "interpolate", "pixel_shuffle", "pixel_unshuffle", "unfold"),
    "operators.linear_algebra": ("einsum", "linear", "matmul", "outer", "tensordot", "vecdot"),
    "operators.manipulation": (
        *("broadcast_arrays", "broadcast_to", "expand_dims", "flatten", "reshape", "squeeze"),
        *("flip", "matrix_transpose", "moveaxis", "permute_dims", "roll", "transpose"),
        *("concat", "pad", "repeat", "split", "stack", "tile", "unstack"),
    ),
    "operators.networks": (
        *("avg_pool", "conv1d", "conv2d", "conv3d", "cross_entropy", "dropout", "max_pool", "mse_loss", "residual"),
    ),
    "operators.normalization": (
        *("batchnorm", "groupnorm", "layernorm_safe", "log_softmax", "rmsnorm_safe", "softmax", "softmax_safe"),
    ),
    "operators.numerics.comparing": ("allclose", "array_equal", "isclose", "isin", "nan_to_num", "nextafter"),
    "operators.numerics.counting": (
        *("bincount", "histogram", "segment_max", "segment_mean", "segment_min", "segment_sum"),
    ),
    "operators.numerics.matrices": (
        *("cov", "cross", "diag", "diagonal", "kron", "matrix_norm", "norm", "trace", "vector_norm"),
    ),
    "operators.numerics.order_statistics": ("median", "percentile", "quantile"),
    "operators.numerics.positions": ("diff", "ravel_multi_index", "rot90", "unravel_index"),
    "operators.searching": ("argmax", "argmin", "count_nonzero", "searchsorted"),
    "operators.sets": ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    "operators.sorting": ("argsort", "sort", "topk"),
    "operators.statistics": (
        *("all", "any", "max", "mean", "min", "prod", "std", "sum", "var"),
        *("cumulative_prod", "cumulative_sum", "logsumexp_safe"),
    ),
    "operators.taking": ("embedding", "take", "take_along_axis"),
}

OPERATORS: Mapping[str, str] = MappingProxyType(
    {name: f"tessera.lang.{module}" for module, names in _DEFINED_IN.items() for name in names}
)
"""The module of each operator."""

_METHODS_IN = (
    *("operators.elementwise", "operators.composed_elementwise", "operators.linear_algebra"),
    *("operators.manipulation", "operators.searching", "operators.sorting", "operators.statistics"),
    "operators.taking",
)
_NO_METHODS = frozenset(
    {
        # What they are about is not their first argument.
        *("broadcast_arrays", "concat", "einsum", "embedding", "linear", "stack", "where"),
        # Methods of these names mean something else in NumPy or in torch.
        *("conj", "real", "repeat", "split", "tile"),
    }
)
_MORE_METHODS = ("astype", "log_softmax", "nonzero", "one_hot", "softmax", "tril", "triu", "unique_values")

METHODS: tuple[str, ...] = (
    *(name for module in _METHODS_IN for name in _DEFINED_IN[module] if name not in _NO_METHODS),
    *_MORE_METHODS,
)
"""The operators that are methods of tensors, too."""

_ALSO: Mapping[str, tuple[str, ...]] = {
    "abs": ("absolute",),
    "acos": ("arccos",),
    "acosh": ("arccosh",),
    "array": ("tensor",),
    "asarray": ("as_tensor",),
    "asin": ("arcsin",),
    "asinh": ("arcsinh",),
    "atan": ("arctan",),
    "atan2": ("arctan2",),
    "atanh": ("arctanh",),
    "batchnorm": ("batch_norm",),
    "bitwise_invert": ("bitwise_not", "invert"),
    "bitwise_left_shift": ("left_shift",),
    "bitwise_right_shift": ("right_shift",),
    "clip": ("clamp",),
    "concat": ("cat", "concatenate"),
    "cumulative_prod": ("cumprod",),
    "cumulative_sum": ("cumsum",),
    "divide": ("div", "true_divide"),
    "equal": ("eq",),
    "expand_dims": ("unsqueeze",),
    "flatten": ("ravel",),
    "greater": ("gt",),
    "greater_equal": ("ge",),
    "groupnorm": ("group_norm",),
    "less": ("lt",),
    "less_equal": ("le",),
    "logsumexp_safe": ("logsumexp",),
    "matmul": ("bmm", "mm", "mv"),
    "max": ("amax",),
    "min": ("amin",),
    "moveaxis": ("movedim",),
    "multiply": ("mul",),
    "negative": ("neg",),
    "not_equal": ("ne",),
    "permute_dims": ("permute",),
    "pow": ("power",),
    "remainder": ("mod",),
    "repeat": ("repeat_interleave",),
    "subtract": ("sub",),
    "transpose": ("swapaxes", "swapdims"),
    "unstack": ("unbind",),
}

ALIASES: Mapping[str, str] = MappingProxyType({also: name for name, others in _ALSO.items() for also in others})
"""Names that people know from torch and NumPy, and the operator or function that each is: not another one."""


def operator_named(name: str) -> Any:
    """An operator; its module is loaded when the first of its operators is asked for."""
    return getattr(import_module(OPERATORS[name]), name)
