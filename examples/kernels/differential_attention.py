"""Differential attention: the difference of two attentions to the same values, in one pass over them.

q1, q2 are [H, S, D], k1, k2 and v [H, T, D].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def differential_attention(q1: Any, k1: Any, q2: Any, k2: Any, v: Any, share: float):
    """softmax(q1·k1ᵀ/√d)·v − share·softmax(q2·k2ᵀ/√d)·v."""
    here = tile.context()
    first, second = tile.load(q1), tile.load(q2)
    acc1, top1, total1 = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    acc2, top2, total2 = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(v.shape, here.n):
        values = tile.load(v, block)
        weights, best, sums = tile.softmax_online(tile.dot(first, tile.load(k1, block).T) * here.d**-0.5)
        acc1, top1, total1 = tile.softmax_accumulate(acc1, top1, total1, weights, values, best, sums)
        weights, best, sums = tile.softmax_online(tile.dot(second, tile.load(k2, block).T) * here.d**-0.5)
        acc2, top2, total2 = tile.softmax_accumulate(acc2, top2, total2, weights, values, best, sums)
    return tile.cast(acc1 / total1[:, None] - share * (acc2 / total2[:, None]), q1.dtype)
