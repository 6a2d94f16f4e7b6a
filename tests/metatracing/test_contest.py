"""Checks who wins a contest, and who is asked to compete."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tessera.kernels.schedule import Schedule
from tessera.metatracing.client import Choice, Level
from tessera.metatracing.records import ExecutionTier
from tessera.metatracing.regions.candidates import tier2_levels, tier3_levels
from tessera.metatracing.regions.contest import Contender, Contest

TIER2, TIER3 = ExecutionTier.TIER2_STANDARD, ExecutionTier.TIER3_SPECIALIZED


def contender(tier: ExecutionTier, times: Sequence[int], assumed: tuple[str, ...] = ()) -> Contender:
    program: Any = SimpleNamespace(level=Level(tier, assumed, None))
    made = Contender(program, lambda *_: None)
    made.times = [times[0], *times]  # the first does not count
    return made


@pytest.mark.parametrize(
    ("before", "after", "taken"),
    [
        ([1000] * 5, [1000] * 5, TIER3),  # among equals who knows more
        ([1000] * 5, [1010] * 5, TIER2),  # runs are all alike: a hundredth is a hundredth
        ([990, 1000, 1030, 970, 1012], [1000, 1010, 1035, 980, 1025], TIER3),  # here it is chance
        ([900, 1000, 1300, 700, 1120], [1030] * 5, TIER2),  # but no more than that
        ([1000] * 5, [990] * 5, TIER3),
    ],
)
def test_knowing_more_is_no_reason_to_be_slower(before: list[int], after: list[int], taken: ExecutionTier) -> None:
    contest = Contest([contender(TIER2, before), contender(TIER3, after)], 5, None)
    assert contest.is_over
    assert contest.winner().program.level.tier is taken


def test_numbers_alone_are_no_better_than_all_facts_by_chance() -> None:
    every = contender(TIER3, [727, 731, 720, 740, 722], ("scale", "x.size[0]"))
    alone = contender(TIER3, [724, 733, 719, 741, 721], ("scale",))
    assert Contest([every, alone], 5, None).winner() is every
    assert Contest([alone, every], 5, None).winner() is every
    better = contender(TIER3, [700, 703, 701, 706, 702], ("scale",))
    assert Contest([every, better], 5, None).winner() is better


@pytest.mark.parametrize(
    ("before", "after", "turns"),
    [
        ([1000] * 5, [900] * 5, 4),  # three that count, and all are quicker: nobody need run more
        ([1000] * 5, [990] * 5, 6),  # so little may be chance
        ([1000, 1200, 950, 1000, 1000], [900, 960, 900, 900, 900], 6),  # they overlap
        ([1000, 2000, 1000, 1000, 1000], [900, 900, 900, 900, 900], 4),  # a slow run proves nothing for the other
        ([1000] * 5, [2000] * 5, 3),  # far behind
    ],
)
def test_who_is_behind_for_certain_gets_no_more_turns(before: list[int], after: list[int], turns: int) -> None:
    made = [contender(tier, [0]) for tier in (TIER2, TIER3)]
    for one in made:
        one.times = []
    contest = Contest(made, 5, None)
    left = {made[0]: iter([before[0], *before]), made[1]: iter([after[0], *after])}
    while not contest.is_over:
        runs = contest.next()
        contest.note(runs, next(left[runs]))
    assert max(one.asked for one in made) == turns
    assert contest.winner() is min(made, key=lambda one: sorted(one.counted)[len(one.counted) // 2])


def test_what_runs_without_traces_competes_with_what_knows_more() -> None:
    best = Schedule(block=(32, 64))

    def schedules(_: object) -> list[Schedule | None]:
        return [None, best]

    client: Any = SimpleNamespace(name="k", paths=("x", "scale"), schedules=schedules)
    call: Any = SimpleNamespace(fixed=(), described=())
    words = ("scale", "x.size[0]")
    plain = Level(TIER2, (), None)
    near = tier3_levels(client, call, words, best, {None: 1.05, best: 1.0}, 3)
    assert (near[0], near[-1]) == (Level(TIER3, words, best), plain)
    assert {Level(TIER3, words, None), Level(TIER3, ("scale",), best)} <= set(near)
    assert plain not in tier3_levels(client, call, words, best, {None: 1.2, best: 1.0}, 3)
    assert plain not in tier3_levels(client, call, words, None, {None: 1.0, best: 1.05}, 3)  # it is the incumbent


def test_what_models_have_yet_to_choose_is_compiled_last() -> None:
    best, chosen = Schedule(block=(32, 64)), Choice(rank=1)

    def schedules(_: object) -> list[Schedule | None]:
        return [None, chosen, best]

    client: Any = SimpleNamespace(name="k", paths=("x",), schedules=schedules)
    call: Any = SimpleNamespace(fixed=(), described=())
    assert [one.schedule for one in tier2_levels(client, call, 3)] == [None, best, chosen]
    assert [one.schedule for one in tier3_levels(client, call, ("x.size[0]",), None, {}, 3)] == [None, best, chosen]
