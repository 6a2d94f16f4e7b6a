"""Philox against its published vectors, and the laws of counter-based streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tessera.dtypes import philox
from tessera.dtypes.casting import cast
from tessera.dtypes.philox import Stream, normal, philox4x32, random_bits, uniform, uniform_in
from tessera.dtypes.types import FLOATS, DType, f32, f64
from tessera.errors import TesseraError

# Random123's kat_vectors: counter, key, result of philox4x32 with 10 rounds.
KNOWN = [
    ([0, 0, 0, 0], (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        (0xA4093822, 0x299F31D0),
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]

seeds = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter: list[int], key: tuple[int, int], result: list[int]) -> None:
    assert philox4x32(np.array(counter, np.uint32), key).tolist() == result
    stacked = np.tile(np.array(counter, np.uint32), (2, 3, 1))
    assert (philox4x32(stacked, key) == np.array(result, np.uint32)).all()


def test_words_are_laid_out_as_written() -> None:
    seed, index = 0x299F31D0A4093822, (5 << 34) + 7
    counter = np.array([(index // 4) % 2**32, (index // 4) >> 32, 2, 0], np.uint32)
    want = philox4x32(counter, (0xA4093822, 0x299F31D0))[index % 4]
    assert random_bits(seed, index, 1, stream=Stream.ROUNDING).tolist() == [want]


@given(seeds, st.integers(0, 2**50), st.integers(0, 40), st.integers(0, 40))
def test_a_stretch_can_be_made_in_pieces(seed: int, offset: int, first: int, second: int) -> None:
    for make in (random_bits, normal):
        whole = make(seed, offset, first + second)
        pieces = np.concatenate((make(seed, offset, first), make(seed, offset + first, second)))
        assert whole.tobytes() == pieces.tobytes()


def test_long_stretches_agree_with_short_ones() -> None:
    whole = random_bits(9, 3, 300_000)
    for start in (0, 65_530, 299_990):
        assert (whole[start : start + 10] == random_bits(9, 3 + start, 10)).all()


def test_the_last_words_of_a_stream() -> None:
    assert random_bits(2**64 - 1, 2**64 - 3, 3).size == 3
    assert normal(1, 2**64 - 3, 3).size == 3


def test_streams_and_seeds_differ() -> None:
    rows = [random_bits(seed, 0, 64, stream=stream) for seed in (0, 1, 2**32) for stream in Stream]
    assert len({row.tobytes() for row in rows}) == len(rows)


def test_uniform_is_the_upper_24_bits() -> None:
    edges = np.array([0, 255, 256, 2**32 - 1], np.uint32)
    assert uniform(edges).tolist() == [0.0, 0.0, 2.0**-24, 1 - 2.0**-24]
    assert uniform(edges).dtype == np.float32


def test_uniform_fills_its_bins_evenly() -> None:
    count, bins = 400_000, 100
    hits = np.bincount((uniform(random_bits(11, 0, count)) * bins).astype(int), minlength=bins)
    chi_square = float(((hits - count / bins) ** 2 / (count / bins)).sum())
    assert abs(chi_square - (bins - 1)) < 4 * math.sqrt(2 * (bins - 1))


def test_normal_has_the_moments_of_a_normal() -> None:
    count = 400_000
    values = normal(5, 0, count).astype(np.float64)
    # Means of zⁿ and their standard deviations for a standard normal z.
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((values**power).mean() - mean) < 4 * math.sqrt(variance / count)
    assert abs(np.corrcoef(values[0::2], values[1::2])[0, 1]) < 4 / math.sqrt(count / 2)
    below = np.mean(values[:, None] < np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), axis=0)
    want = [0.5 * math.erfc(-x / math.sqrt(2)) for x in (-2, -1, 0, 1, 2)]
    assert np.abs(below - want).max() < 4 * math.sqrt(0.25 / count)
    assert normal(5, 0, 3).dtype == np.float32


def test_normal_is_the_written_formula() -> None:
    words = random_bits(21, 0, 1000, stream=Stream.NORMAL).astype(np.float64).tolist()
    got = normal(21, 0, 1000)
    for pair in range(500):
        radius = math.sqrt(-2 * math.log((words[2 * pair] + 1) / 2**32))
        angle = 2 * math.pi * words[2 * pair + 1] / 2**32
        for value, want in zip(got[2 * pair : 2 * pair + 2], (math.cos(angle), math.sin(angle)), strict=True):
            assert abs(value - np.float32(radius * want)) <= np.spacing(np.abs(value))


def test_normal_is_finite_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def extremes(*_: object, **__: object) -> NDArray[np.uint32]:
        return np.array([0, 0, 2**32 - 1, 0], np.uint32)

    monkeypatch.setattr(philox, "random_bits", extremes)
    assert normal(0, 0, 4).tolist() == [np.float32(math.sqrt(64 * math.log(2))), 0, 0, 0]


@pytest.mark.parametrize(
    ("seed", "offset", "count"), [(-1, 0, 1), (2**64, 0, 1), (0, -1, 1), (0, 0, -1), (0, 2**64, 1)]
)
def test_errors(seed: int, offset: int, count: int) -> None:
    with pytest.raises(TesseraError, match=r"64") as caught:
        random_bits(seed, offset, count)
    assert caught.value.hint


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_numbers_are_values_of_their_type_below_one(dtype: DType) -> None:
    bits = np.concatenate((random_bits(3, 0, 1000), np.array([0, 1, 2**31, 2**32 - 1], np.uint32)))
    drawn = uniform_in(dtype, bits)
    assert (cast(cast(drawn, f64, dtype), dtype, f64) == drawn).all()
    assert drawn.min() == 0
    assert drawn.max() < 1
    # The largest is one step below 1, so that the steps cannot be finer.
    step = 1 - drawn.max()
    assert (drawn % step == 0).all()
    assert step == min(float(drawn[drawn > 0].min()), step)
    assert cast(cast(np.array([1 - step / 2]), f64, dtype), dtype, f64)[0] != 1 - step / 2 or step == 2.0**-24


def test_uniform_numbers_of_f32_are_the_plain_ones() -> None:
    bits = random_bits(4, 0, 1000)
    assert (uniform_in(f32, bits) == uniform(bits)).all()
