"""Products of whole numbers and narrow floats at every level, bit for bit the interpreter's: odd sizes and strides."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_arrays import LAYOUT_LISTS, MACHINES, SIZES, Odd, bounds, compiled, expect_close, expect_equal, interpreted

import tessera as ts
from tessera import DType, Schedule, kernel, tile


@kernel
def product(a: Any, b: Any, c: Any, *, transposed: bool):
    """a·b, or aᵀ·bᵀ, added up in the type of c."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), c.dtype)
    for k in tile.range(0, b.shape[1] if transposed else a.shape[1], here.k):
        if transposed:
            left = tile.load(a, at=(k, row), shape=(here.k, here.m)).T
            right = tile.load(b, at=(col, k), shape=(here.n, here.k)).T
        else:
            left = tile.load(a, at=(row, k), shape=(here.m, here.k))
            right = tile.load(b, at=(k, col), shape=(here.k, here.n))
        acc = tile.dot(left, right, acc)
    tile.store(c, acc, at=(row, col))


@kernel
def chained(a: Any, b: Any, c: Any):
    """a·bᵀ + 1, of that the low bits, and those times b."""
    here = tile.context()
    rows, acc = tile.load(a), tile.zeros((here.m, here.d), c.dtype)
    for block in tile.range_n(b.shape, here.n):
        part = tile.load(b, block)
        scores = tile.cast(tile.dot(rows, part.T, tile.ones((here.m, here.n), c.dtype)), a.dtype)
        acc = tile.dot(scores, part, acc)
    tile.store(c, acc)


# Operands and sums; sums of whole numbers wrap around.
WHOLE = [
    (ts.i8, ts.i32),
    (ts.u8, ts.u32),
    (ts.i8, ts.i8),
    (ts.u8, ts.u8),
    (ts.i8, ts.i64),
    (ts.i4, ts.i32),
    (ts.u4, ts.u32),
    (ts.i16, ts.i32),
    (ts.u16, ts.u32),
    (ts.i32, ts.i32),
    (ts.i64, ts.i64),
    (ts.u64, ts.u64),
]
FLOATS = [
    (ts.bf16, ts.f32),
    (ts.f16, ts.f32),
    (ts.f8e4m3, ts.f32),
    (ts.f8e5m2, ts.f32),
    (ts.f6e3m2, ts.f32),
    (ts.f6e2m3, ts.f32),
    (ts.f4e2m1, ts.f32),
    (ts.tf32, ts.f32),
    (ts.f32, ts.f32),
    (ts.f32, ts.f64),
    (ts.f64, ts.f64),
]
# What processors have instructions for is tried by the quick tests at the highest level, in part at one of the others,
# and of the rest some at the highest.
HAVE_INSTRUCTIONS = [*WHOLE[:2], *FLOATS[:4]]
QUICK = [
    *((types, MACHINES[-1]) for types in (*HAVE_INSTRUCTIONS, *WHOLE[2:6:3], *WHOLE[8::2], *FLOATS[5::3])),
    *zip(HAVE_INSTRUCTIONS[::2], cycle(MACHINES[:-1]), strict=False),
]


def named(value: tuple[DType, DType] | str) -> str:
    return value if isinstance(value, str) else f"{value[0]}-{value[1]}"


def whole(new: Odd, dtype: DType, *shape: int) -> Any:
    """Integers of the whole range; floats so small that sums of products are exact."""
    low, high = (-3, 3) if dtype.is_float else (max(int(dtype.min_value), -(2**40)), min(int(dtype.max_value), 2**40))
    return ts.asarray(new.whole(low, high + 1, *shape, dtype=dtype), dtype)


def multiplied(new: Odd, types: tuple[DType, DType], m: int, n: int, k: int, block: tuple[int, ...]) -> Any:
    operand, total = types
    transposed = bool(new.seed % 2)
    a = whole(new, operand, *((k, m) if transposed else (m, k)))
    b = whole(new, operand, *((n, k) if transposed else (k, n)))
    c = new.target(m, n, dtype=total)
    grid = -(-300 // block[0]), -(-300 // block[1])
    product.with_schedule(Schedule(block=block))[grid](a, b, c, transposed=transposed)
    return c


def numbers(layouts: tuple[str, ...], seed: int, dtype: DType = ts.f32, kind: str = "whole") -> Odd:
    return Odd(dtype, kind, kind, 0, layouts, seed)


def check(level: str, types: tuple[DType, DType], new: Odd, m: int, n: int, k: int, block: tuple[int, ...]) -> None:
    def call(new: Odd) -> Any:
        return multiplied(new, types, m, n, k, block)

    expect_equal(compiled(call, new, level), interpreted(call, new))


ODD = st.builds(numbers, LAYOUT_LISTS, st.integers(0, 10**6))


@pytest.mark.quick(5)
@pytest.mark.parametrize(("types", "level"), QUICK, ids=named)
@settings(max_examples=4)
@given(ODD, SIZES, SIZES, SIZES)
def test_exact_products_have_the_same_bits(
    types: tuple[DType, DType], level: str, new: Odd, m: int, n: int, k: int
) -> None:
    check(level, types, new, m, n, k, (64, 64, 64))


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("types", WHOLE + FLOATS, ids=named)
@settings(max_examples=200)
@given(ODD, SIZES, SIZES, SIZES, st.sampled_from([(64, 64, 64), (16, 48, 128), (33, 17, 31), (128, 128, 256)]))
def test_exact_products_always_have_the_same_bits(
    types: tuple[DType, DType], level: str, new: Odd, m: int, n: int, k: int, block: tuple[int, ...]
) -> None:
    check(level, types, new, m, n, k, block)


def test_products_of_nothing() -> None:
    new = numbers(("plain",), 0)
    for types in (WHOLE[0], FLOATS[0]):
        for level in MACHINES:
            for m, n, k in ((0, 5, 6), (5, 0, 6), (5, 6, 0), (0, 0, 0)):
                check(level, types, new, m, n, k, (64, 64, 64))


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("types", [(ts.i8, ts.i32), (ts.u8, ts.u32), (ts.i16, ts.i32)], ids=named)
@settings(max_examples=4)
@given(ODD, SIZES, SIZES)
def test_products_of_products_have_the_same_bits(
    types: tuple[DType, DType], level: str, new: Odd, m: int, n: int
) -> None:
    def call(new: Odd) -> Any:
        c = new.target(m, 19, dtype=types[1])
        chained.with_schedule(Schedule(block=(48, 80)))(whole(new, types[0], m, 19), whole(new, types[0], n, 19), c)
        return c

    expect_equal(compiled(call, new, level), interpreted(call, new))


@pytest.mark.quick(2)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("dtype", [ts.f16, ts.bf16, ts.f8e4m3, ts.f8e5m2], ids=str)
@settings(max_examples=4)
@given(LAYOUT_LISTS, st.sampled_from(["normal", "infinite", "nan"]), st.integers(0, 10**6), SIZES, SIZES, SIZES)
def test_rounded_products_are_close(
    dtype: DType, level: str, layouts: tuple[str, ...], kind: str, seed: int, m: int, n: int, k: int
) -> None:
    new = numbers(layouts, seed - seed % 2, dtype, kind)

    def call(new: Odd) -> Any:
        a, b, c = new(m, k, summed=True), new(k, n, summed=True), new.target(m, n, dtype=ts.f32)
        product.with_schedule(Schedule(block=(64, 64, 64)))[5, 5](a, b, c, transposed=False)
        return c

    expected = interpreted(call, new)
    allowed = bounds(ts.f32, interpreted(call, new.positive()), expected, products=True)
    expect_close(compiled(call, new, level), expected, allowed)
