"""Checks which program wins an A/B test, and which are asked to compete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.tiers.client import Choice, TierLevel
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import ABTest, Contender, Round
from tessera.tiers.sites.candidates import tier2_levels, tier3_levels
from tessera.tile.language.schedule import Schedule

TIER2, TIER3 = ExecutionTier.TIER2_STANDARD, ExecutionTier.TIER3_SPECIALIZED


def contender(tier: ExecutionTier, assumed: tuple[str, ...] = ()) -> Contender:
    program: Any = SimpleNamespace(level=TierLevel(tier, assumed, None))
    return Contender(program, lambda *_: None)


def held(
    runs: Mapping[Contender, Sequence[int]],
    rounds: int = 5,
    is_lost: Callable[[Round], bool] = lambda test_round: False,
    patience: int = 10_000,
) -> ABTest:
    """An A/B test in which contenders take so long, in rounds, which begin anew where there are more of them."""
    ab_test = ABTest(list(runs), rounds, None)
    for _ in range(patience):
        test_round = ab_test.next()
        assert test_round is not None
        times = runs[test_round.contender]
        took = (
            9999 if test_round.number == 1 else times[(test_round.number - 2) % len(times)]
        )  # the first does not count
        if not is_lost(test_round):
            ab_test.note(test_round, took)
        if ab_test.is_over:
            break
    return ab_test


def won(ab_test: ABTest) -> Contender:
    winner = ab_test.winner()
    assert winner is not None
    return winner


@pytest.mark.parametrize(
    ("before", "after", "taken"),
    [
        ([1000] * 5, [1000] * 5, TIER3),  # among equals the more specialized
        ([1000] * 5, [1010] * 5, TIER2),  # runs are all alike: a hundredth is a hundredth
        ([990, 1000, 1030, 970, 1012], [1000, 990, 1045, 965, 1030], TIER3),  # here it is chance
        ([990, 1000, 1030, 970, 1012], [1000, 1010, 1035, 980, 1025], TIER2),  # and here not: it is so in each round
        ([900, 1000, 1300, 700, 1120], [1030] * 5, TIER2),  # but no more than that
        ([1000] * 5, [990] * 5, TIER3),
    ],
)
def test_knowing_more_is_no_reason_to_be_slower(before: list[int], after: list[int], taken: ExecutionTier) -> None:
    ab_test = held({contender(TIER2): before, contender(TIER3): after})
    assert won(ab_test).program.level.tier is taken


def test_numbers_alone_are_no_better_than_all_facts_by_chance() -> None:
    every, alone = contender(TIER3, ("scale", "x.size[0]")), contender(TIER3, ("scale",))
    runs = {every: [727, 731, 720, 740, 722], alone: [724, 733, 719, 741, 721]}
    assert held(runs).winner() is every
    assert held({alone: runs[alone], every: runs[every]}).winner() is every
    better = contender(TIER3, ("scale",))
    assert held({every: runs[every], better: [700, 703, 701, 706, 702]}).winner() is better


@pytest.mark.parametrize(
    ("before", "after", "rounds", "taken"),
    [
        # Four that count, and all are quicker: no more are needed.
        ([1000] * 5, [900] * 5, 5, TIER3),
        ([900] * 5, [1000] * 5, 5, TIER2),
        ([1000] * 5, [990] * 5, 5, TIER3),
        # They overlap, but not in any round.
        ([1000, 1200, 950, 1000, 1000], [900, 960, 900, 900, 900], 5, TIER3),
        # A slow run proves nothing for the other.
        ([1000, 2000, 1000, 1000, 1000], [900, 900, 900, 900, 900], 5, TIER3),
        # The machine changes its speed.
        ([1000, 2000, 500, 1700, 3000], [970, 1950, 490, 1650, 2900], 5, TIER3),
        ([970, 1950, 490, 1650, 2900], [1000, 2000, 500, 1700, 3000], 5, TIER2),
        # Equal, and little is at stake.
        ([1000, 996, 1004, 1000, 1001], [1000, 1002, 998, 1000, 1000], 6, TIER3),
        # Far behind.
        ([1000] * 5, [2000] * 5, 3, TIER2),
        # The machine slows down within the first round: that is not far behind.
        ([1000, *[1600] * 5], [1600, *[1584] * 5], 5, TIER3),
        # Undecided.
        ([1000, 1100, 980, 1060, 1000, 990, 1080], [980, 990, 1060, 1000, 1090, 1010, 1000], 21, TIER3),
    ],
)
def test_rounds_go_on_until_the_fastest_is_known(
    before: list[int], after: list[int], rounds: int, taken: ExecutionTier
) -> None:
    ab_test = held({contender(TIER2): before, contender(TIER3): after})
    assert max(one.rounds_started for one in ab_test.contenders) == rounds
    assert won(ab_test).program.level.tier is taken


def test_one_round_is_taken_at_its_word() -> None:
    slower, faster = contender(TIER3), contender(TIER2)
    ab_test = held({slower: [1000], faster: [999]}, rounds=1)
    assert won(ab_test) is faster
    assert [one.rounds_started for one in ab_test.contenders] == [2, 2]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_where_calls_come_in_pairs_no_program_has_the_first_ones_only(count: int) -> None:
    ab_test = ABTest([contender(TIER3, (str(index),)) for index in range(count)], 12, None)
    rounds = [ab_test.next() for _ in range(12 * count)]
    first = Counter(test_round.contender for test_round in rounds[::2] if test_round)
    assert all(5 <= first[one] <= 7 for one in ab_test.contenders)
    for number in range(12):
        assert {test_round.contender for test_round in rounds[number * count :][:count] if test_round} == set(
            ab_test.contenders
        )


@pytest.mark.parametrize("lost", [0.1, 0.5])
def test_rounds_are_the_same_though_runs_are_lost(lost: float) -> None:
    """The times of some runs are lost, such as those of numbers that a program was not made for."""
    for seed in range(100):
        noise = Random(seed)
        now = [round(1e6 * 2 ** noise.uniform(-1, 1)) for _ in range(200)]
        first, best, last = contender(TIER3, ("a",)), contender(TIER3, ("b",)), contender(TIER3, ("c",))
        runs = {
            one: [round(took * speed * noise.gauss(1, 0.005)) for took in now]
            for one, speed in ((first, 1.0), (best, 0.97), (last, 1.03))
        }
        ab_test = held(
            runs,
            is_lost=lambda test_round, best=best, noise=noise: test_round.contender is best and noise.random() < lost,
        )
        assert won(ab_test) is best, seed


def test_a_program_that_hardly_ran_decides_nothing() -> None:
    slower, faster, rare = contender(TIER3, ("a",)), contender(TIER3, ("b",)), contender(TIER3, ("c",))
    runs = {slower: [960, 1000, 1040], faster: [1000, 950, 960], rare: [500]}
    ab_test = held(
        runs, is_lost=lambda test_round: test_round.contender is rare and test_round.number != 2, patience=60
    )
    assert not ab_test.is_over
    assert won(ab_test) is faster
    assert ab_test.times(faster)[rare] == pytest.approx(0.5 * median(faster.times.values()))


def test_notes_that_come_late_are_those_of_their_rounds() -> None:
    one, other = contender(TIER2), contender(TIER3)
    ab_test = ABTest([one, other], 2, None)
    rounds = [ab_test.next() for _ in range(6)]
    assert [test_round.contender for test_round in rounds if test_round] == [one, other, one, other, other, one]
    times = {one: [9999, 1000, 2000], other: [9999, 990, 1980]}
    for test_round in reversed(rounds):
        assert test_round is not None
        ab_test.note(test_round, times[test_round.contender][test_round.number - 1])
    assert ab_test.is_over
    assert won(ab_test) is other
    assert ab_test.times(other)[one] == pytest.approx(1500, rel=1e-3)


def test_times_are_those_of_the_same_moments() -> None:
    faster, gone = contender(TIER3), contender(TIER2)
    faster.times = {2: 1000, 3: 1000, 4: 2000, 5: 2000, 6: 2000}
    gone.times = {2: 1100, 3: 1098}  # it was the slower one when the machine was fast
    assert ABTest([gone, faster], 5, None).times(faster) == {gone: pytest.approx(2198), faster: 2000}


def test_a_program_that_fails_is_out_and_the_others_go_on() -> None:
    one, other, third = contender(TIER2), contender(TIER3), contender(TIER3, ("x",))
    ab_test = ABTest([one, other, third], 5, None)
    for _ in range(5):
        test_round = ab_test.next()
        assert test_round is not None
        ab_test.note(test_round, 1000 if test_round.contender is third else 1100)
    ab_test.withdraw(other)
    while not ab_test.is_over:
        test_round = ab_test.next()
        assert test_round is not None
        assert test_round.contender is not other
        ab_test.note(test_round, 1000 if test_round.contender is third else 1100)
    assert won(ab_test) is third


def test_where_none_ran_the_most_specialized_wins() -> None:
    one, same, other = contender(TIER2), contender(TIER2), contender(TIER3)
    ab_test = ABTest([one, same, other], 5, None)
    assert not ab_test.is_over
    assert ab_test.winner() is other
    assert ab_test.times(other) == {one: None, same: None, other: None}
    ab_test.withdraw(other)
    assert ab_test.winner() is one
    ab_test.withdraw(same)
    assert ab_test.is_over
    ab_test.withdraw(one)
    assert ab_test.winner() is None
    assert ab_test.next() is None


@given(
    speeds=st.lists(st.floats(0.8, 1.25), min_size=2, max_size=6),
    drift=st.lists(st.floats(0.5, 2.0), min_size=30, max_size=30),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_machine_that_changes_its_speed_does_not_choose(speeds: list[float], drift: list[float], seed: int) -> None:
    """Runs differ by a thousandth, and the machine by a factor of four: the winner is a fiftieth behind at most."""
    noise = Random(seed)
    runs = {
        contender(TIER3, (str(index),)): [round(1e6 * speed * now * noise.gauss(1, 1e-3)) for now in drift]
        for index, speed in enumerate(speeds)
    }
    ab_test = held(runs)
    assert speeds[ab_test.contenders.index(won(ab_test))] <= 1.02 * min(speeds)


def test_what_runs_without_traces_competes_with_what_knows_more() -> None:
    best = Schedule(block=(32, 64))

    def schedules(_: object) -> list[Schedule | None]:
        return [None, best]

    client: Any = SimpleNamespace(name="k", paths=("x", "scale"), schedules=schedules)
    call: Any = SimpleNamespace(fixed=(), described=())
    words = ("scale", "x.size[0]")
    plain = TierLevel(TIER2, (), None)
    near = tier3_levels(client, call, words, best, {None: 1.05, best: 1.0}, 3)
    assert (near[0], near[-1]) == (TierLevel(TIER3, words, best), plain)
    assert {TierLevel(TIER3, words, None), TierLevel(TIER3, ("scale",), best)} <= set(near)
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
