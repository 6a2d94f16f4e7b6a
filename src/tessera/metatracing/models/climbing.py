"""Whether a climb pays: by what earlier climbs of a runtime gained, against what trying costs.

Compiling happens elsewhere; what a climb costs its callers are the turns of programs that turn out slower. Time that a
region has spent lately it will spend again, as far as anyone knows. As long as few climbs are known, all are tried.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from math import log

from tessera.forking import tell_in_child
from tessera.tiers.records import ExecutionTier

ENOUGH = 12
"""Climbs to a tier on a kind of device that have to be known before one is left out."""
_MOST = 128
HOPEFUL = 0.9
"""Of known gains, the one that is hoped for: nine of ten were less."""
TURN = 0.25
"""What a turn of a candidate costs beyond one of the program in use, as a part of it."""


class ClimbModel:
    """Gains of climbs, by kind of device and tier."""

    def __init__(self) -> None:
        self._gains: dict[tuple[str, ExecutionTier], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._lock = threading.Lock()
        tell_in_child(self)

    def forked(self) -> None:
        """In the child of a fork: whoever held the lock is not there."""
        self._lock = threading.Lock()

    def note(self, kind: str, tier: ExecutionTier, before: float, after: float) -> None:
        """A contest for a tier is over: calls took `before`, and take `after` now; the same where nobody was faster."""
        if before > 0 and after > 0:
            with self._lock:
                self._gains[kind, tier].append(max(0.0, log(before / after)))

    def hoped(self, kind: str, tier: ExecutionTier) -> float | None:
        """The part of the time that a climb may save; None while too little is known."""
        with self._lock:
            known = sorted(self._gains[kind, tier])
        if len(known) < ENOUGH:
            return None
        return known[min(len(known) - 1, int(HOPEFUL * len(known)))]

    def pays(self, kind: str, tier: ExecutionTier, spent: float, call: float, turns: int) -> bool:
        """Whether to try: a region that has spent so many nanoseconds lately, a call of it, and turns of candidates."""
        hoped = self.hoped(kind, tier)
        return hoped is None or hoped * spent > TURN * call * turns
