"""Retention in chunks: a state of one head goes from chunk to chunk, and fades by gamma with each token.

q, k and v are [H, S, D], gammas [H].
"""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def retention(q: Any, k: Any, v: Any, gammas: Any, out: Any, *, chunk: int, d: int):
    h = tile.program_id(0)
    fade = tile.log2(tile.item(gammas, h))
    row, column = tile.iota((chunk, 1), 0).to(f32), tile.iota((1, chunk), 1).to(f32)
    within = tile.where(row >= column, tile.exp2((row - column) * fade), 0.0)
    state = tile.zeros((d, d))
    for at in tile.range(0, q.shape[1], chunk):
        queries, keys, values = (tile.load(one[h], at=(at, 0), shape=(chunk, d)).to(f32) for one in (q, k, v))
        seen = tile.dot(tile.dot(queries, keys.T) * within, values)
        seen = seen + tile.dot(queries * tile.exp2((row + 1) * fade), state)
        tile.store(out[h], tile.cast(seen, out.dtype), at=(at, 0))
        left = tile.exp2((chunk - 1 - row) * fade)
        state = state * tile.exp2(fade * chunk) + tile.dot((keys * left).T, values)


def retain(q: Any, k: Any, v: Any, gammas: Any, out: Any, chunk: int = 32) -> None:
    """Fills `out`."""
    retention[q.shape[0]](q, k, v, gammas, out, chunk=chunk, d=q.shape[2])
