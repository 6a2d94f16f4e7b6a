"""Random numbers by keys: pure functions of a key and a shape, the same on every device and under every schedule.

A key is a u64 without axes; `key` makes one of a seed. Use each key once: `split` makes more of one. Uniform and normal
numbers are in `draws`, here is what operators make of them: choices, orders and other distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tessera.dtypes.philox import Stream
from tessera.dtypes.types import DType, f32, f64
from tessera.errors import ShapeError, TesseraError
from tessera.lang.draws import checked_key, fold_in, joined_words, key, normal, randint, split, uniform, words_of
from tessera.lang.operator import operator
from tessera.lang.operators.operands import floats, moved_last, one_axis, wide
from tessera.lang.operators.searching import argmax, searchsorted
from tessera.lang.operators.sorting import argsort, topk
from tessera.lang.operators.statistics import running
from tessera.lang.operators.taking import take, take_along_axis
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.current_machine import seed
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.sizes import plain, plain_shape, plain_size
from tessera.lang.tracing.values import Array, Traced, current, shown
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.random import float_type
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import Dim, Size, format_shape

__all__ = [
    "bernoulli",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "normal",
    "permutation",
    "randint",
    "seed",
    "shuffle",
    "split",
    "truncated_normal",
    "uniform",
]


def bernoulli(key: Array | None, p: float | Array = 0.5, shape: Sequence[Size] | None = None) -> Traced:
    """True with probability `p`, to 24 bits; p may be a tensor, which has the shape unless another is given."""
    if isinstance(p, int | float):
        if not 0 <= p <= 1:
            raise TesseraError(f"bernoulli: a probability from 0 to 1 was expected, got {p}", hint="give p in [0, 1]")
        return uniform(key, shape or ()) < p
    shares = p if isinstance(p, Traced | Tensor) else asarray(p)
    return uniform(key, shares.shape if shape is None else shape) < shares


# Other distributions, each of words of 32 bits, in f64


def _middles(key: Array, shape: Sequence[Size], name: str) -> Traced:
    """(word + ½) · 2⁻³², which is above 0 and below 1."""
    (word,) = words_of(checked_key(key, name), shape, Stream.BITS)
    return elementwise("mul", elementwise("add", primitives.cast(word, f64), 0.5), 2.0**-32)


def _minus_log(x: Traced) -> Traced:
    return ew("neg", ew("log", x))


def exponential(key: Array, shape: Sequence[Size] = (), dtype: DTypeLike = f32) -> Traced:
    """Exponential numbers of rate 1: -log of uniform ones. Divide them by another rate."""
    return _exponential(key, tuple(shape), float_type(dtype, "exponential"))


@operator
def _exponential(key: Array, shape: tuple[Size, ...], dtype: DType) -> Traced:
    return primitives.cast(_minus_log(_middles(key, shape, "exponential")), dtype)


def gumbel(key: Array, shape: Sequence[Size] = (), dtype: DTypeLike = f32) -> Traced:
    """Standard Gumbel numbers: -log of exponential ones. Added to logarithms, the largest is a choice by weights."""
    return _gumbel(key, tuple(shape), float_type(dtype, "gumbel"))


@operator
def _gumbel(key: Array, shape: tuple[Size, ...], dtype: DType) -> Traced:
    return primitives.cast(_minus_log(_minus_log(_middles(key, shape, "gumbel"))), dtype)


def truncated_normal(
    key: Array, low: float = -2.0, high: float = 2.0, shape: Sequence[Size] = (), dtype: DTypeLike = f32
) -> Traced:
    """Standard normal numbers that lie from `low` to `high`: by the inverse of the distribution, in f64."""
    if not low < high:
        raise TesseraError(
            f"truncated_normal: expected a range of numbers, got {low} to {high}", hint="give the smaller bound first"
        )
    return _truncated_normal(key, float(low), float(high), tuple(shape), float_type(dtype, "truncated_normal"))


def _share_below(x: float) -> float:
    """The share of the normal distribution below x; without cancellation where x is far below 0."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@operator
def _truncated_normal(key: Array, low: float, high: float, shape: tuple[Size, ...], dtype: DType) -> Traced:
    # Shares are exact below 0: a range above it is mirrored.
    mirrored = low > 0
    least, most = (-high, -low) if mirrored else (low, high)
    first, last = _share_below(least), _share_below(most)
    if last <= 0:
        raise TesseraError(
            f"truncated_normal: numbers from {low} to {high} are rarer than f64 can tell", hint="use bounds below 37"
        )
    part = _middles(key, shape, "truncated_normal")
    found = _normal_of_share(elementwise("add", elementwise("mul", part, last - first), first))
    found = elementwise("min", elementwise("max", found, least), most)
    return primitives.cast(ew("neg", found) if mirrored else found, dtype)


# Wichura's algorithm AS241 (Applied Statistics 37, 1988): quotients of polynomials, the highest power first.
_MIDDLE = (
    (
        *(2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4),
        *(1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    ),
    (
        *(5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4),
        *(5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
    ),
)
_SIDE = (
    (
        *(7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0),
        *(3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    ),
    (
        *(1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1),
        *(6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
    ),
)
_FAR = (
    (
        *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2),
        *(2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    ),
    (
        *(2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4),
        *(1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
    ),
)


def _quotient(x: Traced, polynomials: tuple[tuple[float, ...], tuple[float, ...]]) -> Traced:
    values: list[Traced] = []
    for coefficients in polynomials:
        found = primitives.constant(coefficients[0], x.sizes, x.dtype)
        for one in coefficients[1:]:
            found = elementwise("fma", found, x, one)
        values.append(found)
    return ew("div", *values)


def _normal_of_share(share: Traced) -> Traced:
    """The number that a share of the normal distribution lies below."""
    apart = elementwise("sub", share, 0.5)
    near = ew("mul", apart, _quotient(elementwise("sub", 0.180625, ew("mul", apart, apart)), _MIDDLE))
    below = elementwise("lt", apart, 0.0)
    rest = elementwise("select", below, share, elementwise("sub", 1.0, share))
    depth = ew("sqrt", _minus_log(rest))
    side = _quotient(elementwise("sub", depth, 1.6), _SIDE)
    far = _quotient(elementwise("sub", depth, 5.0), _FAR)
    size = elementwise("select", elementwise("le", depth, 5.0), side, far)
    outer = ew("select", below, ew("neg", size), size)
    return elementwise("select", elementwise("le", ew("abs", apart), 0.425), near, outer)


# Choices and orders


def categorical(key: Array, logits: Array, *, axis: int = -1, shape: Sequence[Size] | None = None) -> Traced:
    """Numbers of classes, drawn with probabilities softmax(logits) along `axis`. As in JAX.

    The result has the other axes of the logits, or `shape`, which ends with them: each is drawn once for all before.
    """
    return _categorical(key, logits, axis, None if shape is None else tuple(shape))


@operator
def _categorical(key: Array, logits: Array, axis: int, shape: tuple[Size, ...] | None) -> Traced:
    (made,) = floats("categorical", logits)
    if not made.ndim:
        raise ShapeError("categorical: logits have an axis of classes", shapes=shown(made), hint="give a row")
    last = primitives.transpose(made, moved_last(made.ndim, one_axis(made, axis, "categorical")))
    rows = last.sizes[:-1]
    wanted = rows if shape is None else plain_shape(shape)
    if wanted[len(wanted) - len(rows) :] != rows or len(wanted) < len(rows):
        raise ShapeError(
            f"categorical: a shape that ends with {format_shape(rows)} was expected, got {format_shape(wanted)}",
            shapes=shown(made),
            hint="the axes of the logits but for that of classes stand last; new ones come before",
        )
    values = wide(last)
    noise = primitives.cast(_gumbel(key, (*wanted, values.sizes[-1]), f32), values.dtype)
    return tensor(argmax(elementwise("add", noise, values), axis=-1))


@operator
def _order(key: Array, count: Size) -> Traced:
    """The numbers below a count in random order: that of 64 random bits each."""
    bits = joined_words(*words_of(checked_key(key, "permutation"), (count,), Stream.BITS, per_element=2))
    return tensor(argsort(bits))


def permutation(key: Array, x: Size | Array, /, *, axis: int = 0, independent: bool = False) -> Traced:
    """The numbers below x in random order, or the slices of a tensor along `axis`. As in JAX.

    With `independent`, each row along the axis has an order of its own.
    """
    if isinstance(x, Dim):
        return _order(key, x)
    count = _count(x)
    return _reordered(key, x, axis, independent) if count is None else _order(key, count)


@operator
def _reordered(key: Array, x: Array, axis: int, independent: bool) -> Traced:
    made = tensor(x)
    if not made.ndim:
        raise ShapeError("permutation: a number has no order", shapes=shown(made), hint="give a row, or a whole number")
    along = one_axis(made, axis, "permutation")
    if not independent:
        return primitives.gather(made, _order(key, made.sizes[along]), along)
    bits = joined_words(*words_of(checked_key(key, "permutation"), made.sizes, Stream.BITS, per_element=2))
    return tensor(take_along_axis(made, argsort(bits, axis=along), axis=along))


def shuffle(key: Array, x: Array, /, *, axis: int = 0) -> Traced:
    """The slices of a tensor along `axis` in random order, as a new tensor: `permutation` of a tensor."""
    return permutation(key, x if isinstance(x, Traced | Tensor) else asarray(x), axis=axis)


def choice(
    key: Array,
    x: Size | Array,
    /,
    shape: Sequence[int] = (),
    *,
    replace: bool = True,
    p: Array | None = None,
    axis: int = 0,
) -> Traced:
    """Numbers below x, or slices of a tensor along `axis`, chosen with weights `p`, or equal ones. As in JAX.

    Without `replace` none is chosen twice. Weights need not add up to 1; those of 0 are not chosen.
    """
    count = _count(x)
    if count is not None:
        return _chosen(key, p, count, tuple(shape), replace)
    made = x if isinstance(x, Traced | Tensor) else asarray(x)
    if not made.ndim or not -made.ndim <= axis < made.ndim:
        raise ShapeError(f"choice: there is no axis {axis} to choose from", hint="name an axis of the tensor")
    return take(made, _chosen(key, p, made.shape[axis], tuple(shape), replace), axis=axis)


@operator
def _chosen(key: Array, p: Array | None, count: Size, shape: tuple[int, ...], replace: bool) -> Traced:
    drawn = math.prod(shape)
    weights = None if p is None else _weights(p, count)
    if replace and weights is None:
        high = count if isinstance(count, int) else current().sizes.number(plain(count))
        return tensor(randint(key, shape, 0, high))
    if replace:
        assert weights is not None
        upto = running("sum", weights, 0)
        total = primitives.reduce("max", upto, [0])
        # From above 0 to the total: a weight of 0 has no share of it.
        place = elementwise("mul", elementwise("sub", 1.0, tensor(uniform(key, shape))), total)
        return tensor(searchsorted(upto, primitives.cast(place, upto.dtype)))
    if count < drawn if isinstance(count, int) else current().sizes.ask(plain(count), "<", drawn):
        raise ShapeError(
            f"choice: {drawn} of {count} cannot be chosen if none is replaced",
            hint="choose no more than there are, or replace them",
        )
    if weights is None:
        first = primitives.slice_(_order(key, count), [None], [drawn])
    else:
        ranks = ew("add", ew("log", weights), _gumbel(key, weights.sizes, f32))
        first = tensor(topk(ranks, drawn)[1])
    return primitives.reshape(first, shape)


def _weights(p: Array, count: Size) -> Traced:
    (made,) = floats("choice", p)
    if made.sizes != (plain_size(count),):
        raise ShapeError(
            f"choice: expected one weight for each of {count}, got {format_shape(made.sizes)}",
            shapes=shown(made),
            hint="weights have one axis",
        )
    return primitives.cast(made, f32)


def _count(x: object) -> Size | None:
    """A number of things, where it is not the things themselves."""
    if not isinstance(x, int | Dim) or isinstance(x, bool):
        return None
    if isinstance(x, int) and x < 0:
        raise TesseraError(f"expected a number of things from 0 on, got {x}", hint="give a number, or a tensor")
    return x


def __dir__() -> list[str]:
    return sorted(__all__)
