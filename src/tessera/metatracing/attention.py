"""Flash attention, the first client: a kernel like any other, and what the specification's parameters say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tessera.shapes.annotations import Out
from tessera.tiers.records import InputProfile
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile
from tessera.tile.language.schedule import Schedule

__written_like_a_user__ = True  # errors and IR point at the lines of this file

BASELINE = Schedule(block=(128, 128, 64), warps=8, stages=2)
"""The schedule that tiers are compared with: the specification's TileConfiguration, sizes open, no traces."""
BASELINE_HASH = "c3d7e247a59079bc"
"""Of its tile program for four axes of f16, causal, whatever the versions of dialects; a test holds it."""


@dataclass(frozen=True)
class AttentionParams:
    """What attention is to do. Without a scale, scores are divided by the root of the width."""

    is_causal: bool = False
    softmax_scale: float | None = None

    def scale(self, width: int) -> float:
        return width**-0.5 if self.softmax_scale is None else float(self.softmax_scale)


@kernel
def flash_attention(q: Any, k: Any, v: Any, o: Out, scale: float, *, causal: bool = False):
    """o = softmax(scale·q·kᵀ, masked)·v."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * scale
        if causal:
            scores = tile.where(tile.row_index() >= tile.col_index(block), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    filled: Any = o
    tile.store(filled, tile.cast(acc / total[:, None], filled.dtype))


def attention_operations(profile: InputProfile, keys: int) -> float:
    """Multiplications and additions of attention over so many keys; half of them where it is causal."""
    whole = 4.0 * profile.batch_size * profile.num_heads * profile.seq_len * keys * profile.head_dim
    return whole / 2 if profile.is_causal else whole
