"""Kernels that load through tables of pages, sequences in pages, and what NumPy says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera import kernel, tile

Array = np.ndarray[Any, np.dtype[Any]]


@kernel
def gathered(pages: Any, table: Any, lengths: Any, out: Any, *, n: int, d: int, pad: float = 0.0):
    """Sequences in pages, one behind the other, a block at a time."""
    b, h = tile.program_id(0), tile.program_id(1)
    length = tile.item(lengths, b)
    for first in tile.range(0, length, n):
        place = tile.page(table, b, first, length=length)
        tile.store(out[b, h], tile.load(pages, at=(place, h, 0, 0), shape=(n, d), pad=pad), at=(first, 0))


@kernel
def attended(q: Any, pages: Any, values: Any, table: Any, lengths: Any, out: Any, *, g: int, n: int, d: int):
    b, h = tile.program_id(0), tile.program_id(1)
    length, queries = tile.item(lengths, b), tile.load(q[b, h], at=(0, 0), shape=(g, d))
    acc, top, total = tile.zeros((g, d)), tile.full((g,), -tile.INF), tile.zeros((g,))
    for first in tile.range(0, length, n):
        place = tile.page(table, b, first, length=length)
        scores = tile.dot(queries, tile.load(pages, at=(place, h, 0, 0), shape=(n, d)).T) * d**-0.5
        scores = tile.where(tile.iota((1, n), 1, first) < length, scores, -tile.INF)
        weights, best, sums = tile.softmax_online(scores)
        block = tile.load(values, at=(place, h, 0, 0), shape=(n, d))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
    tile.store(out[b, h], acc / total[:, None], at=(0, 0))


def sequences(
    seed: int, page: int, lengths: list[int], *, heads: int = 2, d: int = 5
) -> tuple[Array, Array, list[Array]]:
    """Pages in any order, with some that hold NaN, a table with holes, and the sequences themselves."""
    random = np.random.default_rng(seed)
    most = max(1, *(-(-length // page) for length in lengths))
    pages = random.standard_normal((len(lengths) * most + 3, heads, page, d)).astype(np.float32)
    order = random.permutation(len(pages))
    table: Array = np.full((len(lengths), most), -1, (np.int32, np.int64)[seed % 2])
    used, found = 0, list[Array]()
    for b, length in enumerate(lengths):
        count = -(-length // page)
        table[b, :count] = order[used : used + count]
        used += count
        rows = pages[table[b, :count]].transpose(1, 0, 2, 3).reshape(heads, count * page, d)
        found.append(rows[:, :length].copy())
        if count:
            pages[table[b, count - 1], :, length - (count - 1) * page :] = np.nan
    pages[order[used:]] = np.nan
    return pages, table, found


def attention(q: Array, keys: list[Array], values: list[Array]) -> Array:
    """What each sequence's queries see of it."""
    found: list[Array] = []
    for queries, k, v in zip(q, keys, values, strict=True):
        scores = queries @ k.swapaxes(1, 2) * q.shape[-1] ** -0.5
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        found.append(weights @ v / weights.sum(-1, keepdims=True))
    return np.stack(found)
