"""Flash attention as the first client of tiers: its parameters, and the schedule that tiers are compared with."""

from __future__ import annotations

from dataclasses import dataclass

from tessera.stdlib import flash_attention
from tessera.tiers.records import InputProfile
from tessera.tile.language.schedule import Schedule

__all__ = ["BASELINE", "BASELINE_HASH", "AttentionParams", "attention_operations", "flash_attention"]

BASELINE = Schedule(block=(128, 128, 64), warps=8, stages=2)
"""The schedule that tiers are compared with: the specification's TileConfiguration, sizes open, no traces."""
BASELINE_HASH = "c3d7e247a59079bc"
"""The hash of its tile IR for four axes of f16, causal, for any version of the dialects; a test checks it."""


@dataclass(frozen=True)
class AttentionParams:
    """Parameters of attention. Without a scale, scores are divided by the root of the width."""

    is_causal: bool = False
    softmax_scale: float | None = None

    def scale(self, width: int) -> float:
        return width**-0.5 if self.softmax_scale is None else float(self.softmax_scale)


def attention_operations(profile: InputProfile, keys: int) -> float:
    """Multiplications and additions of attention over so many keys; half of them where it is causal."""
    whole = 4.0 * profile.batch_size * profile.num_heads * profile.seq_len * keys * profile.head_dim
    return whole / 2 if profile.is_causal else whole
