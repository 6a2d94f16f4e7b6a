"""Collectives: against NumPy bit for bit on several ranks of this machine, and what is refused without hanging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import rank_checks

import tessera as ts
from tessera.distributed import group, nccl
from tessera.errors import EffectError, TesseraError
from tessera.metatracing import RuntimeConfig
from tessera.metatracing.ranks import (
    LISTENERS,
    CollectiveEvent,
    CollectivePattern,
    DistributedTrace,
    LoadImbalanceEvent,
    NetworkUtilization,
    enable_distributed_tracing,
    imbalance_of,
)


def ranks(count: int, *scenario: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mpi4py")
    return subprocess.run(
        [
            str(Path(sys.executable).with_name("mpiexec")),
            "-n",
            str(count),
            sys.executable,
            rank_checks.__file__,
            *scenario,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_three_ranks_get_what_numpy_gets_and_are_told_of_what_differs() -> None:
    ran = ranks(3, "reductions", "movements", "refusals", "traces")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.acceptance
@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_ranks(count: int) -> None:
    ran = ranks(count, "reductions", "movements", *(("refusals", "traces") if count > 1 else ()))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.acceptance
@pytest.mark.parametrize("how", ["ends", "raises", "sleeps"])
def test_a_rank_that_does_not_come_never_holds_the_others(how: str) -> None:
    ran = ranks(2, "alone", how)  # that it comes to an end is the point: ranks give up, or the launcher ends them
    if how != "ends":
        assert ran.returncode != 0
        words = {"raises": "ValueError: out of luck", "sleeps": "gave up: meeting for barrier: not all 2 ranks came"}
        assert words[how] in ran.stdout + ran.stderr


def test_without_mpi_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    with pytest.raises(TesseraError, match="cannot be loaded") as caught:
        ts.distributed.initialize_process_group()
    assert "tessera-lang[dist]" in (caught.value.hint or "")


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(TesseraError, match="backend among mpi, nccl, got 'gloo'"):
        ts.distributed.initialize_process_group("gloo")
    with pytest.raises(TesseraError, match="positive"):
        ts.distributed.initialize_process_group(timeout_s=0)
    refused = (ts.distributed.get_rank, ts.distributed.get_world_size, ts.distributed.destroy_process_group)
    for call in (*refused, ts.distributed.barrier):
        with pytest.raises(EffectError, match="in no group of ranks"):
            call()
    with pytest.raises(TesseraError, match="among 2 ranks"):
        RuntimeConfig(distributed_rank=2, distributed_world_size=2)
    assert not group.is_initialized()


def test_the_backend_nccl_needs_a_gpu_and_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessera.runtime.cuda import driver

    monkeypatch.setattr(driver, "device_count", lambda: 1)
    monkeypatch.setattr(nccl, "library", lambda: None)
    with pytest.raises(TesseraError, match=r"needs libnccl\.so\.2, which was not found") as caught:
        nccl.Nccl.found(required=True)
    assert "pip install" in (caught.value.hint or "")
    assert nccl.Nccl.found(required=False) is None


def test_a_tracer_listens_until_it_is_stopped() -> None:
    tracer = enable_distributed_tracing(threshold=0.5)
    event = CollectiveEvent("all_reduce", "f32", (2,), 8, 8, 5, 1, 3, 0, 3, (3_000_000, 3_000_000, 6_000_000))
    try:
        for listener in LISTENERS:
            listener(event)
    finally:
        tracer.stop()
    assert not LISTENERS
    assert imbalance_of(event).imbalance == pytest.approx(0.5)
    trace = tracer.trace()
    assert isinstance(trace, DistributedTrace)
    (uneven,), (pattern,), (network,) = trace.load_imbalance, trace.all_reduce_patterns, trace.network_stats
    assert isinstance(uneven, LoadImbalanceEvent)
    assert pattern == CollectivePattern("all_reduce", "f32", (2,), 1, 8, 3e-6, 1e-6)
    assert network == NetworkUtilization("all_reduce", 8, 4.0)
    assert (uneven.slowest_rank, uneven.work_ms) == (2, (3.0, 3.0, 6.0))


@pytest.mark.gpu
def test_nccl_with_one_rank() -> None:
    """The only world size that one GPU allows: that calls, types and streams are right, and nothing about links."""
    ran = subprocess.run([sys.executable, "-c", ON_ONE_GPU], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("nccl 2")


ON_ONE_GPU = """
import numpy as np
import tessera as ts
from tessera import distributed

group = distributed.initialize_process_group("nccl")
assert group.backend == "nccl" and group.nccl is not None
for dtype in (ts.f32, ts.f16, ts.bf16, ts.f64, ts.i32, ts.i64, ts.u8, ts.f8e4m3):
    values = ts.asarray(np.arange(12).reshape(4, 3)).to(dtype)
    for op in ("sum", "max", "min", "prod") + (("mean",) if dtype.is_float else ()):
        x = values.cuda()
        assert distributed.all_reduce(x, op) is x
        assert x.cpu().numpy().tobytes() == values.numpy().tobytes(), (dtype, op)
    x = values.cuda()
    for function in (distributed.all_gather, distributed.all_to_all, distributed.reduce_scatter, distributed.broadcast):
        assert function(x).cpu().numpy().tobytes() == values.numpy().tobytes(), (dtype, function)
strided = ts.ones((4, 6), device="cuda:0")[:, ::2]
assert distributed.all_gather(strided).cpu().tolist() == [[1.0] * 3] * 4
try:
    distributed.all_reduce(strided)
except ts.EffectError as error:
    assert "a view with gaps" in error.message
else:
    raise AssertionError("a view with gaps was not refused")
on_host = distributed.all_reduce(ts.ones((3,)))
assert on_host.tolist() == [1.0] * 3
distributed.barrier()
print("nccl", group.nccl.version)
distributed.destroy_process_group()
"""
