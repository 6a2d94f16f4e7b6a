"""Kernels in which memory decides: where something lies, which elements count, and how long a loop goes on."""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def item_of(x: Any, out: Any):
    i = tile.program_id(0)
    tile.store(out, tile.full((1,), tile.item(x, i)), at=(i,))


@kernel
def place_of(x: Any, out: Any):
    i = tile.program_id(0)
    tile.store(out, tile.iota((1,), base=tile.item(x, i, i)), at=(i,))


@kernel
def summed_segments(x: Any, starts: Any, wanted: Any, out: Any):
    i = tile.program_id(0)
    end, total = tile.item(starts, i + 1), tile.zeros((8,))
    if tile.item(wanted, i):
        for at in tile.range(tile.item(starts, i), end, 8):
            part = tile.load(x, at=(at,), shape=(8,))
            total = total + tile.where(tile.iota(8) + at < end, part, 0.0)
    tile.store(out, tile.sum(total)[None], at=(i,))


@kernel
def gathered_rows(x: Any, rows: Any, out: Any, *, pad: float = 0):
    i = tile.program_id(0)
    at = tile.load(rows, at=(i * 4,), shape=(4,))
    tile.store(out, tile.gather(x, at, at=(2,), shape=(8,), pad=pad), at=(i * 4, 0))


@kernel
def gathered_columns(x: Any, columns: Any, out: Any, *, pad: float = 0):
    i = tile.program_id(0)
    at = tile.load(columns, at=(i * 4,), shape=(4,))
    tile.store(out, tile.gather(x, at, -1, at=(2,), shape=(8,), pad=pad), at=(0, i * 4))


@kernel
def pairs(x: Any, out: Any, step: int):
    rows, columns = tile.iota((8, 1), 0), tile.iota((1, 4), 1)
    tile.store(out, tile.gather(x, (rows, (rows * step + columns) % x.shape[1], 1)), at=(0, 0))


@kernel
def scattered(rows: Any, value: Any, out: Any, *, how: str):
    i = tile.program_id(0)
    at, part = tile.load(rows, at=(i * 4,), shape=(4,)), tile.load(value, at=(i * 4, 0), shape=(4, 8))
    getattr(tile, how)(out, at, part, at=(1,), mask=tile.iota(4) + i * 4 < rows.shape[0])


@kernel
def stored_where(x: Any, out: Any):
    part = tile.load(x, at=(0, 0), shape=(8, 16))
    tile.store(out, part, at=(1, 2), mask=part > 0)
    last: Any = tile.iota((8, 1)) == 7
    tile.store(out, part * 0 + 5.0, at=(0, 0), mask=last)


@kernel
def a_column(x: Any, out: Any):
    i = tile.program_id(0)
    part = tile.load(x[:, i], at=(0, 0), shape=(4, 8))
    tile.store(out[i], part + tile.load(x[1, :, 0], at=(0,), shape=(4,))[:, None], at=(0, 0))


@kernel
def open_scatter(rows: Any, value: Any, out: Any):
    i = tile.program_id(0)
    tile.scatter(out, tile.load(rows, at=(i * 4,), shape=(4,)), tile.load(value, at=(i * 4,), shape=(4,)))


@kernel
def collatz(x: Any, out: Any):
    i = tile.program_id(0)
    n, steps = tile.item(x, i), 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    tile.store(out, tile.iota((1,), base=steps), at=(i,))


@kernel
def sums_until(x: Any, limits: Any, least: Any, out: Any):
    """Sums of blocks of eight until one begins at a limit; blocks that begin below `least` are left out."""
    i = tile.program_id(0)
    total, limit, taken = tile.zeros((8,)), tile.item(limits, i), 0
    for at in tile.range(0, x.shape[1], 8):
        if at >= limit:
            break
        if tile.item(x, i, at) < tile.item(least, 0):
            continue
        part = tile.load(x, at=(i, at), shape=(1, 8))
        if taken == 3:
            total = total + 100.0
            break
        total, taken = total + tile.sum(part, 0), taken + 1
    tile.store(out, total[None], at=(i, 0))


@kernel
def powers(x: Any, w: Any, times: Any, out: Any):
    y, left = tile.load(x, at=(0, 0), shape=(16, 16)), tile.item(times, 0)
    while left > 0:
        y = tile.dot(y, tile.load(w, at=(0, 0), shape=(16, 16)))
        left = left - 1
        pair = (y, left)
        while pair[1] > 5:
            pair = (pair[0] * 0.5, pair[1] - 1)
        y, left = pair
    tile.store(out, y, at=(0, 0))


@kernel
def paged(pages: Any, table: Any, out: Any, *, pad: float = 0):
    i = tile.program_id(0)
    page = pages[tile.item(table, i)]
    tile.store(out[i], tile.load(page, at=(0, 0), shape=(4, 8), pad=pad), at=(0, 0))


@kernel
def paged_twice(pages: Any, table: Any, out: Any):
    i = tile.program_id(0)
    row = pages[tile.item(table, i)][tile.item(table, i + 1)]
    found = tile.load(row, at=(1,), shape=(8,)) + tile.item(row, 2) + tile.gather(row, tile.iota(8) // 2)
    tile.store(out, found[None, :], at=(i, 0))


@kernel
def paged_columns(pages: Any, table: Any, out: Any):
    i = tile.program_id(0)
    at = tile.item(table, i)
    tile.store(out[i], tile.load(pages[:, at + 1, :], at=(0, 0), shape=(8, 8)), at=(0, 0))


@kernel
def paged_out(values: Any, table: Any, pages: Any, *, how: str):
    i = tile.program_id(0)
    page, part = pages[tile.item(table, i)], tile.load(values[i], at=(0, 0), shape=(4, 8))
    if how == "store":
        tile.store(page, part, at=(0, 0))
    elif how == "atomic":
        tile.atomic_add(page, part, at=(0, 0))
    else:
        tile.scatter_add(page, tile.iota(4), part, at=(0,))


@kernel
def multiplied_pages(pages: Any, w: Any, table: Any, out: Any, *, steps: int):
    i = tile.program_id(0)
    page, acc = pages[tile.item(table, 2 * i)], tile.zeros((128, 64))
    for k in tile.range(0, steps * 64, 64):
        left, right = tile.load(page, at=(0, k), shape=(128, 64)), tile.load(w, at=(k, 0), shape=(64, 64))
        acc = acc + tile.dot(left, right)
    tile.store(out[tile.item(table, 2 * i + 1)], tile.cast(acc, out.dtype), at=(0, 0))


@kernel
def before_and_behind(x: Any, w: Any, out: Any, *, steps: int):
    i = tile.program_id(0)
    row, acc = (i - 3) // 2 * 128, tile.zeros((128, 64))
    for k in tile.range(0, steps * 64, 64):
        left, right = tile.load(x, at=(row, k), shape=(128, 64)), tile.load(w, at=(k, 0), shape=(64, 64))
        acc = acc + tile.dot(left, right)
    tile.store(out, tile.cast(acc, out.dtype), at=((i - 2) * 128, 0))
