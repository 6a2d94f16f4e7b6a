"""Differences, quarter rotations and flat indices against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, check, floats, sample, whole
from compared import Array
from lambdas import binary, unary

import tessera as ts
from tessera.dtypes.types import DType


def unravelled(x: Array) -> Any:
    return np.unravel_index(x, (2, 3, 4))


CASES: dict[str, Case] = {
    "diff": Case(ts.diff, np.diff, lambda size: (floats(2, size),)),
    "diff, twice": Case(
        unary(lambda x: ts.diff(x, n=2, axis=0)),
        unary(lambda x: np.diff(x, n=2, axis=0)),
        lambda size: (floats(size, 3),),
    ),
    "diff, beside": Case(
        binary(lambda x, y: (ts.diff(x, prepend=0.5, append=y), ts.diff(x, axis=0, append=x))),
        binary(lambda x, y: (np.diff(x, prepend=0.5, append=y), np.diff(x, axis=0, append=x))),
        lambda size: (floats(2, size), floats(2, 3)),
    ),
    "diff of whole numbers": Case(ts.diff, np.diff, lambda size: (whole(size, below=9),)),
    "diff of bools": Case(
        unary(lambda x: ts.diff(x > 3)), unary(lambda x: np.diff(x > 3)), lambda size: (whole(size, below=9),)
    ),
    "rot90": Case(
        unary(lambda x: [ts.rot90(x, k) for k in (-1, 0, 1, 2, 3, 4)]),
        unary(lambda x: [np.rot90(x, k) for k in (-1, 0, 1, 2, 3, 4)]),
        lambda size: (floats(size, 3, 2),),
    ),
    "rot90, axes": Case(
        unary(lambda x: ts.rot90(x, axes=(2, 0))),
        unary(lambda x: np.rot90(x, axes=(2, 0))),
        lambda size: (floats(2, 3, size),),
    ),
    "unravel_index": Case(
        unary(lambda x: ts.unravel_index(x, (2, 3, 4))), unravelled, lambda size: (whole(size, 2, below=24),)
    ),
    "ravel_multi_index": Case(
        binary(lambda x, y: ts.ravel_multi_index((x, y), (5, 7))),
        binary(lambda x, y: np.ravel_multi_index((x, y), (5, 7))),
        lambda size: (whole(size, below=5), whole(size, below=7, seed=3)),
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("diff", "unravel_index")))
def test_native_values(name: str) -> None:
    check(CASES[name])


def test_indices_of_a_shape_that_is_open() -> None:
    @ts.jit
    def places(x: ts.Tensor["M", "N"]) -> Any:  # noqa: F821, UP037  (names of sizes)
        row, column = ts.unravel_index(ts.argmax(x), x.shape)
        return row, column, ts.ravel_multi_index((row, column), x.shape)

    for shape in ((2, 5), (4, 3)):
        x = floats(*shape)
        flat = int(np.argmax(x))
        assert [int(one) for one in places(x)] == [*np.unravel_index(flat, shape), flat]


def test_small_and_empty() -> None:
    assert ts.diff(ts.zeros(1)).shape == ts.diff(ts.zeros(0)).shape == (0,)
    assert ts.diff(ts.zeros((2, 3)), n=5).shape == (2, 0)
    assert ts.diff(ts.asarray([1, 4]), n=0).tolist() == [1, 4]
    assert ts.diff(ts.asarray([250, 4, 9]).to(ts.u8)).tolist() == [10, 5]
    assert ts.rot90(ts.zeros((0, 3))).shape == (3, 0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ts.ShapeError, match="diff: a number has no neighbours"):
        ts.diff(ts.asarray(1.0))
    with pytest.raises(ts.TesseraError, match="diff: expected how often"):
        ts.diff(ts.zeros(3), n=-1)
    with pytest.raises(ts.ShapeError, match="rot90: a plane has two axes"):
        ts.rot90(ts.zeros((2, 2)), axes=(0,))  # pyright: ignore[reportArgumentType]  # that it is wrong is the point
    with pytest.raises(ts.ShapeError, match="names an axis twice"):
        ts.rot90(ts.zeros((2, 2)), axes=(0, 0))
    with pytest.raises(ts.RangeError, match="unravel_index: index 6 is out of range for the elements of size 6"):
        ts.unravel_index(ts.asarray([6]), (2, 3))
    with pytest.raises(ts.RangeError, match="ravel_multi_index: index 2 is out of range for axis 0 of size 2"):
        ts.ravel_multi_index((ts.asarray([2]), ts.asarray([0])), (2, 3))
    with pytest.raises(ts.ShapeError, match="ravel_multi_index: 1 indices for 2 axes"):
        ts.ravel_multi_index((ts.asarray([2]),), (2, 3))
    with pytest.raises(ts.DtypeError, match="unravel_index expects whole numbers"):
        ts.unravel_index(ts.zeros(2), (2, 3))
