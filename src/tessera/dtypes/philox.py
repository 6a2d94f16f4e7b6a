"""Counter-based random numbers: Philox 4x32-10, where element `i` depends on the seed and on `i` alone."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera.dtypes.types import DType
from tessera.errors import TesseraError

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_MULTIPLIERS = tuple(map(np.uint64, MULTIPLIERS))
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
# Blocks whose working arrays stay in cache: twice as fast as one pass over everything.
_CHUNK = 1 << 14


class Stream(enum.IntEnum):
    """Uses of one seed that must not see each other's bits; the number is the third counter word."""

    BITS = 0
    NORMAL = 1
    ROUNDING = 2
    DROPOUT = 3
    SPLIT = 4
    FOLD = 5


def philox4x32(counter: NDArray[np.uint32], key: tuple[int, int]) -> NDArray[np.uint32]:
    """Philox 4x32-10 (Salmon et al., 2011): a bijection of the four words on the last axis, chosen by `key`."""
    c0, c1, c2, c3 = (counter[..., word].astype(np.uint64) for word in range(4))
    for number in range(ROUNDS):
        k0, k1 = (np.uint64((key[i] + number * KEY_STEPS[i]) & 0xFFFFFFFF) for i in range(2))
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (right >> _HALF) ^ c1 ^ k0, right & _LOW, (left >> _HALF) ^ c3 ^ k1, left & _LOW
    return np.stack((c0, c1, c2, c3), axis=-1).astype(np.uint32)


def random_bits(seed: int, offset: int, count: int, *, stream: Stream = Stream.BITS) -> NDArray[np.uint32]:
    """Words `offset … offset + count − 1` of the seed's stream.

    Word n is output n mod 4 of the block with counter (n ÷ 4 low, n ÷ 4 high, stream, 0) and key (seed low,
    seed high), so any stretch can be made alone, in any order and on any device.
    """
    if not 0 <= seed < 1 << 64:
        raise TesseraError(f"a seed is a 64-bit number, got {seed}", hint="use a seed from 0 to 2**64 - 1")
    if offset < 0 or count < 0 or offset + count > 1 << 64:
        raise TesseraError(
            f"a random stream has 2**64 words, got offset {offset} and count {count}",
            hint="use an offset and a count of at least 0, and another seed where the stream ends",
        )
    key = (seed & 0xFFFFFFFF, seed >> 32)
    first = offset // 4
    blocks = -(-(offset + count) // 4) - first
    words = np.empty((blocks, 4), np.uint32)
    for start in range(0, blocks, _CHUNK):
        size = min(_CHUNK, blocks - start)
        index = np.arange(size, dtype=np.uint64) + np.uint64(first + start)
        counter = np.empty((size, 4), np.uint32)
        counter[:, 0] = index & _LOW
        counter[:, 1] = index >> _HALF
        counter[:, 2] = stream
        counter[:, 3] = 0
        words[start : start + size] = philox4x32(counter, key)
    skip = offset - 4 * first
    return words.reshape(-1)[skip : skip + count]


def uniform(bits: NDArray[np.uint32]) -> NDArray[np.float32]:
    """The upper 24 bits of each word as a multiple of 2⁻²⁴ in [0, 1)."""
    return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def uniform_digits(dtype: DType) -> int:
    """The most digits, up to 24, that every number in [0, 1) may have in `dtype`: rounding more could reach 1."""
    form = dtype.float_format
    assert form is not None, f"{dtype} has no numbers between 0 and 1"
    return min(24, form.mantissa_bits + 1, form.mantissa_bits - form.min_exponent)


def uniform_in(dtype: DType, bits: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Each word's first digits as a number in [0, 1): equally likely multiples of 2⁻ⁿ, all values of `dtype`."""
    digits = uniform_digits(dtype)
    return (bits >> np.uint32(32 - digits)) * np.float64(2.0**-digits)


def normal(seed: int, offset: int, count: int) -> NDArray[np.float32]:
    """Standard normal numbers by Box–Muller: elements 2p and 2p + 1 are the cosine and sine of one pair of words."""
    first = offset // 2
    pairs = -(-(offset + count) // 2) - first
    words = random_bits(seed, 2 * first, 2 * pairs, stream=Stream.NORMAL).reshape(-1, 2).astype(np.float64)
    # (word + 1)·2⁻³² lies in (0, 1], where the logarithm is finite.
    radius = np.sqrt(-2.0 * np.log((words[:, 0] + 1.0) * 2.0**-32))
    angle = words[:, 1] * (2.0 * np.pi * 2.0**-32)
    values: NDArray[Any] = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1)
    skip = offset - 2 * first
    return values.reshape(-1)[skip : skip + count].astype(np.float32)
