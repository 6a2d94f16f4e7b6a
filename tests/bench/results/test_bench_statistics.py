"""Checks the statistics of the benchmarks against SciPy, by hand, by properties, and by simulated coverage."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.bench.results import rank_laws, statistics
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.statistics import (
    Interval,
    block_medians,
    bootstrap,
    effective_count,
    hodges_lehmann,
    hodges_lehmann_interval,
    mean_interval,
    median_interval,
    normality,
    outliers,
    paired_log_ratios,
    ratio,
    ratio_unpaired,
    scipy_stats,
    summarize,
)

stats: Any = scipy_stats()
KNOWN = [4.1, 3.9, 5.2, 4.4, 4.0, 4.3, 9.7, 4.6, 4.2, 3.8, 4.5, 4.05]
times = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)
pairs = st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=30)


def first_order(random: np.random.Generator, count: int, correlation: float, deviation: float) -> Any:
    """Noise in which each value keeps a share of the one before, from its stationary law."""
    steps = random.normal(size=count) * math.sqrt(1.0 - correlation**2)
    values = np.empty(count)
    last = random.normal()
    for index, step in enumerate(steps):
        last = values[index] = correlation * last + step
    return deviation * values


# Summaries.


def test_a_summary_agrees_with_scipy():
    summary = summarize(KNOWN)
    values = np.array(KNOWN)
    assert summary.count == 12
    assert summary.mean == pytest.approx(values.mean())
    assert summary.std == pytest.approx(values.std(ddof=1))
    assert summary.median == np.median(values)
    assert summary.mad == pytest.approx(stats.median_abs_deviation(values) * 1.4826)
    assert (summary.minimum, summary.maximum) == (3.8, 9.7)
    assert (summary.p5, summary.p25, summary.p75, summary.p95, summary.p99) == tuple(
        np.percentile(values, (5, 25, 75, 95, 99))
    )
    assert summary.cv_percent == pytest.approx(stats.variation(values, ddof=1) * 100)
    low, high = stats.t.interval(0.95, 11, loc=values.mean(), scale=stats.sem(values))
    assert summary.mean_interval is not None
    assert (summary.mean_interval.low, summary.mean_interval.high) == pytest.approx((low, high))
    assert summary.outliers.count == 1
    assert summary.outliers.percent == pytest.approx(100 / 12)
    assert summary.normality is not None
    assert summary.normality.test == "shapiro"
    assert (summary.normality.statistic, summary.normality.p_value) == pytest.approx(tuple(stats.shapiro(values)))


def test_many_samples_are_tested_for_normality_with_real_p_values():
    values = np.random.default_rng(0).normal(size=6000)
    found = normality(values)
    assert found is not None
    assert found.test == "normaltest"
    assert found.p_value == pytest.approx(stats.normaltest(values).pvalue)
    skewed = normality(np.exp(values))
    assert skewed is not None
    assert skewed.p_value < 1e-6


def test_one_two_and_equal_samples_have_summaries():
    one = summarize([3.0])
    assert (one.mean, one.std, one.median, one.mad, one.cv_percent) == (3.0, None, 3.0, 0.0, None)
    assert (one.median_interval, one.mean_interval) == (Interval(3.0, 3.0, 0.0), None)
    two = summarize([1.0, 3.0])
    assert two.std == pytest.approx(math.sqrt(2.0))
    assert two.median_interval == Interval(1.0, 3.0, 0.5)
    assert two.normality is None
    equal = summarize([0.1] * 40)
    assert (equal.mean, equal.std, equal.mad, equal.cv_percent) == (0.1, 0.0, 0.0, 0.0)
    assert equal.normality is None
    assert (equal.outliers.count, equal.effective_count, equal.lag1_autocorrelation) == (0, 40.0, 0.0)


def test_a_mean_of_zero_has_no_relative_spread():
    assert summarize([-1.0, 1.0]).cv_percent == math.inf
    assert summarize([0.0, 0.0]).cv_percent == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_tiny_and_huge_values_neither_overflow_nor_vanish(scale: float):
    plain, scaled = summarize(KNOWN), summarize([scale * value for value in KNOWN])
    assert plain.std is not None
    assert plain.normality is not None
    assert scaled.normality is not None
    assert scaled.mean == pytest.approx(scale * plain.mean)
    assert scaled.std == pytest.approx(scale * plain.std)
    assert scaled.cv_percent == pytest.approx(plain.cv_percent)
    assert scaled.normality.p_value == pytest.approx(plain.normality.p_value)
    assert hodges_lehmann([scale * value for value in KNOWN]) == pytest.approx(scale * hodges_lehmann(KNOWN))


def test_a_ratio_beyond_the_floats_is_infinite_and_keeps_its_logarithm():
    found = ratio([1e-300] * 9, [1e300] * 9)
    assert found.log_estimate == pytest.approx(600 * math.log(10))
    assert found.estimate == math.inf
    assert ratio([1e300] * 9, [1e-300] * 9).estimate == 0.0
    assert ratio_unpaired([1e-300] * 9, [1e300] * 8).log_estimate == pytest.approx(600 * math.log(10))


def test_values_far_apart_keep_their_median():
    summary = summarize([1e-300, 1e300, 2e-300, 1e-300, 1e-300])
    assert summary.median == 1e-300
    assert hodges_lehmann([1e-300, 1e300, 1e-300, 1e-300, 1e-300]) == 1e-300


def test_outliers_lie_beyond_the_fences():
    found = outliers([1.0, 2.0, 3.0, 4.0, 5.0, 100.0, -50.0])
    low, high = np.percentile([1.0, 2.0, 3.0, 4.0, 5.0, 100.0, -50.0], (25, 75))
    assert (found.low_fence, found.high_fence) == (low - 1.5 * (high - low), high + 1.5 * (high - low))
    assert found.count == 2


# What is refused.


@pytest.mark.parametrize("call", [summarize, median_interval, hodges_lehmann, outliers, normality, effective_count])
def test_no_samples_are_refused(call: Any):
    with pytest.raises(BenchError, match="at least one sample"):
        call([])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_named_by_its_index(value: float):
    with pytest.raises(BenchError, match=r"samples\[2\] is .*finite"):
        summarize([1.0, 2.0, value])
    with pytest.raises(BenchError, match=r"b\[1\]"):
        ratio([1.0, 2.0], [1.0, value])
    with pytest.raises(BenchError, match=r"a\[0\]"):
        ratio_unpaired([value], [1.0, 2.0])


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_ratios_of_what_is_not_positive_are_refused(value: float):
    with pytest.raises(BenchError, match=r"a\[1\] is .*positive"):
        ratio([1.0, value], [1.0, 2.0])
    with pytest.raises(BenchError, match=r"b\[0\] is .*positive"):
        ratio_unpaired([1.0, 2.0], [value])


def test_other_senseless_requests_are_refused():
    with pytest.raises(BenchError, match="2 samples, b has 1"):
        paired_log_ratios([1.0, 2.0], [1.0])
    with pytest.raises(BenchError, match="confidence"):
        median_interval([1.0], 1.0)
    with pytest.raises(BenchError, match="confidence"):
        ratio_unpaired([1.0], [2.0], 0.0)
    with pytest.raises(BenchError, match="shape"):
        summarize(np.ones((2, 2)))
    with pytest.raises(BenchError, match="method"):
        bootstrap(KNOWN, np.mean, method="magic")
    with pytest.raises(BenchError, match="resample"):
        bootstrap(KNOWN, np.mean, resamples=0)
    with pytest.raises(BenchError, match="block"):
        block_medians(KNOWN, 0)


# Intervals.


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("count", [3, 6, 7, 12, 40, 300])
def test_the_interval_of_the_median_is_the_quantile_tests(count: int, confidence: float):
    values = np.random.default_rng(count).lognormal(size=count)
    found = median_interval(values, confidence)
    # SciPy's is one-sided twice, and gives nan where the order statistics do not suffice.
    expected = stats.quantile_test(values, q=0.0, p=0.5).confidence_interval(confidence)
    if math.isnan(expected.low) or math.isnan(expected.high):
        assert found.confidence < confidence
        assert (found.low, found.high) == (values.min(), values.max())
    else:
        assert (found.low, found.high) == (expected.low, expected.high)
        assert found.confidence >= confidence


def test_the_confidence_of_a_median_interval_is_the_binomial_one():
    found = median_interval(list(range(10)), 0.95)
    assert (found.low, found.high) == (1.0, 8.0)
    assert found.confidence == pytest.approx(1 - 2 * (1 + 10) / 2**10)


def test_many_samples_use_an_approximation_that_fits_the_exact_law():
    exact = rank_laws.binomial_law(5000)
    approximate = rank_laws.RankLaw(5000, math.sqrt(5000) / 2, None)
    assert abs(exact.left_out(0.99)[0] - approximate.left_out(0.99)[0]) <= 1
    ranked = rank_laws.signed_rank_law(50)
    approximate = rank_laws.RankLaw(ranked.items, ranked.deviation, None)
    # The approximation leaves out less: its tails are the heavier ones.
    assert 0 <= ranked.left_out(0.99)[0] - approximate.left_out(0.99)[0] <= 4


def test_the_median_interval_covers_at_least_as_often_as_it_says():
    random = np.random.default_rng(5)
    for count in (8, 15, 50):
        covered = sum(1.0 in median_interval(random.lognormal(size=count), 0.95) for _ in range(1500))
        assert covered / 1500 > 0.94


def test_hodges_lehmann_by_hand():
    # The means of pairs of 1, 2, 9: 1, 1.5, 2, 5, 5.5, 9.
    assert hodges_lehmann([9.0, 1.0, 2.0]) == 3.5
    assert hodges_lehmann([7.0]) == 7.0
    assert hodges_lehmann_interval([9.0, 1.0, 2.0]) == Interval(1.0, 9.0, 0.75)


@pytest.mark.parametrize("count", [8, 20, 45])
def test_the_signed_rank_interval_leaves_out_what_wilcoxons_test_rejects(count: int):
    values = np.random.default_rng(count).normal(1.0, 2.0, count)
    found = hodges_lehmann_interval(values, 0.95)
    inside, outside = 1e-9, -1e-9
    for end, sign in ((found.low, 1), (found.high, -1)):
        assert stats.wilcoxon(values - (end + sign * inside), method="exact").pvalue > 0.05
        assert stats.wilcoxon(values - (end + sign * outside), method="exact").pvalue <= 0.05


def test_more_than_can_be_listed_is_counted():
    values = np.random.default_rng(2).normal(size=1200)
    listed = np.sort((0.5 * np.add.outer(values, values))[np.triu_indices(1200)])
    assert hodges_lehmann(values) == pytest.approx(float(np.median(listed)), rel=1e-9)
    found = hodges_lehmann_interval(values, 0.99)
    law = rank_laws.signed_rank_law(1200)
    index, _ = law.left_out(0.99)
    assert (found.low, found.high) == pytest.approx((listed[index], listed[-1 - index]), rel=1e-9)
    a, b = np.exp(values), np.exp(values[:50] + 0.3)
    differences = np.sort(np.subtract.outer(np.log(b), np.log(a)).ravel())
    assert ratio_unpaired(a, b).log_estimate == pytest.approx(float(np.median(differences)), rel=1e-9)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_bootstrap_agrees_with_scipys(method: str):
    values = np.random.default_rng(1).lognormal(size=60)
    found = bootstrap(values, np.mean, 0.9, resamples=3000, method=method, seed=4)
    result = stats.bootstrap(
        (values,), np.mean, confidence_level=0.9, n_resamples=3000, method=method, rng=np.random.default_rng(4)
    )
    assert (found.low, found.high) == pytest.approx(tuple(result.confidence_interval), rel=1e-3)


def test_the_bootstrap_is_seeded_and_knows_equal_samples():
    assert bootstrap(KNOWN, np.median, seed=3) == bootstrap(KNOWN, np.median, seed=3)
    assert bootstrap([2.0] * 5, np.mean) == Interval(2.0, 2.0, 0.95)
    assert bootstrap([2.0], np.mean) == Interval(2.0, 2.0, 0.95)
    assert bootstrap([1.0, 2.0], np.max).high == 2.0


# Ratios.


def test_a_paired_ratio_by_hand():
    found = ratio([1.0, 2.0, 4.0], [2.0, 4.0, 8.0])
    assert found.estimate == pytest.approx(2.0)
    assert found.interval.low == pytest.approx(2.0)
    assert found.interval.confidence == pytest.approx(0.75)
    assert found.dominance == 1.0
    assert found.p_value == pytest.approx(0.25)
    single = ratio([1.0], [3.0])
    assert (single.estimate, single.interval.confidence, single.p_value) == (pytest.approx(3.0), 0.0, 1.0)


def test_p_values_are_those_of_scipy_for_independent_samples(monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(8)
    a, b = random.lognormal(size=18), random.lognormal(0.5, size=18)

    def independent(values: Any) -> float:
        return float(len(values))

    monkeypatch.setattr(statistics, "effective_count", independent)
    expected = stats.wilcoxon(np.log(b / a), method="exact").pvalue
    assert ratio(a, b).p_value == pytest.approx(expected)
    expected = stats.mannwhitneyu(a, b[:11], method="exact").pvalue
    assert ratio_unpaired(a, b[:11]).p_value == pytest.approx(expected)
    assert ratio_unpaired(b[:11], a).p_value == pytest.approx(expected)
    a, b = random.lognormal(size=80), random.lognormal(0.2, size=70)
    expected = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert ratio_unpaired(a, b).p_value == pytest.approx(expected, rel=0.05)
    assert ratio(a[:70], b).p_value == pytest.approx(
        stats.wilcoxon(np.log(b / a[:70]), method="asymptotic", correction=True).pvalue, rel=0.05
    )


def test_equal_samples_have_a_ratio_of_exactly_one():
    for found in (ratio([2.0] * 12, [2.0] * 12), ratio_unpaired([2.0] * 12, [2.0] * 9)):
        assert (found.estimate, found.interval.low, found.interval.high) == (1.0, 1.0, 1.0)
        assert (found.p_value, found.dominance) == (1.0, 0.0)


def test_a_spike_does_not_move_the_ratio():
    a = np.full(40, 1.0)
    b = np.full(40, 1.05)
    b[7], a[23] = 1000.0, 500.0
    assert ratio(a, b).estimate == pytest.approx(1.05)
    assert ratio_unpaired(a, b).estimate == pytest.approx(1.05)


@given(pairs, st.floats(1e-6, 1e6))
def test_ratios_do_not_depend_on_the_unit(samples: list[tuple[float, float]], scale: float):
    a, b = map(np.array, zip(*samples, strict=True))
    for compare in (ratio, ratio_unpaired):
        plain, scaled = compare(a, b), compare(scale * a, scale * b)
        assert scaled.log_estimate == pytest.approx(plain.log_estimate, abs=1e-9)
        moved = compare(a, scale * b)
        assert moved.log_estimate == pytest.approx(plain.log_estimate + math.log(scale), abs=1e-9)


@given(pairs)
def test_swapping_the_sides_inverts_a_ratio(samples: list[tuple[float, float]]):
    a, b = map(np.array, zip(*samples, strict=True))
    for compare in (ratio, ratio_unpaired):
        forth, back = compare(a, b), compare(b, a)
        assert forth.log_estimate == pytest.approx(-back.log_estimate, abs=1e-12)
        assert forth.dominance == pytest.approx(-back.dominance)
        assert forth.p_value == pytest.approx(back.p_value)
        assert forth.log_interval.low == pytest.approx(-back.log_interval.high, abs=1e-12)


@given(pairs, st.randoms(use_true_random=False))
def test_estimates_do_not_depend_on_the_order(samples: list[tuple[float, float]], random: Any):
    a, b = zip(*samples, strict=True)
    mixed = random.sample(samples, len(samples))
    c, d = zip(*mixed, strict=True)
    assert ratio(a, b).log_estimate == pytest.approx(ratio(c, d).log_estimate, abs=1e-12)
    assert ratio_unpaired(a, b).log_estimate == ratio_unpaired(c, d).log_estimate
    assert median_interval(a) == median_interval(c)
    assert summarize(a).mad == summarize(c).mad


@given(times, times)
def test_intervals_contain_the_estimate_and_grow_with_the_confidence(a: list[float], b: list[float]):
    made: tuple[tuple[Callable[[float], Interval], float], ...] = (
        (lambda level: median_interval(a, level), float(np.median(a))),
        (lambda level: hodges_lehmann_interval(a, level), hodges_lehmann(a)),
        (lambda level: ratio_unpaired(a, b, level).log_interval, ratio_unpaired(a, b).log_estimate),
        (lambda level: ratio(a, a[::-1], level).log_interval, ratio(a, a[::-1]).log_estimate),
    )
    for interval_of, estimate in made:
        last = None
        for level in (0.5, 0.9, 0.99):
            interval = interval_of(level)
            assert interval.low - 1e-9 <= estimate <= interval.high + 1e-9
            if last is not None and interval.confidence >= level:
                assert interval.low <= last.low + 1e-9
                assert interval.high >= last.high - 1e-9
            last = interval


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_the_interval_of_the_mean_contains_it(values: list[float]):
    found, mean = mean_interval(values), summarize(values).mean
    assert found is not None
    assert mean in found


# Dependence.


def test_dependent_samples_count_less():
    random = np.random.default_rng(0)
    assert effective_count(random.normal(size=2000)) > 1400
    for correlation in (0.3, 0.6, 0.9):
        expected = (1 - correlation) / (1 + correlation)
        found = effective_count(first_order(random, 4000, correlation, 1.0)) / 4000
        assert found == pytest.approx(expected, rel=0.35)
    alternating = np.tile([1.0, 2.0], 50)
    assert effective_count(alternating) == 100.0


def test_a_spike_does_not_hide_dependence():
    values = first_order(np.random.default_rng(3), 500, 0.8, 1.0)
    values[::50] += 1000.0
    assert effective_count(values) < 150


@pytest.mark.acceptance
def test_the_paired_interval_holds_for_dependent_pairs():
    random = np.random.default_rng(12)
    for correlation, allowed in ((0.0, 0.02), (0.6, 0.03)):
        missed = 0
        for _ in range(400):
            logs = first_order(random, 120, correlation, 0.1)
            found = ratio(np.ones(120), np.exp(logs), 0.99).log_interval
            missed += found.confidence >= 0.99 and 0.0 not in found
        assert missed / 400 <= allowed


def test_a_long_drift_leaves_block_medians_to_compare():
    slow = np.linspace(10.0, 11.0, 50)
    found = ratio_unpaired(slow, 1.3 * slow, 0.99)
    assert found.effective_counts[0] < 5
    assert found.interval.confidence >= 0.99
    assert found.estimate == pytest.approx(1.3)
    assert 1.2 < found.interval.low < 1.3 < found.interval.high < 1.4
    assert found.p_value < 0.01


def test_block_medians():
    assert block_medians([1.0, 2.0, 9.0, 4.0, 5.0, 6.0], 2).tolist() == [2.0, 5.0]
    assert block_medians([3.0, 1.0], 10).tolist() == [3.0, 1.0]


def test_importing_the_statistics_does_not_import_scipy():
    text = (
        "import sys, tessera.bench.results.comparison, tessera.bench.results.analysis; "
        "from tessera.bench.results.statistics import ratio; ratio([1.0] * 9, [2.0] * 9); "
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_a_missing_scipy_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(BenchError, match="needs SciPy"):
        mean_interval([1.0, 2.0])
