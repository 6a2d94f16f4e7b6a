"""Attention that gets faster while it is called: a hundred calls from Tier 1 to Tier 3.

python examples/basic_usage.py [--device cuda:0] [--shape 8 16 2048 64]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import tessera as ts
from tessera.metatracing import AttentionParams, MetaTracingRuntime, RuntimeConfig, RuntimeStats


def main(arguments: Sequence[str] | None = None) -> RuntimeStats:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shape", type=int, nargs=4, default=(1, 4, 128, 64), metavar=("B", "H", "S", "D"))
    parser.add_argument("--calls", type=int, default=100)
    options = parser.parse_args(arguments)

    # Blocking: a call that makes attention hot waits for the next tier, so that a hundred calls show all of them.
    # In a program of yours leave `background_compilation` as it is, and nothing ever waits. What an earlier run has
    # found is left aside here, too: otherwise the first call would be at Tier 3 already.
    config = RuntimeConfig(
        enable_tier1_fallback=True,
        enable_tier2_compilation=True,
        enable_tier3_specialization=True,
        background_compilation=False,
        persist=False,
        tier2_compilation_threshold_ms=1.0,
        tier3_specialization_threshold_ms=5.0,
    )
    dtype = ts.f16 if options.device.startswith("cuda") else ts.f32
    shape = tuple(options.shape)
    q, k, v = (ts.randn(shape, dtype, seed=seed).to(options.device) for seed in range(3))
    o = ts.zeros(shape, dtype, device=options.device)
    params = AttentionParams(is_causal=True, softmax_scale=1 / math.sqrt(shape[-1]))

    with MetaTracingRuntime(config) as runtime:
        for call in range(1, options.calls + 1):
            result = runtime.execute_flash_attention(q, k, v, o, params)
            if call % 10 == 0:
                stats = runtime.get_runtime_stats()
                times = (stats.average_tier1_time_ms, stats.average_tier2_time_ms, stats.average_tier3_time_ms)
                average = times[int(result.tier_used) - 1]
                taken = "" if average is None else f", {average:.3f} ms on average"
                print(f"call {call}: tier {int(result.tier_used)}{taken}")
        stats = runtime.get_runtime_stats()
    print(f"calls at tiers 1, 2, 3: {stats.tier1_executions}, {stats.tier2_executions}, {stats.tier3_executions}")
    print(f"specialised programs: {stats.active_specialized_kernels}")
    return stats


if __name__ == "__main__":
    main()
