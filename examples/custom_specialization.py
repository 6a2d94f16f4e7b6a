"""Specialising by hand: what a kernel may assume, which guards follow from it, and what happens to other calls.

python examples/custom_specialization.py
"""

from __future__ import annotations

import numpy as np

import tessera as ts
from tessera import Schedule
from tessera.metatracing import AttentionParams, MetaTracingRuntime, RuntimeConfig, flash_attention


def main() -> list[str]:
    q, k, v = (ts.randn((1, 2, 32, 16), seed=seed) for seed in range(3))
    o, expected = ts.empty(q.shape), ts.empty(q.shape)
    flash_attention(q, k, v, expected, 0.25, causal=True)

    # A program for these sizes and this scale, under a schedule of one's own. It is right for every call: what the
    # program made use of is guarded, and a call for which a guard does not hold gets a program of its own.
    special = flash_attention.with_schedule(Schedule(block=(16, 32))).assume("sizes", "scale")
    special(q, k, v, o, 0.25, causal=True)
    assert np.allclose(o.numpy(), expected.numpy(), atol=1e-6)
    guards = [str(guard) for guard in special.lower(q, k, v, o, 0.25, causal=True).guards]
    print("guarded by:", ", ".join(guards))

    short = [one[:, :, :8] for one in (q, k, v)]
    other = ts.empty(short[0].shape)
    special(*short, other, 0.25, causal=True)  # other sizes
    print("served, too:", other.shape)

    # The same by itself: a runtime finds out what never changes.
    config = RuntimeConfig(
        background_compilation=False,
        persist=False,
        candidates=1,
        tier2_compilation_threshold_ms=0.01,
        tier3_specialization_threshold_ms=0.1,
    )
    with MetaTracingRuntime(config) as runtime:
        for _ in range(200):
            runtime.execute_flash_attention(q, k, v, o, AttentionParams(is_causal=True, softmax_scale=0.25))
        for kernel in runtime.manager.specialized_kernels():
            context = kernel.context
            print(f"{kernel.level}: length {context.constant_seq_len}, width {context.constant_head_dim}")
        runtime.manager.clear_kernel_cache()  # calls go on at Tier 1
        assert not runtime.manager.specialized_kernels()
    return guards


if __name__ == "__main__":
    main()
