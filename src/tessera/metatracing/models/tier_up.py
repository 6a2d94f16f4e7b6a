"""Whether compiling for a higher tier pays: the gains of earlier tier-ups of a runtime against the cost of trying.

Compilation is in other processes; callers pay for the runs of programs that are found to be slower. The time that a
site has spent lately is taken for the time that it will spend. While few gains are known, all tier-ups are tried.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from math import log

from tessera.forking import tell_in_child
from tessera.tiers.records import ExecutionTier

ENOUGH = 12
"""Gains at a tier on a kind of device that have to be known before one is left out."""
_MOST = 128
HOPEFUL = 0.9
"""The quantile of known gains that is hoped for: nine of ten were less."""
EXTRA_COST = 0.25
"""The cost of a run of a candidate beyond one of the program in use, as a part of it."""


class TierUpModel:
    """Gains of tier-ups, by kind of device and tier."""

    def __init__(self) -> None:
        self._gains: dict[tuple[str, ExecutionTier], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._lock = threading.Lock()
        tell_in_child(self)

    def forked(self) -> None:
        """In the child of a fork: the thread that held the lock is not there."""
        self._lock = threading.Lock()

    def note(self, kind: str, tier: ExecutionTier, before: float, after: float) -> None:
        """Adds the gain of an A/B test at a tier: calls took `before`, and take `after` now."""
        if before > 0 and after > 0:
            with self._lock:
                self._gains[kind, tier].append(max(0.0, log(before / after)))

    def hoped(self, kind: str, tier: ExecutionTier) -> float | None:
        """The logarithm of the gain that may be hoped for; None while too few are known."""
        with self._lock:
            known = sorted(self._gains[kind, tier])
        if len(known) < ENOUGH:
            return None
        return known[min(len(known) - 1, int(HOPEFUL * len(known)))]

    def pays(self, kind: str, tier: ExecutionTier, spent: float, call: float, runs: int) -> bool:
        """Whether to try, by the time that a site has spent lately, that of a call, and the runs of candidates."""
        hoped = self.hoped(kind, tier)
        return hoped is None or hoped * spent > EXTRA_COST * call * runs
