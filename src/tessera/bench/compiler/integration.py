"""The compiler as the bench sees it: first calls and compiles timed stage by stage, launches profiled.

Nothing here reads or fills the compile cache: what is timed is done.
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
from tessera.bench.compiler.levels import (
    CompilationProfiler,
    CompiledKernel,
    arrays_of,
    launch_plan,
    schedule_of,
    settings_with,
    to_executable,
    to_graph_ir,
    to_schedule_ir,
    to_target_ir,
    to_tile_ir,
    traced,
)
from tessera.bench.instruments.hardware import METRICS, HardwareProfiler
from tessera.bench.results.definitions import BenchError
from tessera.runtime.program.executable import Executable, start_pool
from tessera.targets.cpu import features
from tessera.targets.cpu.compile import EFFORTS, compile_kernel
from tessera.targets.llvm import machine
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.settings import Settings, device_of, settings, settings_on

NO_TUNER = "there is no tuner yet: the schedule is the kernel's own"
_LEAST_BATCHES = 5
_BATCH_SECONDS = 1e-3


def stages(kernel: Kernel, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Milliseconds per stage of what the first call of a kernel does, without the cache, without running it.

    That is tracing, the passes below the tile level, LLVM, and making the code ready to be launched; imports and LLVM's
    own start are not in it. A kernel that runs in the interpreter is only traced. A kernel that is a single launch
    needs no passes over graphs and schedules; `compile_with_timing` times those, too.
    """
    chosen = settings()
    _prepare(chosen)
    profiler = CompilationProfiler()
    instance, values = traced(kernel, args, kwargs or {})
    profiler.lap("trace")
    if chosen is None:
        return profiler.stages_ms
    device = device_of(instance.name, values)
    if device.is_accelerator:
        return _gpu_stages(kernel, instance, values, settings_on(device, chosen), device.index, profiler)
    facts = kernel.assumed.facts(instance, values)
    made = compile_kernel(instance.module, instance.name, chosen.options(), facts)
    profiler.take(made.seconds)
    executable = Executable(launch_plan(instance, made), made.image)
    profiler.lap("load")
    executable.bind(arrays_of(values), deterministic=chosen.deterministic)
    profiler.lap("bind")
    return profiler.stages_ms


def _gpu_stages(
    kernel: Kernel,
    instance: Instance,
    values: Sequence[Any],
    chosen: Settings,
    index: int,
    profiler: CompilationProfiler,
) -> dict[str, float]:
    """Down to PTX, and the driver's assembler; nothing of it is kept."""
    from tessera.runtime.cuda.modules import Module
    from tessera.targets.cuda.compile import compile_kernel as compile_for_gpu

    schedule, facts = instance.schedule, kernel.assumed.facts(instance, values)
    options = chosen.options(warps=schedule.warps, stages=schedule.stages)
    made = compile_for_gpu(instance.module, instance.name, options, facts)
    profiler.take(made.seconds)
    Module(index, made.ptx.encode(), f"@{instance.name}", keep=False)
    profiler.lap("load")
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
        kernel_source: Kernel | str | Path,
        compilation_config: Mapping[str, Any] | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[CompiledKernel, dict[str, Any]]:
        """The kernel compiled for these arguments, and milliseconds: per level, in all, and per stage in `stages`.

        The configuration may name the `kernel` of a text with several, and hold `schedule_opts`, `tile_opts` and
        `target_opts`. Autotuning takes no time: there is no tuner yet, and `unavailable` says so where it is asked for.
        """
        config = dict(compilation_config or {})
        _prepare(settings_with(config.get("target_opts", {})))
        began = time.perf_counter()
        graph_ir = to_graph_ir(kernel_source, args, kwargs, name=config.get("kernel"))
        laps = {"graph_ir_ms": _since(began)}
        began = time.perf_counter()
        schedule_ir = to_schedule_ir(graph_ir, config.get("schedule_opts"))
        laps["schedule_ir_ms"] = _since(began)
        began = time.perf_counter()
        tile_ir = to_tile_ir(schedule_ir, config.get("tile_opts"))
        laps["tile_ir_ms"] = _since(began)
        began = time.perf_counter()
        target_ir = to_target_ir(tile_ir, config.get("target_opts"))
        laps["target_ir_ms"] = _since(began)
        laps["autotuning_ms"] = 0.0
        began = time.perf_counter()
        compiled = to_executable(target_ir)
        laps["final_compilation_ms"] = _since(began)
        self.compilation_profiler = CompilationProfiler(compiled.stages_ms)
        unavailable = {"autotuning_ms": NO_TUNER} if config.get("autotuning_enabled") else {}
        total = sum(laps.values())
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


def _prepare(chosen: Settings | None) -> None:
    """Does once what a process needs before its first compile: imports, the runtime, LLVM for this processor."""
    import_module("tessera.tile.calls.trace")
    if chosen is None:
        return
    start_pool()
    processor, extras = features.target(chosen.level)
    codegen = EFFORTS[chosen.optimization].codegen
    machine.compile_text("define void @nothing() { ret void }", cpu=processor, features=extras, opt=codegen)
