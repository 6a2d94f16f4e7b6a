"""Counts of a runtime: calls by tier, how often each kind of event happened, and the log of events with their times."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

from tessera.tiers.client import RuntimeGuard
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.hotness import Clock, system_clock

_MOST_KEPT = 4096


class LoggedEvent(NamedTuple):
    """An event of a runtime. Times are nanoseconds; `timestamp` is its end."""

    timestamp: int
    kind: str
    site: str
    what: str
    duration: int
    amount: int


class EventLog:
    """The last few thousand events. Any thread may add."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: deque[LoggedEvent] = deque(maxlen=_MOST_KEPT)

    def add(self, kind: str, site: str, what: str = "", *, duration: int = 0, amount: int = 1) -> None:
        self._kept.append(LoggedEvent(self._clock(), kind, site, what, duration, amount))

    def __iter__(self) -> Iterator[LoggedEvent]:
        """Oldest first, as they are at this moment."""
        return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)


class Counts:
    """Numbers of events by kind, as PyPy's counters are; tests assert these."""

    NAMES = (
        *("traces", "compiles", "bridges", "generalisations", "deopts", "aborts"),
        *("contests", "switch_backs", "evictions", "invalidations", "loads"),
    )

    def __init__(self, clock: Clock = system_clock) -> None:
        self._lock = threading.Lock()  # sites have a lock each, and all count here
        self.event_log = EventLog(clock)
        self.happened: Counter[str] = Counter()
        self.guard_failures: Counter[str] = Counter()
        """By the word of the guard that failed: `q.size[2]`."""
        self.calls: Counter[ExecutionTier] = Counter()
        self.timed: Counter[ExecutionTier] = Counter()
        """Calls that recorded ones stand for, and the nanoseconds of all those."""
        self.spent: Counter[ExecutionTier] = Counter()

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1, *, site: str = "", what: str = "") -> None:
        assert name in self.NAMES, name
        with self._lock:
            self.happened[name] += count
        if name != "traces":  # those are in the rings of sites
            self.event_log.add(name, site, what, amount=count)

    def ran(self, tier: ExecutionTier, failed: RuntimeGuard | None, count: int) -> None:
        """Counts calls, and those that ran at a lower tier because a guard failed."""
        with self._lock:
            self.calls[tier] += count
            if failed is not None and tier < ExecutionTier.TIER3_SPECIALIZED:
                self.happened["deopts"] += count
                self.guard_failures[failed.word] += count

    def took(self, tier: ExecutionTier, nanoseconds: int, count: int) -> None:
        with self._lock:
            self.timed[tier] += count
            self.spent[tier] += nanoseconds * count

    def __getitem__(self, name: str) -> int:
        return self.happened[name]
