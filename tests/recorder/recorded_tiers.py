"""Decisions of the tiers and of the models: replays of drawn calls under a clock that stands still, and ranked blocks.

Programs are those of tests/metatracing/made_up_client.py, which cost what the replay says. What is recorded of a replay
are the tier of every call, the levels that ran, and the programs that are installed in the end.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from recorded_entries import Recording, plain_text
from recorded_pins import CACHES, CPUS

from tessera import Schedule, bf16, f32
from tessera.errors import ResourceError
from tessera.metatracing import FlashAttentionPerformanceModel, ModelParameters, TierPerformancePrediction
from tessera.metatracing.models.kernel_blocks import Processor, Work, blocks_for
from tessera.metatracing.models.kernel_times import shipped
from tessera.metatracing.models.tiers import TileConfigurationOptimizer

Case = Callable[[Recording], None]
CALLS = 900
SCHEDULES = [None, *(Schedule(block=(size,)) for size in (8, 16, 32, 64))]
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "usual": {},
    "several schedules": {"candidates": 3},
    "few bridges": {"most_bridges": 1, "max_trace_history": 50},
    "short memory": {"half_life_s": 0.05},
    "no second tier": {"enable_tier2_compilation": False},
    "no third tier": {"enable_tier3_specialization": False},
    "at once": {"tier3_specialization_threshold_ms": 0.0, "tier2_compilation_threshold_ms": 0.0},
    "little kept": {"max_specialized_kernels": 2},
    "sampled": {"sample_period": 7},
    "mitigating": {"mitigate_risks": True},
}


def replay(config: Mapping[str, Any], seed: int, faults: str, recording: Recording, key: str) -> None:
    """Drawn calls: sizes, numbers and flags that stay for a while, and then change."""
    from recorded_parts import test_module

    made_up = test_module("metatracing", "made_up_client")
    drawn = random.Random(seed)
    factors = {None: 1.0, **{one: drawn.choice((0.6, 0.8, 0.95, 1.1, 1.5)) for one in SCHEDULES[1:]}}

    def costs(level: Any, call: Any) -> int:
        return round(made_up.usual_costs(level, call) * factors[level.schedule])

    later = made_up.Later() if faults == "compiled later" else None
    made = made_up.Made(costs, later, **config)
    made.client.options = list(SCHEDULES)
    if faults == "not compiled":
        made.client.failing = _is_for_much
    if faults == "failing runs":
        made.client.run_faults[3] = ResourceError("no scratch memory")
    tiers: list[int] = []
    shape, factor, flag = (4, 8), 2.0, False
    for number in range(CALLS):
        if drawn.random() < 0.02:
            shape = drawn.choice([(4, 8), (5, 8), (6, 8), (4, 16), (12, 16), (3,)])
        if drawn.random() < 0.01:
            factor = drawn.choice([2.0, 3.0, 0.0, -0.0])
        flag = drawn.random() < 0.3 if number > CALLS // 2 and seed % 2 else flag
        tiers += made.call(*shape, factor=factor, flag=flag)
        if later is not None and drawn.random() < 0.1:
            later.finish()
        if drawn.random() < 0.005:
            made.clock.advance(drawn.randrange(200) * made_up.MILLISECOND)
    ran = [[int(level.tier), str(level.schedule), list(level.assumed)] for level in made.client.ran]
    programs = [
        [[int(one.level.tier), str(one.level.schedule), sorted(map(str, one.compiled.guards))] for one in site.programs]
        for site in made.runtime.sites()
    ]
    recording.add(
        key,
        tiers="".join(map(str, tiers)),
        levels=plain_text(ran),
        programs=json.dumps(programs),
        regions=f"{len(made.runtime.sites())} regions",
    )
    made.runtime.close()


def _is_for_much(level: Any) -> bool:
    return level.tier == 3 and len(level.assumed) > 2


def rounded(value: float) -> str:
    """So many digits as every machine's libraries agree on."""
    return f"{value:.6g}"


def models(recording: Recording) -> None:
    """What the fitted models predict for attention, and how they rank blocks."""
    for machine in ("h200", "cpu-aarch64"):
        times = shipped(machine)
        assert times is not None
        model = FlashAttentionPerformanceModel(times)
        for heads, length, width in ((8, 512, 64), (16, 2048, 64), (16, 4096, 128), (4, 300, 64)):
            for causal in (False, True):
                params = ModelParameters(2, heads, length, width, is_causal=causal)
                ranked = [
                    [list(block), rounded(took)] for block, took in TileConfigurationOptimizer(model).ranked(params)
                ]
                tiers = TierPerformancePrediction(model).predict_tier_performance(params)
                recording.add(
                    f"model {machine} 2×{heads}×{length}×{width}{' causal' if causal else ''}",
                    ranked=plain_text(ranked),
                    tiers=plain_text([rounded(one) for one in vars(tiers).values()]),
                )


def cpu_blocks(recording: Recording) -> None:
    """Blocks that the model of processors ranks, for kernels that leave them open."""
    for target in CPUS:
        for threads in (1, 4, 64):
            processor = Processor(target.level, *CACHES, threads)
            lines: list[str] = []
            for dtype in (f32, bf16):
                for rows, columns, width, batch in ((128, 128, 64, 1), (1000, 1000, 64, 8), (4096, 512, 128, 2)):
                    lines.append(str(blocks_for(Work(rows, columns, width, batch, dtype), processor, most=5)))
            recording.add(f"blocks {target.level} {threads} threads", ranked="\n".join(lines))


def tiers() -> dict[str, Case]:
    """Replays of each setting, and what models say."""
    found: dict[str, Case] = {}
    for number, (name, config) in enumerate(CONFIGS.items()):
        for faults in ("", "compiled later", "not compiled", "failing runs"):
            key = f"replay {name}{f', {faults}' if faults else ''}"
            found[key] = partial(_replayed, config, 100 + number, faults, key)
    return found | {"models": models, "blocks": cpu_blocks}


def _replayed(config: Mapping[str, Any], seed: int, faults: str, key: str, recording: Recording) -> None:
    replay(config, seed, faults, recording, key)
