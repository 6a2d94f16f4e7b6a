"""The analysis engine of the specification: measurements described, two sets compared, regressions detected.

Where the specification errs, this does what it means: the direction of a change depends on the metric, the size of an
effect has no sign, normality has a real p-value, and outliers are not removed in silence. Figures with and without them
are given side by side, and decisions rest on medians and ranks, which they do not move.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tessera.bench.results.comparison import Verdict, compare_samples, find_metric
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.rank_laws import Floats
from tessera.bench.results.statistics import (
    Ratio,
    Samples,
    centred,
    checked,
    mean_and_std,
    normality,
    ratio,
    ratio_unpaired,
    scipy_stats,
    summarize,
)

_EFFECTS = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))
_SEVERITIES = ((10.0, "mild"), (20.0, "moderate"))


class AnalysisEngine:
    """Statistics of measurements. What is too little to analyse is answered with `{'error': …}`."""

    def __init__(self) -> None:
        self.significance_level = 0.05
        self.min_samples = 30
        self.max_cv_percent = 10.0
        """The largest spread of measurements to rely on, in percent of the median."""

    def analyze_measurements(self, measurements: Samples, confidence_level: float = 0.95) -> dict[str, Any]:
        """`mean`, `std`, `confidence_interval`: of all measurements; `…_without_outliers`: of those that remain."""
        if len(measurements) < 2:
            return {"error": "Insufficient measurements for analysis"}
        values = checked(measurements, "measurements")
        summary = summarize(values, confidence_level)
        fences = summary.outliers
        inner = values[(values >= fences.low_fence) & (values <= fences.high_fence)]
        inner_mean, inner_std = mean_and_std(inner)
        spread = _ratio_of(summary.mad, abs(summary.median)) * 100.0
        assert summary.mean_interval is not None
        return {
            "mean": summary.mean,
            "std": summary.std,
            "median": summary.median,
            "mad": summary.mad,
            "cv_percent": summary.cv_percent,
            "robust_cv_percent": spread,
            "min": summary.minimum,
            "max": summary.maximum,
            "p5": summary.p5,
            "p25": summary.p25,
            "p75": summary.p75,
            "p95": summary.p95,
            "p99": summary.p99,
            "confidence_interval": (summary.mean_interval.low, summary.mean_interval.high),
            "median_confidence_interval": (summary.median_interval.low, summary.median_interval.high),
            "median_confidence_level": summary.median_interval.confidence,
            "confidence_level": confidence_level,
            "outliers_count": fences.count,
            "outliers_percent": fences.percent,
            "mean_without_outliers": inner_mean,
            "std_without_outliers": inner_std,
            "is_normal_distribution": None
            if summary.normality is None
            else summary.normality.p_value > self.significance_level,
            "normality_test": None if summary.normality is None else summary.normality.test,
            "normality_p_value": None if summary.normality is None else summary.normality.p_value,
            "lag1_autocorrelation": summary.lag1_autocorrelation,
            "effective_sample_size": summary.effective_count,
            "sample_size": summary.count,
            "is_reliable": spread < self.max_cv_percent and summary.count >= self.min_samples,
        }

    def compare_benchmarks(self, results_a: Samples, results_b: Samples, test_type: str = "auto") -> dict[str, Any]:
        """Tests whether two sets differ. `wilcoxon` takes them as pairs; `auto` chooses among the unpaired tests.

        `cohens_d` has no sign; `cohens_d_signed` is positive where a is larger. The ratio is a / b, by ranks.
        """
        if test_type != "auto" and test_type not in _TESTS:
            raise BenchError(
                f"unknown test type {test_type!r}", hint=f"use 'auto' or one of: {', '.join(map(repr, _TESTS))}"
            )
        if len(results_a) < 2 or len(results_b) < 2:
            return {"error": "Insufficient data for comparison"}
        a, b = checked(results_a, "results_a"), checked(results_b, "results_b")
        chosen = self._choose(a, b) if test_type == "auto" else test_type
        paired = chosen == "wilcoxon"
        if paired and len(a) != len(b):
            raise BenchError(
                f"the Wilcoxon test compares pairs: results_a has {len(a)} values, results_b has {len(b)}",
                hint="use 'mannwhitneyu' for sets that are not pairs",
            )
        name, test = _TESTS[chosen]
        statistic, p_value = test(a, b)
        mean_a, mean_b = mean_and_std(a)[0], mean_and_std(b)[0]
        median_a, median_b = float(np.median(a)), float(np.median(b))
        difference, margin = self._mean_difference(a, b, chosen)
        signed = _cohens_d(a, b)
        robust = _robust(a, b, paired, 1.0 - self.significance_level)
        return {
            "test_type": chosen,
            "test_name": name,
            "statistic": statistic,
            "p_value": p_value,
            "is_significant": p_value < self.significance_level,
            "significance_level": self.significance_level,
            "mean_a": mean_a,
            "mean_b": mean_b,
            "mean_difference": difference,
            "mean_difference_percent": 100.0 * _ratio_of(difference, mean_b),
            "median_a": median_a,
            "median_b": median_b,
            "median_difference": median_a - median_b,
            "median_difference_percent": 100.0 * _ratio_of(median_a - median_b, median_b),
            "cohens_d": abs(signed),
            "cohens_d_signed": signed,
            "effect_size": next((word for limit, word in _EFFECTS if abs(signed) < limit), "large"),
            "cliffs_delta": _dominance(a, b) if robust is None else robust.dominance,
            "ratio": None if robust is None else robust.estimate,
            "ratio_interval": None if robust is None else (robust.interval.low, robust.interval.high),
            "ratio_confidence_level": None if robust is None else robust.log_interval.confidence,
            "confidence_interval_difference": (difference - margin, difference + margin),
            "sample_size_a": len(a),
            "sample_size_b": len(b),
        }

    def detect_performance_regression(
        self,
        baseline_results: Samples,
        current_results: Samples,
        regression_threshold_percent: float = 5.0,
        metric: str = "latency_ms",
        paired: bool = False,
    ) -> dict[str, Any]:
        """Whether the current results are worse by more than the threshold, for sure; `verdict` tells all four cases.

        `performance_change_percent` is positive where the current results are better, whichever way the metric points;
        `metric_change_percent` is that of the figures themselves. Both come from the ratio by ranks.
        """
        found = find_metric(metric)
        comparison = self.compare_benchmarks(current_results, baseline_results, "wilcoxon" if paired else "auto")
        if "error" in comparison:
            return comparison
        change = compare_samples(
            baseline_results,
            current_results,
            found,
            paired=paired,
            confidence=1.0 - self.significance_level,
            threshold=regression_threshold_percent,
        )
        assert change.change_percent is not None
        worse = found.worse_sign * change.change_percent
        severity = {Verdict.IMPROVEMENT: "improvement"}.get(change.verdict, "none")
        if change.verdict is Verdict.REGRESSION:
            severity = next((word for limit, word in _SEVERITIES if abs(worse) <= limit), "severe")
        return {
            **comparison,
            "is_regression": change.verdict is Verdict.REGRESSION,
            "regression_severity": severity,
            "regression_threshold_percent": regression_threshold_percent,
            "performance_change_percent": -worse,
            "metric_change_percent": change.change_percent,
            "metric_change_interval_percent": change.interval_percent,
            "metric": found.name,
            "better": found.better,
            "verdict": change.verdict.value,
            "reason": change.reason,
            "baseline_mean_performance": comparison["mean_b"],
            "current_mean_performance": comparison["mean_a"],
            "baseline_median_performance": comparison["median_b"],
            "current_median_performance": comparison["median_a"],
        }

    def _choose(self, a: Floats, b: Floats) -> str:
        """A t-test where both sets look normal, Welch's where their variances differ, ranks otherwise."""
        tests = normality(a), normality(b)
        if any(test is None or test.p_value <= self.significance_level for test in tests):
            return "mannwhitneyu"
        equal = scipy_stats().levene(*centred(a, b)).pvalue > self.significance_level
        return "ttest_ind" if equal else "ttest_welch"

    def _mean_difference(self, a: Floats, b: Floats, chosen: str) -> tuple[float, float]:
        """The difference of the means and the margin of its interval, by the assumptions of the chosen test."""
        if chosen == "wilcoxon":
            difference, deviation = mean_and_std(a - b)
            error, freedom = (deviation or 0.0) / math.sqrt(len(a)), len(a) - 1.0
        else:
            difference, error, freedom = _t_parts(a, b, pooled=chosen == "ttest_ind")
        quantile = float(scipy_stats().t.ppf(1.0 - self.significance_level / 2.0, freedom))
        return difference, quantile * error


def _t_parts(a: Floats, b: Floats, *, pooled: bool) -> tuple[float, float, float]:
    """The difference of the means, its standard error, and the degrees of freedom."""
    (mean_a, std_a), (mean_b, std_b) = mean_and_std(a), mean_and_std(b)
    # Relative to the larger one, so that squares neither overflow nor vanish.
    scale = max(std_a or 0.0, std_b or 0.0)
    count_a, count_b = len(a), len(b)
    freedom = count_a + count_b - 2.0
    if scale == 0.0:
        return mean_a - mean_b, 0.0, freedom
    square_a, square_b = ((std_a or 0.0) / scale) ** 2, ((std_b or 0.0) / scale) ** 2
    if pooled:
        variance = ((count_a - 1) * square_a + (count_b - 1) * square_b) / freedom * (1.0 / count_a + 1.0 / count_b)
    else:
        part_a, part_b = square_a / count_a, square_b / count_b
        variance = part_a + part_b
        freedom = variance**2 / (part_a**2 / (count_a - 1) + part_b**2 / (count_b - 1))
    return mean_a - mean_b, scale * math.sqrt(variance), freedom


def _t_test(a: Floats, b: Floats, *, pooled: bool) -> tuple[float, float]:
    difference, error, freedom = _t_parts(a, b, pooled=pooled)
    if error == 0.0:
        return (0.0, 1.0) if difference == 0.0 else (math.copysign(math.inf, difference), 0.0)
    statistic = difference / error
    return statistic, 2.0 * float(scipy_stats().t.sf(abs(statistic), freedom))


def _mann_whitney(a: Floats, b: Floats) -> tuple[float, float]:
    if a.min() == a.max() == b.min() == b.max():  # no order at all, and no variance to divide by
        return len(a) * len(b) / 2.0, 1.0
    found = scipy_stats().mannwhitneyu(a, b, alternative="two-sided")
    return float(found.statistic), float(found.pvalue)


def _wilcoxon(a: Floats, b: Floats) -> tuple[float, float]:
    differences = a - b
    if not differences.any():
        return 0.0, 1.0
    found = scipy_stats().wilcoxon(differences)
    return float(found.statistic), float(found.pvalue)


_TESTS: dict[str, tuple[str, Callable[[Floats, Floats], tuple[float, float]]]] = {
    "ttest_ind": ("Independent t-test", lambda a, b: _t_test(a, b, pooled=True)),
    "ttest_welch": ("Welch's t-test", lambda a, b: _t_test(a, b, pooled=False)),
    "mannwhitneyu": ("Mann-Whitney U test", _mann_whitney),
    "wilcoxon": ("Wilcoxon signed-rank test", _wilcoxon),
}


def _cohens_d(a: Floats, b: Floats) -> float:
    """The difference of the means in pooled standard deviations; infinite where there is a difference and no spread."""
    difference, error, _ = _t_parts(a, b, pooled=True)
    return _ratio_of(difference, error) * math.sqrt(1.0 / len(a) + 1.0 / len(b))


def _dominance(a: Floats, b: Floats) -> float:
    """Cliff's delta: the share of pairs in which a is larger, less that in which it is smaller."""
    ordered = np.sort(b)
    smaller, not_larger = (int(np.searchsorted(ordered, a, side=side).sum()) for side in ("left", "right"))
    return (smaller + not_larger) / (len(a) * len(b)) - 1.0


def _robust(a: Floats, b: Floats, paired: bool, confidence: float) -> Ratio | None:
    """a / b by ranks; None where a ratio means nothing, since something is not positive."""
    if a.min() <= 0.0 or b.min() <= 0.0:
        return None
    return (ratio if paired else ratio_unpaired)(b, a, confidence)


def _ratio_of(part: float, whole: float) -> float:
    if part == 0.0:
        return 0.0
    return part / whole if whole != 0.0 else math.copysign(math.inf, part)
