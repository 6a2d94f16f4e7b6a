"""Elementwise operators against NumPy: every type, broadcasting, odd values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compared import FLOATS, INTEGERS, array, broadcasting, closely, exactly, seeds, shapes, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera.dtypes.types import DType

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

erf = np.vectorize(math.erf, otypes=[np.float64])
UNARY: dict[str, Callable[[Any], Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: np.where(x == -np.inf, np.nan, x / (1 + np.exp(-x))),
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
EXACT = [
    "abs",
    "ceil",
    "floor",
    "negative",
    "positive",
    "real",
    "conj",
    "round",
    "sign",
    "square",
    "trunc",
    "isfinite",
    "isinf",
    "isnan",
    "signbit",
]
NUMPY_NAMES = {"real": "positive", "conj": "positive", "round": "rint"}
BINARY: dict[str, Callable[..., Any]] = {"atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp}
EXACT_BINARY = (
    *("add", "copysign", "divide", "floor_divide", "multiply", "subtract", "maximum", "minimum", "remainder"),
    *("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"),
)
INTEGER_BINARY = {
    "add": np.add,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "equal": np.equal,
    "floor_divide": np.floor_divide,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "maximum": np.maximum,
    "multiply": np.multiply,
    "remainder": np.remainder,
    "subtract": np.subtract,
}
BOOLS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "equal": np.equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "not_equal": np.not_equal,
}
float_types = st.sampled_from(FLOATS)
few = settings(max_examples=4)


@pytest.mark.parametrize("name", UNARY)
@few
@given(dtype=float_types, shape=shapes(), seed=seeds)
def test_functions_are_within_units_of_numpy_in_float64(
    name: str, dtype: DType, shape: tuple[int, ...], seed: int
) -> None:
    values = array(dtype, shape, seed, low=-8, high=8)
    if name in ("asin", "acos", "atanh"):
        values = array(dtype, shape, seed, low=-1, high=1)
    expected = UNARY[name](values.astype(np.float64))
    closely(getattr(ts, name)(tensor(values, dtype)), expected, dtype, units=3, least=1e-300)


@pytest.mark.parametrize("name", EXACT)
@few
@given(dtype=st.sampled_from((*FLOATS, *INTEGERS)), shape=shapes(), seed=seeds)
def test_exact_functions_are_numpy_s(name: str, dtype: DType, shape: tuple[int, ...], seed: int) -> None:
    if name == "signbit" and not dtype.is_float:
        dtype = ts.f32
    values = array(dtype, shape, seed)
    own = getattr(np, NUMPY_NAMES.get(name, name))
    expected = own(values.astype(np.float64)) if dtype.is_float else own(values)
    if name == "signbit":  # the sign of a NaN means nothing
        plain = ~np.isnan(values.astype(np.float64))
        found = ts.signbit(tensor(values, dtype)).numpy()
        np.testing.assert_array_equal(found[plain], expected[plain])
    elif name in ("isfinite", "isinf", "isnan"):
        exactly(getattr(ts, name)(tensor(values, dtype)), expected)
    else:
        exactly(getattr(ts, name)(tensor(values, dtype)), np.asarray(expected).astype(dtype.storage))


@pytest.mark.parametrize("name", [*BINARY, *EXACT_BINARY])
@few
@given(dtype=float_types, both=broadcasting(), seed=seeds)
def test_functions_of_two_floats(
    name: str, dtype: DType, both: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    a, b = (array(dtype, shape, seed + at) for at, shape in enumerate(both))
    if name == "copysign":
        b = np.where(np.isnan(b.astype(np.float64)), 1, b).astype(dtype.storage)
    own = BINARY.get(name) or getattr(np, name)
    expected = own(a.astype(np.float64), b.astype(np.float64))
    found = getattr(ts, name)(tensor(a, dtype), tensor(b, dtype))
    if expected.dtype == bool:
        exactly(found, expected)
    else:
        closely(found, expected, dtype, units=3 if name in BINARY else 0.5001)


@pytest.mark.parametrize("name", INTEGER_BINARY)
@few
@given(dtype=st.sampled_from(INTEGERS), both=broadcasting(), seed=seeds)
def test_functions_of_two_integers(
    name: str, dtype: DType, both: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    a, b = (array(dtype, shape, seed + at) for at, shape in enumerate(both))
    if name in ("floor_divide", "remainder"):
        b = np.where(b == 0, 1, b).astype(dtype.storage)
    if "shift" in name:
        b = np.abs(b.astype(np.int64) % 8).astype(dtype.storage)
    exactly(getattr(ts, name)(tensor(a, dtype), tensor(b, dtype)), INTEGER_BINARY[name](a, b))


@pytest.mark.parametrize("name", BOOLS)
def test_functions_of_two_bools(name: str) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    exactly(getattr(ts, name)(a, b), BOOLS[name](a, b))


def test_inverted_bits_and_bools() -> None:
    exactly(ts.bitwise_invert(np.array([0, 5, 255], np.uint8)), np.array([255, 250, 0], np.uint8))
    exactly(ts.bitwise_invert(np.array([True, False])), np.array([False, True]))
    exactly(ts.logical_not(np.array([True, False])), np.array([False, True]))
    with pytest.raises(ts.DtypeError, match="logical_not expects bool tensors, got f32"):
        ts.logical_not(ts.zeros(3))


@few
@given(dtype=st.sampled_from((ts.f32, ts.f64, ts.i32)), seed=seeds)
def test_powers(dtype: DType, seed: int) -> None:
    a, b = array(dtype, (7,), seed, odd=False), np.abs(array(dtype, (7,), seed + 1, odd=False))
    if dtype.is_float:
        closely(ts.pow(tensor(a, dtype), tensor(b, dtype)), np.power(a.astype(float), b.astype(float)), dtype, units=3)
    else:
        exactly(ts.pow(tensor(a, dtype), tensor(b, dtype)), np.power(a, b))


@few
@given(dtype=st.sampled_from((ts.f32, ts.bf16, ts.i32)), both=broadcasting(), seed=seeds)
def test_clip_and_where(dtype: DType, both: tuple[tuple[int, ...], tuple[int, ...]], seed: int) -> None:
    a, b = (array(dtype, shape, seed + at) for at, shape in enumerate(both))
    exactly(ts.clip(tensor(a, dtype), -1, 2), np.clip(a, -1, 2).astype(dtype.storage))
    exactly(ts.clip(tensor(a, dtype), max=1), np.clip(a, None, 1).astype(dtype.storage))
    exactly(ts.clip(tensor(a, dtype), tensor(b, dtype)), np.maximum(a, b))
    exactly(ts.where(tensor(b > 0, ts.bool_), tensor(a, dtype), tensor(b, dtype)), np.where(b > 0, a, b))
    exactly(ts.masked_fill(tensor(a, dtype), tensor(a > 0, ts.bool_), 3), np.where(a > 0, 3, a).astype(dtype.storage))


def test_types_meet_as_numerics_say() -> None:
    narrow, wide = ts.ones(3, dtype=ts.bf16), ts.ones(3, dtype=ts.f32)
    assert ts.add(narrow, wide).dtype is ts.f32
    assert ts.add(narrow, 1).dtype is ts.bf16
    assert ts.multiply(2.0, narrow).dtype is ts.bf16
    assert ts.result_type(narrow, wide, 1.0) is ts.f32
    assert ts.add(wide, ts.ones(3, dtype=ts.i32)).dtype is ts.f32
    assert ts.add(ts.ones(3, dtype=ts.i32), 1.5).dtype is ts.f32
    with pytest.raises(ts.DtypeError, match="integers meet f32 and f64"):
        ts.add(narrow, ts.ones(3, dtype=ts.i32))
    with pytest.raises(ts.DtypeError, match="i4 is a storage type"):
        ts.add(ts.ones(3, dtype=ts.i4), 1.5)


@pytest.mark.parametrize("approximate", [False, "tanh"])
def test_gelu(approximate: bool | str) -> None:
    x = np.linspace(-6, 6, 101)
    exact = 0.5 * x * (1 + erf(x / math.sqrt(2)))
    if approximate:
        exact = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    closely(ts.gelu(x, approximate=approximate), exact, ts.f64, least=1e-14)
    closely(ts.gelu(x.astype(np.float32), approximate=approximate), exact, ts.f32, least=2e-6)
    assert ts.relu(ts.asarray([-1.0, 2.0])).tolist() == [0.0, 2.0]
