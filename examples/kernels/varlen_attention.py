"""Attention of sequences that lie one behind the other: sequence s has the tokens starts[s] to starts[s + 1].

q, k and v are [T, H, D].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def varlen_attention(q: Any, k: Any, v: Any, starts: Any, out: Any, *, rows: int, d: int, causal: bool):
    s, h = tile.program_id(0), tile.program_id(1)
    start, end, scale = tile.item(starts, s), tile.item(starts, s + 1), d**-0.5
    row = start + tile.program_id(2) * rows
    if row < end:
        queries, here = tile.load(q[:, h], at=(row, 0), shape=(rows, d)), tile.iota((rows, 1), 0, row)
        acc, top, total = tile.zeros((rows, d)), tile.full((rows,), -tile.INF), tile.zeros((rows,))
        for first in tile.range(start, tile.minimum(end, row + rows) if causal else end, rows):
            keys = tile.load(k[:, h], at=(first, 0), shape=(rows, d))
            there = tile.iota((1, rows), 1, first)
            seen = (there <= here) & (there < end) if causal else there < end
            weights, best, sums = tile.softmax_online(tile.where(seen, tile.dot(queries, keys.T) * scale, -tile.INF))
            block = tile.load(v[:, h], at=(first, 0), shape=(rows, d))
            acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block, best, sums)
        tile.store(out[:, h], tile.cast(acc / total[:, None], out.dtype), at=(row, 0), mask=here < end)


def attend(
    q: Any, k: Any, v: Any, starts: Any, out: Any, longest: int, *, causal: bool = False, rows: int = 64
) -> None:
    """Fills `out`; `longest` is at least the length of the longest sequence."""
    grid = starts.shape[0] - 1, q.shape[1], -(-longest // rows)
    varlen_attention[grid](q, k, v, starts, out, rows=rows, d=q.shape[2], causal=causal)
