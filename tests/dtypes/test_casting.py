"""Casts, bit for bit against a second implementation of docs/numerics.md in exact rational arithmetic."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tessera.dtypes import casting, philox
from tessera.dtypes.casting import cast
from tessera.dtypes.types import (
    ALL,
    FLOATS,
    NO_POLICY,
    DType,
    Kind,
    Policy,
    bf16,
    bool_,
    f4e2m1,
    f6e3m2,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i4,
    i8,
    i32,
    i64,
    loss_scale,
    saturate,
    scaled,
    stochastic_round,
    tf32,
    u8,
    u64,
)
from tessera.errors import DtypeError

Array = NDArray[Any]
SMALL = tuple(dtype for dtype in ALL if dtype.bits <= 8)

# --- The second implementation. Codes are plain integers: the bits of one element, without padding. ---


@dataclass(frozen=True)
class Format:
    bits: int
    exponent: int
    mantissa: int
    bias: int
    special: str

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        return self.sign - (1 << self.mantissa)

    @property
    def largest(self) -> int:
        return {"IEEE": self.infinity - 1, "NaN only": self.sign - 2, "finite": self.sign - 1}[self.special]

    @property
    def nan(self) -> int:
        """What a cast writes for NaN; the largest number where there is none."""
        return {"IEEE": self.infinity + (1 << self.mantissa >> 1)}.get(self.special, self.sign - 1)


def read_formats() -> dict[str, Format]:
    document = Path(__file__).parents[2] / "docs" / "numerics.md"
    rows = [line.strip("|\n ").split(" | ") for line in document.read_text(encoding="utf-8").splitlines()]
    names = {dtype.name for dtype in FLOATS}
    return {row[0]: Format(*map(int, row[1:5]), special=row[7]) for row in rows if row[0] in names}


FORMATS = read_formats()


@dataclass(frozen=True)
class Value:
    negative: bool
    magnitude: Fraction | Literal["infinity", "nan"]


def decode(code: int, dtype: DType) -> Value:
    fmt = FORMATS.get(dtype.name)
    if fmt is None:
        if dtype.kind is Kind.INT and code >= 1 << (dtype.bits - 1):
            return Value(True, Fraction((1 << dtype.bits) - code))
        return Value(False, Fraction(code))
    negative, rest = code >= fmt.sign, code % fmt.sign
    if fmt.special == "IEEE" and rest >= fmt.infinity:
        return Value(negative, "infinity" if rest == fmt.infinity else "nan")
    if fmt.special == "NaN only" and rest == fmt.sign - 1:
        return Value(negative, "nan")
    return Value(negative, magnitude_of(rest, fmt))


def magnitude_of(code: int, fmt: Format) -> Fraction:
    """The number that a code without sign stands for if no code is special."""
    e, m = divmod(code, 1 << fmt.mantissa)
    if e == 0:
        return m * Fraction(2) ** (1 - fmt.bias - fmt.mantissa)
    return (2**fmt.mantissa + m) * Fraction(2) ** (e - fmt.bias - fmt.mantissa)


def floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def spacing_at(magnitude: Fraction, fmt: Format) -> Fraction:
    return Fraction(2) ** (max(floor_log2(magnitude), 1 - fmt.bias) - fmt.mantissa)


def to_float_code(value: Value, dtype: DType, word: int | None) -> int:
    fmt = FORMATS[dtype.name]
    if value.magnitude == "nan":
        return fmt.nan
    sign = fmt.sign * value.negative
    clamp = dtype.policy.saturate or fmt.special == "finite"
    overflow = sign + fmt.largest if clamp else fmt.nan if fmt.special == "NaN only" else sign + fmt.infinity
    if value.magnitude == "infinity":
        return overflow
    if value.magnitude == 0:
        return sign
    spacing = spacing_at(value.magnitude, fmt)
    units, rest = divmod(value.magnitude, spacing)
    if word is not None:
        units += word < 2**32 * rest // spacing
    elif 2 * rest > spacing or (2 * rest == spacing and units % 2 == 1):
        units += 1
    rounded = units * spacing
    if rounded > magnitude_of(fmt.largest, fmt):
        return overflow
    if rounded < Fraction(2) ** (1 - fmt.bias):
        return sign + int(rounded / Fraction(2) ** (1 - fmt.bias - fmt.mantissa))
    exponent = floor_log2(rounded)
    fraction = rounded / Fraction(2) ** exponent - 1
    return sign + ((exponent + fmt.bias) << fmt.mantissa) + int(fraction * 2**fmt.mantissa)


def to_integer_code(value: Value, from_float: bool, dtype: DType) -> int:
    low = -(1 << (dtype.bits - 1)) if dtype.kind is Kind.INT else 0
    high = low + (1 << dtype.bits) - 1
    if value.magnitude == "nan":
        return 0
    if value.magnitude == "infinity":
        number = low if value.negative else high
    else:
        number = int(value.magnitude) * (-1 if value.negative else 1)
    if from_float or dtype.policy.saturate:
        number = max(low, min(high, number))
    return number % (1 << dtype.bits)


def scaled_value(code: int, source: DType, target: DType) -> Value:
    value = decode(code, source)
    if not isinstance(value.magnitude, Fraction):
        return value
    scale = Fraction(target.policy.loss_scale or 1) / Fraction(source.policy.loss_scale or 1)
    return Value(value.negative, value.magnitude * scale)


def expected_code(code: int, source: DType, target: DType, word: int | None = None) -> int:
    if source is target:
        return code
    value = scaled_value(code, source, target)
    if target.kind is Kind.BOOL:
        return int(value.magnitude != 0)
    if target.is_float:
        return to_float_code(value, target, word)
    return to_integer_code(value, source.is_float, target)


# --- Codes in arrays. ---


def padding(dtype: DType) -> int:
    return 13 if dtype.base is tf32 else 0


def array_of(codes: Sequence[int] | Array, dtype: DType) -> Array:
    words = np.asarray(codes, np.uint64) << np.uint64(padding(dtype))
    return words.astype(f"u{dtype.storage.itemsize}").view(dtype.storage)


def codes_of(values: Array, dtype: DType) -> Array:
    assert values.dtype == dtype.storage
    words = values.view(f"u{dtype.storage.itemsize}").astype(np.uint64)
    assert not (words & np.uint64((1 << padding(dtype)) - 1)).any()
    return words >> np.uint64(padding(dtype))


def numbers_of(values: Array) -> Array:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return values.astype(np.float64)


def check(codes: Sequence[int], source: DType, target: DType) -> None:
    got = codes_of(cast(array_of(codes, source), source, target), target).tolist()
    want = [expected_code(code, source, target) for code in codes]
    wrong = [(hex(c), hex(g), hex(w)) for c, g, w in zip(codes, got, want, strict=True) if g != w]
    assert not wrong, f"{source} -> {target}: (source, got, want) {wrong[:5]}"


def all_codes(dtype: DType) -> range:
    return range(1 << dtype.bits)


@functools.cache
def some_codes(dtype: DType, count: int = 200) -> list[int]:
    """Zeros, ones, limits, infinities, NaNs and their neighbours, then random codes."""
    limit = 1 << dtype.bits
    corners = [0, 1, limit // 2, limit - 1]
    if (fmt := FORMATS.get(dtype.name)) is not None:
        corners += [code + sign for sign in (0, fmt.sign) for code in (fmt.largest, fmt.infinity, fmt.nan)]
    near = {(corner + step) % limit for corner in corners for step in (-1, 0, 1)}
    rng = np.random.default_rng(dtype.bits)
    return sorted(near) + [int.from_bytes(rng.bytes(8)) % limit for _ in range(count)]


# --- The tests. ---


def test_the_document_and_the_types_agree() -> None:
    assert set(FORMATS) == {dtype.name for dtype in FLOATS}
    for dtype in FLOATS:
        written, built = FORMATS[dtype.name], dtype.float_format
        assert built is not None
        assert (written.bits, written.exponent, written.mantissa, written.bias) == (
            dtype.bits,
            built.exponent_bits,
            built.mantissa_bits,
            built.bias,
        )
        assert magnitude_of(written.largest, written) == Fraction(built.max_finite)
        assert magnitude_of(1, written) == Fraction(built.smallest_subnormal)


@pytest.mark.quick(3)
@pytest.mark.parametrize("dtype", [dtype for dtype in FLOATS if dtype.bits <= 16], ids=str)
def test_the_formats_are_those_of_the_storage(dtype: DType) -> None:
    stored = numbers_of(array_of(all_codes(dtype), dtype))
    for code, got in zip(all_codes(dtype), stored.tolist(), strict=True):
        value = decode(code, dtype)
        if value.magnitude == "nan":
            assert np.isnan(got)
        else:
            assert np.signbit(got) == value.negative
            assert abs(got) == (np.inf if value.magnitude == "infinity" else value.magnitude)


@pytest.mark.parametrize("source", SMALL, ids=str)
def test_every_value_between_all_types_up_to_8_bits(source: DType) -> None:
    for target in SMALL:
        check(all_codes(source), source, target)
        check(all_codes(source), source, target @ saturate)


@pytest.mark.parametrize("source", [bf16, f16], ids=str)
def test_16_bit_floats_to_wider_types(source: DType) -> None:
    for target in (dtype for dtype in ALL if dtype not in SMALL):
        check(some_codes(source), source, target)
        check(some_codes(source), source, target @ saturate)


@pytest.mark.parametrize("source", [dtype for dtype in ALL if dtype not in SMALL], ids=str)
def test_corners_and_random_codes_of_wide_types(source: DType) -> None:
    for target in ALL:
        check(some_codes(source, 30), source, target)
        check(some_codes(source, 30), source, target @ saturate)


@st.composite
def casts(draw: st.DrawFn) -> tuple[DType, DType, list[int]]:
    """A source, a target with a random policy, and codes: any bits, or next to a halfway point of the target."""
    source, target = draw(st.sampled_from(ALL)), draw(st.sampled_from(ALL))
    scales = st.none() | st.integers(-200, 200).map(lambda k: 2.0**k)
    if source.is_float and (factor := draw(scales)) is not None:
        source @= loss_scale(factor)
    if target.is_float and (factor := draw(scales)) is not None:
        target @= loss_scale(factor)
    if draw(st.booleans()):
        target @= saturate
    raw = st.integers(0, (1 << source.bits) - 1)
    if target.is_float:
        fmt = FORMATS[target.name]

        def halfway(code: int, step: int) -> int:
            middle = (magnitude_of(code % fmt.sign, fmt) + magnitude_of(code % fmt.sign + 1, fmt)) / 2
            back = Fraction(source.policy.loss_scale or 1) / Fraction(target.policy.loss_scale or 1)
            value = Value(code >= fmt.sign, middle * back)
            near = to_float_code(value, source, None) if source.is_float else to_integer_code(value, True, source)
            return (near + step) % (1 << source.bits)

        raw |= st.builds(halfway, st.integers(0, 2 * fmt.sign - 1), st.integers(-1, 1))
    return source, target, draw(st.lists(raw, min_size=1, max_size=16))


@settings(max_examples=600, deadline=None)
@given(casts())
def test_any_cast(drawn: tuple[DType, DType, list[int]]) -> None:
    source, target, codes = drawn
    check(codes, source, target)


@settings(max_examples=300, deadline=None)
@given(casts(), st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_any_stochastic_cast(drawn: tuple[DType, DType, list[int]], seed: int, offset: int) -> None:
    source, target, codes = drawn
    if not target.is_float:
        target = f16
    target @= stochastic_round
    words = philox.random_bits(seed, offset, len(codes), stream=philox.Stream.ROUNDING).tolist()
    got = codes_of(cast(array_of(codes, source), source, target, seed=seed, offset=offset), target).tolist()
    assert got == [expected_code(c, source, target, w) for c, w in zip(codes, words, strict=True)]


@settings(max_examples=300, deadline=None)
@given(casts(), st.integers(-1, 1))
def test_random_words_beside_the_threshold(drawn: tuple[DType, DType, list[int]], step: int) -> None:
    """The smallest word that goes up, its neighbours and 0 are too rare to be met by chance."""
    source, target, codes = drawn
    if not target.is_float:
        target = bf16
    target @= stochastic_round
    for zeros in (True, False):
        words: list[int] = []
        for code in codes:
            magnitude = scaled_value(code, source, target).magnitude
            threshold = 0
            if isinstance(magnitude, Fraction) and magnitude and not zeros:
                spacing = spacing_at(magnitude, FORMATS[target.name])
                threshold = int(2**32 * (magnitude % spacing) // spacing)
            words.append(max(0, min(2**32 - 1, threshold + step)))

        def chosen(*_: object, words: list[int] = words, **__: object) -> Array:
            return np.array(words, np.uint32)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(casting, "random_bits", chosen)
            got = codes_of(cast(array_of(codes, source), source, target, seed=0), target).tolist()
        assert got == [expected_code(c, source, target, w) for c, w in zip(codes, words, strict=True)]


class Steps:
    """Rounding to nearest even as a staircase over magnitudes: where each code of a small format begins."""

    def __init__(self, target: DType) -> None:
        self.target = target
        self.fmt = FORMATS[target.name]
        numbers = [magnitude_of(code, self.fmt) for code in range(self.fmt.largest + 2)]
        middles = [(low + high) / 2 for low, high in pairwise(numbers)]
        self.middles = np.array([float(middle) for middle in middles])
        assert [Fraction(middle) for middle in self.middles.tolist()] == middles

    def codes(self, values: Array) -> Array:
        """The codes of f64 numbers, infinities and NaNs."""
        low = np.searchsorted(self.middles, np.abs(values), side="left")
        high = np.searchsorted(self.middles, np.abs(values), side="right")
        return self.finish(np.where(low % 2 == 0, low, high), np.signbit(values), np.isnan(values))

    def finish(self, magnitudes: Array, negative: Array, nan: Array) -> Array:
        fmt = self.fmt
        sign = np.where(negative, fmt.sign, 0)
        too_large = magnitudes > fmt.largest
        clamp = self.target.policy.saturate or fmt.special == "finite"
        codes = sign + np.where(too_large, fmt.largest if clamp else fmt.infinity, magnitudes)
        if fmt.special == "NaN only" and not clamp:
            codes[too_large] = fmt.nan
        codes[nan] = fmt.nan
        return codes.astype(np.uint64)


SMALL_FLOATS = tuple(dtype for dtype in FLOATS if dtype.bits <= 16)


@pytest.mark.parametrize("clamp", [NO_POLICY, saturate], ids=["plain", "saturate"])
@pytest.mark.parametrize("source", [bf16, f16], ids=str)
def test_every_16_bit_float_to_all_types_up_to_8_bits(source: DType, clamp: Policy) -> None:
    values = array_of(all_codes(source), source)
    numbers = numbers_of(values)
    for target in (small @ clamp for small in SMALL):
        got = codes_of(cast(values, source, target), target)
        if target.is_float:
            want = Steps(target).codes(numbers)
        elif target is bool_ or target is bool_ @ saturate:
            want = numbers != 0
        else:
            clamped = np.clip(np.trunc(np.nan_to_num(numbers, nan=0.0)), target.min_value, target.max_value)
            want = clamped.astype(np.int64) % (1 << target.bits)
        np.testing.assert_array_equal(got, want, f"{source} -> {target}")


@pytest.mark.quick(5)
@pytest.mark.parametrize("target", SMALL_FLOATS, ids=str)
@pytest.mark.parametrize("source", [f32, f64], ids=str)
def test_wide_floats_around_every_halfway_point_of_small_formats(source: DType, target: DType) -> None:
    steps = Steps(target)
    middles = steps.middles.astype(source.storage)
    up, down = (np.nextafter(middles, source.storage.type(end)) for end in (np.inf, 0))
    random = np.random.default_rng(7).integers(0, 1 << source.bits, 100_000, np.uint64, endpoint=False)
    values = np.concatenate((middles, up, down, -middles, -up, -down, array_of(random, source)))
    got = codes_of(cast(values, source, target), target)
    np.testing.assert_array_equal(got, steps.codes(numbers_of(values)))


FAST = [
    (source, target)
    for source, target in product(ALL, FLOATS)
    if source is not target and source.bits > 8 and casting.storage_carrier(source, target) is not None
]


def no_carrier(source: DType, target: DType) -> None:
    """Sends a cast the general way."""


@pytest.mark.parametrize(("source", "target"), FAST, ids=str)
def test_conversion_by_storage_equals_rounding_by_integers(
    source: DType, target: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3).integers(0, (1 << source.bits) - 1, 20_000, np.uint64, endpoint=True)
    values = array_of(np.concatenate((random, np.array(some_codes(source), np.uint64))), source)
    fast = [codes_of(cast(values, source, target @ clamp), target) for clamp in (NO_POLICY, saturate)]
    monkeypatch.setattr(casting, "storage_carrier", no_carrier)
    slow = [codes_of(cast(values, source, target @ clamp), target) for clamp in (NO_POLICY, saturate)]
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.acceptance
@pytest.mark.parametrize("target", SMALL_FLOATS, ids=str)
def test_every_f32_value_to_small_floats(target: DType) -> None:
    steps = Steps(target)
    word = f"u{target.storage.itemsize}"
    begins = steps.middles.astype(np.float32).view(np.uint32).astype(np.int64)
    # A halfway point belongs to the even neighbour: code n begins at its middle if n is even, just above it if odd.
    begins += (np.arange(begins.size) + 1) % 2
    infinity, chunk = 0x7F800000, 1 << 18
    for negative in (False, True):
        every = np.arange(begins.size + 1)
        codes = steps.finish(every, np.full(every.size, negative), every < 0).astype(word)
        for first in range(0, 1 << 31, chunk):
            low, high = (int(np.searchsorted(begins, end, side="right")) for end in (first, first + chunk - 1))
            edges = np.concatenate(([first], begins[low:high], [first + chunk]))
            want = np.repeat(codes[low : high + 1], np.diff(edges))
            want[max(0, infinity + 1 - first) :] = steps.fmt.nan
            words = np.arange(first, first + chunk, dtype=np.uint32) | np.uint32(negative << 31)
            got = cast(words.view(np.float32), f32, target).view(word)
            assert np.array_equal(got, want), hex(first)


def bits(values: Array) -> list[int]:
    return values.view(f"u{values.dtype.itemsize}").tolist()


def test_overflow_saturates_where_ml_dtypes_gives_nan() -> None:
    values = np.array([464.0, 465.0, 1e30, np.inf, -np.inf, np.nan], np.float32)
    assert bits(values.astype(f8e4m3.storage)) == [0x7E, 0x7F, 0x7F, 0x7F, 0xFF, 0x7F]
    assert bits(cast(values, f32, f8e4m3)) == [0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F]
    assert bits(cast(values, f32, f8e4m3 @ saturate)) == [0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x7F]
    assert cast(values, f32, f8e5m2 @ saturate)[2:5].tolist() == [57344, 57344, -57344]
    assert cast(values, f32, f6e3m2).tolist() == [28, 28, 28, 28, -28, 28]
    assert cast(np.array([-np.inf, -np.nan]), f64, f4e2m1).tolist() == [-6, 6]


def test_nothing_is_rounded_twice() -> None:
    above_half = np.array([1 + 2**-8 + 2**-40], np.float64)
    assert above_half.astype(bf16.storage).tolist() == [1.0]
    assert cast(above_half, f64, bf16).tolist() == [1 + 2**-7]
    assert cast(np.array([2**63 + 2**39 + 1], np.uint64), u64, f32).tolist() == [2**63 + 2**40]
    assert cast(np.array([2**62 + 2**54 + 1]), i64, bf16).tolist() == [2**62 + 2**55]


def test_integers_to_f16_are_rounded_once() -> None:
    # 2¹⁵ + 2⁴ is halfway between two f16 numbers, and one more is not.
    values = np.array([2**15 + 2**4, 2**15 + 2**4 + 1, -(2**15) - 2**4 - 1, 65519, 65520], np.int32)
    assert cast(values, i32, f16).tolist() == [2**15, 2**15 + 2**5, -(2**15) - 2**5, 65504, np.inf]


def test_float_to_integer_is_total() -> None:
    values = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, -0.9, 127.9, 128.0, -128.9], np.float64)
    assert cast(values, f64, i8).tolist() == [127, -128, 127, -128, 0, 0, 127, 127, -128]
    assert cast(values, f64, u8).tolist() == [255, 0, 255, 0, 0, 0, 127, 128, 0]
    assert cast(values, f64, i64).tolist()[:5] == [2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 0]
    assert cast(values, f64, u64).tolist()[:5] == [2**64 - 1, 0, 2**64 - 1, 0, 0]


def test_loss_scale_multiplies_in_and_divides_out() -> None:
    scaled_f16 = f16 @ loss_scale(1024)
    small = np.array([2.0**-30, -(2.0**-34), 100.0], np.float32)
    stored = cast(small, f32, scaled_f16)
    assert stored.tolist() == [2.0**-20, -(2.0**-24), np.inf]
    assert cast(stored, scaled_f16, f32).tolist() == [2.0**-30, -(2.0**-34), np.inf]
    assert cast(stored[:2], scaled_f16, f16 @ loss_scale(2048)).tolist() == [2.0**-19, -(2.0**-23)]
    assert cast(stored[:2], scaled_f16, f16 @ loss_scale(512)).tolist() == [2.0**-21, -0.0]


def test_a_cast_to_the_same_type_keeps_every_bit() -> None:
    quiet = np.array([0xFFC12345, 0x7FA00001], np.uint32).view(np.float32)
    assert bits(cast(quiet, f32, f32)) == [0xFFC12345, 0x7FA00001]
    assert bits(cast(quiet, f32, f32 @ saturate)) == [0x7FC00000, 0x7FC00000]
    random = bf16 @ stochastic_round
    assert cast(np.ones(2, bf16.storage), random, random).tolist() == [1, 1]


@pytest.mark.parametrize("target", [f32, f64, bf16, tf32, i8, i4, bool_, f16 @ saturate], ids=str)
def test_shapes_and_layouts(target: DType) -> None:
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for values in (base, base.T, base[:, ::2], base[0, 0, 1], np.asarray(base[1, 2, 3]), base[:0]):
        result = cast(np.asarray(values), f32, target)
        assert isinstance(result, np.ndarray)
        assert result.shape == np.shape(values)
        assert not np.shares_memory(result, base)
        flat = cast(np.ascontiguousarray(values).reshape(-1), f32, target)
        assert result.reshape(-1).tolist() == flat.tolist()


@pytest.mark.parametrize(
    ("values", "source", "target", "message"),
    [
        (np.zeros(2), f32, f64, "expected f32 values, stored as float32, got an array of float64"),
        (np.zeros(2, np.float32), f32, bf16 @ stochastic_round, "needs a seed"),
        (np.zeros(2, np.float32), f32, i8 @ scaled(0), "use quantize"),
        (np.zeros(2, np.int8), i8 @ scaled(0), f32, "use dequantize"),
    ],
)
def test_errors(values: Array, source: DType, target: DType, message: str) -> None:
    with pytest.raises(DtypeError) as caught:
        cast(values, source, target)
    assert message in str(caught.value)
    assert caught.value.hint
