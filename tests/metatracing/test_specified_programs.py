"""Interpreters and compilers of the tiers, by the specification's names: they run, record, compile and specialise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule, TesseraError
from tessera.metatracing import (
    AttentionParams,
    AttentionTrace,
    CompilationOptions,
    CompilationResult,
    EnhancedTesseraCompiler,
    ExecutionPattern,
    ExecutionTier,
    ExecutionTrace,
    FlashAttentionInterpreter,
    FusionOptimizer,
    InputProfile,
    InterpreterConfig,
    KernelLaunchInfo,
    MemoryLayoutOptimizer,
    MemoryTransferInfo,
    MetaTracingRuntime,
    ReferenceFlashAttention,
    RuntimeConfig,
    SpecializationRecommendation,
    SpecializedKernel,
    SpecializedKernelGenerator,
    TesseraInterpreter,
    TileConfiguration,
    TraceContext,
    TraceSpecializationEngine,
)
from tessera.metatracing.analysis.specializations import (
    DtypeParams,
    LayoutParams,
    Params,
    RecommendationType,
    ShapeParams,
    TileParams,
)
from tessera.metatracing.clients.kernels import KernelClient
from tessera.metatracing.ranks import LISTENERS, CollectiveEvent
from tessera.metatracing.runtime_analysis import with_events
from tessera.runtime.cuda import synchronize
from tessera.runtime.tensor import transfer
from tessera.stdlib import softmax
from tessera.tiers.client import Call, GuardType

TIER1, TIER2, TIER3 = ExecutionTier


def attention(length: int = 8) -> tuple[Any, Any, Any, Any]:
    q, k, v = (ts.randn((1, 2, length, 8), seed=seed) for seed in range(3))
    return q, k, v, ts.empty((1, 2, length, 8))


def traced(x: Any, count: int = 4, milliseconds: float = 2.0) -> list[AttentionTrace]:
    """Traces of softmax on an array."""
    profile = InputProfile.of("softmax", (x.meta,))
    return [AttentionTrace(profile, ExecutionPattern(milliseconds), TIER1, index) for index in range(count)]


# Tier 1


def test_attention_is_interpreted_and_traced() -> None:
    config = InterpreterConfig(
        enable_tracing=True, enable_performance_monitoring=True, max_trace_history=3, hotspot_threshold=1e-9
    )
    interpreter = FlashAttentionInterpreter(config)
    q, k, v, o = attention()
    params = AttentionParams(is_causal=True)
    for _ in range(4):
        interpreter.execute(q, k, v, o, params)
    result = interpreter.execute(q, k, v, o, params)
    assert (result.success, result.tier_used) == (True, TIER1)
    assert np.allclose(o.numpy()[0], ReferenceFlashAttention().compute(q, k, v, params), atol=1e-5)
    history = interpreter.get_trace_history()
    assert [one.tier for one in history] == [TIER1] * 3  # the last few are kept
    assert interpreter.analyze_traces().supporting_traces == 3
    assert interpreter.get_metrics().calls == 3
    assert interpreter.is_hotspot(history[-1])
    cold = FlashAttentionInterpreter(InterpreterConfig(enable_performance_monitoring=False, hotspot_threshold=1e9))
    cold.execute(q, k, v, o)
    assert not cold.is_hotspot(cold.get_trace_history()[-1])
    with pytest.raises(TesseraError, match="nothing is monitored"):
        cold.get_metrics()
    silent = FlashAttentionInterpreter(InterpreterConfig(enable_tracing=False))
    silent.execute(q, k, v, o)
    assert silent.get_trace_history() == []


def test_a_function_tells_what_it_went_through() -> None:
    def shifted(x: Any) -> Any:
        for listener in LISTENERS:  # as a collective does
            listener(CollectiveEvent("all_reduce", "f32", (2, 3), 24, 24, 0, 0, 1, 0, 2, (1, 1)))
        for listener in transfer.LISTENERS:  # as a copy does
            listener(MemoryTransferInfo(x.device, x.device, 24))
        return ts.exp(x) + 1.0

    interpreter, x = TesseraInterpreter(InterpreterConfig(hotspot_threshold=0.0)), ts.ones((2, 3))
    result, trace = interpreter.execute_with_tracing(shifted, [x], keep_values=True)
    assert isinstance(trace, ExecutionTrace)
    assert np.allclose(result.numpy(), np.e + 1)
    assert "graph.ew" in trace.operations
    assert trace.dynamic_shapes == ((2, 3),)
    first = next(value for name, value in trace.intermediate_values.items() if name.startswith("graph.ew"))
    assert np.allclose(first, np.e)
    assert all(isinstance(one, KernelLaunchInfo) for one in trace.kernel_launches)
    assert {one.kind for one in trace.collective_ops} == {"all_reduce"}
    assert {one.nbytes for one in trace.memory_transfers} == {24}
    assert not transfer.LISTENERS
    assert interpreter.is_hot_spot(shifted, trace)
    assert not interpreter.is_hot_spot(attention, trace)
    assert trace.recorded.tier is TIER1


def test_a_kernel_tells_of_its_memory_and_its_programs() -> None:
    interpreter, x = TesseraInterpreter(), ts.randn((20, 24), seed=0)
    result, trace = interpreter.execute_with_tracing(softmax, [x])
    assert np.allclose(result.numpy().sum(-1), 1, atol=1e-5)
    assert {"tile.load", "tile.store"} <= set(trace.operations)
    (launch,) = trace.kernel_launches
    assert launch.programs
    assert sum(one.size_bytes for one in trace.memory_patterns if one.argument == 0) == x.nbytes
    with pytest.raises(TesseraError, match="once for each program"):
        interpreter.execute_with_tracing(softmax, [x], keep_values=True)


# Tier 2


def test_tier_two_compiles_what_traces_tell() -> None:
    x = ts.randn((20, 24), seed=0)
    traces, compiler = traced(x), EnhancedTesseraCompiler()
    made = compiler.compile_with_trace_info(softmax, traces[-1], traces)
    assert isinstance(made, CompilationResult)
    assert (made.level.tier, made.level.assumed) == (TIER2, ())
    assert made.confidence > 0.8
    unsure = CompilationOptions(trace_confidence_threshold=1.1, enable_aggressive_specialization=True)
    assert compiler.compile_with_trace_info(softmax, traces[-1], traces, unsure).level.tier is TIER2
    without = CompilationOptions(use_trace_information=False, enable_aggressive_specialization=True)
    assert compiler.compile_with_trace_info(softmax, traces[-1], traces, without).others == ()
    eager = CompilationOptions(enable_aggressive_specialization=True, optimization_level=0)
    third = compiler.compile_with_trace_info(softmax, traces[-1], traces, eager)
    assert third.level.tier is TIER3
    assert "x.size[1]" in third.level.assumed
    client = KernelClient(softmax)
    call = client.call([x], {})
    assert call is not None
    assert np.allclose(third.compiled.bind(call)(x.geometry).numpy(), softmax(x).numpy(), atol=1e-6)
    with pytest.raises(TesseraError, match="without arguments"):
        compiler.compile_with_trace_info(softmax, AttentionTrace(InputProfile(), ExecutionPattern(1.0), TIER1, 0))


@pytest.mark.acceptance
def test_attention_is_compiled_for_a_gpu_without_one() -> None:
    profile = InputProfile(1, 2, 128, 64, ts.bf16, is_causal=True)
    options = CompilationOptions(target_architecture="sm_90a")
    made = EnhancedTesseraCompiler().compile_flash_attention(profile, (), options)
    executable: Any = made.compiled
    assert b".target sm_90a" in executable.program.executable.ptx


def test_schedules_follow_what_did_best() -> None:
    x = ts.randn((20, 24), seed=0)
    compiler, fast, slow = EnhancedTesseraCompiler(), Schedule(block=(8, 64)), Schedule(block=(1, 64))
    profile = [
        AttentionTrace(InputProfile.of("softmax", (x.meta,)), ExecutionPattern(1.0), TIER2, index) for index in range(2)
    ]
    assert compiler.optimize_schedule_with_profile(slow, profile, softmax) == slow  # none were compared
    call: Call | None = KernelClient(softmax).call([x], {})
    assert call is not None
    compiler.schedule_history.note(("softmax", call.fixed), call.described, {slow: 2.0, fast: 1.0})
    assert compiler.optimize_schedule_with_profile(slow, profile, softmax) == fast


def test_a_runtime_keeps_in_its_compilers_what_compiling_took() -> None:
    config = RuntimeConfig(
        background_compilation=False,
        persist=False,
        tier2_compilation_threshold_ms=0.0001,
        tier3_specialization_threshold_ms=0.0002,
        contest_rounds=1,
        candidates=1,
    )
    runtime = MetaTracingRuntime(config)
    tiered, x = runtime.tiered(softmax), ts.randn((6, 8), seed=0)
    for _ in range(60):
        tiered(x)
    second, third = runtime.standard_compiler, runtime.specialized_compiler
    stats = runtime.get_runtime_stats()
    assert second.total_ms == second.nanoseconds["softmax"] / 1e6 == stats.total_compilation_time_ms > 0
    assert third.total_ms == third.nanoseconds["softmax"] / 1e6 == stats.total_specialization_time_ms > 0
    assert second.schedule_history is third.schedule_history is runtime.schedule_history


def test_layouts_and_fusions_are_found_in_traces() -> None:
    x = ts.empty((20, 24))
    rows, columns = traced(x), traced(x.T)
    found = MemoryLayoutOptimizer().constant_strides(("x",), rows)
    assert found == {"x.stride[0]": 24, "x.stride[1]": 1}
    assert MemoryLayoutOptimizer().constant_strides(("x",), [*rows, *columns]) == {}
    assert MemoryLayoutOptimizer().columns(rows) == ()
    assert MemoryLayoutOptimizer().columns([*rows, *columns]) == (0,)
    other = AttentionTrace(InputProfile.of("scale", (x.meta,)), ExecutionPattern(2.0), TIER1, 9)
    alternating = [one for pair in zip(rows, [other] * 4, strict=True) for one in pair]
    compiler = EnhancedTesseraCompiler()
    assert isinstance(compiler.fusion_optimizer, FusionOptimizer)
    (first, *_) = compiler.fusion_optimizer.opportunities(alternating)
    assert first.params == ("softmax", "scale")
    assert compiler.fusion_optimizer.opportunities(rows) == []


@pytest.mark.acceptance
def test_tiles_are_optimised_by_the_model() -> None:
    profile = InputProfile(8, 16, 2048, 64, ts.bf16)
    traces = [AttentionTrace(profile, ExecutionPattern(1.0), TIER1, index) for index in range(2)]
    chosen = EnhancedTesseraCompiler().tile_optimizer.optimize_tile_size(traces)
    assert isinstance(chosen, TileConfiguration)
    assert (chosen.block_k, chosen.num_stages) == (64, 2)
    assert chosen.num_warps == max(1, chosen.block_m // 16)


# Tier 3


def test_what_is_the_same_in_traces_is_specialised_for() -> None:
    x, y = ts.empty((20, 24)), ts.empty((30, 24))
    engine = TraceSpecializationEngine()
    context = engine.context(softmax, [*traced(x), *traced(y)])
    assert isinstance(context, TraceContext)
    assert context.constant_shapes == {"x.size[1]": 24}
    assert context.specialized_types == {"x": "f32"}
    assert context.memory_layout == {"x.stride[0]": 24, "x.stride[1]": 1}
    assert context.loop_invariants == {}
    guards = engine.generate_runtime_guards(context)
    assert {guard.word for guard in guards} == set(context.words)
    assert all(guard.check_function([x]) for guard in guards)
    refusing = [guard.word for guard in guards if not guard.check_function([ts.empty((24, 20))])]
    assert refusing == ["x.size[1]", "x.stride[0]"]
    kernel = engine.generate_specialized_kernel(softmax, context)
    assert isinstance(kernel, SpecializedKernel)
    assert kernel.level.tier is TIER3
    assert {guard.word for guard in kernel.guards} <= set(context.words)  # those that compiling asked for
    assert kernel.context.constant_head_dim == 24
    assert kernel.context.constant_seq_len is None
    with pytest.raises(TesseraError, match="got none"):
        engine.context(softmax, [])


@pytest.mark.acceptance
def test_what_a_gpus_program_does_is_part_of_it() -> None:
    q, k, v, o = (ts.empty((1, 2, 128, 64), ts.bf16) for _ in range(4))
    profile = InputProfile.of("flash_attention", (q.meta, k.meta, v.meta, o.meta, 0.125), scale=0.125)
    traces = [AttentionTrace(profile, ExecutionPattern(1.0), TIER1, index) for index in range(3)]
    from tessera.metatracing import flash_attention

    context = TraceSpecializationEngine().context(flash_attention, traces, {"causal": True}, "sm_90a")
    assert context.loop_invariants == {"scale": 0.125}
    assert context.tensor_core_ops
    assert all(one.argument is None for one in context.coalescing_patterns)  # heads are read as they lie
    assert {one.kind for one in context.warp_patterns}
    options = CompilationOptions(target_architecture="sm_90a")
    kernel = TraceSpecializationEngine().generate_specialized_kernel(flash_attention, context, options)
    assert kernel.register_usage is not None
    assert kernel.shared_memory_usage


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (RecommendationType.SHAPE_SPECIALIZATION, ShapeParams(("sizes", "strides"))),
        (RecommendationType.TILE_SIZE_SPECIALIZATION, TileParams(Schedule(block=(8, 64)), 8, 64)),
        (RecommendationType.DTYPE_SPECIALIZATION, DtypeParams(ts.bf16)),
        (RecommendationType.MEMORY_LAYOUT_SPECIALIZATION, LayoutParams((0,))),
    ],
)
def test_what_is_recommended_is_generated(kind: RecommendationType, params: Params) -> None:
    x = ts.randn((24, 20), seed=0).T
    advice = SpecializationRecommendation(kind, "made up", 0.3, 1, params)
    made = SpecializedKernelGenerator().generate_specialized_kernel(traced(x), advice, softmax)
    assert made.compiled is not None
    is_rows = isinstance(params, LayoutParams | DtypeParams)
    given = (x.copy() if is_rows else x).to(ts.bf16 if isinstance(params, DtypeParams) else ts.f32)
    call = KernelClient(softmax).call([given], {})
    assert call is not None
    assert all(guard.check_function([given]) for guard in made.guards)
    found = made.compiled.bind(call)(given.geometry)
    assert np.allclose(found.values(), softmax(x).numpy(), atol=1e-2 if isinstance(params, DtypeParams) else 1e-6)
    assert made.context.specialized_dtype == str(given.dtype)
    assert (made.expected_performance_tflops, made.shared_memory_usage) == (None, 0)
    assert made.register_usage
    assert made.nbytes > 0
    if isinstance(params, ShapeParams):
        assert {guard.guard_type for guard in made.guards} <= {GuardType.SHAPE_GUARD, GuardType.STRIDE_GUARD}
        assert made.context.constant_head_dim == 24


@pytest.mark.acceptance
def test_attention_is_expected_to_gain_what_is_recommended() -> None:
    q, k, v, o = attention()
    interpreter = FlashAttentionInterpreter()
    interpreter.execute(q, k, v, o)
    traces = interpreter.get_trace_history()
    advice = SpecializationRecommendation(
        RecommendationType.SHAPE_SPECIALIZATION, "all sizes", 0.5, 2, ShapeParams(("sizes",))
    )
    made = SpecializedKernelGenerator().generate_specialized_kernel(traces, advice)
    achieved = 4 * 2 * 8 * 8 * 8 / traces[0].execution_pattern.execution_time_ms / 1e9
    assert made.expected_performance_tflops == pytest.approx(1.5 * achieved)
    assert made.context.always_causal is False
    with pytest.raises(TesseraError, match="got none"):
        SpecializedKernelGenerator().generate_specialized_kernel([], advice)


@pytest.mark.acceptance
def test_the_same_numbers_with_tiers_and_without() -> None:
    """Example A.5, small: attention as an operator, and in tiers."""
    q, k, v, o = attention()
    call_untiered = ts.ops.scaled_dot_product_attention(q, k, v, causal=True)
    with MetaTracingRuntime(RuntimeConfig(persist=False, background_compilation=False)) as runtime:
        runtime.execute_flash_attention(q, k, v, o, AttentionParams(is_causal=True))
    assert ts.max(ts.abs(call_untiered - o)).item() < 1e-5


def test_programs_of_hot_inputs_are_looked_into() -> None:
    config = RuntimeConfig(
        background_compilation=False,
        persist=False,
        enable_tier2_compilation=False,
        enable_tier3_specialization=False,
        sample_period=0,
    )
    runtime = MetaTracingRuntime(config)
    tiered, x = runtime.tiered(softmax), ts.randn((90, 60), seed=0)
    for one in (x, x.T):
        for _ in range(3):
            tiered(one)
    assert [one.kind for one in runtime.analyze().memory if one.kind == "uncoalesced"] == []
    result = runtime.analyze(inside=True)
    (found,) = [one for one in result.memory if one.kind == "uncoalesced"]
    assert found.argument == 0  # of one of the inputs, the columns


@pytest.mark.gpu
def test_interpreters_and_analyses_on_a_gpu() -> None:
    q, k, v = (ts.randn((1, 2, 256, 64), ts.bf16, seed=seed).cuda() for seed in range(3))
    o = ts.empty(q.shape, ts.bf16, device="cuda:0")
    interpreter = FlashAttentionInterpreter()
    for _ in range(3):
        interpreter.execute(q, k, v, o, AttentionParams(is_causal=True))
    exact = ReferenceFlashAttention().compute(q, k, v, AttentionParams(is_causal=True), heads=1)
    found = o[0, 0].cpu().values().astype(np.float64)
    assert np.linalg.norm(found - exact[0]) / np.linalg.norm(exact[0]) < 4e-3
    x = ts.randn((64, 128), seed=0).cuda()
    _, trace = TesseraInterpreter().execute_with_tracing(softmax, [x])
    assert sum(one.size_bytes for one in trace.memory_patterns if one.argument == 0) == x.nbytes
    assert trace.memory_transfers == ()

    def scaled(x: Any, by: Any) -> Any:
        return x * by

    _, trace = TesseraInterpreter().execute_with_tracing(scaled, [x, 2.0])
    assert {(str(one.source), str(one.target)) for one in trace.memory_transfers} == {("cpu", "cuda:0")}
    runtime = MetaTracingRuntime(RuntimeConfig(background_compilation=False, persist=False, sample_period=0))
    for _ in range(12):
        runtime.execute_flash_attention(q, k, v, o, AttentionParams(is_causal=True))
    synchronize()
    # A few warps with many registers are what attention is on a GPU; the driver says so of every launch.
    assert {one.kind for one in runtime.analyze().compute} == {"low occupancy"}
    assert {one.kind for one in runtime.analyze(inside=True).compute} >= {"low occupancy"}
    traces = runtime.get_traces()
    assert not any(one.execution_pattern.compute_events for one in traces)
    assert any(one.execution_pattern.compute_events for one in with_events(runtime, traces))
    made = EnhancedTesseraCompiler().compile_flash_attention(traces[-1].input_profile, traces)
    assert made.compiled.nbytes > 0
    context = TraceSpecializationEngine().context(softmax, traced(x))
    kernel = TraceSpecializationEngine().generate_specialized_kernel(softmax, context)
    assert kernel.register_usage
