"""Risks: each is injected, found in the samples, changes the configuration, and is gone under the new one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from made_up_client import MILLISECOND, Made, MadeUp, usual_costs

import tessera as ts
from tessera.metatracing import ExecutionTier, InputProfile, ManualClock, MetaTracingRuntime, RuntimeConfig
from tessera.tiers.client import Call, TierLevel
from tessera.tiers.records import PerformanceSample
from tessera.tiers.risks import PerformanceRisk, RiskMitigationFramework, RiskType, specialization_gains

TIER1, TIER2, TIER3 = ExecutionTier
FRAMEWORK = RiskMitigationFramework()


class Costly(MadeUp):
    """Compiling takes time here, which passes while the caller waits."""

    def compile(self, call: Call, level: TierLevel) -> Any:
        self.clock.advance(30 * MILLISECOND if level.tier is TIER3 else 2 * MILLISECOND)
        return super().compile(call, level)


def lengths(made: Made, count: int, distinct: int) -> int:
    """Calls whose lengths change all the time; the nanoseconds that all of them took."""
    began = made.clock()
    for index in range(count):
        made.call(3 + index % distinct, 8)
    return made.clock() - began


def shifts(made: Made, count: int, distinct: int) -> int:
    """Calls of one length for a while, then of another; the nanoseconds that all of them took."""
    began = made.clock()
    for index in range(count):
        made.call(3 + index * distinct // count, 8)
    return made.clock() - began


def _no_gain(level: TierLevel, call: Call) -> int:
    return {1: 1000, 2: 800, 3: 800}[int(level.tier)] * 1000


def costly(config: RuntimeConfig, no_gain: bool = False) -> Made:
    made = Made()
    made.client = Costly(made.clock, _no_gain if no_gain else usual_costs)
    made.runtime = MetaTracingRuntime(config, clock=made.clock)
    made.tiered = made.runtime.tiered(made.client)
    return made


BASE = RuntimeConfig(background_compilation=False, sample_period=0, persist=False)


def found_in(made: Made, kind: RiskType) -> PerformanceRisk:
    risks = FRAMEWORK.detect_performance_risks(made.runtime.get_performance_history(), made.runtime.config)
    return next(risk for risk in risks if risk.risk_type is kind)


def kinds_in(made: Made) -> set[RiskType]:
    samples = made.runtime.get_performance_history()
    return {risk.risk_type for risk in FRAMEWORK.detect_performance_risks(samples, made.runtime.config)}


def test_specialisation_that_brings_nothing_is_given_up() -> None:
    base = replace(BASE, tier3_specialization_threshold_ms=20.0)
    before = costly(base, no_gain=True)
    lengths(before, 400, 6)
    risk = found_in(before, RiskType.POOR_SPECIALIZATION_GAIN)
    assert risk.measured == pytest.approx(0.0)
    assert risk.severity_score == 1.0
    assert risk.description.startswith("programs of Tier 3 are 0.0% faster")
    adapted = FRAMEWORK.adapt_configuration_for_risks(base, [risk])
    assert (base.enable_tier3_specialization, adapted.enable_tier3_specialization) == (True, False)
    took: dict[RuntimeConfig, int] = {}
    for config in (base, adapted):
        made = costly(config, no_gain=True)
        took[config] = lengths(made, 400, 6)
        assert (RiskType.POOR_SPECIALIZATION_GAIN in kinds_in(made)) == (config is base)
    assert took[adapted] < 0.9 * took[base]


def test_a_small_gain_makes_it_specialise_later() -> None:
    def gains(percent: float) -> list[PerformanceRisk]:
        profile = InputProfile(seq_len=4)
        samples = [PerformanceSample(TIER2, profile, 1 + percent / 100, None, None, index) for index in range(20)]
        samples += [PerformanceSample(TIER3, profile, 1.0, None, None, 20 + index) for index in range(20)]
        assert specialization_gains(samples) == [(pytest.approx(percent / 100), 20.0)]
        assert RiskMitigationFramework(min_specialization_gain=0.03).detect_performance_risks(samples) == []
        return FRAMEWORK.detect_performance_risks(samples)

    assert gains(12.0) == []
    (risk,) = gains(5.0)
    assert risk.severity_score == pytest.approx(0.5)
    adapted = FRAMEWORK.adapt_configuration_for_risks(RuntimeConfig(), [risk])
    assert adapted.tier3_specialization_threshold_ms == pytest.approx(200.0)
    assert (adapted.most_bridges, adapted.candidates, adapted.enable_tier3_specialization) == (2, 1, True)


def test_deciding_that_takes_too_long_is_done_less_often() -> None:
    quick = replace(BASE, tier2_compilation_threshold_ms=2.0, tier3_specialization_threshold_ms=4.0, bridge_calls=1)
    before = costly(quick)
    shifts(before, 400, 20)
    risk = found_in(before, RiskType.RUNTIME_OVERHEAD)
    assert risk.measured > 0.05
    adapted = FRAMEWORK.adapt_configuration_for_risks(quick, [risk])
    assert adapted.tier3_specialization_threshold_ms > quick.tier3_specialization_threshold_ms
    assert adapted.bridge_calls > quick.bridge_calls
    took = {config: shifts(costly(config), 400, 20) for config in (quick, adapted)}
    assert took[adapted] < 0.9 * took[quick]
    after = costly(adapted)
    shifts(after, 400, 20)
    samples = after.runtime.get_performance_history()
    beside = sum(one.runtime_overhead_ms for one in samples) / sum(one.execution_time_ms for one in samples)
    assert beside < 0.7 * risk.measured


def test_recording_that_takes_too_long_is_done_less_often() -> None:
    """Calls of some microseconds, of which each is recorded; by the thread's own time, which others do not lengthen."""
    clock = time.thread_time_ns

    def a_call(config: RuntimeConfig) -> tuple[float, MetaTracingRuntime]:
        runtime = MetaTracingRuntime(config, clock=clock)
        tiered = runtime.tiered(Small(ManualClock()))
        x = ts.ones((2, 2))
        best = float("inf")
        for _ in range(5):
            began = clock()
            for _ in range(200):
                tiered(x, x, 2.0)
            best = min(best, (clock() - began) / 200)
        return best, runtime

    config = replace(BASE, enable_tier2_compilation=False, enable_tier3_specialization=False)
    slow, runtime = a_call(config)
    risks = FRAMEWORK.detect_performance_risks(runtime.get_performance_history(), config)
    risk = next(risk for risk in risks if risk.risk_type is RiskType.HIGH_TRACING_OVERHEAD)
    adapted = FRAMEWORK.adapt_configuration_for_risks(config, [risk])
    assert adapted.sample_period is not None
    assert adapted.sample_period >= 9
    quick, runtime = a_call(adapted)
    assert quick < 0.7 * slow
    found = FRAMEWORK.detect_performance_risks(runtime.get_performance_history(), adapted)
    assert RiskType.HIGH_TRACING_OVERHEAD not in {risk.risk_type for risk in found}


class Small(MadeUp):
    """Programs that do next to nothing."""

    def compile(self, call: Call, level: TierLevel) -> Any:
        made: Any = super().compile(call, level)
        made.bind = _bound_to_nothing
        return made


def _bound_to_nothing(call: Call) -> Any:
    return _first


def _first(x: Any, y: Any, factor: float) -> Any:
    return x


def test_limits_are_fields_and_few_samples_say_nothing() -> None:
    profile = InputProfile(seq_len=4)

    def samples(count: int) -> Iterator[PerformanceSample]:
        for index in range(count):
            yield PerformanceSample(
                TIER1, profile, 1.0, None, None, index, calls=2, tracing_overhead_ms=0.6, runtime_overhead_ms=0.08
            )

    assert FRAMEWORK.detect_performance_risks(list(samples(20))) == []  # 30 % and 4 % of the time
    strict = RiskMitigationFramework(max_tracing_overhead=0.2, max_runtime_overhead=0.01)
    risks = strict.detect_performance_risks(list(samples(20)))
    assert [risk.risk_type for risk in risks] == [RiskType.RUNTIME_OVERHEAD, RiskType.HIGH_TRACING_OVERHEAD]
    assert [round(risk.measured, 3) for risk in risks] == [0.04, 0.3]
    assert all(0 < risk.severity_score <= 1 and risk.mitigation_actions for risk in risks)
    assert risks[0].risk_type is PerformanceRisk.Type.RUNTIME_OVERHEAD
    assert strict.detect_performance_risks(list(samples(15))) == []
    both = strict.adapt_configuration_for_risks(RuntimeConfig(), risks)
    assert both.sample_period == 29
    assert both.bridge_calls == 32


def test_a_runtime_that_watches_itself_changes_its_settings(caplog: pytest.LogCaptureFixture) -> None:
    watching = costly(replace(BASE, mitigate_risks=True), no_gain=True)
    assert watching.runtime.watch is not None
    watching.runtime.watch.window = 100
    watching.call(4, 8, times=150)
    for _ in range(4):
        lengths(watching, 200, 6)
    assert RiskType.POOR_SPECIALIZATION_GAIN in {risk.risk_type for risk in watching.runtime.watch.risks}
    assert not watching.runtime.config.enable_tier3_specialization
    assert all(not site.config.enable_tier3_specialization for site in watching.runtime.sites())
    assert "from now on do not specialise" in caplog.text
    assert "risk" in {one.kind for one in watching.runtime.counts.event_log}
    made = watching.runtime.get_runtime_stats().events["compiles"]
    lengths(watching, 300, 30)
    assert watching.runtime.get_runtime_stats().events["compiles"] == made


@pytest.mark.acceptance
def test_a_runtime_that_decides_too_often_finds_that_out_by_itself() -> None:
    """Every length stays until there is a program for it, and is gone then."""
    quick = replace(
        BASE, tier2_compilation_threshold_ms=2.0, tier3_specialization_threshold_ms=4.0, bridge_calls=1, most_bridges=64
    )
    took: dict[bool, int] = {}
    compiled: dict[bool, int] = {}
    for watches in (False, True):
        made = costly(replace(quick, mitigate_risks=watches))
        if made.runtime.watch is not None:
            made.runtime.watch.window = 64
        took[watches] = shifts(made, 1500, 60)
        compiled[watches] = made.runtime.get_runtime_stats().events["compiles"]
        changed = made.runtime.config.bridge_calls > quick.bridge_calls
        assert changed == watches
        seen = (
            {risk.risk_type for risk in made.runtime.watch.risks} if made.runtime.watch is not None else set[RiskType]()
        )
        assert (RiskType.RUNTIME_OVERHEAD in seen) == watches
    assert compiled[True] < 0.5 * compiled[False]
    assert took[True] < 0.9 * took[False]


def test_a_runtime_that_records_too_often_finds_that_out_by_itself() -> None:
    """By the real clock, as above: after two windows, calls take as little as they should have from the start."""
    config = replace(BASE, enable_tier2_compilation=False, enable_tier3_specialization=False, mitigate_risks=True)
    runtime = MetaTracingRuntime(config)
    assert runtime.watch is not None
    tiered, x = runtime.tiered(Small(ManualClock())), ts.ones((2, 2))

    def a_call() -> float:
        laps: list[float] = []
        for _ in range(5):
            began = time.perf_counter_ns()
            for _ in range(40):
                tiered(x, x, 2.0)
            laps.append((time.perf_counter_ns() - began) / 40)
        return min(laps)

    before = a_call()  # 200 calls: less than a window
    assert runtime.config.sample_period == 0
    for _ in range(800):
        tiered(x, x, 2.0)
    assert {risk.risk_type for risk in runtime.watch.risks} >= {RiskType.HIGH_TRACING_OVERHEAD}
    assert (runtime.config.sample_period or 0) >= 9
    assert a_call() < 0.7 * before
