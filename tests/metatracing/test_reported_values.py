"""Values that traces, metrics, guards and opportunities report: each of these once."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_client import Made, MadeUpProgram

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.metatracing import (
    AttentionTrace,
    ComputeType,
    ExecutionPattern,
    ExecutionTier,
    GPUComputePatternTracer,
    GuardType,
    InputProfile,
    KernelExecution,
    PatternAnalyzer,
    PerformanceMonitor,
    RecommendationType,
    SpecializationRecommendation,
    SpecializedKernelGenerator,
    TraceSpecializationEngine,
)
from tessera.metatracing.analysis.specializations import ShapeParams, TileParams
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.upper_tiers import CompilationOptions
from tessera.tiers.client import TierLevel
from tessera.tiers.records import LaunchFacts

TIER1, TIER2, TIER3 = ExecutionTier


@kernel
def doubled(x: Any) -> Any:
    return tile.load(x) * 2.0


@kernel
def masked(x: Any, causal: bool) -> Any:
    rows = tile.load(x)
    return tile.where(causal, rows * 2.0, rows)


@kernel.schedule(Schedule(block=(8, 64), warps=4))
def added(x: Any, total: Any) -> None:
    tile.atomic_add(total, tile.load(x, at=(0, 0), shape=(8, 64)), at=(0, 0))


def traced(*metas: Any, name: str = "doubled", count: int = 4) -> list[AttentionTrace]:
    profile = InputProfile.of(name, metas)
    return [AttentionTrace(profile, ExecutionPattern(2.0), TIER1, index) for index in range(count)]


def test_what_a_driver_says_of_launches_is_in_traces_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = LaunchFacts(blocks=4, threads=128, occupancy=0.5, shared=2048, registers=40)
    monkeypatch.setattr(MadeUpProgram, "launch_facts", lambda self, call: facts)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    lived = Made()
    monitor = PerformanceMonitor(lived.runtime, peak_tflops=1.0)
    monitor.begin_monitoring()
    lived.call(4, 8, times=3)
    monitor.end_monitoring()
    pattern = lived.runtime.get_traces()[-1].execution_pattern
    assert (pattern.blocks_launched, pattern.threads_per_block, pattern.occupancy_achieved) == (4, 128, 0.5)
    assert (pattern.shared_memory_used, pattern.registers_per_thread) == (2048, 40)
    found = monitor.get_metrics()
    assert (found.occupancy_achieved, found.shared_memory_used, found.registers_per_thread) == (0.5, 2048, 40)


def test_work_of_units_becomes_part_of_a_trace() -> None:
    tracer = GPUComputePatternTracer()
    arrays = [ts.empty((8, 64)) for _ in range(2)]
    found = tracer.trace_compute_patterns(KernelExecution.of(added[1], *arrays))
    counts = {one.compute_type: one.instruction_count for one in found.events}
    assert counts[ComputeType.REDUCTION] > 0
    pattern = ExecutionPattern(1.0, compute_events=tuple(found.events))
    assert {one.compute_type for one in pattern.compute_events} == set(counts)


def test_flags_and_lines_are_guarded() -> None:
    client = KernelClient(masked)
    call = client.call([ts.ones((8, 8)), True], {})
    assert call is not None
    (flag,) = [one for one in client.compile(call, TierLevel(TIER3, ("values",))).guards if one.word == "causal"]
    assert (flag.guard_type, flag.params) == (GuardType.CAUSAL_GUARD, True)
    engine = TraceSpecializationEngine()
    context = engine.context(doubled, traced(ts.ones((64, 64)).meta), {}, "sm_90a")
    made = engine.generate_specialized_kernel(doubled, context, CompilationOptions(target_architecture="sm_90a"))
    (row_aligned,) = [one for one in made.guards if one.guard_type is GuardType.ALIGNMENT_GUARD]
    assert row_aligned.word == "x row_aligned"
    assert row_aligned.check_function([ts.ones((64, 64))])
    assert not row_aligned.check_function([ts.ones((64, 64)).T])
    assert not row_aligned.check_function([ts.ones((64, 65))[:, 1:]])


def test_invariants_and_schedules_are_reported() -> None:
    traces = traced(ts.ones((8, 8)).meta, True, name="masked")
    assert TraceSpecializationEngine().context(masked, traces, {}).loop_invariants == {"causal": True}
    chosen = Schedule(block=(4,))
    advice = SpecializationRecommendation(
        RecommendationType.TILE_SIZE_SPECIALIZATION, "made up", 0.3, 1, TileParams(chosen, 4, 0)
    )
    made = SpecializedKernelGenerator().generate_specialized_kernel(traced(ts.ones((8, 8)).meta), advice, doubled)
    assert made.context.optimal_tile_config == chosen


def test_opportunities_of_every_kind() -> None:
    advice = SpecializationRecommendation(
        RecommendationType.SHAPE_SPECIALIZATION, "made up", 0.3, 1, ShapeParams(("sizes",))
    )
    first, second = (InputProfile.of(name, (ts.ones((8, 8)).meta,)) for name in ("first", "second"))
    traces = [
        AttentionTrace(profile, ExecutionPattern(2.0), TIER1, index)
        for index, profile in enumerate([first, second] * 9)
    ]
    result = PatternAnalyzer(lambda group: [advice]).analyze_traces(traces)
    found = result.opportunities(traces[0])
    assert [one.params for one in found.fusion_opportunities][:1] == [("first", "second")]
    assert [one.params for one in found.specialization_candidates] == [ShapeParams(("sizes",))]


def test_addresses_in_memory_are_reported() -> None:
    from tessera.metatracing import GPUMemoryPatternTracer

    arrays = [ts.empty((8, 64)) for _ in range(2)]
    found = GPUMemoryPatternTracer().trace_memory_patterns(KernelExecution.of(added[1], *arrays))
    assert max(one.address for one in found.events) > 0
