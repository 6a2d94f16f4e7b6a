"""Contests: which of several programs is the fastest, found on the calls that would be made anyhow.

Programs take turns at the calls of one entry, so every result counts and nothing runs twice: kernels that add to memory
could not be run for the sake of measuring. The first run of each is not counted, and whoever is far behind is out at
once, so that few calls pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tessera.metatracing.client import Runner
    from tessera.metatracing.regions.programs import Installed

FAR_BEHIND = 1.5
"""Times the best: a program that takes so much longer gets no more turns."""
TOLERANCE = 1.02
"""A program that knows more may take so much longer than the best and still win, where that may be chance."""
_SURE = 3
"""Runs after which a program gets no more turns whose quickest run took longer than all those of another, and more than
chance could be forgiven."""


class Contender:
    """A program and how it did."""

    __slots__ = ("asked", "program", "run", "times")

    def __init__(self, program: Installed, run: Runner) -> None:
        self.program = program
        self.run = run
        self.asked = 0
        self.times: list[int] = []

    @property
    def counted(self) -> list[int]:
        """Without the first run, which finds code and memory cold."""
        return self.times[1:]


def _known(one: Contender) -> tuple[int, int]:
    """How much a program knows."""
    return one.program.level.tier, len(one.program.level.assumed)


def _doubt(one: Contender) -> float:
    """How far off the median of a contender's runs may be, in parts of it: twice its error, from how runs differ."""
    middle = median(one.counted) if one.counted else 0
    if not middle:
        return 0.0
    return 2 * median([abs(took - middle) for took in one.counted]) / (middle * len(one.counted) ** 0.5)


class Contest:
    """Contenders of which the first is the incumbent; each has `rounds` counted runs, unless it is far behind."""

    def __init__(self, contenders: Sequence[Contender], rounds: int, before: float | None) -> None:
        self.incumbent = contenders[0]
        self.contenders = list(contenders)
        self.alive = list(contenders)
        self.rounds = rounds
        self.before = before  # what calls took that nobody of these has made

    def next(self) -> Contender:
        """Who runs next: whoever had the fewest turns."""
        chosen = self.alive[0]
        for one in self.alive:
            if one.asked < chosen.asked:
                chosen = one
        chosen.asked += 1
        return chosen

    def note(self, contender: Contender, nanoseconds: int) -> None:
        contender.times.append(nanoseconds)
        counted = [one for one in self.alive if one.counted]
        if len(counted) < 2:
            return
        best = min(min(one.counted) for one in counted)
        behind = [one for one in counted if min(one.counted) > FAR_BEHIND * best and len(one.counted) >= 2]
        sure = [one for one in counted if len(one.counted) >= _SURE]
        least = min((max(one.counted) for one in sure), default=0)
        behind += [one for one in sure if min(one.counted) > TOLERANCE * least]
        self.alive = [one for one in self.alive if one not in behind]

    def withdraw(self, contender: Contender) -> None:
        """Takes out a program that failed."""
        self.alive = [one for one in self.alive if one is not contender]

    @property
    def is_over(self) -> bool:
        return len(self.alive) <= 1 or all(len(one.counted) >= self.rounds for one in self.alive)

    def winner(self) -> Contender:
        """The fastest by the median; among equals those that know more, and then the incumbent."""
        if not self.alive:
            return self.incumbent
        typical = {one: median(one.counted) if one.counted else float("inf") for one in self.alive}
        best = min(self.alive, key=lambda one: typical[one])
        if best is self.incumbent or best.program.level.tier <= self.incumbent.program.level.tier:
            near = [
                one
                for one in self.alive
                if _known(one) > _known(best)
                and typical[one] <= min(TOLERANCE, 1 + max(_doubt(one), _doubt(best))) * typical[best]
            ]
            best = min(near, key=lambda one: typical[one], default=best)
        return best

    def typical(self, contender: Contender) -> float | None:
        return median(contender.counted) if contender.counted else None
