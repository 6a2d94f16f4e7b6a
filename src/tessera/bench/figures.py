"""The figures of a row besides its samples: rates, energy, counters, memory, overhead, the compile, and the ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera.bench import clock, integration, statistics
from tessera.bench.counters import Counters
from tessera.bench.definitions import BenchmarkConfig, BenchmarkMode, MeasurementType, ProblemSize
from tessera.bench.hardware import EnergyMeter, HardwareProfiler
from tessera.bench.operator import Built, Implementation, OperatorBenchmark
from tessera.bench.precision import Precision
from tessera.bench.results import BenchmarkError, BenchmarkResult, Row
from tessera.bench.sampling import Inputs, Side

_STREAM_SECONDS = 0.05
_SYNCHRONOUS = "calls return when their work is done: starting it cannot be told from it"
_BY_WALL_CLOCK = "calls of this framework are timed by the wall clock, until the GPU has finished"
_GPU_FIGURE = "a figure of GPUs"


@dataclass(frozen=True)
class Seen:
    """All that is known of an implementation in a case when it is over."""

    benchmark: OperatorBenchmark
    size: ProblemSize
    precision: Precision
    config: BenchmarkConfig
    threads: int
    side: Side
    yardstick: Sequence[float]
    ceilings: Mapping[str, Any]
    conditions: dict[str, Any]
    found: Mapping[str, Any]
    compile_seconds: float | None
    """Of frameworks that compile in their first call: what that took."""
    interrupted: bool = False


def measure(
    benchmark: OperatorBenchmark,
    size: ProblemSize,
    precision: Precision,
    config: BenchmarkConfig,
    implementation: Implementation,
    built: Built,
    side: Side,
    arguments: Sequence[tuple[Any, ...]],
) -> dict[str, Any]:
    """What the configuration asks for: each measurement is a run of its own."""
    asked, found, unavailable = set(config.measurements), dict[str, Any](), dict[str, str]()
    profiler = HardwareProfiler()
    if (why := profiler.reset_peak_memory()) is not None:
        unavailable["peak_memory_mb"] = why
    before = profiler.get_memory_counters().get("rss_bytes", 0)
    seconds, _ = _stream(side, arguments, 0.0)
    peak = profiler.get_memory_counters().get("peak_rss_bytes")
    if why is None and peak is not None:
        found["peak_memory_mb"] = max(0, peak - before) / 2**20
    if MeasurementType.THROUGHPUT in asked:
        seconds, calls = _stream(side, arguments, _STREAM_SECONDS)
        found["calls_per_second"] = calls / seconds
    if MeasurementType.ENERGY in asked:
        meter = EnergyMeter()
        meter.start()
        _, calls = _stream(side, arguments, 4 * _STREAM_SECONDS)
        joules = meter.stop()
        if joules is None:
            unavailable["energy_joules"] = meter.unavailable or "no meter"
        else:
            found["energy_joules"] = joules / calls
    if MeasurementType.OCCUPANCY in asked:
        unavailable["occupancy_percent"] = "the framework does not tell" if side.framework.needs_gpu else _GPU_FIGURE
    if (smallest := benchmark.smallest(size)) is not None and side.framework.name in ("tessera", "torch", "numpy"):
        found["host_overhead_us"] = _overhead(benchmark, implementation, smallest, precision, side)
    if built.kernel is not None:
        values = arguments[0] if built.output is None else (*arguments[0], built.output())
        found["stages_ms"] = integration.stages(built.kernel, values, built.keywords or {})
    if config.mode is BenchmarkMode.PROFILING:
        found.update(_profile(built, side, arguments, unavailable))
    found["unavailable"] = unavailable
    return found


def _stream(side: Side, arguments: Sequence[tuple[Any, ...]], seconds: float) -> tuple[float, int]:
    """Calls back to back, at least one for each set of inputs, waited for at the end."""
    call, finish, calls = side.call, side.framework.finish, 0
    began = clock.now()
    result = None
    while not calls or clock.now() - began < seconds * 1e9:
        for one in arguments:
            result = call(*one)
        calls += len(arguments)
    finish(result)
    return (clock.now() - began) / 1e9, calls


def _overhead(
    benchmark: OperatorBenchmark, implementation: Implementation, size: ProblemSize, precision: Precision, side: Side
) -> float:
    """Microseconds of a call with next to no work, by the same implementation."""
    call = implementation.built(benchmark, size, precision).call
    inputs = Inputs(benchmark, size, precision, np.random.default_rng(0))
    inputs.have(1)
    inputs.write(inputs.draw(1))
    arguments = tuple(side.framework.adapt(array) for array in inputs.sets[0])
    return integration.host_overhead(lambda: call(*arguments))


def _profile(
    built: Built, side: Side, arguments: Sequence[tuple[Any, ...]], unavailable: dict[str, str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    counters = Counters()
    with counters:
        _, calls = _stream(side, arguments, _STREAM_SECONDS)
    counted = dict(counters.found)
    unavailable.update({f"counters.{name}": why for name, why in counted.pop("unavailable").items()})
    found["counters"] = {name: value / calls for name, value in counted.items()}
    if built.kernel is not None:
        from tessera.bench.inspector import IRInspector

        values = arguments[0] if built.output is None else (*arguments[0], built.output())
        found["inspection"] = IRInspector().inspect(built.kernel, *values, **(built.keywords or {}))
    return found


def row(seen: Seen) -> BenchmarkResult:
    """Everything together."""
    side, config, found = seen.side, seen.config, seen.found
    asked = set(config.measurements)
    made = BenchmarkResult(
        seen.benchmark.name,
        dict(seen.size),
        config,
        implementation=side.name,
        precision=seen.precision.name,
        threads=seen.threads,
        flops=seen.benchmark.flops(seen.size),
        bytes_moved=seen.benchmark.bytes_moved(seen.size, seen.precision),
        conditions=seen.conditions,
        unavailable=dict(found.get("unavailable", {})),
    )
    _latency(made, seen)
    per_call = None if made.latency_ms is None else made.latency_ms / 1e3
    rate = found.get("calls_per_second")
    if rate is not None and made.flops is not None:
        made.throughput_ops_per_sec = rate * made.flops
    per_call = per_call or (None if rate is None else 1 / rate)
    _rates(made, seen, per_call, asked)
    if MeasurementType.ACCURACY in asked:
        made.numerical_accuracy = side.worst_error
        made.reference_comparison = {
            "error": side.worst_error,
            "bound": found["bound"],
            "max_abs_error": side.largest_difference,
        }
    for name in ("peak_memory_mb", "energy_joules", "host_overhead_us", "counters", "inspection"):
        if name in found:
            setattr(made, name, found[name])
    _compile(made, seen)
    on_gpu = side.framework.needs_gpu
    made.unavailable.update(
        launch_us=_BY_WALL_CLOCK if on_gpu else _SYNCHRONOUS,
        kernel_ms=_BY_WALL_CLOCK if on_gpu else "the processor has no clock of its own",
        registers_per_thread="the framework does not tell" if on_gpu else _GPU_FIGURE,
        shared_memory_per_block="the framework does not tell" if on_gpu else _GPU_FIGURE,
    )
    if on_gpu:
        made.peak_memory_mb = None
        made.unavailable["peak_memory_mb"] = "what the process grew by is not what the GPU held"
    if made.host_overhead_us is None:
        smallest = seen.benchmark.smallest(seen.size)
        why = "the benchmark has no smallest size" if smallest is None else "not measured for this framework"
        made.unavailable.setdefault("host_overhead_us", why)
    if seen.interrupted:
        made.add_warning(f"interrupted after {len(side.samples)} samples")
    return made


def _latency(made: BenchmarkResult, seen: Seen) -> None:
    samples = seen.side.samples
    if not samples:
        return
    made.yardstick_ms = list(seen.yardstick[: len(samples)])
    _summarise(made, [1e3 * sample for sample in samples], seen.config)


def _summarise(made: BenchmarkResult, samples: list[float], config: BenchmarkConfig) -> None:
    summary = statistics.summarize(samples, 0.95)
    low, high = summary.median_interval.low, summary.median_interval.high
    made.samples_ms = samples
    made.measurements_count = len(samples)
    made.latency_ms = summary.median
    made.standard_deviation = summary.std
    made.confidence_interval_95 = low, high
    known = 100 * max(high - summary.median, summary.median - low) / summary.median
    if known > config.max_variance_percent:
        made.add_warning(
            f"noisy: after {len(samples)} samples the median is known to {known:.0f} %, "
            f"{config.max_variance_percent:g} % was asked for"
        )


def _rates(made: BenchmarkResult, seen: Seen, per_call: float | None, asked: set[MeasurementType]) -> None:
    if per_call is None:
        return
    if MeasurementType.MEMORY_BANDWIDTH in asked and made.bytes_moved is not None:
        made.memory_bandwidth_gbps = made.bytes_moved / per_call / 1e9
    if MeasurementType.COMPUTE_UTILIZATION in asked and made.flops is not None:
        if seen.side.framework.needs_gpu:
            made.unavailable["compute_utilization_percent"] = "the ceilings that were measured are the processor's"
            return
        peak = seen.ceilings.get("flops_per_second", {}).get(seen.precision.name)
        if peak:
            made.compute_utilization_percent = 100 * made.flops / per_call / peak
        else:
            missing = seen.ceilings.get("unavailable", {}).get(seen.precision.name, "no ceiling was measured")
            made.unavailable["compute_utilization_percent"] = f"{seen.precision.name}: {missing}"


def _compile(made: BenchmarkResult, seen: Seen) -> None:
    stages = seen.found.get("stages_ms")
    if stages is not None:
        made.stages_ms = dict(stages)
        made.compilation_time_ms = sum(stages.values())
        made.ir_optimization_time_ms = sum(ms for name, ms in stages.items() if name not in ("llvm", "image", "load"))
        tuning = seen.config.autotuning_enabled
        made.unavailable["autotuning_time_ms"] = "there is no tuner yet" if tuning else "tuning is switched off"
    elif seen.compile_seconds is not None:
        made.compilation_time_ms = 1e3 * seen.compile_seconds
        made.unavailable["ir_optimization_time_ms"] = "the framework does not tell"
    else:
        made.unavailable["compilation_time_ms"] = "computes without compiling"


def compare(rows: Sequence[BenchmarkResult], config: BenchmarkConfig) -> None:
    """Holds every row of a case against the first, by pairs of neighbouring samples."""
    timed = [one for one in rows if one.samples_ms]
    if not timed or config.mode is not BenchmarkMode.COMPARISON:
        return
    first = timed[0] if config.implementations is None else _named(timed, config.implementations)
    for one in timed:
        if one is first:
            continue
        # Rounds in which both took part: a slow implementation leaves early.
        shared = min(len(one.samples_ms), len(first.samples_ms))
        found = statistics.ratio(one.samples_ms[:shared], first.samples_ms[:shared], 0.95)
        one.baseline, one.speedup = first.implementation, found.estimate
        one.speedup_interval = found.interval.low, found.interval.high


def merged(found: Sequence[Sequence[Row]], config: BenchmarkConfig) -> list[Row]:
    """Rows of the same case from several processes as one: all samples, and what each process saw."""
    made: list[Row] = []
    for rows in zip(*found, strict=True):
        failed = next((row for row in rows if isinstance(row, BenchmarkError)), None)
        if failed is not None:
            made.append(failed)
            continue
        results = [row for row in rows if isinstance(row, BenchmarkResult)]
        samples = [sample for row in results for sample in row.samples_ms]
        one = results[-1]
        one.conditions["process_medians_ms"] = [row.latency_ms for row in results]
        one.yardstick_ms = [value for row in results for value in row.yardstick_ms]
        one.warnings = sorted({warning for row in results for warning in row.warnings if "noisy" not in warning})
        if samples:
            _summarise(one, samples, config)
        made.append(one)
    return made


def _named(rows: Sequence[BenchmarkResult], names: Sequence[str]) -> BenchmarkResult:
    return min(rows, key=lambda row: list(names).index(row.implementation))
