"""Diagonals, traces, norms, products and covariances against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import Case, check, compare, floats, sample, whole
from lambdas import binary, unary

import tessera as ts
from tessera.dtypes.types import DType


def on_last_axes(function: Any) -> Any:
    return binary(lambda x, offset=0: function(x, offset=offset, axis1=-2, axis2=-1))


diagonal, trace = on_last_axes(np.diagonal), on_last_axes(np.trace)
OFFSETS = (-2, -1, 0, 1, 2)
CASES: dict[str, Case] = {
    "diagonal": Case(
        unary(lambda x: [ts.diagonal(x, offset=at) for at in OFFSETS]),
        unary(lambda x: [diagonal(x, at) for at in OFFSETS]),
        lambda size: (floats(2, size, 5),),
    ),
    "diagonal of a square": Case(
        unary(lambda x: [ts.diagonal(x, offset=at) for at in OFFSETS]),
        unary(lambda x: [diagonal(x, at) for at in OFFSETS]),
        lambda size: (floats(size, size),),
    ),
    "trace": Case(
        unary(lambda x: [ts.trace(x), ts.trace(x, offset=1)]),
        unary(lambda x: [trace(x), trace(x, 1)]),
        lambda size: (floats(2, size, size),),
    ),
    "diag": Case(
        unary(lambda x: [ts.diag(x, at) for at in OFFSETS]),
        unary(lambda x: [np.diag(x, at) for at in OFFSETS]),
        lambda size: (floats(size),),
    ),
    "vector_norm": Case(
        unary(lambda x: [ts.vector_norm(x, ord=order, axis=-1) for order in (0, 1, 2, 3, 0.5, math.inf, -math.inf)]),
        unary(lambda x: [np.linalg.norm(x, order, axis=-1) for order in (0, 1, 2, 3, 0.5, math.inf, -math.inf)]),
        lambda size: (floats(4, size),),
    ),
    "vector_norm, all": Case(
        unary(lambda x: (ts.vector_norm(x), ts.vector_norm(x, axis=(0, 1), keepdims=True, ord=1))),
        unary(lambda x: (np.linalg.norm(x.reshape(-1)), np.abs(x).sum((0, 1), keepdims=True))),
        lambda size: (floats(3, size, 2),),
    ),
    "matrix_norm": Case(
        unary(lambda x: [ts.matrix_norm(x, ord=order) for order in ("fro", 1, -1, math.inf, -math.inf)]),
        unary(lambda x: [np.linalg.norm(x, order, axis=(-2, -1)) for order in ("fro", 1, -1, math.inf, -math.inf)]),
        lambda size: (floats(2, size, 3),),
    ),
    "norm": Case(
        unary(
            lambda x: (
                ts.norm(x),
                ts.norm(x, 1, axis=0),
                ts.norm(x, "fro", axis=(0, 2)),
                ts.norm(x, math.inf, axis=(2, 0), keepdims=True),
            )
        ),
        unary(
            lambda x: (
                np.linalg.norm(x),
                np.linalg.norm(x, 1, axis=0),
                np.linalg.norm(x, "fro", axis=(0, 2)),
                np.linalg.norm(x, math.inf, axis=(2, 0), keepdims=True),
            )
        ),
        lambda size: (floats(size, 4, 3),),
    ),
    "cross": Case(
        binary(lambda x, y: (ts.cross(x, y), ts.cross(x.mT, y.mT, axis=-2))),
        binary(lambda x, y: (np.cross(x, y), np.cross(x, y).swapaxes(-1, -2))),
        lambda size: (floats(2, size, 3), floats(2, size, 3, seed=1)),
    ),
    "kron": Case(ts.kron, np.kron, lambda size: (floats(size, 2), floats(3, size))),
    "kron of ranks": Case(ts.kron, np.kron, lambda size: (floats(size), floats(2, 3, 1))),
    "kron of whole numbers": Case(ts.kron, np.kron, lambda size: (whole(size, below=9), whole(2, below=9))),
    "cov": Case(
        unary(lambda x: (ts.cov(x), ts.cov(x, correction=0))),
        unary(lambda x: (np.cov(x), np.cov(x, ddof=0))),
        lambda size: (floats(4, size),),
    ),
    "cov of a row": Case(ts.cov, np.cov, lambda size: (floats(size + 1),)),
}


@pytest.mark.quick(9)
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("norm",)))
def test_native_values(name: str) -> None:
    check(CASES[name])


def test_an_open_square_has_one_program() -> None:
    @ts.jit
    def traced(x: ts.Tensor["N", "N"]) -> Any:  # noqa: F821, UP037  (the name of a size)
        return ts.trace(x), ts.diagonal(x), ts.diag(ts.diagonal(x))

    for size in (3, 5, 1):
        x = floats(size, size).astype(np.float32)
        compare(traced(x), (np.trace(x), np.diagonal(x), np.diag(np.diagonal(x))), ts.f32)
    assert traced.explain().compilations == 1


def test_other_types() -> None:
    x = ts.asarray([[1, 2], [3, 4]])
    assert ts.trace(x.to(ts.i8)).dtype is ts.i64
    assert ts.diag(x).tolist() == [1, 4]
    assert ts.diag(ts.asarray([True, True])).tolist() == [[True, False], [False, True]]
    assert ts.cross(ts.asarray([1, 0, 0]), ts.asarray([0, 1, 0])).tolist() == [0, 0, 1]
    narrow = ts.asarray(floats(3, 5)).to(ts.bf16)
    compare(ts.vector_norm(narrow, axis=1), np.linalg.norm(narrow.to(ts.f64).numpy(), axis=1), ts.bf16)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_nothing() -> None:
    assert ts.diagonal(ts.zeros((0, 3))).shape == (0,)
    assert ts.diagonal(ts.zeros((2, 3)), offset=7).shape == (0,)
    assert ts.diag(ts.zeros(0), 2).shape == (2, 2)
    assert float(ts.vector_norm(ts.zeros(0))) == 0.0
    assert ts.kron(ts.zeros((0, 2)), ts.zeros((2, 2))).shape == (0, 4)
    with pytest.raises(ts.ShapeError, match="vector_norm: axis 0 has no elements"):
        ts.vector_norm(ts.zeros(0), ord=math.inf)


def test_what_does_not_fit_is_refused() -> None:
    x = ts.zeros((2, 3, 4))
    with pytest.raises(ts.ShapeError, match="diagonal is for matrices"):
        ts.diagonal(ts.zeros(3))
    with pytest.raises(ts.ShapeError, match="diag: expected a row or a matrix"):
        ts.diag(x)
    with pytest.raises(ts.ShapeError, match="cross: vectors have 3 elements along axis -1"):
        ts.cross(x, x)
    with pytest.raises(ts.TesseraError, match="ord of matrices is 'fro', 1, -1, inf or -inf, got 2"):
        ts.matrix_norm(x, ord=2)
    with pytest.raises(ts.ShapeError, match="norm: ord=1 is for vectors or matrices, and 3 axes are folded"):
        ts.norm(x, 1)
    with pytest.raises(ts.ShapeError, match="norm: ord='fro' is for matrices, and 1 axes are folded"):
        ts.norm(x, "fro", axis=0)
    with pytest.raises(ts.TesseraError, match="ord is a number or an infinity"):
        ts.vector_norm(x, ord=math.nan)
    with pytest.raises(ts.DtypeError, match="cov expects a float tensor"):
        ts.cov(ts.asarray([[1, 2]]))
    with pytest.raises(ts.ShapeError, match="cov: expected a row"):
        ts.cov(x)
