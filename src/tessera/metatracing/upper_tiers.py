"""The compilers of the upper tiers, which compile programs for traces.

Tier 2 leaves sizes open, under schedules that traces recommend. Tier 3 also assumes the invariants of traces. A runtime
keeps its compile times in them; given traces, they also compile in the caller.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tessera import knobs
from tessera.dtypes.types import DType, f32
from tessera.errors import TesseraError
from tessera.field_checks import check_fields
from tessera.metatracing.attention import attention_operations
from tessera.metatracing.clients.kernels import KernelClient, KernelContext
from tessera.runtime.tensor.meta import Meta
from tessera.stdlib import flash_attention
from tessera.tiers.client import Call, Compiled, RuntimeGuard, TierLevel, facts_of
from tessera.tiers.manager import SpecializedKernel, context_of
from tessera.tiers.records import AttentionTrace, Described, ExecutionTier, InputProfile, LaunchFacts, Record
from tessera.tiers.sites.candidates import tier2_levels, tier3_levels
from tessera.tiers.sites.invariants import invariant_words
from tessera.tiers.sites.schedule_history import ScheduleHistory
from tessera.tiers.stand_ins import contiguous, stand_ins
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.settings import settings_at, settings_of_gpu
from tessera.tile.language.schedule import Schedule

if TYPE_CHECKING:
    from tessera.metatracing.analysis.analyzer import FusionOptimizer
    from tessera.metatracing.analysis.specializations import SpecializationRecommendation
    from tessera.metatracing.events.kinds import MemoryAccessEvent
    from tessera.metatracing.events.tracers import PipelineStall, TensorCoreUsage
    from tessera.metatracing.models.tiers import TileConfigurationOptimizer

_ASKED = re.compile(r"(\w+)\.(size|stride)\[(\d+)\]")
TIER2, TIER3 = ExecutionTier.TIER2_STANDARD, ExecutionTier.TIER3_SPECIALIZED


@dataclass(frozen=True)
class CompilationOptions:
    """`target_architecture`: such as sm_90a; None is where the arguments of traces are. `optimization_level`: None is
    that of the settings. Traces are used where the next call can be predicted from them with this confidence.
    """

    target_architecture: str | None = None
    optimization_level: int | None = None
    use_trace_information: bool = True
    enable_aggressive_specialization: bool = False
    trace_confidence_threshold: float = 0.8

    def __post_init__(self) -> None:
        check_fields(self, not_negative=("optimization_level", "trace_confidence_threshold"))
        if self.optimization_level is not None and self.optimization_level not in knobs.OPTIMIZATIONS:
            raise TesseraError(
                f"CompilationOptions.optimization_level is a number from 0 to 3, got {self.optimization_level!r}"
            )


@dataclass(frozen=True)
class CompilationResult:
    """A program, the level that it was compiled at, and others that would have been worth trying."""

    level: TierLevel
    compiled: Compiled
    seconds: float
    confidence: float
    others: tuple[TierLevel, ...] = ()


class _TierCompiler:
    """The common part of both compilers: the schedule history, and the compile times of sites."""

    def __init__(self, schedule_history: ScheduleHistory | None = None) -> None:
        self.schedule_history = ScheduleHistory() if schedule_history is None else schedule_history
        self.nanoseconds: Counter[str] = Counter()
        """The time from requests to their programs, by the names of sites."""

    def compiled(self, site: str, nanoseconds: int) -> None:
        """Adds the time of a site's request, which is compiled or given up."""
        self.nanoseconds[site] += nanoseconds

    @property
    def total_ms(self) -> float:
        """The compile time of all sites."""
        return self.nanoseconds.total() / 1e6


# Tier 2


class EnhancedTesseraCompiler(_TierCompiler):
    """Tier 2: the pipeline with sizes left open, under schedules that traces and A/B tests recommend."""

    def __init__(self, schedule_history: ScheduleHistory | None = None) -> None:
        super().__init__(schedule_history)
        self.memory_optimizer = MemoryLayoutOptimizer()
        self._tile_optimizer: TileConfigurationOptimizer | None = None

    @property
    def fusion_optimizer(self) -> FusionOptimizer:
        from tessera.metatracing.analysis.analyzer import FusionOptimizer

        return FusionOptimizer()

    @property
    def tile_optimizer(self) -> TileConfigurationOptimizer:
        """Made when it is first asked for: its model has to be read."""
        if self._tile_optimizer is None:
            from tessera.metatracing.models.tiers import TileConfigurationOptimizer

            self._tile_optimizer = TileConfigurationOptimizer()
        return self._tile_optimizer

    def compile_flash_attention(
        self,
        kernel_spec: InputProfile,
        relevant_traces: Sequence[AttentionTrace] = (),
        options: CompilationOptions | None = None,
    ) -> CompilationResult:
        """Compiles attention for an input, by its traces."""
        made = replace(kernel_spec, arguments=kernel_spec.arguments or _attention_arguments(kernel_spec))
        return self._compile(flash_attention, made, relevant_traces, options, {"causal": kernel_spec.is_causal})

    def compile_with_trace_info(
        self,
        function: Kernel,
        execution_trace: AttentionTrace,
        historical_traces: Sequence[AttentionTrace] = (),
        options: CompilationOptions | None = None,
        **static: Any,
    ) -> CompilationResult:
        """Any kernel, for the input of a trace; static arguments are not in traces, and are given."""
        traces = [*historical_traces, execution_trace]
        return self._compile(function, execution_trace.input_profile, traces, options, static)

    def optimize_schedule_with_profile(
        self, base_schedule: Schedule | None, profile_data: Sequence[AttentionTrace], kernel: Kernel = flash_attention
    ) -> Schedule | None:
        """The schedule that did best for inputs like those of traces; the given one where none were compared."""
        times: dict[Schedule | None, float] = {}
        client = KernelClient(kernel)
        for trace in profile_data:
            call = _call(client, trace.input_profile, _static(kernel, trace.input_profile))
            for schedule, behind in self.schedule_history.behind((client.name, call.fixed), call.described).items():
                times[schedule] = times.get(schedule, 0.0) + trace.total_ms * behind
        return min(times, key=lambda one: times[one], default=base_schedule)

    def _compile(
        self,
        kernel: Kernel,
        profile: InputProfile,
        traces: Sequence[AttentionTrace],
        options: CompilationOptions | None,
        static: Mapping[str, Any],
    ) -> CompilationResult:
        from tessera.metatracing.analysis.analyzer import PatternAnalyzer

        wanted = CompilationOptions() if options is None else options
        client = KernelClient(kernel)
        call = _call(client, profile, static, wanted)
        sure = PatternAnalyzer().analyze_traces(traces).pattern_confidence if traces else 0.0
        trusted = wanted.use_trace_information and sure >= wanted.trace_confidence_threshold
        levels = tier2_levels(client, call, 3, self.schedule_history) if trusted else [TierLevel(TIER2)]
        if trusted and wanted.enable_aggressive_specialization:
            words = invariant_words(client.paths, _records(traces), call.described, 1.0)
            levels = tier3_levels(client, call, words, levels[0].schedule, {}, 3, self.schedule_history)
        began = time.perf_counter()
        compiled = client.compile(call, levels[0])
        return CompilationResult(levels[0], compiled, time.perf_counter() - began, sure, tuple(levels[1:]))


class MemoryLayoutOptimizer:
    """Finds strides that never change, and arguments that are read across their rows."""

    def constant_strides(self, paths: Sequence[str], traces: Sequence[AttentionTrace]) -> dict[str, int]:
        """The strides that Tier 3 assumes, by words such as `q.stride[0]`."""
        if not traces:
            return {}
        here = traces[-1].input_profile.arguments
        facts = facts_of(paths, here)
        words = invariant_words(paths, _records(traces), here, 1.0)
        return {word: int(facts[word]) for word in words if ".stride[" in word}

    def columns(self, traces: Sequence[AttentionTrace]) -> tuple[int, ...]:
        """The arguments whose neighbours in a row do not lie together, in any trace."""
        found: set[int] = set()
        for trace in traces:
            for index, one in enumerate(trace.input_profile.arguments):
                if isinstance(one, Meta) and one.ndim > 1 and one.shape[-1] > 1 and one.strides[-1] != 1:
                    found.add(index)
        return tuple(sorted(found))


# Tier 3


@dataclass(frozen=True)
class TraceContext:
    """The invariants of traces, by words and by arguments; and, on a GPU, the work of the program.

    `loop_invariants` are numbers that never change. The last three are those of the current program: dots of its
    tensor cores, accesses that move more than they need, and stalls of its warps.
    """

    kernel: Kernel
    profile: InputProfile
    static: Mapping[str, Any]
    constant_shapes: dict[str, int]
    specialized_types: dict[str, str]
    loop_invariants: dict[str, float]
    memory_layout: dict[str, int]
    tensor_core_ops: tuple[TensorCoreUsage, ...] = ()
    coalescing_patterns: tuple[MemoryAccessEvent, ...] = ()
    warp_patterns: tuple[PipelineStall, ...] = ()
    runtime_guards: tuple[RuntimeGuard, ...] = field(default=())

    @property
    def words(self) -> tuple[str, ...]:
        """All words that are assumed."""
        return tuple(sorted({**self.constant_shapes, **self.memory_layout, **self.loop_invariants}))


class TraceSpecializationEngine:
    """Compiles any kernel for the invariants of traces, with the guards that these need."""

    def context(
        self,
        kernel: Kernel,
        traces: Sequence[AttentionTrace],
        static: Mapping[str, Any] | None = None,
        architecture: str | None = None,
    ) -> TraceContext:
        """The invariants of all traces; with an architecture, also the work of the kernel's program on such a GPU."""
        if not traces:
            raise TesseraError("invariants are found in traces, got none", hint="record some calls first")
        client, profile = KernelClient(kernel), traces[-1].input_profile
        facts = facts_of(client.paths, profile.arguments)
        words = invariant_words(client.paths, _records(traces), profile.arguments, 1.0)
        found = TraceContext(
            kernel,
            profile,
            dict(static or {}),
            {word: int(facts[word]) for word in words if ".size[" in word},
            {
                path: str(one.dtype)
                for path, one in zip(client.paths, profile.arguments, strict=True)
                if isinstance(one, Meta)
            },
            {word: float(facts[word]) for word in words if word in client.paths},
            {word: int(facts[word]) for word in words if ".stride[" in word},
        )
        found = replace(found, runtime_guards=tuple(self.generate_runtime_guards(found)))
        return found if architecture is None else self._looked_into(found, architecture)

    def _looked_into(self, context: TraceContext, architecture: str) -> TraceContext:
        from tessera.metatracing.events.execution import KernelExecution
        from tessera.metatracing.events.tracers import GPUComputePatternTracer, GPUMemoryPatternTracer

        args = stand_ins(context.profile.arguments)
        launch = KernelExecution.of(context.kernel, *args, arch=architecture, **context.static)
        compute = GPUComputePatternTracer().trace_compute_patterns(launch)
        memory = GPUMemoryPatternTracer().trace_memory_patterns(launch)
        return replace(
            context,
            tensor_core_ops=compute.tensor_core_ops,
            coalescing_patterns=memory.coalescing_issues,
            warp_patterns=compute.pipeline_stalls,
        )

    def generate_runtime_guards(self, context: TraceContext) -> list[RuntimeGuard]:
        """A guard for each word that a program may depend on."""
        paths = KernelClient(context.kernel).paths
        made: list[RuntimeGuard] = []
        known = {**context.constant_shapes, **context.memory_layout}
        for index, path in enumerate(paths):
            if path in context.loop_invariants:
                made.append(RuntimeGuard.about(index, path, "value", 0, context.loop_invariants[path]))
            for word, value in known.items():
                asked = _ASKED.fullmatch(word)
                if asked is not None and asked[1] == path:
                    made.append(RuntimeGuard.about(index, path, asked[2], int(asked[3]), value))
        return made

    def generate_specialized_kernel(
        self, function: Kernel, context: TraceContext, options: CompilationOptions | None = None
    ) -> SpecializedKernel:
        """A program that assumes all of it. Its guards are those of the facts that compiling really asked for."""
        client = KernelClient(function)
        call = _call(client, context.profile, context.static, options)
        return _generated(client, call, TierLevel(TIER3, context.words))


class SpecializedKernelGenerator(_TierCompiler):
    """Tier 3: the pipeline with facts. It also compiles recommendations for traces."""

    def __init__(self, schedule_history: ScheduleHistory | None = None) -> None:
        super().__init__(schedule_history)
        self.engine = TraceSpecializationEngine()

    def generate_specialized_kernel(
        self,
        traces: Sequence[AttentionTrace],
        recommendation: SpecializationRecommendation,
        kernel: Kernel = flash_attention,
        options: CompilationOptions | None = None,
    ) -> SpecializedKernel:
        """A recommendation, compiled: under its schedule, with its words, for its element type or layout."""
        from tessera.metatracing.analysis.specializations import (
            DtypeParams,
            InstructionParams,
            LayoutParams,
            ShapeParams,
            TileParams,
        )

        profile = traces[-1].input_profile if traces else None
        if profile is None:
            raise TesseraError("inputs to specialise for are found in traces, got none", hint="record some calls first")
        params, level = recommendation.params, TierLevel(TIER3)
        if isinstance(params, TileParams | InstructionParams):
            level = TierLevel(TIER2, (), params.schedule)
        elif isinstance(params, ShapeParams):
            level = TierLevel(TIER3, params.words)
        elif isinstance(params, LayoutParams):
            profile = replace(profile, arguments=_row_by_row(profile.arguments, params.arguments))
        else:
            assert isinstance(params, DtypeParams)
            profile = replace(profile, arguments=_row_by_row(profile.arguments, None, params.specialized_dtype))
        client = KernelClient(kernel)
        made = _generated(client, _call(client, profile, _static(kernel, profile), options), level)
        return replace(made, expected_performance_tflops=_expected(traces, recommendation, kernel))


def _generated(client: KernelClient, call: Call, level: TierLevel) -> SpecializedKernel:
    compiled = client.compile(call, level)
    launch = client.execution(compiled, level, call)
    registers, shared = (None, None) if launch is None else launch.registers_and_shared
    context = context_of(client, call, level, compiled.guards)
    return SpecializedKernel(
        *(client.name, context, compiled.guards, level, compiled.nbytes, 0, None),
        register_usage=registers,
        shared_memory_usage=shared,
        compiled=compiled,
        client=client,
        call=call,
    )


def _expected(
    traces: Sequence[AttentionTrace], recommendation: SpecializationRecommendation, kernel: Kernel
) -> float | None:
    """The rate of attention so far times the expected gain; None for kernels whose work is not known."""
    spent = sum(one.total_ms for one in traces)
    if kernel is not flash_attention or not spent:
        return None
    done = 0.0
    for one in traces:
        keys = one.input_profile.arguments[1] if len(one.input_profile.arguments) > 1 else None
        length = keys.shape[-2] if isinstance(keys, Meta) else one.input_profile.seq_len
        done += one.execution_count * attention_operations(one.input_profile, length)
    return done / spent / 1e9 * (1 + recommendation.expected_improvement)


# From traces to calls


def _records(traces: Iterable[AttentionTrace]) -> list[Record]:
    return [
        Record(
            one.timestamp,
            one.tier,
            one.input_profile.arguments,
            round(1e6 * one.execution_pattern.execution_time_ms),
            one.execution_count,
            LaunchFacts(),
        )
        for one in traces
    ]


def _static(kernel: Kernel, profile: InputProfile) -> dict[str, Any]:
    """The static arguments that a profile has: those of attention."""
    return {"causal": profile.is_causal} if kernel is flash_attention else {}


def _call(
    client: KernelClient, profile: InputProfile, static: Mapping[str, Any], options: CompilationOptions | None = None
) -> Call:
    """A call with the input of a trace, without its memory."""
    if not profile.arguments:
        raise TesseraError(
            f"a trace of {profile.site or client.name} without arguments cannot be compiled for",
            hint="take traces of a runtime, or give InputProfile its arguments",
        )
    call = client.call(stand_ins(profile.arguments), static)
    if call is None:
        raise TesseraError(f"{client.name} cannot be compiled for such arguments", hint="run it without tiers")
    here, wanted = call.context.settings, CompilationOptions() if options is None else options
    if wanted.target_architecture is not None:
        here = settings_of_gpu(wanted.target_architecture)
    if wanted.optimization_level is not None and here is not None:
        here = settings_at(wanted.optimization_level, here)
    return call._replace(context=KernelContext(call.context.static, here))


def _attention_arguments(profile: InputProfile) -> Described:
    from tessera.runtime.device.device import default_device

    shape = (profile.batch_size, profile.num_heads, profile.seq_len, profile.head_dim)
    dtype = f32 if profile.input_dtype is None else profile.input_dtype
    meta = contiguous(dtype, shape, default_device())
    scale = profile.head_dim**-0.5 if profile.softmax_scale is None else profile.softmax_scale
    return (meta, meta, meta, meta, scale)


def _row_by_row(arguments: Described, indices: Sequence[int] | None, dtype: DType | None = None) -> Described:
    """The arguments, with arrays at these indices, or all of floats, row by row; in another element type if given."""
    return tuple(
        [
            contiguous(dtype or one.dtype, one.shape, one.device)
            if isinstance(one, Meta) and (one.dtype.is_float if indices is None else index in indices)
            else one
            for index, one in enumerate(arguments)
        ]
    )
