"""Activations, elementwise but for `glu`: torch's names, meanings and defaults, computed wide and rounded once."""

from __future__ import annotations

from collections.abc import Callable

from tessera.errors import ShapeError, TesseraError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import computed, divided, floats, narrow, one_axis, replaced, wide
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.primitives import ew
from tessera.lang.tracing.values import Array, Traced, shown

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _on_floats(name: str, x: Array, by: Callable[[Traced], Traced]) -> Traced:
    """`by` on a float operand, computed wide and rounded once."""
    return computed(name, x, by=by)


def _below(x: Traced, power: Traced, alpha: float) -> Traced:
    """x above 0, and alpha · (e^power - 1) elsewhere; e is not raised to a power above 0."""
    curve = elementwise("mul", ew("expm1", elementwise("min", power, 0.0)), alpha)
    return elementwise("select", elementwise("gt", x, 0.0), x, curve)


def _limited(x: Traced, low: float, high: float) -> Traced:
    return elementwise("min", elementwise("max", x, low), high)


def _gate(x: Traced) -> Traced:
    """From 0 to 1 along a straight line between -3 and 3."""
    return elementwise("mul", _limited(elementwise("add", x, 3.0), 0.0, 6.0), 1.0 / 6.0)


@operator
def leaky_relu(x: Array, /, negative_slope: float = 0.01) -> Traced:
    """x where it is above 0, and `negative_slope` · x elsewhere; as in torch."""

    def by(x: Traced) -> Traced:
        return elementwise("select", elementwise("gt", x, 0.0), x, elementwise("mul", x, negative_slope))

    return _on_floats("leaky_relu", x, by=by)


@operator
def elu(x: Array, /, alpha: float = 1.0) -> Traced:
    """x where it is above 0, and `alpha` · (e^x - 1) elsewhere; as in torch."""
    return _on_floats("elu", x, by=lambda x: _below(x, x, alpha))


@operator
def celu(x: Array, /, alpha: float = 1.0) -> Traced:
    """x where it is above 0, and `alpha` · (e^(x / alpha) - 1) elsewhere; as in torch. `alpha` is not 0."""
    if alpha == 0:
        raise TesseraError("celu: alpha is a number other than 0, got 0", hint="for an alpha of 0, use ts.relu")
    return _on_floats("celu", x, by=lambda x: _below(x, elementwise("mul", x, 1.0 / alpha), alpha))


@operator
def selu(x: Array, /) -> Traced:
    """ELU with the alpha and the scale that keep mean and variance from layer to layer; as in torch."""
    return _on_floats("selu", x, by=lambda x: elementwise("mul", _below(x, x, _SELU_ALPHA), _SELU_SCALE))


@operator
def glu(x: Array, /, axis: int = -1) -> Traced:
    """The first half along `axis` times the sigmoid of the second; as in torch. The axis has an even size."""
    (made,) = floats("glu", x)
    axis = one_axis(made, axis, "glu")
    half = divided(made, axis, 2, "glu")
    apart = primitives.reshape(made, replaced(made.sizes, axis, 2, half))
    ends = [None] * apart.ndim
    first, second = (
        wide(
            primitives.reshape(
                primitives.slice_(apart, replaced(ends, axis, at), replaced(ends, axis, at + 1)),
                replaced(made.sizes, axis, half),
            )
        )
        for at in (0, 1)
    )
    return narrow(ew("mul", first, ew("sigmoid", second)), made.dtype)


@operator
def log_sigmoid(x: Array, /) -> Traced:
    """log(sigmoid(x)), without overflow on either side; torch's logsigmoid."""

    def by(x: Traced) -> Traced:
        return ew("sub", elementwise("min", x, 0.0), ew("log1p", ew("exp", ew("neg", ew("abs", x)))))

    return _on_floats("log_sigmoid", x, by=by)


@operator
def softsign(x: Array, /) -> Traced:
    """x / (1 + |x|); as in torch."""
    return _on_floats("softsign", x, by=lambda x: ew("div", x, elementwise("add", ew("abs", x), 1.0)))


@operator
def hardtanh(x: Array, /, min_val: float = -1.0, max_val: float = 1.0) -> Traced:
    """x limited to the range from `min_val` to `max_val`; as in torch. NaN stays NaN."""
    if not min_val <= max_val:
        raise TesseraError(
            f"hardtanh: the range from {min_val} to {max_val} has no numbers", hint="give the smaller bound first"
        )
    return _on_floats("hardtanh", x, by=lambda x: _limited(x, min_val, max_val))


@operator
def relu6(x: Array, /) -> Traced:
    """x limited to the range from 0 to 6; as in torch."""
    return _on_floats("relu6", x, by=lambda x: _limited(x, 0.0, 6.0))


@operator
def hardsigmoid(x: Array, /) -> Traced:
    """relu6(x + 3) / 6; as in torch."""
    return _on_floats("hardsigmoid", x, by=_gate)


@operator
def hardswish(x: Array, /) -> Traced:
    """x · relu6(x + 3) / 6; as in torch."""
    return _on_floats("hardswish", x, by=lambda x: ew("mul", x, _gate(x)))


@operator
def mish(x: Array, /) -> Traced:
    """x · tanh(log(1 + e^x)), without overflow; as in torch."""

    def by(x: Traced) -> Traced:
        # With p = e^-|x|, tanh(log(1 + e^x)) is (1 + 2p) / (1 + 2p + 2p²) for x ≥ 0, else (p² + 2p) / (p² + 2p + 2).
        p = ew("exp", ew("neg", ew("abs", x)))
        twice, square = elementwise("mul", p, 2.0), ew("mul", p, p)
        above = elementwise("add", twice, 1.0)
        below = ew("add", square, twice)
        positive = elementwise("ge", x, 0.0)
        top = ew("select", positive, above, below)
        rest = ew("select", positive, elementwise("mul", square, 2.0), primitives.constant(2.0, x.sizes, x.dtype))
        return ew("mul", x, ew("div", top, ew("add", top, rest)))

    return _on_floats("mish", x, by=by)


@operator
def prelu(x: Array, weight: Array, /) -> Traced:
    """x where it is above 0, and weight · x elsewhere; as in torch.

    `weight` has one element, or one for each channel: x is [batch, channels, …].
    """
    made, slopes = floats("prelu", x, weight)
    if slopes.sizes in ((), (1,)):
        slopes = primitives.reshape(slopes, ())
    elif made.ndim > 1 and slopes.sizes == (made.sizes[1],):
        slopes = primitives.reshape(slopes, [size if at == 1 else 1 for at, size in enumerate(made.sizes)])
    else:
        raise ShapeError(
            "prelu: expected a weight with one element, or with one for each channel of x",
            shapes=shown(made, slopes),
            story=made.history.lines(),
            hint="x is [batch, channels, …]; the weight has one axis",
        )
    values = wide(made)
    sloped = elementwise("mul", values, wide(slopes))
    return narrow(elementwise("select", elementwise("gt", values, 0.0), values, sloped), made.dtype)
