"""Medians and quantiles against NumPy: axes, methods, NaN, symbolic sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, check, compare, floats, sample
from lambdas import binary, unary

import tessera as ts
from tessera.dtypes.types import DType

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
SHARES = (0.0, 0.25, 0.6, 1.0)


def quantiles(method: Any) -> Case:
    return Case(
        unary(lambda x: ts.quantile(x, SHARES, axis=1, method=method)),
        unary(lambda x: np.quantile(x, SHARES, axis=1, method=method)),
        lambda size: (floats(3, size, 2),),
    )


CASES: dict[str, Case] = {
    "median": Case(ts.median, np.median, lambda size: (floats(size, 3),)),
    "median, rows": Case(
        unary(lambda x: ts.median(x, axis=-1)), unary(lambda x: np.median(x, axis=-1)), lambda n: (floats(2, n),)
    ),
    "median, two axes": Case(
        unary(lambda x: ts.median(x, axis=(0, 2), keepdims=True)),
        unary(lambda x: np.median(x, axis=(0, 2), keepdims=True)),
        lambda size: (floats(2, size, 3),),
    ),
    "quantile": Case(
        unary(lambda x: ts.quantile(x, 0.3)), unary(lambda x: np.quantile(x, 0.3)), lambda size: (floats(size, 3),)
    ),
    "quantile, kept": Case(
        unary(lambda x: ts.quantile(x, 0.3, axis=0, keepdims=True)),
        unary(lambda x: np.quantile(x, 0.3, axis=0, keepdims=True)),
        lambda size: (floats(size, 3),),
    ),
    "quantile, many kept": Case(
        unary(lambda x: ts.quantile(x, SHARES, axis=0, keepdims=True)),
        unary(lambda x: np.quantile(x, SHARES, axis=0, keepdims=True)),
        lambda size: (floats(size, 3),),
    ),
    "percentile": Case(
        unary(lambda x: ts.percentile(x, (10, 50.0), axis=0)),
        unary(lambda x: np.percentile(x, (10, 50.0), axis=0)),
        lambda size: (floats(size, 3),),
    ),
    "quantile of shares": Case(
        binary(lambda x, q: ts.quantile(x, q, axis=1)),
        binary(lambda x, q: np.quantile(x, q, axis=1)),
        lambda size: (floats(3, 5), np.linspace(0, 1, 2 * size).reshape(2, size)),
    ),
    **{f"quantile, {method}": quantiles(method) for method in METHODS},
}


@pytest.mark.quick(9)
@pytest.mark.parametrize("dtype", [ts.f64, ts.f32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    if name == "quantile of shares" and dtype is not ts.f64:
        pytest.skip("shares are rounded to the type")
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("quantile, kept",)))
def test_native_values(name: str) -> None:
    check(CASES[name])


def test_narrow_floats() -> None:
    x = ts.asarray(floats(4, 6)).to(ts.bf16)
    compare(ts.median(x, axis=1), np.median(x.to(ts.f64).numpy(), axis=1), ts.bf16)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_and_infinities() -> None:
    x = np.array([[1.0, np.nan, 2.0], [np.inf, np.inf, 0.0], [-np.inf, 5.0, 4.0]])
    np.testing.assert_array_equal(ts.median(x, axis=1).numpy(), np.median(x, axis=1))
    # NumPy makes NaN of any line from or to an infinity.
    ends = [[np.nan, 0.0, -np.inf], [np.nan, np.inf, 5.0]]
    np.testing.assert_array_equal(ts.quantile(x, (0.0, 1.0), axis=1).numpy(), ends)
    found = ts.quantile(x[1], ts.asarray([-0.5, 0.0, np.nan, 1.5]))
    np.testing.assert_array_equal(found.numpy(), [np.nan, 0.0, np.nan, np.nan])
    assert ts.median(ts.zeros((0, 3)), axis=1).shape == (0,)


def test_what_does_not_fit_is_refused() -> None:
    x = ts.zeros((3, 4))
    with pytest.raises(ts.RangeError, match=r"quantile: q is from 0 to 1, got 1\.5"):
        ts.quantile(x, 1.5)
    with pytest.raises(ts.RangeError, match="percentile: q is from 0 to 100, got -1"):
        ts.percentile(x, (50, -1))
    with pytest.raises(ts.TesseraError, match="method is one of linear, lower"):
        ts.quantile(x, 0.5, method="between")  # pyright: ignore[reportArgumentType]  # that it is wrong is the point
    with pytest.raises(ts.ShapeError, match="median: axis 0 has no elements"):
        ts.median(ts.zeros((0, 3)), axis=0)
    with pytest.raises(ts.DtypeError, match="median expects a float tensor"):
        ts.median(ts.asarray([1, 2]))
