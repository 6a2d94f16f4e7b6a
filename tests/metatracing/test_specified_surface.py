"""What traces, samples, hotspots, statistics and kernels tell, by the specification's names for it."""

from __future__ import annotations

import pytest
from made_up_client import Made

import tessera as ts
from tessera.metatracing import (
    AttentionParams,
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    GuardType,
    HotspotCandidate,
    HotspotCriteria,
    HotspotDetector,
    KernelManager,
    MetaTracingRuntime,
    OptimizationOpportunities,
    RuntimeConfig,
    RuntimeResult,
    RuntimeStats,
    SpecializationContext,
    SpecializedKernel,
)
from tessera.tiers.sites.programs import InstalledProgram

TIER1, TIER2, TIER3 = ExecutionTier


@pytest.fixture(scope="module")
def made() -> Made:
    specialized = Made()
    specialized.call(4, 8, times=200)
    return specialized


def test_traces_tell_of_inputs_and_runs(made: Made) -> None:
    traces = made.runtime.get_internal_traces()
    assert traces == made.runtime.get_traces()
    trace = traces[-1]
    assert isinstance(trace, AttentionTrace)
    profile, pattern = trace.input_profile, trace.execution_pattern
    assert (profile.seq_len, profile.head_dim, profile.input_dtype) == (4, 8, ts.f32)
    assert isinstance(pattern, ExecutionPattern)
    assert pattern.execution_time_ms == pytest.approx(0.6)
    assert pattern.memory_bandwidth_gbps == pytest.approx(256 / 0.6e-3 / 1e9)
    # The program's own launch facts; what is not counted is None, and nothing traces inside of a made-up program.
    assert (pattern.blocks_launched, pattern.threads_per_block, pattern.registers_per_thread) == (1, None, None)
    assert (pattern.occupancy_achieved, pattern.shared_memory_used) == (None, None)
    assert (pattern.memory_accesses, pattern.compute_events) == ((), ())
    assert (trace.execution_count, trace.timestamp) == (1, made.clock())


def test_opportunities_are_empty_until_an_analysis_looks(made: Made) -> None:
    found = made.runtime.get_traces()[0].opportunities
    assert found == OptimizationOpportunities()
    assert (found.tile_recommendations, found.layout_optimizations) == ((), ())
    assert (found.fusion_opportunities, found.specialization_candidates) == ((), ())


def test_hotspots_are_inputs_that_took_the_time(made: Made) -> None:
    traces = made.runtime.get_traces()
    (spot,) = HotspotDetector().detect_hotspots(traces, HotspotCriteria(performance_threshold=0.99))
    assert isinstance(spot, HotspotCandidate)
    total = sum(one.execution_pattern.execution_time_ms for one in traces)
    assert spot.total_execution_time_ms == pytest.approx(total)
    assert spot.execution_count == 200
    assert spot.input_pattern.seq_len == 4
    assert spot.average_performance == pytest.approx(0.6 * 200 / total)
    assert spot.optimization_potential == pytest.approx(1 - spot.average_performance)
    assert HotspotDetector().detect_hotspots(traces, HotspotCriteria(min_execution_time_ms=1e6)) == []
    assert HotspotDetector().detect_hotspots(traces, HotspotCriteria(min_execution_count=201)) == []


def test_statistics_are_those_of_all_calls(made: Made) -> None:
    stats = made.runtime.get_runtime_stats()
    assert isinstance(stats, RuntimeStats)
    calls = (stats.tier1_executions, stats.tier2_executions, stats.tier3_executions)
    assert (sum(calls), stats.total_executions) == (200, 200)
    assert min(calls) > 0
    assert stats.average_tier1_time_ms == pytest.approx(1.0)
    assert stats.average_tier2_time_ms == pytest.approx(0.8)
    assert stats.average_tier3_time_ms == pytest.approx(0.6, abs=0.05)  # with the runs of others in an A/B test
    # The made-up clock stands still while something is compiled.
    assert (stats.total_compilation_time_ms, stats.total_specialization_time_ms) == (0, 0)
    assert stats.active_specialized_kernels == len(made.runtime.manager)


def test_specialised_kernels_tell_what_they_rest_on(made: Made) -> None:
    manager = made.runtime.manager
    assert isinstance(manager, KernelManager)
    kernel = max(manager.specialized_kernels(), key=lambda one: one.level.tier)
    assert isinstance(kernel, SpecializedKernel)
    context = kernel.context
    assert isinstance(context, SpecializationContext)
    assert (kernel.kernel_name, context.constant_seq_len, context.constant_head_dim) == ("scaled", 4, 8)
    assert (context.specialized_dtype, context.always_causal, context.optimal_tile_config) == ("f32", None, None)
    assert context.memory_layout["x.stride[0]"] == 8
    assert context.runtime_guards == kernel.guards
    assert kernel.usage_count > 0
    assert kernel.average_time_ms == pytest.approx(0.6)
    kinds = {guard.guard_type for guard in kernel.guards}
    # Types, and what a kernel fixes before it is traced, distinguish sites: no program has to ask for them.
    assert GuardType.SHAPE_GUARD in kinds
    assert not {GuardType.ALIGNMENT_GUARD, GuardType.CAUSAL_GUARD} & kinds


def test_types_and_flags_make_sites_of_their_own() -> None:
    lived = Made()
    lived.call(4, 8)
    lived.call(4, 8, flag=True)
    assert len(lived.runtime.sites()) == 2


def test_a_program_is_admitted_and_dated() -> None:
    lived = Made()
    lived.call(4, 8, times=60)
    (site,) = lived.runtime.sites()
    program = next(one for one in site.programs if one.tier > TIER1)
    assert isinstance(program, InstalledProgram)
    assert 0 < program.last_used <= lived.clock()
    assert program.compiled.guards
    lived.runtime.manager.released(program)
    before = len(lived.runtime.manager)
    lived.runtime.manager.admit(program)
    assert len(lived.runtime.manager) == before + 1


def test_without_a_quick_first_tier_the_first_call_waits_for_a_full_program() -> None:
    lived = Made(enable_tier1_fallback=False)
    lived.call(4, 8)
    assert [level.quick for level in lived.client.ran] == [False]
    usual = Made()
    usual.call(4, 8)
    assert [level.quick for level in usual.client.ran] == [True]


def test_attention_tells_its_rate() -> None:
    q, k, v = (ts.randn((1, 2, 8, 4), seed=seed) for seed in range(3))
    with MetaTracingRuntime(RuntimeConfig(persist=False, background_compilation=False)) as runtime:
        result = runtime.execute_flash_attention(q, k, v, None, AttentionParams(is_causal=True))
        assert isinstance(result, RuntimeResult)
        assert (result.success, result.tier_used, result.output.shape) == (True, TIER1, (1, 2, 8, 4))
        (sample,) = runtime.get_performance_history()
    profile = sample.input_profile
    assert (profile.batch_size, profile.num_heads, profile.softmax_scale) == (1, 2, 0.5)
    assert profile.is_causal
    assert sample.tflops_achieved == pytest.approx(4 * 2 * 8 * 8 * 4 / 2 / sample.execution_time_ms / 1e9)
