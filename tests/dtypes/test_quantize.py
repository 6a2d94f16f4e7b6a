"""Quantisation: the written rule, its error bound, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tessera.dtypes.casting import cast
from tessera.dtypes.quantize import dequantize, quantize
from tessera.dtypes.types import DType, bf16, f16, f32, f64, i4, i8, i16, saturate, scaled, u8
from tessera.errors import DtypeError, ShapeError

Array = NDArray[Any]

arrays = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=5),
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
)


@given(arrays, st.sampled_from([i8, i4]), st.integers(-2, 1))
def test_round_trip_stays_within_half_a_scale(values: Array, base: DType, axis: int) -> None:
    dtype = base @ scaled(axis)
    qmax = int(dtype.max_value)
    ints, scales = quantize(values, dtype)
    assert ints.dtype == dtype.storage
    assert ints.shape == values.shape
    assert scales.dtype == np.float32
    assert scales.shape == (values.shape[axis],)
    assert (np.abs(ints.astype(np.int32)) <= qmax).all()
    shape = [1] * values.ndim
    shape[axis] = -1
    wide = scales.astype(np.float64).reshape(shape)
    errors = np.abs(values - dequantize(ints, scales, dtype, f64))
    assert (errors <= wide * (0.5 + qmax * 2.0**-23)).all()
    assert np.isfinite(dequantize(ints, scales, dtype)).all()


@given(arrays, st.sampled_from([i8, i4]))
def test_the_written_rule(values: Array, base: DType) -> None:
    ints, scales = quantize(values, base @ scaled(0))
    qmax = np.float32(base.max_value)
    for channel, got, scale in zip(values, ints, scales, strict=True):
        amax = np.abs(channel).max(initial=0)
        if amax == 0:
            assert scale == 1
        elif 2.0**-120 < amax < 2.0**127:
            assert scale == amax / qmax
            assert (got.astype(np.float32) == np.clip(np.rint(channel / scale), -qmax, qmax)).all()
            assert np.abs(got.astype(np.int32)).max() == qmax


def test_an_example() -> None:
    values = np.array([[-1.27, 0.635, 0.005, 0.015], [0, 0, 0, 0], [3, -254, 1, 127]], np.float32)
    ints, scales = quantize(values, i8 @ scaled(0))
    assert scales.tolist() == [np.float32(1.27) / np.float32(127), 1, 2]
    assert ints[1:].tolist() == [[0, 0, 0, 0], [2, -127, 0, 64]]
    assert dequantize(ints, scales, i8 @ scaled(0))[2].tolist() == [4, -254, 0, 128]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_channels_are_independent(axis: int) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    ints, scales = quantize(values, i4 @ scaled(axis))
    for channel in range(values.shape[axis]):
        alone, scale = quantize(np.take(values, [channel], axis), i4 @ scaled(axis))
        assert scale[0] == scales[channel]
        assert (alone == np.take(ints, [channel], axis)).all()


def test_extremes_of_the_range() -> None:
    largest = np.finfo(np.float32).max
    tiny = np.float32(190 * 2.0**-149)
    values = np.array([[largest, -largest], [tiny, -tiny], [np.float32(2.0**-149), 0]], np.float32)
    for dtype in (i8 @ scaled(0), i4 @ scaled(0)):
        ints, scales = quantize(values, dtype)
        assert scales[1:].tolist() == [2.0**-126, 2.0**-126]
        assert ints[0].tolist() == [dtype.max_value, -dtype.max_value]
        back = dequantize(ints, scales, dtype)
        assert np.isfinite(back).all()
        assert abs(float(back[0, 0]) / float(largest) - 1) < 2.0**-22


@pytest.mark.parametrize("dtype", [f64, f16, bf16], ids=str)
def test_other_float_inputs(dtype: DType) -> None:
    values = cast(np.random.default_rng(1).normal(size=(4, 8)), f64, dtype)
    got = quantize(values, i8 @ scaled(0))
    wide = cast(values, dtype, f64 if dtype is f64 else f32)
    want = quantize(wide, i8 @ scaled(0))
    assert (got[0] == want[0]).all()
    assert (got[1] == want[1]).all()


def test_dequantising_rounds_once_into_the_target() -> None:
    ints, scales = quantize(np.linspace(-1, 1, 40, dtype=np.float32).reshape(4, 10), i8 @ scaled(0))
    exact = ints.astype(np.float64) * scales.astype(np.float64)[:, None]
    for target in (f32, bf16, f16 @ saturate):
        got = dequantize(ints, scales, i8 @ scaled(0), target)
        assert (got == cast(exact, f64, target)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_named(bad: float) -> None:
    values = np.zeros((2, 3), np.float32)
    values[1, 2] = bad
    with pytest.raises(DtypeError, match=r"at index \(1, 2\)"):
        quantize(values, i8 @ scaled(0))


@pytest.mark.parametrize("dtype", [i8, i16 @ scaled(0), u8 @ scaled(0), f32], ids=str)
def test_unsupported_types(dtype: DType) -> None:
    with pytest.raises(DtypeError, match="defined for i8 and i4") as caught:
        quantize(np.zeros(3, np.float32), dtype)
    assert "i8 @ scaled(axis)" in str(caught.value.hint)


def test_other_errors() -> None:
    dtype = i8 @ scaled(1)
    with pytest.raises(ShapeError, match="axis 1"):
        quantize(np.zeros(3, np.float32), dtype)
    with pytest.raises(DtypeError, match="takes floats, got i32"):
        quantize(np.zeros((3, 3), np.int32), dtype)
    with pytest.raises(DtypeError, match="channel 1 reaches 1e"):
        quantize(np.array([[1.0, 1e300]]), dtype)
    ints, scales = quantize(np.ones((2, 3), np.float32), dtype)
    with pytest.raises(ShapeError, match="one scale per index of axis 1"):
        dequantize(ints, scales[:2], dtype)
    with pytest.raises(DtypeError, match="int8 integers and float32 scales"):
        dequantize(ints.astype(np.int16), scales, dtype)
    with pytest.raises(DtypeError, match="int4 integers"):
        dequantize(ints, scales, i4 @ scaled(1))
