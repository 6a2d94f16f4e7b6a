"""Differential attention: the difference of two attentions to the same values, in one pass over them.

q1, q2 and out are [H, S, D], k1, k2 and v [H, T, D].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def differential_attention(q1: Any, k1: Any, q2: Any, k2: Any, v: Any, out: Any, *, d: int, share: float):
    """softmax(q1·k1ᵀ/√d)·v − share·softmax(q2·k2ᵀ/√d)·v."""
    here = tile.context()
    row, h = tile.program_id(0) * here.m, tile.program_id(1)
    first, second = (tile.load(one[h], at=(row, 0), shape=(here.m, d)) for one in (q1, q2))
    acc1, top1, total1 = tile.zeros((here.m, d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    acc2, top2, total2 = tile.zeros((here.m, d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for at in tile.range(0, v.shape[1], here.n):
        there = tile.iota((1, here.n), 1, at) < v.shape[1]
        values = tile.load(v[h], at=(at, 0), shape=(here.n, d))
        scores = tile.dot(first, tile.load(k1[h], at=(at, 0), shape=(here.n, d)).T) * d**-0.5
        weights, best, sums = tile.softmax_online(tile.where(there, scores, -tile.INF))
        acc1, top1, total1 = tile.softmax_accumulate(acc1, top1, total1, weights, values, best, sums)
        scores = tile.dot(second, tile.load(k2[h], at=(at, 0), shape=(here.n, d)).T) * d**-0.5
        weights, best, sums = tile.softmax_online(tile.where(there, scores, -tile.INF))
        acc2, top2, total2 = tile.softmax_accumulate(acc2, top2, total2, weights, values, best, sums)
    tile.store(out[h], tile.cast(acc1 / total1[:, None] - share * (acc2 / total2[:, None]), out.dtype), at=(row, 0))


def by_rows(q1: Any, block: Any) -> Any:
    return tile.cdiv(q1.shape[1], block.m), q1.shape[0]


def attend(q1: Any, k1: Any, q2: Any, k2: Any, v: Any, out: Any, share: float) -> None:
    """Fills `out`."""
    differential_attention.grid(by_rows)(q1, k1, q2, k2, v, out, d=q1.shape[2], share=share)
