"""Laws of ranks: how many ordered values to leave out at both ends, so that the rest is an interval for the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Side = Literal["left", "right"]

_NORMAL = NormalDist()
_EXACT_BINOMIAL = 5000
_EXACT_RANKS = 50
_EXACT_PAIRS = 25
_LISTED = 1000
"""Up to this many samples, their pairs are listed; above, they are counted."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How much further from the middle dependent samples stray, in ranks.

    By the square root of how many times fewer they count, as a standard error does; and, since that number is itself
    an estimate, as Student's t does beyond the normal distribution, with the degrees of freedom given. Both ways of the
    conversion are Wallace's approximation.
    """

    inflation: float = 1.0
    freedom: float = math.inf

    @staticmethod
    def of(inflation: float, effective: float) -> Dependence:
        """With an effective number of samples in all; the freedom has no limit where nothing had to be estimated."""
        share = 1.0 - 1.0 / inflation**2
        return Dependence(inflation, effective / share) if share > 1e-9 else INDEPENDENT

    def stretched(self, deviations: float) -> float:
        """How many deviations dependent samples stray as often as independent ones stray this many."""
        if self.freedom == math.inf:
            return self.inflation * deviations
        normal = deviations * (8.0 * self.freedom + 3.0) / (8.0 * self.freedom + 1.0)
        return self.inflation * math.sqrt(self.freedom * math.expm1(min(normal**2 / self.freedom, 700.0)))

    def relaxed(self, deviations: float) -> float:
        """The other way."""
        student = deviations / self.inflation
        if self.freedom == math.inf:
            return student
        normal = math.sqrt(self.freedom * math.log1p(student**2 / self.freedom))
        return normal * (8.0 * self.freedom + 1.0) / (8.0 * self.freedom + 3.0)


INDEPENDENT = Dependence()


@dataclass(frozen=True, slots=True)
class RankLaw:
    """How many of `items` ordered values lie below the truth: a law symmetric about the half.

    The values at equal distances from both ends of the order are an interval for the truth.
    """

    items: int
    deviation: float
    exact: Floats | None
    """The chance of at most 0, 1, … of them; None: by the normal approximation, whose tails are the heavier ones."""

    def at_most(self, number: float) -> float:
        whole = math.floor(number + 1e-9)
        if whole < 0:
            return 0.0
        if self.exact is not None:
            return float(self.exact[min(whole, self.items)])
        return _NORMAL.cdf((whole + 0.5 - self.items / 2) / self.deviation)

    def left_out(self, confidence: float, dependence: Dependence = INDEPENDENT) -> tuple[int, float]:
        """How many values to leave out at both ends, and the confidence of what remains."""
        tail, middle = (1.0 - confidence) / 2.0, self.items / 2
        if self.exact is not None:
            independent = int(np.searchsorted(self.exact, tail, side="right")) - 1
        else:
            independent = math.floor(middle + _NORMAL.inv_cdf(tail) * self.deviation - 0.5)
        distance = self.deviation * dependence.stretched((middle - independent) / self.deviation)
        left_out = max(0, math.floor(middle - distance + 1e-9))
        return left_out, max(0.0, 1.0 - 2.0 * self._tail(left_out, dependence))

    def p_value(self, number: int, dependence: Dependence = INDEPENDENT) -> float:
        """Of so many of the values, or fewer, on one side of the truth, whichever side that is."""
        return min(1.0, 2.0 * self._tail(number, dependence))

    def _tail(self, number: int, dependence: Dependence) -> float:
        middle = self.items / 2
        if number >= middle:
            return 0.5
        return self.at_most(middle - self.deviation * dependence.relaxed((middle - number) / self.deviation))


@lru_cache(maxsize=64)
def binomial_law(count: int) -> RankLaw:
    """Each sample lies below the median with a chance of one half."""
    if count > _EXACT_BINOMIAL:
        return RankLaw(count, math.sqrt(count) / 2.0, None)
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    chances = np.exp(factorials[-1] - factorials - factorials[::-1] - count * math.log(2.0))
    return RankLaw(count, math.sqrt(count) / 2.0, np.minimum(1.0, np.cumsum(chances)))


@lru_cache(maxsize=256)
def signed_rank_law(count: int) -> RankLaw:
    """Wilcoxon's: every rank from 1 to `count` has either sign with equal chance."""
    items = count * (count + 1) // 2
    deviation = math.sqrt(items * (2 * count + 1) / 12.0)
    if count > _EXACT_RANKS:
        return RankLaw(items, deviation, None)
    ways = np.zeros(items + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] += ways[:-rank].copy()
    return RankLaw(items, deviation, np.cumsum(ways) / 2.0**count)


@lru_cache(maxsize=256)
def mann_whitney_law(first: int, second: int) -> RankLaw:
    """Every order of the joint samples is equally likely: coefficients of the Gaussian binomial."""
    items = first * second
    deviation = math.sqrt(items * (first + second + 1) / 12.0)
    if max(first, second) > _EXACT_PAIRS:
        return RankLaw(items, deviation, None)
    ways = np.zeros(items + 1, dtype=np.int64)
    ways[0] = 1
    for size in range(1, first + 1):
        shift = second + size
        if shift <= items:
            ways[shift:] -= ways[:-shift].copy()
        for index in range(size, items + 1):
            ways[index] += ways[index - size]
    return RankLaw(items, deviation, np.cumsum(ways) / math.comb(first + second, first))


def ranked_means(ordered: Floats, ranks: Sequence[int]) -> list[float]:
    """The values at these ranks in the order of the means of all pairs, a value with itself included."""
    count = len(ordered)
    if count <= _LISTED:
        halves = 0.5 * ordered
        means = np.concatenate([halves[row] + halves[row:] for row in range(count)])
        return _at_ranks(means, ranks)
    low, high = float(ordered[0]), float(ordered[-1])
    return [_bisect(lambda value: means_at_most(ordered, value, "right"), low, high, rank) for rank in ranks]


def means_at_most(ordered: Floats, value: float, side: Side) -> int:
    """How many of those means are at most (`right`) or below (`left`) a value."""
    both = int(np.searchsorted(ordered, 2.0 * value - ordered, side=side).sum())
    return (both + int(np.searchsorted(ordered, value, side=side))) // 2


def ranked_differences(first: Floats, second: Floats, ranks: Sequence[int]) -> list[float]:
    """The values at these ranks in the order of all differences, second minus first; both are in order."""
    if max(len(first), len(second)) <= _LISTED:
        return _at_ranks(np.subtract.outer(second, first).ravel(), ranks)
    low, high = float(second[0] - first[-1]), float(second[-1] - first[0])
    return [_bisect(lambda value: differences_at_most(first, second, value, "right"), low, high, p) for p in ranks]


def differences_at_most(first: Floats, second: Floats, value: float, side: Side) -> int:
    return int(np.searchsorted(second, first + value, side=side).sum())


def _at_ranks(values: Floats, ranks: Sequence[int]) -> list[float]:
    parted = np.partition(values, sorted(set(ranks)))
    return [float(parted[rank]) for rank in ranks]


def _bisect(at_most: Callable[[float], int], low: float, high: float, rank: int) -> float:
    """The smallest value that more than `rank` others do not exceed."""
    if at_most(low) > rank:
        return low
    while low < (middle := 0.5 * low + 0.5 * high) < high:
        low, high = (low, middle) if at_most(middle) > rank else (middle, high)
    return high
