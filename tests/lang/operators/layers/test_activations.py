"""Activations against NumPy in float64: every float type, symbolic sizes, and what is wrong with arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, check, floats, sample, where
from lambdas import binary, unary

import tessera as ts
from tessera.dtypes.types import DType


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def spread(x: Any) -> Any:
    """Slopes of channels, which are the axis 1."""
    return np.linspace(-1, 1, x.shape[1]).reshape(-1, *(1,) * (x.ndim - 2))


def elementwise(run: Callable[[Any], Any], expected: Callable[[Any], Any]) -> Case:
    return Case(run, expected, lambda size: (floats(2, size, 5),))


CASES: dict[str, Case] = {
    "leaky_relu": elementwise(lambda x: ts.leaky_relu(x, 0.01), lambda x: where(x > 0, x, 0.01 * x)),
    "leaky_relu, steep": elementwise(lambda x: ts.leaky_relu(x, 0.25), lambda x: where(x > 0, x, 0.25 * x)),
    "elu": elementwise(lambda x: ts.elu(x, 1.0), lambda x: where(x > 0, x, np.expm1(x))),
    "elu, scaled": elementwise(lambda x: ts.elu(x, alpha=0.5), lambda x: where(x > 0, x, 0.5 * np.expm1(x))),
    "celu": elementwise(lambda x: ts.celu(x, 2.0), lambda x: where(x > 0, x, 2 * np.expm1(x / 2))),
    "selu": elementwise(ts.selu, lambda x: 1.0507009873554805 * where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "log_sigmoid": elementwise(ts.log_sigmoid, lambda x: np.log(sigmoid(x))),
    "softsign": elementwise(ts.softsign, lambda x: x / (1 + np.abs(x))),
    "hardtanh": elementwise(lambda x: ts.hardtanh(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1)),
    "hardtanh, wider": elementwise(lambda x: ts.hardtanh(x, -2, 0.5), lambda x: np.clip(x, -2, 0.5)),
    "relu6": elementwise(lambda x: ts.relu6(x * 4), lambda x: np.clip(x * 4, 0, 6)),
    "hardsigmoid": elementwise(ts.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardswish": elementwise(ts.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "mish": elementwise(ts.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "glu": Case(
        unary(lambda x: ts.glu(x, -1)),
        unary(lambda x: x[..., :3] * sigmoid(x[..., 3:])),
        lambda size: (floats(size, 2, 6),),
    ),
    "glu, in the middle": Case(
        unary(lambda x: ts.glu(x, axis=1)),
        unary(lambda x: x[:, : x.shape[1] // 2] * sigmoid(x[:, x.shape[1] // 2 :])),
        lambda size: (floats(2, 2 * size, 3),),
    ),
    "prelu": Case(
        ts.prelu,
        binary(lambda x, w: where(x > 0, x, w.reshape(-1, 1) * x)),
        lambda size: (floats(size, 4, 5), floats(4)),
    ),
    "prelu, one slope": Case(
        ts.prelu, binary(lambda x, w: where(x > 0, x, w * x)), lambda size: (floats(size, 4), floats(1))
    ),
}


@pytest.mark.quick(9)
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64, ts.bf16, ts.f16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("glu, in the middle",)))
def test_native_values(name: str) -> None:
    check(CASES[name])


FAR: dict[str, list[float]] = {
    "leaky_relu": [-np.inf, np.inf],
    "elu": [-1.0, np.inf],
    "celu": [-1.0, np.inf],
    "selu": [-1.7580993408473766, np.inf],
    "log_sigmoid": [-np.inf, 0.0],
    "hardtanh": [-1.0, 1.0],
    "relu6": [0.0, 6.0],
    "hardsigmoid": [0.0, 1.0],
}


@pytest.mark.parametrize("name", FAR)
def test_infinities_and_nan(name: str) -> None:
    found = getattr(ts, name)(ts.asarray(np.array([-np.inf, np.inf, np.nan])))
    np.testing.assert_allclose(found.numpy(), [*FAR[name], np.nan], rtol=1e-15)
    assert getattr(ts, name)(ts.zeros((0, 3))).shape == (0, 3)


def test_large_numbers_do_not_overflow() -> None:
    x = ts.asarray([-1e4, -200.0, 200.0, 1e4])
    assert ts.mish(x).tolist() == [0.0, pytest.approx(0.0, abs=1e-30), 200.0, 1e4]
    assert ts.log_sigmoid(x).tolist() == [-1e4, -200.0, 0.0, 0.0]
    assert ts.elu(x).tolist() == [-1.0, -1.0, 200.0, 1e4]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ts.ShapeError, match="glu: axis 1 has size 3, which 2 does not divide"):
        ts.glu(ts.zeros((2, 3)))
    with pytest.raises(ts.ShapeError, match="prelu: expected a weight with one element"):
        ts.prelu(ts.zeros((2, 3)), ts.zeros((2,)))
    with pytest.raises(ts.TesseraError, match="alpha is a number other than 0"):
        ts.celu(ts.zeros(3), 0.0)
    with pytest.raises(ts.TesseraError, match="has no numbers"):
        ts.hardtanh(ts.zeros(3), 1.0, -1.0)
    with pytest.raises(ts.DtypeError, match="glu expects a float tensor, got i64"):
        ts.glu(ts.asarray([1, 2]))


def test_whole_numbers_are_taken_in_f32() -> None:
    found = ts.elu(ts.asarray([-1, 0, 2]))
    assert found.dtype is ts.f32
    np.testing.assert_allclose(found.numpy(), [np.expm1(-1), 0, 2], rtol=1e-6)


def test_a_symbolic_half_is_no_number() -> None:
    @ts.jit
    def gated(x: ts.Tensor["M", "2*N"]) -> Any:  # noqa: F821, UP037  (names of sizes)
        return ts.glu(x)

    for size in (1, 3, 5):
        x = floats(2, 2 * size).astype(np.float32)
        np.testing.assert_allclose(gated(x).numpy(), x[:, :size] * sigmoid(x[:, size:]), rtol=1e-5)
    assert gated.explain().compilations == 1


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    ["leaky_relu", "elu", "celu", "selu", "softsign", "hardtanh", "relu6", "hardsigmoid", "hardswish", "mish", "glu"],
)
def test_torch_says_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = floats(4, 6).astype(np.float32)
    expected = getattr(torch.nn.functional, name)(torch.from_numpy(x))
    np.testing.assert_allclose(getattr(ts, name)(x).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
