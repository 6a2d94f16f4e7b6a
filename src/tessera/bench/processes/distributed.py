"""The same benchmark on several devices in step: processes on shares of this machine, or the ranks of an MPI job.

Every measurement has three steps, each begun by all at once and over when the last one is done: all devices prepare,
the first one measures alone while the others wait, then all measure together. Scaling efficiency is the throughput of
all together, in percent of the number of devices times the throughput of the one alone.

A device is a process that no other depends on: one that raises, crashes, is killed or hangs is a failure of that
device, and the others go on. Under MPI this holds without any option of `mpirun`, since the work is done by a worker
beside the rank's own process. That a rank's own process may die too, its launcher must allow: MPICH's by
`mpirun -disable-auto-cleanup`, and a death by a signal only if a shell stands in between:
`mpirun -disable-auto-cleanup -n 2 sh -c 'trap "" USR1; tessera bench run …; exit $?'`. Rank 0 collects: it must live.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from tessera.bench import registry
from tessera.bench.instruments import hardware
from tessera.bench.measuring.cases import Interrupted, run_case
from tessera.bench.measuring.precision import precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.processes.device_process import Outcome, Task, figures_of, reference
from tessera.bench.processes.mpi import mpi_rank
from tessera.bench.processes.teams import Team, TeamRun, Together
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode, MeasurementType, ProblemSize
from tessera.bench.results.results import BenchmarkError, BenchmarkProtocol, BenchmarkResult, BenchmarkSuiteResult, Row
from tessera.errors import TesseraError

__all__ = ["DistributedCoordinator", "aggregate", "mpi_rank", "run_spread"]

_CASE_SECONDS = 300.0
"""Seconds that a case may take beyond its samples: building, checking, the figures besides."""
_METER = "the meter counts all devices of a host together"


class DistributedCoordinator:
    """Runs a function on the devices of a mesh in step, and puts together what they return.

    A device is, with the engine `local`, a process on an equal share of this machine's processors; with `mpi`, the rank
    of that number, and every rank makes the same calls and gets the same results. None: as the process was started.

    A call that takes longer than `limit_seconds` is ended. A rank that gives no sign of life for `patience_seconds` is
    lost, and stays so.
    """

    def __init__(
        self, engine: str | None = None, *, patience_seconds: float = 30.0, limit_seconds: float = 600.0
    ) -> None:
        if engine not in (None, "local", "mpi"):
            raise BenchError(f"unknown engine {engine!r}", hint="one of local, mpi")
        started = mpi_rank()
        if engine == "mpi" and started is None:
            raise BenchError("no MPI launcher started this process", hint="start it by mpirun -n 2 …")
        self.engine = engine or ("local" if started is None else "mpi")
        self.patience_seconds, self.limit_seconds = patience_seconds, limit_seconds
        self.mesh_configs: dict[str, dict[str, Any]] = {}

    def setup_benchmark_mesh(self, device_ids: Sequence[int], mesh_config: Mapping[str, Any]) -> str:
        """A mesh of devices, with names for its axes and a shape; by default all devices on one axis `dp` of two."""
        devices = list(device_ids)
        axes = list(mesh_config.get("axes", ("dp", "tp")))
        shape = list(mesh_config.get("shape", (len(devices), *[1] * (len(axes) - 1))))
        _check_mesh(devices, axes, shape)
        started = mpi_rank()
        if self.engine == "mpi" and started is not None and max(devices) >= started[1]:
            raise BenchError(
                f"device {max(devices)} is no rank: there are {started[1]}", hint="devices are ranks from 0 on"
            )
        text = "_".join(f"{axis}{extent}" for axis, extent in zip(axes, shape, strict=True))
        mesh_id = f"mesh_{text}_on_{'_'.join(map(str, devices))}"
        self.mesh_configs[mesh_id] = {
            "device_ids": devices,
            "config": {**mesh_config, "axes": axes, "shape": shape},
            "coordinates": {device: _coordinates(rank, axes, shape) for rank, device in enumerate(devices)},
        }
        return mesh_id

    def run_distributed_benchmark(
        self, mesh_id: str, benchmark_func: Callable[..., Any], args: Sequence[Any] = ()
    ) -> dict[str, Any]:
        """Calls the function on all devices to prepare, on the first one alone, then on all together.

        It must be importable, since devices are processes of their own, and returns `latency_ms` and, for the scaling
        efficiency, `throughput_ops_per_sec`: in a mapping, or as a `BenchmarkResult`.
        """
        if mesh_id not in self.mesh_configs:
            raise BenchError(
                f"unknown mesh {mesh_id!r}", hint=f"one of {', '.join(self.mesh_configs) or 'none: set one up first'}"
            )
        mesh = self.mesh_configs[mesh_id]
        ids: list[int] = mesh["device_ids"]
        task = Task.of(figures_of, (reference(benchmark_func), tuple(args)), self.limit_seconds)
        with TeamRun(len(ids), self.engine, None, self.patience_seconds) as run:
            if not run.leads:
                return run.follow()
            # Shares of this machine are counted from 0; ranks have their own numbers.
            devices_by_rank = dict(enumerate(ids)) if self.engine == "local" else {device: device for device in ids}
            found = run.team(devices_by_rank).measure(task, task, lambda outcome: outcome.error is not None)
            results = {f"device_{device}": _entry(found.outcomes[rank]) for rank, device in devices_by_rank.items()}
            for rank, device in devices_by_rank.items():
                if rank in run.members:
                    member = run.members[rank]
                    results[f"device_{device}"].update(host=member.host, processors=list(member.processors))
            return run.end(aggregate(results, _entry(found.alone), mesh["config"]))


def _check_mesh(devices: list[int], axes: list[str], shape: list[int]) -> None:
    if not devices or any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in devices):
        raise BenchError(f"devices are whole numbers from 0 on; got {devices}", hint="for example [0, 1]")
    if len(set(devices)) != len(devices):
        raise BenchError(f"a device stands twice in {devices}", hint="name each device once")
    if not axes or any(not isinstance(axis, str) or not axis for axis in axes) or len(set(axes)) != len(axes):
        raise BenchError(f"axes need names that differ; got {axes}", hint="for example axes=['dp', 'tp']")
    if len(axes) != len(shape):
        raise BenchError(f"{len(axes)} axes, but a shape of {len(shape)}: {axes}, {shape}", hint="one extent per axis")
    product = 1
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
            raise BenchError(f"extents are whole numbers from 1 on; got {shape}", hint="one extent per axis")
        product *= extent
    if product != len(devices):
        raise BenchError(
            f"a mesh of {' × '.join(map(str, shape))} has {product} positions; got {len(devices)} devices",
            hint="the product of the shape must be the number of devices",
        )


def _coordinates(index: int, axes: Sequence[str], shape: Sequence[int]) -> dict[str, int]:
    """Coordinates in the mesh of the device at an index of the list; the last axis runs fastest."""
    found: dict[str, int] = {}
    for axis, extent in zip(reversed(axes), reversed(shape), strict=True):
        index, found[axis] = divmod(index, extent)
    return {axis: found[axis] for axis in axes}


def _entry(outcome: Outcome) -> dict[str, Any]:
    if outcome.error is None:
        return dict(outcome.value)
    return {"error": outcome.error, "error_type": outcome.kind, "stack_trace": outcome.trace}


def aggregate(
    device_results: Mapping[str, Mapping[str, Any]], alone: Mapping[str, Any], mesh_config: Mapping[str, Any]
) -> dict[str, Any]:
    """All devices as one: the slowest's latency, the sum of throughputs, and the scaling efficiency in percent.

    An entry with `error` failed. Figures that cannot be had are None; `unavailable` says why.
    """
    succeeded = {name: entry for name, entry in device_results.items() if "error" not in entry}
    latencies = [float(entry["latency_ms"]) for entry in succeeded.values()]
    throughputs = [entry.get("throughput_ops_per_sec") for entry in succeeded.values()]
    failed = len(device_results) - len(succeeded)
    mean = sum(latencies) / len(latencies) if latencies else None
    total = _sum(throughputs)
    efficiency, why = scaling_efficiency(total, len(device_results), failed, alone)
    unavailable = {} if efficiency is not None else {"scaling_efficiency": why}
    if total is None:
        unavailable["aggregate_throughput"] = "not every device gave throughput_ops_per_sec" if succeeded else why
    made: dict[str, Any] = {
        "successful_devices": len(succeeded),
        "failed_devices": failed,
        "aggregate_latency_ms": max(latencies, default=None),
        "aggregate_throughput": total,
        "average_device_latency_ms": mean,
        "latency_variance": None if mean is None else sum((one - mean) ** 2 for one in latencies) / len(latencies),
        "scaling_efficiency": efficiency,
        "alone": dict(alone),
        "device_results": {name: dict(entry) for name, entry in device_results.items()},
        "mesh_config": dict(mesh_config),
        "unavailable": unavailable,
    }
    if not succeeded:
        made["error"] = "all devices failed"
    return made


def scaling_efficiency(
    total: float | None, count: int, failed: int, alone: Mapping[str, Any]
) -> tuple[float | None, str]:
    """In percent of `count` devices that each do what one does alone; or None, and why."""
    if failed:
        return None, f"{failed} of {count} devices failed"
    if "error" in alone:
        return None, f"the one device alone failed: {alone['error']}"
    if total is None or not alone.get("throughput_ops_per_sec"):
        return None, "no throughput was measured"
    return 100.0 * total / (count * alone["throughput_ops_per_sec"]), ""


def run_spread(
    benchmarks: Sequence[BenchmarkProtocol],
    config: BenchmarkConfig,
    on_rows: Callable[[Sequence[Row]], None] | None = None,
    *,
    patience_seconds: float = 30.0,
) -> BenchmarkSuiteResult:
    """Benchmarks as replicas on several devices: one row per case, whose `ranks` are each device's own figures.

    MULTI_GPU runs `data_parallel_size` processes here, DISTRIBUTED the ranks of the MPI job. Every rank calls this and
    returns the same suite; only rank 0 calls `on_rows`. Of each benchmark the first implementation runs, with
    `config.threads` per rank or as many as its share of processors. The time of a case is for both measurements.
    """
    engine, count = _engine(config)
    if config.seed is None:
        config = dataclasses.replace(config, seed=secrets.randbits(63))
    with TeamRun(count, engine, config.threads, patience_seconds) as run:
        if not run.leads:
            return run.follow()
        return run.end(_Spread(run, config).suite(benchmarks, on_rows or (lambda _: None)))


def _engine(config: BenchmarkConfig) -> tuple[str, int | None]:
    for name in ("tensor_parallel_size", "pipeline_parallel_size"):
        if getattr(config, name) != 1:
            raise BenchError(
                f"{name}={getattr(config, name)}: parts of a model on several devices arrive with distribution",
                hint="data_parallel_size, replicas of the whole, can be run today",
            )
    asked, started = config.data_parallel_size, mpi_rank()
    if asked < 1:
        raise BenchError(f"data_parallel_size must be at least 1, got {asked}", hint="it is the number of devices")
    if config.mode is BenchmarkMode.MULTI_GPU or started is None:
        return "local", asked
    if asked not in (1, started[1]):
        raise BenchError(
            f"data_parallel_size={asked}, but {started[1]} ranks were started", hint=f"start mpirun -n {asked} …"
        )
    return "mpi", None


class _Spread:
    """A suite over the devices of a run, in the process that leads it."""

    def __init__(self, run: TeamRun, config: BenchmarkConfig) -> None:
        self.run, self.config = run, config
        self.team: Team = run.team(range(run.size))

    def suite(
        self, benchmarks: Sequence[BenchmarkProtocol], on_rows: Callable[[Sequence[Row]], None]
    ) -> BenchmarkSuiteResult:
        environment = {
            **hardware.environment(),
            "seed": self.config.seed,
            "engine": self.run.engine,
            "mpi": self.run.mpi_version,
            "ranks": [self._rank_row(rank) for rank in range(self.run.size)],
        }
        suite = BenchmarkSuiteResult(environment=environment)
        try:
            for benchmark in benchmarks:
                for row in self._rows_of(benchmark):
                    suite.add(row)
                    on_rows([row])
        except KeyboardInterrupt as interrupt:
            suite.interrupted = True
            rows = interrupt.rows if isinstance(interrupt, Interrupted) else []
            suite.extend(rows)
            on_rows(rows)
        suite.suite_end_time = time.time()
        return suite

    def _rows_of(self, benchmark: BenchmarkProtocol) -> Iterator[Row]:
        try:
            where = _found_by(benchmark)
            benchmark.setup(self.config)
            sizes = benchmark.get_problem_sizes() if self.config.sizes is None else self.config.sizes
            for policy in self.config.precision_policies:
                for size in sizes:
                    yield self._case(benchmark, where, size, policy)
        except TesseraError as error:
            yield BenchmarkError(
                error.message, "exception", traceback.format_exc(), benchmark_name=benchmark.get_name()
            )
        finally:
            benchmark.cleanup()

    def _case(
        self, benchmark: BenchmarkProtocol, where: BenchmarkProtocol | tuple[str, str], size: ProblemSize, policy: str
    ) -> Row:
        config = self.config
        measured = dataclasses.replace(
            config,
            seconds_per_case=config.seconds_per_case / 2,
            max_variance_percent=0.0,  # who is precise enough first would leave the others to measure alone
            measurements=[one for one in config.measurements if one is not MeasurementType.ENERGY],
        )
        limit = _CASE_SECONDS + 4 * config.seconds_per_case
        prepare, measure = (
            Task.of(case_row, (where, dict(size), policy, one), limit)
            for one in (dataclasses.replace(config, measurements=()), measured)
        )
        try:
            found = self.team.measure(prepare, measure, lambda outcome: "error" in _figures(outcome))
        except KeyboardInterrupt:
            why = {"error": "interrupted", "error_type": "interrupted"}
            raise Interrupted([self._all_failed(benchmark, size, policy, {0: why})]) from None
        return self._merged(benchmark, size, policy, found)

    def _rank_row(self, rank: int) -> dict[str, Any]:
        if rank not in self.run.members:
            return {"rank": rank}
        member = self.run.members[rank]
        return {
            "rank": rank,
            "host": member.host,
            "processors": list(member.processors),
            "threads": self.run.threads_of(rank),
        }

    def _merged(self, benchmark: BenchmarkProtocol, size: ProblemSize, policy: str, found: Together) -> Row:
        """The ranks' rows as one: the slowest's, with the sum of the rates, the worst error and everyone's figures."""
        figures = {rank: _figures(outcome) for rank, outcome in found.outcomes.items()}
        failures = {rank: entry for rank, entry in figures.items() if "error" in entry}
        rows: dict[int, BenchmarkResult] = {
            rank: outcome.value for rank, outcome in found.outcomes.items() if rank not in failures
        }
        if not rows:
            return self._all_failed(benchmark, size, policy, failures)
        slowest = max(rows.values(), key=lambda row: row.latency_ms or 0.0)
        total = _sum([row.throughput_ops_per_sec for row in rows.values()])
        efficiency, why = scaling_efficiency(total, len(figures), len(failures), _figures(found.alone))
        row = dataclasses.replace(
            slowest,
            config=self.config,
            throughput_ops_per_sec=total,
            memory_bandwidth_gbps=_sum([one.memory_bandwidth_gbps for one in rows.values()]),
            numerical_accuracy=max(
                (one.numerical_accuracy for one in rows.values() if one.numerical_accuracy is not None), default=None
            ),
            ranks=[{**self._rank_row(rank), **entry} for rank, entry in figures.items()],
            scaling_efficiency_percent=efficiency,
            conditions={**slowest.conditions, "alone": _figures(found.alone)},
            unavailable=dict(slowest.unavailable),
            warnings=_warnings(rows, slowest, self.config),
            errors=[f"rank {rank}: {entry['error']}" for rank, entry in failures.items()],
        )
        if efficiency is None:
            row.unavailable["scaling_efficiency_percent"] = why
        if MeasurementType.ENERGY in self.config.measurements:
            row.unavailable["energy_joules"] = _METER
        return row

    def _all_failed(
        self, benchmark: BenchmarkProtocol, size: ProblemSize, policy: str, failures: Mapping[int, Mapping[str, Any]]
    ) -> BenchmarkError:
        messages = {entry["error"] for entry in failures.values()}
        kinds = {entry["error_type"] for entry in failures.values()}
        first = failures[min(failures)]
        each = "; ".join(f"rank {rank}: {entry['error']}" for rank, entry in failures.items())
        named = isinstance(benchmark, OperatorBenchmark)
        return BenchmarkError(
            each if len(messages) > 1 else str(first["error"]),
            first["error_type"] if len(kinds) == 1 else "exception",
            first.get("stack_trace"),
            benchmark_name=benchmark.get_name(),
            problem_size=dict(size),
            precision=policy if not named else precision(policy).name,
            implementation=_first(benchmark, self.config) if named else "",
            threads=self.run.threads_of(0),
        )


def _found_by(benchmark: BenchmarkProtocol) -> BenchmarkProtocol | tuple[str, str]:
    """The data from which a worker makes the same benchmark: itself, or its name and the file that registers it."""
    kind = type(benchmark)
    try:
        reference(kind)
    except BenchError:
        names = [one.__code__.co_filename for one in vars(kind).values() if isinstance(one, FunctionType)]
        if not names or benchmark.get_name() not in registry.names():
            raise
        return benchmark.get_name(), names[0]
    return benchmark


_loaded: set[str] = set()


def case_row(
    where: BenchmarkProtocol | tuple[str, str], size: dict[str, Any], policy: str, config: BenchmarkConfig
) -> Row:
    """One case, in a worker."""
    if isinstance(where, tuple):
        name, file = where
        if file not in _loaded:
            registry.load(Path(file))
            _loaded.add(file)
        where = registry.get(name)
    where.setup(config)
    if isinstance(where, OperatorBenchmark):
        row = run_case(where, size, precision(policy), config, only=[_first(where, config)])[-1]
    else:
        row = where.run_single(size)
        if not where.validate_result(row):
            row.add_error("the benchmark's own validation of the result failed")
    return row if isinstance(row, BenchmarkError) else dataclasses.replace(row, config=None)


def _first(benchmark: OperatorBenchmark, config: BenchmarkConfig) -> str:
    return next(iter(config.implementations or benchmark.implementations))


def _figures(outcome: Outcome) -> dict[str, Any]:
    """The entry of one rank in a row: its figures, or its failure."""
    row: Row | None = outcome.value
    if outcome.error is not None or row is None:
        return {"error": outcome.error, "error_type": outcome.kind, "stack_trace": outcome.trace}
    if isinstance(row, BenchmarkError):
        return {"error": row.error_message, "error_type": row.error_type, "stack_trace": row.stack_trace}
    if not row.is_valid():
        return {"error": "; ".join(row.errors), "error_type": "wrong", "stack_trace": None}
    return {
        "latency_ms": row.latency_ms,
        "confidence_interval_95": row.confidence_interval_95,
        "throughput_ops_per_sec": row.throughput_ops_per_sec,
        "measurements_count": row.measurements_count,
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def _warnings(rows: Mapping[int, BenchmarkResult], slowest: BenchmarkResult, config: BenchmarkConfig) -> list[str]:
    # Ranks were told that no precision is enough; whether this one was is held against what was asked for.
    made = [f"rank {rank}: {text}" for rank, row in rows.items() for text in row.warnings if "noisy" not in text]
    if slowest.latency_ms and slowest.confidence_interval_95 is not None:
        low, high = slowest.confidence_interval_95
        known = 100 * max(high - slowest.latency_ms, slowest.latency_ms - low) / slowest.latency_ms
        if known > config.max_variance_percent:
            made.append(
                f"noisy: after {slowest.measurements_count} samples the slowest rank's median is known to "
                f"{known:.0f} %, {config.max_variance_percent:g} % was asked for"
            )
    return made
