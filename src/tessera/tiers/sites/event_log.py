"""The event log of a runtime: compiles, A/B tests, guards that failed and memory, with their times."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tessera.tiers.sites.hotness import Clock

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
