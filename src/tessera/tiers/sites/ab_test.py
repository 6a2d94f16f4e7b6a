"""Contests: which of several programs is the fastest, found on the calls that would be made anyhow.

Programs take turns at the calls of one entry, so every result counts and nothing runs twice: kernels that add to memory
could not be run for the sake of measuring. The first run of each is not counted, and whoever is behind is out as soon
as that is hardly chance, so that few calls pay for it.

Machines change their speed from one moment to the next, and all runs of a round with it. So runs are compared with
those of others in the same round; of turns whose time nobody got to know, there is nothing to compare. Who begins a
round changes: where calls come in pairs, nobody has the first ones only. Where rounds leave more in doubt than could be
forgiven, there are more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tessera.tiers.client import Runner
from tessera.tiers.sites.programs import Installed

FAR_BEHIND = 1.5
"""Times the best: a program that takes so much longer gets no more turns."""
TOLERANCE = 0.02
"""A program that knows more may take so much longer than the best, in parts, and win, where that may be chance."""
_SURE = 4
"""Rounds after which a program gets no more turns that takes longer than the best by more than the doubt."""
_AT_STAKE = 0.01
"""What may be lost, in parts, by taking the one that seems the best: then nobody needs more rounds."""
_MOST = 4
"""Times the usual number of rounds: then it is decided in any case."""


class Contender:
    """A program and how it did."""

    __slots__ = ("asked", "counted", "program", "run")

    def __init__(self, program: Installed, run: Runner) -> None:
        self.program = program
        self.run = run
        self.asked = 0
        self.counted: dict[int, int] = {}  # nanoseconds by turns, without the first, which finds code and memory cold


class Turn(NamedTuple):
    """Who makes a call, and which of its turns that is: the first has number 1."""

    contender: Contender
    number: int


def _known(one: Contender) -> tuple[int, int]:
    """How much a program knows."""
    return one.program.level.tier, len(one.program.level.assumed)


def _ratios(one: Contender, other: Contender) -> list[float]:
    """How much longer a contender took than another, in the rounds that both ran."""
    theirs = other.counted
    return [max(1, took) / max(1, theirs[turn]) for turn, took in one.counted.items() if turn in theirs]


def _longer(ratios: Sequence[float]) -> tuple[float, float]:
    """How much longer one takes than another, in parts, and by how much that may be chance.

    The doubt is about one and a half times the median's error: equals differ by more in one of ten contests.
    """
    middle = median(ratios) if ratios else 1.0
    return middle - 1, 3 * median([abs(ratio - middle) for ratio in ratios] or [0.0]) / max(1, len(ratios)) ** 0.5


def _in_common(contenders: Sequence[Contender]) -> list[int]:
    """The rounds that all of them ran."""
    first, *others = contenders
    return [turn for turn in first.counted if all(turn in one.counted for one in others)]


def _leader(contenders: Sequence[Contender]) -> Contender:
    """Who takes the smallest part of what a round takes, by the median of the rounds that all ran."""
    levels = {turn: max(1, sum([one.counted[turn] for one in contenders])) for turn in _in_common(contenders)}
    if not levels:
        return min(contenders, key=lambda one: median(one.counted.values()))
    return min(contenders, key=lambda one: median([one.counted[turn] / level for turn, level in levels.items()]))


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

    def next(self) -> Turn | None:
        """Whose turn it is: somebody's who had the fewest; nobody's where all have failed."""
        if not self.alive:
            return None
        fewest = min([one.asked for one in self.alive])
        begins = max(0, fewest - 1) % len(self.alive)  # the incumbent has the first turn that counts
        chosen = next(one for one in self.alive[begins:] + self.alive[:begins] if one.asked == fewest)
        chosen.asked += 1
        return Turn(chosen, chosen.asked)

    def note(self, turn: Turn, nanoseconds: int) -> None:
        if turn.number > 1:
            turn.contender.counted[turn.number] = nanoseconds
            if self.alive and all(turn.number in one.counted for one in self.alive):
                self._judge()

    def _judge(self) -> None:
        """Takes out who is behind, when a round is complete."""
        self.judged, leader = len(_in_common(self.alive)), _leader(self.alive)
        alive, self.at_stake = list[Contender](), 0.0
        for one in self.alive:
            ratios = _ratios(one, leader)
            longer, doubt = _longer(ratios)
            is_far = self.judged >= 2 and min(ratios) > FAR_BEHIND
            is_behind = self.judged >= _SURE and longer > doubt
            if one is leader or not (is_far or is_behind):
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

    def winner(self) -> Contender | None:
        """The fastest; among equals those that know more, and then the incumbent; nobody where all have failed.

        Where nobody ran it is who knows more. Who hardly ran, beside others that did, does not win.
        """
        most = max((len(one.counted) for one in self.alive), default=0)
        if not most:
            return max(self.alive, key=_known, default=None)
        ran = [one for one in self.alive if len(one.counted) >= min(self.rounds, (most + 1) // 2)]
        best = _leader(ran)
        if best is self.incumbent or best.program.level.tier <= self.incumbent.program.level.tier:
            more = [(*_longer(_ratios(one, best)), one) for one in ran if _known(one) > _known(best)]
            near = [(longer, one) for longer, doubt, one in more if longer <= min(TOLERANCE, doubt)]
            best = min(near, key=lambda one: one[0], default=(0.0, best))[1]
        return best

    def times(self, best: Contender) -> dict[Contender, float | None]:
        """What each would take when the winner took what it took; None of those that never ran."""

        def took(one: Contender) -> float | None:
            if ratios := _ratios(one, best):
                return median(best.counted.values()) * (1 + _longer(ratios)[0])
            return median(one.counted.values()) if one.counted else None

        return {one: took(one) for one in self.contenders}
