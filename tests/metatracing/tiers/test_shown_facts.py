"""What Tier 3 assumes has been seen often enough, however long calls take; and what no longer holds is given up."""

from __future__ import annotations

import pytest
from made_up_client import MILLISECOND, Later, Made, usual_costs

from tessera.errors import TesseraError
from tessera.metatracing import Call, ExecutionTier, RuntimeConfig, TierLevel
from tessera.tiers.records import Described, LaunchFacts, Record
from tessera.tiers.sites.invariants import few_cases, invariant_words, times_shown

TIER3 = ExecutionTier.TIER3_SPECIALIZED


def long(level: TierLevel, call: Call) -> int:
    """A fifth of a second: a single call passes both thresholds."""
    return 200 * usual_costs(level, call)


def assumed(made: Made) -> set[str]:
    """The words that the site assumes at Tier 3."""
    (site,) = made.runtime.sites()
    return set(site.tier_policy.words or ())


def test_a_size_that_few_long_calls_had_is_not_assumed() -> None:
    made = Made(long)
    for rows in range(2, 9):
        assert 3 not in made.call(rows, 8)
        assert assumed(made) == set()
    for number in range(400):
        made.call(9 + number % 24, 8)
    assert {"x.size[1]", "factor"} <= assumed(made)
    assert not assumed(made) & {"x.size[0]", "y.size[0]"}
    assert not any("x.size[0]" in level.assumed for level in made.client.ran)
    assert made.call(77, 8) == [3]  # such rows were never seen
    assert (made["bridges"], made["generalisations"]) == (0, 0)


@pytest.mark.parametrize("shown", [1, 3, 8])
def test_a_size_that_enough_long_calls_had_is_assumed(shown: int) -> None:
    later = Later()
    made = Made(long, compiling=later, enable_tier2_compilation=False, shown_calls=shown)
    made.call(4, 8, times=shown - 1)
    assert later.requests == []
    made.call(4, 8)
    assert len(later.requests) == 1
    later.finish()
    assert made.call(4, 8, times=20)[-1] == 3
    assert {"x.size[0]", "x.size[1]", "factor"} <= assumed(made)


def test_without_a_threshold_one_call_is_enough() -> None:
    made = Made(enable_tier2_compilation=False, tier3_specialization_threshold_ms=0.0)
    made.call(4, 8)
    assert "x.size[0]" in assumed(made)
    assert RuntimeConfig().least_shown == 8
    with pytest.raises(TesseraError, match="shown_calls"):
        RuntimeConfig(shown_calls=0)


def test_alternating_cases_are_each_shown_often_enough() -> None:
    made = Made(long)
    for number in range(20):
        made.call(4 + number % 3, 8)
    assert assumed(made) == set()
    for number in range(80):
        made.call(4 + number % 3, 8)
    assert "x.size[0]" in assumed(made)
    assert [made.call(rows, 8)[0] for rows in (4, 5, 6)] == [3, 3, 3]


def test_numbers_have_to_be_shown_too() -> None:
    made = Made(long)
    for number in range(40):
        made.call(4, 8, factor=float(number))
    assert "x.size[0]" in assumed(made)
    assert "factor" not in assumed(made)


def test_without_traces_calls_are_counted() -> None:
    made = Made(long, enable_tracing=False)
    made.call(4, 8, times=7)
    assert assumed(made) == set()
    assert made.call(4, 8, times=20)[-1] == 3


def test_what_no_longer_holds_is_given_up_though_no_case_comes_often() -> None:
    """Rows were always four, and then they change: no length comes often enough for a program of its own."""
    made = Made()
    made.call(4, 8, times=200)
    assert "x.size[0]" in assumed(made)
    for number in range(400):
        made.call(5 + number, 8)
    assert (made["bridges"], made["generalisations"]) == (0, 1)
    assert made.call(999, 8) == [3]
    assert made.client.ran[-1].assumed == ("factor", "x.size[1]", "x.stride[0]", "x.stride[1]", *Y)
    assert made.call(4, 8) == [3]
    assert "x.size[0]" in made.client.ran[-1].assumed


Y = ("y.size[1]", "y.stride[0]", "y.stride[1]")


@pytest.mark.acceptance
def test_a_generalised_program_does_not_lose_to_one_that_knows_more() -> None:
    """It is for calls which that one refuses; those that it serves come in between."""
    made = Made(lambda level, call: usual_costs(level, call) + 50_000 * ("x.size[0]" not in level.assumed))
    made.call(4, 8, times=200)
    for number in range(400):
        made.call(5 + number, 8)
        made.call(4, 8)
    assert made["generalisations"] == 1
    assert [made.call(999, 8), made.call(4, 8)] == [[3], [3]]


def test_few_cases_stay_bridges() -> None:
    made = Made()
    made.call(4, 8, times=200)
    for number in range(200):
        made.call(4 + number % 4, 8)
    assert (made["bridges"], made["generalisations"]) == (3, 0)


# What records show


def record(arguments: Described, took: int = MILLISECOND, calls: int = 1) -> Record:
    return Record(0, TIER3, arguments, took, calls, LaunchFacts())


def test_a_first_call_does_not_outweigh_all_others() -> None:
    """It took a thousand times as long: by time alone nothing else would count."""
    cold = [record((0,), 1000 * MILLISECOND)]
    alternating = [record((number % 24,)) for number in range(96)]
    assert few_cases(cold, 5, 0.95)
    assert not few_cases(cold + alternating, 5, 0.95)
    assert few_cases(cold + [record((number % 5,)) for number in range(96)], 5, 0.95)
    assert invariant_words(("n",), cold + alternating, (0,), 0.95) == ()


def test_words_are_those_of_enough_calls() -> None:
    seen = [record((2.0, 1), calls=3), record((2.0, 7), calls=2)]
    names = ("factor", "n")
    assert invariant_words(names, seen, (2.0, 7), 0.3) == ("factor", "n")
    assert invariant_words(names, seen, (2.0, 7), 0.3, least=3) == ("factor",)
    assert invariant_words(names, seen, (2.0, 7), 0.3, least=6) == ()
    assert invariant_words(names, seen, (-2.0, 1), 0.5) == ("n",)
    assert [times_shown(names, seen, (2.0, n)) for n in (1, 7, 9)] == [3, 2, 0]
