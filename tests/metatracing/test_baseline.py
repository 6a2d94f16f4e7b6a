"""The baseline that tiers are compared with is frozen: neither its schedule nor its program changes unnoticed."""

from __future__ import annotations

import tessera as ts
from tessera import Schedule
from tessera.ir.structural_hash import structural_hash
from tessera.metatracing.attention import BASELINE, BASELINE_HASH
from tessera.stdlib import flash_attention


def test_the_baseline_is_what_it_was() -> None:
    assert Schedule(block=(128, 128, 64), warps=8, stages=2) == BASELINE
    x = ts.empty((2, 2, 256, 64), ts.f16)
    lowered = flash_attention.with_schedule(BASELINE).lower(x, x, x, x, 0.125, causal=True)
    assert structural_hash(lowered.module, {}).startswith(BASELINE_HASH)
