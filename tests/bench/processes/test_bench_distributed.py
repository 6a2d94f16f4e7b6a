"""Benchmarks on several devices: meshes, the arithmetic, processes here, MPI ranks, and what happens when one fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rank_programs

from tessera.bench import registry
from tessera.bench.processes import device_process, distributed, mpi
from tessera.bench.processes.device_process import Outcome, Task, Worker, shares
from tessera.bench.processes.distributed import DistributedCoordinator, aggregate, mpi_rank, run_spread
from tessera.bench.processes.mpi import Link, Member, processors_of
from tessera.bench.processes.teams import Team
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, Row

needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="tells devices apart by their processors")


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in ("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


# Meshes.


@pytest.mark.parametrize(
    ("devices", "config", "says"),
    [
        ([], {}, "whole numbers from 0"),
        ([-1], {}, "whole numbers from 0"),
        ([True], {}, "whole numbers from 0"),
        ([0, 0], {}, "stands twice"),
        ([0, 1], {"axes": ["dp", "dp"]}, "names that differ"),
        ([0, 1], {"axes": []}, "names that differ"),
        ([0, 1], {"axes": ["dp"], "shape": [1, 2]}, "1 axes, but a shape of 2"),
        ([0, 1], {"axes": ["dp"], "shape": [0]}, "whole numbers from 1"),
        ([0, 1, 2], {"shape": [2, 2]}, "2 × 2 has 4 positions; got 3"),
    ],
)
def test_meshes_that_make_no_sense(devices: list[int], config: dict[str, Any], says: str) -> None:
    with pytest.raises(BenchError, match=says):
        DistributedCoordinator().setup_benchmark_mesh(devices, config)


def test_a_mesh_has_a_name_that_tells_what_it_is() -> None:
    coordinator = DistributedCoordinator()
    mesh = coordinator.setup_benchmark_mesh([3, 1, 0, 2], {"axes": ["dp", "tp"], "shape": [2, 2]})
    assert mesh == "mesh_dp2_tp2_on_3_1_0_2"
    assert coordinator.mesh_configs[mesh]["coordinates"][1] == {"dp": 0, "tp": 1}
    assert coordinator.mesh_configs[mesh]["coordinates"][0] == {"dp": 1, "tp": 0}
    assert coordinator.setup_benchmark_mesh([0, 1, 2], {}) == "mesh_dp3_tp1_on_0_1_2"


def test_engines_and_meshes_that_are_not_there() -> None:
    with pytest.raises(BenchError, match="unknown engine"):
        DistributedCoordinator("nccl")
    with pytest.raises(BenchError, match="no MPI launcher"):
        DistributedCoordinator("mpi")
    with pytest.raises(BenchError, match="unknown mesh"):
        DistributedCoordinator().run_distributed_benchmark("mesh_0", rank_programs.steady)


# Arithmetic.


def test_aggregate_by_hand() -> None:
    devices = {
        "device_0": {"latency_ms": 1.0, "throughput_ops_per_sec": 90.0},
        "device_1": {"latency_ms": 4.0, "throughput_ops_per_sec": 60.0},
    }
    found = aggregate(devices, {"latency_ms": 1.0, "throughput_ops_per_sec": 100.0}, {"axes": ["dp"]})
    assert found["successful_devices"] == 2
    assert found["failed_devices"] == 0
    assert found["aggregate_latency_ms"] == 4.0
    assert found["aggregate_throughput"] == 150.0
    assert found["average_device_latency_ms"] == 2.5
    assert found["latency_variance"] == 2.25
    assert found["scaling_efficiency"] == 75.0
    assert found["device_results"] == devices
    assert found["mesh_config"] == {"axes": ["dp"]}
    assert found["unavailable"] == {}


def test_figures_that_cannot_be_had_say_why() -> None:
    good, bad = {"latency_ms": 1.0, "throughput_ops_per_sec": 90.0}, {"error": "no luck"}
    one_failed = aggregate({"device_0": good, "device_1": bad}, good, {})
    assert one_failed["aggregate_throughput"] == 90.0
    assert one_failed["scaling_efficiency"] is None
    assert one_failed["unavailable"] == {"scaling_efficiency": "1 of 2 devices failed"}
    none = aggregate({"device_0": bad}, bad, {})
    assert none["error"] == "all devices failed"
    assert none["aggregate_latency_ms"] is None
    assert "aggregate_throughput" in none["unavailable"]
    untold = aggregate({"device_0": {"latency_ms": 1.0}}, {"latency_ms": 1.0}, {})
    assert untold["aggregate_throughput"] is None
    assert untold["unavailable"]["scaling_efficiency"] == "no throughput was measured"
    assert "alone failed: no luck" in aggregate({"device_0": good}, bad, {})["unavailable"]["scaling_efficiency"]


def test_shares_are_equal() -> None:
    assert shares([4, 5, 6, 7], 2) == [[4, 5], [6, 7]]
    assert shares([0, 1, 2], 2) == [[0], [1]]
    assert shares([0, 1], 3) == [[0], [1], [0]]


def test_ranks_share_their_host_unless_they_are_bound() -> None:
    free = {0: Member(0, "a", (0, 1)), 1: Member(1, "b", (0, 1)), 2: Member(2, "a", (0, 1))}
    assert [processors_of(free, rank) for rank in free] == [[0], [0, 1], [1]]
    bound = {0: Member(0, "a", (0, 1)), 1: Member(1, "a", (2, 3))}
    assert processors_of(bound, 1) == [2, 3]


# Processes on this machine.


def local(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    coordinator = DistributedCoordinator("local")
    mesh = coordinator.setup_benchmark_mesh([0, 1], {"axes": ["dp"], "shape": [2]})
    return coordinator.run_distributed_benchmark(mesh, function, arguments)


@needs_two
def test_devices_are_processes_on_shares_of_the_machine() -> None:
    found = local(rank_programs.steady)
    first, second = found["device_results"]["device_0"], found["device_results"]["device_1"]
    assert found["scaling_efficiency"] == 100.0
    assert found["aggregate_throughput"] == 1000.0
    assert len({first["process"], second["process"], os.getpid()}) == 3
    assert not set(first["affinity"]) & set(second["affinity"])
    assert (first["affinity"], second["affinity"]) == (first["processors"], second["processors"])
    assert first["threads"] == str(len(first["processors"]))


@pytest.mark.acceptance
def test_one_measures_alone_then_all_at_once() -> None:
    found = local(rank_programs.stamped, 0.4)
    alone, first, second = (
        entry["span"] for entry in (found["alone"], *(found["device_results"][f"device_{one}"] for one in (0, 1)))
    )
    assert alone[1] <= min(first[0], second[0])
    assert max(first[0], second[0]) < min(first[1], second[1])


@needs_two
@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        (rank_programs.raises_on_second, "exception", "ValueError: the second device is out of luck"),
        (rank_programs.killed_on_second, "out_of_memory", "killed by SIGKILL"),
    ],
)
def test_a_device_that_fails_leaves_the_others_alone(function: Callable[..., Any], kind: str, says: str) -> None:
    found = local(function)
    assert found["successful_devices"] == found["failed_devices"] == 1
    assert found["aggregate_latency_ms"] == 2.0
    assert found["device_results"]["device_1"]["error_type"] == kind
    assert says in found["device_results"]["device_1"]["error"]


def outcome(worker: Worker, function: Callable[..., Any], *arguments: Any, seconds: float = 60.0) -> Outcome:
    worker.give(Task.of(function, arguments, seconds))
    while (found := worker.poll()) is None:
        time.sleep(0.01)
    return found


@pytest.mark.acceptance
def test_a_worker_lives_again_after_every_end() -> None:
    worker = Worker(sorted(os.sched_getaffinity(0)), 1)
    try:
        assert outcome(worker, signal.raise_signal, signal.SIGSEGV).error == "the process was killed by SIGSEGV"
        ended = outcome(worker, os._exit, 7)
        assert (ended.kind, ended.error) == ("crash", "the process ended with status 7")
        hung = outcome(worker, rank_programs.hangs, seconds=1.0)
        assert hung.kind == "hung"
        assert hung.error is not None
        assert "no answer for 1 s" in hung.error
        assert "pickle" in (outcome(worker, rank_programs.returns_a_lock).error or "")
        assert (outcome(worker, sys.exit, 3).error or "").startswith("SystemExit")
        assert outcome(worker, max, 1, 2).value == 2
    finally:
        worker.close()


def test_functions_that_another_process_cannot_find() -> None:
    def closure() -> None: ...

    with pytest.raises(BenchError, match="processes of their own"):
        local(closure)
    with pytest.raises(BenchError, match="processes of their own"):
        local(lambda: None)
    with pytest.raises(BenchError, match="cannot be sent"):
        Task.of(max, (lambda: None,), 1.0)


def test_functions_that_return_no_figures() -> None:
    found = local(rank_programs.returns_nothing)
    assert found["error"] == "all devices failed"
    assert "must return a mapping with latency_ms; got None" in found["device_results"]["device_0"]["error"]


# Suites.


def spread(count: int, **settings: Any) -> BenchmarkConfig:
    return BenchmarkConfig(
        mode=BenchmarkMode.MULTI_GPU, data_parallel_size=count, precision_policies=("f32",), **settings
    )


@pytest.mark.acceptance
@needs_two
def test_a_suite_of_replicas() -> None:
    told: list[Row] = []
    suite = run_spread([rank_programs.ReplicaBenchmark()], spread(2), told.extend)
    assert list(suite.results.values()) == told
    whole, failed, last = told
    assert isinstance(whole, BenchmarkResult)
    assert isinstance(failed, BenchmarkResult)
    assert whole.latency_ms == 2.0
    assert whole.throughput_ops_per_sec == 150.0
    assert whole.memory_bandwidth_gbps == 6.0
    assert whole.numerical_accuracy == 1e-3
    assert whole.scaling_efficiency_percent == 75.0
    assert whole.conditions["alone"]["throughput_ops_per_sec"] == 100.0
    assert [entry["latency_ms"] for entry in whole.ranks] == [1.0, 2.0]
    assert [entry["rank"] for entry in suite.environment["ranks"]] == [0, 1]
    # The second one was killed: its row says so, keeps what the first one found, and the next case has both again.
    assert list(suite.get_failed_results()) == [failed.key]
    assert failed.latency_ms == 1.0
    assert failed.errors[0].startswith("rank 1: the process was killed by SIGKILL")
    assert failed.unavailable["scaling_efficiency_percent"] == "1 of 2 devices failed"
    assert last.key in suite.get_successful_results()


@pytest.mark.acceptance
def test_an_operator_on_two_devices() -> None:
    config = spread(2, sizes=({"rows": 32, "cols": 64},), timing_iterations=3, seconds_per_case=0.5)
    suite = run_spread([registry.get("softmax")], config)
    (row,) = suite.get_successful_results().values()
    assert row.implementation == "tessera"
    assert row.throughput_ops_per_sec is not None
    assert row.throughput_ops_per_sec == sum(entry["throughput_ops_per_sec"] for entry in row.ranks)
    assert row.latency_ms == max(entry["latency_ms"] for entry in row.ranks)
    assert [entry["measurements_count"] for entry in row.ranks] == [3, 3]
    alone = row.conditions["alone"]["throughput_ops_per_sec"]
    assert row.scaling_efficiency_percent == pytest.approx(100 * row.throughput_ops_per_sec / (2 * alone))


def test_benchmarks_of_a_users_file_and_one_process_without_mpi(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from rank_programs import ReplicaBenchmark\n"
        "from tessera.bench.registry import register\n"
        "@register\n"
        "class Mine(ReplicaBenchmark):\n"
        "    def get_name(self): return 'mine_of_a_file'\n"
    )
    registry.load(file)
    config = BenchmarkConfig(
        mode=BenchmarkMode.DISTRIBUTED, precision_policies=("f32",), sizes=({"width": 9, "fails": 0},)
    )
    suite = run_spread([registry.get("mine_of_a_file")], config)
    (row,) = suite.get_successful_results().values()
    assert row.problem_size["width"] == 9
    assert row.scaling_efficiency_percent == 100.0


def test_what_cannot_be_spread() -> None:
    with pytest.raises(BenchError, match="tensor_parallel_size=2"):
        run_spread([], BenchmarkConfig(mode=BenchmarkMode.MULTI_GPU, tensor_parallel_size=2))
    with pytest.raises(BenchError, match="pipeline_parallel_size=3"):
        run_spread([], BenchmarkConfig(mode=BenchmarkMode.DISTRIBUTED, pipeline_parallel_size=3))
    with pytest.raises(BenchError, match="data_parallel_size must be positive"):
        run_spread([], spread(0))


def test_more_replicas_than_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(BenchError, match="but 2 ranks were started"):
        run_spread([], BenchmarkConfig(mode=BenchmarkMode.DISTRIBUTED, data_parallel_size=3))


@pytest.mark.acceptance
def test_an_interrupt_keeps_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    measure, calls = Team.measure, list[int]()

    def interrupted(team: Team, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure(team, *arguments)

    monkeypatch.setattr(Team, "measure", interrupted)
    suite = run_spread([rank_programs.ReplicaBenchmark()], spread(1))
    assert suite.interrupted
    first, second = suite.results.values()
    assert isinstance(first, BenchmarkResult)
    assert isinstance(second, BenchmarkError)
    assert second.error_type == "interrupted"


# MPI.


def test_ranks_are_known_without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mpi_rank() is None
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert mpi_rank() == (3, 4)
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    assert mpi_rank() == (1, 2)


class Silent:
    """A communicator over which nothing ever comes."""

    def improbe(self, *_: int) -> None:
        return None


def test_silence_is_counted_by_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(mpi.time, "monotonic", lambda: now[0])
    link = Link(Silent(), 1, 1)
    now[0] = 1000.0  # this process was stopped, not the other one
    assert link.received() == []
    assert link.silence < 1
    link.heard = True
    for _ in range(20):
        now[0] += 0.4
        link.received()
    assert link.gone(8.0)
    assert not link.gone(9.0)


def mpirun(program: str, output: Path, *options: str, guarded: bool = False) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mpi4py")
    command = [sys.executable, str(Path(rank_programs.__file__)), program, str(output)]
    if guarded:
        command = ["sh", "-c", "trap '' USR1; \"$@\"; exit $?", "sh", *command]
    return subprocess.run(
        [str(Path(sys.executable).with_name("mpirun")), *options, "-n", "2", *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def written(output: Path, rank: int = 0) -> dict[str, Any]:
    return json.loads(Path(f"{output}.{rank}").read_text())


@pytest.mark.acceptance
@needs_two
def test_ranks_in_step(tmp_path: Path) -> None:
    ran = mpirun("steady", tmp_path / "found")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    found = written(tmp_path / "found")
    assert found == written(tmp_path / "found", 1)
    assert found["scaling_efficiency"] == 100.0
    first, second = found["device_results"].values()
    assert not set(first["affinity"]) & set(second["affinity"])
    assert first["launcher"] == []


@needs_two
def test_a_suite_over_ranks(tmp_path: Path) -> None:
    """The worker of rank 1 is killed in the second case: no option is needed for the others to go on."""
    ran = mpirun("suite", tmp_path / "found")
    assert ran.returncode == 1, ran.stderr
    first, second = written(tmp_path / "found"), written(tmp_path / "found", 1)
    assert len(first["cases"]) == 3
    assert first["seen"] == first["cases"] == second["cases"]
    assert second["seen"] == []
    (failed,) = first["failed"]
    assert "rank 1: the process was killed by SIGKILL" in failed


@pytest.mark.acceptance
@needs_two
def test_a_rank_that_raises(tmp_path: Path) -> None:
    ran = mpirun("raises_on_second", tmp_path / "found")
    assert ran.returncode == 1, ran.stderr
    found = written(tmp_path / "found")
    assert found["successful_devices"] == 1
    assert found["device_results"]["device_1"]["error"] == "ValueError: the second device is out of luck"


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("program", "guarded"), [pytest.param("rank_leaves", False, marks=pytest.mark.acceptance), ("rank_killed", True)]
)
def test_a_ranks_own_process_dies(tmp_path: Path, program: str, guarded: bool) -> None:
    """What the launcher needs to be told so that rank 0 may live on."""
    ran = mpirun(program, tmp_path / "found", "-disable-auto-cleanup", guarded=guarded)
    assert ran.returncode != 0
    found = written(tmp_path / "found")
    assert found["successful_devices"] == found["failed_devices"] == 1
    assert found["device_results"]["device_1"]["error_type"] == device_process.LOST
    assert "no sign of life" in found["device_results"]["device_1"]["error"]


def test_importing_loads_no_mpi() -> None:
    code = "import sys, tessera.bench.processes.distributed; sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert distributed.mpi_rank is mpi.mpi_rank
