"""Linear attention in chunks, in the type of its arrays: a state of one head goes from chunk to chunk, and fades.

q, k and v are [H, S, D]. In `retention` a state fades by gammas [H] with each token; in `gated` each row of it by a
gate of its own, whose binary logarithms are gates [H, S, D], of f32: a chunk of them must not overflow as 2^-gate.
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
    before, after = tile.exp2((row + 1) * fade), tile.exp2((chunk - 1 - row) * fade)
    state = tile.zeros((d, d))
    for at in tile.range(0, q.shape[1], chunk):
        queries, keys, values = (tile.load(one[h], at=(at, 0), shape=(chunk, d)) for one in (q, k, v))
        seen = tile.dot(tile.cast(tile.dot(queries, keys.T) * within, v.dtype), values)
        seen = seen + tile.dot(queries, tile.cast(state, q.dtype)) * before
        tile.store(out[h], tile.cast(seen, out.dtype), at=(at, 0))
        state = state * tile.exp2(fade * chunk) + tile.dot(tile.cast(keys.to(f32) * after, k.dtype).T, values)


@kernel
def gated(q: Any, k: Any, v: Any, gates: Any, out: Any, *, chunk: int, d: int):
    h = tile.program_id(0)
    row, column = tile.iota((chunk, 1), 0), tile.iota((1, chunk), 1)
    state = tile.zeros((d, d))
    for at in tile.range(0, q.shape[1], chunk):
        queries, keys, values = (tile.load(one[h], at=(at, 0), shape=(chunk, d)) for one in (q, k, v))
        gate = tile.load(gates[h], at=(at, 0), shape=(chunk, d))
        fades, whole = tile.cumsum(gate, axis=0), tile.sum(gate, axis=0, keepdims=True)
        left = tile.cast(queries.to(f32) * tile.exp2(fades), q.dtype)
        right = tile.cast(keys.to(f32) * tile.exp2(-fades), k.dtype)
        scores = tile.where(row >= column, tile.dot(left, right.T), 0.0)
        seen = tile.dot(tile.cast(scores, v.dtype), values) + tile.dot(left, tile.cast(state, q.dtype))
        tile.store(out[h], tile.cast(seen, out.dtype), at=(at, 0))
        kept = tile.cast(keys.to(f32) * tile.exp2(whole - fades), k.dtype)
        state = state * tile.exp2(whole).T + tile.dot(kept.T, values)


def retain(q: Any, k: Any, v: Any, gammas: Any, out: Any, chunk: int = 64) -> None:
    """Fills `out`."""
    retention[q.shape[0]](q, k, v, gammas, out, chunk=chunk, d=q.shape[2])


def attend(q: Any, k: Any, v: Any, gates: Any, out: Any, chunk: int = 64) -> None:
    """Fills `out`."""
    gated[q.shape[0]](q, k, v, gates, out, chunk=chunk, d=q.shape[2])
