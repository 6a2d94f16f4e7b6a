"""Hotness: time that decays. A site that ran for long, and lately, is hot; one that ran long ago is not."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Nanoseconds since some moment; never backwards."""

system_clock: Clock = time.perf_counter_ns


class ManualClock:
    """A clock that stands still until `advance` moves it, for tests."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def advance(self, nanoseconds: int) -> None:
        self.now += nanoseconds


class Hotness:
    """Nanoseconds spent, halved for every half-life that has passed since."""

    __slots__ = ("_at", "_half_life", "_value", "total")

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._value = 0.0
        self._at = 0
        self.total = 0

    def add(self, now: int, nanoseconds: int) -> float:
        """Adds time spent, and says how hot it is now."""
        self.total += nanoseconds
        self._value = self.at(now) + nanoseconds
        self._at = now
        return self._value

    def at(self, now: int) -> float:
        """How hot it is at a time."""
        passed = max(0, now - self._at)
        return self._value if not passed else self._value * 0.5 ** (passed / self._half_life)
