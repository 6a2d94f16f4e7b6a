"""Operators that fold, sort and search against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compared import FLOATS, INTEGERS, array, closely, exactly, seeds, shapes, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera.dtypes.types import DType

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
few = settings(max_examples=5)
numbers = st.sampled_from((ts.f32, ts.bf16, ts.i32, ts.u8))


@st.composite
def folding(draw: st.DrawFn, *, empty: bool = True) -> tuple[tuple[int, ...], Any]:
    """A shape, and axes of it: one, several, none, or None for all."""
    shape = draw(shapes(least=1, empty=empty))
    axes = draw(st.lists(st.integers(-len(shape), -1), unique=True, max_size=len(shape)))
    return shape, draw(st.sampled_from((None, tuple(axes), -1, len(shape) - 1)))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
@few
@given(case=folding(empty=False), dtype=st.sampled_from(FLOATS), keepdims=st.booleans(), seed=seeds)
def test_sums_of_floats(name: str, case: tuple[tuple[int, ...], Any], dtype: DType, keepdims: bool, seed: int) -> None:
    shape, axis = case
    values = array(dtype, shape, seed, odd=False)
    expected = getattr(np, name)(values.astype(np.float64), axis=axis, keepdims=keepdims)
    limits = dtype.float_format
    assert limits is not None
    least = 2.0**-limits.mantissa_bits * 4 * np.abs(values.astype(float)).sum()
    found = getattr(ts, name)(tensor(values, dtype), axis=axis, keepdims=keepdims)
    closely(found, expected, dtype, units=4 if name != "prod" else 12, least=least if name != "prod" else 0)


@few
@given(case=folding(), dtype=st.sampled_from((*INTEGERS, ts.bool_)), keepdims=st.booleans(), seed=seeds)
def test_sums_of_integers_are_of_64_bits(
    case: tuple[tuple[int, ...], Any], dtype: DType, keepdims: bool, seed: int
) -> None:
    shape, axis = case
    values = array(dtype, shape, seed)
    wide = np.uint64 if values.dtype.kind == "u" else np.int64
    for name in ("sum", "prod"):
        expected = getattr(np, name)(values, axis=axis, keepdims=keepdims, dtype=wide)
        exactly(getattr(ts, name)(tensor(values, dtype), axis=axis, keepdims=keepdims), np.asarray(expected))
    exactly(ts.count_nonzero(tensor(values, dtype), axis=axis), np.asarray(np.count_nonzero(values, axis=axis)))
    for name in ("all", "any"):
        expected = getattr(np, name)(values, axis=axis, keepdims=keepdims)
        exactly(getattr(ts, name)(tensor(values, dtype), axis=axis, keepdims=keepdims), np.asarray(expected))


def test_a_sum_may_be_of_another_type() -> None:
    x = np.array([1, 2, 3], np.int8)
    exactly(ts.sum(x, dtype=ts.f32), np.asarray(6, np.float32))
    exactly(ts.sum(x, dtype=ts.i16), np.asarray(6, np.int16))
    closely(ts.var(np.array([1.0, 2.0, 4.0]), correction=1), np.var([1.0, 2.0, 4.0], ddof=1), ts.f64)


@few
@given(case=folding(empty=False), dtype=numbers, keepdims=st.booleans(), seed=seeds)
def test_extremes(case: tuple[tuple[int, ...], Any], dtype: DType, keepdims: bool, seed: int) -> None:
    shape, axis = case
    values = array(dtype, shape, seed)
    for name in ("max", "min"):
        expected = getattr(np, name)(values.astype(np.float64), axis=axis, keepdims=keepdims)
        found = getattr(ts, name)(tensor(values, dtype), axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(found.numpy().astype(np.float64), expected)
        one_axis = axis if axis is None or isinstance(axis, int) else -1
        wide = values.astype(np.float64)
        exactly(
            getattr(ts, "arg" + name)(tensor(values, dtype), axis=one_axis, keepdims=keepdims),
            np.asarray(getattr(np, "arg" + name)(wide, axis=one_axis, keepdims=keepdims), np.int64),
        )


def test_nothing_has_no_largest_element() -> None:
    with pytest.raises(ts.ShapeError, match="max of nothing has no value"):
        ts.max(ts.zeros((2, 0)), axis=1)
    with pytest.raises(ts.ShapeError, match="axis 3 is out of range"):
        ts.sum(ts.zeros((2, 2)), axis=3)
    with pytest.raises(ts.ShapeError, match="names an axis twice"):
        ts.sum(ts.zeros((2, 2)), axis=(0, -2))


@few
@given(shape=shapes(least=1), dtype=st.sampled_from((ts.f32, ts.i32, ts.u8, ts.f64)), initial=st.booleans(), seed=seeds)
def test_running_sums(shape: tuple[int, ...], dtype: DType, initial: bool, seed: int) -> None:
    values = array(dtype, shape, seed, odd=False)
    for axis in range(-1, len(shape) - 1):
        expected = np.cumulative_sum(values, axis=axis, include_initial=initial)
        found = ts.cumulative_sum(tensor(values, dtype), axis=axis, include_initial=initial)
        if dtype.is_float:
            closely(
                found, np.cumulative_sum(values.astype(float), axis=axis, include_initial=initial), dtype, least=1e-5
            )
        else:
            exactly(found, expected.astype(np.uint64 if dtype.kind.value == "uint" else np.int64))


def test_running_sums_of_long_rows() -> None:
    values = array(ts.i32, (2, 5000), 1)
    exactly(ts.cumulative_sum(tensor(values, ts.i32), axis=1), np.cumsum(values, axis=1))
    exactly(ts.cumulative_sum(tensor(values[:, :70], ts.i32), axis=1), np.cumsum(values[:, :70], axis=1))
    row = array(ts.f64, (1, 7), 1, odd=False)
    closely(ts.cumulative_prod(row, axis=1), np.cumprod(row, axis=1), ts.f64, units=16)


@few
@given(
    shape=shapes(least=1),
    dtype=st.sampled_from((ts.f32, ts.i32, ts.bool_, ts.bf16)),
    descending=st.booleans(),
    seed=seeds,
)
def test_sorting(shape: tuple[int, ...], dtype: DType, descending: bool, seed: int) -> None:
    values = array(dtype, shape, seed)
    wide = values.astype(np.float64)
    for axis in range(-1, len(shape) - 1):
        # Negated, NaN stays last.
        order = np.argsort(-wide if descending else wide, axis=axis, stable=True)
        exactly(ts.argsort(tensor(values, dtype), axis=axis, descending=descending), order)
        found = ts.sort(tensor(values, dtype), axis=axis, descending=descending)
        np.testing.assert_array_equal(found.numpy().astype(float), np.take_along_axis(wide, order, axis))


@pytest.mark.parametrize("size", [65, pytest.param(333, marks=pytest.mark.acceptance)])
def test_long_rows_are_merged(size: int) -> None:
    values = array(ts.f32, (2, size), size)
    for descending in (False, True):
        order = np.argsort(-values if descending else values, axis=-1, stable=True)
        exactly(ts.argsort(tensor(values, ts.f32), descending=descending), order)
    np.testing.assert_array_equal(ts.sort(tensor(values, ts.f32)).numpy(), np.sort(values))


def test_the_largest_few() -> None:
    values = array(ts.f32, (3, 20), 1, odd=False)
    found, indices = ts.topk(tensor(values, ts.f32), 4)
    order = np.argsort(-values, axis=-1, stable=True)[:, :4]
    exactly(indices, order)
    exactly(found, np.take_along_axis(values, order, -1))
    smallest, _ = ts.topk(tensor(values, ts.f32), 2, axis=0, largest=False)
    exactly(smallest, np.sort(values, axis=0)[:2])
    with pytest.raises(ts.ShapeError, match="topk: 21 of 20 elements"):
        ts.topk(tensor(values, ts.f32), 21)


@settings(max_examples=3)
@given(size=st.integers(0, 20), shape=shapes(), dtype=st.sampled_from((ts.f32, ts.i32)), seed=seeds)
def test_places_in_a_sorted_row(size: int, shape: tuple[int, ...], dtype: DType, seed: int) -> None:
    row = array(dtype, (size,), seed)
    values = array(dtype, shape, seed + 1)
    sorter = np.argsort(row, stable=True)
    for side in ("left", "right"):
        expected = np.asarray(np.searchsorted(np.sort(row), values, side=side), np.int64)
        exactly(ts.searchsorted(np.sort(row), tensor(values, dtype), side=side), expected)
        exactly(ts.searchsorted(tensor(row, dtype), tensor(values, dtype), side=side, sorter=sorter), expected)


@few
@given(shape=shapes(), dtype=st.sampled_from((ts.f32, ts.i32, ts.bool_)), seed=seeds)
def test_sets(shape: tuple[int, ...], dtype: DType, seed: int) -> None:
    values = array(dtype, shape, seed)
    own: Any = np.unique_all(values)
    found = ts.unique_all(tensor(values, dtype))
    exactly(found.values, own.values)
    exactly(found.counts, own.counts)
    exactly(found.inverse_indices, own.inverse_indices.reshape(shape))
    plain = ~np.isnan(values.astype(float)).reshape(-1)
    if plain.all():
        exactly(found.indices, own.indices)
    exactly(ts.unique_values(tensor(values, dtype)), own.values)
    exactly(ts.unique_counts(tensor(values, dtype)).counts, own.counts)
    exactly(ts.unique_inverse(tensor(values, dtype)).inverse_indices, own.inverse_indices.reshape(shape))
    if shape:
        for one, other in zip(ts.nonzero(tensor(values, dtype)), np.nonzero(values), strict=True):
            exactly(one, other)


def test_shapes_that_values_decide_are_refused_in_a_trace() -> None:
    functions: list[Callable[[Any], Any]] = [
        ts.nonzero,
        ts.unique_values,
        lambda x: x[x > 0],
        lambda x: ts.repeat(x, ts.astype(x, ts.i64)),
    ]
    for function in functions:
        with pytest.raises(ts.ShapeError, match="depends on elements"):
            ts.jit(function)(ts.ones((3,)))
