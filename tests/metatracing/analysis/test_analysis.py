"""What traces teach: patterns, trends, hotspots, recommendations with specialisations behind them, and their use."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_client import Made

import tessera as ts
from tessera import Schedule, TesseraError
from tessera.metatracing import (
    H200,
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    HotspotDetector,
    InputProfile,
    KernelExecution,
    MemoryPatternMatcher,
    MetaTracingRuntime,
    OptimizationType,
    PatternAnalyzer,
    RecommendationType,
    Recommender,
    RuntimeConfig,
    ShapePatternMatcher,
    ShapeType,
    Situation,
    SpecializationRecommendation,
)
from tessera.metatracing.analysis.matchers import (
    ComputePatternMatcher,
    SequencePatternMatcher,
    longest_common_subsequence,
    period_of,
    predicted,
    repeats,
)
from tessera.metatracing.analysis.specializations import DtypeParams, LayoutParams, ShapeParams, TileParams
from tessera.metatracing.analysis.trends import correlation, trend
from tessera.metatracing.events.tracers import GPUComputePatternTracer, GPUMemoryPatternTracer
from tessera.metatracing.models.kernel_times import shipped
from tessera.metatracing.models.tier_up import ENOUGH, TierUpModel
from tessera.stdlib import flash_attention, gemm, layernorm, softmax
from tessera.tiers.sites.schedule_history import ScheduleHistory

TIER1, TIER2, TIER3 = ExecutionTier


def traced(rows: int, ms: float = 1.0, *, width: int = 64, tier: ExecutionTier = TIER1, **more: Any) -> AttentionTrace:
    profile = InputProfile(1, 1, rows, width, ts.f32, site=more.pop("site", "some"))
    return AttentionTrace(profile, ExecutionPattern(ms, **more), tier, 0)


# Sequences


def is_in(part: list[int], whole: list[int]) -> bool:
    rest = iter(whole)
    return all(any(one == other for other in rest) for one in part)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=7), st.lists(st.integers(0, 3), max_size=7))
def test_the_longest_common_subsequence_is_one_and_none_is_longer(first: list[int], second: list[int]):
    found = longest_common_subsequence(first, second)
    assert is_in(found, first)
    assert is_in(found, second)
    longest = max(
        size
        for size in range(len(first) + 1)
        for indices in combinations(range(len(first)), size)
        if is_in([first[index] for index in indices], second)
    )
    assert len(found) == longest


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=12))
def test_repeats_occur_where_they_are_said_to(values: list[int]):
    for run, starts in repeats(values).items():
        assert len(starts) >= 2
        assert all(tuple(values[start : start + len(run)]) == run for start in starts)
        assert all(after - before >= len(run) for before, after in pairwise(starts))


def test_a_cycle_of_inputs_is_found():
    traces = [traced(rows, ms) for _ in range(6) for rows, ms in ((128, 1.0), (256, 2.0), (512, 5.0))]
    found = SequencePatternMatcher().find_sequence_patterns(traces)
    assert [one.seq_len for one in found[0].input_sequence] == [128, 256, 512]
    assert (found[0].frequency, found[0].performance_impact) == (6, pytest.approx(1.0))
    assert period_of([1, 2, 3, 1, 2, 3, 1]) == 3
    assert period_of([1, 2, 3, 4]) is None


# Shapes


@pytest.mark.parametrize(
    ("values", "kind", "accuracy"),
    [
        ([64, 128, 64, 128] * 5, ShapeType.POWER_OF_TWO, 1.0),
        ([192, 320, 192, 192, 320] * 4, ShapeType.MULTIPLE_OF_64, 1.0),
        ([3, 6, 12, 24, 48, 96, 192], ShapeType.FIXED_RATIO, 1.0),
        ([100] * 20, ShapeType.VARIABLE, 1.0),
    ],
)
def test_shapes_are_classified_and_predicted(values: list[int], kind: ShapeType, accuracy: float):
    found = ShapePatternMatcher().analyze_shape_patterns([traced(value) for value in values])["seq_len"]
    assert (found.pattern_type, found.prediction_accuracy) == (kind, accuracy)
    assert set(found.common_values) <= set(values)


def test_what_cannot_be_predicted_is_not():
    drawn = np.random.default_rng(0).integers(1, 1000, 60).tolist()
    found = ShapePatternMatcher().pattern_of(drawn)
    assert found.pattern_type is ShapeType.VARIABLE
    assert found.prediction_accuracy < 0.1
    assert predicted([7, 7, 9, 7, 7]) == 7  # what mostly followed


# Memory, units, trends


def test_events_become_findings():
    columns = KernelExecution.of(layernorm, ts.empty((128, 128)).T, ts.empty((128,)), ts.empty((128,)))
    memory = GPUMemoryPatternTracer().trace_memory_patterns(columns)
    compute = GPUComputePatternTracer().trace_compute_patterns(columns)
    trace = traced(
        128, memory_accesses=memory.events, compute_events=compute.events, occupancy_achieved=columns.occupancy
    )
    found = MemoryPatternMatcher().find_memory_patterns([trace])
    assert (found[0].kind, found[0].argument) == ("uncoalesced", 0)
    assert {one.kind for one in found} >= {"reused"}  # weights and biases, by every row
    kinds = {one.kind for one in ComputePatternMatcher().find_compute_patterns([trace])}
    assert "bound by CUDA_CORE_MATH" in kinds
    assert "products of single warps" not in kinds


def test_trends_have_a_direction_and_a_sureness():
    x = [float(one) for one in range(30)]
    assert correlation(x, [2 * one + 1 for one in x]) == pytest.approx(1)
    falling = trend(x, [-one for one in x], rising="up", falling="down")
    assert (falling.trend_description, falling.correlation_coefficient) == ("down", pytest.approx(-1))
    noise = trend(x, np.random.default_rng(1).normal(size=30).tolist(), rising="up", falling="down")
    assert noise.trend_description == "no clear correlation"
    assert noise.confidence_level < 0.95 < falling.confidence_level
    assert correlation(x, [1.0] * 30) == 0.0


# The analyzer


def test_an_analysis_of_traces():
    """Two inputs that alternate; the hot one is recommended for; sites that follow each other could be one."""
    advice = SpecializationRecommendation(
        RecommendationType.SHAPE_SPECIALIZATION, "sizes", 0.25, 2, ShapeParams(("sizes",)), 0.9
    )
    traces = [traced(rows, ms, site=name) for _ in range(10) for rows, ms, name in ((64, 3.0, "a"), (32, 1.0, "b"))]
    found = PatternAnalyzer(lambda group: [advice] if group[0].input_profile.seq_len == 64 else []).analyze_traces(
        traces
    )
    assert found.supporting_traces == 20
    assert [one.input_pattern.seq_len for one in found.hotspots] == [64, 32]
    assert found.hotspots[0].recommendations == (advice,)
    assert found.hotspots[0].optimization_potential == pytest.approx(0.2)  # 1.25 times as fast takes 0.8 of the time
    kinds = {one.type for one in found.optimization_candidates}
    assert kinds == {OptimizationType.SHAPE_SPECIALIZATION, OptimizationType.FUSION_OPTIMIZATION}
    assert found.pattern_confidence == pytest.approx(1.0)  # all is predicted, and times are steady
    assert found.performance_profile.total_time_ms == pytest.approx(40)
    assert {one.share for one in found.common_patterns} == {0.5}
    assert not HotspotDetector().detect_hotspots([traced(64, 1.0, tier=TIER3) for _ in range(9)])


# Recommendations


def on_h200(kernel: Any, *args: Any, **more: Any) -> dict[RecommendationType, SpecializationRecommendation]:
    times = shipped("h200")
    assert times is not None
    here = Situation(kernel, args, more.pop("static", {}), H200, **more)
    return {one.recommendation_type: one for one in Recommender(times).recommend(here)}


def heads(dtype: ts.DType = ts.bf16, rows: int = 2048) -> list[Any]:
    return [ts.empty((4, 8, rows, 64), dtype) for _ in range(4)]


@pytest.mark.acceptance
def test_each_kind_is_recommended_where_there_is_something_to_gain():
    portable = on_h200(flash_attention.with_schedule(Schedule(block=(64, 64), warps=8)), *heads(), 0.125)
    assert portable[RecommendationType.INSTRUCTION_SPECIALIZATION].expected_improvement > 0.5
    small = on_h200(flash_attention.with_schedule(Schedule(block=(64, 64))), *heads(), 0.125)
    assert isinstance(small[RecommendationType.TILE_SIZE_SPECIALIZATION].params, TileParams)
    assert RecommendationType.SHAPE_SPECIALIZATION in small
    q, k, _, o = heads()
    columns = on_h200(flash_attention, q, k, ts.empty((4, 8, 64, 2048), ts.bf16).mT, o, 0.125)
    assert columns[RecommendationType.MEMORY_LAYOUT_SPECIALIZATION].params == LayoutParams((2,))
    wide = heads(ts.f32)
    assert RecommendationType.DTYPE_SPECIALIZATION not in on_h200(flash_attention, *wide, 0.125)
    tolerant = on_h200(flash_attention, *wide, 0.125, tolerance=4e-3)
    assert isinstance(tolerant[RecommendationType.DTYPE_SPECIALIZATION].params, DtypeParams)
    good = on_h200(flash_attention, *heads(), 0.125, assumed=True)
    assert not good
    for one in (*portable.values(), *small.values()):
        assert one.confidence >= 0.7
        assert one.interval[0] <= one.expected_improvement <= one.interval[1]


def test_every_specialisation_computes_the_same():
    """Each kind on the CPU, against the kernel as it was: another way, the same numbers."""
    x = ts.randn((40, 24), seed=1)
    kinds = RecommendationType
    made = {
        kinds.TILE_SIZE_SPECIALIZATION: TileParams(Schedule(block=(8, 64)), 8, 64),
        kinds.SHAPE_SPECIALIZATION: ShapeParams(("sizes", "strides")),
        kinds.MEMORY_LAYOUT_SPECIALIZATION: LayoutParams((0,)),
        kinds.DTYPE_SPECIALIZATION: DtypeParams(ts.bf16),
    }
    transposed = ts.randn((24, 40), seed=2).T
    for kind, params in made.items():
        advice = SpecializationRecommendation(kind, "", 0.1, 1, params)
        for one in (x, transposed):
            found, expected = advice.specialized(softmax)(one), softmax(one)
            assert found.dtype is expected.dtype
            bound = 1e-2 if kind is kinds.DTYPE_SPECIALIZATION else 1e-6
            assert np.allclose(found.numpy(), expected.numpy(), atol=bound)


def test_what_a_kernel_fills_is_filled_in_another_type_too():
    a, b, c = ts.randn((8, 8), seed=1), ts.randn((8, 8), seed=2), ts.zeros((8, 8))
    form = gemm.with_schedule(Schedule(block=(8, 8, 8)))[1, 1]
    advice = SpecializationRecommendation(RecommendationType.DTYPE_SPECIALIZATION, "", 0.1, 1, DtypeParams(ts.bf16))
    advice.specialized(form)(a, b, c)
    assert np.allclose(c.numpy(), a.numpy() @ b.numpy(), atol=0.1)
    assert c.numpy().any()


def test_a_machine_without_a_model_has_no_recommendations():
    times = shipped("h200")
    assert times is not None
    nothing, here = replace(times, fits={}), Situation(softmax, (ts.empty((64, 64)),), {}, H200)
    assert Recommender(nothing).recommend(here) == []
    with pytest.raises(TesseraError, match="no model of"):
        nothing.predict(here.program())


def test_a_runtime_tells_what_is_recommended_for_its_hotspots():
    """A kernel that reads columns, on the CPU, with a model of one."""
    times = shipped("cpu-aarch64")
    assert times is not None
    # Copies that cost nothing: whatever the machine of this test, reading rows is what the model prefers then.
    times = replace(times, copies=(0.0, 0.0, 0.0))
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, enable_tier3_specialization=False))
    tiered, x = runtime.tiered(softmax), ts.randn((1200, 400), seed=1).T
    for _ in range(30):
        tiered(x)
    (hot,) = runtime.analyze(times).hotspots
    kinds = {one.recommendation_type for one in hot.recommendations}
    assert RecommendationType.MEMORY_LAYOUT_SPECIALIZATION in kinds
    # Without a model nothing is recommended; whether it is hot then is a matter of how much its times differ.
    assert [one.recommendations for one in runtime.analyze().hotspots] in ([()], [])


# What tiers make of it


def test_schedule_history_orders_candidates_for_the_next_sizes():
    schedule_history, fast, slow = ScheduleHistory(), Schedule(block=(32,)), Schedule(block=(8,))
    arguments = ts.empty((512, 64)).meta, ts.empty((500, 64)).meta
    assert schedule_history.ranked("k", (arguments[0],), [None, slow, fast]) == [None, slow, fast]
    schedule_history.note("k", (arguments[0],), {None: 100.0, slow: 150.0, fast: 60.0})
    assert schedule_history.ranked("k", (arguments[1],), [None, slow, fast])[0] == fast
    assert schedule_history.ranked("another", (arguments[1],), [None, slow, fast]) == [None, slow, fast]


def test_times_below_the_resolution_of_a_clock_are_no_history():
    schedule_history, fast, slow = ScheduleHistory(), Schedule(block=(32,)), Schedule(block=(8,))
    arguments = (ts.empty((512, 64)).meta,)
    schedule_history.note("k", arguments, {None: 100.0, slow: 0.0, fast: -5.0})
    assert schedule_history.behind("k", arguments) == {}
    schedule_history.note("k", arguments, {None: 100.0, slow: 0.0, fast: 50.0})
    assert schedule_history.ranked("k", arguments, [None, slow, fast])[0] == fast


def test_the_second_tier_tries_what_did_well_before():
    """Of four schedules two are tried at a time; after an A/B test, the winner comes first for other sizes."""
    options = [None, *(Schedule(block=(size,)) for size in (8, 16, 32))]

    def costs(level: Any, call: Any) -> int:
        return 400_000 if level.schedule == options[1] else 1_000_000

    made = Made(costs, candidates=2, most_bridges=0)
    made.client.options = options
    made.call(4, 8, times=60)
    (site,) = made.runtime.sites()
    ranked = made.runtime.schedule_history.ranked((site.client.name, site.first.fixed), site.first.described, options)
    assert ranked[0] == options[1]


def test_tiers_that_never_paid_are_not_tried():
    model = TierUpModel()
    assert model.pays("cpu", TIER3, 1e8, 1e6, 24)  # nothing is known
    for _ in range(ENOUGH):
        model.note("cpu", TIER3, 1000.0, 1000.0)
    assert not model.pays("cpu", TIER3, 1e8, 1e6, 24)
    assert model.pays("cuda", TIER3, 1e8, 1e6, 24)
    for _ in range(ENOUGH):
        model.note("cpu", TIER2, 1000.0, 500.0)
    assert model.pays("cpu", TIER2, 1e8, 1e6, 24)
    assert not model.pays("cpu", TIER2, 1e6, 1e6, 24)  # too little time to win back the cost of trying


def test_a_runtime_stops_at_a_tier_where_it_never_gained():
    """Sites of one runtime that differ in nothing but their ranks and types: after some, Tier 3 is left alone."""

    def costs(level: Any, call: Any) -> int:
        return 1_000_000 if level.tier == 1 else 800_000

    made = Made(costs)
    for _ in range(ENOUGH):
        made.runtime.tier_up_model.note("cpu", TIER3, 1000.0, 1000.0)
    assert set(made.call(4, 8, times=300)) == {1, 2}
    again = Made(costs)
    assert 3 in again.call(4, 8, times=300)
