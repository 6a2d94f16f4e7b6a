"""Softmax and norms: computed in f32 or wider with the row in view, rounded once, and without NaN of their own."""

from __future__ import annotations

from typing import Any

from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import Axis, axes_of, floats, known, narrow, one_axis, wide
from tessera.lang.operators.statistics import averaged, exponentials, spread
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.shapes.expr import element_count


def _safe_shares(x: Traced, axes: tuple[int, ...]) -> tuple[Traced, Traced]:
    """Softmax of values in their compute type, 0 where all are -infinity; and the sums behind it, 1 there."""
    _, powers, _ = exponentials(x, axes)
    total = primitives.reduce("sum", powers, axes, keepdims=True)
    held = elementwise("select", elementwise("eq", total, 0.0), 1.0, total)
    return elementwise("div", powers, held), held


@operator
def softmax_safe(x: Array, /, axis: Axis = -1) -> Traced:
    """softmax(x) = e^x / Σ e^x along `axis`, without overflow; 0, not NaN, where every element is -infinity.

    ts.softmax_safe(scores, axis=-1)
    """
    (made,) = floats("softmax_safe", x)
    shares, _ = _safe_shares(wide(made), axes_of(made, axis, "softmax_safe"))
    return narrow(shares, made.dtype)


@operator
def softmax(x: Array, /, axis: Axis = -1) -> Traced:
    """softmax(x) = e^x / Σ e^x along `axis`, without overflow.

    Where every element along it is -infinity, as in a row that is masked as a whole, the result is NaN; `softmax_safe`
    gives 0 there.

        ts.softmax(logits, axis=-1)
    """
    (made,) = floats("softmax", x)
    axes = axes_of(made, axis, "softmax")
    values = wide(made)
    powers = ew("exp", elementwise("sub", values, primitives.reduce("max", values, axes, keepdims=True)))
    return narrow(elementwise("div", powers, primitives.reduce("sum", powers, axes, keepdims=True)), made.dtype)


@operator
def log_softmax(x: Array, /, axis: Axis = -1) -> Traced:
    """log(softmax(x)) along `axis`: x - log Σ e^x, without overflow."""
    (made,) = floats("log_softmax", x)
    axes = axes_of(made, axis, "log_softmax")
    apart, powers, _ = exponentials(wide(made), axes)
    total = primitives.reduce("sum", powers, axes, keepdims=True)
    held = elementwise("select", elementwise("eq", total, 0.0), 1.0, total)
    return narrow(elementwise("sub", apart, ew("log", held)), made.dtype)


def _scaled(found: Traced, weight: Any, bias: Any) -> Traced:
    """The affine part of a norm, in the type that the norm is computed in."""
    if weight is not None:
        found = elementwise("mul", found, wide(tensor(weight)))
    return found if bias is None else elementwise("add", found, wide(tensor(bias)))


@operator
def layernorm_safe(
    x: Array, weight: Array | None = None, bias: Array | None = None, /, *, axis: Axis = -1, eps: float = 1e-5
) -> Traced:
    """Layer norm: (x - mean) / √(variance + eps) over `axis`, times `weight` plus `bias`, where they are given."""
    (made,) = floats("layernorm_safe", x)
    axes = axes_of(made, axis, "layernorm_safe")
    _, apart, variance = spread(wide(made), axes)
    found = elementwise("mul", apart, ew("rsqrt", elementwise("add", variance, eps)))
    return narrow(_scaled(found, weight, bias), made.dtype)


@operator
def rmsnorm_safe(x: Array, weight: Array | None = None, /, *, axis: Axis = -1, eps: float = 1e-6) -> Traced:
    """RMS norm: x / √(mean(x²) + eps) over `axis`, times `weight`, where it is given."""
    (made,) = floats("rmsnorm_safe", x)
    axes = axes_of(made, axis, "rmsnorm_safe")
    values = wide(made)
    mean = averaged(ew("mul", values, values), axes)
    found = elementwise("mul", values, ew("rsqrt", elementwise("add", mean, eps)))
    return narrow(_scaled(found, weight, None), made.dtype)


def _per_channel(values: Any, x: Traced, axis: int) -> Any:
    """One number per channel, laid along the channels' axis."""
    if values is None:
        return None
    made = wide(tensor(values))
    return primitives.reshape(made, [size if at == axis else 1 for at, size in enumerate(x.sizes)])


@operator
def batchnorm(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    axis: int = 1,
    eps: float = 1e-5,
) -> Traced:
    """Batch norm for inference: (x - mean) / √(variance + eps) by the known mean and variance of each channel.

    x is [batch, channels, …]. The result is multiplied by `weight` and `bias` is added, where they are given.
    """
    (made,) = floats("batchnorm", x)
    axis = one_axis(made, axis, "batchnorm")
    middle, width = (_per_channel(one, made, axis) for one in (mean, variance))
    scale = ew("rsqrt", elementwise("add", width, eps))
    found = elementwise("mul", elementwise("sub", wide(made), middle), scale)
    return narrow(_scaled(found, _per_channel(weight, made, axis), _per_channel(bias, made, axis)), made.dtype)


@operator
def groupnorm(
    x: Array, groups: int, weight: Array | None = None, bias: Array | None = None, /, *, eps: float = 1e-5
) -> Traced:
    """Group norm: a layer norm over each of `groups` equal groups of channels of x, [batch, channels, …].

    The result is multiplied by `weight` and `bias` is added, one number per channel, where they are given.
    """
    (made,) = floats("groupnorm", x)
    if made.ndim < 2:
        raise ShapeError("groupnorm: expected [batch, channels, …]", shapes=shown(made), hint="add the missing axes")
    channels = known(made, 1, "groupnorm")
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"groupnorm: {channels} channels do not split into {groups} groups",
            shapes=shown(made),
            hint="the number of groups must divide the channels",
        )
    # Positions of a channel are one axis, along which memory lies: tiles are long there, however short the last one is.
    laid = primitives.reshape(made, (made.sizes[0], groups, channels // groups, element_count(made.sizes[2:])))
    _, apart, variance = spread(wide(laid), (2, 3))
    found = elementwise("mul", apart, ew("rsqrt", elementwise("add", variance, eps)))

    def by_group(values: Any) -> Traced | None:
        return None if values is None else primitives.reshape(wide(tensor(values)), (1, groups, channels // groups, 1))

    scaled = narrow(_scaled(found, by_group(weight), by_group(bias)), made.dtype)
    return primitives.reshape(scaled, made.sizes)
