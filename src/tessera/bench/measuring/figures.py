"""A row: what follows from samples and from other measurements, what is doubtful about it, and the ratios of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera.bench.instruments.ncu import PROFILER_METRICS
from tessera.bench.measuring.definition import Setting
from tessera.bench.measuring.sampling import Side
from tessera.bench.results import statistics
from tessera.bench.results.definitions import BenchmarkConfig, BenchmarkMode, MeasurementType
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, Row

_SYNCHRONOUS = "calls return when their work is done: the start cannot be timed apart"
_BY_NCU = "it comes from a profile by ncu: --mode profiling"
_GPU_FIGURE = "a figure of GPUs"
_INTERRUPTED = "the run was interrupted before it was measured"
_UNLIKELY_PERCENT, _IMPOSSIBLE_PERCENT = 110.0, 400.0
"""Of the measured ceiling, which a busy machine may have kept down, but not that far."""
_MORE_THAN_ASKED = 1.25
_PASSES = frozenset(
    {
        *("apply-facts", "instrument-checks", "drop-certain-masks", "mark-multiples", "widen-accumulation"),
        *("degenerate-matmuls", "scaled-differences", "scale-maxima", "round-multiples", "tile-to-cpu", "verify"),
    }
)


@dataclass(frozen=True)
class CaseOutcome:
    """Everything measured of one implementation in a case, once the case is over."""

    setting: Setting
    side: Side
    yardstick: Sequence[float]
    conditions: dict[str, Any]
    found: Mapping[str, Any]
    compile_seconds: float | None
    """Of frameworks that compile in their first call: what that took."""
    interrupted: bool = False
    restless: int = 0
    """How often threads of the process still worked when a sample of the case was due."""


def row(seen: CaseOutcome) -> BenchmarkResult:
    """Everything together."""
    setting, side, config, found = seen.setting, seen.side, seen.setting.config, seen.found
    asked = set(config.measurements)
    made = BenchmarkResult(
        setting.benchmark.name,
        dict(setting.size),
        config,
        implementation=side.name,
        precision=setting.precision.name,
        threads=setting.threads,
        flops=setting.benchmark.flops(setting.size),
        bytes_moved=setting.benchmark.bytes_moved(setting.size, setting.precision),
        conditions=seen.conditions,
        unavailable=dict(found.get("unavailable", {})),
    )
    if side.samples:
        made.yardstick_ms = list(seen.yardstick[: len(side.samples)])
        _summarise(made, [1e3 * sample for sample in side.samples], config)
        _rates(made, seen, asked)
        doubts(made, side.busy / side.wall if side.wall and not side.framework.needs_gpu else 0.0)
    if seen.restless:
        made.add_warning(
            f"threads kept working between samples, {seen.restless} times: all times of the case are doubtful"
        )
    if MeasurementType.LATENCY not in asked:
        _without_latency(made)
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
    if side.framework.needs_gpu:
        _of_gpu(made, seen, asked)
    else:
        made.unavailable.update(
            launch_us=_SYNCHRONOUS,
            kernel_ms="the processor has no clock of its own",
            registers_per_thread=_GPU_FIGURE,
            shared_memory_per_block=_GPU_FIGURE,
        )
        if MeasurementType.OCCUPANCY in asked:
            made.unavailable["occupancy_percent"] = _GPU_FIGURE
    if made.host_overhead_us is None:
        made.unavailable.setdefault("host_overhead_us", _INTERRUPTED if seen.interrupted else "not measured here")
    if seen.interrupted:
        made.add_warning(f"interrupted after {len(side.samples)} samples")
    return made


def _of_gpu(made: BenchmarkResult, seen: CaseOutcome, asked: set[MeasurementType]) -> None:
    """The GPU's own figures: what starting takes, what is left without it, and what ncu saw."""
    if seen.side.starting:
        made.launch_us = 1e6 * float(np.median(seen.side.starting))
    made.kernel_ms = seen.found.get("kernel_ms")
    profile: Mapping[str, Any] = seen.found.get("profile", {})
    made.counters = {name: value for name in PROFILER_METRICS if (value := profile.get(name)) is not None}
    made.occupancy_percent = profile.get("achieved_occupancy")
    for name in ("registers_per_thread", "shared_memory_per_block"):
        if (value := profile.get(name)) is not None:
            setattr(made, name, round(value))
    reasons: Mapping[str, str] = profile.get("unavailable", {})
    instead = made.unavailable.pop("profile", _BY_NCU)
    for name in ("registers_per_thread", "shared_memory_per_block"):
        if getattr(made, name) is None:
            made.unavailable[name] = reasons.get(name, instead)
    if MeasurementType.OCCUPANCY in asked and made.occupancy_percent is None:
        made.unavailable["occupancy_percent"] = reasons.get("achieved_occupancy", instead)
    if profile or instead is not _BY_NCU:
        missing = {name: reasons.get(name, instead) for name in PROFILER_METRICS if name not in made.counters}
        made.unavailable.update({f"counters.{name}": reason for name, reason in missing.items()})
    if made.kernel_ms is None:
        made.unavailable.setdefault("kernel_ms", _INTERRUPTED if seen.interrupted else "not measured here")


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


def _rates(made: BenchmarkResult, seen: CaseOutcome, asked: set[MeasurementType]) -> None:
    """Figures computed from the samples: of the median call, and of all calls together."""
    assert made.latency_ms is not None
    seconds = made.latency_ms / 1e3
    if MeasurementType.THROUGHPUT in asked and made.flops is not None:
        made.throughput_ops_per_sec = made.flops * len(seen.side.samples) / sum(seen.side.samples)
    if MeasurementType.MEMORY_BANDWIDTH in asked and made.bytes_moved is not None:
        made.memory_bandwidth_gbps = made.bytes_moved / seconds / 1e9
    if MeasurementType.COMPUTE_UTILIZATION not in asked or made.flops is None:
        return
    name, ceilings = seen.setting.precision.name, seen.setting.ceilings
    peak = ceilings.get("flops_per_second", {}).get(name)
    if seen.side.framework.needs_gpu:
        made.unavailable["compute_utilization_percent"] = "the ceilings that were measured are the processor's"
    elif not peak:
        missing = ceilings.get("unavailable", {}).get(name, "no ceiling was measured")
        made.unavailable["compute_utilization_percent"] = f"{name}: {missing}"
    else:
        made.compute_utilization_percent = 100 * made.flops / seconds / peak


def doubts(made: BenchmarkResult, busy: float) -> None:
    """Notes figures that cannot be, or were not had by fair means; `busy` processors worked meanwhile."""
    used = made.compute_utilization_percent or 0.0
    if used > _IMPOSSIBLE_PERCENT:
        made.add_error(f"{used:.0f} % of what the machine was measured to reach: the work cannot have been done")
    elif used > _UNLIKELY_PERCENT:
        made.add_warning(
            f"{used:.0f} % of what the machine was measured to reach: the ceiling is too low, or work is missing"
        )
    if busy > _MORE_THAN_ASKED * made.threads + 0.2:
        made.add_warning(
            f"{busy:.1f} processors worked while this ran on {made.threads} "
            f"{'thread' if made.threads == 1 else 'threads'}: it uses more, or something else in the process does"
        )


def _compile(made: BenchmarkResult, seen: CaseOutcome) -> None:
    stages = seen.found.get("stages_ms")
    if stages is not None:
        made.stages_ms = dict(stages)
        made.compilation_time_ms = sum(stages.values())
        made.ir_optimization_time_ms = sum(ms for name, ms in stages.items() if name in _PASSES)
        tuning = seen.setting.config.autotuning_enabled
        made.unavailable["autotuning_time_ms"] = "there is no tuner yet" if tuning else "tuning is switched off"
    elif seen.compile_seconds is not None:
        made.compilation_time_ms = 1e3 * seen.compile_seconds
        made.unavailable["ir_optimization_time_ms"] = "the framework does not tell"
    elif "stages_ms" in made.unavailable or seen.interrupted:
        made.unavailable["compilation_time_ms"] = made.unavailable.get("stages_ms", _INTERRUPTED)
    else:
        made.unavailable["compilation_time_ms"] = "the implementation does not report a compile"


def compare(rows: Sequence[BenchmarkResult], config: BenchmarkConfig) -> None:
    """Holds every row of a case against the first, by pairs of neighbouring samples."""
    timed = [one for one in rows if one.samples_ms]
    if not timed or config.mode is not BenchmarkMode.COMPARISON:
        return
    first = timed[0]
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
        results = [row for row in rows if isinstance(row, BenchmarkResult)]
        # What was interrupted before its first sample takes nothing from what other processes have measured.
        failed = [row for row in rows if isinstance(row, BenchmarkError)]
        failed = [row for row in failed if row.error_type != "interrupted" or not results]
        made.append(failed[0] if failed else _merged(results, config))
    return made


def _merged(rows: Sequence[BenchmarkResult], config: BenchmarkConfig) -> BenchmarkResult:
    one, samples = rows[-1], [sample for row in rows for sample in row.samples_ms]
    one.conditions["process_medians_ms"] = [row.latency_ms for row in rows]
    one.yardstick_ms = [value for row in rows for value in row.yardstick_ms]
    one.warnings = sorted({warning for row in rows for warning in row.warnings if not warning.startswith("noisy")})
    one.errors = sorted({error for row in rows for error in row.errors})
    if one.numerical_accuracy is not None:
        worst = max(rows, key=lambda row: row.numerical_accuracy or 0.0)
        one.numerical_accuracy, one.reference_comparison = worst.numerical_accuracy, worst.reference_comparison
    if not samples:
        return one
    before, asked = statistics.summarize(one.samples_ms).median, one.latency_ms is not None
    _summarise(one, samples, config)
    assert one.latency_ms is not None
    # Rates of the median follow it; that of all calls is of all processes.
    for name in ("memory_bandwidth_gbps", "compute_utilization_percent"):
        if (value := getattr(one, name)) is not None:
            setattr(one, name, value * before / one.latency_ms)
    if one.throughput_ops_per_sec is not None and one.flops is not None:
        one.throughput_ops_per_sec = 1e3 * one.flops * len(samples) / sum(samples)
    if not asked:
        _without_latency(one)
    return one


def _without_latency(made: BenchmarkResult) -> None:
    """It was not asked for; the samples stay, for rates come of them."""
    made.latency_ms = made.confidence_interval_95 = made.standard_deviation = None
