"""Guards over long streams of calls: who is refused is refused with reason, caps hold, memory stays."""

from __future__ import annotations

import gc
import resource
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_client import MILLISECOND, Made

import tessera as ts
from tessera import knobs
from tessera.metatracing import Call, ExecutionTier, MetaTracingRuntime, RuntimeConfig, TierLevel

TIER3 = ExecutionTier.TIER3_SPECIALIZED
CAPS: dict[str, Any] = {"max_specialized_kernels": 6, "most_bridges": 3, "contest_rounds": 1, "bridge_calls": 2}


def costs(level: TierLevel, call: Call) -> int:
    return MILLISECOND * {1: 10, 2: 8, 3: 6 if len(level.assumed) > 1 else 9}[int(level.tier)]


@pytest.mark.parametrize("calls", [600, pytest.param(20_000, marks=pytest.mark.acceptance)])
def test_failures_of_guards_are_genuine(calls: int) -> None:
    """A call that runs lower because of a guard is one that no program of the highest tier would have served."""
    made = Made(costs, tier3_specialization_threshold_ms=20, **CAPS)
    random = np.random.default_rng(1)
    spurious = 0
    shapes = [(int(rows), int(width)) for rows, width in random.integers(2, 7, (8, 2))]
    for _ in range(calls):
        shape = shapes[min(int(random.exponential(1.5)), 7)]
        x = ts.arange(shape[0] * shape[1], dtype=ts.f32).reshape(shape)
        y = x if random.random() < 0.9 else ts.arange(x.size, dtype=ts.f32).reshape(shape[::-1]).T
        number, flag = float(random.choice([2.0, 2.0, 2.0, 3.0])), bool(random.random() < 0.1)
        sites = [one for one in made.runtime.sites() if one.first.context["flag"] is flag]
        served = any(one.tier is TIER3 and one.serves((x, y, number)) for site in sites for one in site.programs)
        before = made["deopts"]
        tier = made.checked(x, y, number, flag)
        spurious += made["deopts"] > before and served and tier < 3
    assert made["deopts"] >= calls // 100
    assert spurious <= 0.05 * made["deopts"]
    assert sum(made.runtime.counts.guard_failures.values()) == made["deopts"]


@pytest.mark.parametrize("calls", [700, pytest.param(20_000, marks=pytest.mark.acceptance)])
def test_streams_of_ever_new_shapes_stay_within_caps(calls: int) -> None:
    made = Made(costs, tier3_specialization_threshold_ms=20, max_trace_history=64, **CAPS)
    made.client.ran = deque(maxlen=10)
    base = ts.arange(3 * (calls + 4), dtype=ts.f32)
    for number in range(calls):
        # Every shape comes three times, often enough to be hot and never again.
        rows = 2 + number // 3
        x = base[: 3 * rows].reshape(rows, 3)
        made.checked(x, x, float(number % 7), number % 11 == 0)
        assert len(made.runtime.manager) <= CAPS["max_specialized_kernels"]
    sites = made.runtime.sites()
    assert made["bridges"] <= CAPS["most_bridges"] * len(sites)
    assert all(len(site.ring) <= 64 and len(site.tier_policy.requested) <= 257 for site in sites)
    assert all(len(site.programs) <= 64 + CAPS["max_specialized_kernels"] for site in sites)
    assert len(made.tiered.entries) <= 1024
    assert made.runtime.get_runtime_stats().total_executions == calls


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.acceptance
def test_memory_of_a_process_does_not_grow(tmp_path: Path) -> None:
    """Attention of a few shapes, made, specialized, refused and bridged; results are new arrays each time."""
    config = RuntimeConfig(
        background_compilation=False, tier2_compilation_threshold_ms=0.1, tier3_specialization_threshold_ms=0.2
    )
    calls, rows = 100_000, (16, 24, 32, 40, 56)
    arrays = {length: [ts.randn((1, 1, length, 16), seed=seed) for seed in range(3)] for length in rows}
    with knobs.cache_dir.using(tmp_path):
        runtime = MetaTracingRuntime(config)

        def work(count: int) -> int:
            for number in range(count):
                q, k, v = arrays[rows[(number // 50) % len(rows)]]
                runtime.execute_flash_attention(q, k, v)
            gc.collect()
            return resident()

        began = work(calls // 10)
        middle = work(calls // 2)
        ended = work(calls - calls // 10 - calls // 2)
    assert middle - began <= 64 << 20
    assert ended - middle <= 4 << 20
    assert len(runtime.manager) <= config.max_specialized_kernels
    assert runtime.get_runtime_stats().total_executions == calls
