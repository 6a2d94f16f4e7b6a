"""A decoder's step (4 layers, width 512): what tiers, and launches replayed as graphs, do for a launch-bound program.

    python benchmarks/decode_step.py                  on a GPU where there is one, else on the CPU
    python benchmarks/decode_step.py --layers 2 --width 64

Each step is fed with what the one before gave. Tier 1 is the program with open sizes, launched kernel by kernel; all
are interleaved, and results are compared with float64 first.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import tessera as ts
from tessera import jit
from tessera.bench.results.statistics import median_interval, ratio
from tessera.errors import DeviceError
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig

sys.path.append(str(Path(__file__).parents[1] / "tests" / "lang"))
model: Any = import_module("decode_model")
BOUNDS = {"f32": 2e-6, "bf16": 4e-3}
STEPS = 8
"""Steps that are compared with float64; errors of bf16 add up over them and over layers."""


def device_of(wanted: str) -> str:
    """`cuda` where there is a GPU and nothing else was asked for."""
    if wanted != "auto":
        return wanted
    from tessera.runtime.cuda import driver

    try:
        return "cuda" if driver.device_count() else "cpu"
    except DeviceError:
        return "cpu"


class Decoder:
    """A function and its state: each call is one step."""

    def __init__(self, function: Any, given: Any) -> None:
        self.function = function
        self.start = given
        self.x, self.position, self.layers, self.cache = given

    def step(self) -> Any:
        x, self.position, self.cache = self.function(self.x, self.position, self.layers, self.cache)
        return x

    def error(self, heads: int) -> float:
        """Relative, in norm, after some steps from the start, each fed with the last."""
        x, position, layers, cache = self.start
        exact: Any = model.in_float64(x.cpu().values().astype(np.float64), layers, STEPS, heads)
        for _ in range(STEPS):
            x, position, cache = self.function(x, position, layers, cache)
        found = x.cpu().values().astype(np.float64)
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most until Tier 3")
    chosen = parser.parse_args()
    device = device_of(chosen.device)
    dtype = ts.bf16 if device == "cuda" else ts.f32
    sizes: dict[str, int] = {name: getattr(chosen, name) for name in ("layers", "width", "heads", "length")}

    def moved(one: ts.Tensor) -> ts.Tensor:
        return one.to(device)

    given = ts.tree_map(moved, model.arguments(dtype, **sizes))
    print(f"decoder's step on {device}, {dtype}, {sizes}; {platform.machine()}, Python {platform.python_version()}")
    wait: Callable[[], None] = ts.cuda.synchronize if device == "cuda" else lambda: None

    usual: dict[str, Any] = {"background_compilation": False, "persist": False, "candidates": 2}
    low = MetaTracingRuntime(RuntimeConfig(enable_tier2_compilation=False, enable_tier3_specialization=False, **usual))
    # Calls of some microseconds would take long to be hot.
    high = MetaTracingRuntime(
        RuntimeConfig(tier2_compilation_threshold_ms=0.1, tier3_specialization_threshold_ms=1.0, **usual)
    )
    decoders = {
        "tier 1": Decoder(jit(tiers=low)(model.decode_step), given),
        "tiers": Decoder(jit(tiers=high)(model.decode_step), given),
        "jit": Decoder(jit(model.decode_step), given),
    }
    began = time.perf_counter()
    for name, decoder in decoders.items():
        decoder.step()
        wait()
        print(f"{name}: first result after {time.perf_counter() - began:.1f} s", flush=True)
        began = time.perf_counter()
    climbing = decoders["tiers"]
    while time.perf_counter() - began < chosen.seconds:
        climbing.step()
        wait()
        if high.get_runtime_stats().tier3_executions > 60:
            break
    print(f"{time.perf_counter() - began:.1f} s until Tier 3", high.get_runtime_stats().events, flush=True)
    print(high.explain()[:2000], flush=True)
    launches = {name: len(decoder.function.explain().variants[0].program.kernels) for name, decoder in decoders.items()}
    for name, decoder in decoders.items():
        bound = STEPS * sizes["layers"] ** 0.5 * BOUNDS[str(dtype)]
        error = decoder.error(sizes["heads"])
        print(f"{name}: error after {STEPS} steps {error:.1e}, at most {bound:.1e}", flush=True)
        if error > bound:
            sys.exit(1)
    laps: dict[str, list[float]] = {name: [] for name in decoders}
    for decoder in decoders.values():
        timed(decoder.step, wait, 20)
    count = max(5, int(0.02 / timed(decoders["tier 1"].step, wait, 20)))
    for _ in range(chosen.rounds):
        for name, decoder in decoders.items():
            laps[name].append(timed(decoder.step, wait, count))
    for name, some in laps.items():
        middle = median_interval(some)
        print(f"{name}: {1e6 * middle.low:.1f}–{1e6 * middle.high:.1f} µs a step, {launches[name]} launches")
    for name in ("jit", "tiers"):
        found = ratio(laps[name], laps["tier 1"])
        low_end, high_end = found.interval.low, found.interval.high
        print(
            f"tier 1 over {name}: ×{found.estimate:.2f} [{low_end:.2f}, {high_end:.2f}], "
            f"{100 * found.interval.confidence:.0f} % confidence, p = {found.p_value:.1e}"
        )


def timed(call: Callable[[], object], wait: Callable[[], None], count: int) -> float:
    """Seconds of one call, over many in a row."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    main()
