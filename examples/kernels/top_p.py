"""Sampling from the most likely tokens whose probabilities add up to p; chance comes as a number per row."""

from __future__ import annotations

from typing import Any

from tessera import f32, i32, kernel, tile


@kernel
def top_p(logits: Any, chances: Any, tokens: Any, p: float, temperature: float, *, width: int):
    row = tile.program_id(0)
    given = tile.load(logits, at=(row, 0), shape=(1, width), pad=-tile.INF).to(f32) / temperature
    likely, order = tile.topk(given, width)
    weights = tile.exp(likely - tile.max(likely, keepdims=True))
    shares = weights / tile.sum(weights, keepdims=True)
    upto = tile.cumsum(shares)
    kept = upto - shares < p  # the first one always
    chance = tile.item(chances, row) * tile.sum(tile.where(kept, shares, 0.0), keepdims=True)
    chosen = tile.argmax(
        tile.where((upto > chance) | (upto - shares >= p), 1, tile.zeros((1, width), i32)), keepdims=True
    )
    last = tile.max(tile.where(kept, tile.iota((1, width), 1), 0), keepdims=True)
    tile.store(tokens, tile.cast(tile.take(order, tile.minimum(chosen, last), 1), tokens.dtype), at=(row, 0))


def sample(logits: Any, chances: Any, tokens: Any, p: float = 0.9, temperature: float = 1.0) -> None:
    """Fills `tokens` [B, 1] from logits [B, V] and numbers in [0, 1) [B]."""
    top_p[logits.shape[0]](logits, chances, tokens, p, temperature, width=1 << (logits.shape[1] - 1).bit_length())
