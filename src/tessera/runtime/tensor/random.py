"""Random tensors by counters: element i depends on the seed and on offset + i alone, on every device.

With `seed=` the same call gives the same bits everywhere. Without it a fresh seed is drawn from the operating system,
so that two calls differ and neither can be repeated.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from tessera.dtypes import casting, philox
from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.types import DType, f32, f64, i64, u64
from tessera.errors import DtypeError
from tessera.runtime.device.memory import aligned
from tessera.runtime.tensor.creation import DeviceLike, ShapeLike, fresh, sizes_of, taking_sizes
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.operators import nearest
from tessera.runtime.tensor.tensor import Tensor

_LOW_HALF, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@taking_sizes
def randn(
    shape: ShapeLike,
    dtype: DTypeLike = f32,
    device: DeviceLike | None = None,
    *,
    seed: int | None = None,
    offset: int = 0,
) -> Tensor:
    """Standard normal numbers, made in f32 and rounded once."""
    sizes, target, key = sizes_of(shape), float_type(dtype, "randn"), _key(seed)
    values = philox.normal(key, offset, math.prod(sizes)).reshape(sizes)
    return fresh(aligned(casting.cast(values, f32, target, seed=key, offset=offset)), target, device)


def randn_like(
    x: Tensor,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    *,
    seed: int | None = None,
    offset: int = 0,
) -> Tensor:
    """Standard normal numbers in the shape of `x`, and in its dtype and on its device unless others are named."""
    return randn(x.shape, dtype or x.dtype, device or x.device, seed=seed, offset=offset)


@taking_sizes
def rand(
    shape: ShapeLike,
    dtype: DTypeLike = f32,
    device: DeviceLike | None = None,
    *,
    seed: int | None = None,
    offset: int = 0,
) -> Tensor:
    """Uniform numbers in [0, 1): equally likely multiples of a power of two that `dtype` holds exactly, 2⁻²⁴ in f32."""
    sizes, target = sizes_of(shape), float_type(dtype, "rand")
    words = philox.random_bits(_key(seed), offset, math.prod(sizes)).reshape(sizes)
    values = philox.uniform_in(target, words)
    return fresh(aligned(casting.cast(values, f64, nearest(target))), target, device)


def randint(
    low: int,
    high: int,
    shape: ShapeLike,
    dtype: DTypeLike = i64,
    device: DeviceLike | None = None,
    *,
    seed: int | None = None,
    offset: int = 0,
) -> Tensor:
    """Integers from `low` to `high` - 1, each from 64 random bits: no value is likelier by more than 2⁻⁶⁴."""
    sizes, target = sizes_of(shape), integer_type(dtype, low, high, "rand")
    words = philox.random_bits(_key(seed), 2 * offset, 2 * math.prod(sizes)).astype(np.uint64).reshape(-1, 2)
    # Adding in 64 bits wraps around, which gives the right sum of an unsigned distance and a negative `low`.
    values = _scaled(words, high - low) + np.uint64(low % 2**64)
    return fresh(aligned(casting.cast(values, u64, target.base).reshape(sizes)), target, device)


def _scaled(words: NDArray[np.uint64], span: int) -> NDArray[np.uint64]:
    """floor(w · span / 2⁶⁴) for each 64-bit number w, given as its upper and lower half."""
    upper, lower = words[:, 0], words[:, 1]
    if span == 1 << 64:
        return upper << _HALF | lower
    span_upper, span_lower = np.uint64(span >> 32), np.uint64(span & 0xFFFFFFFF)
    middle = upper * span_lower + (lower * span_lower >> _HALF)
    other = lower * span_upper + (middle & _LOW_HALF)
    return upper * span_upper + (middle >> _HALF) + (other >> _HALF)


def integer_type(dtype: DTypeLike, low: int, high: int, otherwise: str) -> DType:
    """The type of `randint`, which has to hold its integers; `otherwise` names the function that gives floats."""
    target = as_dtype(dtype)
    if not target.is_integer:
        raise DtypeError(
            f"randint gives integers, {target} was asked for", hint=f"use an integer dtype, or {otherwise}"
        )
    if not target.min_value <= low < high <= target.max_value + 1:
        raise DtypeError(
            f"the integers from {low} to {high} - 1 are none, or not all in {target}",
            hint=f"low < high, both within {target.min_value} … {target.max_value} + 1",
        )
    return target


def float_type(dtype: DTypeLike, where: str) -> DType:
    """The type of a function `where` that gives floats."""
    target = as_dtype(dtype)
    if not target.is_float:
        raise DtypeError(f"{where} gives floats, {target} was asked for", hint="use a float dtype, or randint")
    return target


def _key(seed: int | None) -> int:
    return int.from_bytes(os.urandom(8), "little") if seed is None else seed
