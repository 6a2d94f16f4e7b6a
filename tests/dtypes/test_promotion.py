"""Promotion laws, exactness of implicit casts, accumulators, compute types, and names of types."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import (
    accumulator,
    as_dtype,
    as_float,
    beside_number,
    can_cast,
    compute_type,
    promote,
    promote_exactly,
)
from tessera.dtypes.types import (
    ALL,
    FLOATS,
    INTEGERS,
    DType,
    Kind,
    accum,
    bf16,
    bool_,
    f4e2m1,
    f6e2m3,
    f6e3m2,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i4,
    i8,
    i16,
    i32,
    i64,
    loss_scale,
    saturate,
    scaled,
    stochastic_round,
    tf32,
    u4,
    u8,
    u16,
    u32,
    u64,
)
from tessera.errors import DtypeError

Array = NDArray[Any]


@functools.cache
def joined(*dtypes: DType) -> DType | None:
    try:
        return promote(*dtypes)
    except DtypeError:
        return None


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (bf16, f16, f32),
        (f16, f32, f32),
        (tf32, f32, f32),
        (tf32, bf16, f32),
        (bf16, f64, f64),
        (u8, i8, i16),
        (u8, i16, i16),
        (u16, i8, i32),
        (u32, i32, i64),
        (u32, i64, i64),
        (u8, u64, u64),
        (i8, i64, i64),
        (u64, i8, None),
        (u64, i64, None),
        (f8e4m3, f8e5m2, None),
        (f8e4m3, f16, None),
        (f6e3m2, f6e2m3, None),
        (f4e2m1, f32, None),
        (i4, i8, None),
        (i4, u4, None),
        (i4, f32, None),
        (i32, f32, f32),
        (i64, f64, f64),
        (u64, f32, f32),
        (i8, bf16, None),
        (i32, f16, None),
        (i8, tf32, None),
        (i8, f8e4m3, None),
        (bool_, i8, i8),
        (bool_, i4, i4),
        (bool_, f32, f32),
        (bool_, f8e4m3, f8e4m3),
    ],
    ids=str,
)
def test_the_table(left: DType, right: DType, result: DType | None) -> None:
    assert joined(left, right) is result


@pytest.mark.parametrize(
    ("left", "right"), [(i32, f32), (i64, f64), (bool_, i8), (bool_, f32), (bool_, bf16), (i8, bf16)], ids=str
)
def test_tiles_of_two_kinds_do_not_meet(left: DType, right: DType) -> None:
    for pair in ((left, right), (right, left)):
        with pytest.raises(DtypeError, match="do not promote implicitly"):
            promote_exactly(*pair)


def test_tiles_of_one_kind_meet_as_arrays_do() -> None:
    for left, right in product(ALL, repeat=2):
        if (left.kind is Kind.FLOAT, left.kind is Kind.BOOL) == (right.kind is Kind.FLOAT, right.kind is Kind.BOOL):
            try:
                found = promote_exactly(left, right)
            except DtypeError:
                found = None
            assert found is joined(left, right)


@pytest.mark.parametrize("real", [f32, f64], ids=str)
def test_integers_meet_floats_in_their_type_whatever_the_order(real: DType) -> None:
    for types in permutations((u64, bf16, i8, real, bool_)):
        assert promote(*types) is real
    with pytest.raises(DtypeError, match="narrower floats round whole numbers above 256"):
        promote(bf16, i8)
    with pytest.raises(DtypeError, match="narrower floats round whole numbers above 2048"):
        promote(i64, f16)


def test_a_number_takes_the_type_of_its_array() -> None:
    for dtype in ALL:
        assert beside_number(dtype, bool) is dtype
        assert beside_number(dtype, int) is (i64 if dtype is bool_ else dtype)
        if dtype.is_float:
            assert beside_number(dtype, float) is as_float(dtype) is dtype
        elif dtype.bits < 8 and dtype is not bool_:
            with pytest.raises(DtypeError, match="is a storage type"):
                beside_number(dtype, float)
            with pytest.raises(DtypeError, match="is a storage type"):
                as_float(dtype)
        else:
            assert beside_number(dtype, float) is as_float(dtype) is f32
    assert beside_number(i8 @ saturate, float) is f32 @ saturate
    assert beside_number(bf16 @ accum(f32), int) is bf16 @ accum(f32)


def test_promotion_of_integers_is_that_of_numpy_where_it_stays_integer() -> None:
    for left, right in product([dtype for dtype in INTEGERS if dtype.bits >= 8], repeat=2):
        common = np.promote_types(left.storage, right.storage)
        assert joined(left, right) is (as_dtype(common) if common.kind in "iu" else None)


def test_idempotent_commutative_associative_and_exact() -> None:
    for dtype in ALL:
        assert promote(dtype) is promote(dtype, dtype) is dtype
    for left, right in product(ALL, repeat=2):
        both = joined(left, right)
        assert both is joined(right, left)
        whole_and_real = left.is_integer != right.is_integer and both in (f32, f64)
        assert both is None or whole_and_real or (can_cast(left, both) and can_cast(right, both))
    for a, b, c in product(ALL, repeat=3):
        ab, bc = joined(a, b), joined(b, c)
        if ab is not None and bc is not None:
            assert joined(ab, c) is joined(a, bc) is joined(a, b, c)


@pytest.mark.parametrize(
    ("dtypes", "reason"),
    [
        ((i32, bf16), "integers meet f32 and f64, and narrower floats round whole numbers above 256"),
        ((f8e4m3, i32), "f8e4m3 is a storage type and meets only itself and bool"),
        ((i4, f32), "i4 is a storage type and meets only itself and bool"),
        ((f8e4m3, f32), "f8e4m3 is a storage type and meets only itself"),
        ((i4, i32), "i4 is a storage type and meets only itself"),
        ((u64, i32), "no signed integer type holds both"),
        ((i8 @ scaled(0), i8), "integers with scales meet only their own type"),
        ((bf16 @ accum(f32), bf16 @ accum(f64)), "policies that do not fit together"),
        ((bf16 @ accum(f32), f64), "policies that do not fit together"),
        ((f16 @ loss_scale(2), f16 @ loss_scale(4)), "policies that do not fit together"),
        ((), "at least one type"),
    ],
    ids=str,
)
def test_errors_say_why(dtypes: tuple[DType, ...], reason: str) -> None:
    with pytest.raises(DtypeError, match=reason) as caught:
        promote(*dtypes)
    assert caught.value.hint


def test_policies_join() -> None:
    assert promote(bf16 @ accum(f32), bf16) is bf16 @ accum(f32)
    assert promote(bf16, f16 @ saturate @ stochastic_round) is f32 @ saturate @ stochastic_round
    assert promote(bf16 @ accum(f32), f16 @ accum(f32) @ loss_scale(8)) is f32 @ accum(f32) @ loss_scale(8)
    assert promote(i8 @ scaled(0), i8 @ scaled(0)) is i8 @ scaled(0)


POLICIES = (saturate, stochastic_round, accum(f32), accum(f64), loss_scale(2), loss_scale(4))


@st.composite
def typed(draw: st.DrawFn) -> DType:
    dtype = draw(st.sampled_from(ALL))
    for policy in draw(st.lists(st.sampled_from(POLICIES), max_size=2)):
        try:
            dtype @= policy
        except DtypeError:
            continue
    return dtype


@given(typed(), typed(), typed())
def test_laws_hold_with_policies(a: DType, b: DType, c: DType) -> None:
    assert joined(a, a) is a
    assert joined(a, b) is joined(b, a)
    ab, bc = joined(a, b), joined(b, c)
    if ab is not None and bc is not None:
        assert joined(ab, c) is joined(a, bc)


def values_of(codes: Array, dtype: DType) -> Array:
    words = codes.astype(np.uint64) << np.uint64(13 if dtype.base is tf32 else 0)
    return words.astype(f"u{dtype.storage.itemsize}").view(dtype.storage)


def same_values(values: Array, source: DType, target: DType) -> bool:
    """Whether a cast keeps all these values, compared as exact Python numbers; NaN equals NaN."""

    def exact(array: Array, dtype: DType) -> list[Any]:
        numbers = cast(array, dtype, f64) if dtype.is_float else array.astype(object)
        return ["nan" if number != number else number for number in numbers.tolist()]  # noqa: PLR0124

    return exact(values, source) == exact(cast(values, source, target), target)


@pytest.mark.quick(5)
@pytest.mark.parametrize("source", [dtype for dtype in ALL if dtype.bits <= 16], ids=str)
def test_can_cast_is_the_truth_for_every_value(source: DType) -> None:
    values = values_of(np.arange(1 << source.bits), source)
    for target in ALL:
        assert can_cast(source, target) == same_values(values, source, target)
        assert can_cast(source, target @ saturate) == same_values(values, source, target @ saturate)
    if source.is_float:
        for factor, target in product((0.25, 1024.0), FLOATS):
            assert can_cast(source, target @ loss_scale(factor)) == same_values(
                values, source, target @ loss_scale(factor)
            )
            assert can_cast(source @ loss_scale(factor), target) == same_values(
                values, source @ loss_scale(factor), target
            )


@pytest.mark.parametrize("source", [f64, f32, tf32, i64, i32, u64, u32], ids=str)
def test_can_cast_for_wide_types(source: DType) -> None:
    limit = 1 << source.bits
    corners = {(corner + step) % limit for corner in (0, limit // 2, limit - 1) for step in (-2, -1, 0, 1)}
    corners |= {limit // 4 * 3 - 1, limit // 3, limit // 5}
    values = values_of(np.array(sorted(corners), np.uint64), source)
    for target in ALL:
        assert can_cast(source, target) == same_values(values, source, target)


def test_types_with_scales_cast_only_to_themselves() -> None:
    quantised = i8 @ scaled(1)
    assert can_cast(quantised, quantised)
    assert not can_cast(quantised, i8)
    assert not can_cast(i8, quantised)


PAIRS = [(a, b) for a, b in product(ALL, repeat=2) if joined(a, b) is not None and not (a.is_integer and b.is_float)]


@given(st.sampled_from(PAIRS), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_implicit_promotion_keeps_every_value(pair: tuple[DType, DType], codes: list[int]) -> None:
    source, other = pair
    values = values_of(np.array([code % (1 << source.bits) for code in codes], np.uint64), source)
    assert same_values(values, source, promote(source, other))


def test_accumulators() -> None:
    for dtype in FLOATS:
        assert accumulator(dtype) is (f64 if dtype is f64 else f32)
    for dtype in (i4, i8, i16):
        assert accumulator(dtype) is i32
    for dtype in (u4, u8, u16):
        assert accumulator(dtype) is u32
    assert accumulator(i32) is accumulator(i64) is accumulator(bool_) is i64
    assert accumulator(u32) is accumulator(u64) is u64
    assert accumulator(bf16 @ accum(f64)) is f64
    assert accumulator(bf16 @ accum(bf16)) is bf16
    assert all(can_cast(dtype, accumulator(dtype)) for dtype in ALL)


def test_compute_types() -> None:
    for dtype in ALL:
        wanted = f32 if dtype.is_float and dtype is not f64 else dtype
        assert compute_type(dtype) is wanted
    assert compute_type(f32 @ saturate @ stochastic_round) is f32
    assert compute_type(f16 @ loss_scale(4)) is f32
    for dtype, wide in {i4: i32, u4: i32, i8: i32, u8: i32, i16: i32, u16: i64, i32: i64}.items():
        assert compute_type(dtype @ saturate) is wide
    assert compute_type(bool_ @ saturate) is bool_
    for dtype in (u32, i64, u64):
        with pytest.raises(DtypeError, match="more than 64 bits"):
            compute_type(dtype @ saturate)


def test_saturating_integers_clamp_the_true_result() -> None:
    every = np.arange(-128, 128, dtype=np.int32)
    left, right = (cast(values, i32, compute_type(i8 @ saturate)) for values in np.meshgrid(every, every))
    for combine in (np.add, np.subtract, np.multiply):
        got = cast(combine(left, right), i32, i8 @ saturate)
        want = np.clip(combine(left.astype(np.int64), right.astype(np.int64)), -128, 127)
        assert (got == want).all()


OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[[Fraction, Fraction], Fraction]]] = {
    "add": (np.add, lambda x, y: x + y),
    "subtract": (np.subtract, lambda x, y: x - y),
    "multiply": (np.multiply, lambda x, y: x * y),
    "divide": (np.divide, lambda x, y: x / y),
}


@given(st.sampled_from([f16, bf16]), st.sampled_from(sorted(OPERATIONS)), st.data())
def test_arithmetic_in_the_compute_type_is_correctly_rounded(dtype: DType, name: str, data: st.DataObject) -> None:
    """The exact result lies within half a spacing of the one computed in f32 and rounded once."""
    codes = [data.draw(st.integers(0, (1 << 16) - 1)) for _ in range(2)]
    x, y = cast(values_of(np.array(codes), dtype), dtype, f32)
    computed, exact = OPERATIONS[name]
    with np.errstate(all="ignore"):
        wide = np.asarray(computed(x, y), np.float32)
    if not (np.isfinite([x, y, wide]).all() and abs(wide) >= 2.0**-126):
        return
    rounded = cast(wide, f32, dtype)
    if not np.isfinite(rounded.astype(np.float64)):
        return
    truth = exact(Fraction(float(x)), Fraction(float(y)))
    error = abs(Fraction(float(rounded)) - truth)
    bits = rounded.view(np.uint16)
    for step in (-1, 1):
        beside = (bits + np.array(step).astype(np.uint16)).view(dtype.storage).astype(np.float64)
        assert not np.isfinite(beside) or error <= abs(Fraction(float(beside)) - truth)


def test_names() -> None:
    for dtype in ALL:
        assert as_dtype(dtype.name) is as_dtype(dtype) is dtype
        if dtype is not tf32:
            assert as_dtype(dtype.storage) is dtype
            assert as_dtype(dtype.storage.name) is dtype
            assert as_dtype(dtype.storage.type) is dtype
    assert as_dtype("float8_e4m3fn") is f8e4m3
    assert as_dtype(ml_dtypes.bfloat16) is bf16
    assert as_dtype(bf16 @ saturate) is bf16 @ saturate
    assert (as_dtype(bool), as_dtype(int), as_dtype(float)) == (bool_, i64, f32)


@pytest.mark.parametrize(
    "wrong", ["float99", np.dtype(">f4"), np.dtype("complex64"), complex, object, np.generic, str, None, 3, [f32]]
)
def test_other_names_are_refused_with_the_list_of_names(wrong: Any) -> None:
    with pytest.raises(DtypeError, match="is not an element type") as caught:
        as_dtype(wrong)
    assert caught.value.hint
    assert "bf16" in caught.value.hint
    assert "bfloat16" in caught.value.hint


def test_kinds_of_names_do_not_collide() -> None:
    assert len({dtype.storage.name for dtype in ALL if dtype is not tf32} | {"tf32"}) == len(ALL)
    assert {dtype.kind for dtype in ALL} == set(Kind)
