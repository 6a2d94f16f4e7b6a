"""Products whose rows are stored under masks, in branches and at places that memory decides, with what they give."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera import bf16, f32, kernel, tile

Array = np.ndarray[Any, np.dtype[Any]]
BF16 = bf16.storage


def product(a: Any, b: Any, row: Any, column: Any, m: int, n: int, k: int) -> Any:
    acc = tile.zeros((m, n), f32)
    for at in tile.range(0, a.shape[1], k):
        left = tile.load(a, at=(row, at), shape=(m, k))
        acc = tile.dot(left, tile.load(b, at=(at, column), shape=(k, n)), acc)
    return acc


@kernel
def parts(a: Any, b: Any, starts: Any, out: Any, *, m: int, n: int, k: int):
    """Rows from starts[i] to starts[i + 1] alone; the block of rows begins where they do."""
    part, column = tile.program_id(0), tile.program_id(2) * n
    row, end = tile.item(starts, part) + tile.program_id(1) * m, tile.item(starts, part + 1)
    if row < end:
        acc = product(a, b, row, column, m, n, k)
        tile.store(out, tile.cast(acc, out.dtype), at=(row, column), mask=tile.iota((m, 1), 0, row) < end)


@kernel
def masked(a: Any, b: Any, out: Any, *, m: int, n: int, k: int):
    """The lower triangle of a product."""
    row, column = tile.program_id(0) * m, tile.program_id(1) * n
    acc = product(a, b, row, column, m, n, k)
    there = tile.iota((1, n), 1, column) <= tile.iota((m, 1), 0, row)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column), mask=there)


@kernel
def scattered(a: Any, b: Any, order: Any, out: Any, *, m: int, n: int, k: int):
    """Row i of a product is row order[i] of the result."""
    row, column = tile.program_id(0) * m, tile.program_id(1) * n
    acc = product(a, b, row, column, m, n, k)
    places = tile.load(order, at=(row,), shape=(m,), pad=-1)
    tile.scatter(out, places, tile.cast(acc, out.dtype), at=(column,))


@kernel
def chosen(a: Any, b: Any, flags: Any, out: Any, other: Any, *, m: int, n: int, k: int):
    """Blocks of rows go to one array or to the other, as a flag for each says."""
    block, column = tile.program_id(0), tile.program_id(1) * n
    acc = product(a, b, block * m, column, m, n, k)
    if tile.item(flags, block) > 0:
        tile.store(out, tile.cast(acc, out.dtype), at=(block * m, column))
    else:
        tile.store(other, tile.cast(-acc, other.dtype), at=(block * m, column))


@kernel
def both(a: Any, b: Any, out: Any, sums: Any, *, m: int, n: int, k: int):
    """A product, and the sums of its rows, some of them."""
    row = tile.program_id(0) * m
    acc = product(a, b, row, 0, m, n, k)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, 0))
    index = tile.iota((m,), 0, row)
    tile.store(sums, tile.sum(acc, axis=1), at=(row,), mask=(index - index // 3 * 3) == 0)


class Placed:
    """A call of a kernel; the arrays it writes come last, and hold 7 where it writes nothing."""

    def __init__(self, kernel: Any, given: list[Array], expected: list[Array], sizes: tuple[int, int, int]) -> None:
        self.kernel, self.given, self.expected = kernel, given, expected
        self.static = dict(zip("mnk", sizes, strict=True))

    @property
    def written(self) -> int:
        return len(self.expected)


NAMES = ("parts", "masked", "scattered", "chosen", "both")


def placed(name: str, seed: int, sizes: tuple[int, int, int], rows: int, columns: int, depth: int) -> Placed:
    """A call of the kernel `name` with random operands; a product is of so many rows and columns, and so deep."""
    random, (m, n, _) = np.random.default_rng(seed), sizes
    if name == "both":
        columns = min(columns, n)
    a, b = (random.standard_normal(shape).astype(BF16) for shape in ((rows, depth), (depth, columns)))
    whole = a.astype(np.float64) @ b.astype(np.float64)
    blocks, across = -(-rows // m), -(-columns // n)
    found = np.full((rows, columns), 7.0)
    if name == "parts":
        starts = np.sort(random.integers(0, rows + 1, 4)).astype(np.int32)
        found[starts[0] : starts[-1]] = whole[starts[0] : starts[-1]]
        return Placed(parts[3, blocks, across], [a, b, starts, filled(rows, columns)], [found], sizes)
    if name == "masked":
        lower = np.arange(columns) <= np.arange(rows)[:, None]
        expected = np.where(lower, whole, found)
        return Placed(masked[blocks, across], [a, b, filled(rows, columns)], [expected], sizes)
    if name == "scattered":
        order = random.permutation(rows + 5)[:rows].astype(np.int32)
        order[random.random(rows) < 0.1] = -1
        expected = np.full((rows + 5, columns), 7.0)
        expected[order[order >= 0]] = whole[order >= 0]
        return Placed(scattered[blocks, across], [a, b, order, filled(rows + 5, columns)], [expected], sizes)
    if name == "chosen":
        flags = random.integers(0, 2, blocks).astype(np.int32)
        first = np.repeat(flags, m)[:rows, None] > 0
        expected = [np.where(first, whole, found), np.where(first, found, -whole)]
        outs = [filled(rows, columns), filled(rows, columns)]
        return Placed(chosen[blocks, across], [a, b, flags, *outs], expected, sizes)
    kept = np.arange(rows) % 3 == 0
    sums = np.where(kept, whole.sum(1), 7.0)
    return Placed(both[(blocks,)], [a, b, filled(rows, columns), np.full(rows, 7, np.float32)], [whole, sums], sizes)


def filled(rows: int, columns: int) -> Array:
    return np.full((rows, columns), 7, BF16)


def check(call: Placed, found: list[Array]) -> None:
    for one, expected in zip(found, call.expected, strict=True):
        error = np.abs(one.astype(np.float64) - expected).max(initial=0)
        assert error <= 2.0**-7 * max(1.0, np.abs(expected).max(initial=0))
