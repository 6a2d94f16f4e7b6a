"""Subjects of validation: attention of one configuration at one tier, with its arrays, ready to be called."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tessera import subprocesses
from tessera.bench.configs import InputConfiguration
from tessera.device_names import is_host
from tessera.dtypes.types import BY_NAME, DType
from tessera.metatracing import (
    BASELINE,
    AttentionParams,
    FlashAttentionInterpreter,
    MetaTracingRuntime,
    RuntimeConfig,
    flash_attention,
)
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.clients.worker import build
from tessera.runtime.device.device import device as device_named
from tessera.runtime.device.memory import ALIGNMENT, contiguous_strides
from tessera.runtime.tensor.creation import empty
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.random import randn
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import facts_of
from tessera.tiers.sites.candidates import tier2_levels, tier3_levels
from tessera.tiers.stand_ins import stand_in

TIERS = (1, 2, 3)
BOUNDS = {"f32": 2e-6, "f16": 5e-4, "bf16": 4e-3, "f8e4m3": 6e-2}
"""Relative errors in norm against float64 that results may have."""
_STEADY = 8
_DRAWN = 13
"""Heads that are drawn: a prime, so that a kernel which takes the wrong head does not find the right numbers there."""
_LEAST_ROUNDS, _MOST_ROUNDS = 12, 100


@dataclass(frozen=True)
class Problem:
    """A configuration and its arrays on a device."""

    config: InputConfiguration
    device: str
    arrays: tuple[Any, Any, Any, Any]

    @staticmethod
    def of(config: InputConfiguration, device: str) -> Problem:
        shape = (config.batch_size, config.num_heads, config.seq_len, config.head_dim)
        dtype = BY_NAME[config.dtype]
        q, k, v = (drawn(shape, dtype, device, seed) for seed in range(3))
        return Problem(config, device, (q, k, v, empty(shape, dtype, device=device)))

    @staticmethod
    def described(config: InputConfiguration, device: str) -> Problem:
        """The same without memory: enough to compile for it."""
        shape, dtype = (config.batch_size, config.num_heads, config.seq_len, config.head_dim), BY_NAME[config.dtype]
        meta = Meta(dtype, shape, contiguous_strides(shape, 1), device_named(device), ALIGNMENT)
        return Problem(config, device, (stand_in(meta), stand_in(meta), stand_in(meta), stand_in(meta)))

    @property
    def params(self) -> AttentionParams:
        return AttentionParams(is_causal=self.config.is_causal)

    @property
    def operations(self) -> float:
        config = self.config
        whole = 4.0 * config.batch_size * config.num_heads * config.seq_len**2 * config.head_dim
        return whole / 2 if config.is_causal else whole

    @property
    def moved(self) -> int:
        return sum(one.nbytes for one in self.arrays)

    def plainly(self, kernel: Any) -> Callable[[], Any]:
        """A call of a kernel without tiers."""
        q, k, v, o = self.arrays
        scale, causal = self.params.scale(self.config.head_dim), self.config.is_causal
        return lambda: kernel(q, k, v, o, scale, causal=causal)

    def baseline(self) -> Callable[[], Any]:
        """The frozen program that tiers are compared with."""
        return self.plainly(flash_attention.with_schedule(BASELINE))

    def by(self, runtime: MetaTracingRuntime) -> Callable[[], Any]:
        """The same call under a runtime; as above, it makes nothing of its own while it is measured."""
        (q, k, v, o), params = self.arrays, self.params
        return lambda: runtime.execute_flash_attention(q, k, v, o, params)

    def clear(self) -> None:
        """Zeros the output, so that the last result is not taken for the next one."""
        o = self.arrays[3]
        if is_host(self.device):
            o.numpy()[...] = 0
        else:
            o.device.backend.fill_zeros(o.pointer, o.nbytes)


def drawn(shape: tuple[int, int, int, int], dtype: DType, device: str, seed: int) -> Tensor:
    """Random heads; where there are many, the same few come again, in an order that no stride of heads has."""
    batch, heads, rows, width = shape
    few = randn((min(batch * heads, _DRAWN), rows, width), dtype, seed=seed).to(device)
    if batch * heads <= _DRAWN:
        return few.reshape(shape)
    made = empty(shape, dtype, device=device)
    backend, each = made.device.backend, few.nbytes // _DRAWN
    for first in range(0, batch * heads, _DRAWN):
        count = min(_DRAWN, batch * heads - first)
        backend.copy_from_device(made.pointer + first * each, few.device, few.pointer, count * each)
    return made


def limited(config: RuntimeConfig, tier: int) -> RuntimeConfig:
    """A configuration that compiles for a tier at once, and for none above it."""
    return replace(
        config,
        background_compilation=False,
        persist=False,
        enable_tier2_compilation=tier >= 2,
        enable_tier3_specialization=tier >= 3,
        tier2_compilation_threshold_ms=0.001,
        tier3_specialization_threshold_ms=0.002,
        contest_rounds=max(config.contest_rounds, 5),
    )


def settled(problem: Problem, config: RuntimeConfig, tier: int, seconds: float = 30.0) -> MetaTracingRuntime:
    """A runtime that has reached what it will reach for a problem, up to a tier."""
    until = time.perf_counter() + seconds
    if tier == 1:
        runtime = FlashAttentionInterpreter(settings=limited(config, 1)).runtime
    else:
        runtime = MetaTracingRuntime(limited(config, tier))
    tiers: list[int] = []
    while time.perf_counter() < until:
        tiers.append(int(runtime.execute_flash_attention(*problem.arrays, problem.params).tier_used))
        synchronize(problem.device)
        # What a GPU has not told of yet does not count: of calls that take long, the last one never has.
        open_ = any(one.is_working for one in runtime.sites())
        contests = runtime.counts["contests"] >= tier - 1
        if not open_ and len(tiers) > _STEADY and (tiers[-_STEADY:] == [tier] * _STEADY or contests):
            break
    return runtime


def synchronize(device: str) -> None:
    if not is_host(device):
        from tessera.runtime.cuda.streams import synchronize as wait

        wait()


def _shipments(problem: Problem, config: RuntimeConfig) -> Iterator[tuple[int, bytes]]:
    """The programs that higher tiers will ask to be compiled."""
    client = KernelClient(flash_attention)
    scale = problem.params.scale(problem.config.head_dim)
    call = client.call((*problem.arrays, scale), {"causal": problem.config.is_causal})
    assert call is not None
    words = tuple(sorted(facts_of(client.paths, call.described)))
    levels = dict.fromkeys(tier2_levels(client, call, config.candidates))
    for schedule in client.schedules(call)[: config.candidates]:
        levels |= dict.fromkeys(tier3_levels(client, call, words, schedule, {}, config.candidates))
    for kernel, chosen in ((client, list(levels)), (KernelClient(flash_attention.with_schedule(BASELINE)), [])):
        for level in chosen or tier2_levels(kernel, call, 1):
            packed = kernel.request(call, [level])
            if packed is not None:
                yield int(level.tier), packed


def compile_beforehand(
    configs: Sequence[InputConfiguration], device: str, config: RuntimeConfig, processes: int
) -> tuple[list[str], dict[int, float]]:
    """Fills the compile cache by several processes; what could not be compiled, in words.

    Also the seconds of the program that took longest, by tier; each process compiles one at a time.
    """
    packed = [one for which in configs for one in _shipments(Problem.described(which, device), config)]
    with subprocesses.spawning(), ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        built = list(pool.map(timed_build, [one for _, one in packed]))
    longest: dict[int, float] = {}
    for (tier, _), (_, seconds) in zip(packed, built, strict=True):
        longest[tier] = max(longest.get(tier, 0.0), seconds)
    return [str(answer) for answer, _ in built if answer != [None]], longest


def timed_build(packed: bytes) -> tuple[Any, float]:
    """Compiles a request; what came of it, and the seconds that it took."""
    began = time.perf_counter()
    answer = json.loads(build(packed))
    return answer, time.perf_counter() - began


def sampled(
    problem: Problem, calls: dict[str, Callable[[], Any]], seconds: float, warmup: int
) -> dict[str, list[float]]:
    """Milliseconds of calls, all entrants in rounds, so that they see the same clocks."""
    for call in calls.values():
        for _ in range(warmup):
            call()
    synchronize(problem.device)
    measure = _on_cpu if is_host(problem.device) else _on_gpu
    return measure(problem, calls, seconds)


def _rounds(seconds: float) -> Iterator[np.random.Generator]:
    random, until, count = np.random.default_rng(0), time.perf_counter() + seconds, 0
    while count < _LEAST_ROUNDS or (time.perf_counter() < until and count < _MOST_ROUNDS):
        count += 1
        yield random


def _on_cpu(problem: Problem, calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for random in _rounds(seconds):
        for name in random.permutation(list(calls)):
            began = time.perf_counter_ns()
            calls[name]()
            samples[name].append((time.perf_counter_ns() - began) / 1e6)
    return samples


def _on_gpu(problem: Problem, calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """In graphs of several calls: launches by Python would take longer than small kernels."""
    from tessera.bench.cuda.device import TorchGpu

    gpu = TorchGpu()
    about = problem.operations / 5e11
    count = max(1, min(40, round(0.4 / about)))
    graphs = {name: gpu.capture(call, count, ours=True) for name, call in calls.items()}
    for graph in graphs.values():
        graph.replay()
    gpu.synchronize()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for random in _rounds(seconds):
        marks: list[tuple[str, Any, Any]] = []
        for name in random.permutation(list(graphs)):
            first, last = gpu.event(), gpu.event()
            first.record()
            graphs[name].replay()
            last.record()
            marks.append((name, first, last))
        gpu.synchronize()
        for name, first, last in marks:
            samples[name].append(first.milliseconds_until(last) / count)
    graphs.clear()
    gpu.release()
    return samples
