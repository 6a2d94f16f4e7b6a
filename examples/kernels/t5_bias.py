"""Attention with T5's bias: it depends on the distance of query and key, by way of a table that each tile looks up.

q, k and v are [H, S, D], bias is [buckets, H].
"""

from __future__ import annotations

from typing import Any

from tessera import f32, i64, kernel, tile


def bucket_of(distance: Any, buckets: int, farthest: int) -> Any:
    """The entry of the table for keys so far behind a query: one each while they are near, logarithmic farther on."""
    near = buckets // 2
    behind = tile.maximum(distance, 0)
    steps = tile.log(tile.maximum(behind, 1).to(f32) / near) * ((buckets - near) / tile.log(farthest / near))
    far = tile.minimum(near + tile.maximum(steps, 0.0).to(i64), buckets - 1)
    return tile.where(behind < near, behind, far)


@kernel
def t5_attention(q: Any, k: Any, v: Any, bias: Any, out: Any, *, rows: int, d: int, farthest: int = 128):
    row, h = tile.program_id(0) * rows, tile.program_id(1)
    queries, here = tile.load(q[h], at=(row, 0), shape=(rows, d)), tile.iota((rows, 1), 0, row)
    acc, top, total = tile.zeros((rows, d)), tile.full((rows,), -tile.INF), tile.zeros((rows,))
    for first in tile.range(0, k.shape[1], rows):
        there = tile.iota((1, rows), 1, first)
        looked_up = tile.gather(bias[:, h], bucket_of(here - there, 32, farthest))
        keys = tile.load(k[h], at=(first, 0), shape=(rows, d))
        scores = tile.where(there <= here, tile.dot(queries, keys.T) + looked_up.to(f32), -tile.INF)
        weights, best, sums = tile.softmax_online(scores)
        block = tile.load(v[h], at=(first, 0), shape=(rows, d))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
    tile.store(out[h], tile.cast(acc / total[:, None], out.dtype), at=(row, 0))


def attend(q: Any, k: Any, v: Any, bias: Any, out: Any, rows: int = 64) -> None:
    """Fills `out`, causally; the table has 32 entries for each head."""
    heads, length, depth = q.shape
    t5_attention[-(-length // rows), heads](q, k, v, bias, out, rows=rows, d=depth)
