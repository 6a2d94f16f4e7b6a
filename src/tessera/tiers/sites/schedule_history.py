"""Schedule history: the schedules that did well for a kernel rank candidates for its next sizes.

A/B tests leave the times of schedules for some arguments. For others, those nearest in size count most. A look-up
takes microseconds: a call may wait for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from math import exp, log
from typing import NamedTuple

from tessera.forking import tell_in_child
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.records import Described
from tessera.tile.language.schedule import Schedule

_MOST = 32
_MOST_KERNELS = 256
NEAR = 1.0
"""Logarithms of sizes apart: how fast a comparison counts less."""
CLEAR = 0.03
"""A schedule has to have been so much faster to come before the one that its client holds best."""


class ScheduleComparison(NamedTuple):
    """An A/B test: the logarithms of the sizes, and of the times of schedules over the best of them."""

    sizes: tuple[float, ...]
    behind: Mapping[Schedule | None, float]


class ScheduleHistory:
    """Comparisons of schedules in A/B tests, by kernel. Any thread may ask."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, deque[ScheduleComparison]] = {}
        self._lock = threading.Lock()
        tell_in_child(self)

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = threading.Lock()

    def note(self, kernel: Hashable, arguments: Described, times: Mapping[Schedule | None, float]) -> None:
        """Adds the times of schedules that were compared for such arguments."""
        took = {schedule: time for schedule, time in times.items() if time > 0}  # a clock may be too coarse
        if len(took) < 2:
            return
        best = min(took.values())
        found = ScheduleComparison(logs_of(arguments), {schedule: log(time / best) for schedule, time in took.items()})
        with self._lock:
            while len(self._seen) >= _MOST_KERNELS and kernel not in self._seen:
                del self._seen[next(iter(self._seen))]
            self._seen.setdefault(kernel, deque(maxlen=_MOST)).append(found)

    def behind(self, kernel: Hashable, arguments: Described) -> dict[Schedule | None, float]:
        """By how much each known schedule is expected to be behind the best, as a logarithm."""
        with self._lock:
            known = list(self._seen.get(kernel, ()))
        here = logs_of(arguments)
        weights: dict[Schedule | None, float] = {}
        sums: dict[Schedule | None, float] = {}
        for one in known:
            if len(one.sizes) != len(here):
                continue
            apart = sum(abs(a - b) for a, b in zip(one.sizes, here, strict=True))
            weight = exp(-apart / NEAR)
            for schedule, behind in one.behind.items():
                weights[schedule] = weights.get(schedule, 0.0) + weight
                sums[schedule] = sums.get(schedule, 0.0) + weight * behind
        return {schedule: sums[schedule] / weight for schedule, weight in weights.items() if weight > 0}

    def ranked(
        self, kernel: Hashable, arguments: Described, schedules: Sequence[Schedule | None]
    ) -> list[Schedule | None]:
        """The schedules, those first that did well; the others stay in their order.

        The first, a kernel's own, may end up anywhere: callers that cut the list keep it.
        """
        expected = self.behind(kernel, arguments)
        if not expected:
            return list(schedules)
        usual = CLEAR  # of schedules that were never tried: in front of those that are known to be worse
        order = {schedule: index for index, schedule in enumerate(schedules)}
        return sorted(schedules, key=lambda one: (round(expected.get(one, usual) / CLEAR), order[one]))


def logs_of(arguments: Described) -> tuple[float, ...]:
    """The logarithms of all sizes of arrays."""
    return tuple([log(max(1, size)) for one in arguments if isinstance(one, Meta) for size in one.shape])
