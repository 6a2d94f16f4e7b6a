"""The methods of tensors that operators are. Written by tests/stubs/write_stubs.py from the registry of operators; not to be changed by hand."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias
from tessera.lang.operators.data_types import DeviceLike
from tessera.lang.operators.linear_algebra import DTypeLike
from tessera.lang.operators.manipulation import Axis
from tessera.lang.operators.updates import At
from tessera.lang.tracing.values import Traced
from tessera.runtime.tensor.tensor import Sizes, Tensor

class SupportsDLPack(Protocol):
    """An array of another library: NumPy, torch, JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

Array: TypeAlias = Tensor | Traced | SupportsDLPack | bool | int | float

class OperatorMethods:
    """The methods of tensors that operators are."""

    def abs(self) -> Tensor:
        """The absolute value of each element."""

    def ceil(self) -> Tensor:
        """Each element rounded up to a whole number."""

    def cos(self) -> Tensor:
        """The cosine of each angle, in radians."""

    def erf(self) -> Tensor:
        """The error function of each element."""

    def exp(self) -> Tensor:
        """e to the power of each element."""

    def exp2(self) -> Tensor:
        """2 to the power of each element."""

    def expm1(self) -> Tensor:
        """e to the power of each element, less 1, without cancellation near 0."""

    def floor(self) -> Tensor:
        """Each element rounded down to a whole number."""

    def log(self) -> Tensor:
        """The natural logarithm of each element."""

    def log1p(self) -> Tensor:
        """The natural logarithm of 1 plus each element, without cancellation near 0."""

    def log2(self) -> Tensor:
        """The logarithm of each element to base 2."""

    def negative(self) -> Tensor:
        """-x of each element."""

    def positive(self) -> Tensor:
        """+x: each element as it is."""

    def reciprocal(self) -> Tensor:
        """1 / x of each element."""

    def round(self) -> Tensor:
        """Each element rounded to the nearest whole number, of two the even one."""

    def rsqrt(self) -> Tensor:
        """1 / √x of each element."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + e^-x) of each element, without overflow on either side."""

    def sign(self) -> Tensor:
        """The sign of each element: -1, 0 or 1; NaN for NaN."""

    def sin(self) -> Tensor:
        """The sine of each angle, in radians."""

    def sqrt(self) -> Tensor:
        """The square root of each element; NaN below 0."""

    def square(self) -> Tensor:
        """x² of each element."""

    def tan(self) -> Tensor:
        """The tangent of each angle, in radians."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent of each element."""

    def trunc(self) -> Tensor:
        """Each element rounded towards 0."""

    def isfinite(self) -> Tensor:
        """Where elements are neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Where elements are infinite."""

    def isnan(self) -> Tensor:
        """Where elements are NaN."""

    def signbit(self) -> Tensor:
        """Whether the sign bit of each element is set, as it is for -0.0 too."""

    def add(self, x2: Array, /) -> Tensor:
        """The sum x1 + x2."""

    def atan2(self, x2: Array, /) -> Tensor:
        """The angle of the point (x2, x1), from -π to π."""

    def copysign(self, x2: Array, /) -> Tensor:
        """The absolute value of x1 with the sign of x2."""

    def divide(self, x2: Array, /) -> Tensor:
        """The quotient x1 / x2 of floats."""

    def floor_divide(self, x2: Array, /) -> Tensor:
        """x1 // x2: the quotient, rounded down to a whole number."""

    def maximum(self, x2: Array, /) -> Tensor:
        """The larger of two; NaN where one is."""

    def minimum(self, x2: Array, /) -> Tensor:
        """The smaller of two; NaN where one is."""

    def multiply(self, x2: Array, /) -> Tensor:
        """The product x1 · x2."""

    def pow(self, x2: Array, /) -> Tensor:
        """x1 ** x2: x1 to the power of x2."""

    def remainder(self, x2: Array, /) -> Tensor:
        """x1 % x2: the remainder of `floor_divide`, with the sign of x2."""

    def subtract(self, x2: Array, /) -> Tensor:
        """The difference x1 - x2."""

    def equal(self, x2: Array, /) -> Tensor:
        """x1 == x2, elementwise: bools."""

    def greater(self, x2: Array, /) -> Tensor:
        """x1 > x2, elementwise: bools."""

    def greater_equal(self, x2: Array, /) -> Tensor:
        """x1 >= x2, elementwise: bools."""

    def less(self, x2: Array, /) -> Tensor:
        """x1 < x2, elementwise: bools."""

    def less_equal(self, x2: Array, /) -> Tensor:
        """x1 <= x2, elementwise: bools."""

    def not_equal(self, x2: Array, /) -> Tensor:
        """x1 != x2, elementwise: bools."""

    def bitwise_and(self, x2: Array, /) -> Tensor:
        """x1 & x2: bits that are set in both."""

    def bitwise_invert(self) -> Tensor:
        """~x: every bit inverted."""

    def bitwise_left_shift(self, x2: Array, /) -> Tensor:
        """x1 << x2: bits of x1 shifted left by x2."""

    def bitwise_or(self, x2: Array, /) -> Tensor:
        """x1 | x2: bits that are set in either."""

    def bitwise_right_shift(self, x2: Array, /) -> Tensor:
        """x1 >> x2: bits of x1 shifted right by x2; the sign is kept."""

    def bitwise_xor(self, x2: Array, /) -> Tensor:
        """x1 ^ x2: bits that are set in one and not in the other."""

    def logical_and(self, x2: Array, /) -> Tensor:
        """x1 and x2 of bools, elementwise."""

    def logical_not(self) -> Tensor:
        """not x of bools, elementwise."""

    def logical_or(self, x2: Array, /) -> Tensor:
        """x1 or x2 of bools, elementwise."""

    def logical_xor(self, x2: Array, /) -> Tensor:
        """Whether exactly one of two bools is true, elementwise."""

    def clip(self, min: Array | None = None, max: Array | None = None) -> Tensor:
        """Limits each element to the range from `min` to `max`; NaN stays NaN. The result has the type of `x`."""

    def masked_fill(self, mask: Array, value: Array) -> Tensor:
        """`value` where the mask holds, `x` elsewhere."""

    def acos(self) -> Tensor:
        """The arc cosine of each element, from 0 to π; NaN outside of [-1, 1]."""

    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine of each element; NaN below 1."""

    def asin(self) -> Tensor:
        """The arc sine of each element, from -π/2 to π/2; NaN outside of [-1, 1]."""

    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine of each element."""

    def atan(self) -> Tensor:
        """The arc tangent of each element, from -π/2 to π/2."""

    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent of each element; ±infinity at ±1, NaN beyond."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine of each element."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine of each element."""

    def hypot(self, x2: Array, /) -> Tensor:
        """√(x1² + x2²), without overflow on the way; infinite where one side is, even beside NaN."""

    def log10(self) -> Tensor:
        """The logarithm of each element to base 10."""

    def logaddexp(self, x2: Array, /) -> Tensor:
        """log(e^x1 + e^x2), without overflow on the way."""

    def gelu(self, *, approximate: bool | str = False) -> Tensor:
        """GELU: x · Φ(x), with the normal distribution's Φ; with `approximate`, True or "tanh", by the formula in tanh."""

    def relu(self) -> Tensor:
        """max(x, 0) of each element."""

    def silu(self) -> Tensor:
        """SiLU: x · sigmoid(x)."""

    def softplus(self) -> Tensor:
        """Softplus: log(1 + e^x), without overflow."""

    def matmul(self, x2: Array, /, *, dtype: DTypeLike | None = None) -> Tensor:
        """x1 @ x2: the matrix product over the last axis of x1 and the second to last of x2; leading axes broadcast."""

    def outer(self, x2: Array, /) -> Tensor:
        """The outer product of two vectors: x1[i] · x2[j]."""

    def tensordot(self, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
        """The sum of products over the last `axes` of x1 and the first of x2, or over pairs of axes."""

    def vecdot(self, x2: Array, /, axis: int = -1) -> Tensor:
        """The dot product of vectors along `axis`, counted from the last; the other axes broadcast."""

    def flatten(self) -> Tensor:
        """All elements along one axis."""

    def flip(self, axis: Axis = None) -> Tensor:
        """Reverses the order of elements along `axis`, or along all axes."""

    def matrix_transpose(self) -> Tensor:
        """Exchanges the last two axes."""

    def moveaxis(self, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
        """Moves axes from `source` to `destination`; the others keep their order."""

    def permute_dims(self, axes: tuple[int, ...]) -> Tensor:
        """Permutes axes: axis i of the result is axis axes[i] of `x`."""

    def roll(self, shift: int | tuple[int, ...], axis: Axis = None) -> Tensor:
        """Moves elements by `shift` along `axis`; those that leave come in again at the other end."""

    def pad(self, widths: tuple[tuple[int, int], ...], /, *, value: float = False) -> Tensor:
        """Pads `x` with `value`, 0 or False by default: `widths` has (before, after) for each axis."""

    def unstack(self, axis: int = 0) -> tuple[Tensor, ...]:
        """Splits `x` into its slices along `axis`, without that axis."""

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        """The index of the first largest element along `axis`, or of the flat array; that of a NaN if there is one."""

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        """The index of the first smallest element along `axis`, or of the flat array; that of a NaN if there is one."""

    def count_nonzero(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        """The number of elements over `axis` that are not 0."""

    def searchsorted(
        self,
        x2: Array,
        /,
        *,
        side: Literal['left', 'right'] = 'left',
        sorter: Array | None = None,
    ) -> Tensor:
        """The index in the sorted x1 before which each element of x2 belongs; behind equal ones with side="right"."""

    def argsort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
        """The indices that sort `x` along `axis`; equal elements keep their order, NaN comes last."""

    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
        """`x` sorted along `axis`; equal elements keep their order, NaN comes last."""

    def topk(self, k: int, /, axis: int = -1, *, largest: bool = True) -> tuple[Tensor, Tensor]:
        """The k largest elements along `axis`, the largest first, and their indices; the smallest without `largest`."""

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """Whether all elements over `axis` are true, or not 0."""

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """Whether some element over `axis` is true, or not 0."""

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """The largest element over `axis`, or over all axes; NaN if there is one."""

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """The mean over `axis`, or over all axes; of integers and bools in f32, from their exact sum."""

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """The smallest element over `axis`, or over all axes; NaN if there is one."""

    def prod(self, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
        """The product over `axis`, or over all axes, in the types of `sum`."""

    def std(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        """The standard deviation over `axis`, or over all axes: the root of `var`."""

    def sum(self, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
        """The sum over `axis`, or over all axes. Integers and bools add up in 64 bits unless `dtype` says otherwise."""

    def var(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        """The variance over `axis`, or over all axes; the sum of squares is divided by their number less `correction`."""

    def cumulative_prod(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """Running products along `axis`, which may be left out for one axis; `include_initial` puts a 1 before them."""

    def cumulative_sum(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """Running sums along `axis`, which may be left out for one axis; `include_initial` puts a 0 before them."""

    def logsumexp_safe(self, axis: Axis = -1, *, keepdims: bool = False) -> Tensor:
        """log Σ e^x without overflow; -infinity, not NaN, where all elements are -infinity."""

    def take(self, indices: Array, /, axis: int | None = None) -> Tensor:
        """Slices of `x` at integer indices along `axis`, which may be left out for one axis."""

    def take_along_axis(self, indices: Array, /, axis: int = -1) -> Tensor:
        """Elements of `x` at `indices` along `axis`, which differ from row to row; the other axes broadcast."""

    def astype(self, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None) -> Any:
        """Casts `x` to another element type; with copy=False, `x` itself where it has that type."""

    def log_softmax(self, axis: Axis = -1) -> Tensor:
        """log(softmax(x)) along `axis`: x - log Σ e^x, without overflow."""

    def nonzero(self) -> tuple[Any, ...]:
        """The indices of elements that are not 0: one array per axis."""

    def one_hot(self, classes: int, /, *, dtype: DTypeLike = ...) -> Tensor:
        """1 at the class that an index names and 0 elsewhere, along a new last axis."""

    def softmax(self, axis: Axis = -1) -> Tensor:
        """softmax(x) = e^x / Σ e^x along `axis`, without overflow."""

    def tril(self, *, k: int = 0) -> Tensor:
        """The lower triangle of matrices: elements on and below the k-th diagonal, zeros above."""

    def triu(self, *, k: int = 0) -> Tensor:
        """The upper triangle of matrices: elements on and above the k-th diagonal, zeros below."""

    def unique_values(self) -> Any:
        """Different elements in sorted order; each NaN is different."""

    def t(self) -> Tensor:
        """The transpose of a matrix; itself with fewer axes."""

    def view(self, *shape: Sizes) -> Tensor:
        """The same elements in another shape, never copied."""

    @property
    def at(self) -> At:
        """`x.at[key].set(values)` and its like give an updated tensor."""

    def absolute(self) -> Tensor:
        """The absolute value of each element."""

    def amax(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """The largest element over `axis`, or over all axes; NaN if there is one."""

    def amin(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """The smallest element over `axis`, or over all axes; NaN if there is one."""

    def arccos(self) -> Tensor:
        """The arc cosine of each element, from 0 to π; NaN outside of [-1, 1]."""

    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine of each element; NaN below 1."""

    def arcsin(self) -> Tensor:
        """The arc sine of each element, from -π/2 to π/2; NaN outside of [-1, 1]."""

    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine of each element."""

    def arctan(self) -> Tensor:
        """The arc tangent of each element, from -π/2 to π/2."""

    def arctan2(self, x2: Array, /) -> Tensor:
        """The angle of the point (x2, x1), from -π to π."""

    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent of each element; ±infinity at ±1, NaN beyond."""

    def bitwise_not(self) -> Tensor:
        """~x: every bit inverted."""

    def bmm(self, x2: Array, /, *, dtype: DTypeLike | None = None) -> Tensor:
        """x1 @ x2: the matrix product over the last axis of x1 and the second to last of x2; leading axes broadcast."""

    def clamp(self, min: Array | None = None, max: Array | None = None) -> Tensor:
        """Limits each element to the range from `min` to `max`; NaN stays NaN. The result has the type of `x`."""

    def cumprod(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """Running products along `axis`, which may be left out for one axis; `include_initial` puts a 1 before them."""

    def cumsum(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """Running sums along `axis`, which may be left out for one axis; `include_initial` puts a 0 before them."""

    def div(self, x2: Array, /) -> Tensor:
        """The quotient x1 / x2 of floats."""

    def eq(self, x2: Array, /) -> Tensor:
        """x1 == x2, elementwise: bools."""

    def ge(self, x2: Array, /) -> Tensor:
        """x1 >= x2, elementwise: bools."""

    def gt(self, x2: Array, /) -> Tensor:
        """x1 > x2, elementwise: bools."""

    def invert(self) -> Tensor:
        """~x: every bit inverted."""

    def le(self, x2: Array, /) -> Tensor:
        """x1 <= x2, elementwise: bools."""

    def left_shift(self, x2: Array, /) -> Tensor:
        """x1 << x2: bits of x1 shifted left by x2."""

    def logsumexp(self, axis: Axis = -1, *, keepdims: bool = False) -> Tensor:
        """log Σ e^x without overflow; -infinity, not NaN, where all elements are -infinity."""

    def lt(self, x2: Array, /) -> Tensor:
        """x1 < x2, elementwise: bools."""

    def mm(self, x2: Array, /, *, dtype: DTypeLike | None = None) -> Tensor:
        """x1 @ x2: the matrix product over the last axis of x1 and the second to last of x2; leading axes broadcast."""

    def mod(self, x2: Array, /) -> Tensor:
        """x1 % x2: the remainder of `floor_divide`, with the sign of x2."""

    def movedim(self, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
        """Moves axes from `source` to `destination`; the others keep their order."""

    def mul(self, x2: Array, /) -> Tensor:
        """The product x1 · x2."""

    def mv(self, x2: Array, /, *, dtype: DTypeLike | None = None) -> Tensor:
        """x1 @ x2: the matrix product over the last axis of x1 and the second to last of x2; leading axes broadcast."""

    def ne(self, x2: Array, /) -> Tensor:
        """x1 != x2, elementwise: bools."""

    def neg(self) -> Tensor:
        """-x of each element."""

    def power(self, x2: Array, /) -> Tensor:
        """x1 ** x2: x1 to the power of x2."""

    def ravel(self) -> Tensor:
        """All elements along one axis."""

    def right_shift(self, x2: Array, /) -> Tensor:
        """x1 >> x2: bits of x1 shifted right by x2; the sign is kept."""

    def sub(self, x2: Array, /) -> Tensor:
        """The difference x1 - x2."""

    def swapaxes(self, first: int = -2, second: int = -1, *others: int) -> Tensor:
        """Two axes exchanged, the last two unless others are named."""

    def swapdims(self, first: int = -2, second: int = -1, *others: int) -> Tensor:
        """Two axes exchanged, the last two unless others are named."""

    def true_divide(self, x2: Array, /) -> Tensor:
        """The quotient x1 / x2 of floats."""

    def unbind(self, axis: int = 0) -> tuple[Tensor, ...]:
        """Splits `x` into its slices along `axis`, without that axis."""

    def unsqueeze(self, axis: int | tuple[int, ...]) -> Tensor:
        """A view with axes of size 1 put in at `axis`, counted in the result."""
