"""`TesseraBench`: runs benchmarks by name or as objects, and keeps what was found whatever happens."""

from __future__ import annotations

import dataclasses
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tessera.bench import registry
from tessera.bench.engine import MeasurementEngine
from tessera.bench.instruments import ceilings, hardware
from tessera.bench.measuring.cases import Interrupted, run_case
from tessera.bench.measuring.definition import Setting
from tessera.bench.measuring.frameworks import has_gpu
from tessera.bench.measuring.precision import precision
from tessera.bench.measuring.sampling import YARDSTICK
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.results.analysis import AnalysisEngine
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode, MeasurementType, ProblemSize
from tessera.bench.results.results import BenchmarkError, BenchmarkProtocol, BenchmarkSuiteResult, Row
from tessera.errors import TesseraError


class Runner(Protocol):
    """Runs a case: in this process, or in a worker process."""

    def run_case(self, setting: Setting) -> list[Row]: ...


class Here:
    """Cases run in this process: whatever kills it kills all."""

    def run_case(self, setting: Setting) -> list[Row]:
        return run_case(*setting.problem, setting.config, ceilings=setting.ceilings)


def _ignore_rows(_: Sequence[Row]) -> None:
    """Ignores the rows of a case."""


class TesseraBench:
    """The engine (`TesseraBenchCore` in the specification).

    `on_rows` is called with the rows of each case as soon as they are known. Ctrl-C ends a run and keeps its rows.
    """

    def __init__(
        self,
        tessera_runtime: Any = None,
        *,
        runner: Runner | None = None,
        on_rows: Callable[[Sequence[Row]], None] | None = None,
    ) -> None:
        self.runtime = tessera_runtime
        self.measurement_engine = MeasurementEngine()
        self.analysis_engine = AnalysisEngine()
        self.registered_benchmarks: dict[str, BenchmarkProtocol] = {}
        self._runner = runner or Here()
        self._on_rows: Callable[[Sequence[Row]], None] = on_rows or _ignore_rows
        self._ceilings: dict[tuple[int | None, str], dict[str, Any]] = {}
        self._gpu_copy: list[float | None] = []

    def register_benchmark(self, benchmark: BenchmarkProtocol) -> None:
        """Adds a benchmark to this engine's own."""
        name = benchmark.get_name()
        if name in self.registered_benchmarks:
            raise BenchError(f"benchmark {name} is registered already", hint="give it another name")
        self.registered_benchmarks[name] = benchmark

    def run_benchmark(self, benchmark_name: str, config: BenchmarkConfig | None = None) -> BenchmarkSuiteResult:
        """One benchmark: all its sizes in all precisions of the configuration."""
        return self._run([self._benchmark(benchmark_name)], config or BenchmarkConfig())

    def run_benchmark_suite(
        self, benchmark_names: Sequence[str], config: BenchmarkConfig | None = None
    ) -> BenchmarkSuiteResult:
        """Several benchmarks; one that fails is a row, and the others run."""
        return self._run([self._benchmark(name) for name in benchmark_names], config or BenchmarkConfig())

    def _benchmark(self, name: str) -> BenchmarkProtocol:
        return self.registered_benchmarks.get(name) or registry.get(name)

    def _run(self, benchmarks: Sequence[BenchmarkProtocol], config: BenchmarkConfig) -> BenchmarkSuiteResult:
        if config.mode in (BenchmarkMode.MULTI_GPU, BenchmarkMode.DISTRIBUTED):
            from tessera.bench.processes.distributed import run_spread

            return run_spread(benchmarks, config, self._on_rows)
        if config.seed is None:
            config = dataclasses.replace(config, seed=secrets.randbits(63))
        suite = BenchmarkSuiteResult()
        try:
            suite.environment = {**hardware.environment(), "seed": config.seed, "yardstick": YARDSTICK}
            suite.ceilings = self._measured_ceilings(config)
            for benchmark in benchmarks:
                for rows in self._rows_of(benchmark, config, suite.ceilings):
                    suite.extend(rows)
                    self._on_rows(rows)
        except KeyboardInterrupt as interrupt:
            suite.interrupted = True
            rows = interrupt.rows if isinstance(interrupt, Interrupted) else []
            suite.extend(rows)
            self._on_rows(rows)
        suite.suite_end_time = time.time()
        return suite

    def _measured_ceilings(self, config: BenchmarkConfig) -> dict[str, Any]:
        """Of this machine for the configuration's threads and precisions, measured once each."""
        if MeasurementType.COMPUTE_UTILIZATION not in config.measurements:
            return {}
        wanted = [precision(policy).name for policy in config.precision_policies]
        found: dict[str, Any] = {}
        for name in wanted:
            if (config.threads, name) not in self._ceilings:
                self._ceilings[config.threads, name] = ceilings.measure(config.threads, [name])
            for part, value in self._ceilings[config.threads, name].items():
                found[part] = {**found.get(part, {}), **value} if isinstance(value, dict) else value
        if has_gpu():
            found["gpu_copy_gbps"] = self._gpu_copy_gbps()
        return found

    def _gpu_copy_gbps(self) -> float | None:
        """The bandwidth of a copy within the GPU's memory, measured once; None where the runtime cannot be used."""
        if not self._gpu_copy:
            from tessera.bench.instruments.gpu_timing import copy_bandwidth

            try:
                self._gpu_copy.append(copy_bandwidth() / 1e9)
            except TesseraError:
                self._gpu_copy.append(None)
        return self._gpu_copy[0]

    def _rows_of(
        self, benchmark: BenchmarkProtocol, config: BenchmarkConfig, measured: Mapping[str, Any]
    ) -> Iterator[list[Row]]:
        try:
            benchmark.setup(config)
            sizes = benchmark.get_problem_sizes() if config.sizes is None else config.sizes
            for policy in config.precision_policies:
                for size in sizes:
                    yield self._case(benchmark, size, policy, config, measured)
        except Exception as error:
            yield [self._error(benchmark, {}, "", error)]
        try:
            benchmark.cleanup()
        except Exception as error:
            yield [self._error(benchmark, {}, "", error)]

    def _case(
        self,
        benchmark: BenchmarkProtocol,
        size: ProblemSize,
        policy: str,
        config: BenchmarkConfig,
        measured: Mapping[str, Any],
    ) -> list[Row]:
        try:
            if isinstance(benchmark, OperatorBenchmark):
                return self._runner.run_case(Setting(benchmark, size, precision(policy), config, measured))
            result = benchmark.run_single(size)
            if not benchmark.validate_result(result):
                result.add_error("the benchmark's own validation of the result failed")
            return [result]
        except Exception as error:
            return [self._error(benchmark, size, policy, error)]

    def _error(self, benchmark: BenchmarkProtocol, size: ProblemSize, policy: str, error: Exception) -> BenchmarkError:
        kind = "out_of_memory" if isinstance(error, MemoryError) else "exception"
        message = error.message if isinstance(error, TesseraError) else f"{type(error).__name__}: {error}"
        return BenchmarkError(
            message,
            kind,
            traceback.format_exc(),
            benchmark_name=benchmark.get_name(),
            problem_size=dict(size),
            precision=policy,
        )
