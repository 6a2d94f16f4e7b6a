"""Faults on a GPU: calls return what they should, at whatever tier is left, and the log says what happened."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Tensor, knobs
from tessera.errors import DeviceError, ResourceError
from tessera.metatracing import AttentionParams, Call, ExecutionTier, MetaTracingRuntime, RuntimeConfig, TierLevel
from tessera.metatracing.clients.kernels import KernelClient, KernelProgram
from tessera.stdlib import flash_attention
from tessera.targets.cuda.ptx.tools import find_ptxas
from tessera.tiers.compiling.background import BackgroundCompiler

pytestmark = pytest.mark.gpu

SHAPE = (1, 2, 200, 64)
CAUSAL = AttentionParams(is_causal=True)


def hot(**more: Any) -> RuntimeConfig:
    """Everything is hot at once."""
    settings: dict[str, Any] = {"background_compilation": False, "contest_rounds": 1, **more}
    return RuntimeConfig(tier2_compilation_threshold_ms=0.01, tier3_specialization_threshold_ms=0.02, **settings)


@pytest.fixture(name="cache", autouse=True)
def _cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Path]:
    with knobs.cache_dir.using(tmp_path), caplog.at_level(logging.WARNING):
        yield tmp_path


class Attention:
    """Attention on a GPU, compared with the kernel by itself."""

    def __init__(self) -> None:
        self.q, self.k, self.v = (ts.randn(SHAPE, ts.f16, seed=seed).to("cuda:0") for seed in range(3))
        self.nothing = ts.zeros(SHAPE, ts.f16)
        expected = ts.empty(SHAPE, ts.f16, device="cuda:0")
        flash_attention(self.q, self.k, self.v, expected, 0.125, causal=True)
        self.exact = expected.cpu().numpy().astype(np.float64)

    def run(self, runtime: MetaTracingRuntime, times: int, o: Tensor | None = None) -> set[int]:
        """The tiers of so many calls, all of which are right."""
        tiers: set[int] = set()
        for _ in range(times):
            given = self.nothing.to("cuda:0") if o is None else o
            result = runtime.execute_flash_attention(self.q, self.k, self.v, given, CAUSAL)
            tiers.add(int(result.tier_used))
            away = given.cpu().numpy().astype(np.float64) - self.exact
            assert np.linalg.norm(away) < 1e-3 * np.linalg.norm(self.exact)
        return tiers


FAULTS = [
    DeviceError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch"),
    ResourceError("CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
    MemoryError("no memory for the arguments of a launch"),
]


@pytest.mark.parametrize("where", ["bind", "run"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_what_the_driver_refuses_runs_a_tier_down(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception, where: str
) -> None:
    """Programs above the first tier cannot be launched: calls run at the first, and are right."""
    bind, first = KernelProgram.bind, list[KernelProgram]()

    def failing(self: KernelProgram, call: Call) -> Any:
        first.append(self) if not first else None
        if self is first[0]:
            return bind(self, call)
        if where == "bind":
            raise fault

        def run(*_: object) -> None:
            raise fault

        return run

    attention = Attention()
    monkeypatch.setattr(KernelProgram, "bind", failing)
    runtime = MetaTracingRuntime(hot())
    assert attention.run(runtime, 60) == {1}
    assert str(fault.args[0]) in caplog.text
    assert runtime.counts["aborts"] >= 1
    assert runtime.get_runtime_stats().total_executions == 60


@pytest.mark.alone
def test_a_gpu_without_memory_left() -> None:
    """Everything that can be had is taken by others: whatever cannot be loaded then, calls are right."""
    attention, runtime = Attention(), MetaTracingRuntime(hot())
    o = ts.empty(SHAPE, ts.f16, device="cuda:0")
    attention.run(runtime, 1, o)
    taken: list[Tensor] = []
    size = 1 << 36
    while size >= 1 << 21:
        try:
            taken.append(ts.empty((size,), ts.u8, device="cuda:0"))
        except (ResourceError, DeviceError, MemoryError):
            size //= 2
    attention.run(runtime, 60, o)
    assert runtime.get_runtime_stats().total_executions == 61


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    attention, runtime = Attention(), MetaTracingRuntime(hot())
    monkeypatch.setattr(os, "write", full)
    assert max(attention.run(runtime, 60)) == 3


@pytest.mark.parametrize("damage", ["cut off", "empty", "reversed"])
def test_a_damaged_cache(cache: Path, damage: str) -> None:
    attention = Attention()
    for _ in range(2):
        assert max(attention.run(MetaTracingRuntime(hot()), 60)) == 3
        for file in (cache / "compiled").iterdir():
            data = file.read_bytes()
            file.write_bytes({"cut off": data[:-7], "empty": b"", "reversed": data[::-1]}[damage])


def test_a_killed_process(caplog: pytest.LogCaptureFixture) -> None:
    """It is killed as soon as it is there, again and again, until no other one is started."""
    attention = Attention()
    with MetaTracingRuntime(hot(background_compilation=True)) as runtime:
        until = time.monotonic() + 60
        worker = runtime.compiling
        assert isinstance(worker, BackgroundCompiler)
        while worker.is_usable and time.monotonic() < until:
            attention.run(runtime, 5)
            for pid in worker.pids:
                with suppress(ProcessLookupError):  # it was killed before, and was not asked since
                    os.kill(pid, signal.SIGKILL)
        attention.run(runtime, 20)
    assert "the process that compiles" in caplog.text
    assert not worker.is_usable


def test_torch_captures_graphs_while_sites_tier_up() -> None:
    """Events are read, programs loaded and memory given back by threads of ours while torch captures."""
    torch: Any = pytest.importorskip("torch")
    attention, x = Attention(), torch.zeros(100, device="cuda")
    with MetaTracingRuntime(hot(background_compilation=True, contest_rounds=3)) as runtime:
        until, tiers = time.monotonic() + 60, set[int]()
        while 3 not in tiers and time.monotonic() < until:
            tiers |= attention.run(runtime, 3)
            given = attention.nothing.to("cuda:0")
            for _ in range(5):
                runtime.execute_flash_attention(attention.q, attention.k, attention.v, given, CAUSAL)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
                doubled = x * 2
                time.sleep(0.02)
                result = doubled + 1
            x.fill_(float(len(tiers)))
            graph.replay()
            assert result.tolist() == [2.0 * len(tiers) + 1] * 100
    assert 3 in tiers


@pytest.mark.acceptance
@pytest.mark.alone
def test_memory_does_not_grow() -> None:
    """Neither the process's nor the GPU's: attention of a few shapes, made, specialized, refused and bridged."""
    from tessera.runtime.cuda.context import Context
    from tessera.runtime.cuda.streams import synchronize

    calls, rows = 100_000, (64, 128, 200, 256, 320)
    config = hot(contest_rounds=3)
    arrays = {one: [ts.randn((1, 1, one, 64), ts.f16, seed=seed).to("cuda:0") for seed in range(3)] for one in rows}
    runtime = MetaTracingRuntime(config)

    def work(count: int) -> tuple[int, int]:
        for number in range(count):
            q, k, v = arrays[rows[(number // 50) % len(rows)]]
            runtime.execute_flash_attention(q, k, v)
            if number % 50 == 0:
                synchronize()
        synchronize()
        gc.collect()
        statm = Path("/proc/self/statm").read_text().split()
        return int(statm[1]) * resource.getpagesize(), -Context.of(0).free_memory()[0]

    began = work(calls // 10)
    middle = work(calls // 2)
    ended = work(calls - calls // 10 - calls // 2)
    for before, halfway, after in zip(began, middle, ended, strict=True):
        assert halfway - before <= 64 << 20
        assert after - halfway <= 4 << 20
    assert len(runtime.manager) <= config.max_specialized_kernels
    assert runtime.get_runtime_stats().total_executions == calls


def test_a_process_that_compiles_leaves_the_gpu_alone() -> None:
    """Contexts of several processes run one after the other on a GPU: callers would wait."""
    if find_ptxas() is None:
        pytest.skip("without ptxas the driver assembles")
    q, k, v = (ts.randn(SHAPE, ts.f16, seed=seed).to("cuda:0") for seed in range(3))
    client = KernelClient(flash_attention)
    call = client.call((q, k, v, ts.empty(SHAPE, ts.f16, device="cuda:0"), 0.125), {"causal": True})
    assert call is not None
    packed = client.request(call, [TierLevel(ExecutionTier.TIER2_STANDARD)])
    assert packed is not None
    code = (
        "import sys; from tessera.metatracing.clients.worker import build; "
        "from tessera.runtime.cuda.context import Context; "
        "print(build(sys.stdin.buffer.read()).decode(), 'handle' in vars(Context.of(0)))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[null] False"
    assert client.find(call, TierLevel(ExecutionTier.TIER2_STANDARD)) is not None
