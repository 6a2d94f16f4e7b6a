"""The transformer block's forward against torch.compile, interleaved, accuracy first.

    python benchmarks/block.py                      on the CPU, f32 and bf16
    python benchmarks/block.py --device cuda        on a GPU: bf16, width 1024 and 4096, length 2048

A ratio is torch's time over ours: above 1, ours is faster. Errors are relative, in norm, against float64. Memory is
the most that one call has at once beside its arguments: on a GPU what the pools of both say, on a CPU ours by the plan
of memory, torch's by its profiler. What threads pack operands into is listed apart: of torch's libraries it is unknown.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lang"))

import torch
from transformer_block import transformer_block

import tessera as ts
from tessera import jit

EPS = 1e-6


@dataclass(frozen=True)
class Case:
    """Sizes of a block and what it computes in."""

    device: str
    dtype: str
    batch: int
    length: int
    width: int
    heads: int


CASES = {
    "cpu": (Case("cpu", "float32", 1, 256, 512, 8), Case("cpu", "bfloat16", 1, 256, 512, 8)),
    "cuda": (Case("cuda", "bfloat16", 4, 2048, 1024, 8), Case("cuda", "bfloat16", 1, 2048, 4096, 32)),
}


def normal(x: Any) -> Any:
    """RMS norm, computed in at least f32."""
    wide = x if x.dtype == torch.float64 else x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype)


def torch_block(x: Any, params: dict[str, Any], heads: int) -> Any:
    """The same block, with nothing cached before."""
    batch, length, width = x.shape
    parts = (normal(x) @ params["Wqkv"]).chunk(3, -1)
    q, k, v = (part.reshape(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    y = x + y.transpose(1, 2).reshape(batch, length, width) @ params["Wo"]
    return y + torch.nn.functional.gelu(normal(y) @ params["Wmlp_in"]) @ params["Wmlp_out"], k.clone(), v.clone()


def seconds(call: Callable[[], Any], wait: Callable[[], None], count: int) -> float:
    """Of one call, over many in a row."""
    call()
    wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return (time.perf_counter() - start) / count


def own_memory(bound: Any, call: Callable[[], Any]) -> int:
    """The bytes that a call of a bound program has at once."""
    if bound.program.settings.target == "cuda":
        from tessera.runtime.cuda.context import Context
        from tessera.runtime.cuda.pool import Pool
        from tessera.runtime.cuda.streams import current_stream, synchronize

        pool = Pool.of(Context.of(0))
        synchronize()
        current_stream().arenas.clear()
        pool.trim()
        before = pool.statistics().used
        pool.reset_peak()
        call()
        synchronize()
        return pool.statistics().peak - before
    return bound.memory.peak


def scratch_of(bound: Any, threads: int) -> int:
    """The bytes that threads of a CPU pack operands into; they are kept and serve all programs."""
    from tessera.programs.buffer_assignment import KernelLaunch
    from tessera.programs.host_site import geometry_of

    site, scratch = bound.run.site, 0
    for act in bound.buffers.acts:
        if isinstance(act, KernelLaunch):
            ready = site.executables[act.kernel].ready([geometry_of(one) for one in act.operands])
            scratch = max(scratch, (ready.scratch or 0) * min(ready.threads, threads))
    return scratch


def torch_memory(call: Callable[[], Any], device: str) -> int:
    """The bytes that a call of torch's has at once."""
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        result = call()
    held = most = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    del result
    return most


def compare(case: Case, rounds: int) -> str:
    """One row."""
    generator = torch.Generator(case.device).manual_seed(0)
    dtype = getattr(torch, case.dtype)

    def made(*shape: int) -> Any:
        return (torch.randn(*shape, generator=generator, device=case.device) * shape[0] ** -0.5).to(dtype)

    d = case.width
    params = {"Wqkv": made(d, 3 * d), "Wo": made(d, d), "Wmlp_in": made(d, 4 * d), "Wmlp_out": made(4 * d, d)}
    x = torch.randn(case.batch, case.length, d, generator=generator, device=case.device).to(dtype)
    empty = (case.batch, case.heads, 0, d // case.heads)
    given = ts.from_dlpack(x), {name: ts.from_dlpack(value) for name, value in params.items()}
    cache = tuple(ts.zeros(empty, given[0].dtype, device=case.device) for _ in range(2))
    block, peer = jit(transformer_block), torch.compile(torch_block)

    def ours() -> Any:
        return block(*given, cache, heads=case.heads)

    def theirs() -> Any:
        with torch.no_grad():
            return peer(x, params, case.heads)

    wide = {name: value.double() for name, value in params.items()}
    truth = torch_block(x.double(), wide, case.heads)[0]
    errors = {
        name: ((found.double() - truth).norm() / truth.norm()).item()
        for name, found in (("ours", torch.from_dlpack(ours()[0])), ("torch.compile", theirs()[0]))
    }
    del truth, wide
    wait = torch.cuda.synchronize if case.device == "cuda" else lambda: None
    count = max(3, int(0.2 / seconds(ours, wait, 2)))
    pairs = [(seconds(ours, wait, count), seconds(theirs, wait, count)) for _ in range(rounds)]
    ratios = sorted(peer_time / own for own, peer_time in pairs)
    program = block.lower(*given, cache, heads=case.heads).program
    leaves = [given[0], *(given[1][name] for name in sorted(given[1])), *cache]
    bound = program.bind(leaves)
    memory = own_memory(bound, ours), torch_memory(theirs, case.device)
    beside = ""
    if case.device == "cpu":
        beside = f", scratch of threads beside it {scratch_of(bound, torch.get_num_threads()) / 2**20:.1f} MiB"
    return (
        f"{case.device} {case.dtype} {case.batch}×{case.length}×{case.width}, {case.heads} heads: "
        f"ours ×{statistics.median(ratios):.3f} [{ratios[0]:.3f}–{ratios[-1]:.3f}], "
        f"{1e3 * statistics.median(own for own, _ in pairs):.3f} ms against "
        f"{1e3 * statistics.median(other for _, other in pairs):.3f} ms, {len(program.kernels)} kernels, "
        f"errors {errors['ours']:.2e} and {errors['torch.compile']:.2e}, "
        f"memory {memory[0] / 2**20:.1f} and {memory[1] / 2**20:.1f} MiB, ×{memory[0] / memory[1]:.3f}{beside}"
    )


def processor() -> str:
    """The name of the CPU."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if sys.platform == "linux" else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def environment(device: str) -> str:
    """What was measured where."""
    where = f"{processor()}, {len(os.sched_getaffinity(0))} CPUs, torch's threads: {torch.get_num_threads()}"
    if device == "cuda":
        where = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}; host {where}"
    return f"{where}; torch {torch.__version__}, tessera {ts.__version__}, Python {platform.python_version()}"


def main() -> None:
    """Every case of a device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(CASES), default="cpu")
    parser.add_argument("--dtype", help="only cases of this dtype")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="a file that the rows are added to")
    chosen = parser.parse_args()
    rows = (compare(case, chosen.rounds) for case in CASES[chosen.device] if chosen.dtype in (None, case.dtype))
    for line in itertools.chain([environment(chosen.device)], rows):
        print(line, flush=True)
        if chosen.out is not None:
            with chosen.out.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    main()
