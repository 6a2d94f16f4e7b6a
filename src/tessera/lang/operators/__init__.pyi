"""The operators. Written by tests/stubs/write_stubs.py from the registry of operators; not to be changed by hand."""

import builtins
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias
from tessera.dtypes.types import (
    bf16 as bfloat16,
    bool_ as bool,
    f16 as float16,
    f32 as float32,
    f64 as float64,
    i16 as int16,
    i32 as int32,
    i64 as int64,
    i8 as int8,
    u16 as uint16,
    u32 as uint32,
    u64 as uint64,
    u8 as uint8,
)
from tessera.lang.creation import (
    arange as arange,
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    linspace as linspace,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from tessera.lang.operators.creation import DTypeLike
from tessera.lang.operators.data_types import (
    astype as astype,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from tessera.lang.operators.inspection import (
    __array_namespace_info__ as __array_namespace_info__,
    e as e,
    inf as inf,
    nan as nan,
    newaxis as newaxis,
    pi as pi,
)
from tessera.lang.operators.layers.losses import Reduction
from tessera.lang.operators.layers.resizing import Mode, Size
from tessera.lang.operators.manipulation import Axis, DimLike, repeat as repeat
from tessera.lang.operators.networks import dropout as dropout, residual as residual
from tessera.lang.operators.numerics.counting import (
    bincount as bincount,
    histogram as histogram,
    segment_max as segment_max,
    segment_mean as segment_mean,
    segment_min as segment_min,
    segment_sum as segment_sum,
)
from tessera.lang.operators.numerics.order_statistics import Method, Shares
from tessera.lang.operators.sets import (
    nonzero as nonzero,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from tessera.lang.tracing.values import Traced
from tessera.runtime.tensor.tensor import Tensor

class SupportsDLPack(Protocol):
    """An array of another library: NumPy, torch, JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

Array: TypeAlias = Tensor | Traced | SupportsDLPack | builtins.bool | int | float

__array_api_version__: str
__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "add",
    "all",
    "allclose",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "array_equal",
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
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bincount",
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
    "celu",
    "clip",
    "concat",
    "conj",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cross_entropy",
    "cumulative_prod",
    "cumulative_sum",
    "diag",
    "diagonal",
    "diff",
    "divide",
    "dropout",
    "e",
    "einsum",
    "elu",
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
    "fold",
    "from_dlpack",
    "full",
    "full_like",
    "gelu",
    "glu",
    "greater",
    "greater_equal",
    "groupnorm",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "histogram",
    "huber_loss",
    "hypot",
    "iinfo",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "interpolate",
    "isclose",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "kl_div",
    "kron",
    "l1_loss",
    "layernorm_safe",
    "leaky_relu",
    "less",
    "less_equal",
    "linear",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp_safe",
    "masked_fill",
    "matmul",
    "matrix_norm",
    "matrix_transpose",
    "max",
    "max_pool",
    "maximum",
    "mean",
    "median",
    "merge_heads",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "moveaxis",
    "mse_loss",
    "multiply",
    "nan",
    "nan_to_num",
    "negative",
    "newaxis",
    "nextafter",
    "nll_loss",
    "nonzero",
    "norm",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "pi",
    "pixel_shuffle",
    "pixel_unshuffle",
    "positive",
    "pow",
    "prelu",
    "prod",
    "quantile",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "reshape",
    "residual",
    "result_type",
    "rmsnorm_safe",
    "roll",
    "rope",
    "rot90",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "searchsorted",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "selu",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "smooth_l1_loss",
    "softmax",
    "softmax_safe",
    "softplus",
    "softsign",
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
    "trace",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unfold",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unravel_index",
    "unstack",
    "var",
    "vecdot",
    "vector_norm",
    "where",
    "zeros",
    "zeros_like",
]

def flash_attention(
    q: Array,
    k: Array | tuple[Array, Array],
    v: Array | None = None,
    /,
    *,
    causal: builtins.bool = False,
    dropout: float = 0.0,
    key: Array | None = None,
    scale: float | None = None,
    window: int | None = None,
    soft_cap: float | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    offset: Array | None = None,
    key_lengths: Array | None = None,
    return_lse: builtins.bool = False,
    is_causal: builtins.bool = False,
) -> Any:
    """`scaled_dot_product_attention`, which also takes keys and values as a pair, as a cache holds them."""

def merge_heads(x: Array, /) -> Tensor:
    """[batch, heads, length, width] as [batch, length, heads · width]: the reverse of `split_qkv`."""

def rope(
    x: Array,
    positions: Array | None = None,
    /,
    *,
    base: float = 10000.0,
    interleaved: builtins.bool = False,
    offset: Array | None = None,
) -> Tensor:
    """Rotary position embedding: pairs along the last axis are rotated by angles that grow with the position."""

def scaled_dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    /,
    *,
    mask: Array | None = None,
    bias: Array | None = None,
    causal: builtins.bool = False,
    offset: Array | None = None,
    window: int | None = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    key_lengths: Array | None = None,
    dropout: float = 0.0,
    key: Array | None = None,
    return_lse: builtins.bool = False,
    is_causal: builtins.bool = False,
) -> Any:
    """Attention: softmax(q kᵀ · scale) v over [batch, heads, length, width]; 0 for a query that sees no key."""

def split_qkv(qkv: Array, /, *, heads: int, kv_heads: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Splits [batch, length, (heads + 2 · kv_heads) · width] into q, k and v of [batch, heads, length, width]."""

def meshgrid(*arrays: Array, indexing: Literal['xy', 'ij'] = 'xy') -> list[Tensor]:
    """Coordinates of a grid: one array per axis, each repeated along the axes of the others."""

def one_hot(indices: Array, classes: int, /, *, dtype: DTypeLike = ...) -> Tensor:
    """1 at the class that an index names and 0 elsewhere, along a new last axis."""

def tril(x: Array, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices: elements on and below the k-th diagonal, zeros above."""

def triu(x: Array, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices: elements on and above the k-th diagonal, zeros below."""

def cast_like(x: Array, like: Array, /) -> Tensor:
    """Casts `x` to the element type of `like`."""

def abs(x: Array, /) -> Tensor:
    """The absolute value of each element."""

def ceil(x: Array, /) -> Tensor:
    """Each element rounded up to a whole number."""

def conj(x: Array, /) -> Tensor:
    """The complex conjugate of numbers that are real: themselves."""

def cos(x: Array, /) -> Tensor:
    """The cosine of each angle, in radians."""

def erf(x: Array, /) -> Tensor:
    """The error function of each element."""

def exp(x: Array, /) -> Tensor:
    """e to the power of each element."""

def exp2(x: Array, /) -> Tensor:
    """2 to the power of each element."""

def expm1(x: Array, /) -> Tensor:
    """e to the power of each element, less 1, without cancellation near 0."""

def floor(x: Array, /) -> Tensor:
    """Each element rounded down to a whole number."""

def log(x: Array, /) -> Tensor:
    """The natural logarithm of each element."""

def log1p(x: Array, /) -> Tensor:
    """The natural logarithm of 1 plus each element, without cancellation near 0."""

def log2(x: Array, /) -> Tensor:
    """The logarithm of each element to base 2."""

def negative(x: Array, /) -> Tensor:
    """-x of each element."""

def positive(x: Array, /) -> Tensor:
    """+x: each element as it is."""

def real(x: Array, /) -> Tensor:
    """The real part of numbers that are real: themselves."""

def reciprocal(x: Array, /) -> Tensor:
    """1 / x of each element."""

def round(x: Array, /) -> Tensor:
    """Each element rounded to the nearest whole number, of two the even one."""

def rsqrt(x: Array, /) -> Tensor:
    """1 / √x of each element."""

def sigmoid(x: Array, /) -> Tensor:
    """1 / (1 + e^-x) of each element, without overflow on either side."""

def sign(x: Array, /) -> Tensor:
    """The sign of each element: -1, 0 or 1; NaN for NaN."""

def sin(x: Array, /) -> Tensor:
    """The sine of each angle, in radians."""

def sqrt(x: Array, /) -> Tensor:
    """The square root of each element; NaN below 0."""

def square(x: Array, /) -> Tensor:
    """x² of each element."""

def tan(x: Array, /) -> Tensor:
    """The tangent of each angle, in radians."""

def tanh(x: Array, /) -> Tensor:
    """The hyperbolic tangent of each element."""

def trunc(x: Array, /) -> Tensor:
    """Each element rounded towards 0."""

def isfinite(x: Array, /) -> Tensor:
    """Where elements are neither infinite nor NaN."""

def isinf(x: Array, /) -> Tensor:
    """Where elements are infinite."""

def isnan(x: Array, /) -> Tensor:
    """Where elements are NaN."""

def signbit(x: Array, /) -> Tensor:
    """Whether the sign bit of each element is set, as it is for -0.0 too."""

def add(x1: Array, x2: Array, /) -> Tensor:
    """The sum x1 + x2."""

def atan2(x1: Array, x2: Array, /) -> Tensor:
    """The angle of the point (x2, x1), from -π to π."""

def copysign(x1: Array, x2: Array, /) -> Tensor:
    """The absolute value of x1 with the sign of x2."""

def divide(x1: Array, x2: Array, /) -> Tensor:
    """The quotient x1 / x2 of floats."""

def floor_divide(x1: Array, x2: Array, /) -> Tensor:
    """x1 // x2: the quotient, rounded down to a whole number."""

def maximum(x1: Array, x2: Array, /) -> Tensor:
    """The larger of two; NaN where one is."""

def minimum(x1: Array, x2: Array, /) -> Tensor:
    """The smaller of two; NaN where one is."""

def multiply(x1: Array, x2: Array, /) -> Tensor:
    """The product x1 · x2."""

def pow(x1: Array, x2: Array, /) -> Tensor:
    """x1 ** x2: x1 to the power of x2."""

def remainder(x1: Array, x2: Array, /) -> Tensor:
    """x1 % x2: the remainder of `floor_divide`, with the sign of x2."""

def subtract(x1: Array, x2: Array, /) -> Tensor:
    """The difference x1 - x2."""

def equal(x1: Array, x2: Array, /) -> Tensor:
    """x1 == x2, elementwise: bools."""

def greater(x1: Array, x2: Array, /) -> Tensor:
    """x1 > x2, elementwise: bools."""

def greater_equal(x1: Array, x2: Array, /) -> Tensor:
    """x1 >= x2, elementwise: bools."""

def less(x1: Array, x2: Array, /) -> Tensor:
    """x1 < x2, elementwise: bools."""

def less_equal(x1: Array, x2: Array, /) -> Tensor:
    """x1 <= x2, elementwise: bools."""

def not_equal(x1: Array, x2: Array, /) -> Tensor:
    """x1 != x2, elementwise: bools."""

def bitwise_and(x1: Array, x2: Array, /) -> Tensor:
    """x1 & x2: bits that are set in both."""

def bitwise_invert(x: Array, /) -> Tensor:
    """~x: every bit inverted."""

def bitwise_left_shift(x1: Array, x2: Array, /) -> Tensor:
    """x1 << x2: bits of x1 shifted left by x2."""

def bitwise_or(x1: Array, x2: Array, /) -> Tensor:
    """x1 | x2: bits that are set in either."""

def bitwise_right_shift(x1: Array, x2: Array, /) -> Tensor:
    """x1 >> x2: bits of x1 shifted right by x2; the sign is kept."""

def bitwise_xor(x1: Array, x2: Array, /) -> Tensor:
    """x1 ^ x2: bits that are set in one and not in the other."""

def logical_and(x1: Array, x2: Array, /) -> Tensor:
    """x1 and x2 of bools, elementwise."""

def logical_not(x: Array, /) -> Tensor:
    """not x of bools, elementwise."""

def logical_or(x1: Array, x2: Array, /) -> Tensor:
    """x1 or x2 of bools, elementwise."""

def logical_xor(x1: Array, x2: Array, /) -> Tensor:
    """Whether exactly one of two bools is true, elementwise."""

def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Tensor:
    """Limits each element to the range from `min` to `max`; NaN stays NaN. The result has the type of `x`."""

def masked_fill(x: Array, mask: Array, value: Array) -> Tensor:
    """`value` where the mask holds, `x` elsewhere."""

def where(condition: Array, x1: Array, x2: Array, /) -> Tensor:
    """x1 where the condition holds, x2 elsewhere; all three broadcast. Numbers alone are f32, i64 or bool."""

def acos(x: Array, /) -> Tensor:
    """The arc cosine of each element, from 0 to π; NaN outside of [-1, 1]."""

def acosh(x: Array, /) -> Tensor:
    """The inverse hyperbolic cosine of each element; NaN below 1."""

def asin(x: Array, /) -> Tensor:
    """The arc sine of each element, from -π/2 to π/2; NaN outside of [-1, 1]."""

def asinh(x: Array, /) -> Tensor:
    """The inverse hyperbolic sine of each element."""

def atan(x: Array, /) -> Tensor:
    """The arc tangent of each element, from -π/2 to π/2."""

def atanh(x: Array, /) -> Tensor:
    """The inverse hyperbolic tangent of each element; ±infinity at ±1, NaN beyond."""

def cosh(x: Array, /) -> Tensor:
    """The hyperbolic cosine of each element."""

def sinh(x: Array, /) -> Tensor:
    """The hyperbolic sine of each element."""

def hypot(x1: Array, x2: Array, /) -> Tensor:
    """√(x1² + x2²), without overflow on the way; infinite where one side is, even beside NaN."""

def log10(x: Array, /) -> Tensor:
    """The logarithm of each element to base 10."""

def logaddexp(x1: Array, x2: Array, /) -> Tensor:
    """log(e^x1 + e^x2), without overflow on the way."""

def gelu(x: Array, /, *, approximate: builtins.bool | str = False) -> Tensor:
    """GELU: x · Φ(x), with the normal distribution's Φ; with `approximate`, True or "tanh", by the formula in tanh."""

def relu(x: Array, /) -> Tensor:
    """max(x, 0) of each element."""

def silu(x: Array, /) -> Tensor:
    """SiLU: x · sigmoid(x)."""

def softplus(x: Array, /) -> Tensor:
    """Softplus: log(1 + e^x), without overflow."""

def celu(x: Array, /, alpha: float = 1.0) -> Tensor:
    """x where it is above 0, and `alpha` · (e^(x / alpha) - 1) elsewhere; as in torch. `alpha` is not 0."""

def elu(x: Array, /, alpha: float = 1.0) -> Tensor:
    """x where it is above 0, and `alpha` · (e^x - 1) elsewhere; as in torch."""

def glu(x: Array, /, axis: int = -1) -> Tensor:
    """The first half along `axis` times the sigmoid of the second; as in torch. The axis has an even size."""

def hardsigmoid(x: Array, /) -> Tensor:
    """relu6(x + 3) / 6; as in torch."""

def hardswish(x: Array, /) -> Tensor:
    """x · relu6(x + 3) / 6; as in torch."""

def hardtanh(x: Array, /, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to the range from `min_val` to `max_val`; as in torch. NaN stays NaN."""

def leaky_relu(x: Array, /, negative_slope: float = 0.01) -> Tensor:
    """x where it is above 0, and `negative_slope` · x elsewhere; as in torch."""

def log_sigmoid(x: Array, /) -> Tensor:
    """log(sigmoid(x)), without overflow on either side; torch's logsigmoid."""

def mish(x: Array, /) -> Tensor:
    """x · tanh(log(1 + e^x)), without overflow; as in torch."""

def prelu(x: Array, weight: Array, /) -> Tensor:
    """x where it is above 0, and weight · x elsewhere; as in torch."""

def relu6(x: Array, /) -> Tensor:
    """x limited to the range from 0 to 6; as in torch."""

def selu(x: Array, /) -> Tensor:
    """ELU with the alpha and the scale that keep mean and variance from layer to layer; as in torch."""

def softsign(x: Array, /) -> Tensor:
    """x / (1 + |x|); as in torch."""

def conv_transpose1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution of x, [batch, channels, length]."""

def conv_transpose2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution of x, [batch, channels, height, width]."""

def conv_transpose3d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution of x, [batch, channels, depth, height, width]."""

def binary_cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None = None,
    /,
    *,
    reduction: Reduction = 'mean',
) -> Tensor:
    """The mean of -(target · log x + (1 - target) · log(1 - x)) for probabilities x, times `weight`. As in torch."""

def binary_cross_entropy_with_logits(
    x: Array,
    target: Array,
    weight: Array | None = None,
    /,
    *,
    pos_weight: Array | None = None,
    reduction: Reduction = 'mean',
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow on either side. As in torch."""

def huber_loss(x: Array, target: Array, /, *, reduction: Reduction = 'mean', delta: float = 1.0) -> Tensor:
    """The mean of d² / 2 for distances d up to `delta`, and of delta · (d - delta / 2) for others. As in torch."""

def kl_div(
    x: Array,
    target: Array,
    /,
    *,
    reduction: Literal['mean', 'batchmean', 'sum', 'none'] = 'mean',
    log_target: builtins.bool = False,
) -> Tensor:
    """The mean of target · (log target - x), where x has logarithms of probabilities, as `log_softmax` gives them."""

def l1_loss(x: Array, target: Array, /, *, reduction: Reduction = 'mean') -> Tensor:
    """The mean of |x - target|; their sum, or each of them, by `reduction`. As in torch."""

def nll_loss(
    x: Array,
    labels: Array,
    weight: Array | None = None,
    /,
    *,
    axis: int = -1,
    ignore_index: int = -100,
    reduction: Reduction = 'mean',
) -> Tensor:
    """The mean of -x[label], where x has logarithms of probabilities along `axis`, as `log_softmax` gives them."""

def smooth_l1_loss(x: Array, target: Array, /, *, reduction: Reduction = 'mean', beta: float = 1.0) -> Tensor:
    """The mean of d² / (2 beta) for distances d below `beta`, and of d - beta / 2 for others. As in torch."""

def adaptive_avg_pool(x: Array, size: int | tuple[int | None, ...], /) -> Tensor:
    """The mean of each of `size` windows that an axis is divided into."""

def adaptive_max_pool(x: Array, size: int | tuple[int | None, ...], /) -> Tensor:
    """The largest element of each of `size` windows that an axis is divided into."""

def fold(
    x: Array,
    size: tuple[int, ...],
    window: int | tuple[int, ...],
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    """Columns as `unfold` makes them, added up where windows overlap: [batch, channels, *size]. As in torch."""

def interpolate(
    x: Array,
    /,
    size: Size | tuple[Size, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: Mode = 'nearest',
    align_corners: builtins.bool = False,
) -> Tensor:
    """x, [batch, channels, …], with other sizes of the axes after channels: `size`, or theirs times `scale_factor`."""

def pixel_shuffle(x: Array, factor: int, /) -> Tensor:
    """[…, channels · factor², height, width] as […, channels, height · factor, width · factor]. As in torch."""

def pixel_unshuffle(x: Array, factor: int, /) -> Tensor:
    """[…, channels, height · factor, width · factor] as […, channels · factor², height, width]. As in torch."""

def unfold(
    x: Array,
    window: int | tuple[int, ...],
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    """Windows of x, [batch, channels, …], as columns: [batch, channels · elements of a window, windows]."""

def einsum(formula: str, /, *operands: Array) -> Tensor:
    """Sums of products by labels of axes: `einsum("bij,bjk->bik", x, y)`."""

def linear(x: Array, weight: Array, bias: Array | None = None, /, *, dtype: DTypeLike | None = None) -> Tensor:
    """x @ weight + bias; weight is [inputs, outputs], bias [outputs]."""

def matmul(x1: Array, x2: Array, /, *, dtype: DTypeLike | None = None) -> Tensor:
    """x1 @ x2: the matrix product over the last axis of x1 and the second to last of x2; leading axes broadcast."""

def outer(x1: Array, x2: Array, /) -> Tensor:
    """The outer product of two vectors: x1[i] · x2[j]."""

def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last `axes` of x1 and the first of x2, or over pairs of axes."""

def vecdot(x1: Array, x2: Array, /, axis: int = -1) -> Tensor:
    """The dot product of vectors along `axis`, counted from the last; the other axes broadcast."""

def broadcast_arrays(*arrays: Array) -> list[Tensor]:
    """Broadcasts all arrays to their common shape."""

def broadcast_to(x: Array, /, shape: tuple[DimLike, ...]) -> Tensor:
    """Broadcasts `x` to `shape`: axes of size 1 and new leading axes are repeated."""

def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Inserts axes of size 1 at `axis`, counted in the result."""

def flatten(x: Array, /) -> Tensor:
    """All elements along one axis."""

def reshape(x: Array, /, shape: tuple[DimLike, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The same elements in another shape, of which one size may be -1: of a tensor a view where strides allow it."""

def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Tensor:
    """Removes `axis`, which must have size 1."""

def flip(x: Array, /, axis: Axis = None) -> Tensor:
    """Reverses the order of elements along `axis`, or along all axes."""

def matrix_transpose(x: Array, /) -> Tensor:
    """Exchanges the last two axes."""

def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Moves axes from `source` to `destination`; the others keep their order."""

def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Tensor:
    """Permutes axes: axis i of the result is axis axes[i] of `x`."""

def roll(x: Array, /, shift: int | tuple[int, ...], axis: Axis = None) -> Tensor:
    """Moves elements by `shift` along `axis`; those that leave come in again at the other end."""

def transpose(x: Array, /, first: int = -2, second: int = -1) -> Tensor:
    """Exchanges two axes, the last two unless others are named."""

def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Tensor:
    """Concatenates arrays along `axis`; with None, their elements as one axis."""

def pad(x: Array, widths: tuple[tuple[int, int], ...], /, *, value: float = False) -> Tensor:
    """Pads `x` with `value`, 0 or False by default: `widths` has (before, after) for each axis."""

def split(x: Array, parts: int | tuple[int, ...], /, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits `x` along `axis` into equal parts, or into parts of these sizes."""

def stack(arrays: Sequence[Array], /, axis: int = 0) -> Tensor:
    """Joins arrays of one shape along a new axis."""

def tile(x: Array, repetitions: tuple[int, ...], /) -> Tensor:
    """`x` set side by side: repetitions[i] times along axis i, counted from the last."""

def unstack(x: Array, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits `x` into its slices along `axis`, without that axis."""

def avg_pool(
    x: Array,
    size: int | tuple[int, ...],
    /,
    *,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
) -> Tensor:
    """The mean of each window over the axes after [batch, channels]; padding counts as zeros."""

def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves x, [batch, channels, length]; weight is [filters, channels / groups, filter width]."""

def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves x, [batch, channels, height, width]; weight is [filters, channels / groups, filter height, width]."""

def conv3d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    /,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves x, [batch, channels, depth, height, width]; weight is [filters, channels / groups, …] of the same axes."""

def cross_entropy(
    logits: Array,
    labels: Array,
    /,
    *,
    axis: int = -1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = 'mean',
) -> Tensor:
    """The cross entropy -log softmax(logits)[label] along `axis`, in f32 or wider."""

def max_pool(
    x: Array,
    size: int | tuple[int, ...],
    /,
    *,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
) -> Tensor:
    """The largest element of each window over the axes after [batch, channels]."""

def mse_loss(x: Array, target: Array, /, *, reduction: Reduction = 'mean') -> Tensor:
    """The mean of squared differences (x - target)²; their sum, or each of them, by `reduction`."""

def batchnorm(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    axis: int = 1,
    eps: float = 1e-05,
) -> Tensor:
    """Batch norm for inference: (x - mean) / √(variance + eps) by the known mean and variance of each channel."""

def groupnorm(
    x: Array,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    eps: float = 1e-05,
) -> Tensor:
    """Group norm: a layer norm over each of `groups` equal groups of channels of x, [batch, channels, …]."""

def layernorm_safe(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    axis: Axis = -1,
    eps: float = 1e-05,
) -> Tensor:
    """Layer norm: (x - mean) / √(variance + eps) over `axis`, times `weight` plus `bias`, where they are given."""

def log_softmax(x: Array, /, axis: Axis = -1) -> Tensor:
    """log(softmax(x)) along `axis`: x - log Σ e^x, without overflow."""

def rmsnorm_safe(x: Array, weight: Array | None = None, /, *, axis: Axis = -1, eps: float = 1e-06) -> Tensor:
    """RMS norm: x / √(mean(x²) + eps) over `axis`, times `weight`, where it is given."""

def softmax(x: Array, /, axis: Axis = -1) -> Tensor:
    """softmax(x) = e^x / Σ e^x along `axis`, without overflow."""

def softmax_safe(x: Array, /, axis: Axis = -1) -> Tensor:
    """softmax(x) = e^x / Σ e^x along `axis`, without overflow; 0, not NaN, where every element is -infinity."""

def allclose(
    x1: Array,
    x2: Array,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Whether all elements are close, as `isclose` says: one bool. As in NumPy and torch."""

def array_equal(x1: Array, x2: Array, /, *, equal_nan: builtins.bool = False) -> Tensor:
    """Whether two tensors have one shape and the same elements: one bool. As in NumPy."""

def isclose(
    x1: Array,
    x2: Array,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Where |x1 - x2| ≤ atol + rtol · |x2|, elementwise: bools. As in NumPy and torch."""

def isin(x1: Array, x2: Array, /, *, invert: builtins.bool = False) -> Tensor:
    """Where elements of x1 are among those of x2: bools in the shape of x1. As in NumPy; NaN is never there."""

def nan_to_num(x: Array, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with `nan` for NaN, and other numbers for infinities: the largest and the least of the type, unless given."""

def nextafter(x1: Array, x2: Array, /) -> Tensor:
    """The number of the type that comes next after x1 in the direction of x2, elementwise; NaN beside NaN."""

def cov(x: Array, /, *, correction: float = 1.0) -> Tensor:
    """The covariances of variables, which are the rows of x; the sum of products is divided by their number less `correction`. As in torch, and as NumPy's with ddof for `correction`."""

def cross(x1: Array, x2: Array, /, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along `axis`; the other axes broadcast. As the Array API says."""

def diag(x: Array, /, k: int = 0) -> Tensor:
    """A matrix with a row on its k-th diagonal and zeros elsewhere; of a matrix, its k-th diagonal. As in NumPy."""

def diagonal(x: Array, /, *, offset: int = 0) -> Tensor:
    """The elements x[…, i, i + offset] of matrices. As the Array API says: matrices are the last two axes."""

def kron(x1: Array, x2: Array, /) -> Tensor:
    """The Kronecker product: each element of x1 times all of x2, as blocks. As in NumPy."""

def matrix_norm(x: Array, /, *, keepdims: builtins.bool = False, ord: float | str = 'fro') -> Tensor:
    """The norm of matrices, the last two axes. As the Array API says."""

def norm(x: Array, /, ord: float | str | None = None, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """A norm of vectors along one axis, or of matrices over two. As numpy.linalg.norm."""

def trace(x: Array, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the diagonal of matrices, the last two axes, in the types of `sum`. As the Array API says."""

def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: builtins.bool = False, ord: float = 2) -> Tensor:
    """The norm of vectors along `axis`, or of all elements: (Σ |x|^ord)^(1/ord). As the Array API says."""

def median(x: Array, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The middle element over `axis`, or over all axes, or the mean of the two in the middle; NaN if there is one."""

def percentile(
    x: Array,
    q: Shares,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    method: Method = 'linear',
) -> Tensor:
    """`quantile` of q from 0 to 100. As in NumPy."""

def quantile(
    x: Array,
    q: Shares,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    method: Method = 'linear',
) -> Tensor:
    """The q-quantiles over `axis`, or over all axes, of q from 0 to 1; NaN where there is a NaN. As in NumPy."""

def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Tensor:
    """The differences of neighbours along `axis`, `n` times over. As the Array API says, and NumPy."""

def ravel_multi_index(indices: Sequence[Array], /, shape: tuple[DimLike, ...]) -> Tensor:
    """For an index along each axis of `shape`, the index into its elements in C order. As in NumPy."""

def rot90(x: Array, /, k: int = 1, axes: tuple[int, int] = ...) -> Tensor:
    """x rotated k times by 90° in the plane of two axes, from the first towards the second. As in NumPy and torch."""

def unravel_index(indices: Array, /, shape: tuple[DimLike, ...]) -> tuple[Tensor, ...]:
    """For indices into the elements of `shape` in C order, the index along each axis. As in NumPy and torch."""

def argmax(x: Array, /, axis: int | None = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first largest element along `axis`, or of the flat array; that of a NaN if there is one."""

def argmin(x: Array, /, axis: int | None = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along `axis`, or of the flat array; that of a NaN if there is one."""

def count_nonzero(x: Array, /, axis: int | tuple[int, ...] | None = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The number of elements over `axis` that are not 0."""

def searchsorted(
    x1: Array,
    x2: Array,
    /,
    *,
    side: Literal['left', 'right'] = 'left',
    sorter: Array | None = None,
) -> Tensor:
    """The index in the sorted x1 before which each element of x2 belongs; behind equal ones with side="right"."""

def argsort(x: Array, /, axis: int = -1, *, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The indices that sort `x` along `axis`; equal elements keep their order, NaN comes last."""

def sort(x: Array, /, axis: int = -1, *, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """`x` sorted along `axis`; equal elements keep their order, NaN comes last."""

def topk(x: Array, k: int, /, axis: int = -1, *, largest: builtins.bool = True) -> tuple[Tensor, Tensor]:
    """The k largest elements along `axis`, the largest first, and their indices; the smallest without `largest`."""

def all(x: Array, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements over `axis` are true, or not 0."""

def any(x: Array, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """Whether some element over `axis` is true, or not 0."""

def max(x: Array, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The largest element over `axis`, or over all axes; NaN if there is one."""

def mean(x: Array, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The mean over `axis`, or over all axes; of integers and bools in f32, from their exact sum."""

def min(x: Array, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element over `axis`, or over all axes; NaN if there is one."""

def prod(x: Array, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The product over `axis`, or over all axes, in the types of `sum`."""

def std(x: Array, /, axis: Axis = None, *, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The standard deviation over `axis`, or over all axes: the root of `var`."""

def sum(x: Array, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The sum over `axis`, or over all axes. Integers and bools add up in 64 bits unless `dtype` says otherwise."""

def var(x: Array, /, axis: Axis = None, *, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The variance over `axis`, or over all axes; the sum of squares is divided by their number less `correction`."""

def cumulative_prod(
    x: Array,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Running products along `axis`, which may be left out for one axis; `include_initial` puts a 1 before them."""

def cumulative_sum(
    x: Array,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Running sums along `axis`, which may be left out for one axis; `include_initial` puts a 0 before them."""

def logsumexp_safe(x: Array, /, axis: Axis = -1, *, keepdims: builtins.bool = False) -> Tensor:
    """log Σ e^x without overflow; -infinity, not NaN, where all elements are -infinity."""

def embedding(indices: Array, table: Array, /) -> Tensor:
    """Rows of a table at integer indices, `table[indices]`; negative ones count from the end."""

def take(x: Array, indices: Array, /, axis: int | None = None) -> Tensor:
    """Slices of `x` at integer indices along `axis`, which may be left out for one axis."""

def take_along_axis(x: Array, indices: Array, /, axis: int = -1) -> Tensor:
    """Elements of `x` at `indices` along `axis`, which differ from row to row; the other axes broadcast."""

absolute = abs
amax = max
amin = min
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
as_tensor = asarray
batch_norm = batchnorm
bitwise_not = bitwise_invert
bmm = matmul
cat = concat
clamp = clip
concatenate = concat
cumprod = cumulative_prod
cumsum = cumulative_sum
div = divide
eq = equal
ge = greater_equal
group_norm = groupnorm
gt = greater
invert = bitwise_invert
le = less_equal
left_shift = bitwise_left_shift
logsumexp = logsumexp_safe
lt = less
mm = matmul
mod = remainder
movedim = moveaxis
mul = multiply
mv = matmul
ne = not_equal
neg = negative
permute = permute_dims
power = pow
ravel = flatten
repeat_interleave = repeat
right_shift = bitwise_right_shift
sub = subtract
swapaxes = transpose
swapdims = transpose
true_divide = divide
unbind = unstack
unsqueeze = expand_dims
