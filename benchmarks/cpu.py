"""Kernels on the CPU against torch: ratios in one process, interleaved, equal threads, accuracy in the same row.

    python benchmarks/cpu.py                 every row, 1 and 2 threads, into benchmarks/results/cpu.json
    python benchmarks/cpu.py --only gemm     rows whose name contains a word, printed only
    python benchmarks/cpu.py --quick         fewer repeats

A ratio is torch's time over ours: above 1, ours is faster. Rows named `variant` hold the useful operations per second
of a kernel against those of the plain attention kernel; torch has no part in them. A ratio is the median over pairs of
neighbouring blocks of calls; the spread is the 10th and 90th percentile of those pairs, `low` the lower end of a 95 %
interval of the median.
Times of a shared machine mean little; ratios of neighbours do.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import handwritten

import tessera
from tessera import Schedule, stdlib
from tessera.runtime.native import pool
from tessera.targets.cpu import features

try:
    import torch
except ImportError:
    sys.exit("this compares with torch: pip install torch==2.13.0")

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK_SECONDS = 0.01
SETTLE_SECONDS = 0.02
ENOUGH, LONG_SECONDS = 31, 4.0
BOUNDS = {"f32": 2e-6, "bf16": 4e-3}


@dataclass(frozen=True)
class Case:
    """One row: what runs, what it is compared with, and the float64 truth, of all rows or of every so-many-th one.

    With `their_flops`, rates are compared and not times: `theirs` is a kernel of ours that does other work.
    """

    name: str
    dtype: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    truth: Callable[[], Array]
    flops: float
    bars: tuple[float, float] | None = None
    every: int = 1
    their_flops: float | None = None


@dataclass(frozen=True)
class Row:
    """What was seen."""

    name: str
    threads: int
    ratio: float
    low: float
    spread: tuple[float, float]
    bar: float | None
    ours_ms: float
    theirs_ms: float
    gflops: float
    error: float
    their_error: float
    accurate: bool

    @property
    def counted(self) -> float:
        """What is held against the bar: where the bar is parity with a memory-bound peer, the lower bound."""
        return self.low if self.bar == 0.97 else self.ratio


def inputs(shapes: Sequence[tuple[int, ...]], dtype: str) -> list[tuple[Any, Any, Array]]:
    """Normal numbers in some shapes: ours, torch's and float64."""
    random = np.random.default_rng(7)
    return [as_dtype(random.standard_normal(shape).astype(np.float32), dtype) for shape in shapes]


def as_dtype(x: Array, dtype: str) -> tuple[Any, Any, Array]:
    """An array as a tensor of ours, as torch's over the same memory, and as float64."""
    if dtype == "f32":
        return tessera.asarray(x), torch.from_numpy(x), x.astype(np.float64)
    theirs = torch.from_numpy(x).bfloat16()
    return tessera.from_dlpack(theirs), theirs, theirs.double().numpy()


def to_numpy(x: Any) -> Array:
    return x.numpy().astype(np.float64) if isinstance(x, tessera.Tensor) else x.double().numpy()


def attention_truth(q: Array, k: Array, v: Array, causal: bool) -> Array:
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if causal:
        rows, cols = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
        scores = np.where(rows >= cols, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def attention_cases() -> Iterator[Case]:
    bars = {
        ("f32", False): (1.15, 1.2),
        ("f32", True): (1.4, 1.45),
        ("bf16", False): (1.4, 1.45),
        ("bf16", True): (1.8, 1.9),
    }
    blocks = {"f32": (24, 256), "bf16": (64, 512)}
    settings = [(8, 8, size, 64, dtype) for dtype in ("f32", "bf16") for size in (512, 1024, 2048)]
    for heads, groups, size, width, dtype in [*settings, (32, 8, 1024, 128, "f32")]:
        shapes = (1, heads, size, width), (1, groups, size, width), (1, groups, size, width)
        q, k, v = inputs(shapes, dtype)
        for causal in (False, True):
            if groups != heads and causal:
                continue
            run = stdlib.attention.with_schedule(Schedule(block=blocks[dtype]))
            mask = stdlib.causal if causal else None

            def ours(run: Any = run, q: Any = q, k: Any = k, v: Any = v, mask: Any = mask) -> Any:
                return run(q[0], k[0], v[0], mask=mask)

            def theirs(
                q: Any = q, k: Any = k, v: Any = v, causal: bool = causal, shared: bool = groups != heads
            ) -> Any:
                attend = torch.nn.functional.scaled_dot_product_attention
                return attend(q[1], k[1], v[1], is_causal=causal, enable_gqa=shared)

            def truth(q: Any = q, k: Any = k, v: Any = v, causal: bool = causal) -> Array:
                return attention_truth(q[2], k[2], v[2], causal)

            shared = f" heads {heads}/{groups}" if groups != heads else ""
            name = f"attention {dtype} S={size} D={width}{shared} {'causal' if causal else 'full'}"
            flops = 4.0 * heads * size * size * width / (2 if causal else 1)
            bar = bars[dtype, causal] if groups == heads else (1.1, 1.1)
            yield Case(name, dtype, ours, theirs, truth, flops, bar)


def gemm_cases() -> Iterator[Case]:
    blocks = {1024: (256, 256), 512: (128, 128), 128: (64, 128)}
    for dtype in ("f32", "bf16"):
        for m, n, k in ((1024, 1024, 1024), (512, 512, 64), (128, 1024, 64)):
            a, b = inputs(((m, k), (k, n)), dtype)
            block = (32, 512, k) if dtype == "bf16" else (*blocks[m], k)
            run = stdlib.gemm.with_schedule(Schedule(block=block)).assume()[-(-m // block[0]), -(-n // block[1])]
            c = tessera.zeros((m, n), dtype=a[0].dtype)
            out = torch.empty((m, n), dtype=a[1].dtype)

            def ours(run: Any = run, a: Any = a, b: Any = b, c: Any = c) -> Any:
                run(a[0], b[0], c)
                return c

            def theirs(a: Any = a, b: Any = b, out: Any = out) -> Any:
                return torch.mm(a[1], b[1], out=out)

            bar = (0.95, 0.95) if dtype == "f32" else (0.95, 1.3)
            yield Case(
                f"gemm {dtype} {m}x{n}x{k}", dtype, ours, theirs, lambda a=a, b=b: a[2] @ b[2], 2.0 * m * n * k, bar
            )


def text_cases() -> Iterator[Case]:
    """Programs written by hand at the cpu level: what the emitter reaches without passes."""
    a, b = inputs(((512, 64), (64, 512)), "f32")
    c, out = np.zeros((512, 512), np.float32), torch.empty((512, 512))
    operands = [a[0].numpy(), b[0].numpy(), c]
    gemm = handwritten.executable("gemm").bind(operands)

    def multiply() -> Any:
        gemm(*operands)
        return tessera.asarray(c)

    yield Case(
        "text gemm.cpu 512x512x64",
        "f32",
        multiply,
        lambda: torch.mm(a[1], b[1], out=out),
        lambda: a[2] @ b[2],
        2.0 * 512 * 512 * 64,
    )
    q, k, v = inputs([(1, 8, 768, 64)] * 3, "f32")
    found = np.zeros((8, 768, 64), np.float32)
    arrays = [*(x[0].numpy()[0] for x in (q, k, v)), found]
    attention = handwritten.executable("attention").bind(arrays)

    def attend() -> Any:
        attention(*arrays)
        return tessera.asarray(found[None])

    yield Case(
        "text attention.cpu S=768 full",
        "f32",
        attend,
        lambda: torch.nn.functional.scaled_dot_product_attention(q[1], k[1], v[1]),
        lambda: attention_truth(q[2], k[2], v[2], causal=False),
        4.0 * 8 * 768 * 768 * 64,
    )


def variant_cases() -> Iterator[Case]:
    """Programs that no compiler knows, against the plain attention kernel: useful operations in the same time."""
    heads, size, width, every = 2, 4096, 64, 61
    near, hidden = size // 4, 4 * size
    rows, cols = np.arange(0, size, every)[:, None], np.arange(size)
    for dtype in ("f32", "bf16"):
        q, k, v, x, up, down = inputs(
            [(heads, size, width)] * 3 + [(size, width), (width, hidden), (hidden, width)], dtype
        )
        slopes = as_dtype(2.0 ** -np.arange(1, heads + 1).astype(np.float32), "f32")
        names = "attention", "window_attention", "prefix_attention", "alibi_attention", "sigmoid_attention", "mlp"
        blocks = dict.fromkeys(names, (48, 256) if dtype == "f32" else (64, 512))
        if dtype == "bf16":
            blocks.update(window_attention=(32, 256), mlp=(64, 256))
        else:
            blocks.update(window_attention=(24, 128))
        run = {name: getattr(stdlib, name).with_schedule(Schedule(block=block)) for name, block in blocks.items()}
        causal = rows >= cols

        def attend(
            score: Callable[[Array], Array], mask: Array | None = None, q: Any = q, k: Any = k, v: Any = v
        ) -> Array:
            scores = score(q[2][:, ::every] @ np.swapaxes(k[2], -1, -2) / math.sqrt(width))
            scores = scores if mask is None else np.where(mask, scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            return weights / weights.sum(-1, keepdims=True) @ v[2]

        def sigmoid(q: Any = q, k: Any = k, v: Any = v) -> Array:
            scores = q[2][:, ::every] @ np.swapaxes(k[2], -1, -2) / math.sqrt(width)
            return 1 / (1 + np.exp(1.0 - scores)) @ v[2]

        def dot_gelu_dot(x: Any = x, up: Any = up, down: Any = down) -> Array:
            wide = x[2][::every] @ up[2]
            return 0.5 * wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) @ down[2]

        def tilted(scores: Array, slopes: Any = slopes) -> Array:
            return scores - slopes[2][:, None, None] * np.abs(rows - cols)

        arrays = q[0], k[0], v[0]
        full = 4.0 * heads * size * size * width
        seen = [causal & (rows - cols < near), causal | (cols < near)]
        table: list[tuple[str, Callable[[], Any], Callable[[], Array], float, float]] = [
            (
                "ALiBi",
                lambda run=run, a=arrays, s=slopes: run["alibi_attention"](*a, s[0]),
                lambda attend=attend, tilted=tilted: attend(tilted),
                full,
                0.85,
            ),
            (
                f"window {near}",
                lambda run=run, a=arrays: run["window_attention"](*a, near),
                lambda attend=attend, m=seen[0]: attend(stdlib.identity, m),
                full * float(seen[0].mean()),
                0.85,
            ),
            (
                f"prefix {near}",
                lambda run=run, a=arrays: run["prefix_attention"](*a, near),
                lambda attend=attend, m=seen[1]: attend(stdlib.identity, m),
                full * float(seen[1].mean()),
                0.85,
            ),
            (
                "own score",
                lambda run=run, a=arrays: run["attention"](*a, score=stdlib.own_score),
                lambda attend=attend: attend(lambda s: 0.9 * s + 0.05 * np.maximum(s, 0)),
                full,
                0.85,
            ),
            (
                "soft-cap",
                lambda run=run, a=arrays: run["attention"](*a, score=stdlib.soft_cap),
                lambda attend=attend: attend(lambda s: 30 * np.tanh(s / 30)),
                full,
                0.6,
            ),
            ("sigmoid", lambda run=run, a=arrays: run["sigmoid_attention"](*a, -1.0), sigmoid, full, 0.85),
            (
                "dot-gelu-dot",
                lambda run=run, a=(x[0], up[0], down[0]): run["mlp"](*a),
                dot_gelu_dot,
                4.0 * size * width * hidden,
                0.85,
            ),
        ]
        for name, ours, truth, flops, bar in table:
            yield Case(
                f"variant {dtype} {name}",
                dtype,
                ours,
                lambda run=run, a=arrays: run["attention"](*a),
                truth,
                flops,
                (bar, bar),
                every,
                full,
            )


def row_cases() -> Iterator[Case]:
    rows, cols = 4096, 1024
    x, weight, bias = inputs(((rows, cols), (cols,), (cols,)), "f32")
    functional = torch.nn.functional
    wide = x[2]
    block = Schedule(block=(16, 16))

    def softmax_truth() -> Array:
        weights = np.exp(wide - wide.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    def layernorm_truth() -> Array:
        centred = wide - wide.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight[2] + bias[2]

    def gelu_truth() -> Array:
        shifted = wide + bias[2]
        return 0.5 * shifted * (1 + np.vectorize(math.erf)(shifted / math.sqrt(2)))

    run = {
        name: getattr(stdlib, name).with_schedule(block) for name in ("softmax", "layernorm", "rmsnorm", "gelu_bias")
    }
    table: list[tuple[str, Any, Any, Any]] = [
        ("softmax", lambda: run["softmax"](x[0]), lambda: torch.softmax(x[1], -1), softmax_truth),
        (
            "layernorm",
            lambda: run["layernorm"](x[0], weight[0], bias[0]),
            lambda: functional.layer_norm(x[1], (cols,), weight[1], bias[1], 1e-5),
            layernorm_truth,
        ),
        (
            "rmsnorm",
            lambda: run["rmsnorm"](x[0], weight[0]),
            lambda: functional.rms_norm(x[1], (cols,), weight[1], 1e-6),
            lambda: wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight[2],
        ),
        ("gelu+bias", lambda: run["gelu_bias"](x[0], bias[0]), lambda: functional.gelu(x[1] + bias[1]), gelu_truth),
    ]
    for name, ours, theirs, truth in table:
        yield Case(f"{name} {rows}x{cols} f32", "f32", ours, theirs, truth, 0.0, (0.97, 0.97))


def seconds(call: Callable[[], Any], count: int) -> float:
    """Of one call. Threads of the other side, which spin while they wait for work, get the time to fall asleep."""
    time.sleep(SETTLE_SECONDS)
    call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def relative_error(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def measure(case: Case, threads: int, repeats: int) -> Row:
    torch.set_num_threads(threads)
    pool.set_threads(threads)
    truth = case.truth()
    error = relative_error(to_numpy(case.ours())[..., :: case.every, :], truth)
    own = case.their_flops is not None
    their_error = 0.0 if own else relative_error(to_numpy(case.theirs()), truth)
    factor = case.flops / case.their_flops if case.their_flops else 1.0
    calls = case.ours, case.theirs
    counts = [max(1, round(BLOCK_SECONDS / max(1e-7, min(seconds(call, 1) for _ in range(3))))) for call in calls]
    times: list[tuple[float, float]] = []
    began = time.perf_counter()
    for round_number in range(repeats):
        if round_number >= ENOUGH and time.perf_counter() - began > LONG_SECONDS:
            break
        order = (0, 1) if round_number % 2 else (1, 0)
        found = {side: seconds(calls[side], counts[side]) for side in order}
        times.append((found[0], found[1]))
    ratios = np.sort([factor * theirs / ours for ours, theirs in times])
    # The lower end of the median's interval, from order statistics.
    rank = max(0, math.floor(len(ratios) / 2 - 0.98 * math.sqrt(len(ratios))))
    ours, theirs = (float(np.median([pair[side] for pair in times])) for side in (0, 1))
    bound = max(BOUNDS[case.dtype], 1.1 * their_error)
    return Row(
        case.name,
        threads,
        round(float(np.median(ratios)), 3),
        round(float(ratios[rank]), 3),
        (round(float(np.quantile(ratios, 0.1)), 3), round(float(np.quantile(ratios, 0.9)), 3)),
        None if case.bars is None else case.bars[min(threads, 2) - 1],
        round(ours * 1e3, 4),
        round(theirs * 1e3, 4),
        round(case.flops / ours / 1e9, 1),
        error,
        their_error,
        error <= bound,
    )


def line(row: Row) -> str:
    reached = "" if row.bar is None else "ok" if row.counted >= row.bar else "MISS"
    return (
        f"{row.name:45} {row.threads} threads  ratio {row.ratio:5.2f} [{row.spread[0]:.2f}, {row.spread[1]:.2f}]"
        f" bar {row.bar} {reached:4} {row.ours_ms:9.3f} ms {row.gflops:6.0f} GFLOP/s  error {row.error:.1e}"
        + ("" if row.accurate else "  WRONG")
    )


def environment() -> dict[str, Any]:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return {
        "processor": model,
        "cpus": len(os.sched_getaffinity(0)),
        "level": features.level(),
        "python": platform.python_version(),
        "tessera": tessera.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU kernels against torch")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    repeats = 21 if options.quick else 61
    rows: list[Row] = []
    for case in (*attention_cases(), *gemm_cases(), *row_cases(), *text_cases(), *variant_cases()):
        if options.only not in case.name:
            continue
        for threads in options.threads:
            row = measure(case, threads, repeats)
            rows.append(row)
            print(line(row), flush=True)
    if not options.only and not options.quick:
        target = Path(__file__).parent / "results" / "cpu.json"
        target.parent.mkdir(exist_ok=True)
        text = json.dumps({"environment": environment(), "rows": [asdict(row) for row in rows]}, indent=1)
        partial = target.with_suffix(".partial")
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(target)
    if any(not row.accurate for row in rows):
        sys.exit("a result is not accurate enough")


if __name__ == "__main__":
    main()
