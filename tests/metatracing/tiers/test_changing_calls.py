"""Calls whose arguments change: sites learn what pays, find again what they had, and do not wait for what is rare.

With made-up programs and a clock that stands still; and that stats recorded beside the caller are the same.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest
from made_up_client import MILLISECOND, Later, Made, usual_costs

import tessera as ts
from tessera import Schedule
from tessera.metatracing import Call, ExecutionTier, TierLevel
from tessera.tiers.sites.backoff import BACKOFF_FACTOR, Backoff
from tessera.tiers.sites.stats_recorder import BackgroundRecorder

TIER3 = ExecutionTier.TIER3_SPECIALIZED


def no_gain(level: TierLevel, call: Call) -> int:
    return {1: 1000, 2: 800, 3: 900}[int(level.tier)] * 1000


def test_a_specialisation_that_did_not_pay_is_not_asked_for_at_each_length() -> None:
    made = Made(no_gain, tier2_compilation_threshold_ms=2.0, tier3_specialization_threshold_ms=4.0, bridge_calls=1)
    for number in range(400):
        made.call(3 + number % 40, 8)
    assert made["compiles"] <= 4  # it was 41: two of Tier 3 at each new length
    assert made["contests"] <= 2
    assert made["switch_backs"] == made["contests"]


def test_a_case_that_is_hot_by_itself_is_tried_again_after_a_loss() -> None:
    """It has to be four times as hot; then it may be another story."""

    def costs(level: TierLevel, call: Call) -> int:
        return usual_costs(level, call) if call.values[0].shape[0] == 5 else no_gain(level, call)

    made = Made(costs)
    assert made.call(4, 8, times=200)[-1] == 2
    tiers = made.call(5, 8, times=800)
    assert tiers[-1] == 3
    assert 400 <= tiers.index(3) <= 600  # 400 ms at 0.8 ms a call
    assert made.call(4, 8) == [2]


def test_backoff_fades() -> None:
    backoff, kind = Backoff(half_life=1000.0), (TIER3, ("x.size[0]",))
    assert (backoff.factor(kind, 0), backoff.has_paid(kind)) == (1.0, False)
    backoff.note(kind, False, 0)
    assert backoff.factor(kind, 0) == BACKOFF_FACTOR
    assert backoff.factor(kind, 1000) == BACKOFF_FACTOR**0.5
    backoff.note(kind, False, 1000)
    assert backoff.factor(kind, 1000) == BACKOFF_FACTOR**1.5
    backoff.note(kind, True, 2000)
    assert (backoff.factor(kind, 2000), backoff.has_paid(kind)) == (1.0, True)


def test_where_specialising_has_paid_other_cases_follow_soon() -> None:
    """A case need not be hot by itself, only a part of a hot site that has come a few times."""
    made = Made()
    made.call(4, 8, times=200)
    tiers = made.call(5, 8, times=40)
    assert tiers[:8] == [2] * 8
    assert tiers[-1] == 3  # 32 ms; alone it would have to spend 100
    assert made["bridges"] == 1


def test_cases_are_asked_for_together_where_there_is_room() -> None:
    for room, expected in ((True, 3), (False, 1)):
        later = Later(room)
        made = Made(compiling=later, tier3_specialization_threshold_ms=60, candidates=1)
        made.call(4, 8, times=15)
        later.finish()
        for _ in range(30):
            for rows in (4, 5, 6):
                made.call(rows, 8)
        assert [int(one.levels[0].tier) for one in later.requests] == [3] * expected
        assert [one.is_bridge for one in later.requests] == [False, True, True][:expected]
        later.finish()
        if room:
            assert [made.call(rows, 8, times=30)[-1] for rows in (4, 5, 6)] == [3, 3, 3]


def asked_for(later: Later) -> list[tuple[int, bool]]:
    return [(int(one.tier), one.is_bridge) for one in later.requests]


def fully(made: Made) -> Made:
    """The first program is compiled fully, so that the time it takes says something."""
    made.client.starts_quickly = lambda call: False  # pyright: ignore[reportAttributeAccessIssue]
    return made


@pytest.mark.parametrize(("room", "free", "second", "third"), [(True, True, 3, 25), (True, False, 10, 100)])
def test_where_there_is_room_programs_are_asked_for_ahead(room: bool, free: bool, second: int, third: int) -> None:
    """When a quarter has been spent, at a millisecond a call; and Tier 3 while Tier 2 is under way."""
    later = Later(room)
    later.free = free
    made = fully(Made(compiling=later))
    made.call(4, 8, times=second - 1)
    assert asked_for(later) == []
    made.call(4, 8, times=2)
    assert asked_for(later) == [(2, False)]
    made.call(4, 8, times=third - second - 2)
    assert len(later.requests) == 1
    made.call(4, 8, times=4)
    assert asked_for(later) == [(2, False), (3, False)]
    later.finish()
    assert made.call(4, 8, times=200)[-1] == 3


def test_the_third_tier_is_asked_for_where_the_time_is_spent() -> None:
    """A rare call may be the one that makes a site hot: most programs are tried for the usual one."""
    later = Later(True)
    made = fully(Made(compiling=later, sample_period=None))
    made.call(4, 8, times=24)
    assert asked_for(later) == [(2, False)]
    made.call(5, 8, times=4)
    assert asked_for(later) == [(2, False), (3, False)]
    assert later.requests[1].call.values[0].shape == (4, 8)


def test_without_room_the_third_tier_waits_for_the_first_program_of_the_second() -> None:
    later = Later()
    made = fully(Made(compiling=later, candidates=2))
    made.client.options = [None, Schedule(block=(8, 8))]
    made.call(4, 8, times=9)
    assert asked_for(later) == []
    made.call(4, 8, times=200)
    assert asked_for(later) == [(2, False)]
    later.arrive(0)
    made.call(4, 8, times=20)
    assert asked_for(later) == [(2, False), (3, False)]


def test_a_new_kernel_takes_one_tier_after_the_other() -> None:
    later = Later(True)
    made = Made(compiling=later, candidates=2)
    made.client.options = [None, Schedule(block=(8, 8))]
    made.call(4, 8, times=300)
    later.arrive(0)
    made.call(4, 8, times=300)
    assert asked_for(later) == [(2, False)]


def test_a_case_need_not_have_a_recorded_call_of_its_own_to_go_along() -> None:
    later = Later(True)
    made = fully(Made(compiling=later, sample_period=16))
    made.call(4, 8, times=200)
    assert asked_for(later) == [(2, False), (3, False)]
    made.call(5, 8, times=15)  # the next one would be recorded
    assert len(later.requests) == 2
    made.call(4, 8, times=17)
    assert asked_for(later) == [(2, False), (3, False), (3, True)]
    assert later.requests[2].call.values[0].shape == (5, 8)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"enable_tier3_specialization": False}, [(2, False)]),
        ({"tier2_compilation_threshold_ms": 1e9, "tier3_specialization_threshold_ms": 1e9}, []),
    ],
)
def test_no_case_goes_along_with_a_tier_that_is_off_or_far_away(
    settings: dict[str, Any], expected: list[tuple[int, bool]]
) -> None:
    later = Later(True)
    made = fully(Made(compiling=later, **settings))
    made.call(4, 8)
    ((site,), words) = made.runtime.sites(), ("x.size[0]", "x.size[1]")
    # As where another process has left a program of Tier 3.
    site.tier_policy.words = words
    site.tier_policy.backoff.note((TIER3, words), True, site.clock())
    for rows in range(5, 10):
        made.call(rows, 8, times=12)
    assert asked_for(later) == expected


def test_looking_for_others_forgets_nothing_that_was_asked_for() -> None:
    later = Later(True)
    made = fully(Made(compiling=later))
    for rows in range(4, 304):  # more than are remembered
        made.call(rows, 8)
    for rows in (4, 5, 6, 7):
        made.call(rows, 8, times=60)
    assert asked_for(later).count((3, False)) <= 2


def test_cases_that_become_usual_while_the_first_is_compiled_go_along() -> None:
    later = Later(True)
    made = fully(Made(compiling=later))
    made.call(4, 8, times=60)
    assert asked_for(later) == [(2, False), (3, False)]
    made.call(5, 8, times=7)
    assert len(later.requests) == 2
    made.call(5, 8, times=3)
    for rows in range(6, 16):  # no more than there may be
        made.call(rows, 8, times=12)
    assert asked_for(later) == [(2, False), (3, False), *[(3, True)] * 3]
    later.finish()
    assert [made.call(rows, 8, times=40)[-1] for rows in (4, 5, 6)] == [3, 3, 3]


def test_without_room_other_cases_follow_when_the_first_has_won() -> None:
    later = Later()
    made = fully(Made(compiling=later))
    made.call(4, 8, times=15)
    later.finish()
    made.call(4, 8, times=150)
    made.call(5, 8, times=20)
    assert asked_for(later) == [(3, False)]
    later.arrive(0)
    assert made.call(4, 8, times=20)[-1] == 3
    made.call(5, 8, times=20)
    assert [one for one in later.requests if not one.recalls][1].is_bridge  # the first is not all there yet


@pytest.mark.parametrize("runs", [1, 3, 5])
def test_an_ab_test_goes_on_where_its_calls_find_another_entry(runs: int) -> None:
    """Other programs may be taken meanwhile: then entries are made anew, and programs that competed there still do."""
    later = Later()
    made = Made(compiling=later)
    made.call(4, 8, times=15)
    later.finish()
    made.call(4, 8, times=150)
    later.finish()
    made.call(4, 8, times=runs)  # and the A/B test is not decided
    (site,) = made.runtime.sites()
    assert len(site.candidates.ab_tests) == 1
    second = next(program for program in site.programs if program.tier == 2)
    site.take(second)
    assert made.call(4, 8, times=20)[-1] == 3
    assert site.candidates.ab_tests == []
    made.call(4, 8, times=runs)
    site.forget()
    assert made.call(4, 8, times=20)[-1] == 3
    assert not site.is_working


def test_a_late_program_of_a_lower_tier_competes_only_where_no_program_knows_sizes() -> None:
    later = Later(True)
    made = fully(Made(compiling=later, candidates=2))
    made.client.options = [None, Schedule(block=(8, 8))]
    made.call(4, 8, times=60)
    second, third = later.requests
    for requests in ([second], [third]):
        made.client.ran.clear()
        later.requests = requests
        later.finish()
        made.call(4, 8, times=40)
        assert {int(level.tier) for level in made.client.ran if level.schedule is not None} <= {3}
    assert made.call(4, 8) == [3]
    ab_tests = made["contests"]
    made.client.ran.clear()
    made.call(4, 8, times=40)
    assert not any(level.schedule is not None and level.tier == 2 for level in made.client.ran)
    made.call(5, 8, times=20)
    assert any(level.schedule is not None and level.tier == 2 for level in made.client.ran)
    assert made["contests"] > ab_tests


def test_a_general_program_does_not_keep_others_from_one_of_their_own() -> None:
    """Numbers alone are better than Tier 2, and all facts better still: each case gets what is best."""

    def costs(level: TierLevel, call: Call) -> int:
        alone = level.tier is TIER3 and not any("." in word for word in level.assumed)
        return 700_000 if alone else usual_costs(level, call)

    later = Later()
    made = Made(costs, compiling=later)
    made.call(4, 8, times=15)
    later.finish()
    made.call(4, 8, times=150)
    later.arrive(0)
    assert made.call(4, 8, times=20)[-1] == 3
    later.finish()  # with it, numbers alone: the next case takes that
    assert made.call(5, 8, times=9)[-1] == 3
    assert made.client.ran[-1].assumed == ("factor",)
    made.call(5, 8, times=20)
    later.finish()
    made.call(5, 8, times=20)
    assert len(made.client.ran[-1].assumed) > 1
    assert made["bridges"] == 1


def test_calls_that_are_not_recorded_count_for_the_hotness_of_a_site() -> None:
    made = Made(sample_period=63)
    made.call(4, 8, times=64)
    (site,) = made.runtime.sites()
    assert site.recording.uncounted == 63 * MILLISECOND
    made.call(5, 8)  # the first call of a shape is recorded: 65 ms were spent
    assert made["compiles"] == 1


def test_a_program_whose_calls_do_not_come_holds_up_no_other() -> None:
    later = Later()
    made = Made(compiling=later)
    made.call(4, 8, times=15)
    later.finish()
    made.call(4, 8, times=200)
    later.finish()
    made.call(4, 8, times=40)
    made.call(5, 8, times=12)
    assert [one.recalls for one in later.requests] == [True, False]
    later.finish()  # for five rows; but now there are six
    assert made.call(6, 8, times=12)[-1] == 2
    assert [one.recalls for one in later.requests] == [True, False]
    later.finish()
    assert made.call(6, 8, times=40)[-1] == 3
    assert made.call(5, 8, times=40)[-1] == 3


def test_a_program_that_made_room_comes_back_at_once() -> None:
    """What was the best for a case is found on the disk when the case comes again: no compile, no A/B test."""
    made = Made(max_specialized_kernels=2)
    made.client.on_disk = lambda level: level.tier is TIER3
    made.call(4, 8, times=200)
    made.call(5, 8, times=200)
    made.call(6, 8, times=200)
    assert made["evictions"] > 0
    compiles, ab_tests, loads = made["compiles"], made["contests"], made["loads"]
    assert made.call(4, 8, times=3)[-1] == 3
    assert (made["compiles"], made["contests"]) == (compiles, ab_tests)
    assert made["loads"] == loads + 1


def test_a_program_that_loses_a_second_ab_test_stays_for_others() -> None:
    slow = [False]
    made = Made(lambda level, call: 2 * MILLISECOND if slow[0] and level.tier == 3 else usual_costs(level, call))
    made.call(4, 8, times=200)
    slow[0] = True
    made.call(4, 8, times=6)
    slow[0] = False
    assert set(made.call(4, 8, times=20)) == {2, 3}
    assert (made["contests"], made.call(4, 8)) == (2, [3])
    assert made.call(5, 8) == [2]


def test_a_case_goes_on_where_its_program_changes() -> None:
    """How hot a case is, and how often it came, is not forgotten with the program that served it."""
    made = Made()
    made.call(4, 8, times=9)
    before = made.runtime.sites()[0].entries[0]
    assert made.call(4, 8, times=9)[-1] == 2
    after = made.runtime.sites()[0].entries[0]
    assert (after is not before, after.calls >= 17, after.hotness is before.hotness) == (True, True, True)


def test_a_case_is_not_recorded_more_often_because_its_program_changes() -> None:
    made = Made(sample_period=None)
    made.call(4, 8, times=200)
    (site,) = made.runtime.sites()
    for _ in range(3):
        site.take(next(program for program in site.programs if program.tier == 2))
        before = made["traces"]
        made.call(4, 8, times=8)
        assert made["traces"] == before + 1  # of calls of a millisecond one in eight is


def test_what_another_process_left_for_a_case_is_tried_at_once() -> None:
    made = Made(named="a site", persist=True)
    made.runtime.manager.remember("a site", [TierLevel(TIER3, ("factor", "x.size[0]", "x.size[1]"))])
    made.client.on_disk = lambda level: level.tier is TIER3
    assert made.call(4, 8) == [3]
    assert made["loads"] == 1
    assert made.call(5, 8, times=3)[-1] == 3  # without being hot; what was only made to be there soon does not compete
    assert (made["loads"], made["compiles"]) == (2, 0)


def test_books_are_kept_beside_the_caller() -> None:
    stats_recorder, main = BackgroundRecorder(), threading.current_thread()
    done: list[threading.Thread] = []
    began = threading.Event()

    def slow() -> None:
        began.wait(5)
        done.append(threading.current_thread())

    stats_recorder.do(slow)
    stats_recorder.do(lambda: done.append(threading.current_thread()))
    assert done == []
    began.set()
    stats_recorder.settle()
    assert len(done) == 2
    assert main not in done
    for _ in range(200):  # more than may wait are done by who brings them, and nothing is lost
        stats_recorder.do(lambda: done.append(main))
    stats_recorder.settle()
    assert len(done) == 202


def test_what_goes_wrong_in_the_books_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    stats_recorder = BackgroundRecorder()
    with caplog.at_level(logging.WARNING):
        stats_recorder.do(lambda: 1 // 0)
        stats_recorder.settle()
    assert "processing a recorded call failed: ZeroDivisionError" in caplog.text


def test_a_call_does_not_wait_for_the_books() -> None:
    """While another thread has the site, calls run what there is, and are counted later."""
    made = Made()
    made.call(4, 8, times=20)
    made.runtime.stats_recorder = BackgroundRecorder()
    (site,) = made.runtime.sites()
    x, held, go = ts.ones((4, 8)), threading.Event(), threading.Event()

    def hold() -> None:
        with site.lock:
            held.set()
            go.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(5)
    before = time.monotonic()
    for _ in range(50):
        made.checked(x, x, 2.0, False)
    assert time.monotonic() - before < 5
    go.set()
    holder.join()
    made.checked(x, x, 2.0, False)
    assert made.runtime.get_runtime_stats().total_executions == 71
    assert made.clock() >= 71 * MILLISECOND // 2
