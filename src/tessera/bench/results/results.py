"""Results: a row per implementation, size and precision, the suite of rows, and the protocol of benchmarks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tessera.bench.results.definitions import BenchmarkConfig, ProblemSize


@dataclass
class BenchmarkResult:
    """One implementation of one benchmark at one size and precision.

    A figure that is None was not asked for or cannot be had; `unavailable` says why, by the name of the field.
    """

    benchmark_name: str
    problem_size: dict[str, Any]
    config: BenchmarkConfig | None = None

    implementation: str = "tessera"
    precision: str = "f32"
    threads: int = 1

    latency_ms: float | None = None
    """The median of the samples, per call."""
    throughput_ops_per_sec: float | None = None
    """Floating-point operations of all samples over their time."""
    memory_bandwidth_gbps: float | None = None
    """The bytes that must be moved at least, by the latency."""
    compute_utilization_percent: float | None = None
    """The operations per second of the latency, of those that the machine was measured to reach."""
    energy_joules: float | None = None

    peak_memory_mb: float | None = None
    registers_per_thread: int | None = None
    shared_memory_per_block: int | None = None
    occupancy_percent: float | None = None

    compilation_time_ms: float | None = None
    ir_optimization_time_ms: float | None = None
    autotuning_time_ms: float | None = None
    stages_ms: dict[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of each stage of the compile, in their order."""
    host_overhead_us: float | None = None
    """The overhead of a call: the time of one on the smallest problem there is."""
    launch_us: float | None = None
    """The time to start the work, where it can be told from the work itself."""
    kernel_ms: float | None = None
    """The time of the work on the device by its own clock, where it has one."""

    measurements_count: int = 0
    standard_deviation: float | None = None
    confidence_interval_95: tuple[float, float] | None = None
    """Of the median, in ms."""
    samples_ms: list[float] = field(default_factory=list[float])
    """Per call, in the order of measurement. Implementations of a case alternate: equal indices are neighbours."""
    yardstick_ms: list[float] = field(default_factory=list[float])
    """Times of the same short piece of work beside each sample: the machine's state, for comparing runs."""

    numerical_accuracy: float | None = None
    """The relative error in norm against float64."""
    reference_comparison: dict[str, float] | None = None
    """`error`, the `bound` it was held against, `max_abs_error`."""

    flops: float | None = None
    """Floating-point operations of one call."""
    bytes_moved: float | None = None
    """The least that one call has to move: inputs once, outputs once."""
    speedup: float | None = None
    """The `baseline`'s time over this one's, by pairs of neighbouring samples: above 1, this is faster."""
    speedup_interval: tuple[float, float] | None = None
    baseline: str | None = None
    counters: dict[str, float] = field(default_factory=dict[str, float])
    """Hardware counters per call, in profiling mode: instructions, cycles, cache_misses, …"""
    inspection: dict[str, Any] = field(default_factory=dict[str, Any])
    """The findings of `IRInspector`, per level, in profiling mode."""
    ranks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Distributed runs: each rank's figures or failure."""
    scaling_efficiency_percent: float | None = None

    conditions: dict[str, Any] = field(default_factory=dict[str, Any])
    """The machine's state while the row was measured: clocks, load, throttling."""
    unavailable: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])

    @property
    def key(self) -> str:
        """Names the row in its suite, and the same row in other runs."""
        key = row_key(self.benchmark_name, self.problem_size, self.precision, self.implementation, self.threads)
        return f"{key}/{len(self.ranks)} ranks" if self.ranks else key

    @property
    def case(self) -> str:
        """The size and precision, in words: rows of one case are comparable."""
        return f"{size_text(self.problem_size)} {self.precision}"

    def add_warning(self, warning: str) -> None:
        self.warnings.append(warning)

    def add_error(self, error: str) -> None:
        self.errors.append(error)

    def is_valid(self) -> bool:
        return not self.errors

    def calculate_efficiency(self, theoretical_peak: float) -> float:
        """The throughput in percent of a peak, given in operations per second."""
        if self.throughput_ops_per_sec is None:
            return 0.0
        return self.throughput_ops_per_sec / theoretical_peak * 100.0


@runtime_checkable
class BenchmarkProtocol(Protocol):
    """The methods that `TesseraBench` calls of a benchmark. `OperatorBenchmark` does all of it for a short class."""

    def get_name(self) -> str: ...

    def get_description(self) -> str: ...

    def get_supported_precisions(self) -> list[str]: ...

    def get_problem_sizes(self) -> list[dict[str, Any]]: ...

    def setup(self, config: BenchmarkConfig) -> None: ...

    def run_single(self, problem_size: ProblemSize) -> BenchmarkResult: ...

    def cleanup(self) -> None: ...

    def validate_result(self, result: BenchmarkResult) -> bool: ...


@dataclass
class BenchmarkError:
    """A row that has no figures: what failed, and why."""

    error_message: str
    error_type: str = "unknown"
    """`crash`, `hung`, `out_of_memory`, `interrupted`, `refused` (an honesty check), `skipped` or `exception`."""
    stack_trace: str | None = None
    timestamp: float = field(default_factory=time.time)
    benchmark_name: str = ""
    problem_size: dict[str, Any] = field(default_factory=dict[str, Any])
    precision: str = ""
    implementation: str = ""
    threads: int = 1

    @property
    def key(self) -> str:
        return row_key(self.benchmark_name, self.problem_size, self.precision, self.implementation, self.threads)

    @property
    def case(self) -> str:
        return f"{size_text(self.problem_size)} {self.precision}"


Row = BenchmarkResult | BenchmarkError
SKIPPED = "skipped"


@dataclass
class BenchmarkSuiteResult:
    """All rows of a run by their keys, and what it ran on."""

    results: dict[str, Row] = field(default_factory=dict[str, Row])
    suite_start_time: float = field(default_factory=time.time)
    suite_end_time: float = 0.0
    environment: dict[str, Any] = field(default_factory=dict[str, Any])
    """Versions, processor, threads, seed, …"""
    ceilings: dict[str, Any] = field(default_factory=dict[str, Any])
    """The machine's measured rates: `memory_gbps`, `flops_per_second` by precision."""
    interrupted: bool = False

    def add(self, row: Row) -> None:
        self.results[row.key] = row

    def extend(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def get_successful_results(self) -> dict[str, BenchmarkResult]:
        return {key: row for key, row in self.results.items() if isinstance(row, BenchmarkResult) and row.is_valid()}

    def get_failed_results(self) -> dict[str, Row]:
        """Rows without figures that count. What was skipped because a peer is not installed has not failed."""
        return {
            key: row
            for key, row in self.results.items()
            if (isinstance(row, BenchmarkError) and row.error_type != SKIPPED)
            or (isinstance(row, BenchmarkResult) and not row.is_valid())
        }

    def get_skipped_results(self) -> dict[str, BenchmarkError]:
        return {
            key: row
            for key, row in self.results.items()
            if isinstance(row, BenchmarkError) and row.error_type == SKIPPED
        }

    def calculate_suite_statistics(self) -> dict[str, Any]:
        """Counts and means over the rows that succeeded."""
        successful = self.get_successful_results()
        if not successful:
            return {}
        latencies = [row.latency_ms for row in successful.values() if row.latency_ms]
        throughputs = [row.throughput_ops_per_sec for row in successful.values() if row.throughput_ops_per_sec]
        efficiencies = [
            row.compute_utilization_percent
            for row in successful.values()
            if row.compute_utilization_percent is not None
        ]
        return {
            "total_benchmarks": len(self.results),
            "successful_benchmarks": len(successful),
            "failed_benchmarks": len(self.get_failed_results()),
            "skipped_benchmarks": len(self.get_skipped_results()),
            "average_latency_ms": _mean(latencies),
            "average_throughput": _mean(throughputs),
            "average_efficiency": _mean(efficiencies),
        }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def size_text(size: Mapping[str, Any]) -> str:
    """A problem size in words: `batch_size=1 num_heads=8`."""
    return " ".join(f"{name}={value}" for name, value in size.items())


def row_key(benchmark: str, size: Mapping[str, Any], precision: str, implementation: str, threads: int) -> str:
    """The same whatever order the size was given in."""
    return "/".join((benchmark, size_text(dict(sorted(size.items()))), precision, implementation, f"{threads} threads"))
