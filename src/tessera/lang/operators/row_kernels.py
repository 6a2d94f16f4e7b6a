"""Tile kernels of operators that go along rows in other ways than folds do: running results, extremes, orders.

Graphs call them on GPUs, where a program instance holds a row, or a part of a long one, in registers. Rows are
[rows, length] with a length that is known; what is longer than an instance holds comes as more rows, one for each part.
"""

from __future__ import annotations

from functools import cache

from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, Kind, f32, i16, i32, i64, u32
from tessera.shapes.annotations import KTile, Out
from tessera.tile.calls.function import Kernel, kernel
from tessera.tile.language import intrinsics as tile
from tessera.tile.language.schedule import Schedule
from tessera.tile.language.values import Tile, View

MOST = 16384
"""The longest row that an instance holds: of words of 32 bits, one for each thread and 32 or so of its registers."""
_SHARE = 32
SELECTED = 8192
"""The longest row of which an instance selects some: it has the counts beside the keys, and others wait beside it."""
PART = 4096
"""A part of a longer row: enough for an instance, few enough for many."""
_WARP = 32


def held(function: Kernel, length: int, dtype: DType = f32) -> Kernel:
    """A kernel with a row in each instance, and threads enough to hold it."""
    warps, length = 1, length * max(1, dtype.bits // 32)
    while warps < 32 and length > warps * _WARP * _SHARE:
        warps *= 2
    return function.with_schedule(Schedule(block=(1, 16), warps=warps))


# Running results


@kernel
def running_along_rows(x: View, *, kind: str):
    """Each element with all before it in its row."""
    found = tile.scan(tile.load(x).to(accumulator(x.dtype).base), kind)
    return tile.cast(found, x.dtype)


@kernel
def totals_of_rows(x: View, *, kind: str):
    """A row as one element, as running results carry it."""
    rows = tile.load(x).to(accumulator(x.dtype).base)
    return getattr(tile, kind)(rows, keepdims=True)


@kernel
def running_parts(x: View, before: View, *, kind: str):
    """Each element with all before it in its row, and with what comes before the row."""
    found = tile.scan(tile.load(x).to(accumulator(x.dtype).base), kind)
    first = tile.load(before)
    return tile.cast(found + first if kind == "sum" else found * first, x.dtype)


# Places of extremes

_BLOCK = 2048
PIECE = 16
"""Bytes that a thread reads at once."""


def _is_ahead(x: Tile, best: Tile, *, largest: bool) -> Tile:
    """Whether an element beats an earlier one; a NaN beats all that are none."""
    found = x > best if largest else x < best
    return found | (tile.isnan(x) & ~tile.isnan(best)) if x.dtype.is_float else found


@kernel
def extremes_of_rows(x: View, *, largest: bool):
    """The first of the largest elements of each row, or of the smallest, and its place.

    Each thread keeps the best of what it meets, and they are compared when all of the row has been read.
    """
    here = tile.context()
    width, least = min(_BLOCK, here.d), worst(x.dtype, largest=largest)
    work = f32 if x.dtype.is_float and x.dtype.bits < 32 else x.dtype
    vector = PIECE // x.dtype.storage.itemsize if width == _BLOCK else None
    best = tile.load(x, at=(here.row_start, 0), shape=(here.m, width), vector=vector).to(work)
    at = tile.iota((here.m, width), 1, 0, i32)
    for start in tile.range(width, here.d, width):
        rows = tile.load(x, at=(here.row_start, start), shape=(here.m, width), pad=least, vector=vector).to(work)
        ahead = _is_ahead(rows, best, largest=largest)
        at = tile.where(ahead, tile.iota((here.m, width), 1, start, i32), at)
        best = tile.where(ahead, rows, best)
    found = (tile.max if largest else tile.min)(best, keepdims=True)
    hits = best == found
    if work.is_float:
        hits = hits | (tile.isnan(best) & tile.isnan(found))
    return tile.cast(found, x.dtype), tile.cast(tile.min(tile.where(hits, at, here.d), keepdims=True), i64)


def worst(dtype: DType, *, largest: bool) -> float:
    """An element that no other is worse than."""
    if dtype.is_float:
        return -tile.INF if largest else tile.INF
    return int(dtype.min_value if largest else dtype.max_value)


# Selection


def _key_bits(dtype: DType) -> int:
    """How many bits tell keys apart: the highest of 32 those of floats, the lowest those of whole numbers."""
    if dtype.is_float:
        exponent, mantissa = (8, 23) if dtype.bits > 16 else (8, 7 if dtype.name == "bf16" else 10)
        return 1 + exponent + mantissa
    return dtype.bits


def _keys(x: Tile, *, largest: bool) -> Tile:
    """Whole numbers, the largest of which are wanted: of numbers as they are sorted, with NaN last either way."""
    dtype = x.dtype
    if dtype.is_float:
        key = tile.cast(tile.sort_key(x), u32) ^ 0x80000000
        return tile.where(tile.isnan(x), 0, key if largest else ~key)
    lowest = -int(dtype.min_value) if dtype.kind is Kind.INT else 0
    key = tile.cast(x, u32) + lowest
    return key if largest else int(dtype.max_value) + lowest - key


@cache
def selecting(k: int) -> Kernel:
    """The kernel that finds which k elements of each row come first when it is sorted, in the order of the row."""

    def select_of_rows(x: View, out: View, *, largest: bool) -> None:
        here = tile.context()
        vector = PIECE // x.dtype.storage.itemsize
        keys = _keys(tile.load(x, vector=None if here.d % vector else vector), largest=largest)
        bits = _key_bits(x.dtype)
        if x.dtype.is_float:
            # What is below is ones in keys of one sign: a key has to be equal to one that ends behind these bits.
            keys = keys >> (32 - bits)
        least, step = tile.zeros((here.m, 1), u32), tile.full((here.m, 1), 1 << (bits - 1), u32)
        # The key that k elements reach, bit by bit.
        for _ in tile.range(bits):
            more = least | step
            count = tile.sum(tile.cast(keys >= more, i32), keepdims=True)
            least = tile.where(count >= k, more, least)
            step = step >> 1
        above, equal = keys > least, keys == least
        room = k - tile.sum(tile.cast(above, i32), keepdims=True)
        # Both counts in one scan: rows are shorter than 2^16.
        counts = tile.cumsum(tile.cast(above, i32) * 65536 + tile.cast(equal, i32))
        ahead, beside = counts >> 16, counts & 65535
        slot = ahead + tile.minimum(beside, room) - 1
        chosen = above | (equal & (beside <= room))
        rows = tile.iota((here.m, here.d), 0, here.row_start)
        tile.scatter(out, (rows, slot), tile.iota((here.m, here.d), 1, 0, i32), mask=chosen)

    select_of_rows.__annotations__ = {"x": KTile["R", "N"], "out": Out[KTile["R", k, i32]]}
    return kernel(select_of_rows)


@kernel
def order_selected(places: View, x: View, *, largest: bool):
    """Elements of each row at places that ascend, the first in order first, and their places."""
    here = tile.context()
    at = tile.load(places)
    row = tile.iota((here.m, here.d), 0, here.row_start)
    values = tile.gather(x, (row, at))
    keys = tile.reshape(_keys(values, largest=largest), (here.d,))
    mine, other = keys[:, None], keys[None, :]
    count = (here.d, here.d)
    earlier = tile.iota(count, 1, 0, i32) < tile.iota(count, 0, 0, i32)
    rank = tile.sum(tile.cast((other > mine) | ((other == mine) & earlier), i32), axis=1)
    source = tile.sum(tile.where(rank[:, None] == tile.iota(count, 1, 0, i32), tile.iota(count, 0, 0, i32), 0), axis=0)
    order = tile.reshape(source, (1, here.d))
    return tile.take(values, order, 1), tile.cast(tile.take(at, order, 1), i64)


# Sorting


def in_order(function: Kernel, length: int, bits: int) -> Kernel:
    """A kernel that sorts a row in each instance, with more threads than holding it takes."""
    warps, share = 1, 16 if bits <= 32 else 8
    while warps < 32 and length > warps * _WARP * share:
        warps *= 2
    return function.with_schedule(Schedule(block=(1, 16), warps=warps))


def packs(dtype: DType, length: int) -> bool:
    """Whether a key and a place have room in 32 bits."""
    return dtype.bits <= 16 and dtype.name != "f16" and length <= 1 << 16


@kernel
def sort_rows(x: View, *, descending: bool):
    """The elements of each row in order, NaN last either way."""
    rows = tile.load(x)
    if not descending or not x.dtype.is_float:
        return tile.sort(rows, descending=descending)
    # What comes last in one order comes first in the other: NaN are taken for what comes before all.
    keys = tile.sort(tile.where(tile.isnan(rows), -tile.INF, rows), descending=True)
    count = tile.sum(tile.cast(tile.isnan(rows), i32), keepdims=True)
    here = tile.context()
    return tile.where(tile.iota((1, here.d), 1, 0, i32) >= here.d - count, float("nan"), keys)


@kernel
def places_of_rows(x: View, *, descending: bool):
    """The places that sort each row, those of equal elements in order, and of NaN last."""
    rows = tile.load(x)
    if descending and x.dtype.is_float:
        # NaN are below all others, and below each other as they come.
        key = tile.where(tile.isnan(rows), -(1 << 31), tile.sort_key(rows))
        if packs(x.dtype, rows.shape[1]):
            return tile.argsort(tile.cast(key >> 16, i16), descending=True)
        return tile.argsort(key, descending=True)
    return tile.argsort(rows, descending=descending)
