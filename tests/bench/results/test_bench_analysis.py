"""Checks the analysis engine: the specification's keys, agreement with SciPy, and the errors that it corrects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.bench.results.analysis import AnalysisEngine
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.statistics import scipy_stats

stats: Any = scipy_stats()
engine = AnalysisEngine()
random = np.random.default_rng(17)
NORMAL, SHIFTED = random.normal(10.0, 0.2, 40), random.normal(10.3, 0.2, 35)
WIDE, SKEWED = random.normal(10.0, 2.0, 40), random.lognormal(2.3, 0.5, 40)

ANALYSIS_KEYS = {
    "mean",
    "std",
    "median",
    "cv_percent",
    "min",
    "max",
    "confidence_interval",
    "confidence_level",
    "outliers_count",
    "outliers_percent",
    "is_normal_distribution",
    "normality_test",
    "normality_p_value",
    "sample_size",
    "is_reliable",
}
COMPARISON_KEYS = {
    "test_name",
    "statistic",
    "p_value",
    "is_significant",
    "significance_level",
    "mean_a",
    "mean_b",
    "mean_difference",
    "mean_difference_percent",
    "cohens_d",
    "effect_size",
    "confidence_interval_difference",
    "sample_size_a",
    "sample_size_b",
}
REGRESSION_KEYS = {
    "is_regression",
    "regression_severity",
    "regression_threshold_percent",
    "performance_change_percent",
    "baseline_mean_performance",
    "current_mean_performance",
}


def test_the_engine_has_the_attributes_of_the_specification():
    assert (engine.significance_level, engine.min_samples, engine.max_cv_percent) == (0.05, 30, 10.0)


# One set.


def test_an_analysis_agrees_with_scipy():
    found = engine.analyze_measurements(NORMAL.tolist(), 0.9)
    assert set(found) >= ANALYSIS_KEYS
    assert found["mean"] == pytest.approx(NORMAL.mean())
    assert found["std"] == pytest.approx(NORMAL.std(ddof=1))
    assert found["confidence_interval"] == pytest.approx(
        stats.t.interval(0.9, 39, loc=NORMAL.mean(), scale=stats.sem(NORMAL))
    )
    assert found["normality_test"] == "shapiro"
    assert found["normality_p_value"] == pytest.approx(stats.shapiro(NORMAL).pvalue)
    assert found["is_normal_distribution"] is True
    assert found["is_reliable"] is True
    assert (found["sample_size"], found["confidence_level"]) == (40, 0.9)


def test_outliers_are_counted_and_not_removed_in_silence():
    values = [*NORMAL.tolist(), 100.0, 120.0, 130.0]
    found = engine.analyze_measurements(values)
    assert found["outliers_count"] == 3
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["max"] == 130.0
    assert found["mean_without_outliers"] == pytest.approx(NORMAL.mean())
    assert found["std_without_outliers"] == pytest.approx(NORMAL.std(ddof=1))
    assert found["sample_size"] == 43
    # Three spikes do not make the median less known.
    assert found["cv_percent"] > 100
    assert found["is_reliable"] is True


def test_spread_or_few_measurements_are_not_reliable():
    assert engine.analyze_measurements(WIDE)["is_reliable"] is False
    assert engine.analyze_measurements(NORMAL[:29])["is_reliable"] is False
    careful = AnalysisEngine()
    careful.min_samples, careful.max_cv_percent = 10, 50.0
    assert careful.analyze_measurements(WIDE)["is_reliable"] is True


def test_skewed_measurements_are_not_normal():
    assert engine.analyze_measurements(SKEWED)["is_normal_distribution"] is False
    equal = engine.analyze_measurements([1.0] * 30)
    assert (equal["is_normal_distribution"], equal["normality_p_value"], equal["std"]) == (None, None, 0.0)


def test_too_little_is_answered_and_nonsense_is_refused():
    for values in ([], [1.0]):
        assert set(engine.analyze_measurements(values)) == {"error"}
    assert engine.analyze_measurements([1.0, 2.0])["median"] == 1.5
    with pytest.raises(BenchError, match=r"measurements\[1\] is nan"):
        engine.analyze_measurements([1.0, math.nan])


# Two sets.


@pytest.mark.parametrize(
    ("test_type", "expected"),
    [
        ("ttest_ind", stats.ttest_ind(NORMAL, SHIFTED)),
        ("ttest_welch", stats.ttest_ind(NORMAL, SHIFTED, equal_var=False)),
        ("mannwhitneyu", stats.mannwhitneyu(NORMAL, SHIFTED)),
    ],
)
def test_the_tests_are_scipys(test_type: str, expected: Any):
    found = engine.compare_benchmarks(NORMAL, SHIFTED, test_type)
    assert set(found) >= COMPARISON_KEYS
    assert (found["statistic"], found["p_value"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert found["is_significant"] is True
    assert found["test_type"] == test_type


def test_the_paired_test_is_scipys():
    a, b = NORMAL[:35], SHIFTED
    found = engine.compare_benchmarks(a, b, "wilcoxon")
    expected = stats.wilcoxon(a, b)
    assert (found["statistic"], found["p_value"]) == pytest.approx((expected.statistic, expected.pvalue))
    interval = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert found["confidence_interval_difference"] == pytest.approx((interval.low, interval.high))
    with pytest.raises(BenchError, match="40 values, results_b has 35"):
        engine.compare_benchmarks(NORMAL, SHIFTED, "wilcoxon")


@pytest.mark.parametrize(("test_type", "equal"), [("ttest_ind", True), ("ttest_welch", False)])
def test_the_interval_of_the_difference_is_the_tests_own(test_type: str, equal: bool):
    found = engine.compare_benchmarks(NORMAL, WIDE, test_type)
    expected = stats.ttest_ind(NORMAL, WIDE, equal_var=equal).confidence_interval(0.95)
    assert found["confidence_interval_difference"] == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("a", "b", "chosen"),
    [
        (NORMAL, SHIFTED, "ttest_ind"),
        (NORMAL, WIDE, "ttest_welch"),
        (NORMAL, SKEWED, "mannwhitneyu"),
        (SKEWED, NORMAL, "mannwhitneyu"),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "mannwhitneyu"),
        ([1.0, 2.0], [3.0, 4.0], "mannwhitneyu"),
    ],
)
def test_auto_chooses_by_normality_and_variance(a: Any, b: Any, chosen: str):
    assert engine.compare_benchmarks(a, b)["test_type"] == chosen


def test_cohens_d_is_absolute_and_its_sign_is_kept():
    pooled = math.sqrt((39 * NORMAL.var(ddof=1) + 34 * SHIFTED.var(ddof=1)) / 73)
    expected = (NORMAL.mean() - SHIFTED.mean()) / pooled
    forth, back = engine.compare_benchmarks(NORMAL, SHIFTED), engine.compare_benchmarks(SHIFTED, NORMAL)
    assert forth["cohens_d"] == back["cohens_d"] == pytest.approx(abs(expected))
    assert forth["cohens_d_signed"] == pytest.approx(expected)
    assert back["cohens_d_signed"] == pytest.approx(-expected)
    assert forth["effect_size"] == back["effect_size"] == "large"
    assert engine.compare_benchmarks(NORMAL, NORMAL + 0.05)["effect_size"] == "small"
    assert engine.compare_benchmarks(NORMAL, NORMAL + 0.001)["effect_size"] == "negligible"
    assert engine.compare_benchmarks(NORMAL + 0.12, NORMAL)["effect_size"] == "medium"


def test_the_ratio_is_robust():
    found = engine.compare_benchmarks([*(1.1 * NORMAL), 5000.0], NORMAL)
    assert found["ratio"] == pytest.approx(1.1, rel=0.01)
    assert found["ratio_interval"][0] < 1.1 < found["ratio_interval"][1]
    assert found["mean_difference_percent"] > 1000
    assert found["median_difference_percent"] == pytest.approx(10, abs=1)
    none = engine.compare_benchmarks(NORMAL - 10.0, SHIFTED)
    assert (none["ratio"], none["ratio_interval"]) == (None, None)
    assert none["cliffs_delta"] == -1.0
    assert engine.compare_benchmarks(SHIFTED, NORMAL - 10.0)["cliffs_delta"] == 1.0


@pytest.mark.parametrize("test_type", ["auto", "ttest_ind", "ttest_welch", "mannwhitneyu", "wilcoxon"])
def test_sets_without_spread_are_compared(test_type: str):
    same = engine.compare_benchmarks([2.0] * 6, [2.0] * 6, test_type)
    assert (same["p_value"], same["is_significant"], same["cohens_d"]) == (1.0, False, 0.0)
    other = engine.compare_benchmarks([2.0] * 6, [3.0] * 6, test_type)
    assert other["p_value"] < 0.05
    assert other["cohens_d"] == math.inf
    assert other["effect_size"] == "large"
    assert other["cohens_d_signed"] == -math.inf
    one = engine.compare_benchmarks([2.0] * 6, [2.0, 3.0, 3.1, 3.2, 3.3, 3.4], test_type)
    assert 0.0 < one["p_value"] < 1.0


@pytest.mark.parametrize("test_type", ["auto", "ttest_ind", "ttest_welch", "mannwhitneyu", "wilcoxon"])
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_the_unit_does_not_matter(scale: float, test_type: str):
    a, b = NORMAL[:35], SHIFTED
    plain, scaled = (
        engine.compare_benchmarks(a, b, test_type),
        engine.compare_benchmarks(scale * a, scale * b, test_type),
    )
    for key in ("p_value", "cohens_d", "ratio", "mean_difference_percent"):
        assert scaled[key] == pytest.approx(plain[key], rel=1e-6)


def test_tied_and_short_sets_are_compared():
    found = engine.compare_benchmarks([1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 2.0, 2.0], "wilcoxon")
    assert 0.0 < found["p_value"] <= 1.0
    assert engine.compare_benchmarks([0.0, 0.0], [0.0, 0.0])["mean_difference_percent"] == 0.0
    assert engine.compare_benchmarks([1.0, 1.0], [0.0, 0.0])["mean_difference_percent"] == math.inf


def test_unknown_tests_are_refused_and_too_little_is_answered():
    with pytest.raises(BenchError, match="unknown test type 'anova'"):
        engine.compare_benchmarks(NORMAL, SHIFTED, "anova")
    assert set(engine.compare_benchmarks([1.0], NORMAL)) == {"error"}
    assert set(engine.compare_benchmarks([], [])) == {"error"}
    assert set(engine.detect_performance_regression([1.0], [1.0])) == {"error"}


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_swapping_the_sets_keeps_the_p_value(a: list[float], b: list[float]):
    forth, back = engine.compare_benchmarks(a, b), engine.compare_benchmarks(b, a)
    assert forth["test_type"] == back["test_type"]
    assert forth["p_value"] == pytest.approx(back["p_value"], abs=1e-9)
    assert forth["cohens_d"] == pytest.approx(back["cohens_d"])
    assert 0.0 <= forth["p_value"] <= 1.0


# Regressions.


@pytest.mark.parametrize("paired", [False, True])
def test_the_direction_is_the_metrics(paired: bool):
    slower = engine.detect_performance_regression(NORMAL, 1.3 * NORMAL[::-1], paired=paired)
    assert set(slower) >= COMPARISON_KEYS | REGRESSION_KEYS
    assert slower["is_regression"] is True
    assert slower["regression_severity"] == "severe"
    assert slower["performance_change_percent"] == pytest.approx(-30, abs=1)
    assert slower["metric_change_percent"] == pytest.approx(30, abs=1)
    assert slower["baseline_mean_performance"] == pytest.approx(NORMAL.mean())
    assert slower["current_mean_performance"] == pytest.approx(1.3 * NORMAL.mean())
    more = engine.detect_performance_regression(
        NORMAL, 1.3 * NORMAL[::-1], metric="throughput_ops_per_sec", paired=paired
    )
    assert (more["is_regression"], more["regression_severity"]) == (False, "improvement")
    assert more["performance_change_percent"] == pytest.approx(30, abs=1)
    less = engine.detect_performance_regression(
        1.3 * NORMAL, NORMAL[::-1], metric="throughput_ops_per_sec", paired=paired
    )
    assert less["is_regression"] is True
    faster = engine.detect_performance_regression(1.3 * NORMAL, NORMAL[::-1], paired=paired)
    assert (faster["is_regression"], faster["verdict"]) == (False, "improvement")


@pytest.mark.parametrize(
    ("factor", "severity"), [(1.0, "none"), (1.03, "none"), (1.08, "mild"), (1.15, "moderate"), (1.3, "severe")]
)
def test_severity(factor: float, severity: str):
    found = engine.detect_performance_regression(NORMAL, factor * NORMAL)
    assert found["regression_severity"] == severity
    assert found["is_regression"] is (severity != "none")


def test_the_threshold_is_held_for_sure():
    assert engine.detect_performance_regression(NORMAL, 1.08 * NORMAL, 10.0)["is_regression"] is False
    assert engine.detect_performance_regression(NORMAL, 1.03 * NORMAL, 1.0)["is_regression"] is True
    # Significant, and beyond the threshold on average only by a few spikes.
    spiked = NORMAL.copy()
    spiked[:3] *= 10.0
    found = engine.detect_performance_regression(NORMAL, spiked)
    assert found["mean_difference_percent"] > 50
    assert found["is_regression"] is False


def test_senseless_regressions_are_refused():
    with pytest.raises(BenchError, match="unknown metric"):
        engine.detect_performance_regression(NORMAL, NORMAL, metric="speed")
    with pytest.raises(BenchError, match="positive"):
        engine.detect_performance_regression(NORMAL, NORMAL - 10.0)
    with pytest.raises(BenchError, match="threshold"):
        engine.detect_performance_regression(NORMAL, NORMAL, -1.0)
