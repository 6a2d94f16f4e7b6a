"""Tiers with made-up programs and a clock that stands still: how often things happen is asserted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from made_up_client import MILLISECOND, Later, Made, usual_costs

import tessera as ts
from tessera import Schedule, knobs
from tessera.errors import CompileError, DeviceError, ResourceError, TesseraError
from tessera.metatracing import Call, ExecutionTier, MetaTracingRuntime, RuntimeConfig, TierLevel
from tessera.tiers.client import GuardType, RuntimeGuard
from tessera.tiers.sites.programs import numbers_hold


def test_a_hot_site_reaches_the_third_tier() -> None:
    made = Made()
    tiers = made.call(4, 8, times=200)
    assert tiers[0] == 1
    assert tiers[-1] == 3
    # More than ten milliseconds at 1 ms a call, which decay; what was made to be there soon does not compete.
    assert tiers[:12] == [1] * 11 + [2]
    # After 100 ms, an A/B test of one warm run and four counted ones each: runs are all alike, and there is no doubt.
    hot = tiers.index(3)
    assert sum([1000] * 10 + [800] * (hot - 11)) >= 100_000 - 10_000
    assert sorted(tiers[hot - 1 : hot + 14]) == [2] * 5 + [3] * 10  # with all facts, and with numbers alone
    assert set(tiers[hot + 14 :]) == {3}
    assert made["compiles"] == 3
    assert made["contests"] == 1
    assert made["traces"] == 200
    assert [made[name] for name in ("bridges", "deopts", "aborts", "switch_backs", "generalisations")] == [0] * 5
    stats = made.runtime.get_runtime_stats()
    assert stats.total_executions == 200
    assert stats.average_tier3_time_ms == pytest.approx(0.6 + 5 * 0.2 / stats.tier3_executions)
    assert stats.active_specialized_kernels == 2


def test_thresholds_are_time_and_not_calls() -> None:
    quick = Made(lambda level, call: usual_costs(level, call) // 100)
    assert set(quick.call(4, 8, times=900)) == {1}  # 10 µs each: 9 ms
    assert 2 in quick.call(4, 8, times=200)


def test_time_that_was_spent_long_ago_does_not_count() -> None:
    made = Made(half_life_s=0.001)
    for _ in range(100):
        assert made.call(4, 8) == [1]
        made.clock.advance(20 * MILLISECOND)
    assert made["compiles"] == 0


def test_tiers_can_be_switched_off() -> None:
    assert set(Made(enable_tier2_compilation=False, enable_tier3_specialization=False).call(4, 8, times=300)) == {1}
    assert set(Made(enable_tier3_specialization=False).call(4, 8, times=300)) == {1, 2}
    assert set(Made(enable_tier2_compilation=False).call(4, 8, times=300)) == {1, 3}


def test_a_refused_call_runs_a_lower_tier_and_gets_a_bridge() -> None:
    made = Made()
    made.call(4, 8, times=200)
    assert made.call(5, 8) == [2]
    assert made["deopts"] == 1
    assert made.runtime.counts.guard_failures == {"x.size[0]": 1}
    assert made.call(4, 8) == [3]
    assert made.call(5, 8, times=200)[-1] == 3
    assert made["bridges"] == 1
    assert made.call(4, 8) == [3]


def test_a_program_for_numbers_alone_serves_what_others_refuse() -> None:
    """It stays where it is faster than the tier below; hot calls that it serves still get a bridge."""
    made = Made(lambda level, call: usual_costs(level, call) - 100_000 * (level.tier == 3))
    made.call(4, 8, times=200)
    (site,) = made.runtime.sites()
    assert [program.level.assumed for program in site.programs[1:]] == [("factor",), (), ()]
    assert made.call(5, 8) == [3]
    assert made.client.ran[-1].assumed == ("factor",)
    assert made.runtime.counts.guard_failures == {}
    assert made.call(5, 8, factor=3.0) == [2]
    made.call(5, 8, times=300)
    assert made["bridges"] == 1
    assert "x.size[0]" in made.client.ran[-1].assumed
    assert made.call(4, 8) == [3]


def test_schedules_that_did_well_come_first_and_those_far_behind_not_again() -> None:
    options = [Schedule(block=(size,)) for size in (16, 32, 64)]
    factors = dict(zip([None, *options], (1.0, 0.9, 1.8, 0.8), strict=True))
    made = Made(lambda level, call: round(usual_costs(level, call) * factors[level.schedule]), candidates=4)
    made.client.options = [None, *options]
    made.call(4, 8, times=300)
    third = [level.schedule for level in dict.fromkeys(made.client.ran) if level.tier == 3 and len(level.assumed) > 1]
    assert third == [options[2], options[0], None]


def test_bridges_have_a_cap_and_then_the_site_is_generalised() -> None:
    made = Made(most_bridges=2, max_trace_history=100)
    made.call(4, 8, times=200)
    for rows in (5, 6, 7, 9, 10, 11, 12, 13):
        made.call(rows, 8, times=400)
    assert made["bridges"] == 2
    assert made["generalisations"] == 1
    assert made.call(99, 8) == [3]  # such rows were never seen: the generalised program does not ask for them
    (site,) = made.runtime.sites()
    assert not any("size[0]" in str(guard) for guard in site.programs[-2].compiled.guards)


def test_a_site_whose_sizes_vary_from_the_start_assumes_what_does_not() -> None:
    made = Made()
    for number in range(500):
        made.call(4 + number % 40, 8)
    (site,) = made.runtime.sites()
    assert site.tier_policy.words is not None
    assert "x.size[1]" in site.tier_policy.words
    assert "factor" in site.tier_policy.words
    assert "x.size[0]" not in site.tier_policy.words
    assert made["bridges"] == 0
    assert made.call(77, 8) == [3]


def test_numbers_are_guarded_at_every_call() -> None:
    made = Made()
    made.call(4, 8, factor=2.0, times=200)
    assert made.call(4, 8, factor=2.0) == [3]
    assert made.call(4, 8, factor=3.0) == [2]
    assert made.call(4, 8, factor=2.0) == [3]
    assert made.runtime.counts.guard_failures == {"factor": 1}
    assert made.call(4, 8, factor=3.0, times=200)[-1] == 3
    assert made.call(4, 8, factor=2.0) == [3]
    assert made["bridges"] == 1


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (float("inf"), -float("inf")), (1, 2), (True, False)])
def test_numbers_are_distinguished(one: float, other: float) -> None:
    made = Made()
    x = ts.ones((4, 8))
    for _ in range(200):
        made.checked(x, x, one, False)
    before = len(made.client.ran)
    made.checked(x, x, other, False)
    assert int(made.client.ran[before].tier) == 2


def test_types_of_numbers_and_static_values_are_sites_of_their_own() -> None:
    made = Made()
    made.call(4, 8, factor=1.0, times=200)
    assert made.call(4, 8, factor=1) == [1]
    assert made.call(4, 8, factor=True) == [1]
    assert made.call(4, 8, factor=1.0, flag=True) == [1]
    assert made.call(4, 8, factor=1.0) == [3]
    assert len(made.runtime.sites()) == 4


def test_strides_are_guarded() -> None:
    made = Made()
    x = ts.arange(64, dtype=ts.f32).reshape(8, 8)
    for _ in range(200):
        assert made.checked(x, x, 2.0, False)
    assert made.checked(x, x, 2.0, False) == 3
    assert made.checked(x.T, x, 2.0, False) == 2
    assert made.checked(x, x.T, 2.0, False) == 2


def test_the_best_of_several_schedules_is_taken_by_measurement() -> None:
    blocks = {None: 900, Schedule(block=(32, 32)): 500, Schedule(block=(16, 16)): 5000}

    def costs(level: TierLevel, call: Call) -> int:
        return 1_000_000 if level.tier == 1 else blocks[level.schedule] * 1000 - 100 * int(level.tier)

    made = Made(costs)
    made.client.options = list(blocks)
    made.call(4, 8, times=300)
    last = made.client.ran[-1]
    assert last == TierLevel(last.tier, last.assumed, Schedule(block=(32, 32)))
    assert int(made.client.ran[-1].tier) == 3
    # A program that is far behind gets one warm run and two that count.
    assert sum(level.schedule == Schedule(block=(16, 16)) for level in made.client.ran) == 3


def test_a_specialisation_that_is_slower_is_not_taken() -> None:
    made = Made(lambda level, call: {1: 1000, 2: 800, 3: 1100}[int(level.tier)] * 1000)
    tiers = made.call(4, 8, times=400)
    assert tiers[-1] == 2
    assert tiers.count(3) == 10  # of each one that does not count, and four that do: then it is certain
    assert made["switch_backs"] == 1
    assert made.runtime.get_runtime_stats().active_specialized_kernels == 1


def test_a_specialisation_that_becomes_slow_is_left() -> None:
    slow = [False]

    def costs(level: TierLevel, call: Call) -> int:
        return 2 * MILLISECOND if slow[0] and level.tier == 3 else usual_costs(level, call)

    made = Made(costs)
    made.call(4, 8, times=200)
    slow[0] = True
    assert made.call(4, 8, times=100)[-1] == 2
    assert made["switch_backs"] == 1


def test_a_compile_that_fails_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    made = Made()
    made.client.failing = lambda level: level.tier > 1
    with caplog.at_level(logging.WARNING):
        assert set(made.call(4, 8, times=300)) == {1}
    assert made["aborts"] == 3
    first, _, last = [record.message for record in caplog.records]
    assert first == "scaled: tier 2 is given up: tier 2 cannot be compiled"
    assert last == "scaled: tier 3, assuming factor is given up: tier 3, assuming factor cannot be compiled"


def test_facts_that_make_a_program_slower_are_left_out() -> None:
    def costs(level: TierLevel, call: Call) -> int:
        return 900_000 if len(level.assumed) > 1 else usual_costs(level, call)

    made = Made(costs)
    assert made.call(4, 8, times=200)[-1] == 3
    assert made.client.ran[-1].assumed == ("factor",)
    assert made.call(9, 8) == [3]  # sizes are not among its guards
    assert made["deopts"] == 0


def test_a_kernel_that_cannot_be_compiled_quickly_is_compiled_fully() -> None:
    made = Made()
    made.client.failing = lambda level: level.quick
    assert made.call(4, 8) == [1]
    made.client.failing = lambda level: True
    with pytest.raises(CompileError):
        made.call(4, 9)


@pytest.mark.parametrize("fault", [ResourceError("no scratch memory"), MemoryError(), DeviceError("launch failed")])
@pytest.mark.parametrize("where", ["bind_faults", "run_faults"])
def test_a_program_that_cannot_begin_is_replaced_by_the_next_tier_down(fault: Exception, where: str) -> None:
    made = Made()
    made.call(4, 8, times=200)
    getattr(made.client, where)[3] = fault
    assert made.call(4, 8, times=20)[0] == (2 if where == "run_faults" else 3)
    made.runtime.sites()[0].forget()
    assert set(made.call(4, 8, times=300)) == {2}
    assert made["aborts"] >= 1
    getattr(made.client, where)[1] = getattr(made.client, where)[2] = fault
    made.runtime.sites()[0].forget()
    with pytest.raises(type(fault)):
        made.call(4, 8)


def test_a_fault_during_an_ab_test_ends_it() -> None:
    made = Made()
    made.client.run_faults[2] = ResourceError("no scratch memory")
    tiers = made.call(4, 8, times=300)
    assert 2 not in tiers
    assert tiers[-1] == 3
    assert made["aborts"] == 1


def test_calls_go_on_where_all_that_compete_fail() -> None:
    """A program of fast compilation does not compete: then none is left, and it goes on."""
    made = Made()
    made.client.options = [None, Schedule(block=(8, 8)), Schedule(block=(16, 8))]
    made.client.run_faults[2] = ResourceError("no scratch memory")
    made.client.run_faults[3] = ResourceError("no scratch memory")
    assert set(made.call(4, 8, times=300)) == {1}
    assert made["aborts"] >= 3
    assert not any(site.is_working for site in made.runtime.sites())


def test_settings_and_captures_that_change_are_noticed() -> None:
    made = Made()
    made.call(4, 8, times=200)
    made.client.settings = "others"
    assert made.call(4, 8) == [1]
    made.client.settings = "usual"
    assert made.call(4, 8) == [3]
    made.client.captured = 2
    assert made.call(4, 8) == [1]
    assert made["invalidations"] == 2
    assert made.runtime.get_runtime_stats().active_specialized_kernels == 0


@pytest.mark.acceptance
def test_programs_are_bounded_in_number_and_bytes() -> None:
    made = Made(max_specialized_kernels=4)
    for width in range(8, 20):
        made.call(4, width, times=200)
        assert len(made.runtime.manager) <= 4
    assert made["evictions"] > 0
    heavy = Made(max_compilation_memory_mb=1)
    heavy.client.nbytes = 400_000
    for width in range(8, 20):
        heavy.call(4, width, times=200)
        assert heavy.runtime.manager.nbytes <= 1 << 20


def test_the_manager_tells_of_programs_and_lets_them_go() -> None:
    made = Made()
    x = ts.ones((4, 8))
    for _ in range(200):
        made.checked(x, x, 2.0, False)
    manager = made.runtime.manager
    best = manager.find_best_specialized_kernel((x, x, 2.0))
    assert best is not None
    assert int(best.level.tier) == 3
    assert (best.context.constant_seq_len, best.context.constant_head_dim) == (4, 8)
    assert best.context.memory_layout == {"x.stride[0]": 8, "x.stride[1]": 1, "y.stride[0]": 8, "y.stride[1]": 1}
    assert "factor = 2.0" in [guard.condition_code for guard in best.guards]
    assert best.average_time_ms == pytest.approx(0.6)
    other = manager.find_best_specialized_kernel((x, x, 3.0))
    assert other is not None
    assert int(other.level.tier) == 2
    assert manager.find_best_specialized_kernel((1.0,)) is None
    manager.evict_least_used_kernels(1)
    assert [int(one.level.tier) for one in manager.specialized_kernels()] == [3]
    assert made.checked(x, x, 2.0, False) == 3
    manager.unload_specialized_kernel("scaled")
    assert made.checked(x, x, 2.0, False) == 1
    sample = made.runtime.get_performance_history()[-1]
    for _ in range(100):
        manager.record_kernel_performance("scaled", sample)
    assert manager.kernel_performance("scaled") == [sample] * 64
    manager.clear_kernel_cache()
    assert len(manager) == 0


def test_what_saves_most_stays() -> None:
    def costs(level: TierLevel, call: Call) -> int:
        gain = 400 if call.values[0].shape[-1] == 8 else 10
        return (1000 - gain * (int(level.tier) - 1)) * 1000

    made = Made(costs, max_specialized_kernels=3, half_life_s=1000.0)
    made.call(4, 8, times=2000)
    for width in range(9, 20):
        made.call(4, width, times=100)
    assert made.call(4, 8) == [3]


@pytest.mark.acceptance
def test_an_adversarial_stream_of_shapes_stays_within_the_caps() -> None:
    made = Made(max_specialized_kernels=6)
    for number in range(600):
        made.call(1 + number % 150, 4 + number % 7, factor=float(number % 11), flag=bool(number % 2))
    assert len(made.runtime.manager) <= 6
    for site in made.runtime.sites():
        assert site.tier_policy.bridges <= site.config.most_bridges
        assert len(site.programs) <= 20
        assert len(site.ring) <= site.config.max_trace_history


def test_recording_is_sampled() -> None:
    made = Made(lambda level, call: 1000, sample_period=63)
    made.call(4, 8, times=6400)
    stats = made.runtime.get_runtime_stats()
    assert stats.total_executions == 6400
    assert 100 <= made["traces"] <= 101
    chosen = Made(lambda level, call: 1000, sample_period=None)
    chosen.call(4, 8, times=640)
    assert chosen.runtime.get_runtime_stats().total_executions == 640
    assert 10 <= chosen["traces"] <= 12


@pytest.mark.parametrize(("room", "calls"), [(False, [100]), (True, [25, 250])])
@pytest.mark.parametrize("late", [False, True])
def test_the_call_that_makes_a_site_hot_is_recorded(room: bool, calls: list[int], late: bool) -> None:
    later = Later(room=room)
    made = Made(lambda level, call: 100_000, later, sample_period=None)
    made.client.starts_quickly = lambda call: False
    made.call(4, 8)
    if late:
        (site,) = made.runtime.sites()
        site.timer = LateTimer(made)
    asked = [made.call(4, 8) and len(later.requests) for _ in range(299)]
    first = [asked.index(count + 1) + 2 for count in range(len(calls))]
    assert first == [call + 1 for call in calls]  # time decays a little
    assert asked[-1] == len(calls)
    assert made["traces"] < 20


def test_calls_go_on_while_something_is_compiled() -> None:
    later = Later()
    made = Made(compiling=later)
    assert set(made.call(4, 8, times=100)) == {1}
    assert len(later.requests) == 1
    later.finish()
    assert 2 in made.call(4, 8, times=20)
    made.call(4, 8, times=200)
    later.finish()
    assert made.call(4, 8, times=20)[-1] == 3


class LateTimer:
    """Times as a GPU gives them: known some calls later."""

    def __init__(self, made: Made) -> None:
        self.made, self.calls = made, 0

    def timed(self, run: Callable[..., Any], values: Sequence[Any]) -> tuple[Any, Callable[[], int | None]]:
        began = self.made.clock()
        result = run(*values)
        self.calls += 1
        took, known = self.made.clock() - began, self.calls + 3
        return result, lambda: took if self.calls >= known else None


def test_times_may_come_late() -> None:
    made = Made(lambda level, call: {1: 1000, 2: 500, 3: 2000}[int(level.tier)] * 1000)
    made.call(4, 8)
    (site,) = made.runtime.sites()
    site.timer = LateTimer(made)
    tiers = made.call(4, 8, times=600)
    assert set(tiers) == {1, 2, 3}
    assert tiers[-1] == 2
    assert made["switch_backs"] == 1
    assert 550 < made["traces"] <= 601
    assert made.runtime.get_runtime_stats().total_executions == 601


class GraphTimer:
    """As on a GPU's stream whose launches become nodes of a graph."""

    def timed(self, run: Callable[..., Any], values: Sequence[Any]) -> tuple[Any, None]:
        return run(*values), None


def test_calls_that_become_part_of_a_graph_took_no_time() -> None:
    """They are counted, but nothing is recorded of them, and no program wins by them."""
    made = Made()
    made.call(4, 8)
    (site,) = made.runtime.sites()
    site.timer, usual = GraphTimer(), site.timer
    assert set(made.call(4, 8, times=300)) == {1}
    assert made["traces"] == 1
    assert made.runtime.get_runtime_stats().total_executions == 301
    site.timer = usual
    assert made.call(4, 8, times=300)[-1] == 3


def test_a_call_that_cannot_be_traced_is_made_as_it_is() -> None:
    made = Made()
    found = made.tiered(np.ones(3, np.float32), np.ones(3, np.float32), np.float32(2))
    np.testing.assert_array_equal(found, [3, 3, 3])
    assert made["traces"] == 0


def test_wrong_arguments_are_refused_as_ever() -> None:
    made = Made()
    made.call(4, 8)
    x = ts.ones((4, 8))
    for args, kwargs in [((x,), {}), ((x, x, 1.0, 2.0), {}), ((x, x, 1.0), {"nonsense": 1})]:
        with pytest.raises(TypeError):
            made.tiered(*args, **kwargs)
    np.testing.assert_array_equal(np.asarray(made.tiered(y=x, factor=1.0, x=x)), 2 * np.ones((4, 8)))


def test_logs_tell_of_tiers(caplog: pytest.LogCaptureFixture) -> None:
    made = Made()
    with knobs.logs.using("tiers"), caplog.at_level(logging.WARNING):
        made.call(4, 8, times=200)
    lines = [record.message for record in caplog.records]
    assert lines[0] == "scaled: hot, compiling tier 2"
    assert "scaled: tier 2: 800.0 µs" in lines
    assert made.runtime.explain().splitlines()[0].startswith("scaled: 200 calls, ")
    caplog.clear()
    with knobs.logs.using("guards"), caplog.at_level(logging.WARNING):
        made.call(5, 8)
    assert [record.message for record in caplog.records] == [
        "scaled: x.size[0] = 4 does not hold, it is 5; tier 2 runs"
    ]


NAN = float("nan")


@pytest.mark.parametrize(
    "wrong",
    [
        {"half_life_s": 0},
        {"half_life_s": NAN},
        {"max_specialized_kernels": 0},
        {"max_trace_history": 2.5},
        {"invariance": 0.2},
        {"most_bridges": -1},
        {"bridge_calls": -1},
        {"sample_period": -1},
        {"tier2_compilation_threshold_ms": NAN},
    ],
    ids=str,
)
def test_a_config_without_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(TesseraError, match="RuntimeConfig"):
        RuntimeConfig(**wrong)  # pyright: ignore[reportArgumentType]  (on purpose)


def test_a_client_has_one_tiered_function() -> None:
    made = Made()
    assert made.runtime.tiered(made.client) is made.tiered
    assert isinstance(made.runtime, MetaTracingRuntime)


@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan"), 3, True])
def test_a_number_is_distinguished_from_all_others(number: float) -> None:
    guard = RuntimeGuard(GuardType.VALUE_GUARD, 0, 0, "scale", number)
    quick = numbers_hold([guard], [0])
    assert quick is not None
    for other in (0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan")):
        same = repr(other) == repr(number)
        assert guard.check_function([other]) == same
        if isinstance(number, float):
            assert quick(other) == same
    assert quick(number)
    assert guard.check_function([number])


def test_the_first_of_several_programs_does_not_wait_for_the_others() -> None:
    """It competes when it comes, and with the others when these are there."""

    def costs(level: TierLevel, call: Call) -> int:
        rows = {None: 8, Schedule(block=(1,)): 6, Schedule(block=(2,)): 9}[level.schedule]
        return MILLISECOND * (10 if level.tier == 1 else rows - (level.tier == 3))

    later = Later()
    made = Made(costs, later, enable_tier1_fallback=False, tier3_specialization_threshold_ms=1000)
    made.client.options = [None, Schedule(block=(1,)), Schedule(block=(2,))]
    assert set(made.call(4, 8, times=4)) == {1}
    later.arrive(0)
    assert made.call(4, 8, times=20)[-1] == 2
    assert made["contests"] == 1
    (site,) = made.runtime.sites()
    assert site.programs[0].level == TierLevel(ExecutionTier.TIER2_STANDARD)
    later.arrive(2)  # programs that come then wait for the last
    made.call(4, 8, times=20)
    assert made["contests"] == 1
    later.finish()
    made.call(4, 8, times=30)
    assert site.programs[0].level.schedule == Schedule(block=(1,))
    assert (made["contests"], made["compiles"]) == (2, 3)
    made.call(4, 8, times=200)
    later.arrive(0)
    assert made.call(4, 8, times=20)[-1] == 3
    later.finish()
    made.call(4, 8, times=40)
    assert site.programs[0].level.tier is ExecutionTier.TIER3_SPECIALIZED
    assert made["switch_backs"] == 0


def test_a_program_that_came_first_and_lost_competes_again_with_the_others() -> None:
    costs: dict[TierLevel, int] = {}
    later = Later()
    made = Made(lambda level, call: MILLISECOND * costs.get(level, 10), later, enable_tier1_fallback=False)
    made.client.options = [None, Schedule(block=(1,))]
    first, other = (TierLevel(ExecutionTier.TIER2_STANDARD, (), one) for one in made.client.options)
    costs |= {first: 12, other: 15}
    made.call(4, 8, times=4)
    later.arrive(0)
    assert made.call(4, 8, times=20)[-1] == 1
    costs[first] = 9
    later.finish()
    assert made.call(4, 8, times=30)[-1] == 2
