"""Checks the verdicts: the rule, its direction, false alarms and catches by simulation, and comparisons of runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.bench.results.comparison import (
    METRICS,
    Comparison,
    Sequential,
    Verdict,
    compare_figures,
    compare_runs,
    compare_samples,
    decide,
    find_metric,
)
from tessera.bench.results.definitions import BenchError, BenchmarkConfig
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, BenchmarkSuiteResult, Row
from tessera.bench.results.statistics import Interval

REGRESSION, IMPROVEMENT, SAME, UNDECIDED = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.SAME, Verdict.UNDECIDED
MIRRORED = {REGRESSION: IMPROVEMENT, IMPROVEMENT: REGRESSION, SAME: SAME, UNDECIDED: UNDECIDED}


def log(percent: float) -> float:
    """Percents as ratios, so that -2 undoes 2."""
    return math.copysign(math.log1p(abs(percent) / 100.0), percent)


def ruled(low: float, high: float, metric: str = "latency_ms", estimate: float | None = None) -> Verdict:
    middle = (low + high) / 2 if estimate is None else estimate
    return decide(log(middle), Interval(log(low), log(high), 0.99), metric, 2.0)


# The rule.


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (2.1, 2.9, REGRESSION),
        (20.0, 40.0, REGRESSION),
        (-2.9, -2.1, IMPROVEMENT),
        (-40.0, -20.0, IMPROVEMENT),
        (-1.0, 1.0, SAME),
        (0.5, 2.5, SAME),
        (-4.9, 4.9, SAME),
        (-2.5, -0.5, SAME),
        (1.0, 4.0, UNDECIDED),
        (-4.0, -1.0, UNDECIDED),
        (-6.0, 6.0, UNDECIDED),
        (-1.0, 5.1, UNDECIDED),
        (1.9, 9.0, UNDECIDED),
    ],
)
def test_the_rule(low: float, high: float, verdict: Verdict):
    assert ruled(low, high) is verdict
    assert ruled(low, high, "throughput_ops_per_sec") is MIRRORED[verdict]


def test_an_interval_without_its_confidence_decides_nothing():
    assert decide(log(30), Interval(log(29), log(31), 0.9), "latency_ms") is UNDECIDED
    assert decide(log(30), Interval(log(29), log(31), 0.9), "latency_ms", confidence=0.9) is REGRESSION


def test_a_threshold_can_be_given_and_must_make_sense():
    interval = Interval(log(3), log(4), 0.99)
    assert decide(log(3.5), interval, "latency_ms") is REGRESSION
    assert decide(log(3.5), interval, "latency_ms", 5.0) is SAME
    assert decide(log(3.5), interval, "latency_ms", math.inf) is SAME
    with pytest.raises(BenchError, match="threshold -1"):
        decide(log(3.5), interval, "latency_ms", -1.0)
    with pytest.raises(BenchError, match="threshold nan"):
        decide(log(3.5), interval, "latency_ms", math.nan)


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.sampled_from(sorted(METRICS)))
def test_verdicts_mirror_when_the_sides_or_the_direction_swap(estimate: float, below: float, above: float, name: str):
    metric = METRICS[name]
    other = replace(metric, better="higher" if metric.better == "lower" else "lower")
    forth = decide(estimate, Interval(estimate - below, estimate + above, 0.99), metric)
    assert decide(-estimate, Interval(-estimate - above, -estimate + below, 0.99), metric) is MIRRORED[forth]
    assert decide(estimate, Interval(estimate - below, estimate + above, 0.99), other) is MIRRORED[forth]


@given(st.floats(-0.2, 0.2), st.floats(0, 0.2))
def test_a_precise_interval_is_always_decided_unless_it_is_at_the_threshold(estimate: float, half: float):
    verdict = decide(estimate, Interval(estimate - half, estimate + half, 0.99), "latency_ms", 2.0)
    if half < 0.028 and verdict is UNDECIDED:
        assert abs(abs(estimate) - math.log(1.02)) <= half


def test_the_metrics_are_figures_of_a_row():
    names = {field.name for field in fields(BenchmarkResult)}
    assert set(METRICS) <= names
    assert all(metric.follows is None or metric.follows in METRICS for metric in METRICS.values())
    assert {name for name, metric in METRICS.items() if metric.better == "higher"} == {
        "throughput_ops_per_sec",
        "memory_bandwidth_gbps",
        "compute_utilization_percent",
        "speedup",
        "occupancy_percent",
        "scaling_efficiency_percent",
    }
    with pytest.raises(BenchError, match="unknown metric 'speed'"):
        find_metric("speed")


# Samples.


def noisy(seed: int, count: int = 40, factor: float = 1.0) -> Any:
    return factor * np.random.default_rng(seed).lognormal(0.0, 0.01, count)


@pytest.mark.parametrize("paired", [True, False])
def test_the_direction_depends_on_the_metric(paired: bool):
    slower = compare_samples(noisy(1), noisy(2, factor=1.3), "latency_ms", paired=paired)
    assert slower.verdict is REGRESSION
    assert slower.change_percent is not None
    assert slower.interval_percent is not None
    assert slower.change_percent == pytest.approx(30, abs=2)
    assert slower.interval_percent[0] < slower.change_percent < slower.interval_percent[1]
    assert slower.effect_size == 1.0
    assert slower.p_value is not None
    assert slower.p_value < 0.01
    assert slower.samples == (40, 40)
    assert "worse than the threshold of 2 %" in slower.reason
    faster = compare_samples(noisy(1), noisy(2, factor=1.3), "throughput_ops_per_sec", paired=paired)
    assert faster.verdict is IMPROVEMENT
    assert compare_samples(noisy(1, factor=1.3), noisy(2), "latency_ms", paired=paired).verdict is IMPROVEMENT
    assert compare_samples(noisy(1), noisy(2), "latency_ms", paired=paired).verdict is SAME


def test_too_few_samples_decide_nothing_however_large_the_change():
    for count in (1, 2, 4):
        found = compare_samples([1.0] * count, [9.0] * count, "latency_ms", paired=True)
        assert found.verdict is UNDECIDED
        assert "too few" in found.reason
    assert compare_samples([1.0], [9.0, 9.1], "latency_ms", paired=False).verdict is UNDECIDED
    assert compare_samples([1.0] * 9, [9.0] * 9, "latency_ms", paired=True).verdict is REGRESSION


def test_wide_intervals_say_what_they_leave_open():
    random = np.random.default_rng(0)
    found = compare_samples(random.lognormal(0, 0.3, 20), random.lognormal(0, 0.3, 20), "latency_ms", paired=True)
    assert found.verdict is UNDECIDED
    assert "%" in found.reason


def test_samples_that_are_no_times_are_refused():
    with pytest.raises(BenchError, match="at least one"):
        compare_samples([], [1.0], "latency_ms", paired=False)
    with pytest.raises(BenchError, match=r"b\[0\] is nan"):
        compare_samples([1.0], [math.nan], "latency_ms", paired=True)
    with pytest.raises(BenchError, match=r"a\[1\] is -1"):
        compare_samples([1.0, -1.0], [1.0, 1.0], "latency_ms", paired=True)


@pytest.mark.parametrize(
    ("metric", "before", "after", "verdict"),
    [
        ("registers_per_thread", 32, 32, SAME),
        ("registers_per_thread", 32, 64, REGRESSION),
        ("shared_memory_per_block", 0, 49152, REGRESSION),
        ("shared_memory_per_block", 0, 0, SAME),
        ("occupancy_percent", 50.0, 100.0, IMPROVEMENT),
        ("compilation_time_ms", 100.0, 140.0, SAME),
        ("compilation_time_ms", 100.0, 165.0, UNDECIDED),
        ("compilation_time_ms", 100.0, 300.0, REGRESSION),
        ("compilation_time_ms", 0.01, 0.5, SAME),
        ("numerical_accuracy", 1e-7, 1.5e-7, SAME),
        ("numerical_accuracy", 1e-7, 1e-5, REGRESSION),
        ("numerical_accuracy", 0.0, 0.0, SAME),
        ("throughput_ops_per_sec", 1e9, 0.7e9, REGRESSION),
        ("throughput_ops_per_sec", 1e9, 1.3e9, IMPROVEMENT),
        ("peak_memory_mb", 100.0, 200.0, REGRESSION),
    ],
)
def test_single_figures(metric: str, before: float, after: float, verdict: Verdict):
    found = compare_figures(before, after, metric)
    assert found.verdict is verdict
    assert (found.baseline, found.current, found.samples, found.p_value) == (before, after, (1, 1), None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_single_figures_that_are_none_are_refused(value: float):
    with pytest.raises(BenchError, match="current latency_ms"):
        compare_figures(1.0, value, "latency_ms")


# Looking while measuring.


def test_looks_are_fixed_beforehand_and_share_the_error():
    sequential = Sequential(first=10, growth=2.0, looks=3)
    assert sequential.schedule == (10, 20, 40)
    assert sequential.last_confidence == pytest.approx(1 - 0.01 / 2)
    assert sequential.look_confidence == pytest.approx(1 - 0.01 / 6)
    assert sequential.next_look == 10
    sequential.add(1.0, 2.0)
    assert sequential.verdict() is UNDECIDED
    sequential.add([1.0] * 8, [2.0] * 8)
    assert not sequential.done(100)
    assert sequential.next_look == 10
    sequential.add([1.0] * 5, [2.0] * 5)
    assert sequential.done(100)
    assert sequential.next_look is None
    assert sequential.result().verdict is REGRESSION


def test_the_first_decision_is_final():
    sequential = Sequential()
    sequential.add([1.0] * 32, [2.0] * 32)
    assert sequential.verdict() is REGRESSION
    sequential.add([2.0] * 1000, [1.0] * 1000)
    assert sequential.verdict() is REGRESSION
    assert sequential.result().samples == (32, 32)


def test_the_end_gets_one_last_look_and_no_more():
    sequential = Sequential(first=100)
    sequential.add([1.0] * 50, [2.0] * 50)
    assert sequential.done(50)
    assert sequential.verdict() is UNDECIDED
    assert sequential.result().verdict is REGRESSION
    sequential = Sequential(first=100)
    sequential.add([1.0] * 3, [2.0] * 3)
    assert sequential.result().verdict is UNDECIDED
    sequential.add([1.0] * 500, [2.0] * 500)
    assert sequential.result().verdict is UNDECIDED


def test_one_batch_gets_one_look_and_spent_looks_end_it():
    random = np.random.default_rng(1)
    sequential = Sequential(first=4, growth=2.0, looks=3)
    sequential.add(random.lognormal(0, 1, 9), random.lognormal(0, 1, 9))
    assert sequential.verdict() is UNDECIDED
    assert sequential.next_look == 16
    sequential.add(random.lognormal(0, 1, 9), random.lognormal(0, 1, 9))
    assert sequential.done(10**6)
    assert sequential.verdict() is UNDECIDED


def test_senseless_pairs_and_schedules_are_refused():
    with pytest.raises(BenchError, match="equal counts: 2 of the baseline, 1"):
        Sequential().add([1.0, 2.0], [1.0])
    with pytest.raises(BenchError, match=r"current\[0\] is nan"):
        Sequential().add(1.0, math.nan)
    with pytest.raises(BenchError, match=r"baseline\[0\] is 0\.0"):
        Sequential().add(0.0, 1.0)
    with pytest.raises(BenchError, match="grow by more than 1"):
        Sequential(growth=1.0)
    with pytest.raises(BenchError, match="at least one sample"):
        Sequential().result()


def simulated(trials: int, factor: float, correlation: float, budget: int, seed: int) -> list[Verdict]:
    """Verdicts on a machine with a drift that both sides share, noise of their own that lingers, and spikes.

    The noise of a pair has a deviation of 10 %.
    """
    random = np.random.default_rng(seed)
    noise = random.normal(size=(budget, 3, trials))
    noise[1:] *= math.sqrt(1.0 - correlation**2)
    for index in range(1, budget):
        noise[index] += correlation * noise[index - 1]
    shared, own = 0.1 * noise[:, :1], 0.1 / math.sqrt(2.0) * noise[:, 1:]
    spikes = np.where(random.random(own.shape) < 0.05, random.lognormal(0.0, 1.0, own.shape), 0.0)
    times = np.exp(shared + own) * (1.0 + spikes)
    times[:, 1] *= factor
    return [looked_at(times[:, 0, trial], times[:, 1, trial]) for trial in range(trials)]


def looked_at(baseline: Any, current: Any) -> Verdict:
    sequential, taken = Sequential(), 0
    while not sequential.done(len(baseline)):
        due = min(sequential.next_look or len(baseline), len(baseline))
        sequential.add(baseline[taken:due], current[taken:due])
        taken = due
    return sequential.result().verdict


@pytest.mark.acceptance
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_equal_code_raises_no_alarm(correlation: float):
    found = simulated(500, 1.0, correlation, 500, seed=2024)
    assert found.count(REGRESSION) + found.count(IMPROVEMENT) <= 5
    assert found.count(UNDECIDED) <= 25


@pytest.mark.quick(correlation=[0.0])
@pytest.mark.parametrize(("correlation", "budget"), [(0.0, 700), (0.3, 1200)])
def test_a_slowdown_of_five_percent_is_caught(correlation: float, budget: int):
    found = simulated(120, 1.05, correlation, budget, seed=7)
    assert found.count(REGRESSION) >= 114
    assert found.count(SAME) <= 1
    assert found.count(IMPROVEMENT) == 0


@pytest.mark.acceptance
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.8])
def test_a_thousand_comparisons_of_equal_code_raise_at_most_ten_alarms(correlation: float):
    found = simulated(1000, 1.0, correlation, 600, seed=99)
    assert found.count(REGRESSION) + found.count(IMPROVEMENT) <= 10


# Runs.


def result(
    name: str = "gemm", factor: float = 1.0, seed: int = 0, drift: float = 1.0, marks: bool = True, **figures: Any
) -> BenchmarkResult:
    """A row whose machine is slower by `drift`, and whose code is slower by `factor`."""
    random = np.random.default_rng(seed)
    state = drift * random.lognormal(0.0, 0.01, 100)
    samples = factor * state * random.lognormal(0.0, 0.01, 100)
    return BenchmarkResult(
        name,
        {"m": 64},
        latency_ms=float(np.median(samples)),
        samples_ms=samples.tolist(),
        yardstick_ms=(0.1 * state).tolist() if marks else [],
        **figures,
    )


def suite(*rows: Row, **environment: Any) -> BenchmarkSuiteResult:
    made = BenchmarkSuiteResult(environment=environment)
    made.extend(rows)
    return made


def verdicts(comparison: Comparison, metric: str = "latency_ms") -> list[Verdict]:
    return [change.verdict for change in comparison.changes if change.metric == metric]


@pytest.mark.parametrize(
    ("factor", "verdict", "code"),
    [(1.0, SAME, 0), (1.3, REGRESSION, 4), (1 / 1.3, IMPROVEMENT, 0), (1.06, REGRESSION, 4), (1.03, UNDECIDED, 0)],
)
def test_rows_of_two_runs(factor: float, verdict: Verdict, code: int):
    found = compare_runs(suite(result(seed=1)), suite(result(seed=2, factor=factor)))
    assert verdicts(found) == [verdict]
    assert (found.worst, found.exit_code) == (verdict, code)
    assert found.changes[0].key == result().key
    assert (found.missing, found.new, found.notes) == ((), (), ())


@pytest.mark.acceptance
def test_equal_code_in_drifting_runs_raises_no_alarm():
    random = np.random.default_rng(3)
    alarms = 0
    for seed in range(300):
        drift = float(random.lognormal(0.0, 0.1))
        found = compare_runs(suite(result(seed=2 * seed)), suite(result(seed=2 * seed + 1, drift=drift)))
        alarms += found.worst in (REGRESSION, IMPROVEMENT)
    assert alarms == 0


def test_a_slower_machine_is_no_regression_and_is_told():
    found = compare_runs(suite(result(seed=1)), suite(result(seed=2, drift=1.2)))
    change = found.changes[0]
    assert change.verdict is UNDECIDED
    assert change.change_percent == pytest.approx(0, abs=1)
    assert change.interval_percent is not None
    assert change.interval_percent[0] < 0
    assert change.interval_percent[1] > 20
    assert "+2" in change.reason.split("before the yardstick")[0]
    # Slower code on a slower machine is one, since both views agree.
    assert verdicts(compare_runs(suite(result(seed=1)), suite(result(seed=2, drift=1.2, factor=1.3)))) == [REGRESSION]


@pytest.mark.parametrize("marks", [[], [0.1] * 99, [0.1] * 99 + [0.0], [0.1] * 99 + [math.nan]])
def test_a_yardstick_that_is_not_there_is_not_used(marks: Sequence[float]):
    after = result(seed=2)
    after.yardstick_ms = list(marks)
    assert "without a yardstick" in compare_runs(suite(result(seed=1)), suite(after)).changes[0].reason


def test_yardsticks_of_other_kinds_are_not_used():
    found = compare_runs(suite(result(seed=1), yardstick="a"), suite(result(seed=2, drift=1.2), yardstick="b"))
    assert "without a yardstick" in found.changes[0].reason
    assert "environment: yardstick: a → b" in found.notes


def test_what_runs_differ_by_is_a_parameter():
    before, after = suite(result(seed=1)), suite(result(seed=2, factor=1.04))
    assert compare_runs(before, after).worst is UNDECIDED
    assert compare_runs(before, after, between_runs_percent=0.0).worst is REGRESSION
    assert compare_runs(before, after, {"latency_ms": 10.0}).worst is SAME
    with pytest.raises(BenchError, match="unknown metric"):
        compare_runs(before, after, {"speed": 10.0})
    with pytest.raises(BenchError, match="between_runs_percent"):
        compare_runs(before, after, between_runs_percent=-1.0)


def test_other_figures_are_compared_once():
    before = result(seed=1, compilation_time_ms=50.0, memory_bandwidth_gbps=10.0, energy_joules=1.0, launch_us=None)
    after = result(seed=2, compilation_time_ms=500.0, memory_bandwidth_gbps=5.0, launch_us=1.0)
    found = compare_runs(suite(before), suite(after))
    assert verdicts(found, "compilation_time_ms") == [REGRESSION]
    assert verdicts(found, "memory_bandwidth_gbps") == []  # it is the latency by another name
    assert found.exit_code == 4
    assert set(found.notes) == {"energy_joules: only in the baseline run", "launch_us: only in the current run"}


def test_without_samples_the_figure_is_compared():
    before, after = result(), result(factor=1.5)
    before.samples_ms, after.samples_ms = [], []
    assert verdicts(compare_runs(suite(before), suite(after))) == [REGRESSION]
    after.latency_ms = None
    assert verdicts(compare_runs(suite(before), suite(after))) == []


def test_few_samples_that_differ_much_stay_open():
    before, after = result(), result(factor=1.5)
    before.samples_ms, after.samples_ms = [1.0, 1.1], [1.5, 1.6]
    assert verdicts(compare_runs(suite(before), suite(after))) == [UNDECIDED]


def failure(kind: str = "crash") -> BenchmarkError:
    return BenchmarkError(
        "it broke", kind, benchmark_name="gemm", problem_size={"m": 64}, precision="f32", implementation="tessera"
    )


def invalid() -> BenchmarkResult:
    made = result()
    made.add_error("wrong by 7 %")
    return made


def test_a_row_that_fails_now_is_a_regression():
    assert failure().key == result().key
    for row, text in ((failure(), "failed now: crash: it broke"), (invalid(), "failed now: wrong by 7 %")):
        found = compare_runs(suite(result()), suite(row))
        assert (found.worst, found.exit_code, found.changes[0].reason) == (REGRESSION, 4, text)
        back = compare_runs(suite(row), suite(result()))
        assert (back.worst, back.exit_code) == (IMPROVEMENT, 0)
    both = compare_runs(suite(failure()), suite(invalid()))
    assert both.changes == ()
    assert f"{failure().key}: failed in both runs: wrong by 7 %" in both.notes


@pytest.mark.parametrize("kind", ["skipped", "interrupted"])
def test_what_was_not_measured_has_not_failed(kind: str):
    found = compare_runs(suite(result()), suite(failure(kind)))
    assert (found.missing, found.exit_code, found.worst) == ((result().key,), 0, UNDECIDED)
    assert any("not measured now" in note for note in found.notes)
    back = compare_runs(suite(failure(kind)), suite(result()))
    assert (back.new, back.changes) == ((result().key,), ())
    assert compare_runs(suite(failure(kind)), suite(failure(kind))).new == ()


def test_rows_of_one_run_only_are_listed():
    current = suite(result(), result("new"), replace(failure(), benchmark_name="broken"))
    current.interrupted = True
    found = compare_runs(suite(result(), result("old")), current)
    assert found.missing == (result("old").key,)
    assert found.new == (result("new").key, replace(failure(), benchmark_name="broken").key)
    assert any("new, and has no figures: crash" in note for note in found.notes)
    assert "the current run was interrupted" in found.notes


def test_runs_without_a_common_row_are_not_fine():
    found = compare_runs(suite(), suite())
    assert (found.worst, found.exit_code) == (UNDECIDED, 0)
    assert found.notes == ("no row has figures in both runs",)


def test_differences_of_the_environment_and_configuration_are_noted():
    before = suite(
        result(config=BenchmarkConfig()), processor="A", caches={"L2": 1, "L1": 2}, affinity=(0, 1), date="x"
    )
    after = suite(
        result(config=BenchmarkConfig(cold=True)),
        processor="B",
        caches={"L2": 3, "L1": 2},
        affinity=[0, 1],
        date="y",
        jax="1",
    )
    assert set(compare_runs(before, after).notes) == {
        "environment: processor: A → B",
        "environment: caches.L2: 1 → 3",
        "environment: jax: not known → 1",
        "configuration: cold: False → True",
    }


def test_a_comparison_can_be_written_as_json():
    found = compare_runs(suite(result(), result("old")), suite(result(factor=1.3), failure("skipped"), result("new")))
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(text) == {"worst", "exit_code", "changes", "missing", "new", "notes"}
    found = compare_runs(suite(result()), suite(result(factor=1.3)))
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (text["worst"], text["changes"][0]["verdict"], text["exit_code"]) == ("regression", "regression", 4)


def test_bad_samples_are_named_with_their_row():
    after = result()
    after.samples_ms[3] = math.nan
    with pytest.raises(BenchError, match=r"current gemm/.*samples_ms\[3\] is nan"):
        compare_runs(suite(result()), suite(after))


@pytest.mark.parametrize(
    ("metric", "before", "after"), [("throughput_ops_per_sec", 2e9, 1e9), ("compilation_time_ms", 100.0, 200.0)]
)
def test_a_single_figure_of_a_machine_that_became_slower_is_no_regression(
    metric: str, before: float, after: float
) -> None:
    assert compare_figures(before, after, metric).verdict is Verdict.REGRESSION
    assert compare_figures(before, after, metric, drift=math.log(2.0)).verdict is Verdict.UNDECIDED
    # What does not depend on the machine's speed is not excused by it.
    assert compare_figures(1e-7, 1e-5, "numerical_accuracy", drift=math.log(100.0)).verdict is Verdict.REGRESSION
