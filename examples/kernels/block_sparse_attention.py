"""Attention to some blocks of keys: queries of block i see the blocks columns[starts[i]:starts[i + 1]].

q, k and v are [H, S, D].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def block_sparse_attention(q: Any, k: Any, v: Any, starts: Any, columns: Any, out: Any, *, rows: int, d: int):
    i, h, scale = tile.program_id(0), tile.program_id(1), d**-0.5
    queries = tile.load(q[h], at=(i * rows, 0), shape=(rows, d))
    acc, top, total = tile.zeros((rows, d)), tile.full((rows,), -tile.INF), tile.zeros((rows,))
    for entry in tile.range(tile.item(starts, i), tile.item(starts, i + 1)):
        first = tile.item(columns, entry) * rows
        keys = tile.load(k[h], at=(first, 0), shape=(rows, d))
        weights, best, sums = tile.softmax_online(tile.dot(queries, keys.T) * scale)
        block = tile.load(v[h], at=(first, 0), shape=(rows, d))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
    tile.store(out[h], tile.cast(acc / total[:, None], out.dtype), at=(i * rows, 0))


def attend(q: Any, k: Any, v: Any, starts: Any, columns: Any, out: Any, rows: int = 64) -> None:
    """Fills `out`; queries without any block give 0."""
    heads, _, depth = q.shape
    block_sparse_attention[starts.shape[0] - 1, heads](q, k, v, starts, columns, out, rows=rows, d=depth)
