"""Losses against NumPy in float64: reductions, weights, ends of their ranges, and operands that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, check, floats, sample, where, whole
from lambdas import binary, quaternary, ternary

import tessera as ts
from tessera.dtypes.types import DType

Reductions = ("mean", "sum", "none")


def reduced(losses: Any, reduction: str) -> Any:
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


def shares(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).uniform(0.05, 0.95, shape)


def logarithms(x: Any, axis: int = -1) -> Any:
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def crossed(p: Any, y: Any) -> Any:
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def smooth(d: Any, beta: float) -> Any:
    return where(d < beta, d * d / (2 * beta), d - beta / 2)


def of_logits(x: Any, y: Any, w: Any, p: Any, reduction: Any) -> Any:
    return ts.binary_cross_entropy_with_logits(x, y, w, pos_weight=p, reduction=reduction)


def by(reduction: str, run: Callable[..., Any], losses: Callable[..., Any], arguments: Callable[[int], Any]) -> Case:
    return Case(lambda *xs: run(*xs, reduction=reduction), lambda *xs: reduced(losses(*xs), reduction), arguments)


def each(run: Callable[..., Any], losses: Callable[..., Any], arguments: Callable[[int], Any]) -> dict[str, Case]:
    """One case for each reduction."""
    return {reduction: by(reduction, run, losses, arguments) for reduction in Reductions}


def of_pairs(size: int) -> Any:
    return floats(size, 5), floats(size, 5, seed=1)


def of_shares(size: int) -> Any:
    return shares(size, 4), shares(size, 4, seed=1)


def labels_of(size: int) -> Any:
    return whole(size, 5, below=4)


FAMILIES: dict[str, dict[str, Case]] = {
    "l1_loss": each(ts.l1_loss, binary(lambda x, y: np.abs(x - y)), of_pairs),
    "smooth_l1_loss": each(ts.smooth_l1_loss, binary(lambda x, y: smooth(np.abs(x - y), 1.0)), of_pairs),
    "smooth_l1_loss, narrow": each(
        ternary(lambda x, y, reduction: ts.smooth_l1_loss(x, y, beta=0.25, reduction=reduction)),
        binary(lambda x, y: smooth(np.abs(x - y), 0.25)),
        of_pairs,
    ),
    "huber_loss": each(
        ternary(lambda x, y, reduction: ts.huber_loss(x, y, delta=2.0, reduction=reduction)),
        binary(lambda x, y: 2.0 * smooth(np.abs(x - y), 2.0)),
        of_pairs,
    ),
    "binary_cross_entropy": each(ts.binary_cross_entropy, crossed, of_shares),
    "binary_cross_entropy, weighted": each(
        ts.binary_cross_entropy,
        ternary(lambda p, y, w: w * crossed(p, y)),
        lambda size: (*of_shares(size), shares(4, seed=2)),
    ),
    "binary_cross_entropy_with_logits": each(
        ts.binary_cross_entropy_with_logits,
        binary(lambda x, y: crossed(sigmoid(x), y)),
        lambda size: (floats(size, 4), shares(size, 4)),
    ),
    "binary_cross_entropy_with_logits, weighted": each(
        of_logits,
        quaternary(lambda x, y, w, p: -w * (p * y * np.log(sigmoid(x)) + (1 - y) * np.log(sigmoid(-x)))),
        lambda size: (floats(size, 4), shares(size, 4), shares(size, 1, seed=2), shares(4, seed=3)),
    ),
    "kl_div": each(
        ts.kl_div, binary(lambda x, y: y * (np.log(y) - x)), lambda size: (logarithms(floats(size, 4)), shares(size, 4))
    ),
    "kl_div, logarithms": each(
        ternary(lambda x, y, reduction: ts.kl_div(x, y, log_target=True, reduction=reduction)),
        binary(lambda x, y: np.exp(y) * (y - x)),
        lambda size: (logarithms(floats(size, 4)), logarithms(floats(size, 4, seed=1))),
    ),
    "nll_loss": each(
        ts.nll_loss,
        binary(lambda x, y: -np.take_along_axis(x, y[..., None], -1)[..., 0]),
        lambda size: (logarithms(floats(size, 5, 4)), labels_of(size)),
    ),
    "nll_loss, axis": each(
        ternary(lambda x, y, reduction: ts.nll_loss(x, y, axis=1, reduction=reduction)),
        binary(lambda x, y: -np.take_along_axis(x, y[:, None], 1)[:, 0]),
        lambda size: (logarithms(floats(size, 4, 5), 1), labels_of(size)),
    ),
}
CASES = {f"{name}, {reduction}": case for name, family in FAMILIES.items() for reduction, case in family.items()}


@pytest.mark.quick(9)
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64, ts.bf16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("binary_cross_entropy_with_logits, mean", "nll_loss, mean")))
def test_native_values(name: str) -> None:
    check(CASES[name])


def test_a_divergence_is_divided_by_the_batch() -> None:
    x, y = logarithms(floats(6, 4)), shares(6, 4)
    expected = (y * (np.log(y) - x)).sum() / 6
    assert float(ts.kl_div(x, y, reduction="batchmean")) == pytest.approx(expected)

    @ts.jit
    def diverging(x: ts.Tensor["N", 4], y: ts.Tensor["N", 4]) -> Any:  # noqa: F821, UP037  (the name of a size)
        return ts.kl_div(x, y, reduction="batchmean")

    assert float(diverging(x, y)) == pytest.approx(expected)
    with pytest.raises(ts.ShapeError, match="reduction is mean, batchmean, sum or none"):
        ts.kl_div(x, y, reduction="most")  # pyright: ignore[reportArgumentType]  # that it is wrong is the point


def test_ends_of_ranges_give_numbers() -> None:
    ends, targets = ts.asarray([0.0, 1.0, 0.0, 1.0]), ts.asarray([0.0, 1.0, 1.0, 0.0])
    assert ts.binary_cross_entropy(ends, targets, reduction="none").tolist() == [0.0, 0.0, 100.0, 100.0]
    far = ts.asarray([-1e4, 1e4, -1e4, 1e4])
    found = ts.binary_cross_entropy_with_logits(far, targets, reduction="none")
    assert found.tolist() == [0.0, 0.0, 1e4, 1e4]
    assert ts.kl_div(ts.asarray([-np.inf, 0.0]), ts.asarray([0.0, 1.0]), reduction="none").tolist() == [0.0, 0.0]
    assert ts.smooth_l1_loss(ts.asarray([1.0, -3.0]), ts.asarray([0.0, 0.0]), beta=0.0).tolist() == 2.0


def test_labels_that_do_not_count() -> None:
    x, weights = logarithms(floats(5, 4)), np.array([0.5, 1.0, 2.0, 0.0])
    labels = np.array([1, -100, 2, 3, 0])
    used = labels != -100
    own = -x[np.arange(5), np.where(used, labels, 0)] * used
    assert float(ts.nll_loss(x, labels)) == pytest.approx(own.sum() / 4)
    scaled = np.where(used, weights[np.where(used, labels, 0)], 0)
    expected = (own * scaled).sum() / scaled.sum()
    assert float(ts.nll_loss(x, labels, weights)) == pytest.approx(expected)
    assert float(ts.jit(ts.nll_loss)(x, labels, weights)) == pytest.approx(expected)
    softmax = ts.log_softmax(ts.asarray(floats(5, 4)))
    assert float(ts.nll_loss(softmax, labels)) == pytest.approx(float(ts.cross_entropy(floats(5, 4), labels)))
    with pytest.raises(ts.RangeError, match="nll_loss: index 4 is out of range for the classes of size 4"):
        ts.nll_loss(x, np.array([0, 1, 2, 3, 4]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_nothing() -> None:
    x = ts.zeros((0, 3))
    for loss in (ts.l1_loss, ts.huber_loss, ts.kl_div, ts.binary_cross_entropy):
        assert np.isnan(float(loss(x, x)))
        assert float(loss(x, x, reduction="sum")) == 0.0
        assert loss(x, x, reduction="none").shape == (0, 3)
    assert float(ts.nll_loss(x, ts.zeros(0, ts.i64), reduction="sum")) == 0.0


def test_what_does_not_fit_is_refused() -> None:
    x = ts.zeros((4, 3))
    for loss in (ts.l1_loss, ts.smooth_l1_loss, ts.huber_loss, ts.kl_div, ts.binary_cross_entropy):
        with pytest.raises(ts.ShapeError, match=r"expected an operand of shape \[4, 3\], got \[3\]"):
            loss(x, ts.zeros(3))
        with pytest.raises(ts.ShapeError, match=r"got \[4, 1\]"):
            loss(x, ts.zeros((4, 1)))
    assert float(ts.l1_loss(x, 2.0)) == 2.0
    with pytest.raises(ts.ShapeError, match="reduction is mean, sum or none"):
        ts.l1_loss(x, x, reduction="all")  # pyright: ignore[reportArgumentType]  # that it is wrong is the point
    with pytest.raises(ts.TesseraError, match="delta is a number above 0"):
        ts.huber_loss(x, x, delta=0.0)
    with pytest.raises(ts.TesseraError, match="beta is a number from 0 on"):
        ts.smooth_l1_loss(x, x, beta=-1.0)
    with pytest.raises(ts.ShapeError, match="expected a weight for each class"):
        ts.nll_loss(x, ts.zeros(4, ts.i64), ts.ones(4))
    with pytest.raises(ts.ShapeError, match=r"nll_loss: expected labels of shape \[4\]"):
        ts.nll_loss(x, ts.zeros(3, ts.i64))
    with pytest.raises(ts.DtypeError, match="nll_loss expects labels that are numbers of classes"):
        ts.nll_loss(x, ts.zeros(4))


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("reduction", Reductions)
def test_torch_says_the_same(reduction: Any) -> None:
    torch = pytest.importorskip("torch")
    functions = torch.nn.functional
    for name in ("l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"):
        x, y = (one.astype(np.float32) for one in of_shares(6))
        expected = getattr(functions, name)(torch.from_numpy(x), torch.from_numpy(y), reduction=reduction)
        found = getattr(ts, name)(x, y, reduction=reduction)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
