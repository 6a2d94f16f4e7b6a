"""Backoff: kinds of programs that lost A/B tests at a site are tried again only for hotter cases, for a while."""

from __future__ import annotations

from collections.abc import Mapping

from tessera.tiers.client import TierLevel
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import Contender

Kind = tuple[ExecutionTier, tuple[str, ...]]
"""A tier and the words that are assumed, not their values: programs for other sizes are of the same kind."""
BACKOFF_FACTOR = 4.0
"""Times as hot a case has to be for each loss of programs of a kind, one after the other."""
_MOST_LOSSES = 8.0


def kind_of(level: TierLevel) -> Kind:
    return level.tier, level.assumed


class Backoff:
    """Losses and wins of kinds of programs. A loss counts half after a half-life: other calls may gain more."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._losses: dict[Kind, tuple[float, int]] = {}
        self._paid: dict[Kind, bool] = {}

    def learn(self, best: Contender, times: Mapping[Contender, float | None], now: int) -> None:
        """Takes in the result of an A/B test. Programs that never ran do not count."""
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

    def factor(self, kind: Kind, now: int) -> float:
        """How many times as hot as usual a case has to be for another program of such a kind."""
        return BACKOFF_FACTOR ** self._at(kind, now)

    def _at(self, kind: Kind, now: int) -> float:
        losses, since = self._losses.get(kind, (0.0, now))
        return losses * 0.5 ** (max(0, now - since) / self._half_life)
