"""A workload of several shapes under settings of one's own: what was hot, how fast each tier was, what was assumed.

python examples/advanced_configuration.py [--device cuda:0] [--timeline timeline.html] [--trace trace.json]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import tessera as ts
from tessera.metatracing import (
    AttentionParams,
    ExecutionTier,
    HotspotCandidate,
    HotspotCriteria,
    HotspotDetector,
    MetaTracingRuntime,
    RiskMitigationFramework,
    RuntimeConfig,
)


class Input(NamedTuple):
    """One kind of call."""

    batch: int
    heads: int
    length: int
    width: int
    dtype: ts.DType
    description: str


LARGE = (
    Input(4, 8, 512, 64, ts.f16, "small model"),
    Input(4, 8, 1024, 64, ts.f16, "small model, longer"),
    Input(8, 16, 2048, 64, ts.f16, "medium model"),
    Input(8, 16, 4096, 64, ts.f16, "medium model, longer"),
    Input(16, 32, 2048, 128, ts.f16, "large model"),
)
SMALL = (
    Input(1, 2, 32, 16, ts.f32, "small"),
    Input(1, 2, 48, 16, ts.f32, "small, longer"),
    Input(1, 4, 96, 16, ts.f32, "larger"),
)


def execute(runtime: MetaTracingRuntime, one: Input, device: str, calls: int) -> None:
    shape = (one.batch, one.heads, one.length, one.width)
    q, k, v = (ts.randn(shape, one.dtype, seed=seed).to(device) for seed in range(3))
    o = ts.zeros(shape, one.dtype, device=device)
    for _ in range(calls):
        runtime.execute_flash_attention(q, k, v, o, AttentionParams(is_causal=True))
    print(f"{one.description}: {calls} calls")


def analyse(runtime: MetaTracingRuntime) -> None:
    times: dict[ExecutionTier, list[float]] = defaultdict(list)
    for sample in runtime.get_performance_history():
        times[sample.tier_used].append(sample.execution_time_ms)
    for tier, some in sorted(times.items()):
        mean = sum(some) / len(some)
        print(f"tier {int(tier)}: {len(some)} recorded, {mean:.3f} ms on average, {min(some):.3f} to {max(some):.3f}")


def main(arguments: Sequence[str] | None = None) -> tuple[MetaTracingRuntime, list[HotspotCandidate]]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--timeline", help="an HTML file to write")
    parser.add_argument("--trace", help="a file for Perfetto to write")
    options = parser.parse_args(arguments)

    config = RuntimeConfig(
        tier2_compilation_threshold_ms=0.5,
        tier3_specialization_threshold_ms=2.0,
        max_specialized_kernels=32,
        background_compilation=False,
        persist=False,
        candidates=1,
    )
    runtime = MetaTracingRuntime(config)
    for one in LARGE if options.device.startswith("cuda") else SMALL:
        execute(runtime, one, options.device, options.calls)
    analyse(runtime)

    criteria = HotspotCriteria(min_execution_time_ms=0.1, min_execution_count=3, performance_threshold=0.9)
    hotspots = HotspotDetector().detect_hotspots(runtime.get_internal_traces(), criteria)
    for spot in hotspots:
        profile = spot.input_pattern
        print(
            f"hot: length {profile.seq_len}, {spot.total_execution_time_ms:.2f} ms, {spot.optimization_potential:.0%}"
        )

    for risk in RiskMitigationFramework().detect_performance_risks(runtime.get_performance_history(), config):
        print(f"risk: {risk.description}; {', '.join(risk.mitigation_actions)}")

    print(runtime.explain())
    if options.timeline:
        runtime.write_timeline(options.timeline)
    if options.trace:
        runtime.write_trace(options.trace)
    return runtime, hotspots


if __name__ == "__main__":
    main()
