"""The journal of a runtime: what happened when, beside the calls: compiles, contests, guards that failed, memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tessera.tiers.sites.hotness import Clock

_MOST_KEPT = 4096


class Happening(NamedTuple):
    """Something that happened. Times are nanoseconds; `timestamp` is when it was over."""

    timestamp: int
    kind: str
    region: str
    what: str
    duration: int
    amount: int


class Journal:
    """The last few thousand happenings. Any thread may add."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: deque[Happening] = deque(maxlen=_MOST_KEPT)

    def add(self, kind: str, region: str, what: str = "", *, duration: int = 0, amount: int = 1) -> None:
        self._kept.append(Happening(self._clock(), kind, region, what, duration, amount))

    def __iter__(self) -> Iterator[Happening]:
        """Oldest first, as they are at this moment."""
        return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)
