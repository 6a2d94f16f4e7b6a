"""Checks the table of reductions: start values, silence, signed zeros, and agreement with the row that combines."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_values import Array, Draw, assert_same, stored, values

from tessera.dtypes.casting import cast
from tessera.dtypes.types import ALL, DType, Kind, bool_, f8e4m3, f32, f64, i8, i64, u64
from tessera.errors import DtypeError
from tessera.ir.common import elementwise, reductions

DEFINED = [(row.name, dtype) for row in reductions.TABLE.values() for dtype in ALL if dtype.kind in row.kinds]
INFINITE = (math.inf, -math.inf)


def start_of(name: str, dtype: DType) -> Array:
    """The start value in the storage of the type; it must be one of its values."""
    start = reductions.TABLE[name].identity(dtype)
    assert dtype.min_value <= start <= dtype.max_value or (dtype.is_float and start in INFINITE)
    carrier = f64 if dtype.is_float else u64 if dtype.kind is Kind.UINT else i64
    held = np.asarray([start]).astype(carrier.storage)
    found = cast(held, carrier, dtype)
    assert_same(cast(found, dtype, carrier), held)
    return found


def every_value(dtype: DType) -> Array:
    """All values of a narrow type, and a spread of a wide one."""
    if dtype is bool_:
        return np.array([False, True])
    if dtype.storage.itemsize == 1:
        codes = np.arange(2 ** min(8, dtype.bits), dtype=np.uint8)
        return (
            codes.view(np.int8).astype(dtype.storage)
            if dtype.bits == 4 and dtype.is_integer
            else codes.view(dtype.storage)
        )
    if dtype.is_float:
        return stored([0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan], dtype)
    return np.array([dtype.min_value, 0, 1, dtype.max_value], dtype.storage)


@pytest.mark.parametrize(("name", "dtype"), DEFINED, ids=str)
def test_the_start_value_changes_nothing(name: str, dtype: DType) -> None:
    start, every = start_of(name, dtype), every_value(dtype)
    combined = elementwise.apply(
        reductions.TABLE[name].combine, [np.broadcast_to(start, every.shape), every], [dtype, dtype]
    )
    # Only zeros may change, and only the sign of a zero that is added to 0.
    if name == "sum" and dtype.is_float:
        every = every + stored(0.0, dtype)
    assert_same(combined, every)


@pytest.mark.parametrize(("name", "dtype"), DEFINED, ids=str)
def test_nothing_folds_to_the_start_value(name: str, dtype: DType) -> None:
    assert_same(reductions.apply(name, np.zeros((0, 1), dtype.storage), dtype, [0]), start_of(name, dtype))


@pytest.mark.parametrize(("name", "dtype"), DEFINED, ids=str)
@settings(max_examples=4)
@given(data=st.data())
def test_two_values_fold_as_the_row_combines_them(name: str, dtype: DType, data: st.DataObject) -> None:
    draw: Draw = data.draw
    pair = values(draw, (2, 5), dtype, tame=name in ("sum", "prod"))
    combined = elementwise.apply(reductions.TABLE[name].combine, [pair[0], pair[1]], [dtype, dtype])
    if dtype.is_float and name in ("sum", "prod"):
        wide = elementwise.apply(reductions.TABLE[name].combine, [cast(half, dtype, f64) for half in pair], [f64, f64])
        # Sums start from +0.
        combined = cast(wide + 0.0 if name == "sum" else wide, f64, dtype)
    assert_same(reductions.apply(name, pair, dtype, [0]), combined)


@pytest.mark.parametrize("dtype", [i8, u64, i64, bool_], ids=str)
@pytest.mark.parametrize("name", reductions.TABLE)
def test_the_order_of_exact_reductions_does_not_matter(name: str, dtype: DType) -> None:
    if dtype.kind not in reductions.TABLE[name].kinds:
        return
    generator = np.random.default_rng(3)
    x = generator.integers(0, 2**63, (3, 4, 5)).astype(np.uint64).astype(dtype.storage)
    whole = reductions.apply(name, x, dtype, [0, 1, 2])
    assert_same(reductions.apply(name, generator.permuted(x.flatten()), dtype, [0]), whole)
    by_axis = reductions.apply(name, reductions.apply(name, x, dtype, [1]), dtype, [0, 1])
    assert_same(by_axis, whole)


@pytest.mark.parametrize(
    "zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0], [-0.0] * 9 + [0.0], [0.0] + [-0.0] * 9]
)
def test_zero_above_is_the_positive_one(zeros: list[float]) -> None:
    x = stored(zeros, f32)
    positive, negative = (0.0 in [math.copysign(1, z) - sign for z in zeros] for sign in (1, -1))
    assert math.copysign(1, reductions.apply("max", x, f32, [0])) == (1 if positive else -1)
    assert math.copysign(1, reductions.apply("min", x, f32, [0])) == (-1 if negative else 1)


def test_specials_fold_without_warnings() -> None:
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("sum", "prod", "max", "min"):
            assert np.isnan(reductions.apply(name, signalling, f32, [0]))
            assert np.isnan(reductions.apply(name, stored([1, math.nan, 2], f32), f32, [0]))
        assert np.isnan(reductions.apply("sum", stored([math.inf, -math.inf], f64), f64, [0]))
        assert np.isnan(reductions.apply("prod", stored([math.inf, 0], f64), f64, [0]))
        assert reductions.apply("sum", stored([1e308, 1e308], f64), f64, [0]) == math.inf
        assert np.isnan(reductions.apply("sum", stored([448, 448], f8e4m3), f8e4m3, [0]))


def test_folding_no_axes_changes_nothing() -> None:
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    for name in reductions.TABLE:
        assert_same(reductions.apply(name, x, i8, []), x)


@pytest.mark.parametrize(
    ("name", "dtype", "words"),
    [
        ("mean", f32, "unknown reduction mean"),
        ("and", f32, "and reduces bool or int or uint elements, got f32"),
        ("sum", bool_, "sum reduces float or int or uint elements, got bool"),
    ],
)
def test_what_is_not_defined_is_refused(name: str, dtype: DType, words: str) -> None:
    with pytest.raises(DtypeError) as caught:
        reductions.apply(name, np.zeros(2, dtype.storage), dtype, [0])
    assert caught.value.message == words
    assert caught.value.hint
