"""Decoding with a paged cache: keys and values lie in pages of memory, and a table says which pages are a sequence's.

q [B, H, G, D] has the query heads of a group as rows, pages and values are [N, H, P, D], table [B, M], lengths [B].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def paged_decode(q: Any, pages: Any, values: Any, table: Any, lengths: Any, out: Any, *, g: int, p: int, d: int):
    b, h = tile.program_id(0), tile.program_id(1)
    length, scale = tile.item(lengths, b), d**-0.5
    queries = tile.load(q[b, h], at=(0, 0), shape=(g, d))
    acc, top, total = tile.zeros((g, d)), tile.full((g,), -tile.INF), tile.zeros((g,))
    for first in tile.range(0, length, p):
        page = tile.item(table, b, first // p)
        keys = tile.load(pages[page, h], at=(0, 0), shape=(p, d))
        there = tile.iota((1, p), 1, first) < length
        scores = tile.where(there, tile.dot(queries, keys.T) * scale, -tile.INF)
        weights, best, sums = tile.softmax_online(scores)
        block = tile.load(values[page, h], at=(0, 0), shape=(p, d))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
    tile.store(out[b, h], tile.cast(acc / total[:, None], out.dtype), at=(0, 0))


def attend(q: Any, pages: Any, values: Any, table: Any, lengths: Any, out: Any) -> None:
    """Fills `out` with what each query sees of its sequence."""
    batch, heads, group, depth = q.shape
    rows = max(16, 1 << (group - 1).bit_length())
    paged_decode[batch, heads](q, pages, values, table, lengths, out, g=rows, p=pages.shape[2], d=depth)
