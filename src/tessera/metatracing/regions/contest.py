"""Contests: which of several programs is the fastest, found on the calls that would be made anyhow.

Programs take turns at the calls of one entry, so every result counts and nothing runs twice: kernels that add to memory
could not be run for the sake of measuring. The first run of each is not counted, and whoever is behind for certain is
out, so that few calls pay for it.

Machines change their speed from one moment to the next, and all runs of a round with it. So runs are compared with
those of others in the same round. Where that leaves more in doubt than could be forgiven, there are more rounds.
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
TOLERANCE = 0.02
"""A program that knows more may take so much longer than the best, in parts, and win, where that may be chance."""
_SURE = 4
"""Rounds after which a program gets no more turns that takes longer than another beyond doubt."""
_AT_STAKE = 0.01
"""What may be lost, in parts, by taking the one that seems the best: then nobody needs more rounds."""
_MOST = 4
"""Times the usual number of rounds: then it is decided in any case."""


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


def _longer(one: Contender, other: Contender) -> tuple[float, float]:
    """How much longer a contender takes than another, in parts, and how far off that may be: twice its error."""
    ratios = [mine / theirs for mine, theirs in zip(one.counted, other.counted, strict=False)]
    middle = median(ratios)
    # Three times the median deviation of a normal distribution is twice the standard one.
    return middle - 1, 3 * median([abs(ratio - middle) for ratio in ratios]) / len(ratios) ** 0.5


def _leader(contenders: Sequence[Contender]) -> Contender:
    """Who takes the smallest part of what a round takes, by the median of the rounds that all have run."""
    levels = [sum(took) for took in zip(*[one.counted for one in contenders], strict=False)]
    return min(
        contenders, key=lambda one: median([took / level for took, level in zip(one.counted, levels, strict=False)])
    )


class Contest:
    """Contenders of which the first is the incumbent; each has `rounds` counted runs, in doubt more, behind fewer."""

    def __init__(self, contenders: Sequence[Contender], rounds: int, before: float | None) -> None:
        self.incumbent = contenders[0]
        self.contenders = list(contenders)
        self.alive = list(contenders)
        self.rounds = rounds
        self.before = before  # what calls took that nobody of these has made
        self.judged = 0  # rounds
        self.at_stake = 0.0  # how much faster than the best another may be

    def next(self) -> Contender:
        """Who runs next: whoever had the fewest turns."""
        chosen = self.alive[0]
        for one in self.alive:
            if one.asked < chosen.asked:
                chosen = one
        chosen.asked += 1
        return chosen

    def note(self, contender: Contender, nanoseconds: int) -> None:
        contender.times.append(max(1, nanoseconds))
        ran = min((len(one.times) - 1 for one in self.alive), default=0)
        if ran > self.judged:
            self.judged = ran
            self._judge()

    def _judge(self) -> None:
        """Takes out who is behind for certain."""
        leader, quickest = _leader(self.alive), min(min(one.counted) for one in self.alive)
        alive, self.at_stake = list[Contender](), 0.0
        for one in self.alive:
            longer, doubt = _longer(one, leader)
            is_far = self.judged >= 2 and min(one.counted) > FAR_BEHIND * quickest
            is_behind = self.judged >= _SURE and longer > doubt
            if one is not leader and (is_far or is_behind):
                continue
            alive.append(one)
            self.at_stake = max(self.at_stake, doubt - longer)
        self.alive = alive

    def withdraw(self, contender: Contender) -> None:
        """Takes out a program that failed."""
        self.alive = [one for one in self.alive if one is not contender]

    @property
    def is_over(self) -> bool:
        if len(self.alive) <= 1 or self.judged >= _MOST * self.rounds:
            return True
        return self.judged >= self.rounds and self.at_stake <= _AT_STAKE

    def winner(self) -> Contender:
        """The fastest; among equals those that know more, and then the incumbent."""
        ran = [one for one in self.alive if one.counted]
        if not ran:
            return max(self.alive, key=_known, default=self.incumbent)
        best = _leader(ran)
        if best is self.incumbent or best.program.level.tier <= self.incumbent.program.level.tier:
            more = [(*_longer(one, best), one) for one in ran if _known(one) > _known(best)]
            near = [(longer, one) for longer, doubt, one in more if longer <= min(TOLERANCE, doubt)]
            best = min(near, key=lambda one: one[0], default=(0.0, best))[1]
        return best

    def times(self, best: Contender) -> dict[Contender, float | None]:
        """What each would take when the winner took what it took; None of those that never ran."""

        def took(one: Contender) -> float | None:
            if one.counted and best.counted:
                return median(best.counted) * (1 + _longer(one, best)[0])
            return median(one.counted) if one.counted else None

        return {one: took(one) for one in self.contenders}
