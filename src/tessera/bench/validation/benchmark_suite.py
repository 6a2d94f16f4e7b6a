"""The benchmark suite of tiers: each configuration at every tier, beside the frozen baseline, in the same minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tessera.bench.configs import InputConfiguration
from tessera.bench.results import statistics
from tessera.bench.validation.subjects import TIERS, Problem, sampled, settled
from tessera.errors import TesseraError
from tessera.field_checks import check_fields
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig

_SIGNIFICANT = 0.05


@dataclass(frozen=True)
class TierBenchmarkConfig:
    """The configurations to measure, and for how long. `seconds` bounds the sampling of one configuration."""

    input_configs: tuple[InputConfiguration, ...]
    warmup_iterations: int = 10
    benchmark_iterations: int = 100
    enable_statistical_analysis: bool = True
    confidence_interval: float = 0.95
    seconds: float = 1.5

    def __post_init__(self) -> None:
        check_fields(
            self,
            positive=("benchmark_iterations", "seconds"),
            not_negative=("warmup_iterations",),
            parts=("confidence_interval",),
        )
        if not self.enable_statistical_analysis:
            raise TesseraError(
                "TierBenchmarkConfig.enable_statistical_analysis is always on: a comparison without it says nothing",
                hint="leave it out",
            )


@dataclass(frozen=True)
class TierMetrics:
    """How fast calls were."""

    mean_time_ms: float
    std_dev_ms: float
    min_time_ms: float
    max_time_ms: float
    median_time_ms: float
    tflops_achieved: float
    memory_bandwidth_gbps: float
    successful_runs: int

    @staticmethod
    def of(samples: Sequence[float], problem: Problem) -> TierMetrics:
        values = np.asarray(samples)
        middle = float(np.median(values))
        return TierMetrics(
            float(values.mean()),
            float(values.std(ddof=1)) if len(values) > 1 else 0.0,
            float(values.min()),
            float(values.max()),
            middle,
            problem.operations / middle / 1e9,
            problem.moved / middle / 1e6,
            len(values),
        )


@dataclass(frozen=True)
class TierBenchmarkResult:
    """One configuration: all tiers and the baseline, and how they compare. Ratios above 1 are faster."""

    input_config: InputConfiguration
    baseline_metrics: TierMetrics
    tier1_metrics: TierMetrics
    tier2_metrics: TierMetrics
    tier3_metrics: TierMetrics
    tier2_vs_tier1_speedup: float
    tier3_vs_tier1_speedup: float
    tier3_vs_tier2_speedup: float
    tier2_improvement_significant: bool
    tier3_improvement_significant: bool
    p_value_tier2: float
    p_value_tier3: float
    against_baseline: dict[int, tuple[float, float, float]]
    """Each tier against the frozen baseline: how many times faster, and the interval."""
    levels: dict[int, str]
    compile_ms: dict[int, float]
    history: list[tuple[int, float]] = field(default_factory=list)
    """Tiers and milliseconds of the calls that climbed to Tier 3."""
    samples: dict[str, list[float]] = field(default_factory=dict)


class BenchmarkSuite:
    """The specification's benchmark suite."""

    def run_benchmark_suite(
        self,
        runtime: MetaTracingRuntime,
        config: TierBenchmarkConfig,
        device: str = "cpu",
        told: Callable[[TierBenchmarkResult], Any] | None = None,
        failed: Callable[[InputConfiguration, str], Any] | None = None,
    ) -> list[TierBenchmarkResult]:
        """All configurations, under runtimes with the settings of this one. Those that fail are told and left out."""
        found: list[TierBenchmarkResult] = []
        for one in config.input_configs:
            try:
                found.append(self.run_single_benchmark(runtime.config, one, config, device))
            except TesseraError as error:
                if failed is None:
                    raise
                failed(one, error.message)
                continue
            if told is not None:
                told(found[-1])
        return found

    def run_single_benchmark(
        self, settings: RuntimeConfig, which: InputConfiguration, config: TierBenchmarkConfig, device: str
    ) -> TierBenchmarkResult:
        problem = Problem.of(which, device)
        calls: dict[str, Callable[[], Any]] = {"baseline": problem.baseline()}
        levels: dict[int, str] = {}
        compiled: dict[int, float] = {}
        history: list[tuple[int, float]] = []
        for tier in TIERS:
            runtime = settled(problem, settings, tier)
            calls[f"tier{tier}"] = problem.by(runtime)
            (site,) = runtime.sites()
            levels[tier] = str(site.programs[0].level)
            stats = runtime.get_runtime_stats()
            compiled[tier] = stats.total_specialization_time_ms if tier == 3 else stats.total_compilation_time_ms
            if tier == max(TIERS):
                history = [(int(one.tier_used), one.execution_time_ms) for one in runtime.get_performance_history()]
        samples = sampled(problem, calls, config.seconds, config.warmup_iterations)
        samples = {name: values[: config.benchmark_iterations] for name, values in samples.items()}
        metrics = {name: TierMetrics.of(values, problem) for name, values in samples.items()}
        ratios = {
            pair: statistics.ratio(samples[pair[0]], samples[pair[1]], config.confidence_interval)
            for pair in (("tier2", "tier1"), ("tier3", "tier1"), ("tier3", "tier2"))
        }
        second, third = ratios["tier2", "tier1"], ratios["tier3", "tier1"]
        return TierBenchmarkResult(
            which,
            metrics["baseline"],
            metrics["tier1"],
            metrics["tier2"],
            metrics["tier3"],
            second.estimate,
            third.estimate,
            ratios["tier3", "tier2"].estimate,
            _significant(second),
            _significant(third),
            second.p_value,
            third.p_value,
            {tier: _told(samples[f"tier{tier}"], samples["baseline"], config.confidence_interval) for tier in TIERS},
            levels,
            compiled,
            history,
            samples,
        )


def _significant(found: statistics.Ratio) -> bool:
    return found.p_value < _SIGNIFICANT and found.estimate > 1


def _told(ours: Sequence[float], theirs: Sequence[float], confidence: float) -> tuple[float, float, float]:
    found = statistics.ratio(ours, theirs, confidence)
    return found.estimate, found.interval.low, found.interval.high
