"""Losses of two tensors: torch's names, meanings and defaults, computed wide and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tessera.dtypes.types import DType
from tessera.errors import ShapeError, TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators.networks import Reduction, checked_labels, reduced
from tessera.lang.operators.operands import expanded, floats, folded, narrow, one_axis, same_sizes, wide
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown

_LEAST_LOG = -100.0
"""Logarithms of probabilities are no smaller, so that one of 0 gives a finite loss and a finite derivative."""


def _wide_pair(name: str, x: Array, target: Array) -> tuple[Traced, Traced, DType]:
    """Two tensors of one shape in the type that they are computed in, and the type of the result."""
    a, b = floats(name, x, target)
    same_sizes(name, a, b)
    return wide(a), primitives.broadcast_to(wide(b), a.sizes), a.dtype


def _weighted(losses: Traced, weight: Array | None) -> Traced:
    """Losses times a weight that broadcasts to their shape."""
    if weight is None:
        return losses
    laid = primitives.broadcast_to(primitives.cast(tensor(weight), losses.dtype), losses.sizes)
    return ew("mul", losses, laid)


def _of_distances(
    name: str, x: Array, target: Array, reduction: Reduction, by: Callable[[Traced, Traced], Traced]
) -> Traced:
    """A loss of differences, of which `by` is given the sizes and the squares."""
    a, b, dtype = _wide_pair(name, x, target)
    apart = ew("sub", a, b)
    return narrow(reduced(name, by(ew("abs", apart), ew("mul", apart, apart)), reduction), dtype)


@operator
def l1_loss(x: Array, target: Array, /, *, reduction: Reduction = "mean") -> Traced:
    """The mean of |x - target|; their sum, or each of them, by `reduction`. As in torch."""
    return _of_distances("l1_loss", x, target, reduction, lambda size, _: size)


@operator
def smooth_l1_loss(x: Array, target: Array, /, *, reduction: Reduction = "mean", beta: float = 1.0) -> Traced:
    """The mean of d² / (2 beta) for distances d below `beta`, and of d - beta / 2 for others. As in torch."""
    if beta < 0:
        raise TesseraError(f"smooth_l1_loss: beta is a number from 0 on, got {beta}", hint="with 0 it is ts.l1_loss")

    def by(size: Traced, square: Traced) -> Traced:
        if not beta:
            return size
        curve = elementwise("mul", square, 0.5 / beta)
        return elementwise("select", elementwise("lt", size, beta), curve, elementwise("sub", size, 0.5 * beta))

    return _of_distances("smooth_l1_loss", x, target, reduction, by)


@operator
def huber_loss(x: Array, target: Array, /, *, reduction: Reduction = "mean", delta: float = 1.0) -> Traced:
    """The mean of d² / 2 for distances d up to `delta`, and of delta · (d - delta / 2) for others. As in torch."""
    if not delta > 0:
        raise TesseraError(f"huber_loss: delta is a number above 0, got {delta}", hint="the usual one is 1.0")

    def by(size: Traced, square: Traced) -> Traced:
        line = elementwise("mul", elementwise("sub", size, 0.5 * delta), delta)
        return elementwise("select", elementwise("le", size, delta), elementwise("mul", square, 0.5), line)

    return _of_distances("huber_loss", x, target, reduction, by)


@operator
def binary_cross_entropy(
    x: Array, target: Array, weight: Array | None = None, /, *, reduction: Reduction = "mean"
) -> Traced:
    """The mean of -(target · log x + (1 - target) · log(1 - x)) for probabilities x, times `weight`. As in torch.

    Logarithms are limited to -100 from below. Of numbers that become probabilities by a sigmoid,
    `binary_cross_entropy_with_logits` is exact further out.
    """
    a, b, dtype = _wide_pair("binary_cross_entropy", x, target)
    yes = elementwise("max", ew("log", a), _LEAST_LOG)
    no = elementwise("max", ew("log1p", ew("neg", a)), _LEAST_LOG)
    losses = ew("sub", ew("mul", elementwise("sub", b, 1.0), no), ew("mul", b, yes))
    return narrow(reduced("binary_cross_entropy", _weighted(losses, weight), reduction), dtype)


@operator
def binary_cross_entropy_with_logits(
    x: Array,
    target: Array,
    weight: Array | None = None,
    /,
    *,
    pos_weight: Array | None = None,
    reduction: Reduction = "mean",
) -> Traced:
    """`binary_cross_entropy` of sigmoid(x), without overflow on either side. As in torch.

    `pos_weight` multiplies the part of targets that are 1, and broadcasts, such as one number for each class.
    """
    name = "binary_cross_entropy_with_logits"
    a, b, dtype = _wide_pair(name, x, target)
    # -log sigmoid(x) = log(1 + e^-|x|) + max(-x, 0), and -log(1 - sigmoid(x)) is x more.
    yes = ew("add", ew("log1p", ew("exp", ew("neg", ew("abs", a)))), elementwise("max", ew("neg", a), 0.0))
    if pos_weight is not None:
        yes = ew("mul", yes, elementwise("add", _weighted(b, elementwise("sub", tensor(pos_weight), 1.0)), 1.0))
    losses = ew("add", ew("mul", elementwise("sub", 1.0, b), a), yes)
    return narrow(reduced(name, _weighted(losses, weight), reduction), dtype)


@operator
def kl_div(
    x: Array,
    target: Array,
    /,
    *,
    reduction: Literal["mean", "batchmean", "sum", "none"] = "mean",
    log_target: bool = False,
) -> Traced:
    """The mean of target · (log target - x), where x has logarithms of probabilities, as `log_softmax` gives them.

    As in torch: "batchmean" divides the sum by the size of the first axis, which is the divergence that books define;
    with `log_target`, target has logarithms, too. Where a target is 0, so is its loss.
    """
    if reduction not in ("mean", "batchmean", "sum", "none"):
        raise ShapeError(
            f"kl_div: reduction is mean, batchmean, sum or none, got {reduction!r}", hint="choose one of them"
        )
    a, b, dtype = _wide_pair("kl_div", x, target)
    if log_target:
        losses = ew("mul", ew("exp", b), ew("sub", b, a))
    else:
        losses = ew("mul", b, ew("sub", ew("log", b), a))
        losses = elementwise("select", elementwise("eq", b, 0.0), 0.0, losses)
    if reduction != "batchmean":
        return narrow(reduced("kl_div", losses, reduction), dtype)
    if not a.ndim:
        raise ShapeError(
            "kl_div: a number has no axis of a batch", shapes=shown(a), hint='use reduction="sum", or give a row'
        )
    rows = a.sizes[0]
    count = float(rows) if isinstance(rows, int) else primitives.size_value(rows, a.dtype)
    return narrow(reduced("kl_div", losses, "mean", count), dtype)


@operator
def nll_loss(
    x: Array,
    labels: Array,
    weight: Array | None = None,
    /,
    *,
    axis: int = -1,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Traced:
    """The mean of -x[label], where x has logarithms of probabilities along `axis`, as `log_softmax` gives them.

    As in torch, but for the axis of classes, which is the last one, as in `cross_entropy`. `weight` has a number for
    each class: the mean is divided by the sum of the weights of all labels that count. Labels that equal
    `ignore_index` do not.
    """
    (made,) = floats("nll_loss", x)
    along = one_axis(made, axis, "nll_loss")
    named = checked_labels("nll_loss", made, labels, axis, ignore_index)
    values, spread = wide(made), expanded(named, [along])
    hit = elementwise("eq", primitives.iota(values.sizes, along), spread)

    def of_label(x: Traced) -> Traced:
        return primitives.reduce("sum", elementwise("select", hit, x, 0.0), (along,), keepdims=True)

    if weight is None:
        shares = primitives.cast(elementwise("ne", spread, ignore_index), values.dtype)
    else:
        given = primitives.cast(tensor(weight), values.dtype)
        if given.sizes != (values.sizes[along],):
            raise ShapeError(
                "nll_loss: expected a weight for each class",
                shapes=shown(values, given),
                hint=f"axis {axis} of x has the classes; the weights have one axis of that size",
            )
        laid = primitives.reshape(given, [size if at == along else 1 for at, size in enumerate(values.sizes)])
        shares = of_label(primitives.broadcast_to(laid, values.sizes))
        shares = elementwise("select", elementwise("ne", spread, ignore_index), shares, 0.0)
    counts = elementwise("ne", spread, ignore_index)
    losses = elementwise("select", counts, ew("neg", ew("mul", of_label(values), shares)), 0.0)
    total = primitives.reduce("sum", shares, tuple(range(shares.ndim))) if reduction == "mean" else None
    return narrow(reduced("nll_loss", folded(losses, [along], False), reduction, total), made.dtype)
