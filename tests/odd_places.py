"""Odd kernels in which memory decides, for tests of all targets: empty axes, strides, ties, NaN, wrap-around."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera import f32, i8, i32, i64, kernel, tile
from tessera.dtypes import types as dtypes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class OddCase:
    """A kernel, what makes its arrays, and its grid."""

    program: Any
    arrays: Callable[[], list[Array]]
    grid: tuple[int, ...]


CASES: dict[str, OddCase] = {}


def odd(arrays: Callable[[], list[Array]], grid: tuple[int, ...] = (1,)) -> Callable[[Any], Any]:
    """A kernel becomes a case."""

    def note(program: Any) -> Any:
        CASES[program.__name__] = OddCase(program, arrays, grid)
        return program

    return note


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape) + 1).standard_normal(shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@odd(lambda: [floats(5, 7, dtype=np.float64).T, np.array([3, -1, 6, 7, 0, 0]), zeros(6, 5, dtype=np.float64)])
@kernel
def gather_transposed_f64(x: Any, rows: Any, out: Any):
    tile.store(out, tile.gather(x, tile.load(rows, at=(0,), shape=(6,)), shape=(5,)), at=(0, 0))


@odd(lambda: [np.broadcast_to(floats(1, 5), (4, 5)), np.array([0, 3, 2, 9], np.int8), zeros(4, 5)])
@kernel
def gather_broadcast(x: Any, rows: Any, out: Any):
    tile.store(out, tile.gather(x, tile.load(rows, at=(0,), shape=(4,)), shape=(5,)), at=(0, 0))


@odd(
    lambda: [np.array([4, 2, 0, 1, 3, 9, -1], np.int16), np.array([3, 0, 4, 1, 2], np.int32), zeros(7, dtype=np.int64)]
)
@kernel
def gathers_on_gathered(a: Any, b: Any, out: Any):
    i = tile.gather(a, tile.load(b, at=(0,), shape=(7,)))
    tile.store(out, tile.cast(tile.gather(b, tile.gather(a, i)), i64), at=(0,))


@odd(lambda: [np.array([2, 0, 1, -5, 3]), np.array([1, 4, 0, 2, 3], np.uint8), floats(5), zeros(5)], grid=(5,))
@kernel
def items_of_items(a: Any, b: Any, x: Any, out: Any):
    i = tile.program_id(0)
    tile.store(out, tile.full((1,), tile.item(x, tile.item(b, tile.item(a, i)))), at=(i,))


@odd(
    lambda: [
        np.array([3, 0, 5, 1]),
        np.array([[1, 2, 9, 4, 5], [0, 0, 0, 0, 0], [5, 5, 5, 5, 5], [9, 1, 1, 1, 1]]),
        zeros(4, dtype=np.int64),
    ],
    grid=(4,),
)
@kernel
def nested_break(counts: Any, limits: Any, out: Any):
    i = tile.program_id(0)
    total = 0
    for a in tile.range(tile.item(counts, i)):
        left = tile.item(limits, i, a)
        if left > 8:
            break
        for b in tile.range(left):
            if b * a > 3:
                break
            if (a + b) % 3 == 2:
                continue
            total = total + 10 * a + b
        while left > 0:
            left = left - 2
            if left == 1:
                total = total + 1000
                break
    tile.store(out, tile.iota((1,), base=total), at=(i,))


@odd(
    lambda: [
        np.full((3, 9), 100, np.int8),
        zeros(3, 9, dtype=np.int8),
        zeros(3, 9, dtype=np.int8),
        np.full((3, 9), 2**31 - 5, np.int32),
        zeros(3, 9, dtype=np.int32),
    ]
)
@kernel
def sums_that_wrap_around(x: Any, a: Any, b: Any, y: Any, c: Any):
    tile.store(a, tile.cumsum(tile.load(x, at=(0, 0), shape=(3, 9))), at=(0, 0))
    tile.store(b, tile.cumsum(tile.load(x, at=(0, 0), shape=(3, 9)), 0, reverse=True), at=(0, 0))
    tile.store(c, tile.cumsum(tile.load(y, at=(0, 0), shape=(3, 9))), at=(0, 0))


@odd(lambda: [floats(6, 7, dtype=np.float16), zeros(6, 20, dtype=np.float16), zeros(1, 1, dtype=np.float16)])
@kernel
def slices_flips_concat(x: Any, out: Any, one: Any):
    v = tile.load(x, at=(0, 0), shape=(6, 7))
    w = tile.concat(
        (tile.flip(v), v[:, 6:], tile.flip(v[:, ::2], 1), tile.flip(tile.flip(v, 0), 0)[:, :7], v[:, :1]), 1
    )
    tile.store(out, w, at=(0, 0))
    tile.store(one, tile.concat((v[5:, 6:],), 0), at=(0, 0))


@odd(lambda: [floats(1, 1), np.zeros(1, np.int64), zeros(1, 1), zeros(1, 1)])
@kernel
def ones_everywhere(x: Any, rows: Any, out: Any, top: Any):
    i = tile.load(rows, at=(0,), shape=(1,))
    v = tile.gather(x, i, shape=(1,))
    tile.scatter(out, i, tile.sort(tile.flip(tile.cumsum(v))))
    tile.store(top, tile.topk(v, 1)[0], at=(0, 0))


@odd(
    lambda: [zeros(0, 5), zeros(0, dtype=np.int64), np.full((3, 5), 7, np.float32), np.full((0, 5), 7, np.float32)],
    grid=(2,),
)
@kernel
def empty_axes(x: Any, rows: Any, out: Any, none: Any):
    i = tile.load(rows, at=(0,), shape=(3,))
    v = tile.gather(x, i, shape=(5,), pad=2.0)
    tile.scatter(none, i, v)
    tile.scatter_add(none, i, v)
    if tile.program_id(0) == 0:
        tile.store(out, v + tile.item(x, 0, 0), at=(0, 0))


@odd(
    lambda: [
        np.array([True, False, True, True, False]),
        np.array([2, 0, 4, 9]),
        zeros(4, dtype=bool),
        zeros(5, dtype=bool),
        zeros(5, dtype=np.int32),
    ],
    grid=(1,),
)
@kernel
def flags(x: Any, rows: Any, out: Any, sc: Any, cnt: Any):
    i = tile.load(rows, at=(0,), shape=(4,))
    g = tile.gather(x, i)
    tile.store(out, g, at=(0,))
    tile.scatter(sc, i, g)
    tile.scatter_add(cnt, i, tile.cast(g, i32))
    if tile.item(x, 2) and not tile.item(x, 1):
        tile.store(cnt, tile.iota((1,), base=7 if tile.item(x, 3) else 8, dtype=i32), at=(3,))


@odd(lambda: [np.array([True, False, True]), zeros(3, dtype=np.int64)], grid=(3,))
@kernel
def flags_count(x: Any, out: Any):
    i = tile.program_id(0)
    f = tile.item(x, i)
    n = f + f + tile.item(x, 0)
    tile.store(out, tile.iota((1,), base=n * 10), at=(i,))


@odd(lambda: [np.array([True, False, True]), zeros(3, dtype=np.int64), zeros(3)], grid=(3,))
@kernel
def flags_cast(x: Any, out: Any, fl: Any):
    i = tile.program_id(0)
    f = tile.item(x, i)
    tile.store(out, tile.iota((1,), base=tile.cast(f, i64)), at=(i,))
    tile.store(fl, tile.full((1,), tile.cast(f, f32)), at=(i,))


@odd(lambda: [floats(8, 3)[::-2], np.array([0, 3, 1, 5, 2, 2, -1, 3]), zeros(16, 6)[::-2, ::2]], grid=(2,))
@kernel
def scatter_add_strided(x: Any, rows: Any, out: Any):
    p = tile.program_id(0) * 4
    v = tile.gather(x, tile.iota(4), shape=(3,))
    tile.scatter_add(out, tile.load(rows, at=(p,), shape=(4,)), v * 2.0)


@odd(
    lambda: [
        floats(9, dtype=np.float64),
        np.array([1, 1, 1, 0, 2, 2, 5, -3, 1]),
        zeros(3, dtype=np.float64),
        np.full(3, -9.0, np.float64),
        np.full(3, 9.0, np.float64),
    ]
)
@kernel
def scatter_kinds_f64(x: Any, rows: Any, s: Any, hi: Any, lo: Any):
    v, i = tile.load(x, at=(0,), shape=(9,)), tile.load(rows, at=(0,), shape=(9,))
    tile.scatter_add(s, i, v)
    tile.scatter_max(hi, i, v)
    tile.scatter_min(lo, i, v)


@odd(
    lambda: [
        np.array([np.nan, 1, -0.0, 0.0, np.inf, -np.inf, 2], np.float32),
        np.array([0, 0, 1, 1, 2, 3, 3]),
        zeros(4),
        np.full(4, -1, np.float32),
    ]
)
@kernel
def scatter_max_nan(x: Any, rows: Any, hi: Any, lo: Any):
    v, i = tile.load(x, at=(0,), shape=(7,)), tile.load(rows, at=(0,), shape=(7,))
    tile.scatter_max(hi, i, v)
    tile.scatter_min(lo, i, v)


@odd(lambda: [floats(4, 6), np.array([3, 0, 2, 1]), zeros(4, 6)], grid=(1,))
@kernel
def sort_then_gather(x: Any, rows: Any, out: Any):
    i = tile.argsort(tile.load(rows, at=(0,), shape=(4,)))
    v = tile.gather(x, i, shape=(6,))
    tile.scatter(out, tile.flip(i), tile.take(v, tile.argsort(v), 1))


@odd(lambda: [floats(3, 5), np.array([2**40, -(2**62), 2]), np.full((3, 5), 7, np.float32)])
@kernel
def huge_indices(x: Any, rows: Any, out: Any):
    i = tile.load(rows, at=(0,), shape=(3,))
    tile.store(out, tile.gather(x, i * 2**3, shape=(5,), pad=3.0) + tile.gather(x, i + 2**62, shape=(5,)), at=(0, 0))


@odd(lambda: [floats(40), np.array([0, 7, 7, 31, 40, 38, 50, -4]), zeros(7)], grid=(7,))
@kernel
def odd_segments(x: Any, starts: Any, out: Any):
    i = tile.program_id(0)
    end, total = tile.item(starts, i + 1), tile.zeros((5,))
    for at in tile.range(tile.item(starts, i), end, 5):
        total = total + tile.where(tile.iota(5) + at < end, tile.load(x, at=(at,), shape=(5,)), 0.0)
    tile.store(out, tile.sum(total)[None], at=(i,))


@odd(lambda: [floats(13), np.array([3, 1, 5, 2, 4]), zeros(5)], grid=(5,))
@kernel
def steps_from_memory(x: Any, steps: Any, out: Any):
    i = tile.program_id(0)
    t = 0.0
    for at in tile.range(i, x.shape[0], tile.item(steps, i)):
        t = t + tile.item(x, at)
    tile.store(out, tile.full((1,), t), at=(i,))


@odd(
    lambda: [floats(3, 4, 5), np.array([2, 0, -1, 1, 3]), np.array([3, 1, 1, 4, 0]), np.full((5, 5), 9, np.float32)],
    grid=(5,),
)
@kernel
def views_of_two_items(x: Any, a: Any, b: Any, out: Any):
    i = tile.program_id(0)
    tile.store(out[i], tile.load(x[tile.item(a, i), tile.item(b, i)], at=(0,), shape=(5,)), at=(0,))


@odd(lambda: [floats(3, 4, 5), np.array([2, 0, -1, 1, 3]), np.full((5, 3, 4), 9, np.float32)], grid=(5,))
@kernel
def view_last_axis(x: Any, a: Any, out: Any):
    i = tile.program_id(0)
    tile.store(out[i], tile.load(x[:, :, tile.item(a, i)], at=(0, 0), shape=(3, 4)), at=(0, 0))


@odd(lambda: [floats(5, 3), np.array([4, 0, 2, 1, 7, 3, 0, 0]).reshape(2, 4), zeros(2, 4, 3)[0:2]], grid=(2,))
@kernel
def gather_2d_indices(x: Any, rows: Any, out: Any):
    p = tile.program_id(0)
    i = tile.load(rows, at=(p, 0), shape=(1, 4))
    v = tile.gather(x, (i[0:1, :][:, :], tile.iota((1, 4), 1) % 3))
    tile.store(out[p], v.T * tile.ones((1, 3)), at=(0, 0))


@odd(
    lambda: [
        np.array([5, 3, 8, 1, 9, 2, 7, 7]),
        zeros(8, dtype=np.int64),
        zeros(8, dtype=np.int64),
        zeros(8, dtype=np.int32),
    ]
)
@kernel
def int_sorts(x: Any, a: Any, b: Any, c: Any):
    v = tile.load(x, at=(0,), shape=(8,))
    tile.store(a, tile.sort(v, descending=True), at=(0,))
    tile.store(b, tile.scan(v, tile.maximum, reverse=True), at=(0,))
    tile.store(c, tile.cast(tile.cumsum(tile.cast(v, i8)), i32), at=(0,))


@odd(
    lambda: [
        np.array([2**63, 5, 2**64 - 1, 0, 1, 2**63 - 1], np.uint64),
        zeros(6, dtype=np.uint64),
        zeros(6, dtype=np.int64),
        zeros(1, dtype=np.int64),
    ]
)
@kernel
def u64_sorts(x: Any, a: Any, b: Any, c: Any):
    v = tile.load(x, at=(0,), shape=(6,))
    tile.store(a, tile.sort(v), at=(0,))
    tile.store(b, tile.argsort(v, descending=True), at=(0,))
    tile.store(c, tile.argmax(v)[None], at=(0,))


@odd(
    lambda: [
        np.array([True, False, True, False, False]),
        zeros(5, dtype=bool),
        zeros(5, dtype=np.int64),
        zeros(1, dtype=np.int64),
    ]
)
@kernel
def bool_sorts(x: Any, a: Any, b: Any, c: Any):
    v = tile.load(x, at=(0,), shape=(5,))
    tile.store(a, tile.flip(tile.concat((v[:2], v[2:]))), at=(0,))
    tile.store(b, tile.cumsum(tile.cast(v, i64)), at=(0,))
    tile.store(c, tile.argmax(tile.cast(v, i32))[None], at=(0,))


@odd(
    lambda: [np.array([3, 9, 1, 7]), np.array([1.5, -2.0, np.nan, 0.0]), zeros(4), zeros(4, dtype=np.int64)], grid=(4,)
)
@kernel
def branches_on_items(n: Any, x: Any, out: Any, o2: Any):
    i = tile.program_id(0)
    v = tile.item(x, i)
    if v > 0:
        r = v * 2.0
        k = tile.item(n, i) // 2
    elif v != v:  # noqa: PLR0124  (NaN)
        r = 7.0 + v * 0
        k = 0 - tile.item(n, i)
    else:
        r = v - 1.0
        k = tile.item(n, i) % 4
    tile.store(out, tile.full((1,), tile.cast(r, f32)), at=(i,))
    tile.store(o2, tile.iota((1,), base=k), at=(i,))


@odd(lambda: [floats(6), np.array([1, 3, 5]), np.full(6, 9, np.float32)], grid=(3,))
@kernel
def masked_stores(x: Any, ends: Any, out: Any):
    i = tile.program_id(0)
    v = tile.load(x, at=(i * 2 - 1,), shape=(4,))
    p = tile.iota(4, base=i * 2 - 1)
    tile.store(out, v, at=(i * 2 - 1,), mask=(p < tile.item(ends, i)) & (p >= i * 2))


ENDS = np.array([0, 5, 64, 63, -3, 200, -(2**31), 2**31 - 1, 1, 64], np.int32)


@odd(lambda: [floats(16, 64), ENDS, ENDS[::-1].copy(), zeros(10, 16, 64)], (10,))
@kernel
def windows_by_items(x: Any, firsts: Any, lasts: Any, out: Any):
    i = tile.program_id(0)
    first, last, columns = tile.item(firsts, i), tile.item(lasts, i), tile.iota((1, 64), 1)
    rows, kept = tile.load(x, at=(0, 0), shape=(16, 64)), tile.zeros((16, 64))
    for start in tile.range(0, 3):
        inside = (columns + first >= start) & (columns * 1 < last + start)
        kept = kept + tile.where(inside, rows * 2.0, -1.0)
    tile.store(out[i], kept, at=(0, 0))


@odd(lambda: [floats(7, 3), np.array([6, 0, 3, 3]), zeros(4, 3), zeros(7, 3)])
@kernel
def gather_scatter_columns_masked(x: Any, rows: Any, out: Any, back: Any):
    i: Any = tile.load(rows, at=(0,), shape=(4,))
    m = i != 3
    v = tile.gather(x, i, shape=(3,), mask=m, pad=-1.0)
    tile.store(out, v, at=(0, 0))
    tile.scatter_max(back, i, v, mask=m)


@odd(lambda: [floats(33, 9), np.array([5] * 33), zeros(6, 9)], grid=(3,))
@kernel
def all_to_one(x: Any, rows: Any, out: Any):
    p = tile.program_id(0) * 11
    tile.scatter_add(out, tile.load(rows, at=(p,), shape=(11,)), tile.load(x, at=(p, 0), shape=(11, 9)))


@odd(lambda: [floats(2, 3), zeros(6), zeros(3, 2), zeros(2, 6)])
@kernel
def reshapes(x: Any, a: Any, b: Any, c: Any):
    v = tile.load(x, at=(0, 0), shape=(2, 3))
    tile.store(a, tile.reshape(v.T, -1), at=(0,))
    tile.store(b, tile.reshape(tile.flip(tile.reshape(v, (6,))), (3, 2)), at=(0, 0))
    tile.store(c, tile.concat((v, tile.reshape(v.T, (2, 3))), 1), at=(0, 0))


@odd(lambda: [floats(5, 2), np.array([1.0, 0.0, 2.0]), zeros(3)], grid=(3,))
@kernel
def while_floats(x: Any, y: Any, out: Any):
    i = tile.program_id(0)
    v, n = tile.item(y, i), 0
    while v < 10.0:
        v = v * 2.0 + 0.5
        n = n + 1
        if n > 3:
            break
    tile.store(out, tile.full((1,), v), at=(i,))


@odd(
    lambda: [
        np.array([-7, 7, -8, 8, 0]),
        np.array([2, -2, 3, -3, 5]),
        zeros(5, dtype=np.int64),
        zeros(5, dtype=np.int64),
        zeros(5, dtype=np.int64),
        zeros(5, dtype=np.int64),
    ],
    grid=(5,),
)
@kernel
def divisions(a: Any, b: Any, q: Any, r: Any, tq: Any, tr: Any):
    i = tile.program_id(0)
    m, n = tile.item(a, i), tile.item(b, i)
    tile.store(q, tile.iota((1,), base=m // n), at=(i,))
    tile.store(r, tile.iota((1,), base=m % n), at=(i,))
    x, y = tile.load(a, at=(i,), shape=(1,)), tile.load(b, at=(i,), shape=(1,))
    tile.store(tq, x // y, at=(i,))
    tile.store(tr, x % y, at=(i,))


@kernel
def sorted_specials(x: Any, up: Any, order: Any, top: Any, which: Any, high: Any, low: Any):
    v = tile.load(x, at=(0, 0), shape=(4, 6))
    tile.store(up, tile.sort(v), at=(0, 0))
    tile.store(order, tile.argsort(v, descending=True), at=(0, 0))
    best, places = tile.topk(v, 6)
    tile.store(top, best, at=(0, 0))
    tile.store(which, places, at=(0, 0))
    tile.store(high, tile.argmax(v), at=(0,))
    tile.store(low, tile.argmin(v), at=(0,))


def specials(dtype: Any) -> list[Array]:
    """Both zeros, NaN, infinities and ties, in rows of which one is all NaN and one all 0."""
    row, other = [-0.0, np.nan, np.inf, 1.5, 0.0, 1.5], [-np.inf, 0.0, -0.0, -np.inf, np.nan, -2.0]
    rows = np.array([row, other, [np.nan] * 6, [0.0, -0.0] * 3], np.float32).astype(dtype)
    wide = (4, 6)
    return [
        rows,
        zeros(*wide, dtype=dtype),
        zeros(*wide, dtype=np.int64),
        zeros(*wide, dtype=dtype),
        zeros(*wide, dtype=np.int64),
        zeros(4, dtype=np.int64),
        zeros(4, dtype=np.int64),
    ]


@kernel
def combined_in_memory(x: Any, rows: Any, total: Any, high: Any, low: Any):
    p = tile.program_id(0) * 8
    v, i = tile.load(x, at=(p,), shape=(8,)), tile.load(rows, at=(p,), shape=(8,))
    there = tile.iota(8) + p < x.shape[0]
    tile.scatter_add(total, i, v, mask=there)
    tile.scatter_max(high, i, v, mask=there)
    tile.scatter_min(low, i, v, mask=there)


def to_combine(dtype: Any) -> list[Array]:
    few = np.array([1, 3, 5, 7, 100, 100, 100, 9, 2, 4]).astype(dtype)
    rows = np.array([0, 4, 4, 2, 1, 1, 1, 3, 5, 0])
    return [few, rows, zeros(5, dtype=dtype), zeros(5, dtype=dtype), np.full(5, 50).astype(dtype)]


for _dtype in (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16):
    CASES[f"sorted_specials of {_dtype}"] = OddCase(sorted_specials, lambda dtype=_dtype.storage: specials(dtype), (1,))
for _dtype in (
    dtypes.f16,
    dtypes.bf16,
    dtypes.i8,
    dtypes.u8,
    dtypes.i16,
    dtypes.u16,
    dtypes.u32,
    dtypes.i64,
    dtypes.u64,
):
    CASES[f"combined_in_memory of {_dtype}"] = OddCase(
        combined_in_memory, lambda dtype=_dtype.storage: to_combine(dtype), (2,)
    )


# Kernels whose results have to have the same bits every time.


@kernel
def sums_by_row(x: Any, rows: Any, out: Any):
    p = tile.program_id(0) * 32
    tile.scatter_add(out, tile.load(rows, at=(p,), shape=(32,)), tile.load(x, at=(p, 0), shape=(32, 16)))


@kernel
def sums_by_element(x: Any, rows: Any, out: Any):
    p = tile.program_id(0) * 32
    at = tile.load(rows, at=(p,), shape=(32,))
    tile.scatter_add(out, (at[:, None], tile.iota((1, 16), 1) // 2), tile.load(x, at=(p, 0), shape=(32, 16)))


@kernel
def sums_at_an_item(x: Any, rows: Any, out: Any):
    p = tile.program_id(0)
    tile.atomic_add(out, tile.load(x, at=(p, 0), shape=(1, 16)), at=(tile.item(rows, p), 0))


@kernel
def sums_in_pages(x: Any, rows: Any, pages: Any):
    p = tile.program_id(0)
    page = pages[tile.item(rows, p)]
    for at in tile.range(0, 4):
        tile.scatter_add(page, tile.iota(16) // 3, tile.load(x[p * 4 + at], at=(0,), shape=(16,)))


@kernel
def sums_by_segment(x: Any, starts: Any, out: Any):
    s, total = tile.program_id(0), tile.zeros((1, 16))
    end = tile.item(starts, s + 1)
    for at in tile.range(tile.item(starts, s), end, 4):
        there = tile.iota((4, 1)) + at < end
        part = tile.where(there, tile.load(x, at=(at, 0), shape=(4, 16)), 0.0)
        total = total + tile.sum(part, 0)[None]
    tile.store(out, total, at=(s, 0))


@kernel
def sorted_and_summed(x: Any, out: Any):
    p = tile.program_id(0) * 8
    v = tile.load(x, at=(p, 0), shape=(8, 8))
    top, which = tile.topk(v, 8)
    tile.store(out, tile.concat((tile.cumsum(top), top, tile.cast(which, f32)), 1), at=(p, 0))


def summed(*shape: int) -> list[Array]:
    """Numbers of very different sizes, whose sums show the order in which they are taken."""
    x = floats(1024, 16) * np.float32(10.0) ** (np.arange(1024, dtype=np.float32)[:, None] % 9)
    return [x, np.random.default_rng(7).integers(0, shape[0], 1024), zeros(*shape)]


def segments() -> list[Array]:
    starts = np.sort(np.random.default_rng(8).integers(0, 1025, 41))
    starts[0], starts[-1] = 0, 1024
    return [summed(1)[0], starts, zeros(40, 16)]


REPEATED = {
    "sums_by_row": OddCase(sums_by_row, lambda: summed(5, 16), (32,)),
    "sums_by_element": OddCase(sums_by_element, lambda: summed(5, 8), (32,)),
    "sums_at_an_item": OddCase(sums_at_an_item, lambda: summed(3, 16), (1024,)),
    "sums_in_pages": OddCase(sums_in_pages, lambda: summed(3, 6), (256,)),
    "sums_by_segment": OddCase(sums_by_segment, segments, (40,)),
    "sorted_and_summed": OddCase(sorted_and_summed, lambda: [summed(1)[0][:, :8].round(-1), zeros(1024, 24)], (128,)),
}
