"""A chunk of each sequence's queries against its paged keys: the last `counts[b]` tokens of `lengths[b]`.

q [B, H, S, D] has at most S queries of each sequence, pages and values are [N, H, P, D], table [B, M].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def paged_prefill(
    q: Any, k: Any, v: Any, table: Any, lengths: Any, counts: Any, out: Any, *, rows: int, n: int, d: int
):
    b, h, row = tile.program_id(0), tile.program_id(1), tile.program_id(2) * rows
    length, count, scale = tile.item(lengths, b), tile.item(counts, b), d**-0.5
    if row < count:
        queries, at = tile.load(q[b, h], at=(row, 0), shape=(rows, d)), length - count + row
        acc, top, total = tile.zeros((rows, d)), tile.full((rows,), -tile.INF), tile.zeros((rows,))
        for first in tile.range(0, tile.minimum(length, at + rows), n):
            page = tile.page(table, b, first, length=length)
            keys = tile.load(k, at=(page, h, 0, 0), shape=(n, d))
            before = tile.iota((1, n), 1, first) <= tile.iota((rows, 1), 0, at)
            scores = tile.where(before, tile.dot(queries, keys.T) * scale, -tile.INF)
            weights, best, sums = tile.softmax_online(scores)
            block = tile.load(v, at=(page, h, 0, 0), shape=(n, d))
            acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
        there = tile.iota((rows, 1), 0, row) < count
        tile.store(out[b, h], tile.cast(acc / total[:, None], out.dtype), at=(row, 0), mask=there)


def attend(q: Any, pages: Any, values: Any, table: Any, lengths: Any, counts: Any, out: Any, rows: int = 128) -> None:
    """Fills the rows of `out` that are queries."""
    (batch, heads, most, depth), page = q.shape, pages.shape[2]
    block = page * (rows // page) if page < rows else rows if page % rows == 0 else page
    grid = batch, heads, -(-most // rows)
    paged_prefill[grid](q, pages, values, table, lengths, counts, out, rows=rows, n=block, d=depth)
