"""TesseraBench on a GPU: clocks, caches, graphs, energy, profiles, and whole rows. A few seconds, with torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera
from tessera.bench.core import TesseraBench
from tessera.bench.cuda.contest import Race
from tessera.bench.cuda.declarations import Contest, Inputs, Row
from tessera.bench.cuda.device import TorchGpu, TorchInputs
from tessera.bench.engine import MeasurementEngine
from tessera.bench.instruments import clock, ncu
from tessera.bench.instruments import gpu_timing as timing
from tessera.bench.instruments.gpu_conditions import GpuEnergyMeter, gpu_conditions, gpu_environment, millijoules
from tessera.bench.instruments.libraries import library
from tessera.bench.measuring.frameworks import FRAMEWORKS
from tessera.bench.results.definitions import BenchmarkConfig, MeasurementType
from tessera.bench.results.results import BenchmarkResult

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def torch() -> Any:
    return library("torch")


@pytest.fixture(scope="module")
def gpu(torch: Any) -> TorchGpu:
    return TorchGpu()


def spin(torch: Any, milliseconds: float) -> None:
    """Keeps the GPU busy for about so long, at 1 to 2 GHz."""
    torch.cuda._sleep(int(milliseconds * 1.5e6))


@pytest.mark.alone
def test_events_tell_the_time_on_the_gpu(torch: Any) -> None:
    spin(torch, 1.0)
    timer = timing.event_timer()
    timer.start()
    spin(torch, 4.0)
    took = timer.stop()
    assert 2.0 < took < 8.0
    with MeasurementEngine().measure_execution([MeasurementType.LATENCY], {"device": "cuda:0"}) as found:
        spin(torch, 4.0)
    assert found[MeasurementType.LATENCY]["method"] == "device_events"
    assert found[MeasurementType.LATENCY]["latency_ms"] == pytest.approx(took, rel=0.3)


def test_work_on_another_stream_is_counted(torch: Any) -> None:
    beside = torch.cuda.Stream()

    def hidden() -> None:
        with torch.cuda.stream(beside):
            spin(torch, 4.0)

    # With the first launch on a stream, torch and the driver do what they do once.
    hidden()
    torch.cuda.synchronize()
    found = [timing.timed(hidden, [()]) for _ in range(5)]
    assert all(milliseconds > 2.0 for milliseconds, _, _ in found)
    assert np.median([starting for _, starting, _ in found]) < 2e6
    assert all(results == [None] for _, _, results in found)


def test_the_cache_is_written_over_without_waiting(torch: Any, gpu: TorchGpu) -> None:
    x = torch.ones(gpu.properties.l2_cache // 16, dtype=torch.float32, device="cuda")
    flush = timing.Flush()

    def read() -> None:
        x.sum()

    def behind(work: Callable[[], None], *others: Callable[[], None]) -> tuple[float, float]:
        """Milliseconds of work behind others on the GPU, and how long the host took to ask for all of it.

        The GPU is kept busy until everything is asked for. Otherwise the host would be measured.
        """
        first, last = timing.make_event(), timing.make_event()
        spin(torch, 3.0)
        began = clock.now()
        for other in others:
            other()
        first.record()
        work()
        last.record()
        asked = clock.now() - began
        last.synchronize()
        return first.milliseconds_until(last), asked / 1e6

    # In rounds, so that the GPU's clocks are the same; the first rounds load kernels.
    rounds = [(behind(read, flush, read), behind(read, read, flush), behind(flush, read)) for _ in range(50)][10:]
    warm, cold, flushing = (np.array([one[index] for one in rounds]) for index in range(3))
    assert all(np.median(each[:, 1]) < 1.0 for each in (warm, cold, flushing))
    # The flush itself is not in the figures; what it does to the cache is.
    assert np.median(cold[:, 0]) < np.median(warm[:, 0]) + np.median(flushing[:, 0])
    assert np.mean(cold[:, 0] > warm[:, 0]) > 0.75


def test_copies_reach_a_bandwidth_that_can_be(gpu: TorchGpu) -> None:
    found = timing.copy_bandwidth() / 1e9
    assert 100 < found < 20_000


def test_graphs_of_torch_write_their_results_again(torch: Any) -> None:
    x = torch.ones(1024, device="cuda")
    graph = timing.TorchGraph([lambda: x * 2] * 3)
    assert len({result.data_ptr() for result in graph.results}) == 3
    x.fill_(5.0)
    graph.replay()
    torch.cuda.synchronize()
    assert all(bool((result == 10).all()) for result in graph.results)
    times = timing.graph_milliseconds(graph.replay, 3, 5, timing.Flush())
    assert len(times) == 5
    assert all(0 < each < 5 for each in times)


def test_the_gpu_tells_about_itself() -> None:
    assert gpu_environment()["gpu"]
    assert gpu_environment()["multiprocessors"] > 10
    found = gpu_conditions()
    assert found["sm_mhz"] > 100
    assert found["celsius"] > 0


def test_energy_of_work_is_that_of_a_gpu(torch: Any) -> None:
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def work() -> int:
        for _ in range(100):
            torch.matmul(a, a)
        torch.cuda.synchronize()
        return 100

    work()
    joules = timing.joules_per_call(work, millijoules, 0.4)
    # 4096³ products take 0.15 to 2 ms, at 100 to 1200 W.
    assert 0.01 < joules < 2.5
    meter = GpuEnergyMeter()
    meter.start()
    for _ in range(20):
        work()
    assert (meter.stop() or 0.0) > 0.0


def squares(make: Inputs) -> Contest:
    x = make.normal(512, 1024)
    return Contest(
        truth=lambda: x.double() ** 2,
        peers={"torch": lambda: x * x, "wrong": lambda: x + x, "raises": partial(getattr, x, "no_such_thing")},
    )


def test_a_row_of_peers_is_measured(gpu: TorchGpu) -> None:
    inputs = TorchInputs("bf16", 3)
    made = Row("squares", "bf16", squares, moves=2 * 512 * 1024 * 2, bound=4e-3)
    found = Race(made, squares(inputs), gpu, inputs, np.random.default_rng(0)).measure(8)
    entrants = found["entrants"]
    assert 0 < entrants["torch"]["us"] < 1000
    assert entrants["torch"]["error"] < 4e-3
    assert "the result is wrong" in entrants["wrong"]["failure"]
    assert "no_such_thing" in entrants["raises"]["failure"]
    assert entrants["copy"]["gbps"] > 10
    assert found["conditions"]["before"]["sm_mhz"] > 100
    json.dumps(found, allow_nan=False)


def test_the_frameworks_bring_arrays_over_and_back() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for name in ("tessera_cuda", "torch_cuda"):
        framework = FRAMEWORKS[name]
        assert framework.missing() is None
        there = framework.adapt(array)
        framework.finish(there)
        assert type(there) in framework.finished()
        assert np.array_equal(framework.to_numpy(there), array)


def test_memory_of_a_call_is_the_gpus() -> None:
    for name, make in (
        ("tessera_cuda", lambda: tessera.empty((1 << 20,), tessera.f32, device="cuda:0")),
        ("torch_cuda", lambda: library("torch").empty(1 << 20, device="cuda")),
    ):
        measure = FRAMEWORKS[name].peak_memory
        assert measure is not None
        kept: list[Any] = []
        assert measure(lambda make=make, kept=kept: kept.append(make())) == pytest.approx(4 << 20, rel=0.01)


@pytest.mark.parametrize("names", [["torch_cuda"], ["tessera_cuda", "torch_cuda"]], ids=["peer", "ours and peer"])
def test_a_benchmark_runs_on_the_gpu(names: list[str]) -> None:
    config = BenchmarkConfig(
        measurements=[*BenchmarkConfig().measurements, MeasurementType.ENERGY],
        implementations=names,
        sizes=[{"rows": 256, "cols": 1024}],
        precision_policies=["bf16"],
        seconds_per_case=1.0,
        timing_iterations=20,
        cold=True,
        threads=1,
    )
    suite = TesseraBench().run_benchmark("softmax", config)
    assert suite.get_failed_results() == {}, suite.get_failed_results()
    assert suite.ceilings["gpu_copy_gbps"] > 100
    for row in suite.results.values():
        assert isinstance(row, BenchmarkResult)
        assert row.latency_ms is not None
        assert row.kernel_ms is not None, row.unavailable
        assert row.launch_us is not None
        assert 0 < row.kernel_ms <= 1.5 * row.latency_ms
        assert row.numerical_accuracy is not None
        assert row.numerical_accuracy < 4e-3
        assert row.energy_joules is not None, row.unavailable
        assert row.peak_memory_mb is not None, row.unavailable
        assert row.peak_memory_mb >= 0.5


PROGRAM = """
import torch
from tessera.bench.instruments import ncu
x = torch.ones(1 << 22, device="cuda")
a = torch.ones(2048, 2048, device="cuda", dtype=torch.bfloat16)
x * 2, a @ a
with ncu.region("0.0"):
    x * 2
x * 3
with ncu.region("0.1"):
    a @ a
"""


def test_ncu_profiles_regions_where_it_is_installed(tmp_path: Path) -> None:
    if (why := ncu.missing()) is not None:
        pytest.skip(why)
    program, kept = tmp_path / "program.py", tmp_path / "said"
    program.write_text(PROGRAM)
    found = ncu.profile([sys.executable, str(program)], ["0.0", "0.1"], keep=kept)
    said = kept.read_text()
    for label in ("0.0", "0.1"):
        assert found[label].kernels, said
        assert found[label].unavailable == {}, said
    plain, product = found["0.0"].figures, found["0.1"].figures
    assert plain["tensor_active"] < 1 < product["tensor_active"]
    assert plain["warp_execution_efficiency"] > 90
    assert 10 < plain["sm_efficiency"] <= 101
    assert 10 < plain["achieved_occupancy"] <= 101
    assert product["registers_per_thread"] >= 16


def test_the_script_measures_rows_and_writes_them(tmp_path: Path) -> None:
    words = ["--only", "copy", "--rounds", "5", "--name", "trial", "--folder", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/gpu.py"), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*-trial.json")
    record = json.loads(path.read_text())
    assert record["ceilings"]["copy_gbps"] > 100
    assert record["rows"][0]["entrants"]["copy"]["us"] > 0
    assert record["environment"]["gpu"] in path.with_suffix(".md").read_text()
