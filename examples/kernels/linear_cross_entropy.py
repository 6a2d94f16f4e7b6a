"""The losses of a model's last layer, without its logits in memory: blocks of them are folded as they are made.

x is [T, K], weights are [V, K], targets and losses [T].
"""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def linear_cross_entropy(x: Any, weights: Any, targets: Any, losses: Any):
    here = tile.context()
    row = tile.program_id(0) * here.m
    target = tile.load(targets, at=(row,), shape=(here.m,))[:, None]
    top, total, chosen = tile.full((here.m,), -tile.INF), tile.zeros((here.m,)), tile.zeros((here.m,))
    for column in tile.range(0, weights.shape[0], here.n):
        logits = tile.zeros((here.m, here.n))
        for k in tile.range(0, x.shape[1], here.k):
            left = tile.load(x, at=(row, k), shape=(here.m, here.k))
            logits = tile.dot(left, tile.load(weights, at=(column, k), shape=(here.n, here.k)).T, logits)
        which = tile.iota((1, here.n), 1, column)
        chosen = chosen + tile.sum(tile.where(which == target, logits, 0.0), axis=1)
        logits = tile.where(which < weights.shape[0], logits, -tile.INF)
        best = tile.maximum(top, tile.max(logits, axis=1))
        total = total * tile.exp(top - best) + tile.sum(tile.exp(logits - best[:, None]), axis=1)
        top = best
    tile.store(losses, top + tile.log(total) - chosen, at=(row,))


def losses_of(x: Any, weights: Any, targets: Any, losses: Any) -> None:
    """Fills `losses`."""
    linear_cross_entropy(x, weights, targets, losses)
