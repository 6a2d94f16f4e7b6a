"""What the tests of distributed benchmarks run: functions for devices, and the program that `mpirun` starts.

`mpirun -n 2 python rank_programs.py FUNCTION OUTPUT`: rank 0 writes what it found; `suite` runs a whole suite.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tessera.bench.processes.device_process import Worker
from tessera.bench.results.definitions import BenchmarkConfig, BenchmarkMode
from tessera.bench.results.results import BenchmarkResult


class ReplicaBenchmark:
    """A benchmark whose figures are known beforehand: the second device is half as fast, or fails."""

    def get_name(self) -> str:
        return "replica"

    def get_description(self) -> str:
        return "figures made up"

    def get_supported_precisions(self) -> list[str]:
        return ["f32"]

    def get_problem_sizes(self) -> list[dict[str, Any]]:
        return [{"width": 1, "fails": 0}, {"width": 1, "fails": 1}, {"width": 2, "fails": 0}]

    def setup(self, config: BenchmarkConfig) -> None:
        pass

    def run_single(self, problem_size: Mapping[str, Any]) -> BenchmarkResult:
        if problem_size["fails"] and not is_first():
            os.kill(os.getpid(), signal.SIGKILL)
        slower = 1 if is_first() else 2
        return BenchmarkResult(
            "replica",
            dict(problem_size),
            implementation="made_up",
            latency_ms=1.0 * slower,
            throughput_ops_per_sec=100.0 / slower,
            memory_bandwidth_gbps=4.0 / slower,
            numerical_accuracy=1e-3 / slower,
        )

    def cleanup(self) -> None:
        pass

    def validate_result(self, result: BenchmarkResult) -> bool:
        return True


def steady() -> dict[str, Any]:
    """Figures that do not depend on the machine, and where they were made."""
    return {
        "latency_ms": 2.0,
        "throughput_ops_per_sec": 500.0,
        "process": os.getpid(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "threads": os.environ["OPENBLAS_NUM_THREADS"],
        "launcher": [name for name in os.environ if name.startswith("PMI_")],
    }


def stamped(seconds: float) -> dict[str, Any]:
    """When it began and ended, by the clock that all processes of a machine share."""
    began = time.monotonic()
    time.sleep(seconds)
    return {"latency_ms": 1e3 * seconds, "throughput_ops_per_sec": 1 / seconds, "span": [began, time.monotonic()]}


def is_first() -> bool:
    """Whether this device has the first processors."""
    return min(os.sched_getaffinity(0)) == 0


def raises_on_second() -> dict[str, Any]:
    if not is_first():
        raise ValueError("the second device is out of luck")
    return steady()


def killed_on_second() -> dict[str, Any]:
    if not is_first():
        os.kill(os.getpid(), signal.SIGKILL)
    return steady()


def hangs() -> None:
    time.sleep(3600)


def returns_a_lock() -> Any:
    return threading.Lock()


def returns_nothing() -> None:
    pass


def _dies_at_its_first_task(how: str) -> None:
    """Not the worker but the rank's own process."""

    def give(self: Worker, task: object) -> None:
        if how == "rank_leaves":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)

    Worker.give = give


def main(name: str, output: str) -> int:
    import rank_programs  # devices cannot find what is in __main__

    from tessera.bench.processes.distributed import DistributedCoordinator, mpi_rank

    started = mpi_rank()
    assert started is not None
    rank, size = started
    if name == "suite":
        return _suite(rank, output)
    coordinator = DistributedCoordinator(patience_seconds=3.0)
    mesh = coordinator.setup_benchmark_mesh(list(range(size)), {"axes": ["dp"], "shape": [size]})
    if name.startswith("rank_") and rank == 1:
        _dies_at_its_first_task(name)
    function = rank_programs.steady if name.startswith("rank_") else getattr(rank_programs, name)
    found = coordinator.run_distributed_benchmark(mesh, function)
    if name == "steady":  # as often as one likes
        found = coordinator.run_distributed_benchmark(mesh, function)
    Path(f"{output}.{rank}").write_text(json.dumps(found))
    return 1 if found["failed_devices"] else 0


def _suite(rank: int, output: str) -> int:
    from rank_programs import ReplicaBenchmark

    from tessera.bench.processes.distributed import run_spread

    seen: list[str] = []
    config = BenchmarkConfig(mode=BenchmarkMode.DISTRIBUTED, precision_policies=("f32",))
    suite = run_spread([ReplicaBenchmark()], config, lambda rows: seen.extend(row.case for row in rows))
    failed = [str(getattr(row, "errors", row)) for row in suite.get_failed_results().values()]
    Path(f"{output}.{rank}").write_text(
        json.dumps({"seen": seen, "cases": [row.case for row in suite.results.values()], "failed": failed})
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
