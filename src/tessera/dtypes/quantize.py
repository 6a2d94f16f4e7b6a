"""Symmetric per-channel quantisation: floats to small integers with one f32 scale per channel, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import as_dtype, compute_type
from tessera.dtypes.types import DType, f32, f64, i4, i8
from tessera.errors import DtypeError, ShapeError

Array = NDArray[Any]

# Smaller scales would be subnormal f32 numbers, too coarse to keep every quotient within ±qmax.
_SMALLEST_SCALE = np.float32(2.0**-126)


def quantize(values: Array, dtype: DType) -> tuple[Array, NDArray[np.float32]]:
    """Integers and one scale per index of the channel axis, with `integer · scale` within half a scale of `values`.

    scale = amax / qmax in f32, or 1 where a channel is all zero; integer = value / scale to nearest even, clamped
    to ±qmax. Divisions are done in the compute type of `values`.
    """
    axis = _channel_axis(dtype, values.ndim)
    given = as_dtype(values.dtype)
    if not given.is_float:
        raise DtypeError(f"quantize takes floats, got {given}", hint="cast the values to f32 first")
    work = compute_type(given)
    wide = cast(values, given, work)
    if not np.isfinite(wide).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(wide))[0])
        raise DtypeError(
            f"quantize takes finite numbers, got {wide[index]} at index {index}",
            hint="clamp or mask infinities and NaNs first",
        )
    qmax = work.storage.type(dtype.max_value)
    others = tuple(i for i in range(values.ndim) if i != axis)
    amax = np.abs(wide).max(axis=others, initial=0)
    if (amax > f32.max_value).any():
        channel = int(np.argmax(amax > f32.max_value))
        raise DtypeError(
            f"channel {channel} reaches {amax[channel]:g}, more than an f32 scale can carry",
            hint="scale the values down first",
        )
    scales = np.clip((amax / qmax).astype(np.float32), _SMALLEST_SCALE, _largest_scale(dtype.max_value))
    scales[amax == 0] = 1
    quotients = wide / _along(scales, axis, values.ndim).astype(work.storage)
    integers = np.clip(np.rint(quotients), -qmax, qmax).astype(np.int8)
    return integers.astype(dtype.storage), scales


def dequantize(ints: Array, scales: NDArray[np.float32], dtype: DType, target: DType = f32) -> Array:
    """`integer · scale`, exactly, rounded once into `target`."""
    axis = _channel_axis(dtype, ints.ndim)
    if ints.dtype != dtype.storage or scales.dtype != np.float32:
        raise DtypeError(
            f"dequantize takes {dtype.storage} integers and float32 scales, got {ints.dtype} and {scales.dtype}",
            hint="pass both results of quantize on unchanged",
        )
    if scales.shape != (ints.shape[axis],):
        raise ShapeError(
            f"dequantize needs one scale per index of axis {axis}: {ints.shape[axis]}, got {scales.shape}",
            shapes=[f"ints {ints.shape}", f"scales {scales.shape}"],
            hint="pass both results of quantize on unchanged",
        )
    # 8 bits times 24 bits fit into the 53 of a float64.
    exact = ints.astype(np.float64) * _along(scales, axis, ints.ndim)
    return cast(exact, f64, target)


def _channel_axis(dtype: DType, rank: int) -> int:
    if dtype.base not in (i8, i4) or dtype.policy.scale_axis is None:
        raise DtypeError(
            f"quantisation is defined for i8 and i4 with a channel axis, got {dtype}",
            hint="use i8 @ scaled(axis) or i4 @ scaled(axis); other integer types have no quantisation",
        )
    axis = dtype.policy.scale_axis
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{dtype} has its channels on axis {axis}, got an array of rank {rank}",
            hint="choose an axis that the array has",
        )
    return axis % rank


def _largest_scale(qmax: float) -> np.float32:
    """The largest f32 number whose product with `qmax` is still in range, so that no round trip overflows."""
    nearest = np.float32(f32.max_value / qmax)
    return nearest if float(nearest) * qmax <= f32.max_value else np.nextafter(nearest, np.float32(0))


def _along(scales: NDArray[np.float32], axis: int, rank: int) -> NDArray[np.float32]:
    return scales.reshape([-1 if i == axis else 1 for i in range(rank)])
