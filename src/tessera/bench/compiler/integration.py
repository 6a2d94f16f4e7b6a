"""The compiler as the bench sees it: first calls and compiles timed stage by stage, launches profiled.

No program is found in the compile cache or left there: what is timed is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tessera.bench.compiler.inspector import IRInspector
from tessera.bench.instruments.hardware import METRICS, HardwareProfiler
from tessera.bench.results.definitions import BenchError
from tessera.compile import CompiledKernel, to_executable, to_graph_ir, to_schedule_ir, to_target_ir, to_tile_ir
from tessera.compile.chosen_target import changed
from tessera.compile.executables import why_not_here
from tessera.compile.kernels import KernelSubject, schedule_of
from tessera.compile.profiler import CompilationProfiler
from tessera.compile.sources import Compilable
from tessera.runtime.program.executable import start_pool
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.compiling import finished, lowered, source_of
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.program_cache import lines_of
from tessera.tile.calls.settings import Settings, device_of, settings, settings_on

NO_TUNER = "there is no tuner yet: the schedule is the kernel's own"
NOT_ASKED = "autotuning was not asked for"
NO_PRECISION = "precision is that of the arguments' types"
_CONFIGURATION = (
    *("kernel", "target_arch", "optimization_level", "precision_policy", "autotuning_enabled", "autotune_config"),
    *("schedule_opts", "tile_opts", "target_opts", "sizes"),
)
_LEAST_BATCHES = 5
_BATCH_SECONDS = 1e-3


def stages(kernel: Kernel, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Milliseconds per stage of what the first call of a kernel does, without the cache, without running it.

    That is tracing, the passes below the tile level, LLVM, and making the code ready to be launched; imports and LLVM's
    own start are not in it. A kernel that runs in the interpreter is only traced. A kernel that is a single launch
    needs no passes over graphs and schedules; `compile_with_timing` times those, too.
    """
    chosen, static = settings(), kwargs or {}
    device = device_of(kernel.__name__, [*args, *static.values()])
    here = None if chosen is None else settings_on(device, chosen)
    _prepare(here)
    profiler = CompilationProfiler()
    subject = KernelSubject.of(kernel, args, static, here)
    profiler.lap("trace")
    if here is None:
        return profiler.stages_ms
    instance, values = subject.instance, subject.values
    source = source_of(instance)
    facts, lines = kernel.assumed.facts(instance, values), lines_of(values)
    made = finished(lowered(source, here, facts, lines, checks_spills=False), source, here)
    profiler.take(made.seconds)
    program = here.compiler.load(made.plan, made.code)
    here.compiler.get_on_device(program, device.index, keep=False)
    profiler.lap("load")
    if not here.compiler.is_asynchronous:
        arrays = [value.geometry if isinstance(value, Tensor) else value for value in values]
        program.bind(arrays, deterministic=here.deterministic)
        profiler.lap("bind")
    return profiler.stages_ms


def host_overhead(call: Callable[[], Any], seconds: float = 0.1) -> float:
    """Microseconds per call, for a call whose work is as small as can be: the best of batches of calls."""
    call()
    count = 1
    while (lap := _batch(call, count)) < _BATCH_SECONDS:
        count *= 2
    best, number, until = lap, 1, time.perf_counter() + seconds
    while number < _LEAST_BATCHES or time.perf_counter() < until:
        best, number = min(best, _batch(call, count)), number + 1
    return 1e6 * best / count


def _batch(call: Callable[[], Any], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - began


class LocalRuntime:
    """The runtime that `TesseraIntegration` needs: this process."""

    def __init__(self) -> None:
        self.profiler = HardwareProfiler()

    def get_memory_usage(self) -> int:
        """Bytes that the process has in memory."""
        return self.profiler.get_memory_counters()["rss_bytes"]

    @contextmanager
    def profiling_context(self, profiling_config: Mapping[str, Any] | None = None) -> Generator[Profile]:
        """Profiles what is done inside; `metrics` of the configuration says what of it."""
        handle = self.profiler.start_profiling((profiling_config or {}).get("metrics", METRICS))
        profile = Profile()
        try:
            yield profile
        finally:
            profile.results = self.profiler.stop_profiling(handle)

    def launch_kernel(
        self,
        kernel: Callable[..., Any],
        args: Sequence[Any],
        grid_dim: tuple[int, ...] | None = None,
        block_dim: tuple[int, ...] | None = None,
    ) -> Any:
        """Runs a kernel, over a grid where one is given, in blocks of its schedule where they are."""
        if grid_dim is None and block_dim is None:
            return kernel(*args)
        if not isinstance(kernel, Kernel):
            raise BenchError(
                f"expected a kernel for a grid and blocks of one's own, got {type(kernel).__name__}",
                hint="what is compiled has them already: leave grid_dim and block_dim out",
            )
        chosen = kernel if block_dim is None else kernel.with_schedule(schedule_of({"block": block_dim}))
        return (chosen if grid_dim is None else chosen[grid_dim])(*args)


@dataclass
class Profile:
    """The findings of a profiling, once it is over."""

    results: dict[str, Any] = field(default_factory=dict[str, Any])

    def get_results(self) -> dict[str, Any]:
        return dict(self.results)


class TesseraIntegration:
    """Compiles with the time of each level, and launches with a profile. `runtime` does what `LocalRuntime` does."""

    def __init__(self, runtime: Any = None) -> None:
        self.runtime = LocalRuntime() if runtime is None else runtime
        self.ir_inspector = IRInspector()
        self.compilation_profiler = CompilationProfiler()

    def compile_with_timing(
        self,
        kernel_source: Compilable | str | Path,
        compilation_config: Mapping[str, Any] | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[CompiledKernel, dict[str, Any]]:
        """A kernel or jitted function compiled for these arguments, and milliseconds: per level, in all, per stage.

        Without arguments, zeros of the annotated types are taken, with the `sizes` of the configuration for symbols.
        The configuration may say what for (`target_arch`, an instruction set such as sm_90a; `optimization_level`),
        name the `kernel` of a text with several, and hold `schedule_opts`, `tile_opts` and `target_opts`. A figure that
        was not measured is None, and `unavailable` says why. What cannot run on this machine is compiled as far as it
        can be here; calling it is an error.
        """
        config = dict(compilation_config or {})
        if unknown := sorted(config.keys() - set(_CONFIGURATION)):
            words = f"a compile has no configuration {', '.join(unknown)}"
            raise BenchError(words, hint=f"it has {', '.join(_CONFIGURATION)}")
        options = _options(config)
        chosen = settings()
        _prepare(None if chosen is None else changed(chosen, options))
        laps: dict[str, float | None] = {}
        began = time.perf_counter()
        graph_ir = to_graph_ir(
            kernel_source, args, kwargs, options, name=config.get("kernel"), sizes=config.get("sizes")
        )
        laps["graph_ir_ms"] = _since(began)
        began = time.perf_counter()
        schedule_ir = to_schedule_ir(graph_ir, config.get("schedule_opts"))
        laps["schedule_ir_ms"] = _since(began)
        began = time.perf_counter()
        tile_ir = to_tile_ir(schedule_ir, config.get("tile_opts"))
        laps["tile_ir_ms"] = _since(began)
        began = time.perf_counter()
        target_ir = to_target_ir(tile_ir)
        laps["target_ir_ms"] = _since(began)
        laps["autotuning_ms"] = None
        began = time.perf_counter()
        compiled = to_executable(target_ir, must_run=False)
        laps["final_compilation_ms"] = _since(began)
        unavailable = {"autotuning_ms": NO_TUNER if config.get("autotuning_enabled") else NOT_ASKED}
        if (refusal := why_not_here(target_ir)) is not None:
            laps["final_compilation_ms"] = None
            unavailable["final_compilation_ms"] = refusal.message
        if "precision_policy" in config:
            unavailable["precision_policy"] = NO_PRECISION
        self.compilation_profiler = CompilationProfiler(compiled.stages_ms)
        total = sum(spent for spent in laps.values() if spent is not None)
        return compiled, {**laps, "total_ms": total, "stages": dict(compiled.stages_ms), "unavailable": unavailable}

    def launch_kernel_with_profiling(
        self,
        kernel: Callable[..., Any],
        args: Sequence[Any],
        grid_dim: tuple[int, ...] | None = None,
        block_dim: tuple[int, ...] | None = None,
        profiling_config: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One launch: its result, and what it used. A first launch compiles, and that is in it."""
        before = self.runtime.get_memory_usage()
        with self.runtime.profiling_context(profiling_config) as profile:
            result = self.runtime.launch_kernel(kernel, args, grid_dim, block_dim)
        found = dict(profile.get_results())
        found["memory_delta_mb"] = (self.runtime.get_memory_usage() - before) / 2**20
        return {"launch_result": result, "profiling_results": found}


def _since(began: float) -> float:
    return 1e3 * (time.perf_counter() - began)


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the target in a configuration."""
    options = dict(config.get("target_opts") or {})
    if (arch := config.get("target_arch")) is not None:
        options["level"] = str(arch).rpartition(" ")[2]  # descriptions of this machine begin with its family
    if (level := config.get("optimization_level")) is not None:
        number = str(level).removeprefix("O")
        if number not in ("0", "1", "2", "3"):
            raise BenchError(f"unknown optimization_level {level!r}", hint="one of O0, O1, O2, O3")
        options["optimization"] = int(number)
    return options


def _prepare(chosen: Settings | None) -> None:
    """Does once what a process needs before its first compile: imports, the runtime, LLVM for the target."""
    import_module("tessera.tile.calls.trace")
    if chosen is None:
        return
    start_pool()
    chosen.compiler.warm_up(chosen.options())
