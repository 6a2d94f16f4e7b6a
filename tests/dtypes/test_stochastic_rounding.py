"""Stochastic rounding: unbiased, reproducible, independent of chunking, and never moving exact values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.dtypes.casting import cast
from tessera.dtypes.philox import normal
from tessera.dtypes.types import (
    FLOATS,
    DType,
    bf16,
    f4e2m1,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    loss_scale,
    saturate,
    stochastic_round,
    tf32,
)

COUNT = 100_000
NARROW = [dtype for dtype in FLOATS if dtype is not f64]


def neighbours(dtype: DType) -> list[tuple[float, float]]:
    """Neighbouring numbers among the normal and the subnormal numbers of a format."""
    fmt = dtype.float_format
    assert fmt is not None
    return [(1.0, 1.0 + 2.0**-fmt.mantissa_bits), (fmt.smallest_subnormal, 2 * fmt.smallest_subnormal)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_unbiased(dtype: DType, sign: float) -> None:
    for case, (low, high) in enumerate(neighbours(dtype)):
        for part in (0.03125, 0.3125, 0.5, 0.875):
            x = low + part * (high - low)
            rounded = cast(np.full(COUNT, sign * x), f64, dtype @ stochastic_round, seed=17 + case)
            results = rounded.astype(np.float64)
            assert set(results.tolist()) == {sign * low, sign * high}
            ups = int((results == sign * high).sum())
            z = (ups - COUNT * part) / math.sqrt(COUNT * part * (1 - part))
            assert abs(z) < 4, f"{dtype} {sign * x}: {ups} of {COUNT} up, expected {part}"


@pytest.mark.parametrize("dtype", [bf16, f16, f8e4m3, f8e5m2], ids=str)
def test_sums_of_many_values_are_unbiased(dtype: DType) -> None:
    values = normal(1, 0, COUNT)
    # The same seed on purpose: rounding has its own stream.
    rounded = cast(values, f32, dtype @ stochastic_round, seed=1).astype(np.float64)
    errors = rounded - values
    assert abs(errors.sum()) < 4 * math.sqrt(float((errors**2).sum()))
    assert abs(np.corrcoef(errors, values)[0, 1]) < 4 / math.sqrt(COUNT)


def test_beyond_the_largest_number() -> None:
    # A quarter of the way from 448 to the next multiple of the spacing, 480.
    values = np.full(COUNT, -456.0)
    plain = cast(values, f64, f8e4m3 @ stochastic_round, seed=3).astype(np.float64)
    assert set(plain[~np.isnan(plain)].tolist()) == {-448.0}
    z = (np.isnan(plain).sum() - COUNT / 4) / math.sqrt(COUNT * 3 / 16)
    assert abs(z) < 4
    clamped = cast(values, f64, f8e4m3 @ stochastic_round @ saturate, seed=3).astype(np.float64)
    assert set(clamped.tolist()) == {-448.0}
    assert set(cast(np.full(100, 7.9), f64, f4e2m1 @ stochastic_round, seed=3).tolist()) == {6}


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOATS if dtype.bits <= 16], ids=str)
def test_exact_values_never_move(dtype: DType) -> None:
    words = np.arange(1 << dtype.bits).astype(f"u{dtype.storage.itemsize}")
    values = cast(words.view(dtype.storage), dtype, f64)
    for seed in range(3):
        again = cast(values, f64, dtype @ stochastic_round, seed=seed)
        assert cast(again, dtype, f64).tobytes() == values.tobytes()


@given(seed=st.integers(0, 2**64 - 1), offset=st.integers(0, 2**40), cut=st.integers(0, 500))
def test_a_pure_function_of_value_seed_and_index(seed: int, offset: int, cut: int) -> None:
    values = np.linspace(-3, 3, 500, dtype=np.float32)
    target = bf16 @ stochastic_round
    whole = cast(values, f32, target, seed=seed, offset=offset)
    pieces = [
        cast(values[:cut], f32, target, seed=seed, offset=offset),
        cast(values[cut:], f32, target, seed=seed, offset=offset + cut),
    ]
    assert whole.tobytes() == np.concatenate(pieces).tobytes()
    assert whole.tobytes() == cast(values.reshape(20, 25), f32, target, seed=seed, offset=offset).tobytes()
    assert (-whole).tobytes() == cast(-values, f32, target, seed=seed, offset=offset).tobytes()


def test_large_arrays_in_pieces_of_any_size() -> None:
    values = normal(2, 0, 100_001)
    target = tf32 @ stochastic_round
    whole = cast(values, f32, target, seed=8, offset=5)
    tail = cast(values[70_003:], f32, target, seed=8, offset=5 + 70_003)
    assert (whole[70_003:] == tail).all()


def test_c_order_counts_for_any_layout() -> None:
    values = normal(2, 0, 600).reshape(20, 30)
    target = f8e5m2 @ stochastic_round
    transposed = cast(values.T, f32, target, seed=4)
    assert (transposed == cast(np.ascontiguousarray(values.T), f32, target, seed=4)).all()


def test_seeds_and_offsets_matter() -> None:
    values = normal(2, 0, 1000)
    target = f8e4m3 @ stochastic_round
    results = [cast(values, f32, target, seed=s, offset=o).tobytes() for s, o in ((0, 0), (1, 0), (0, 1), (1 << 32, 0))]
    assert len(set(results)) == 4


def test_with_a_loss_scale() -> None:
    target = f16 @ loss_scale(1024) @ stochastic_round
    value = 2.0**-34 + 2.0**-36
    stored = cast(np.full(COUNT, value), f64, target, seed=6)
    back = cast(stored, target, f64)
    assert set(back.tolist()) == {2.0**-34, 2.0**-33}
    assert abs((back.mean() - value) / back.std()) < 4 / math.sqrt(COUNT)
