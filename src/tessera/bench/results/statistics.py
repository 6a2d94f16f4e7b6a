"""Statistics of samples: summaries, intervals without assumptions on the distribution, and ratios of two samples.

Times are skewed, have spikes, and neighbours resemble each other. So the intervals here are of medians, by ranks, and
they widen when the samples depend on each other. Means and t intervals are given beside them, for those who ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from tessera.bench.results.definitions import BenchError
from tessera.bench.results.rank_laws import (
    Dependence,
    Floats,
    binomial_law,
    differences_at_most,
    mann_whitney_law,
    means_at_most,
    ranked_differences,
    ranked_means,
    signed_rank_law,
)

Samples = Sequence[float] | Floats

_NORMAL = NormalDist()
MAD_SCALE = 1.4826
"""Makes the median absolute deviation of normal samples their standard deviation."""
_SHAPIRO_LIMIT = 5000
_BLOCKS = 10
"""Enough for a confidence of 99.99 %, few enough to hold many samples each."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval, and the confidence that it really has: below the one asked for when samples are too few."""

    low: float
    high: float
    confidence: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Outliers:
    """Samples beyond the fences: 1.5 interquartile ranges outside the quartiles."""

    count: int
    percent: float
    low_fence: float
    high_fence: float


@dataclass(frozen=True, slots=True)
class Normality:
    """How likely samples of a normal distribution look at least this odd."""

    test: str
    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of one sample. Those that a single value does not have (the spread) are None."""

    count: int
    mean: float
    std: float | None
    median: float
    mad: float
    minimum: float
    maximum: float
    p5: float
    p25: float
    p75: float
    p95: float
    p99: float
    cv_percent: float | None
    median_interval: Interval
    mean_interval: Interval | None
    outliers: Outliers
    normality: Normality | None
    """None: fewer than three samples, or all equal."""
    lag1_autocorrelation: float
    """Of the ranks, so that spikes do not hide it."""
    effective_count: float
    """How many independent samples would say as much about the median."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times larger `b` is than `a`; kept as a logarithm, so that swapping the two only changes the sign."""

    log_estimate: float
    log_interval: Interval
    p_value: float
    """Of no change, two-sided, by the same ranks as the interval: the interval leaves out 1 where this is small."""
    dominance: float
    """Cliff's delta, from -1 (every b is below its a) to 1 (every b is above)."""
    counts: tuple[int, int]
    effective_counts: tuple[float, float]

    @property
    def estimate(self) -> float:
        return _exp(self.log_estimate)

    @property
    def interval(self) -> Interval:
        low, high = self.log_interval.low, self.log_interval.high
        return Interval(_exp(low), _exp(high), self.log_interval.confidence)


def checked(samples: Samples, name: str = "samples", *, positive: bool = False) -> Floats:
    """The samples as an array; refuses none at all, what is not finite and, for ratios, what is not positive."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1:
        raise BenchError(f"{name}: expected a list of numbers, got an array of shape {values.shape}", hint="flatten it")
    if values.size == 0:
        raise BenchError(f"{name}: expected at least one sample, got none", hint="measure first")
    bad = ~np.isfinite(values)
    if bad.any():
        index = int(np.argmax(bad))
        raise BenchError(
            f"{name}[{index}] is {float(values[index])}: expected a finite number",
            hint="find out what the measurement went wrong on; a sample that failed is no sample",
        )
    if positive and (values <= 0.0).any():
        index = int(np.argmax(values <= 0.0))
        raise BenchError(
            f"{name}[{index}] is {float(values[index])}: expected a positive number, since ratios are compared",
            hint="a time of zero means that the clock is too coarse: repeat the call more often in each sample",
        )
    return values


def summarize(samples: Samples, confidence: float = 0.95) -> Summary:
    values = checked(samples)
    count = len(values)
    mean, std = mean_and_std(values)
    median = _median(values)
    lag1, effective = _correlation(values)
    return Summary(
        count=count,
        mean=mean,
        std=std,
        median=median,
        mad=MAD_SCALE * _median(np.abs(values - median)),
        minimum=float(values.min()),
        maximum=float(values.max()),
        **{f"p{percent}": float(np.percentile(values, percent)) for percent in (5, 25, 75, 95, 99)},
        cv_percent=None if std is None else _percent_of(std, mean),
        median_interval=median_interval(values, confidence),
        mean_interval=mean_interval(values, confidence),
        outliers=outliers(values),
        normality=normality(values),
        lag1_autocorrelation=lag1,
        effective_count=effective,
    )


def mean_and_std(values: Floats) -> tuple[float, float | None]:
    """Computed on values scaled to at most 1, whose squares neither overflow nor vanish. One value has no spread."""
    exponent = _exponent(values)
    scaled = np.ldexp(values, -exponent)
    mean = float(scaled.mean())
    if values.min() == values.max():  # the sum rounds; equal samples have no spread
        return float(values[0]), None if len(values) == 1 else 0.0
    return math.ldexp(mean, exponent), math.ldexp(float(scaled.std(ddof=1)), exponent)


def outliers(samples: Samples) -> Outliers:
    """Tukey's rule. They are counted, and never removed without a word."""
    values = checked(samples)
    low, high = (float(value) for value in np.percentile(values, (25, 75)))
    reach = 1.5 * (high - low)
    count = int(np.count_nonzero((values < low - reach) | (values > high + reach)))
    return Outliers(count, 100.0 * count / len(values), low - reach, high + reach)


def normality(samples: Samples) -> Normality | None:
    """Shapiro–Wilk, whose p-values hold up to 5000 samples; D'Agostino–Pearson above.

    SciPy's Anderson–Darling p-values come from a table that ends at 0.01 and 0.15, so it is not used.
    """
    values = checked(samples)
    if len(values) < 3 or values.min() == values.max():
        return None
    stats = scipy_stats()
    name, test = ("shapiro", stats.shapiro) if len(values) <= _SHAPIRO_LIMIT else ("normaltest", stats.normaltest)
    found = test(centred(values))
    return Normality(name, float(found.statistic), float(found.pvalue))


def mean_interval(samples: Samples, confidence: float = 0.95) -> Interval | None:
    """Student's. One sample has none."""
    values = checked(samples)
    _check_confidence(confidence)
    mean, std = mean_and_std(values)
    if std is None:
        return None
    reach = float(scipy_stats().t.ppf(0.5 + confidence / 2.0, len(values) - 1)) * (std / math.sqrt(len(values)))
    return Interval(mean - reach, mean + reach, confidence)


def median_interval(samples: Samples, confidence: float = 0.95) -> Interval:
    """Between two order statistics: holds for every distribution of independent samples. Exact up to 5000 samples.

    Where even the smallest and the largest sample are not enough, they are given, with the confidence they have.
    """
    values = np.sort(checked(samples))
    left_out, reached = binomial_law(len(values)).left_out(_check_confidence(confidence))
    return Interval(float(values[left_out]), float(values[-1 - left_out]), reached)


def hodges_lehmann(samples: Samples) -> float:
    """The median of the means of all pairs: nearly as precise as the mean on normal samples, and deaf to spikes."""
    values = np.sort(checked(samples))
    items = len(values) * (len(values) + 1) // 2
    low, high = ranked_means(values, ((items - 1) // 2, items // 2))
    return 0.5 * low + 0.5 * high


def hodges_lehmann_interval(
    samples: Samples, confidence: float = 0.95, effective_count: float | None = None
) -> Interval:
    """By Wilcoxon's signed ranks, for samples symmetric about their middle. Exact up to 50 samples.

    With an `effective_count` below the count, it widens as `Dependence` says.
    """
    values = np.sort(checked(samples))
    law = signed_rank_law(len(values))
    left_out, reached = law.left_out(_check_confidence(confidence), _dependence_of(len(values), effective_count))
    low, high = ranked_means(values, (left_out, law.items - 1 - left_out))
    return Interval(low, high, reached)


def bootstrap(
    samples: Samples,
    statistic: Callable[[Floats], float],
    confidence: float = 0.95,
    *,
    resamples: int = 2000,
    method: str = "bca",
    seed: int = 0,
) -> Interval:
    """Of any statistic, by drawing samples again: plain (`percentile`), or corrected for bias and skew (`bca`).

    For independent samples. Drawing again cannot show what a few samples do not hold: below 20, prefer the exact ones.
    """
    values = checked(samples)
    _check_confidence(confidence)
    if method not in ("bca", "percentile"):
        raise BenchError(f"bootstrap method {method!r}: expected 'bca' or 'percentile'", hint="name one of the two")
    if resamples < 1:
        raise BenchError(f"expected at least one resample, got {resamples}", hint="1000 and more are usual")
    estimate = float(statistic(values))
    drawn = np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    found = np.array([statistic(values[row]) for row in drawn], dtype=np.float64)
    levels = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    if method == "bca":
        levels = _bca_levels(values, statistic, estimate, found, levels)
    low, high = (float(value) for value in np.quantile(found, levels))
    return Interval(low, high, confidence)


def paired_log_ratios(a: Samples, b: Samples) -> Floats:
    """log(b / a) of samples taken as neighbours, without forming quotients that overflow."""
    first, second = checked(a, "a", positive=True), checked(b, "b", positive=True)
    if len(first) != len(second):
        raise BenchError(
            f"pairs need equal counts: a has {len(first)} samples, b has {len(second)}",
            hint="compare them unpaired, or keep only the pairs that were measured as neighbours",
        )
    return np.log(second) - np.log(first)


def ratio(a: Samples, b: Samples, confidence: float = 0.95) -> Ratio:
    """b / a from pairs of neighbours: the Hodges–Lehmann estimate of the log ratios and its signed-rank interval.

    When both sides have the same noise, the log ratio is symmetric about the change, which is what signed ranks need.
    Pairs that resemble their neighbours (a slow drift, a busy spell) say less than independent ones: the interval is
    widened by √(pairs / effective pairs) and a little more, see `Dependence`. The effective count comes from the
    autocorrelation of the ranks, which decides how far this estimate strays. Negative ones never narrow it.
    """
    logs = paired_log_ratios(a, b)
    count = len(logs)
    effective = effective_count(logs)
    ordered = np.sort(logs)
    law = signed_rank_law(count)
    at_most_zero = means_at_most(ordered, 0.0, "right")
    at_least_zero = law.items - means_at_most(ordered, 0.0, "left")
    return Ratio(
        hodges_lehmann(ordered),
        hodges_lehmann_interval(ordered, confidence, effective),
        law.p_value(min(at_most_zero, at_least_zero), _dependence_of(count, effective)),
        float(np.sign(logs).mean()),
        (count, count),
        (effective, effective),
    )


def ratio_unpaired(a: Samples, b: Samples, confidence: float = 0.95) -> Ratio:
    """b / a of separate samples: the median of all log ratios between the two, and its Mann–Whitney interval.

    Holds when the two differ by a factor and not in shape. Widened for autocorrelation as in `ratio`, each side by its
    own effective count. A side whose effective count is below ten takes part with the medians of ten blocks of
    neighbours instead; up to ten samples, dependence cannot be told and is not assumed. No interval within two runs
    shows how far the machine changed between them.
    """
    first = np.log(checked(a, "a", positive=True))
    second = np.log(checked(b, "b", positive=True))
    _check_confidence(confidence)
    effective = effective_count(first), effective_count(second)
    ordered = np.sort(first), np.sort(second)
    items = len(first) * len(second)
    middle = ranked_differences(*ordered, ((items - 1) // 2, items // 2))
    estimate = 0.5 * middle[0] + 0.5 * middle[1]
    at_most_zero = differences_at_most(*ordered, 0.0, "right")
    below_zero = differences_at_most(*ordered, 0.0, "left")
    interval, p_value = _mann_whitney(_steady(first, effective[0]), _steady(second, effective[1]), confidence)
    return Ratio(
        estimate,
        # Medians of blocks need not have the same middle.
        Interval(min(interval.low, estimate), max(interval.high, estimate), interval.confidence),
        p_value,
        (items - at_most_zero - below_zero) / items,
        (len(first), len(second)),
        effective,
    )


def block_medians(samples: Samples, count: int) -> Floats:
    """The medians of `count` blocks of neighbours, nearly equal in length; the samples themselves if they are fewer."""
    values = checked(samples)
    if count < 1:
        raise BenchError(f"expected at least one block, got {count}", hint="10 are usual")
    return np.array([_median(block) for block in np.array_split(values, min(count, len(values)))])


def effective_count(samples: Samples) -> float:
    """How many independent samples would say as much about the middle; at most as many as there are."""
    return _correlation(checked(samples))[1]


def centred(*groups: Floats) -> Any:
    """The samples moved to their common median and scaled to at most 1: tests that compare them do not see it.

    Gives one array for one sample, else a list.
    """
    everything = np.concatenate(groups)
    exponent = _exponent(everything)
    moved = [np.ldexp(group, -exponent) for group in groups]
    middle = _median(np.concatenate(moved))
    reach = max(float(np.abs(group - middle).max()) for group in moved) or 1.0
    moved = [(group - middle) / reach for group in moved]
    return moved[0] if len(moved) == 1 else moved


def scipy_stats() -> Any:
    """SciPy is large, and only some of the figures need it."""
    try:
        from scipy import stats
    except ImportError as error:
        raise BenchError(
            "this figure needs SciPy, which is not installed", hint="pip install 'tessera-lang[bench]'"
        ) from error
    return stats


def _steady(values: Floats, effective: float) -> tuple[Floats, float]:
    """The values of a sample, or medians of blocks of them, in order, and how many independent ones they are."""
    if effective < _BLOCKS:
        values = block_medians(values, _BLOCKS)
        effective = float(len(values))
    return np.sort(values), effective


def _mann_whitney(
    first: tuple[Floats, float], second: tuple[Floats, float], confidence: float
) -> tuple[Interval, float]:
    """The interval of second minus first, and the p-value of no difference."""
    (left, left_effective), (right, right_effective) = first, second
    law = mann_whitney_law(len(left), len(right))
    inflation = math.sqrt((1.0 / left_effective + 1.0 / right_effective) / (1.0 / len(left) + 1.0 / len(right)))
    dependence = Dependence.of(inflation, left_effective + right_effective)
    left_out, reached = law.left_out(confidence, dependence)
    low, high = ranked_differences(left, right, (left_out, law.items - 1 - left_out))
    at_most_zero = differences_at_most(left, right, 0.0, "right")
    at_least_zero = law.items - differences_at_most(left, right, 0.0, "left")
    return Interval(low, high, reached), law.p_value(min(at_most_zero, at_least_zero), dependence)


def _bca_levels(
    values: Floats, statistic: Callable[[Floats], float], estimate: float, found: Floats, levels: Sequence[float]
) -> list[float]:
    """Efron's correction of the levels: the bias from the resamples, the skew from leaving out one sample at a time."""
    if len(values) < 2 or found.min() == found.max():
        return list(levels)
    below = (np.count_nonzero(found < estimate) + np.count_nonzero(found <= estimate)) / (2.0 * len(found))
    # An estimate beyond all resamples has an infinite bias; half a resample is all that can be told.
    bias = _NORMAL.inv_cdf(min(max(below, 0.5 / len(found)), 1.0 - 0.5 / len(found)))
    left_out = np.array([statistic(np.delete(values, index)) for index in range(len(values))], dtype=np.float64)
    steps = centred(left_out)
    steps = steps.mean() - steps
    spread = float((steps**2).sum())
    skew = float((steps**3).sum()) / (6.0 * spread**1.5) if spread > 0.0 else 0.0
    corrected: list[float] = []
    for level in levels:
        shifted = bias + _NORMAL.inv_cdf(level)
        room = 1.0 - skew * shifted
        # A skew that leaves no room sends the level to its end.
        corrected.append(_NORMAL.cdf(bias + shifted / room) if room > 0.0 else float(shifted > 0.0))
    return corrected


def _correlation(values: Floats) -> tuple[float, float]:
    """The autocorrelation of the ranks at lag 1, and the effective count.

    The correlation time is the larger of two estimates, since each is too small where the samples are few: Geyer's
    (sums of neighbouring lags, up to the first that is not positive, as after it there is only noise), and that of a
    first-order process with this lag 1. Both are corrected for the bias of the sample's own mean.
    """
    count = len(values)
    ranks = _ranks(values)
    ranks -= ranks.mean()
    spread = float(ranks @ ranks)
    if count < 4 or spread == 0.0:
        return 0.0, float(count)
    spectrum = np.fft.rfft(ranks, 2 * count)
    correlations = np.fft.irfft(spectrum * spectrum.conj(), 2 * count)[:count] / spread
    sums = correlations[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(sums <= 0.0)
    used = np.minimum.accumulate(sums[: ends[0] if len(ends) else len(sums)])
    geyer = 2.0 * float(used.sum()) - 1.0
    if geyer > 1.0:
        geyer += 2.0 * (2 * len(used) - 1) * geyer / count
    lag1 = float(correlations[1])
    unbiased = min(lag1 + (1.0 + 3.0 * max(lag1, 0.0)) / count, 0.99)
    first_order = (1.0 + unbiased) / (1.0 - unbiased)
    return lag1, max(1.0, count / max(geyer, first_order, 1.0))


def _ranks(values: Floats) -> Floats:
    """From 0; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts + 1))[inverse]


def _dependence_of(count: int, effective: float | None) -> Dependence:
    effective = count if effective is None else effective
    return Dependence.of(math.sqrt(max(1.0, count / effective)), effective)


def _median(values: Floats) -> float:
    ordered = np.partition(values, [(len(values) - 1) // 2, len(values) // 2])
    low, high = float(ordered[(len(values) - 1) // 2]), float(ordered[len(values) // 2])
    return low if low == high else 0.5 * low + 0.5 * high


def _exponent(values: Floats) -> int:
    return int(np.frexp(np.abs(values).max())[1])


def _percent_of(part: float, whole: float) -> float:
    if part == 0.0:
        return 0.0
    return 100.0 * (part / abs(whole)) if whole != 0.0 else math.inf


def _exp(value: float) -> float:
    """Beyond the floats lies infinity."""
    return math.exp(value) if value < 709.0 else math.inf


def _check_confidence(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise BenchError(f"confidence {confidence}: expected a number between 0 and 1", hint="0.95 is usual")
    return confidence
