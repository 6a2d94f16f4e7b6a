"""Kernels of the portable path on a GPU, written by hand in many shapes: checked against float64, then timed.

    python benchmarks/portable_gpu.py --out results     everything, less than two minutes on an H200
    python benchmarks/portable_gpu.py --only gemm       one part of the whole

Needs torch. Each table is sorted, fastest first, and says which shapes passes should choose. The exit status is 3 where
a result is wrong, 4 where the best of a table misses its bar.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from portable_texts import Attention, Gemm
from texts_gpu import MISSED, WRONG, Launch, attention_truth, graph_of, interleaved_times, random, some_rows, twice
from torch.nn.attention import SDPBackend, sdpa_kernel

from tessera import subprocesses
from tessera.compiler.launch_plan import Plan
from tessera.runtime.cuda import driver
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.device_launch import plan_of_function

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from golden_kernels import function_of

GEMM_BAR, ATTENTION_BAR = 0.6, 0.9
GEMM_BOUND, ATTENTION_BOUND = 4e-3, 2e-3
ROUNDS = 12
PROCESSES = 8

GEMMS = [
    Gemm(),
    Gemm(carried=False),
    Gemm(depth=32, stages=4),
    Gemm(depth=32, stages=5),
    Gemm(depth=32, stages=4, carried=False),
    Gemm(warps=(2, 4), carried=False),
    Gemm(warps=(2, 4), depth=32, stages=4, carried=False),
    Gemm(columns=256, warps=(2, 4), stages=4, blocks=1),
    Gemm(columns=256, warps=(2, 4), stages=3, blocks=1),
    Gemm(columns=256, warps=(2, 4), stages=4, blocks=1, carried=False),
    Gemm(columns=256, warps=(2, 4), depth=32, stages=4, blocks=1),
    Gemm(rows=256, warps=(4, 2), stages=3, blocks=1),
    Gemm(band=16),
    Gemm(band=4),
]
GEMMS += [replace(one, transposed=True) for one in (GEMMS[0], GEMMS[2], GEMMS[7])]


def attentions(width: int, causal: bool) -> list[Attention]:
    found = [Attention(width, causal), Attention(width, causal, keys=32), Attention(width, causal, warps=8, blocks=1)]
    if width == 64:
        found += [
            Attention(width, causal, held=True),
            Attention(width, causal, held=True, keys=32),
            Attention(width, causal, keys=32, blocks=3),
            Attention(width, causal, keys=128),
            Attention(width, causal, held=True, warps=8, blocks=1),
        ]
    return found


ATTENTIONS = [one for width in (64, 128) for causal in (False, True) for one in attentions(width, causal)]
SHAPES = {64: ((4, 16, 2048), (4, 16, 8192)), 128: ((4, 16, 2048), (2, 16, 8192))}
RAGGED = (1, 64, 65, 129, 777)
MATRICES = ((1, 16, 16), (129, 264, 64), (300, 512, 72), (1000, 1040, 1000))


def compiled(chosen: Gemm | Attention) -> tuple[str, str, Plan]:
    """Name, PTX and plan of a kernel; runs in a process of its own."""
    module = text.read(chosen.text())
    function = function_of(module)
    made = compile_lowered(module, function.sym_name.data)
    return made.name, made.ptx, plan_of_function(function, made)


class Kernel:
    """A kernel in the GPU's memory."""

    def __init__(self, chosen: Gemm | Attention, name: str, ptx: str, plan: Plan) -> None:
        self.chosen, self.plan = chosen, plan
        cu = driver.bindings()
        self.module = driver.check(cu.cuModuleLoadData(ptx.encode() + b"\0"), f"loading {chosen}")
        self.handle: Any = driver.check(cu.cuModuleGetFunction(self.module, name.encode()), "finding the kernel")
        kinds, device = cu.CUfunction_attribute, plan.device
        assert device is not None
        driver.check(
            cu.cuFuncSetAttribute(self.handle, kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, device.shared),
            "asking for shared memory",
        )
        self.registers, self.local = (
            driver.check(cu.cuFuncGetAttribute(kind, self.handle), "asking about a kernel")
            for kind in (kinds.CU_FUNC_ATTRIBUTE_NUM_REGS, kinds.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
        )
        self.resident = driver.check(
            cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(self.handle, device.threads, device.shared), "occupancy"
        )

    @property
    def said(self) -> str:
        return f"{self.registers} registers, {self.local} local, {self.resident} blocks"


# Right?


def attention_call(kernel: Kernel, tensors: Sequence[torch.Tensor], out: torch.Tensor) -> Launch:
    scale = math.log2(math.e) / math.sqrt(out.shape[-1])
    return Launch(kernel, *tensors, scale, out)


def check_attention(kernel: Kernel, shape: tuple[int, int, int], *, strided: bool = False) -> bool:
    chosen: Any = kernel.chosen
    b, h, s = shape
    if strided:
        q, k, v, out = (random(chosen.element, b, s, h, chosen.width).transpose(1, 2) for _ in range(4))
    else:
        q, k, v, out = (random(chosen.element, b, h, s, chosen.width) for _ in range(4))
    same = twice(attention_call(kernel, (q, k, v), out), out)
    heads, rows = [(0, 0), (b - 1, h - 1)], some_rows(s)
    truth = attention_truth(q, k, v, chosen.causal, heads, rows)
    got = torch.stack([out[batch, head][rows].double() for batch, head in heads])
    error = ((got - truth).norm() / truth.norm()).item()
    return judged(f"{chosen} {shape}{' strided' if strided else ''}", error, ATTENTION_BOUND, out, same)


def check_gemm(kernel: Kernel, m: int, n: int, k: int) -> bool:
    chosen: Any = kernel.chosen
    a, b = random(chosen.element, m, k), random(chosen.element, *((n, k) if chosen.transposed else (k, n)))
    out = torch.empty(m, n, device="cuda", dtype=a.dtype)
    same = twice(Launch(kernel, a, b, out), out)
    rows = some_rows(m)
    truth = a[rows].double() @ (b.T if chosen.transposed else b).double()
    error = ((out[rows].double() - truth).norm() / truth.norm()).item()
    return judged(f"{chosen} {(m, n, k)}", error, GEMM_BOUND, out, same)


def judged(what: str, error: float, bound: float, out: torch.Tensor, same: bool) -> bool:
    missing = int(torch.isnan(out).sum().item())
    right = error < bound and not missing and same
    if not right:
        print(f"  WRONG {what}: error {error:.2e}, {missing} not written, same {same}", flush=True)
    return right


# Fast?


def table(what: str, kernels: dict[str, Kernel], times: dict[str, float], work: float, bars: dict[str, float]) -> Any:
    """Prints the rates of all, fastest first; a row of the result."""
    rates = {name: work / ms / 1e9 for name, ms in times.items()}
    peers = {name: rate for name, rate in rates.items() if name not in kernels}
    print(f"{what}: " + "  ".join(f"{name} {rate:.0f}" for name, rate in peers.items()), flush=True)
    ours = sorted((name for name in rates if name in kernels), key=lambda name: -rates[name])
    for name in ours:
        shares = "  ".join(f"{rates[name] / rate:.3f} of {peer}" for peer, rate in peers.items())
        print(f"  {rates[name]:6.0f}  {shares}  {name} ({kernels[name].said})", flush=True)
    missed = [peer for peer, bar in bars.items() if rates[ours[0]] < bar * peers[peer]]
    if missed:
        print(f"  BELOW THE BAR of {', '.join(missed)}", flush=True)
    return {"name": what, "tflops": rates, "best": ours[0], "missed": missed}


def time_gemm(kernels: Sequence[Kernel], side: int) -> Any:
    count = 4 if side <= 4096 else 1
    a, b = random("bf16", side, side), random("bf16", side, side)
    out = torch.empty_like(a)
    named = {str(kernel.chosen): kernel for kernel in kernels}
    named = {f"{name} band {kernel.chosen.band}": kernel for name, kernel in named.items()}
    calls: dict[str, Callable[[], Any]] = {name: Launch(kernel, a, b, out) for name, kernel in named.items()}
    calls["cublas"] = lambda: torch.matmul(a, b)
    times = interleaved_times({name: graph_of(call, count) for name, call in calls.items()}, ROUNDS)
    return table(f"gemm {side}³ bf16", named, times, 2 * side**3 * count, {"cublas": GEMM_BAR})


def time_attention(kernels: Sequence[Kernel], shape: tuple[int, int, int], width: int, causal: bool) -> Any:
    b, h, s = shape
    q, k, v = (random("f16", b, h, s, width) for _ in range(3))
    out = torch.empty_like(q)
    named = {str(kernel.chosen): kernel for kernel in kernels}
    calls: dict[str, Callable[[], Any]] = {
        name: attention_call(kernel, (q, k, v), out) for name, kernel in named.items()
    }

    def peer(backend: Any) -> Callable[[], None]:
        def run() -> None:
            with sdpa_kernel(backend):
                F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        return run

    calls |= {"flash": peer(SDPBackend.FLASH_ATTENTION), "cudnn": peer(SDPBackend.CUDNN_ATTENTION)}
    times = interleaved_times(calls, ROUNDS)
    work = 4 * b * h * s * s * width * (0.5 if causal else 1)
    what = f"attention {'causal' if causal else 'full'} {(*shape, width)} f16"
    return table(what, named, times, work, {"flash": ATTENTION_BAR})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("gemm", "attention"), help="one part of the whole")
    parser.add_argument("--out", type=Path, help="the folder for portable.json")
    options = parser.parse_args()
    began = time.perf_counter()
    chosen: list[Gemm | Attention] = []
    chosen += GEMMS if options.only != "attention" else []
    chosen += ATTENTIONS if options.only != "gemm" else []
    with subprocesses.spawning(), ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(compiled, chosen))
    print(f"{len(made)} kernels compiled in {time.perf_counter() - began:.0f} s", flush=True)
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    kernels = [Kernel(one, *parts) for one, parts in zip(chosen, made, strict=True)]
    gemms = [kernel for kernel in kernels if isinstance(kernel.chosen, Gemm)]
    others = [kernel for kernel in kernels if isinstance(kernel.chosen, Attention)]
    checks = [check_gemm(kernel, *shape) for kernel in gemms for shape in MATRICES]
    checks += [check_attention(kernel, (2, 3, size)) for kernel in others for size in RAGGED]
    checks += [check_attention(kernel, (2, 3, 777), strided=True) for kernel in others]
    print(f"{len(checks)} checks, {checks.count(False)} wrong, {time.perf_counter() - began:.0f} s", flush=True)
    rows: list[Any] = []
    if gemms:
        plain = [kernel for kernel in gemms if not kernel.chosen.transposed]
        transposed = [kernel for kernel in gemms if kernel.chosen.transposed]
        rows += [time_gemm(plain, 4096), time_gemm(transposed, 4096), time_gemm(plain[:1] + plain[7:8], 8192)]
    for width, shapes in SHAPES.items() if others else ():
        for causal in (False, True):
            mine = [one for one in others if (one.chosen.width, one.chosen.causal) == (width, causal)]
            rows += [time_attention(mine, shape, width, causal) for shape in shapes]
    print(f"{len(rows)} tables, {time.perf_counter() - began:.0f} s", flush=True)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "portable.json").write_text(json.dumps({"gpu": torch.cuda.get_device_name(0), "rows": rows}))
    return WRONG if not all(checks) else MISSED if any(row["missed"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
