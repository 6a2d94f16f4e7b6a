"""Lessons: which kinds of programs have paid in a region, and which have not; what was learned fades."""

from __future__ import annotations

from collections.abc import Mapping

from tessera.tiers.client import Level
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import Contender

Kind = tuple[ExecutionTier, tuple[str, ...]]
"""A tier, and the words of what is assumed, whatever the values: programs for other sizes are of the same kind."""
HARDER = 4.0
"""Times as hot a case has to be for each loss of programs of a kind, one after the other."""
_MOST_LOSSES = 8.0


def kind_of(level: Level) -> Kind:
    return level.tier, level.assumed


class Lessons:
    """What contests have taught. A loss counts half when a half-life has passed: other calls may be worth more."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._losses: dict[Kind, tuple[float, int]] = {}
        self._paid: dict[Kind, bool] = {}

    def learn(self, best: Contender, times: Mapping[Contender, float | None], now: int) -> None:
        """A contest is over. Whoever never ran has shown nothing."""
        for kind in dict.fromkeys(kind_of(one.program.level) for one, took in times.items() if took is not None):
            self.note(kind, kind == kind_of(best.program.level), now)

    def note(self, kind: Kind, won: bool, now: int) -> None:
        self._paid[kind] = won
        if won:
            self._losses.pop(kind, None)
        else:
            self._losses[kind] = min(_MOST_LOSSES, self._at(kind, now) + 1), now

    def has_paid(self, kind: Kind) -> bool:
        """Whether the last program of such a kind that competed was the fastest."""
        return self._paid.get(kind, False)

    def harder(self, kind: Kind, now: int) -> float:
        """How many times as hot as usual a case has to be for another program of such a kind."""
        return HARDER ** self._at(kind, now)

    def _at(self, kind: Kind, now: int) -> float:
        losses, since = self._losses.get(kind, (0.0, now))
        return losses * 0.5 ** (max(0, now - since) / self._half_life)
