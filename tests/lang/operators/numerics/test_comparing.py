"""Comparisons against NumPy: tolerances, whole tensors, sets, neighbours of floats, replaced NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cases import Case, check, floats, sample, where, whole
from compared import ODD_FLOATS, array, exactly, seeds, shapes, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from lambdas import binary, unary

import tessera as ts
from tessera.dtypes.types import DType

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
few = settings(max_examples=6)


def beside(size: int) -> Any:
    x = floats(size, 4)
    return x, np.where(floats(size, 4, seed=5) > 0, x, x + 0.5)


CASES: dict[str, Case] = {
    "isclose": Case(binary(lambda x, y: ts.isclose(x, y, rtol=1e-5)), np.isclose, beside),
    "isclose, far": Case(
        binary(lambda x, y: ts.isclose(x, y, atol=0.6)), binary(lambda x, y: np.isclose(x, y, atol=0.6)), beside
    ),
    "isclose, rows": Case(
        binary(lambda x, y: ts.isclose(x, y, 1e-5)), np.isclose, lambda size: (floats(size, 4), floats(4))
    ),
    "allclose": Case(binary(lambda x, y: ts.allclose(x, y, rtol=1e-5)), np.allclose, beside),
    "allclose, itself": Case(
        unary(lambda x: ts.allclose(x, x)), unary(lambda x: np.allclose(x, x)), lambda size: (floats(size, 3),)
    ),
    "array_equal": Case(
        binary(lambda x, y: (ts.array_equal(x, y), ts.array_equal(x, x), ts.array_equal(x, x[0]))),
        binary(lambda x, y: (np.array_equal(x, y), np.array_equal(x, x), np.array_equal(x, x[0]))),
        beside,
    ),
    "isin": Case(ts.isin, np.isin, lambda size: (whole(size, 4, below=9), whole(5, below=9))),
    "isin, of many": Case(ts.isin, np.isin, lambda size: (whole(size, 4, below=400), whole(70, below=400))),
    "isin, open": Case(ts.isin, np.isin, lambda size: (whole(6, below=9), whole(size, below=9))),
    "not in": Case(
        binary(lambda x, y: ts.isin(x, y, invert=True)),
        binary(lambda x, y: np.isin(x, y, invert=True)),
        lambda size: (np.round(floats(size, 4)), np.round(floats(5))),
    ),
    "nan_to_num": Case(
        unary(lambda x: (ts.nan_to_num(x / x), ts.nan_to_num(1 / x, posinf=3.0, neginf=-2.0, nan=1.0))),
        unary(lambda x: (np.nan_to_num(x / x), np.nan_to_num(1 / x, posinf=3.0, neginf=-2.0, nan=1.0))),
        lambda size: (np.round(floats(size, 5)),),
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype)


@pytest.mark.parametrize("name", sample(CASES, ("isclose", "isin")))
def test_native_values(name: str) -> None:
    check(CASES[name])


def test_odd_numbers_are_close_as_numpy_says() -> None:
    x = np.array([*ODD_FLOATS, 1.0 + 1e-6], np.float64)
    a, b = np.meshgrid(x, x)
    for equal_nan in (False, True):
        exactly(ts.isclose(a, b, equal_nan=equal_nan), np.isclose(a, b, equal_nan=equal_nan))
        assert bool(ts.array_equal(x, x, equal_nan=equal_nan)) is equal_nan
        assert bool(ts.allclose(x, x, equal_nan=equal_nan)) is equal_nan
    exactly(ts.isin(a, x), np.isin(a, x))
    assert bool(ts.allclose(ts.asarray([1, 2]), ts.asarray([1, 2])))
    assert not bool(ts.array_equal(ts.zeros(3), ts.zeros(4)))
    assert bool(ts.array_equal(ts.zeros((0, 3)), ts.zeros((0, 3))))
    assert ts.isin(ts.asarray([1, 2]), ts.zeros(0, ts.i64)).tolist() == [False, False]
    assert ts.isin(ts.asarray([True, False]), ts.asarray([True])).tolist() == [True, False]


def test_numbers_for_infinities_are_those_of_the_type() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    for dtype in (ts.f64, ts.f32, ts.f16, ts.bf16):
        found = ts.nan_to_num(ts.asarray(x).to(dtype))
        assert found.dtype is dtype
        assert found.to(ts.f64).tolist() == [0.0, float(dtype.max_value), float(dtype.min_value), 1.0]
    assert ts.nan_to_num(ts.asarray([1, 2])).tolist() == [1, 2]


STORAGES: dict[DType, Any] = {ts.f64: np.float64, ts.f32: np.float32, ts.f16: np.float16, ts.bf16: ml_dtypes.bfloat16}


def least(dtype: DType) -> float:
    form = dtype.float_format
    assert form is not None
    return form.smallest_subnormal


def compare_next(a: Any, b: Any, dtype: DType) -> None:
    """In f64, where NaN of every type is equal to itself; of equal zeros the second, which NumPy's f16 forgets."""
    found = ts.nextafter(tensor(a, dtype), tensor(b, dtype))
    assert found.dtype is dtype
    exactly(found.to(ts.f64), where(a == b, b, np.nextafter(a, b)).astype(np.float64))


@few
@given(dtype=st.sampled_from(tuple(STORAGES)), shape=shapes(), seed=seeds)
def test_next_numbers(dtype: DType, shape: tuple[int, ...], seed: int) -> None:
    a, b = (array(dtype, shape, seed + at) for at in range(2))
    compare_next(a, b, dtype)


@pytest.mark.parametrize("dtype", list(STORAGES), ids=str)
@pytest.mark.parametrize("native", [False, True])
def test_next_numbers_at_ends(dtype: DType, native: bool) -> None:
    small, large = least(dtype), float(dtype.max_value)
    one = np.array([0.0, -0.0, small, -small, 2 * small, 1.0, 2.0, large, -large, np.inf, -np.inf, 1.5], np.float64)
    normal = small * 2.0 ** (dtype.float_format.mantissa_bits if dtype.float_format else 0)
    values = np.concatenate([one, [normal, -normal, 3 * small, np.nan]]).astype(STORAGES[dtype])
    a, b = (x.astype(STORAGES[dtype]) for x in np.meshgrid(values, values))
    with ts.knobs.backend.using("cpu" if native else "interpreter"):
        compare_next(a, b, dtype)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ts.TesseraError, match="tolerances are numbers from 0 on"):
        ts.isclose(ts.zeros(3), ts.zeros(3), rtol=-1.0)
    with pytest.raises(ts.DtypeError, match="nextafter expects floats of 16 bits and more"):
        ts.nextafter(ts.asarray([1]), ts.asarray([2]))
    with pytest.raises(ts.ShapeError):
        ts.allclose(ts.zeros(3), ts.zeros(4))
