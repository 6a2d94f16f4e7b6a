"""The first tier alone: interpreters that run and record, and never compile for higher tiers.

`FlashAttentionInterpreter` runs attention, `TesseraInterpreter` any kernel or function, and traces its operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tessera.errors import TesseraError
from tessera.field_checks import check_fields
from tessera.metatracing.attention import AttentionParams
from tessera.metatracing.ranks import LISTENERS, CollectiveEvent
from tessera.metatracing.runtime import MetaTracingRuntime, RuntimeResult
from tessera.runtime.tensor import transfer
from tessera.runtime.tensor.tensor import Tensor
from tessera.runtime.tensor.transfer import MemoryTransferInfo
from tessera.tiers.config import RuntimeConfig
from tessera.tiers.records import AttentionTrace
from tessera.tile.calls.function import Kernel

if TYPE_CHECKING:
    from tessera.lang.jit import Jitted
    from tessera.metatracing.analysis.analyzer import AnalysisResult
    from tessera.metatracing.events.kinds import MemoryAccessEvent
    from tessera.metatracing.events.monitor import PerformanceMetrics


@dataclass(frozen=True)
class InterpreterConfig:
    """`hotspot_threshold`: seconds that an input has to have taken in all its runs together to be hot."""

    enable_tracing: bool = True
    enable_performance_monitoring: bool = True
    max_trace_history: int = 1000
    hotspot_threshold: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self, positive=("max_trace_history",), not_negative=("hotspot_threshold",))


class KernelLaunchInfo(NamedTuple):
    """A kernel that was launched, and its program instances; None where these are not counted."""

    name: str
    programs: int | None


@dataclass(frozen=True)
class ExecutionTrace:
    """The trace of a run.

    `operations` are those of the graph, or of a kernel's tile IR, in their order. `intermediate_values` are there
    where they were asked for, by the operation that made them: they are computed once more, by the reference.
    `memory_transfers` are copies to other devices that the call made, such as of a function's numbers to a GPU.
    """

    operations: tuple[str, ...]
    dynamic_shapes: tuple[tuple[int, ...], ...]
    memory_patterns: tuple[MemoryAccessEvent, ...]
    kernel_launches: tuple[KernelLaunchInfo, ...]
    memory_transfers: tuple[MemoryTransferInfo, ...]
    collective_ops: tuple[CollectiveEvent, ...]
    recorded: AttentionTrace
    intermediate_values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@contextmanager
def _listening(listeners: list[Any], listener: Callable[[Any], object]) -> Generator[None]:
    """Adds a listener for the duration of a `with`."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


class TesseraInterpreter:
    """Runs kernels and functions at Tier 1. `settings` are those of its runtime, without upper tiers.

    Without settings of a runtime, every run is recorded.
    """

    def __init__(self, config: InterpreterConfig | None = None, settings: RuntimeConfig | None = None) -> None:
        self.config = InterpreterConfig() if config is None else config
        self.runtime = MetaTracingRuntime(
            replace(
                RuntimeConfig(persist=False, sample_period=0) if settings is None else settings,
                enable_tier2_compilation=False,
                enable_tier3_specialization=False,
                background_compilation=False,
                enable_tracing=self.config.enable_tracing,
                max_trace_history=self.config.max_trace_history,
            )
        )
        self._functions: dict[Callable[..., Any], Jitted] = {}
        self._monitor: Any = None
        if self.config.enable_performance_monitoring:
            from tessera.metatracing.events.monitor import PerformanceMonitor

            self._monitor = PerformanceMonitor(self.runtime)
            self._monitor.begin_monitoring()

    # Runs

    def execute_with_tracing(
        self, function: Callable[..., Any], inputs: Sequence[Any], *, keep_values: bool = False, **static: Any
    ) -> tuple[Any, ExecutionTrace]:
        """A kernel, or a function of tensors, on arguments: its result, and its trace."""
        heard: list[CollectiveEvent] = []
        moved: list[MemoryTransferInfo] = []
        run = self.runtime.tiered(function) if isinstance(function, Kernel) else self._jitted(function)
        with _listening(LISTENERS, heard.append), _listening(transfer.LISTENERS, moved.append):
            result = run(*inputs, **static)
        for device in {one.device for one in inputs if isinstance(one, Tensor)}:
            device.backend.synchronize()  # a GPU's time is known when it is over
        traces = self.runtime.get_traces()
        if not traces:
            raise TesseraError("nothing was recorded", hint="leave InterpreterConfig.enable_tracing on")
        shapes = tuple(one.shape for one in inputs if isinstance(one, Tensor))
        details = self._of_kernel if isinstance(function, Kernel) else self._of_function
        operations, accesses, launches, values = details(function, inputs, static, keep_values)
        trace = ExecutionTrace(operations, shapes, accesses, launches, tuple(moved), tuple(heard), traces[-1], values)
        return result, trace

    def _jitted(self, function: Callable[..., Any]) -> Jitted:
        from tessera.lang.jit import Jitted

        if isinstance(function, Jitted):
            function = function.function  # the user's own stays as it is
        if function not in self._functions:
            self._functions[function] = Jitted(function, tiers=self.runtime)
        return self._functions[function]

    def _of_kernel(self, kernel: Any, inputs: Sequence[Any], static: Mapping[str, Any], keep_values: bool) -> Any:
        from tessera.interpreters.core.engine import symbol_in
        from tessera.ir.tile import dialect as tile
        from tessera.metatracing.events.execution import KernelExecution
        from tessera.metatracing.events.host import HostExecution, HostMemoryPatternTracer
        from tessera.metatracing.events.tracers import GPUMemoryPatternTracer

        if keep_values:
            raise TesseraError(
                f"{kernel.__name__}: tiles have values once for each program instance",
                hint="keep values of functions, or look at a kernel's with `tessera.verify`",
            )
        instance = kernel.lower(*inputs, **static)
        body = symbol_in(instance.module, instance.name, tile.FuncOp).body
        operations = tuple(op.name for op in body.walk())
        if any(isinstance(one, Tensor) and one.device.is_accelerator for one in inputs):
            launch = KernelExecution.of(kernel, *inputs, **static)
            memory, programs = GPUMemoryPatternTracer().trace_memory_patterns(launch), launch.programs
        else:
            host = HostExecution.of(kernel, *inputs, **static)
            memory, programs = HostMemoryPatternTracer().trace_memory_patterns(host), host.programs
        return operations, memory.events, (KernelLaunchInfo(instance.name, programs),), {}

    def _of_function(
        self, function: Callable[..., Any], inputs: Sequence[Any], static: Mapping[str, Any], keep_values: bool
    ) -> Any:
        from tessera.interpreters.core.engine import symbol_in
        from tessera.interpreters.core.machine import Machine
        from tessera.interpreters.levels.graph import run_function
        from tessera.ir import text
        from tessera.ir.graph import dialect as graph

        jitted = self._jitted(function)
        lowered = jitted.lower(*inputs, **static)
        module = text.read(lowered.graph_ir.text)
        main = symbol_in(module, "main", graph.FuncOp)
        operations = tuple(op.name for op in main.body.block.ops)
        launches = tuple(KernelLaunchInfo(name, None) for name in lowered.kernels)
        values: dict[str, Any] = {}
        if keep_values:
            counts: Counter[str] = Counter()

            def seen(op: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
                for one in results:
                    values[f"{op.name} {counts[op.name]}"] = one
                    counts[op.name] += 1

            call = jitted.parameters.call(jitted.parameters.bind(inputs, static))
            # A run of its own, which is not to print again.
            silent = Machine(write=lambda _: None)
            run_function(module, "main", [one.numpy() for one in call.values], machine=silent, witness=seen)
        return operations, (), launches, values

    # Reports

    def get_trace_history(self) -> list[AttentionTrace]:
        """The recorded runs, oldest first."""
        return self.runtime.get_traces()

    def analyze_traces(self) -> AnalysisResult:
        """Analyzes the recorded runs."""
        return self.runtime.analyze()

    def get_metrics(self) -> PerformanceMetrics:
        """The metrics of all runs so far."""
        if self._monitor is None:
            raise TesseraError("nothing is monitored", hint="set InterpreterConfig.enable_performance_monitoring")
        return self._monitor.get_metrics()

    def is_hotspot(self, trace: AttentionTrace) -> bool:
        """Whether runs with the input of a trace have taken long enough together for a higher tier."""
        alike = [one for one in self.get_trace_history() if one.input_profile == trace.input_profile]
        spent = sum(one.total_ms for one in alike)
        return spent >= 1e3 * self.config.hotspot_threshold

    def is_hot_spot(self, function: Callable[..., Any], trace: ExecutionTrace) -> bool:
        """Whether a function is hot, by a trace of a run of it."""
        return getattr(function, "__name__", None) == trace.recorded.input_profile.site and self.is_hotspot(
            trace.recorded
        )

    def close(self) -> None:
        self.runtime.close()


class FlashAttentionInterpreter(TesseraInterpreter):
    """Attention at Tier 1, with traces of every run."""

    def execute(self, q: Any, k: Any, v: Any, o: Any = None, params: AttentionParams | None = None) -> RuntimeResult:
        """softmax(scale·q·kᵀ)·v into `o`, which is made if it is not given; its trace is the last of the history."""
        return self.runtime.execute_flash_attention(q, k, v, o, params)
