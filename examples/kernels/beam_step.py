"""One step of beam search: of all continuations of all beams of a sequence, the best as many."""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def beam_step(scores: Any, logits: Any, new: Any, beams: Any, tokens: Any, *, count: int, width: int):
    b = tile.program_id(0)
    given = tile.load(logits[b], at=(0, 0), shape=(count, width), pad=-tile.INF).to(f32)
    top = tile.max(given, keepdims=True)
    likely = given - top - tile.log(tile.sum(tile.exp(given - top), keepdims=True))
    total = likely + tile.load(scores[b], at=(0,), shape=(count,), pad=-tile.INF)[:, None]
    best, at = tile.topk(tile.reshape(total, (1, count * width)), count)
    tile.store(new[b], tile.reshape(best, count), at=(0,))
    tile.store(beams[b], tile.reshape(tile.cast(at // width, beams.dtype), count), at=(0,))
    tile.store(tokens[b], tile.reshape(tile.cast(at % width, tokens.dtype), count), at=(0,))


def step(scores: Any, logits: Any, new: Any, beams: Any, tokens: Any) -> None:
    """Fills scores, beams and tokens [B, K] from scores [B, K] and logits [B, K, V]; K is a power of two."""
    batch, count, width = logits.shape
    beam_step[batch](scores, logits, new, beams, tokens, count=count, width=1 << (width - 1).bit_length())
