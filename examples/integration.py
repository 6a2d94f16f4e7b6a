"""Tiers beside the rest of Tessera: operators, jitted functions, and ranks that compute together.

python examples/integration.py
mpiexec -n 2 python examples/integration.py --ranks

The specification's autograd example waits for autodiff, which is not there yet: it needs gradients of attention.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tessera as ts
from tessera.metatracing import AttentionParams, MetaTracingRuntime, RuntimeConfig

SHAPE = (1, 2, 32, 16)
SOON: dict[str, Any] = {
    "background_compilation": False,
    "persist": False,
    "candidates": 1,
    "tier2_compilation_threshold_ms": 0.05,
    "tier3_specialization_threshold_ms": 0.5,
}


def seamless() -> float:
    """The operator and the runtime give the same."""
    q, k, v = (ts.randn(SHAPE, ts.bf16, seed=seed) for seed in range(3))
    first = ts.ops.scaled_dot_product_attention(q, k, v, causal=True)
    second = ts.zeros_like(q)
    with MetaTracingRuntime(RuntimeConfig(**SOON)) as runtime:
        params = AttentionParams(is_causal=True, softmax_scale=1 / math.sqrt(SHAPE[-1]))
        for _ in range(20):
            runtime.execute_flash_attention(q, k, v, second, params)
    away = float(np.abs(first.values() - second.values()).max())
    print(f"the operator and the runtime differ by {away:.1e}")
    assert away < 2e-2  # a place or two of bf16
    return away


def jitted() -> None:
    """`@jit(tiers=…)` is the everyday way in."""
    runtime = MetaTracingRuntime(RuntimeConfig(**SOON))

    @ts.jit(tiers=runtime)
    def layer(x: Any, w: Any) -> Any:
        return ts.gelu(x @ w)

    x, w = ts.randn((8, 16), seed=1), ts.randn((16, 16), seed=2)
    for _ in range(10):
        assert layer(x, w).shape == (8, 16)
    print("\n".join(layer.explain().tiers))
    runtime.close()


def ranks() -> None:
    """Each rank computes attention under a runtime that knows its rank; results are averaged over all."""
    from tessera import distributed

    distributed.initialize_process_group()
    rank, size = distributed.get_rank(), distributed.get_world_size()
    config = RuntimeConfig(**SOON, enable_distributed_tracing=True, distributed_rank=rank, distributed_world_size=size)
    q, k, v = (ts.randn(SHAPE, ts.bf16, seed=10 * rank + seed) for seed in range(3))
    o = ts.zeros_like(q)
    with MetaTracingRuntime(config) as runtime:
        for _ in range(3):
            runtime.execute_flash_attention(q, k, v, o, AttentionParams(is_causal=True))
            distributed.all_reduce(o, "mean")
        assert runtime.distributed is not None
        trace = runtime.distributed.trace()
        calls = runtime.get_runtime_stats().total_executions
    (pattern,) = trace.all_reduce_patterns
    if rank == 0:
        print(f"{size} ranks, {calls} calls each; {pattern.count} all_reduce took {pattern.total_ms:.2f} ms")
    distributed.destroy_process_group()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", action="store_true", help="the part for several ranks alone")
    if parser.parse_args(arguments).ranks:
        ranks()
        return
    seamless()
    jitted()


if __name__ == "__main__":
    main()
