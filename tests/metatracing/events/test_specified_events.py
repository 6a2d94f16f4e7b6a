"""What happens inside of kernels, and what models say, by the specification's names for it."""

from __future__ import annotations

from typing import Any

import pytest

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.errors import TesseraError
from tessera.metatracing import (
    AccessType,
    AttentionTrace,
    ComputeEvent,
    ComputeTrace,
    ComputeType,
    DetailedBreakdown,
    ExecutionPattern,
    ExecutionTier,
    FlashAttentionPerformanceModel,
    GPUComputePatternTracer,
    GPUMemoryPatternTracer,
    InputProfile,
    KernelExecution,
    MemoryAccessEvent,
    MemoryAccessTrace,
    MemoryTracer,
    MetaTracingRuntime,
    ModelParameters,
    OptimizationCandidate,
    OptimizationImpact,
    OptimizationImpactPredictor,
    OptimizationType,
    PatternAnalyzer,
    PerformanceMetrics,
    PerformanceMonitor,
    PerformancePrediction,
    PerformanceTrend,
    RecommendationType,
    RuntimeConfig,
    SpecializationRecommendation,
    TierPerformancePrediction,
    TierPrediction,
    TileConfiguration,
    analyze_performance_trends,
)
from tessera.metatracing.analysis.specializations import LayoutParams, TileParams
from tessera.metatracing.events.tracers import (
    AccessRecord,
    OccupancyMeasurement,
    PipelineStall,
    RegisterPressurePoint,
    TensorCoreUsage,
    WarpDivergenceEvent,
)

TIER1, TIER2, TIER3 = ExecutionTier
PROFILE = InputProfile(8, 16, 2048, 64, ts.bf16, site="attention")


@kernel.schedule(Schedule(block=(48, 40), warps=4))
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.transpose(tile.load(x, at=(row, col), shape=(here.m, here.n))), at=(col, row))


@kernel.schedule(Schedule(block=(8, 64), warps=4))
def products(x: Any, y: Any, z: Any):
    here = tile.context()
    left, right = tile.load(x, at=(0, 0), shape=(64, 64)), tile.load(y, at=(0, 0), shape=(64, 64))
    found = tile.exp2(tile.dot(left, right))
    tile.store(z, tile.cast(found / tile.sum(found, axis=1)[:, None], z.dtype), at=(here.m * 0, 0))


def test_a_launch_is_traced_as_events_of_memory() -> None:
    launch = KernelExecution.of(transpose[2, 2], ts.empty((96, 80)), ts.empty((80, 96)))
    found = GPUMemoryPatternTracer().trace_memory_patterns(launch)
    assert isinstance(found, MemoryAccessTrace)
    kinds = {one.access_type for one in found.events}
    assert {AccessType.GLOBAL_LOAD, AccessType.GLOBAL_STORE, AccessType.SHARED_LOAD, AccessType.SHARED_STORE} == kinds
    assert AccessType.REGISTER_SPILL not in kinds
    assert set(found.bank_conflicts) <= set(found.shared_accesses)
    assert sum(one.bank_conflicts for one in found.bank_conflicts) > 0
    first = found.global_accesses[0]
    assert isinstance(first, MemoryAccessEvent)
    assert (first.access_type, first.address, first.argument) == (AccessType.GLOBAL_LOAD, 0, 0)
    assert sum(one.size_bytes for one in found.global_accesses) == 2 * 96 * 80 * 4
    assert len({one.timestamp_ns for one in found.events}) == 1
    (pressure,) = found.register_pressure
    assert isinstance(pressure, RegisterPressurePoint)


def test_a_launch_is_traced_as_work_of_units() -> None:
    arrays = [ts.empty((64, 64), ts.bf16) for _ in range(3)]
    found = GPUComputePatternTracer().trace_compute_patterns(KernelExecution.of(products[1], *arrays))
    assert isinstance(found, ComputeTrace)
    assert all(isinstance(one, ComputeEvent) for one in found.events)
    counts = {one.compute_type: one.instruction_count for one in found.events}
    multiplied = counts.get(ComputeType.TENSOR_CORE_WMMA, 0) + counts.get(ComputeType.TENSOR_CORE_WGMMA, 0)
    assert multiplied > 0
    assert counts[ComputeType.SPECIAL_FUNCTION] * 32 >= 64 * 64
    assert counts[ComputeType.CUDA_CORE_MATH] > 0
    assert counts[ComputeType.SHUFFLE] > 0  # sums along rows
    assert counts.get(ComputeType.REDUCTION, 0) == 0  # nothing is added by atomics
    assert len({one.timestamp_ns for one in found.events}) == 1
    (usage,) = found.tensor_core_ops
    assert isinstance(usage, TensorCoreUsage)
    assert usage.operations == 2 * 64**3
    (divergence,) = found.divergence_events
    assert isinstance(divergence, WarpDivergenceEvent)
    assert divergence.divergent <= divergence.branches
    (room,) = found.occupancy_data
    assert isinstance(room, OccupancyMeasurement)
    assert 0 < room.occupancy <= 1
    assert all(isinstance(one, PipelineStall) and one.times > 0 for one in found.pipeline_stalls)


def test_accesses_are_recorded_as_they_come() -> None:
    tracer = MemoryTracer()
    tracer.begin_tracing()
    tracer.record_global_memory_access(64, 4, is_write=True)
    tracer.record_shared_memory_access([0, 4], 4, is_write=False)
    tracer.end_tracing()
    first, second = tracer.records
    assert isinstance(first, AccessRecord)
    assert (first.addresses, first.size, first.is_write, first.is_shared) == ((64,), 4, True, False)
    assert (second.addresses, second.is_shared) == ((0, 4), True)
    assert first.timestamp <= second.timestamp
    with pytest.raises(TesseraError, match="no trace to add accesses to"):
        tracer.analyze_access_patterns()
    trace = AttentionTrace(PROFILE, ExecutionPattern(2.0), TIER1, 0)
    tracer.begin_tracing(trace)
    tracer.record_global_memory_access(64, 4, is_write=True)
    assert tracer.analyze_access_patterns() == tracer.analyze_access_patterns(trace)
    assert len(tracer.analyze_access_patterns().execution_pattern.memory_accesses) == 1


def test_a_monitor_tells_of_launches() -> None:
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, persist=False))
    monitor = PerformanceMonitor(runtime, peak_tflops=1.0)
    monitor.begin_monitoring()
    runtime.tiered(transpose[1, 1])(ts.ones((4, 4)), ts.ones((4, 4)))
    monitor.end_monitoring()
    found = monitor.get_metrics()
    assert isinstance(found, PerformanceMetrics)
    assert (found.calls, found.compute_utilization) == (1, None)  # the operations of this kernel are not known
    assert found.memory_bandwidth_gbps
    # A CPU has none of these.
    assert (found.occupancy_achieved, found.shared_memory_used, found.registers_per_thread) == (None, None, None)


# What is recommended


def advice(kind: RecommendationType, params: Any, gain: float) -> SpecializationRecommendation:
    return SpecializationRecommendation(kind, f"made up, {kind.value}", gain, 3, params, 0.9)


def test_candidates_are_what_is_recommended_by_input() -> None:
    made = [
        advice(RecommendationType.TILE_SIZE_SPECIALIZATION, TileParams(Schedule(block=(64, 64)), 64, 64), 0.4),
        advice(RecommendationType.MEMORY_LAYOUT_SPECIALIZATION, LayoutParams((0,)), 0.2),
    ]
    traces = [AttentionTrace(PROFILE, ExecutionPattern(2.0), TIER1, index) for index in range(9)]
    result = PatternAnalyzer(lambda group: made).analyze_traces(traces)
    first, second = result.optimization_candidates
    assert isinstance(first, OptimizationCandidate)
    assert (first.type, second.type) == (
        OptimizationType.TILE_SIZE_OPTIMIZATION,
        OptimizationType.MEMORY_LAYOUT_OPTIMIZATION,
    )
    assert (first.description, first.implementation_complexity) == ("made up, tile", 3)
    assert (made[0].description, made[0].implementation_complexity) == ("made up, tile", 3)
    found = result.opportunities(traces[0])
    assert (found.tile_recommendations, found.layout_optimizations) == ((first,), (second,))
    assert (found.fusion_opportunities, found.specialization_candidates) == ((), ())


def test_trends_are_reported_in_words_and_numbers() -> None:
    traces = [
        AttentionTrace(
            InputProfile(1, 1, 64 * index, 64, ts.bf16), ExecutionPattern(1.0 * index, 100.0 * index), TIER1, index
        )
        for index in range(1, 12)
    ]
    found = analyze_performance_trends(traces)
    strong = [one for one in found.values() if one.correlation_coefficient > 0.9]
    assert strong
    assert all(isinstance(one, PerformanceTrend) and one.trend_description for one in found.values())
    assert strong[0].confidence_level > 0.9


# Models


def test_a_prediction_is_reported_beside_the_peaks() -> None:
    params = ModelParameters(
        batch_size=8,
        num_heads=16,
        seq_len=2048,
        head_dim=64,
        peak_compute_tflops=989.0,
        memory_bandwidth_gbps=4800.0,
        num_sms=132,
        max_threads_per_sm=2048,
    )
    model = FlashAttentionPerformanceModel()
    found = model.predict_performance(params)
    assert isinstance(found, PerformancePrediction)
    assert found.predicted_tflops == pytest.approx(params.flops / found.predicted_time_ms / 1e9)
    assert found.predicted_memory_bw_gbps == pytest.approx(params.memory_bytes / found.predicted_time_ms / 1e6)
    low, high = found.tflops_confidence_interval
    assert low < found.predicted_tflops < high
    assert found.compute_utilization == pytest.approx(found.predicted_tflops / 989)
    assert 0 < (found.predicted_occupancy or 0) <= 1
    # What was measured to be the most that is reached is not predicted to be exceeded.
    slow = ModelParameters(8, 16, 2048, 64, tensor_core_utilization=0.01, memory_efficiency=0.5)
    assert model.predict_performance(slow).compute_utilization == pytest.approx(0.01)
    measured = ModelParameters(8, 16, 2048, 64, occupancy_achieved=0.25)
    assert model.predict_performance(measured).predicted_occupancy == 0.25


def test_a_tier_is_predicted_with_its_chances() -> None:
    found = TierPerformancePrediction().predict_tier_performance(ModelParameters(8, 16, 2048, 64, block=(64, 64)))
    assert isinstance(found, TierPrediction)
    assert found.tier2_speedup == pytest.approx(found.tier1_time_ms / found.tier2_time_ms)
    assert found.tier2_speedup >= 1
    assert 0 <= found.tier2_confidence <= 1


def test_an_optimisation_is_taken_apart() -> None:
    traces = [AttentionTrace(PROFILE, ExecutionPattern(1.0), TIER1, index) for index in range(3)]
    small, large = TileConfiguration(64, 64, num_warps=4), TileConfiguration(128, 128, 64, num_stages=2, num_warps=8)
    assert (large.block_k, large.num_stages, large.num_warps) == (64, 2, 8)
    found = OptimizationImpactPredictor().predict_tile_size_optimization(small, large, traces)
    assert isinstance(found, OptimizationImpact)
    assert found.description == "blocks of 128×128"
    assert 1 <= found.implementation_effort <= 10
    parts = found.breakdown
    assert isinstance(parts, DetailedBreakdown)
    assert all(part < 1 for part in (parts.compute_improvement, parts.memory_improvement, parts.overhead_reduction))
    assert parts.occupancy_improvement > -1
    same = OptimizationImpactPredictor().predict_tile_size_optimization(large, large, traces).breakdown
    assert same.compute_improvement == pytest.approx(0)
    assert same.occupancy_improvement == pytest.approx(0)
