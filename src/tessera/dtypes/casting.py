"""The reference meaning of a typed cast: one rounding, decided by the types, the seed and the element's index."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera.dtypes.philox import Stream, random_bits
from tessera.dtypes.promotion import can_cast
from tessera.dtypes.types import FLOATS, DType, FloatFormat, Kind, Specials, f16, f32, f64, i8, i64, tf32, u8, u64
from tessera.errors import DtypeError

Array = NDArray[Any]

_HALF = np.uint64(1 << 63)
# Working arrays of this many elements stay in cache.
_CHUNK = 1 << 15


def cast(values: Array, source: DType, target: DType, *, seed: int | None = None, offset: int = 0) -> Array:
    """`values` of type `source` as an array of type `target`; docs/numerics.md is the written meaning.

    Under stochastic rounding element i (in C order) is rounded by word `offset + i` of the seed's rounding
    stream, so that an array cast in pieces gives the same bits as the whole.
    """
    if values.dtype != source.storage:
        raise DtypeError(
            f"expected {source} values, stored as {source.storage}, got an array of {values.dtype}",
            hint="name the type that the array has",
        )
    flat = np.ascontiguousarray(values).reshape(-1)
    if source is target:
        return flat.copy().reshape(values.shape)
    _check_castable(source, target, seed)
    if source.kind is Kind.BOOL:
        flat, source = flat.view(np.uint8), u8
    # Overflow, underflow and NaN have defined results here, so NumPy need not warn of them.
    with np.errstate(all="ignore"):
        if target.kind is Kind.BOOL:
            result = _wider(flat, source) != 0
        elif target.float_format is not None:
            result = _to_float(flat, source, target, target.float_format, seed, offset)
        elif source.is_float:
            result = _float_to_integer(flat, source, target)
        else:
            result = _integer_to_integer(flat, source, target)
    return result.reshape(values.shape)


def _check_castable(source: DType, target: DType, seed: int | None) -> None:
    if target.policy.scale_axis is not None:
        raise DtypeError(f"{source} cannot be cast to {target}: its scales depend on the values", hint="use quantize")
    if source.policy.scale_axis is not None:
        raise DtypeError(f"{source} cannot be cast without its scales", hint="use dequantize")
    if target.policy.stochastic and seed is None:
        raise DtypeError(
            f"casting to {target} rounds at random and needs a seed, got none", hint="pass seed=<64-bit number>"
        )


def _wider(flat: Array, source: DType) -> Array:
    """The same values in a NumPy type that computes natively: f32, f64 or integers of 8 bits and more."""
    if source.is_float:
        return flat if source.storage in (f32.storage, f64.storage) else flat.astype(np.float32)
    if source.bits >= 8:
        return flat
    return flat.astype(i8.storage if source.kind is Kind.INT else u8.storage)


def _exponent_shift(source: DType, target: DType) -> int:
    """log2 of what a cast multiplies by: out of the source's loss scale, into the target's."""
    return sum(
        sign * (math.frexp(dtype.policy.loss_scale)[1] - 1)
        for sign, dtype in ((1, target), (-1, source))
        if dtype.policy.loss_scale is not None
    )


def _integer_to_integer(flat: Array, source: DType, target: DType) -> Array:
    flat = _wider(flat, source)
    if target.policy.saturate:
        low = max(source.min_value, target.min_value)
        high = min(source.max_value, target.max_value)
        flat = np.clip(flat, flat.dtype.type(low), flat.dtype.type(high))
    return flat.astype(target.storage)


def _float_to_integer(flat: Array, source: DType, target: DType) -> Array:
    """Toward zero, clamped to the target's range; NaN becomes 0."""
    # Where ldexp rounds, it does so far outside the integers' range or below 1.
    wide = np.ldexp(flat.astype(np.float64), _exponent_shift(source, target))
    # Both limits are powers of two or 0, hence exact; NumPy's own conversion is defined only between them.
    low, limit = float(target.min_value), float(int(target.max_value) + 1)
    result = np.where((wide >= low) & (wide < limit), wide, 0.0).astype(np.int64 if low else np.uint64)
    result[wide >= limit] = target.max_value
    result[wide < low] = target.min_value
    return result.astype(target.storage)


@dataclass(frozen=True, slots=True)
class _Encoding:
    """A float format under an overflow rule, as numbers: a code is the bits of a value without its sign."""

    format: FloatFormat
    largest: int
    overflow: int
    nan: int
    word: np.dtype[Any]
    padding: int

    @property
    def sign_position(self) -> int:
        return self.format.exponent_bits + self.format.mantissa_bits


@functools.cache
def _encoding(dtype: DType, fmt: FloatFormat) -> _Encoding:
    codes = 1 << (fmt.exponent_bits + fmt.mantissa_bits)
    top = codes - (1 << fmt.mantissa_bits)
    largest, infinity, nan = {
        Specials.IEEE: (top - 1, top, top + (1 << (fmt.mantissa_bits - 1))),
        Specials.NAN_ONLY: (codes - 2, codes - 1, codes - 1),
        Specials.FINITE: (codes - 1, codes - 1, codes - 1),
    }[fmt.specials]
    overflow = largest if dtype.policy.saturate else infinity
    word = np.dtype(f"u{dtype.storage.itemsize}")
    padding = f32.bits - tf32.bits if dtype.base is tf32 else 0
    return _Encoding(fmt, largest, overflow, nan, word, padding)


def _to_float(flat: Array, source: DType, target: DType, fmt: FloatFormat, seed: int | None, offset: int) -> Array:
    encoding = _encoding(target, fmt)
    shift = _exponent_shift(source, target)
    if not target.policy.stochastic and shift == 0:
        carrier = storage_carrier(source.base, target.base)
        if carrier is not None:
            return _by_storage(flat.astype(carrier.storage, copy=False), target, encoding)
    result = np.empty(flat.size, target.storage)
    for start in range(0, flat.size, _CHUNK):
        piece = flat[start : start + _CHUNK]
        bits = None
        if target.policy.stochastic and seed is not None:
            bits = random_bits(seed, offset + start, piece.size, stream=Stream.ROUNDING)
        result[start : start + _CHUNK] = _round(_parts(piece, source), shift, encoding, bits).view(target.storage)
    return result


# Where the conversions of NumPy and ml_dtypes round once, to nearest even. (ml_dtypes takes f64 through f32.)
_ROUNDED_BY_STORAGE: dict[DType, frozenset[DType]] = {
    f32: frozenset(FLOATS) - {f64, tf32},
    f64: frozenset({f64, f32, f16}),
    i64: frozenset({f64, f32}),
    u64: frozenset({f64, f32}),
}


@functools.cache
def storage_carrier(source: DType, target: DType) -> DType | None:
    """A type that holds every source value and from which the storage rounds correctly to the target."""
    fitting = (wide for wide, targets in _ROUNDED_BY_STORAGE.items() if target in targets)
    return next((wide for wide in fitting if can_cast(source, wide)), None)


def _by_storage(carrier: Array, target: DType, encoding: _Encoding) -> Array:
    """The target's storage rounds; overflow and NaN follow our rules."""
    if target.policy.saturate and carrier.dtype.kind == "f":
        carrier = np.clip(carrier, carrier.dtype.type(target.min_value), carrier.dtype.type(target.max_value))
    if encoding.format.specials is Specials.FINITE:
        carrier = np.where(np.isnan(carrier), carrier.dtype.type(target.max_value), carrier)
    result = carrier.astype(target.storage)
    if encoding.format.specials is not Specials.FINITE:
        result.view(encoding.word)[np.isnan(result)] = encoding.nan
    return result


@dataclass(frozen=True, slots=True)
class _Parts:
    """Numbers as ±magnitude · 2^(exponent − 63), where a magnitude other than 0 has its top bit set."""

    negative: NDArray[np.bool_]
    magnitude: NDArray[np.uint64]
    exponent: NDArray[np.int64]
    infinite: NDArray[np.bool_] | None = None
    nan: NDArray[np.bool_] | None = None


def _parts(flat: Array, source: DType) -> _Parts:
    if not can_cast(source.base, f64):
        return _integer_parts(flat)
    wide = flat.astype(np.float64)
    infinite, nan = np.isinf(wide), np.isnan(wide)
    fraction, exponent = np.frexp(np.where(infinite | nan, 0.0, np.abs(wide)))
    magnitude = np.ldexp(fraction, 64).astype(np.uint64)
    return _Parts(np.signbit(wide), magnitude, exponent.astype(np.int64) - 1, infinite, nan)


def _integer_parts(flat: Array) -> _Parts:
    """64-bit integers, which a float64 does not hold."""
    negative = flat < 0
    words = flat.view(np.uint64)
    magnitude = np.where(negative, ~words + np.uint64(1), words)
    # The bit length in two halves that a float64 holds exactly.
    upper, lower = magnitude >> np.uint64(32), magnitude & np.uint64(0xFFFFFFFF)
    length = np.where(upper > 0, 32 + _bit_length(upper), _bit_length(lower))
    return _Parts(negative, magnitude << np.minimum(64 - length, 63).astype(np.uint64), length - 1)


def _bit_length(small: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.frexp(small.astype(np.float64))[1].astype(np.int64)


def _round(parts: _Parts, shift: int, encoding: _Encoding, bits: NDArray[np.uint32] | None) -> Array:
    """Words of the target's storage, rounded to nearest even, or at random where `bits` are given."""
    fmt = encoding.format
    exponent = parts.exponent + shift
    # Of the 64 bits of a magnitude the target keeps one more than its mantissa has, fewer when subnormal.
    dropped = np.clip(fmt.min_exponent - exponent, 0, 128) + (63 - fmt.mantissa_bits)
    units = np.where(dropped < 64, parts.magnitude >> np.minimum(dropped, 63).astype(np.uint64), 0)
    below = np.where(
        dropped <= 64,
        parts.magnitude << np.clip(64 - dropped, 0, 63).astype(np.uint64),
        np.where(dropped < 128, parts.magnitude >> np.clip(dropped - 64, 0, 63).astype(np.uint64), 0),
    )
    # `below` is what was dropped, as a fraction of a unit in 64 bits, truncated where it is less than half.
    if bits is None:
        up = (below > _HALF) | ((below == _HALF) & (units & np.uint64(1) == 1))
    else:
        up = below >> np.uint64(32) > bits
    # The hidden bit and a carry of the rounding add themselves to the exponent field.
    field = np.clip(exponent - fmt.min_exponent, 0, (1 << fmt.exponent_bits) - 1).astype(np.uint64)
    code = (field << np.uint64(fmt.mantissa_bits)) + units + up
    code[parts.magnitude == 0] = 0
    too_large = code > encoding.largest
    if parts.infinite is not None:
        too_large |= parts.infinite
    code[too_large] = encoding.overflow
    code |= parts.negative.astype(np.uint64) << np.uint64(encoding.sign_position)
    if fmt.specials is Specials.NAN_ONLY and encoding.overflow == encoding.nan:
        code[too_large] = encoding.nan
    if parts.nan is not None:
        code[parts.nan] = encoding.nan
    return (code << np.uint64(encoding.padding)).astype(encoding.word)
