"""The overhead of tiers beside the programs: recording calls, and finding the program to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tessera.bench.configs import InputConfiguration
from tessera.bench.validation.subjects import Problem, limited, settled, synchronize
from tessera.device_names import is_host
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig, flash_attention

_NEVER = 1 << 30
_ROUNDS = 16


def tracing_overhead(problem: Problem, config: RuntimeConfig) -> float:
    """How much longer calls take where some are recorded, as a part; the same program runs in both."""
    traced = settled(problem, config, 3)
    plain = MetaTracingRuntime(replace(limited(config, 1), enable_tracing=False, sample_period=_NEVER))
    problem.by(plain)()
    (site,), (other,) = traced.sites(), plain.sites()
    other.programs[:] = site.programs
    other.forget()
    calls = {"traced": problem.by(traced), "plain": problem.by(plain)}
    once = max(_timed(calls["plain"], 3, problem.device), 1e-7)
    count = max(8, min(64, round(0.02 / once)))
    laps: dict[str, list[float]] = {"traced": [], "plain": []}
    for number in range(_ROUNDS):
        for name in sorted(calls, reverse=bool(number % 2)):
            laps[name].append(_timed(calls[name], count, problem.device))
    return float(np.median(np.asarray(laps["traced"]) / np.asarray(laps["plain"]))) - 1


def orchestration_us(config: RuntimeConfig, device: str) -> float:
    """Microseconds that a call takes beyond the bound program that it finds; by a call that is as short as any."""
    dtype = "f32" if is_host(device) else "f16"
    problem = Problem.of(InputConfiguration(1, 1, 16, 16, dtype, True, "the shortest"), device)
    runtime = settled(problem, replace(config, sample_period=None), 3)
    tiered, scale = runtime.tiered(flash_attention), problem.params.scale(16)
    q, k, v, o = problem.arrays
    for _ in range(_ROUNDS):  # what was forgotten when a contest ended is found again
        tiered(q, k, v, o, scale, causal=True)
        synchronize(device)
    (entry,) = tiered.entries.values()
    bound, flat = entry.run, [one.geometry for one in problem.arrays]
    laps: dict[str, list[float]] = {"bound": [], "tiered": []}
    for _ in range(_ROUNDS):
        laps["bound"].append(_timed(lambda: bound(*flat, scale), 200, device))
        laps["tiered"].append(_timed(lambda: tiered(q, k, v, o, scale, causal=True), 200, device))
    return 1e6 * float(np.median(laps["tiered"]) - np.median(laps["bound"]))


def _timed(call: Callable[[], Any], count: int, device: str) -> float:
    """Seconds of a call."""
    synchronize(device)
    began = time.perf_counter()
    for _ in range(count):
        call()
    synchronize(device)
    return (time.perf_counter() - began) / count
