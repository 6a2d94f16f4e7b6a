"""Decoding with a paged cache: keys and values lie in pages of memory, and a table says which pages are a sequence's.

q [B, H, G, D] has the query heads of a group as rows, pages and values are [N, H, P, D], table [B, M], lengths [B].
Keys are split among program instances, which leave parts of the result and their log-sum-exps, [B, H, G, splits, ·].
"""

from __future__ import annotations

from typing import Any

import tessera as ts
from tessera import kernel, tile
from tessera.stdlib.decoding import split

MULTIPROCESSORS = 132
"""Of an H200. Keys are split so that these have work; the result is the same with any number."""


@kernel
def paged_parts(
    q: Any, k: Any, v: Any, table: Any, lengths: Any, parts: Any, logs: Any, span: int, *, g: int, n: int, d: int
):
    s, h, b = tile.program_id(0), tile.program_id(1), tile.program_id(2)
    length = tile.item(lengths, b)
    stop, queries = tile.minimum(s * span + span, length), tile.load(q[b, h], at=(0, 0), shape=(g, d))
    acc, top, total = tile.zeros((g, d)), tile.full((g,), -tile.INF), tile.zeros((g,))
    for first in tile.range(s * span, stop, n):
        page = tile.page(table, b, first, length=length)
        scores = tile.dot(queries, tile.load(k, at=(page, h, 0, 0), shape=(n, d)).T) * d**-0.5
        scores = tile.where(tile.iota((1, n), 1, first) < stop, scores, -tile.INF)
        weights, best, sums = tile.softmax_online(scores)
        block = tile.load(v, at=(page, h, 0, 0), shape=(n, d))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
    tile.store(parts[b, h, :, s], acc / total[:, None], at=(0, 0))
    tile.store(logs[b, h, :, s], (top + tile.log(total))[:, None], at=(0, 0))


@kernel
def combined(parts: Any, logs: Any, out: Any, *, splits: int, width: int):
    column, row, b = tile.program_id(0) * width, tile.program_id(1), tile.program_id(2)
    h, g = row // out.shape[2], row % out.shape[2]
    logarithms = tile.load(logs[b, h, g], at=(0, 0), shape=(splits, 1))
    most = tile.max(logarithms, axis=0, keepdims=True)
    weights = tile.exp(logarithms - tile.where(most > -tile.INF, most, 0.0))
    found = tile.load(parts[b, h, g], at=(0, column), shape=(splits, width))
    # The largest weight is 1, except where there are no keys at all.
    total = tile.maximum(tile.sum(weights, axis=0, keepdims=True), 1.0)
    whole = tile.sum(weights * found, axis=0, keepdims=True) / total
    tile.store(out[b, h], tile.cast(whole, out.dtype), at=(g, column))


def attend(q: Any, pages: Any, values: Any, table: Any, lengths: Any, out: Any) -> None:
    """Fills `out` with what each query sees of its sequence."""
    (batch, heads, group, depth), page = q.shape, pages.shape[2]
    block = page * (128 // page) if page < 128 else 128 if page % 128 == 0 else page
    splits, span = split(batch * heads, table.shape[1] * page, MULTIPROCESSORS, block)
    parts, logs = (ts.empty((batch, heads, group, splits, size), ts.f32, q.device) for size in (depth, 1))
    rows = -(-group // 64) * 64
    paged_parts[splits, heads, batch](q, pages, values, table, lengths, parts, logs, span, g=rows, n=block, d=depth)
    combined[-(-depth // 32), heads * group, batch](parts, logs, out, splits=splits, width=32)
