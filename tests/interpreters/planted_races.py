"""Kernels with a race planted through places that memory decides, each with a repaired twin: data for the tests.

`repaired` says which of the two a kernel is. Comments mark the lines of the two witnesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tessera import i8, i32, kernel, tile

Array = np.ndarray[Any, np.dtype[Any]]
B = 4


@kernel
def rows_scattered(value: Any, rows: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0) * B
    at, part = tile.load(rows, at=(p,), shape=(B,)), tile.load(value, at=(p, 0), shape=(B, 2))
    put = tile.scatter_add if repaired else tile.scatter
    put(out, at, part)  # both


@kernel
def columns_scattered(value: Any, columns: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0) * B
    at, part = tile.load(columns, at=(0,), shape=(B,)), tile.load(value, at=(p, 0), shape=(B, B))
    tile.scatter(out, at, part, 1, at=(p if repaired else 0,))  # both


@kernel
def diagonals_scattered(value: Any, out: Any, *, repaired: bool):
    """An index for each axis; without the repair, diagonals of neighbours cross."""
    p, i = tile.program_id(0), tile.iota(B)
    part = tile.load(value, at=(p * B,), shape=(B,))
    tile.scatter(out, (i, i + p if repaired else (i + p) % 2), part)  # both


@kernel
def scattered_beside_a_store(value: Any, rows: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0)
    tile.store(out, tile.full((1,), 7.0), at=(p + 8 if repaired else p,))  # first
    part, at = tile.load(value, at=(p * B,), shape=(B,)), tile.load(rows, at=(p * B,), shape=(B,))
    tile.scatter(out, at, part)  # second


@kernel
def scattered_over_what_another_loads(x: Any, rows: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0) * B
    part = tile.load(x, at=(p,), shape=(B,))  # second
    tile.scatter(out if repaired else x, tile.load(rows, at=(p,), shape=(B,)), part)  # first


@kernel
def added_where_one_clears(value: Any, rows: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0)
    if p == (2 if repaired else 1):
        tile.store(out, tile.zeros((B,)), at=(0,))  # second
    part = tile.load(value, at=(p * B,), shape=(B,))
    tile.scatter_add(out, tile.load(rows, at=(p * B,), shape=(B,)), part)  # first


@kernel
def added_where_one_reads(value: Any, rows: Any, out: Any, seen: Any, *, repaired: bool):
    p = tile.program_id(0)
    at = tile.load(rows, at=(p * B,), shape=(B,))
    tile.scatter_add(out, at, tile.load(value, at=(p * B,), shape=(B,)))  # second
    found = tile.gather(value if repaired else out, at)  # first
    tile.store(seen, found, at=(p * B,))


@kernel
def largest_beside_scattered(value: Any, rows: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0)
    at, part = tile.load(rows, at=(p * B,), shape=(B,)), tile.load(value, at=(p * B,), shape=(B,))
    if p == 0:
        tile.scatter_max(out, at, part)  # first
    else:
        put = tile.scatter_max if repaired else tile.scatter
        put(out, at, part)  # second


@kernel
def scattered_into_a_page(value: Any, table: Any, pages: Any, *, repaired: bool):
    p = tile.program_id(0)
    page = pages[p if repaired else tile.item(table, p)]
    tile.scatter(page, (tile.iota(B) * 3) % B, tile.load(value, at=(p * B,), shape=(B,)))  # both


@kernel
def stored_at_an_item(value: Any, places: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0)
    at, part = tile.item(places, p), tile.load(value, at=(p * B,), shape=(B,))
    put = tile.atomic_add if repaired else tile.store
    put(out, part, at=(at,))  # both


@kernel
def pages_shared_by_two(value: Any, table: Any, pages: Any, fresh: Any, *, repaired: bool):
    """A page that two sequences have in common is written by both, unless each has a copy."""
    b = tile.program_id(0)
    for first in tile.range(0, 2 * B, B):
        number = tile.item(table, b, first // B)
        page = tile.load(pages[number], at=(0,), shape=(B,))  # second
        changed = page + tile.load(value[b], at=(first,), shape=(B,))
        if repaired:
            tile.store(fresh[b], changed, at=(first,))
        else:
            tile.store(pages[number], changed, at=(0,))  # first


@kernel
def segments_that_overlap(x: Any, starts: Any, *, repaired: bool):
    s = tile.program_id(0)
    end = tile.item(starts, s + 1)
    for at in tile.range(tile.item(starts, s), end if repaired else end + 1):
        one = tile.load(x, at=(at,), shape=(1,))  # second
        tile.store(x, one * 2.0, at=(at,))  # first


@kernel
def masks_that_overlap(value: Any, lengths: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0)
    start, length = p * 3, tile.item(lengths, p)
    there = tile.iota(B) < (length if repaired else length + 1)
    tile.store(out, tile.load(value, at=(p * B,), shape=(B,)), at=(start,), mask=there)  # both


@kernel
def rows_dealt_out_in_a_while(value: Any, count: Any, out: Any, *, repaired: bool):
    """Each of two instances takes every second row, or, without the repair, every row from its first on."""
    row, step = tile.program_id(0), 2 if repaired else 1
    while row < tile.item(count, 0):
        tile.store(out, tile.load(value, at=(row, 0), shape=(1, B)), at=(row, 0))  # both
        row = row + step


@kernel
def partial_sums(value: Any, group: Any, out: Any, *, repaired: bool):
    p = tile.program_id(0)
    total = tile.sum(tile.load(value, at=(p * B,), shape=(B,)))
    at = tile.item(group, p)
    if repaired:
        tile.atomic_add(out, total[None], at=(at,))
    else:
        before = tile.load(out, at=(at,), shape=(1,))  # second
        tile.store(out, before + total[None], at=(at,))  # first


@kernel
def permuted_in_place(x: Any, order: Any, out: Any, *, repaired: bool):
    p, i = tile.program_id(0) * B, tile.iota(B)
    taken = tile.gather(x, tile.load(order, at=(p,), shape=(B,)), shape=(2,))  # second
    tile.scatter(out if repaired else x, p + i, taken)  # first


@kernel
def middles_of_three_axes(value: Any, rows: Any, out: Any, *, repaired: bool):
    p, i = tile.program_id(0), tile.program_id(1)
    part = tile.load(value[p, i], at=(0, 0), shape=(B, 2))
    at = tile.load(rows, at=(i * B,), shape=(B,))
    tile.scatter(out, (p if repaired else p // 2, at[:, None], tile.iota((1, 2), 1)), part)  # both


@kernel
def backwards_with_a_short_step(value: Any, out: Any, *, repaired: bool):
    p, i = tile.program_id(0), tile.iota(B)
    part = tile.load(value, at=(p * B,), shape=(B,))
    tile.scatter(out, p * (B if repaired else B - 1) + i, part)  # both


@kernel
def gathered_from_what_overlaps(x: Any, rows: Any, y: Any, *, repaired: bool):
    p = tile.program_id(0) * B
    index = p + tile.iota(B) if repaired else tile.load(rows, at=(p,), shape=(B,))
    part = tile.gather(x, index)  # second
    tile.scatter(y, p + tile.iota(B), part)  # first


@kernel
def counted_by_hand(values: Any, counts: Any, *, repaired: bool):
    at = tile.load(values, at=(tile.program_id(0) * B,), shape=(B,))
    if repaired:
        tile.scatter_add(counts, at, tile.ones((B,), i32))
    else:
        before = tile.gather(counts, at)  # second
        tile.scatter(counts, at, before + 1)  # first


@kernel
def kept_ones_moved_together(x: Any, bases: Any, out: Any, *, repaired: bool):
    """Positive elements go one behind the other; without its base every instance begins at 0."""
    p = tile.program_id(0)
    part = tile.load(x, at=(p * B,), shape=(B,))
    kept = part > 0
    base = tile.item(bases, p) if repaired else 0
    tile.scatter(out, tile.cumsum(tile.cast(kept, i32)) - 1 + base, part, mask=kept)  # both


@kernel
def winners_marked(scores: Any, taken: Any, *, repaired: bool):
    """Rows choose their largest column; two may choose the same."""
    p = tile.program_id(0)
    best = tile.topk(tile.load(scores[p], at=(0,), shape=(B,)), 1)[1]
    put = tile.scatter_max if repaired else tile.scatter
    put(taken, best, tile.ones((1,), i32))  # both


@kernel
def blocks_sorted_in_place(x: Any, *, repaired: bool):
    p = tile.program_id(0) * (B if repaired else B // 2)
    part = tile.load(x, at=(p,), shape=(B,))  # second
    tile.store(x, tile.sort(part), at=(p,))  # first


@kernel
def sums_handed_on(x: Any, before: Any, sums: Any, *, repaired: bool):
    """Each instance adds to what the one before it has left, which nothing orders."""
    p = tile.program_id(0)
    last = tile.item(before if repaired else sums, p)  # second
    total = tile.sum(tile.load(x, at=(p * B,), shape=(B,)))
    tile.store(sums, total[None] + last, at=(p + 1,))  # first


@kernel
def filled_up_to_a_mark(x: Any, starts: Any, out: Any, *, repaired: bool):
    """Elements are copied until a 0 comes; the first segment has none, and the loop runs into the second."""
    s = tile.program_id(0)
    start = tile.item(starts, s)
    for at in tile.range(start, tile.item(starts, s + 1) if repaired else x.shape[0]):
        if tile.item(x, at) == 0.0:
            break
        tile.store(out, tile.load(x, at=(at,), shape=(1,)), at=(at,))  # both


@kernel
def bytes_of_words(words: Any, bytes_: Any, places: Any, *, repaired: bool):
    p = tile.program_id(0)
    if p == 0:
        tile.scatter(words, tile.iota(2) * 2, tile.full((2,), 5, i32))  # first
    else:
        at = tile.load(places, at=(0,), shape=(2,))
        tile.scatter(bytes_, at % 4 + 4 if repaired else at, tile.full((2,), 3, i8))  # second


@kernel
def rows_of_one_memory(value: Any, rows: Any, out: Any, *, repaired: bool):
    """All rows of `out` are one row in memory, unless the twin is given an array of its own."""
    p = tile.program_id(0)
    row = tile.load(value, at=(p, 0), shape=(1, B))
    tile.scatter(out, tile.load(rows, at=(p,), shape=(1,)), row)  # both


@kernel
def blocks_of_a_grid_of_two_axes(value: Any, order: Any, out: Any, *, repaired: bool):
    i, j = tile.program_id(0), tile.program_id(1)
    part = tile.load(value, at=(i * B, j * B), shape=(B, B))
    row = tile.item(order, i) * B
    tile.store(out, part, at=(row, j * B if repaired else tile.item(order, j) // 2 * B))  # both


@dataclass(frozen=True)
class Planted:
    """A kernel, its grid, its arrays (for the twin or not), and what an error says of the two witnesses."""

    program: Any
    grid: tuple[int, ...]
    arrays: Callable[[bool], list[Any]]
    first: str
    second: str


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def table(*entries: Any) -> Array:
    return np.array(entries, np.int32)


def _overlapping(repaired: bool) -> list[Any]:
    line = floats(10)
    return [line[:8], table(0, 1, 2, 3, 6, 5, 4, 7), line[:8] if repaired else line[2:]]


def _words(repaired: bool) -> list[Any]:
    words = np.zeros(4, np.int32)
    return [words, words.view(np.int8), table(6, 11)]


def _one_memory(repaired: bool) -> list[Any]:
    row = zeros(B)
    out = zeros(3, B) if repaired else as_strided(row, (3, B), (0, row.itemsize))
    return [floats(3, B), table(2, 0, 1), out]


PLANTED = [
    Planted(
        rows_scattered,
        (2,),
        lambda _: [floats(8, 2), table(5, 2, 7, 1, 0, 3, 2, 6), zeros(8, 2)],
        "[0] writes out[2, 0]",
        "[1] writes out[2, 0]",
    ),
    Planted(
        columns_scattered,
        (2,),
        lambda _: [floats(8, B), table(6, 1, 3, 0), zeros(8, 7)],
        "[0] writes out[0, 6]",
        "[1] writes out[0, 6]",
    ),
    Planted(
        diagonals_scattered, (3,), lambda _: [floats(12), zeros(B, 7)], "[0] writes out[0, 0]", "[2] writes out[0, 0]"
    ),
    Planted(
        scattered_beside_a_store,
        (2,),
        lambda _: [floats(8), table(2, 3, 4, 5, 6, 0, 7, 1), zeros(12)],
        "[0] writes out[0]",
        "[1] writes out[0]",
    ),
    Planted(
        scattered_over_what_another_loads,
        (2,),
        lambda _: [floats(8), table(0, 7, 1, 2, 4, 5, 6, 3), zeros(8)],
        "[0] writes x[7]",
        "[1] reads x[7]",
    ),
    Planted(
        added_where_one_clears,
        (2,),
        lambda _: [floats(8), table(6, 6, 2, 5, 2, 0, 1, 3), zeros(7)],
        "[0] updates atomically out[2]",
        "[1] writes out[2]",
    ),
    Planted(
        added_where_one_reads,
        (2,),
        lambda _: [floats(8), table(3, 0, 3, 5, 1, 2, 5, 4), zeros(6), zeros(8)],
        "[0] reads out[5]",
        "[1] updates atomically out[5]",
    ),
    Planted(
        largest_beside_scattered,
        (2,),
        lambda _: [floats(8), table(3, 0, 2, 5, 1, 7, 0, 4), zeros(8)],
        "[0] updates atomically out[0]",
        "[1] writes out[0]",
    ),
    Planted(
        scattered_into_a_page,
        (3,),
        lambda _: [floats(12), table(2, 0, 2), zeros(3, B)],
        "[0] writes pages[2, 0]",
        "[2] writes pages[2, 0]",
    ),
    Planted(
        stored_at_an_item,
        (3,),
        lambda _: [floats(12), table(9, 2, 5), zeros(13)],
        "[1] writes out[5]",
        "[2] writes out[5]",
    ),
    Planted(
        pages_shared_by_two,
        (2,),
        lambda _: [floats(2, 2 * B), table([3, 1], [0, 3]), floats(4, B), zeros(2, 2 * B)],
        "[0] writes pages[3, 0]",
        "[1] reads pages[3, 0]",
    ),
    Planted(segments_that_overlap, (3,), lambda _: [floats(9), table(0, 4, 4, 9)], "[0] writes x[4]", "[1] reads x[4]"),
    Planted(
        masks_that_overlap,
        (3,),
        lambda _: [floats(12), table(2, 3, 3), zeros(10)],
        "[1] writes out[6]",
        "[2] writes out[6]",
    ),
    Planted(
        rows_dealt_out_in_a_while,
        (2,),
        lambda _: [floats(5, B), table(5), zeros(5, B)],
        "[0] writes out[1, 0]",
        "[1] writes out[1, 0]",
    ),
    Planted(
        partial_sums, (4,), lambda _: [floats(16), table(0, 1, 2, 1), zeros(3)], "[1] writes out[1]", "[3] reads out[1]"
    ),
    Planted(
        permuted_in_place,
        (2,),
        lambda _: [floats(8, 2), table(1, 0, 3, 7, 5, 4, 2, 6), zeros(8, 2)],
        "[0] writes x[2, 0]",
        "[1] reads x[2, 0]",
    ),
    Planted(
        middles_of_three_axes,
        (2, 2),
        lambda _: [floats(2, 2, B, 2), table(7, 6, 5, 4, 3, 2, 1, 0), zeros(2, 8, 2)],
        "[0, 0] writes out[0, 7, 0]",
        "[1, 0] writes out[0, 7, 0]",
    ),
    Planted(
        backwards_with_a_short_step,
        (2,),
        lambda _: [floats(8), zeros(16)[::-2]],
        "[0] writes out[3]",
        "[1] writes out[3]",
    ),
    Planted(gathered_from_what_overlaps, (2,), _overlapping, "[0] writes y[3]", "[1] reads x[5]"),
    Planted(
        counted_by_hand,
        (2,),
        lambda _: [table(3, 1, 6, 0, 4, 6, 2, 5), np.zeros(8, np.int32)],
        "[0] writes counts[6]",
        "[1] reads counts[6]",
    ),
    Planted(
        kept_ones_moved_together,
        (2,),
        lambda _: [np.array([-1, 2, 3, -4, 5, -6, 7, 8], np.float32), table(0, 2), zeros(8)],
        "[0] writes out[0]",
        "[1] writes out[0]",
    ),
    Planted(
        winners_marked,
        (3,),
        lambda _: [np.array([[0, 9, 1, 2], [7, 1, 1, 1], [3, 4, 0, 0]], np.float32), np.zeros(B, np.int32)],
        "[0] writes taken[1]",
        "[2] writes taken[1]",
    ),
    Planted(blocks_sorted_in_place, (2,), lambda _: [floats(8)], "[0] writes x[2]", "[1] reads x[2]"),
    Planted(sums_handed_on, (2,), lambda _: [floats(8), zeros(2), zeros(3)], "[0] writes sums[1]", "[1] reads sums[1]"),
    Planted(
        filled_up_to_a_mark,
        (2,),
        lambda _: [np.array([1, 2, 3, 4, 5, 0, 6], np.float32), table(0, 3, 7), zeros(7)],
        "[0] writes out[3]",
        "[1] writes out[3]",
    ),
    Planted(bytes_of_words, (2,), _words, "[0] writes words[2]", "[1] writes bytes_[11]"),
    Planted(rows_of_one_memory, (3,), _one_memory, "[0] writes out[0, 0]", "[1] writes out[0, 0]"),
    Planted(
        blocks_of_a_grid_of_two_axes,
        (2, 2),
        lambda _: [floats(8, 8), table(1, 0), zeros(8, 8)],
        "[0, 0] writes out[4, 0]",
        "[0, 1] writes out[4, 0]",
    ),
]
