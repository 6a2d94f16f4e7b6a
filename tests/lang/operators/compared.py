"""Operators beside NumPy: arrays with odd values, and how close results have to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tessera as ts
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, Kind, f64

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = (ts.f32, ts.f64, ts.bf16, ts.f16)
INTEGERS = (ts.i32, ts.i64, ts.u8, ts.i8, ts.u32, ts.u64, ts.i16, ts.u16)
ODD_FLOATS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e30, 0.5)

seeds = st.integers(0, 2**32 - 1)


def array(
    dtype: DType, shape: Sequence[int], seed: int, *, low: float = -4.0, high: float = 4.0, odd: bool = True
) -> Array:
    """Elements of a type: mostly between bounds, some of them odd, some equal to others."""
    draw = np.random.default_rng(seed)
    if dtype.kind is Kind.BOOL:
        return draw.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        least, most = max(int(low), int(dtype.min_value)), int(high) + 5
        return draw.integers(least, most, shape).astype(dtype.storage)
    values = draw.uniform(low, high, shape)
    values = np.where(draw.random(shape) < 0.2, np.round(values), values)
    if odd:
        values = np.where(draw.random(shape) < 0.15, draw.choice(ODD_FLOATS, shape), values)
    return cast(np.asarray(values, np.float64), f64, dtype)


def tensor(values: Array, dtype: DType) -> ts.Tensor:
    return ts.Tensor.wrap(np.ascontiguousarray(values).reshape(values.shape), dtype)


def traced(function: Callable[[Any], Any]) -> Any:
    """A jitted function of one argument."""
    return ts.jit(function)


def exactly(found: Any, expected: Any) -> None:
    """Equal elements, shapes and types; NaN equals NaN, and zeros have signs."""
    got, want = found.numpy(), np.asarray(expected)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        plain = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[plain]), np.signbit(want[plain]))


def closely(found: Any, expected: Any, dtype: DType, *, units: float = 4.0, least: float = 0.0) -> None:
    """Within some units in the last digit of the exact result, or within `least`."""
    assert found.dtype.base is dtype.base
    got, want = found.numpy().astype(np.float64), np.asarray(expected, np.float64)
    assert got.shape == want.shape
    rounded = cast(want, f64, dtype.base).astype(np.float64)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    limits = dtype.float_format
    assert limits is not None
    exponents = np.maximum(np.frexp(np.abs(want[~special]))[1] - 1, limits.min_exponent)
    allowed = units * np.ldexp(1.0, exponents - limits.mantissa_bits) + least
    apart = np.abs(got[~special] - want[~special])
    assert (apart <= allowed).all(), (got[~special][apart > allowed], want[~special][apart > allowed])


@st.composite
def shapes(draw: st.DrawFn, *, most: int = 3, least: int = 0, empty: bool = True) -> tuple[int, ...]:
    """A shape of up to `most` axes."""
    rank = draw(st.integers(least, most))
    return tuple(draw(st.sampled_from((1, 2, 3, 5, 7) + ((0,) if empty else ()))) for _ in range(rank))


@st.composite
def broadcasting(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast."""
    whole = draw(shapes())
    found: list[tuple[int, ...]] = []
    for _ in range(2):
        part = tuple(1 if draw(st.booleans()) and draw(st.booleans()) else size for size in whole)
        found.append(part[draw(st.integers(0, len(part))) :] if draw(st.booleans()) else part)
    return found[0], found[1]
