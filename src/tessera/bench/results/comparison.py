"""Verdicts: whether a figure became worse, better, or stayed, with a statistical and a practical threshold.

The rule, for the change in the metric's bad direction, its threshold T (2 % of a latency) and its limit L = 2.5 T:

- REGRESSION: the whole interval lies beyond T. Even at its better end the change is worse than the threshold.
- IMPROVEMENT: the same on the other side.
- SAME: the estimate lies within ±T and the whole interval within ±L. What changed, if anything, is less than L.
- UNDECIDED: everything else; more samples decide it.

So the interval [0.5 %, 2.5 %] around 1.5 % is SAME: nothing beyond 2 % is shown, and 5 % is ruled out. [1 %, 4 %]
around 2.5 % is UNDECIDED: it looks like more than the threshold, and may be less. [2.1 %, 2.9 %] is a REGRESSION. Equal
code is called a regression only when its interval misses 0 by the whole threshold; a change of L or more is called SAME
only when its interval misses the truth. Changes between T and L may get either verdict, or stay UNDECIDED while the
estimate is near T. Percents are ratios: 2 % worse is 1.02 times, 2 % better is 1 / 1.02, so swapping the two runs
swaps the verdict.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import SKIPPED, BenchmarkError, BenchmarkResult, BenchmarkSuiteResult, Row
from tessera.bench.results.statistics import Interval, Ratio, Samples, checked, ratio, ratio_unpaired

VERDICT_CONFIDENCE = 0.99
LIMIT = 2.5
"""Of thresholds: the change that SAME rules out."""
BETWEEN_RUNS_PERCENT = 2.0
REGRESSION_EXIT_CODE = 4
_OUTCOME = "outcome"
"""Stands for the metric where a row failed in one of the runs."""
_VOLATILE = {"date", "seed", "unavailable"}
"""Differs from run to run and says nothing about the machine."""
_SETTINGS = ("cold", "autotuning_enabled", "ir_optimization_levels", "precision_policies")
"""Of a configuration: those that change what is timed."""


class Verdict(enum.Enum):
    """The outcome of a comparison of one metric with its baseline."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a row, and what a change of it means."""

    name: str
    unit: str
    better: Literal["lower", "higher"]
    threshold_percent: float
    """Smaller changes do not matter in practice."""
    single_percent: float
    """How far two measurements of equal code may lie apart, where a run has one figure and no samples."""
    floor: float = 0.0
    """Figures below this count as this: they are as good as zero."""
    follows: str | None = None
    """The metric that this one is computed from: a change of that is not told twice."""
    drift: int = 0
    """How the metric changes on a slower machine: 1 for times, -1 for rates, 0 for no change."""

    @property
    def worse_sign(self) -> float:
        return 1.0 if self.better == "lower" else -1.0


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("latency_ms", "ms", "lower", 2.0, 10.0, 1e-6),
        Metric("throughput_ops_per_sec", "FLOP/s", "higher", 2.0, 25.0, 1.0, follows="latency_ms", drift=-1),
        Metric("memory_bandwidth_gbps", "GB/s", "higher", 2.0, 10.0, 1e-6, follows="latency_ms"),
        Metric("compute_utilization_percent", "%", "higher", 2.0, 10.0, 1e-6, follows="latency_ms"),
        Metric("speedup", "×", "higher", 2.0, 10.0, 1e-6, follows="latency_ms"),
        Metric("energy_joules", "J", "lower", 5.0, 10.0, 1e-9),
        Metric("peak_memory_mb", "MB", "lower", 5.0, 10.0, 1.0),
        Metric("registers_per_thread", "registers", "lower", 5.0, 0.0, 1.0),
        Metric("shared_memory_per_block", "bytes", "lower", 5.0, 0.0, 1.0),
        Metric("occupancy_percent", "%", "higher", 5.0, 0.0, 0.1),
        Metric("compilation_time_ms", "ms", "lower", 10.0, 60.0, 1.0, drift=1),
        Metric("ir_optimization_time_ms", "ms", "lower", 10.0, 50.0, 1.0, follows="compilation_time_ms"),
        Metric("autotuning_time_ms", "ms", "lower", 10.0, 100.0, 10.0, drift=1),
        Metric("host_overhead_us", "µs", "lower", 10.0, 60.0, 0.1, drift=1),
        Metric("launch_us", "µs", "lower", 10.0, 50.0, 0.1),
        Metric("kernel_ms", "ms", "lower", 2.0, 10.0, 1e-6),
        # A factor of two: inputs differ between runs, and with them the rounding.
        Metric("numerical_accuracy", "relative error", "lower", 100.0, 50.0, 1e-16),
        Metric("scaling_efficiency_percent", "%", "higher", 5.0, 5.0, 0.1),
    )
}


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one metric of one row. Positive percents mean that the figure grew, be that good or bad."""

    metric: str
    baseline: float | None
    """The median of the samples, or the figure; None where that run has none."""
    current: float | None
    change_percent: float | None
    interval_percent: tuple[float, float] | None
    verdict: Verdict
    p_value: float | None
    effect_size: float | None
    """Cliff's delta: 1 when every current sample is larger (than its neighbour, if paired), -1 when each is smaller."""
    samples: tuple[int, int]
    reason: str
    key: str = ""
    """The row's, in a comparison of runs."""
    confidence: float | None = None
    """Of the interval."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.value}


def find_metric(metric: str | Metric) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if metric not in METRICS:
        raise BenchError(f"unknown metric {metric!r}", hint=f"known are: {', '.join(METRICS)}")
    return METRICS[metric]


def decide(
    log_estimate: float,
    log_interval: Interval,
    metric: str | Metric,
    threshold: float | None = None,
    *,
    confidence: float = VERDICT_CONFIDENCE,
) -> Verdict:
    """The rule at the top of this file, on log(current / baseline); the threshold is in percent.

    An interval that has not the confidence asked for decides nothing.
    """
    metric = find_metric(metric)
    threshold = _threshold(metric, threshold)
    if log_interval.confidence < confidence:
        return Verdict.UNDECIDED
    ends = metric.worse_sign * log_interval.low, metric.worse_sign * log_interval.high
    low, high = min(ends), max(ends)
    beyond = math.log1p(threshold / 100.0)
    limit = math.log1p(LIMIT * threshold / 100.0)
    if low > beyond:
        return Verdict.REGRESSION
    if high < -beyond:
        return Verdict.IMPROVEMENT
    if abs(log_estimate) <= beyond and -limit <= low and high <= limit:
        return Verdict.SAME
    return Verdict.UNDECIDED


def compare_samples(
    baseline: Samples,
    current: Samples,
    metric: str | Metric,
    *,
    paired: bool,
    confidence: float = VERDICT_CONFIDENCE,
    threshold: float | None = None,
) -> Change:
    """Compares samples of one metric; paired ones were measured as neighbours, so that both saw the same machine."""
    found = (ratio if paired else ratio_unpaired)(baseline, current, confidence)
    return change_of(found, baseline, current, metric, confidence=confidence, threshold=threshold)


def change_of(
    found: Ratio,
    baseline: Samples,
    current: Samples,
    metric: str | Metric,
    *,
    confidence: float = VERDICT_CONFIDENCE,
    threshold: float | None = None,
    remark: str = "",
) -> Change:
    """The change that a ratio of samples amounts to; the remark is added to the reason."""
    metric = find_metric(metric)
    threshold = _threshold(metric, threshold)
    verdict = decide(found.log_estimate, found.log_interval, metric, threshold, confidence=confidence)
    reason = _reason(verdict, found.log_estimate, found.log_interval, metric, threshold, confidence)
    interval = found.log_interval
    return Change(
        metric=metric.name,
        baseline=float(np.median(checked(baseline, "baseline"))),
        current=float(np.median(checked(current, "current"))),
        change_percent=percent(found.log_estimate),
        interval_percent=(percent(interval.low), percent(interval.high)),
        verdict=verdict,
        p_value=found.p_value,
        effect_size=found.dominance,
        samples=found.counts,
        reason=f"{reason}; {remark}" if remark else reason,
        confidence=interval.confidence,
    )


def compare_figures(
    baseline: float, current: float, metric: str | Metric, threshold: float | None = None, drift: float = 0.0
) -> Change:
    """Compares two single figures; what equal code may differ by (`Metric.single_percent`) makes up the interval.

    `drift` is how much slower the machine became, as a logarithm: the interval covers the change with and without it.
    There are no more samples to ask for, so SAME is what lies within that, or within the threshold.
    """
    metric = find_metric(metric)
    threshold = _threshold(metric, threshold)
    for name, value in (("baseline", baseline), ("current", current)):
        if not math.isfinite(value) or value < 0.0:
            raise BenchError(
                f"{name} {metric.name} is {value}: expected a finite number, not negative", hint="measure again"
            )
    floor = metric.floor or 5e-324
    estimate = math.log(max(current, floor)) - math.log(max(baseline, floor))
    spread = math.log1p(metric.single_percent / 100.0)
    ends = estimate, estimate - metric.drift * drift
    interval = Interval(min(ends) - spread, max(ends) + spread, 1.0)
    verdict = decide(estimate, interval, metric, threshold)
    if verdict is Verdict.UNDECIDED and abs(estimate) <= max(spread, math.log1p(threshold / 100.0)):
        verdict = Verdict.SAME
    reason = _reason(verdict, estimate, interval, metric, threshold, 1.0)
    return Change(
        metric=metric.name,
        baseline=float(baseline),
        current=float(current),
        change_percent=percent(estimate),
        interval_percent=(percent(interval.low), percent(interval.high)),
        verdict=verdict,
        p_value=None,
        effect_size=None,
        samples=(1, 1),
        reason=f"{reason}; one figure per run, said to repeat within {metric.single_percent:g} %",
    )


class Sequential:
    """Decides on pairs as they come in, and stops early without more false alarms.

    Looking again and again until something shows finds something in noise. So the looks are fixed before the first
    pair: after `first` pairs and then after `growth` times as many each time, `looks` in all, and one more at the end.
    The last one has half of the error that the confidence allows, the others share the other half equally. So all of
    them together stay below it, however much the looks depend on each other (Bonferroni's bound). Early looks see
    large changes, later ones small ones; much fewer than 32 pairs do not show whether they depend on each other. The
    first look that decides is final.
    """

    def __init__(
        self,
        metric: str | Metric = "latency_ms",
        *,
        confidence: float = VERDICT_CONFIDENCE,
        threshold: float | None = None,
        first: int = 32,
        growth: float = 1.5,
        looks: int = 10,
    ) -> None:
        if first < 1 or growth <= 1.0 or looks < 1:
            raise BenchError(
                f"looks after {first} pairs and then {growth} times as many, {looks} times",
                hint="start with 1 pair or more, grow by more than 1, and look at least once",
            )
        self.metric = find_metric(metric)
        self.threshold = _threshold(self.metric, threshold)
        self.confidence = confidence
        self.last_confidence = 1.0 - (1.0 - confidence) / 2.0
        self.look_confidence = 1.0 - (1.0 - confidence) / (2.0 * looks)
        self.schedule = tuple(math.ceil(first * growth**look) for look in range(looks))
        self._baseline: list[float] = []
        self._current: list[float] = []
        self._looked = 0
        self._closed = False
        self._change: Change | None = None

    @property
    def count(self) -> int:
        return len(self._baseline)

    @property
    def next_look(self) -> int | None:
        """How many pairs there have to be for the next look; None: decided, or all looks are spent."""
        if self._closed or self._decided or self._looked == len(self.schedule):
            return None
        return self.schedule[self._looked]

    def add(self, baseline: float | Iterable[float], current: float | Iterable[float]) -> None:
        """Takes in one pair, or as many as both have."""
        first = [baseline] if isinstance(baseline, (int, float)) else list(baseline)
        second = [current] if isinstance(current, (int, float)) else list(current)
        if len(first) != len(second):
            raise BenchError(
                f"pairs need equal counts: {len(first)} of the baseline, {len(second)} of the current one",
                hint="add both sides of each pair",
            )
        if first:
            checked(first, "baseline", positive=True)
            checked(second, "current", positive=True)
        self._baseline += first
        self._current += second

    def verdict(self) -> Verdict:
        """The verdict of the latest look that was due."""
        due = self.next_look
        if due is not None and self.count >= due:
            # Pairs that came in one batch get one look, however many they passed.
            self._looked = sum(1 for count in self.schedule if count <= self.count)
            self._look(self.look_confidence)
        return Verdict.UNDECIDED if self._change is None else self._change.verdict

    def done(self, budget: int) -> bool:
        """Whether measuring can stop: decided, `budget` pairs are in, or all looks are spent."""
        return self.verdict() is not Verdict.UNDECIDED or self.count >= budget or self.next_look is None

    def result(self) -> Change:
        """The end: what the look that decided saw, else one last look at all pairs. Later pairs change nothing."""
        self.verdict()
        if not self._closed and not self._decided:
            self._look(self.last_confidence)
        self._closed = True
        assert self._change is not None
        return self._change

    @property
    def _decided(self) -> bool:
        return self._change is not None and self._change.verdict is not Verdict.UNDECIDED

    def _look(self, confidence: float) -> None:
        self._change = compare_samples(
            self._baseline, self._current, self.metric, paired=True, confidence=confidence, threshold=self.threshold
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side: what became of every row that both have, and what cannot be compared."""

    changes: tuple[Change, ...]
    missing: tuple[str, ...]
    """Rows that only the baseline has figures of."""
    new: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def worst(self) -> Verdict:
        """The one to act on. Nothing compared is nothing decided."""
        order = (Verdict.REGRESSION, Verdict.UNDECIDED, Verdict.SAME, Verdict.IMPROVEMENT)
        return min((change.verdict for change in self.changes), key=order.index, default=Verdict.UNDECIDED)

    @property
    def exit_code(self) -> int:
        return REGRESSION_EXIT_CODE if self.worst is Verdict.REGRESSION else 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "worst": self.worst.value,
            "exit_code": self.exit_code,
            "changes": [change.to_dict() for change in self.changes],
            "missing": list(self.missing),
            "new": list(self.new),
            "notes": list(self.notes),
        }


def compare_runs(
    baseline: BenchmarkSuiteResult,
    current: BenchmarkSuiteResult,
    thresholds: Mapping[str, float] | None = None,
    *,
    between_runs_percent: float = BETWEEN_RUNS_PERCENT,
    confidence: float = VERDICT_CONFIDENCE,
) -> Comparison:
    """Compares runs made at different times, row by row. Thresholds are in percent, by metric.

    The samples of two runs are no pairs: the machine may have changed in between. So for latencies
    - the estimate is of samples over their yardsticks, where both runs have the same yardstick beside every sample;
    - the interval reaches over that of the plain samples as well, since a row may feel less of the change than the
      yardstick does: a verdict needs both to agree;
    - the interval is widened on both sides by `between_runs_percent`: two processes with equal code differ by about
      that much, from where their memory lies, and no number of samples within them shows it.
    The confidence is each row's own. Figures computed from others that are compared are left out.
    """
    limits = {
        find_metric(name).name: _threshold(find_metric(name), value) for name, value in (thresholds or {}).items()
    }
    if not between_runs_percent >= 0.0:
        raise BenchError(f"between_runs_percent {between_runs_percent}: expected 0 or more", hint="2 means 2 %")
    made = _Runs(limits, math.log1p(between_runs_percent / 100.0), confidence)
    made.notes.extend(f"environment: {line}" for line in _differences(baseline.environment, current.environment))
    made.same_yardstick = baseline.environment.get("yardstick") == current.environment.get("yardstick")
    made.notes.extend(
        f"the {name} run was interrupted"
        for name, run in (("baseline", baseline), ("current", current))
        if run.interrupted
    )
    for key, row in baseline.results.items():
        made.compare(key, row, current.results.get(key))
    for key, row in current.results.items():
        if key not in baseline.results:
            made.add_new(key, row)
    if not made.changes:
        made.notes.append("no row has figures in both runs")
    return Comparison(tuple(made.changes), tuple(made.missing), tuple(made.new), tuple(dict.fromkeys(made.notes)))


class _Runs:
    """The findings of a comparison of runs so far."""

    def __init__(self, thresholds: Mapping[str, float], between: float, confidence: float) -> None:
        self.thresholds = thresholds
        self.between = between
        self.confidence = confidence
        self.same_yardstick = True
        self.changes: list[Change] = []
        self.missing: list[str] = []
        self.new: list[str] = []
        self.notes: list[str] = []

    def compare(self, key: str, before: Row, after: Row | None) -> None:
        was, now = _failure(before), None if after is None else _failure(after)
        if _is_open(before):
            if after is not None and not _is_open(after):
                self.add_new(key, after)
        elif after is None or _is_open(after):
            self.missing.append(key)
            if now:
                self.notes.append(f"{key}: not measured now: {now}")
        elif was and now:
            self.notes.append(f"{key}: failed in both runs: {now}")
        elif now:
            self._outcome(key, Verdict.REGRESSION, f"failed now: {now}")
        elif was:
            self._outcome(key, Verdict.IMPROVEMENT, f"failed before: {was}")
        else:
            assert isinstance(before, BenchmarkResult)
            assert isinstance(after, BenchmarkResult)
            self._figures(key, before, after)

    def add_new(self, key: str, row: Row) -> None:
        self.new.append(key)
        if failure := _failure(row):
            self.notes.append(f"{key}: new, and has no figures: {failure}")

    def _outcome(self, key: str, verdict: Verdict, reason: str) -> None:
        self.changes.append(Change(_OUTCOME, None, None, None, None, verdict, None, None, (0, 0), reason, key))

    def _figures(self, key: str, before: BenchmarkResult, after: BenchmarkResult) -> None:
        if before.config is not None and after.config is not None:
            pairs = ((name, getattr(before.config, name), getattr(after.config, name)) for name in _SETTINGS)
            self.notes.extend(f"configuration: {name}: {a} → {b}" for name, a, b in pairs if _plain(a) != _plain(b))
        compared: set[str] = set()
        for metric in METRICS.values():
            threshold = self.thresholds.get(metric.name)
            first, second = getattr(before, metric.name), getattr(after, metric.name)
            if metric.follows in compared:
                continue
            if metric.name == "latency_ms" and before.samples_ms and after.samples_ms:
                change = self._latency(key, before, after, threshold)
            elif first is not None and second is not None:
                change = compare_figures(first, second, metric, threshold, self._drift(before, after))
            else:
                if (first is None) != (second is None):
                    self.notes.append(f"{metric.name}: only in the {'current' if first is None else 'baseline'} run")
                continue
            compared.add(metric.name)
            self.changes.append(replace(change, key=key))

    def _drift(self, before: BenchmarkResult, after: BenchmarkResult) -> float:
        """How much slower the machine was for the second row, by the yardstick; 0 where there is none."""
        if not (self.same_yardstick and before.yardstick_ms and after.yardstick_ms):
            return 0.0
        return math.log(float(np.median(after.yardstick_ms))) - math.log(float(np.median(before.yardstick_ms)))

    def _latency(self, key: str, before: BenchmarkResult, after: BenchmarkResult, threshold: float | None) -> Change:
        first = checked(before.samples_ms, f"baseline {key}: samples_ms", positive=True)
        second = checked(after.samples_ms, f"current {key}: samples_ms", positive=True)
        plain = ratio_unpaired(first, second, self.confidence)
        found, remark = plain, "without a yardstick"
        if self.same_yardstick and _has_yardsticks(before) and _has_yardsticks(after):
            marks = np.array(before.yardstick_ms), np.array(after.yardstick_ms)
            scaled = ratio_unpaired(first / marks[0], second / marks[1], self.confidence)
            both = plain.log_interval, scaled.log_interval
            hull = Interval(
                min(one.low for one in both), max(one.high for one in both), min(one.confidence for one in both)
            )
            found = replace(scaled, log_interval=hull, p_value=max(plain.p_value, scaled.p_value))
            remark = (
                f"{percent(plain.log_estimate):+.2f} % before the yardstick is taken into account, "
                f"which changed by {percent(self._drift(before, after)):+.2f} %"
            )
        interval = found.log_interval
        widened = replace(interval, low=interval.low - self.between, high=interval.high + self.between)
        found = replace(found, log_interval=widened)
        return change_of(
            found, first, second, "latency_ms", confidence=self.confidence, threshold=threshold, remark=remark
        )


def _failure(row: Row) -> str | None:
    """Why a row has no figures that count; None: it has."""
    if isinstance(row, BenchmarkError):
        return f"{row.error_type}: {row.error_message}"
    return None if row.is_valid() else "; ".join(row.errors)


def _is_open(row: Row) -> bool:
    """Neither succeeded nor failed."""
    return isinstance(row, BenchmarkError) and row.error_type in (SKIPPED, "interrupted")


def _has_yardsticks(row: BenchmarkResult) -> bool:
    marks = np.asarray(row.yardstick_ms, dtype=np.float64)
    return len(marks) == len(row.samples_ms) and bool((np.isfinite(marks) & (marks > 0.0)).all())


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """`name: before → after`, for everything that is not equal; what is nested gets a dotted name."""
    for name in dict.fromkeys((*before, *after)):
        first, second = _plain(before.get(name)), _plain(after.get(name))
        if isinstance(first, dict) and isinstance(second, dict):
            nested = cast("tuple[dict[str, Any], dict[str, Any]]", (first, second))
            yield from _differences(*nested, f"{prefix}{name}.")
        elif first != second and name not in _VOLATILE:
            yield f"{prefix}{name}: {_shown(first)} → {_shown(second)}"


def _plain(value: Any) -> Any:
    """As it comes back from a file, where tuples are lists."""
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return "not known" if value is None else str(value)


def percent(log_ratio: float) -> float:
    """A log ratio as a change in percent."""
    return 100.0 * math.expm1(log_ratio) if log_ratio < 700.0 else math.inf


def _threshold(metric: Metric, threshold: float | None) -> float:
    threshold = metric.threshold_percent if threshold is None else threshold
    if not threshold >= 0.0:
        raise BenchError(f"threshold {threshold} %: expected a number, not negative", hint="2 means 2 %")
    return threshold


def _reason(
    verdict: Verdict, log_estimate: float, interval: Interval, metric: Metric, threshold: float, confidence: float
) -> str:
    """The verdict in words, with the numbers that led to it."""
    seen = f"{percent(log_estimate):+.2f} % ({percent(interval.low):+.2f} % to {percent(interval.high):+.2f} %)"
    if interval.confidence < confidence:
        return (
            f"{seen}: too few independent samples, the widest interval has a confidence of "
            f"{100.0 * interval.confidence:.4g} %, asked for are {100.0 * confidence:.4g} %"
        )
    match verdict:
        case Verdict.REGRESSION:
            return f"{seen}: worse than the threshold of {threshold:g} % throughout"
        case Verdict.IMPROVEMENT:
            return f"{seen}: better by more than the threshold of {threshold:g} % throughout"
        case Verdict.SAME:
            return f"{seen}: nothing beyond the threshold of {threshold:g} % is shown"
        case Verdict.UNDECIDED:
            if abs(log_estimate) <= math.log1p(threshold / 100.0):
                return f"{seen}: a change of {LIMIT * threshold:g} % is not ruled out"
            looks = "worse" if log_estimate * metric.worse_sign > 0.0 else "better"
            return f"{seen}: it looks {looks}, and may be within the threshold of {threshold:g} %"
