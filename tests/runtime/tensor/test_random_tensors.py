"""Random tensors: reproducible by seed and offset, of the right distribution, and inside their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera.dtypes import philox
from tessera.dtypes.types import FLOATS, INTEGERS
from tessera.errors import DtypeError, TesseraError


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_depend_on_the_seed_alone(dtype: ts.DType) -> None:
    for make in (ts.randn, ts.rand):
        x = make((3, 50), dtype, seed=7)
        assert x.dtype is dtype
        assert x.numpy().tobytes() == make((3, 50), dtype, seed=7).numpy().tobytes()
        assert x.numpy().tobytes() == make(150, dtype, seed=7).numpy().tobytes()
        assert x[1:].numpy().tobytes() == make((2, 50), dtype, seed=7, offset=50).numpy().tobytes()
        assert x.numpy().tobytes() != make((3, 50), dtype, seed=8).numpy().tobytes()


def test_integers_depend_on_the_seed_alone() -> None:
    x = ts.randint(-5, 6, (4, 25), ts.i8, seed=3)
    assert x.tolist() == ts.randint(-5, 6, (4, 25), ts.i8, seed=3).tolist()
    assert x[2:].tolist() == ts.randint(-5, 6, (2, 25), ts.i8, seed=3, offset=50).tolist()
    assert {value for row in x.tolist() for value in row} == set(range(-5, 6))


def test_without_a_seed_calls_differ() -> None:
    assert ts.randn(8).tolist() != ts.randn(8).tolist()
    assert ts.randint(0, 1 << 60, 4).tolist() != ts.randint(0, 1 << 60, 4).tolist()


def test_distributions() -> None:
    normal = ts.randn(100_000, seed=1).numpy()
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 1) < 0.02
    uniform = ts.rand(100_000, seed=1).numpy()
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs(uniform.var() - 1 / 12) < 0.01
    counts = np.bincount(ts.randint(0, 10, 100_000, seed=1).numpy(), minlength=10)
    assert abs(counts - 10_000).max() < 500
    np.testing.assert_array_equal(uniform, philox.uniform(philox.random_bits(1, 0, 100_000)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_numbers_stay_below_one_and_use_every_value(dtype: ts.DType) -> None:
    values = ts.rand(20_000, dtype, seed=2).values()
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.27


@given(st.sampled_from(INTEGERS), st.data(), st.integers(0, 2**64 - 1))
def test_integers_stay_in_bounds(dtype: ts.DType, data: st.DataObject, seed: int) -> None:
    least, most = int(dtype.min_value), int(dtype.max_value)
    low = data.draw(st.integers(least, most))
    high = data.draw(st.integers(low + 1, most + 1))
    values = ts.randint(low, high, 20, dtype, seed=seed).values()
    # floor(w · span / 2⁶⁴) in Python's integers, for every 64-bit number w.
    words = philox.random_bits(seed, 0, 40).astype(object).reshape(-1, 2)
    expected = [low + (((upper << 32) | lower) * (high - low) >> 64) for upper, lower in words]
    assert values.tolist() == expected


def test_like_another_tensor() -> None:
    x = ts.zeros((2, 3), ts.bf16)
    assert ts.randn_like(x, seed=1).numpy().tobytes() == ts.randn((2, 3), ts.bf16, seed=1).numpy().tobytes()


def test_policies() -> None:
    x = ts.randn(100, ts.bf16 @ ts.stochastic_round, seed=5)
    assert x.dtype.policy.stochastic
    assert x.tolist() == ts.randn(100, ts.bf16 @ ts.stochastic_round, seed=5).tolist()
    assert ts.rand(4, ts.f16 @ ts.loss_scale(2.0), seed=1).tolist() == ts.rand(4, ts.f16, seed=1).tolist()


def test_mistakes() -> None:
    for attempt in (
        lambda: ts.randn(3, ts.i32),
        lambda: ts.rand(3, ts.bool_),
        lambda: ts.randint(0, 5, 3, ts.f32),
        lambda: ts.randint(5, 5, 3),
        lambda: ts.randint(0, 300, 3, ts.u8),
        lambda: ts.randint(-1, 3, 3, ts.u8),
    ):
        with pytest.raises(DtypeError) as caught:
            attempt()
        assert caught.value.hint
    with pytest.raises(TesseraError, match="seed"):
        ts.randn(3, seed=-1)
