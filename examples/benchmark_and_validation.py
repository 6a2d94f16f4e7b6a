"""The benchmark suite of tiers, the validation framework, and a report written from what they found.

python examples/benchmark_and_validation.py [--device cuda:0] [--report performance_report.md] [--small]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from tessera.bench.configs import InputConfiguration, StandardBenchmarkConfigs
from tessera.bench.validation import (
    BenchmarkSuite,
    TierBenchmarkConfig,
    TierBenchmarkResult,
    ValidationConfig,
    ValidationFramework,
    ValidationResult,
)
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig

SMALL = (InputConfiguration(1, 2, 32, 16, "f32", True, "Small: 1x2x32x16"),)


def configurations(device: str) -> tuple[InputConfiguration, ...]:
    sets = StandardBenchmarkConfigs
    if device == "cpu":
        return tuple(sets.get_cpu_configs())
    return (*sets.get_small_configs(), *sets.get_medium_configs(), *sets.get_mixed_precision_configs())


def told(one: TierBenchmarkResult) -> None:
    print(one.input_config.description)
    for tier, metrics in enumerate((one.tier1_metrics, one.tier2_metrics, one.tier3_metrics), 1):
        times = f"{metrics.mean_time_ms:.4f} ± {metrics.std_dev_ms:.4f} ms"
        print(f"  tier {tier}: {times}, {metrics.tflops_achieved:.3g} TFLOP/s")
    for tier, ratio, significant, p_value in (
        (2, one.tier2_vs_tier1_speedup, one.tier2_improvement_significant, one.p_value_tier2),
        (3, one.tier3_vs_tier1_speedup, one.tier3_improvement_significant, one.p_value_tier3),
    ):
        print(f"  tier {tier} over tier 1: {ratio:.2f}{f', significant (p = {p_value:.1e})' if significant else ''}")


def report(results: Sequence[TierBenchmarkResult]) -> str:
    """The performance report as Markdown."""

    def mean(values: Sequence[float]) -> float:
        return math.exp(sum(map(math.log, values)) / len(values))

    second, third = ([getattr(one, f"tier{tier}_vs_tier1_speedup") for one in results] for tier in (2, 3))
    lines = ["# Performance of tiers", ""]
    lines += [f"- Tier 2 over Tier 1, geometric mean: **{mean(second):.2f}**"]
    lines += [f"- Tier 3 over Tier 1, geometric mean: **{mean(third):.2f}**, at most **{max(third):.2f}**", ""]
    lines += [
        "| configuration | tier 1 (ms) | tier 2 (ms) | tier 3 (ms) | tier 3 over tier 1 |",
        "|---|---:|---:|---:|---:|",
    ]
    for one in results:
        times = (one.tier1_metrics.mean_time_ms, one.tier2_metrics.mean_time_ms, one.tier3_metrics.mean_time_ms)
        cells = [one.input_config.description, *(f"{time:.4f}" for time in times), f"{one.tier3_vs_tier1_speedup:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> tuple[list[TierBenchmarkResult], ValidationResult]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--small", action="store_true", help="one small configuration")
    options = parser.parse_args(arguments)

    chosen = SMALL if options.small else configurations(options.device)
    settings = RuntimeConfig(candidates=1) if options.small else RuntimeConfig()
    with MetaTracingRuntime(settings) as runtime:
        config = TierBenchmarkConfig(
            chosen, warmup_iterations=5, benchmark_iterations=50, seconds=0.2 if options.small else 1.5
        )
        results = BenchmarkSuite().run_benchmark_suite(runtime, config, options.device, told)
        framework = ValidationFramework(chosen, options.device)
        wanted = ValidationConfig(numerical_tolerance=1e-4, max_acceptable_regression_percent=5.0)
        found = framework.validate_implementation(runtime, wanted)
    passed = "passed" if found.numerical_correctness_passed else "FAILED"
    print(f"numerics: {passed}, {found.max_relative_error:.1e} in norm")
    print(f"tiers agree: {'yes' if found.cross_tier_consistency_passed else 'NO'}")
    for issue in found.issues:
        print(f"{issue.severity.value}: {issue.description}. {issue.suggested_fix}")
    if options.report is not None:
        options.report.write_text(report(results), encoding="utf-8")
    return results, found


if __name__ == "__main__":
    main()
