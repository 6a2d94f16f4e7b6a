"""Records, samples and programs of calls: of the program that ran, and by the names that the call has."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_client import Made, MadeUpProgram, usual_costs

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.metatracing import Call, GuardType, MetaTracingRuntime, RuntimeConfig, RuntimeGuard, TierLevel
from tessera.tiers.records import LaunchFacts


def blocks(level: TierLevel) -> int:
    return 1 if level.schedule is None or level.schedule.block is None else level.schedule.block[0]


def test_a_record_has_the_grid_of_the_program_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    def facts(self: MadeUpProgram, call: Call) -> LaunchFacts:
        return LaunchFacts(blocks=blocks(self.level))

    monkeypatch.setattr(MadeUpProgram, "launch_facts", facts)
    made = Made()
    made.client.options = [None, Schedule(block=(32, 32)), Schedule(block=(64, 64))]
    made.call(4, 8, times=200)
    ran = [blocks(one) for one in made.client.ran]
    assert {1, 32, 64} <= set(ran)  # those that competed, too
    assert [one.execution_pattern.blocks_launched for one in made.runtime.get_traces()] == ran


def test_programs_that_know_numbers_serve_what_comes_later_and_the_winner_refuses() -> None:
    def costs(level: TierLevel, call: Call) -> int:
        return 700_000 if level.assumed == ("factor",) else usual_costs(level, call)

    made = Made(costs, bridge_calls=1000)
    tiers = [[made.call(4, 8, times=8)[0], made.call(5, 8)[0]] for _ in range(30)]
    assert tiers[-1] == [3, 2]  # it has an entry, and a bridge would come
    assert made.call(6, 8)[0] == 3
    assert made.client.ran[-1].assumed == ("factor",)
    assert made["bridges"] == 0


def test_a_trace_has_the_flag_and_the_scale_that_the_call_names() -> None:
    @kernel
    def attend(x: Any, sm_scale: float, eps: float, *, verbose: bool = True, is_causal: bool = False) -> Any:
        return tile.load(x) * sm_scale + eps

    @kernel
    def shifted(x: Any, by: float, *, verbose: bool = True) -> Any:
        return tile.load(x) + by

    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, persist=False))
    x = ts.ones((4, 8))
    runtime.tiered(attend)(x, 0.5, 0.0, is_causal=True)
    runtime.tiered(attend)(x, 0.25, 0.0)
    runtime.tiered(shifted)(x, 2.0)
    found = [one.input_profile for one in runtime.get_traces()]
    assert [(one.is_causal, one.softmax_scale) for one in found] == [(True, 0.5), (False, 0.25), (False, None)]


def test_a_kernel_of_a_user_with_the_name_of_attention_has_no_rate() -> None:
    @kernel
    def flash_attention(x: Any) -> Any:
        return tile.load(x) * 2.0

    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, persist=False))
    runtime.tiered(flash_attention)(ts.ones((4, 8)))
    (sample,) = runtime.get_performance_history()
    assert sample.tflops_achieved is None


def test_a_relation_that_holds_does_not_say_that_programs_are_causal(monkeypatch: pytest.MonkeyPatch) -> None:
    related = RuntimeGuard(GuardType.RELATION_GUARD, 0, 0, "y.size[0] = x.size[0]", True, bool)
    begun = MadeUpProgram.__init__

    def begin(self: MadeUpProgram, *given: Any) -> None:
        begun(self, *given)
        self.guards = (related, *self.guards)

    monkeypatch.setattr(MadeUpProgram, "__init__", begin)
    made = Made()
    made.call(4, 8, times=200)
    found = made.runtime.manager.specialized_kernels()
    assert found
    assert [one.context.always_causal for one in found] == [None] * len(found)
