"""Golden texts on an H200: right against float64, then timed beside the experiments they follow, cuDNN and cuBLAS.

    python benchmarks/texts_gpu.py --spikes spikes --out results     everything, about a minute
    python benchmarks/texts_gpu.py --only check                      no timing

Needs torch. Contenders are interleaved, so that all see the same clocks; figures are medians. The exit status is 3
where a result is wrong, 4 where a bar is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

from tessera.bench.cuda import records
from tessera.bench.instruments.hardware import environment
from tessera.compiler.launch_plan import ArrayArgument, Plan
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.tensor_maps import Maps
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.device_launch import plan_of_function

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import golden_kernels as golden

WRONG, MISSED = 3, 4
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
BOUNDS = {"f16": 2e-3, "bf16": 8e-3}
ATTENTION_BAR, GEMM_BAR = 0.97, 0.95
ROUNDS = 24

SMALL = {
    64: ((4, 16, 2048), (2, 8, 8192), (3, 5, 777), (1, 1, 64), (1, 2, 65), (2, 3, 1)),
    128: ((2, 8, 2048), (2, 8, 4096), (3, 5, 777), (1, 1, 64), (1, 2, 193), (2, 3, 1)),
}
TIMED = (
    (4, 16, 2048, 64),
    (16, 32, 4096, 64),
    (8, 16, 8192, 64),
    (16, 32, 2048, 128),
    (8, 40, 4096, 128),
    (2, 16, 16384, 128),
)
MATRICES = ((1, 16, 16), (129, 264, 64), (300, 512, 72), (1000, 1040, 1000), (2777, 1600, 2048), (4096, 4096, 4096))
SQUARES = (4096, 8192)


class Kernel:
    """A golden text, compiled and loaded."""

    def __init__(self, name: str, element: str) -> None:
        self.name = f"{name} {element}"
        module = golden.module(name, element)
        function = golden.function_of(module)
        made = compile_lowered(module, function.sym_name.data)
        self.ptx = made.ptx
        self.plan: Plan = plan_of_function(function, made)
        cu = driver.bindings()
        began = time.perf_counter()
        self.module = driver.check(cu.cuModuleLoadData(made.ptx.encode() + b"\0"), f"loading {name}")
        seconds = time.perf_counter() - began
        self.handle = driver.check(cu.cuModuleGetFunction(self.module, made.name.encode()), "finding the kernel")
        kinds = cu.CUfunction_attribute
        device = self.plan.device
        assert device is not None
        driver.check(
            cu.cuFuncSetAttribute(self.handle, kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, device.shared),
            "asking for shared memory",
        )
        registers, local = (
            driver.check(cu.cuFuncGetAttribute(kind, self.handle), "asking about a kernel")
            for kind in (kinds.CU_FUNC_ATTRIBUTE_NUM_REGS, kinds.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
        )
        print(
            f"  {self.name}: loaded in {1e3 * seconds:.0f} ms, {registers} registers, {local} bytes local", flush=True
        )
        assert local == 0, f"{self.name} spills"


class Launch:
    """One kernel on given tensors: everything is worked out before it is called."""

    def __init__(self, kernel: Kernel, *values: Any) -> None:
        plan, device = kernel.plan, kernel.plan.device
        assert device is not None
        block = bytearray(plan.block_bytes)
        shapes = [tuple(value.shape) if isinstance(value, torch.Tensor) else None for value in values]
        sizes = plan.sizes(shapes[: len(plan.inputs)])
        extents = plan.extents(sizes)
        for argument, value in zip(plan.arguments, values, strict=True):
            if isinstance(argument, ArrayArgument):
                words = [value.data_ptr(), *value.shape, *value.stride()]
                struct.pack_into(f"<{len(words)}q", block, 8 * argument.word, *words)
            else:
                struct.pack_into("<f", block, 8 * argument.word, value)
        struct.pack_into(f"<{len(extents)}q", block, 8 * plan.grid_word, *extents)
        self.counters = torch.zeros(64, dtype=torch.int32, device="cuda")
        if device.counters_word >= 0:
            struct.pack_into("<q", block, 8 * device.counters_word, self.counters.data_ptr())
        for recipe in device.maps:
            argument, value = plan.arguments[recipe.argument], values[recipe.argument]
            assert isinstance(argument, ArrayArgument)
            maps = Maps.sized(
                recipe, argument.dtype, tuple(value.shape), tuple(value.stride()), f"argument {recipe.argument}"
            )
            encoded = np.asarray(maps.of(value.data_ptr())).tobytes()
            block[recipe.offset : recipe.offset + len(encoded)] = encoded
        self.block = (ctypes.c_char * len(block) * 2)()
        start = -(-ctypes.addressof(self.block) // 64) * 64
        ctypes.memmove(start, bytes(block), len(block))
        self.params = (ctypes.c_void_p * 1)(start)
        multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
        self.shape = (device.blocks(math.prod(extents), multiprocessors), device.threads, device.shared)
        self.function, self.kept = int(kernel.handle), values
        self.launch = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
        self.launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]

    def __call__(self) -> None:
        blocks, threads, shared = self.shape
        stream = torch.cuda.current_stream().cuda_stream
        status = self.launch(self.function, blocks, 1, 1, threads, 1, 1, shared, stream, self.params, None)
        if status:
            raise RuntimeError(f"launch failed with status {status}")


_kernels: dict[tuple[str, str], Kernel] = {}


def kernel(name: str, element: str) -> Kernel:
    if (name, element) not in _kernels:
        _kernels[name, element] = Kernel(name, element)
    return _kernels[name, element]


def attention(size: int, causal: bool, element: str) -> Kernel:
    return kernel(f"attention_{'causal' if causal else 'full'}_{size}", element)


# Right?


def random(element: str, *shape: int, std: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape, device="cuda") * std).to(TYPES[element])


def attention_truth(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool,
    heads: Sequence[tuple[int, int]],
    rows: torch.Tensor,
) -> torch.Tensor:
    found: list[torch.Tensor] = []
    for batch, head in heads:
        scores = q[batch, head][rows].double() @ k[batch, head].double().T / math.sqrt(q.shape[-1])
        if causal:
            scores.masked_fill_(torch.arange(k.shape[2], device="cuda")[None, :] > rows[:, None], -math.inf)
        found.append(torch.softmax(scores, -1) @ v[batch, head].double())
    return torch.stack(found)


def some_rows(count: int) -> torch.Tensor:
    if count <= 1024:
        return torch.arange(count, device="cuda")
    first, last = torch.arange(256, device="cuda"), torch.arange(count - 256, count, device="cuda")
    return torch.cat([first, torch.randint(0, count, (512,), device="cuda"), last])


def twice(launch: Launch, out: torch.Tensor) -> bool:
    """Runs on poisoned memory two times; whether both gave the same bits."""
    out.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    before = out.clone()
    out.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    return torch.equal(out, before)


def said(ok: bool, what: str, error: float, missing: int, same: bool) -> dict[str, Any]:
    print(f"  {'ok  ' if ok else 'WRONG'} {what}: error {error:.2e}, {missing} not written, same {same}", flush=True)
    return {"case": what, "error": error, "right": ok}


def check_attention(shape: tuple[int, int, int], size: int, causal: bool, element: str, kind: str) -> dict[str, Any]:
    b, h, s = shape
    std = 4.0 if kind == "large" else 1.0
    if kind == "strided":
        q, k, v, out = (random(element, b, s, h, size, std=std).transpose(1, 2) for _ in range(4))
    else:
        q, k, v, out = (random(element, b, h, s, size, std=std) for _ in range(4))
    launch = Launch(attention(size, causal, element), q, k, v, math.log2(math.e) / math.sqrt(size), out)
    same = twice(launch, out)
    heads, rows = [(0, 0), (b - 1, h - 1), (b // 2, h // 2)], some_rows(s)
    truth = attention_truth(q, k, v, causal, heads, rows)
    got = torch.stack([out[batch, head][rows].double() for batch, head in heads])
    error = ((got - truth).norm() / truth.norm()).item()
    missing = int(torch.isnan(out).sum().item())
    what = f"attention {'causal' if causal else 'full'} {(b, h, s, size)} {element} {kind}"
    return said(error < BOUNDS[element] and not missing and same, what, error, missing, same)


def check_gemm(name: str, m: int, n: int, k: int) -> dict[str, Any]:
    a, b = random("bf16", m, k), random("bf16", *((k, n) if name == "gemm_kn" else (n, k)))
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    same = twice(Launch(kernel(name, "bf16"), a, b, out), out)
    rows = some_rows(m)
    truth = a[rows].double() @ (b if name == "gemm_kn" else b.T).double()
    error = ((out[rows].double() - truth).norm() / truth.norm()).item()
    missing = int(torch.isnan(out).sum().item())
    return said(error < 4e-3 and not missing and same, f"{name} {(m, n, k)}", error, missing, same)


def check() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for element in TYPES:
        for causal in (False, True):
            for size, shapes in SMALL.items():
                found += [check_attention(shape, size, causal, element, "plain") for shape in shapes]
                found += [check_attention((2, 3, 777), size, causal, element, kind) for kind in ("strided", "large")]
    found += [check_gemm(name, *shape) for name in ("gemm", "gemm_kn") for shape in MATRICES]
    return found


# Fast?


def interleaved_times(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Milliseconds of each, the median."""
    events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    torch.cuda.synchronize()
    names = list(calls)
    for round_number in range(rounds):
        for name in names[round_number % len(names) :] + names[: round_number % len(names)]:
            before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before.record()
            calls[name]()
            after.record()
            events[name].append((before, after))
        if round_number % 4 == 3:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return {name: float(np.median([a.elapsed_time(b) for a, b in pairs])) for name, pairs in events.items()}


def graph_of(call: Callable[[], Any], count: int) -> Callable[[], Any]:
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay


def report(what: str, rates: dict[str, float], bars: dict[str, float]) -> dict[str, Any]:
    ratios = {name: rates["text"] / rate for name, rate in rates.items() if name != "text"}
    missed = [name for name, bar in bars.items() if name in ratios and ratios[name] < bar]
    words = "  ".join(
        f"{name} {rate:.0f}" + (f" ({ratios[name]:.3f})" if name in ratios else "") for name, rate in rates.items()
    )
    print(f"{what}: {words}{'  BELOW THE BAR' if missed else ''}", flush=True)
    return {"name": what, "tflops": rates, "ratios": ratios, "missed": missed}


def time_attention(spikes: Path | None, element: str) -> list[dict[str, Any]]:
    spike = spike_attention(spikes) if spikes is not None else None
    found: list[dict[str, Any]] = []
    for causal in (True, False):
        for b, h, s, size in TIMED:
            q, k, v = (random(element, b, h, s, size) for _ in range(3))
            out = torch.empty_like(q)
            calls: dict[str, Callable[[], Any]] = {
                "text": Launch(attention(size, causal, element), q, k, v, math.log2(math.e) / math.sqrt(size), out)
            }
            if spike is not None:
                calls["spike"] = spike(size, causal, element, q, k, v, out)

            def cudnn(q: Any = q, k: Any = k, v: Any = v, causal: bool = causal) -> None:
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    F.scaled_dot_product_attention(q, k, v, is_causal=causal)

            calls["cudnn"] = cudnn
            times = interleaved_times(calls, ROUNDS)
            work = 4 * b * h * s * s * size * (0.5 if causal else 1)
            rates = {name: work / ms / 1e9 for name, ms in times.items()}
            what = f"attention {'causal' if causal else 'full'} {(b, h, s, size)} {element}"
            found.append(report(what, rates, {"spike": ATTENTION_BAR}))
    return found


def spike_attention(folder: Path) -> Callable[..., Callable[[], Any]]:
    sys.path.insert(0, str(folder / "sm90_attention"))
    import run as experiment  # the experiments' own launcher

    plan: dict[str, Any] = {"Cfg": experiment.Cfg, "replace": experiment.replace}
    exec((folder / "sm90_attention" / "plan6.py").read_text(), plan)

    def launch(size: int, causal: bool, element: str, q: Any, k: Any, v: Any, out: Any) -> Callable[[], Any]:
        chosen = experiment.replace(plan["BENCH"][size, causal][0], causal=causal, dt=element)
        if q.shape[2] % chosen.BC:
            chosen = experiment.replace(chosen, bound=True)
        return experiment.Launch(chosen, q, k, v, out)

    return launch


def spike_gemm(folder: Path) -> Callable[..., Callable[[], Any]]:
    sys.path.insert(0, str(folder / "sm90_gemm"))
    import run_gemm as experiment

    return lambda a, b, out: experiment.Launch(experiment.Cfg(), a, b, out)


def time_gemm(spikes: Path | None) -> list[dict[str, Any]]:
    spike = spike_gemm(spikes) if spikes is not None else None
    found: list[dict[str, Any]] = []
    for side in SQUARES:
        count = 4 if side <= 4096 else 1
        a, b = random("bf16", side, side), random("bf16", side, side)
        out = torch.empty_like(a)
        for name in ("gemm", "gemm_kn"):
            right = b if name == "gemm_kn" else b.T
            calls: dict[str, Callable[[], Any]] = {"text": Launch(kernel(name, "bf16"), a, b, out)}
            calls["cublas"] = lambda a=a, right=right: torch.matmul(a, right)
            if spike is not None and name == "gemm":
                calls["spike"] = spike(a, b, out)
            times = interleaved_times({each: graph_of(call, count) for each, call in calls.items()}, ROUNDS)
            rates = {each: 2 * side**3 * count / ms / 1e9 for each, ms in times.items()}
            found.append(report(f"{name} {side}³ bf16", rates, {"cublas": GEMM_BAR}))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spikes", type=Path, help="the folder of the experiments; without it they do not run")
    parser.add_argument("--out", type=Path, help="the folder for texts.json")
    parser.add_argument("--only", choices=("check", "attention", "gemm"), help="one part of the whole")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    began = time.perf_counter()
    parts = (options.only,) if options.only else ("check", "attention", "gemm")
    checks = check() if "check" in parts else []
    rows = time_attention(options.spikes, "f16") if "attention" in parts else []
    rows += time_gemm(options.spikes) if "gemm" in parts else []
    wrong, missed = sum(not one["right"] for one in checks), sum(bool(row["missed"]) for row in rows)
    print(
        f"{len(checks)} checks, {wrong} wrong; {len(rows)} rows, {missed} below their bar; "
        f"{time.perf_counter() - began:.0f} s"
    )
    if options.out is not None:
        texts = {name.name: name.ptx for name in _kernels.values()}
        content = records.record(rows, texts, {**environment(), "gpu": torch.cuda.get_device_name(0)}, checks=checks)
        options.out.mkdir(parents=True, exist_ok=True)
        records.write(options.out / "texts.json", content)
    return WRONG if wrong else MISSED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
