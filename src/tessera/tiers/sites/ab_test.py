"""A/B tests: the fastest of several programs is found on calls that are made anyhow.

The calls of one entry are made by one program after the other, so every result counts and nothing runs twice: kernels
that add to memory could not be run only to be measured. The first run of each program is not counted, and a slower
program is dropped as soon as that is hardly chance, so that few calls pay for it.

Machines change their speed from one moment to the next, and all runs of a round with it. So runs are compared with
those of other programs in the same round; a run whose time is not known is left out. The program that begins a round
changes: where calls come in pairs, no program always has the first of them. Where the doubt after all rounds is too
large, there are more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tessera.tiers.client import Runner
from tessera.tiers.sites.programs import InstalledProgram

FAR_BEHIND = 1.5
"""Times the best: a program that takes so much longer gets no more runs."""
TOLERANCE = 0.02
"""A more specialized program may take so much longer than the best, in parts, and win, where that may be chance."""
_ROUNDS_BEFORE_DROPPING = 4
"""Rounds after which a program is dropped that takes longer than the best by more than the doubt."""
_AT_STAKE = 0.01
"""The part of the time that may be lost by taking the seeming best: below it, no more rounds are needed."""
_MOST_EXTENDED = 4
"""Times the usual number of rounds, after which the test is decided in any case."""


class Contender:
    """A program in an A/B test, and its times."""

    __slots__ = ("program", "rounds_started", "run", "times")

    def __init__(self, program: InstalledProgram, run: Runner) -> None:
        self.program = program
        self.run = run
        self.rounds_started = 0
        self.times: dict[int, int] = {}  # nanoseconds by round, without the first, which finds code and memory cold


class Round(NamedTuple):
    """The contender that makes a call, and the number of its round: the first has number 1."""

    contender: Contender
    number: int


def _specificity(one: Contender) -> tuple[int, int]:
    """How far a program is specialized: its tier, then the number of its facts."""
    return one.program.level.tier, len(one.program.level.assumed)


def _ratios(one: Contender, other: Contender) -> list[float]:
    """How much longer a contender took than another, in the rounds that both ran."""
    theirs = other.times
    return [max(1, took) / max(1, theirs[number]) for number, took in one.times.items() if number in theirs]


def _slowdown(ratios: Sequence[float]) -> tuple[float, float]:
    """How much longer one takes than another, in parts, and by how much that may be chance.

    The doubt is about one and a half times the median's error: equals differ by more in one of ten tests.
    """
    middle = median(ratios) if ratios else 1.0
    return middle - 1, 3 * median([abs(ratio - middle) for ratio in ratios] or [0.0]) / max(1, len(ratios)) ** 0.5


def _common_rounds(contenders: Sequence[Contender]) -> list[int]:
    """The rounds that all of them ran."""
    first, *others = contenders
    return [number for number in first.times if all(number in one.times for one in others)]


def _fastest(contenders: Sequence[Contender]) -> Contender:
    """The contender with the smallest part of the time of a round, by the median of the rounds that all ran."""
    levels = {number: max(1, sum([one.times[number] for one in contenders])) for number in _common_rounds(contenders)}
    if not levels:
        return min(contenders, key=lambda one: median(one.times.values()))
    return min(contenders, key=lambda one: median([one.times[number] / level for number, level in levels.items()]))


class ABTest:
    """Contenders of which the first is the incumbent; each has `rounds` counted runs, more in doubt, fewer if slow."""

    def __init__(self, contenders: Sequence[Contender], rounds: int, before: float | None) -> None:
        self.incumbent = contenders[0]
        self.contenders = list(contenders)
        self.alive = list(contenders)
        self.rounds = rounds
        self.before = before  # the time of calls before the test, by another program
        self.judged = 0  # rounds
        self.at_stake = 0.0  # how much faster than the best another may be

    def next(self) -> Round | None:
        """The contender of the next call: one with the fewest runs; None where all have failed."""
        if not self.alive:
            return None
        fewest = min([one.rounds_started for one in self.alive])
        begins = max(0, fewest - 1) % len(self.alive)  # the incumbent has the first run that counts
        chosen = next(one for one in self.alive[begins:] + self.alive[:begins] if one.rounds_started == fewest)
        chosen.rounds_started += 1
        return Round(chosen, chosen.rounds_started)

    def note(self, test_round: Round, nanoseconds: int) -> None:
        if test_round.number > 1:
            test_round.contender.times[test_round.number] = nanoseconds
            if self.alive and all(test_round.number in one.times for one in self.alive):
                self._judge()

    def _judge(self) -> None:
        """Drops slower contenders when a round is complete."""
        self.judged, leader = len(_common_rounds(self.alive)), _fastest(self.alive)
        alive, self.at_stake = list[Contender](), 0.0
        for one in self.alive:
            ratios = _ratios(one, leader)
            longer, doubt = _slowdown(ratios)
            is_far = self.judged >= 2 and min(ratios) > FAR_BEHIND
            is_behind = self.judged >= _ROUNDS_BEFORE_DROPPING and longer > doubt
            if one is leader or not (is_far or is_behind):
                alive.append(one)
                self.at_stake = max(self.at_stake, doubt - longer)
        self.alive = alive

    def withdraw(self, contender: Contender) -> None:
        """Drops a program that failed."""
        self.alive = [one for one in self.alive if one is not contender]

    @property
    def is_over(self) -> bool:
        if len(self.alive) <= 1 or self.judged >= _MOST_EXTENDED * self.rounds:
            return True
        return self.judged >= self.rounds and self.at_stake <= _AT_STAKE

    def winner(self) -> Contender | None:
        """The fastest; among equals the more specialized, then the incumbent; None where all have failed.

        Where none ran it is the most specialized. One that hardly ran, beside others that did, does not win.
        """
        most = max((len(one.times) for one in self.alive), default=0)
        if not most:
            return max(self.alive, key=_specificity, default=None)
        ran = [one for one in self.alive if len(one.times) >= min(self.rounds, (most + 1) // 2)]
        best = _fastest(ran)
        if best is self.incumbent or best.program.level.tier <= self.incumbent.program.level.tier:
            more = [(*_slowdown(_ratios(one, best)), one) for one in ran if _specificity(one) > _specificity(best)]
            near = [(longer, one) for longer, doubt, one in more if longer <= min(TOLERANCE, doubt)]
            best = min(near, key=lambda one: one[0], default=(0.0, best))[1]
        return best

    def times(self, best: Contender) -> dict[Contender, float | None]:
        """The time of each at the speed of the machine that the winner had; None of those that never ran."""

        def took(one: Contender) -> float | None:
            if ratios := _ratios(one, best):
                return median(best.times.values()) * (1 + _slowdown(ratios)[0])
            return median(one.times.values()) if one.times else None

        return {one: took(one) for one in self.contenders}
