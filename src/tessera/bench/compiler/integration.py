"""The compiler as the bench sees it: kernels taken through the levels one by one, each stage timed, and run profiled.

Nothing here reads or fills the compile cache: what is timed is done.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

import tessera
from tessera.bench.measuring.hardware import METRICS, HardwareProfiler
from tessera.bench.results.definitions import BenchError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.runtime.program.executable import Executable, Runner, start_pool
from tessera.runtime.program.launch_plan import Plan
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.targets.cpu import features
from tessera.targets.cpu.compile import EFFORTS, compile_kernel, machine_for
from tessera.targets.cpu.compile import Program as MachineProgram
from tessera.targets.cpu.emit.emitter import Emitted
from tessera.targets.cpu.emit.rules import emit
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.llvm import image, machine
from tessera.tile.calls.arguments import NUMBERS, collect, is_array
from tessera.tile.calls.assumptions import Assumptions
from tessera.tile.calls.compiling import Source, Words, plan_of
from tessera.tile.calls.function import Instance, Kernel
from tessera.tile.calls.levels import calling_module
from tessera.tile.calls.native import Program, Programs, Settings, place_of, settings, settings_on
from tessera.tile.language.schedule import Schedule
from tessera.transforms.checks.instrument import Instrument
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Fact, Facts
from tessera.transforms.facts.apply_facts import specialize
from tessera.transforms.pipeline import Stage, compile_module, default_stages

NO_TUNER = "there is no tuner yet: the schedule is the kernel's own"
_LEAST_BATCHES = 5
_BATCH_SECONDS = 1e-3


class CompilationProfiler:
    """Milliseconds of one stage after another."""

    def __init__(self, stages_ms: Mapping[str, float] | None = None) -> None:
        self.stages_ms: dict[str, float] = dict(stages_ms or {})
        self._began = time.perf_counter()

    def lap(self, stage: str) -> None:
        """The time since the last lap belongs to this stage."""
        now = time.perf_counter()
        self.stages_ms[stage] = self.stages_ms.get(stage, 0.0) + 1e3 * (now - self._began)
        self._began = now

    def take(self, seconds: Mapping[str, float]) -> None:
        """Stages that were timed by those who ran them. What came between them is in none."""
        for stage, value in seconds.items():
            self.stages_ms[stage] = self.stages_ms.get(stage, 0.0) + 1e3 * value
        self._began = time.perf_counter()


def stages(kernel: Kernel, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Milliseconds per stage of what the first call of a kernel does, without the cache, without running it.

    That is tracing, the passes below the tile level, LLVM, and making the code ready to be launched; imports and LLVM's
    own start are not in it. A kernel that runs in the interpreter is only traced. A kernel that is a single launch
    needs no passes over graphs and schedules; `compile_with_timing` times those, too.
    """
    chosen = settings()
    _prepare(chosen)
    profiler = CompilationProfiler()
    instance, values = _traced(kernel, args, kwargs or {})
    profiler.lap("trace")
    if chosen is None:
        return profiler.stages_ms
    place = place_of(instance.name, values)
    if place.kind == "cuda":
        return _gpu_stages(kernel, instance, values, settings_on(place, chosen), place.index, profiler)
    made = compile_kernel(
        instance.module,
        instance.name,
        level=chosen.level,
        optimization=chosen.optimization,
        checks=chosen.checks,
        facts=kernel.assumed.facts(instance, values),
    )
    profiler.take(made.seconds)
    executable = Executable(_plan(instance, made), made.image)
    profiler.lap("load")
    executable.bind(_arrays(values), deterministic=chosen.deterministic)
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

    made = compile_for_gpu(
        instance.module,
        instance.name,
        arch=chosen.level,
        warps=instance.schedule.warps,
        stages=instance.schedule.stages,
        optimization=chosen.optimization,
        checks=chosen.checks,
        facts=kernel.assumed.facts(instance, values),
        in_turn=chosen.deterministic,
    )
    profiler.take(made.seconds)
    Module(index, made.ptx.encode(), f"@{instance.name}", keep=False)
    profiler.lap("load")
    return profiler.stages_ms


def _plan(instance: Instance, made: MachineProgram) -> Plan:
    layout = made.layout
    return plan_of(Source.of(instance), Words(layout.first, layout.grid, layout.words), made.messages)


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


def load_kernel(source: Kernel | str | Path, name: str | None = None) -> Kernel:
    """The kernel in a Python text or file: the one of that name, or the only one. A kernel is one already.

    The text may use `tessera`, `ts`, `kernel` and `tile` without importing them. Errors show its lines.
    """
    if isinstance(source, Kernel):
        return source
    if isinstance(source, Path) or (source.endswith(".py") and "\n" not in source):
        try:
            file, written = str(source), Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise BenchError(f"cannot read {source}: {error.strerror}", hint="give a Python file or its text") from None
    else:
        file, written = f"<kernel {hashlib.sha256(source.encode()).hexdigest()[:12]}>", source
        linecache.cache[file] = (len(written), None, written.splitlines(keepends=True), file)
    names: dict[str, Any] = {
        "__name__": "__tessera_kernel__",
        "tessera": tessera,
        "ts": tessera,
        "kernel": tessera.kernel,
        "tile": tessera.tile,
    }
    exec(compile(written, file, "exec"), names)
    found = {key: value for key, value in names.items() if isinstance(value, Kernel)}
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        asked = "one kernel" if name is None else f"a kernel {name}"
        listed = ", ".join(found) or "none"
        raise BenchError(f"expected {asked} in {file}, got {listed}", hint="decorate it with @kernel, and name it")
    return found[name]


@dataclass(frozen=True)
class Origin:
    """A kernel and the arguments that it is lowered for."""

    kernel: Kernel
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    instance: Instance
    values: tuple[Any, ...]


@dataclass(frozen=True)
class IR:
    """A kernel at one level, and the milliseconds of all stages up to there, in their order."""

    origin: Origin
    module: ModuleOp
    stages_ms: Mapping[str, float]

    @property
    def applied_optimizations(self) -> tuple[str, ...]:
        """The stages that made it what it is."""
        return tuple(self.stages_ms)

    @property
    def text(self) -> str:
        return text.write(self.module)


class GraphIR(IR):
    """A graph function that calls the kernel."""


class ScheduleIR(IR):
    """The same with launches in place of calls."""


class TileIR(IR):
    """The tile program of the kernel, as the target's compiler gets it."""


@dataclass(frozen=True)
class TargetIR(IR):
    """The kernel for a processor: at the cpu level, and as LLVM's text. `instance` has its arguments in their order."""

    instance: Instance
    emitted: Emitted
    guards: Facts
    chosen: Settings

    @property
    def text(self) -> str:
        """LLVM's text."""
        return self.emitted.text

    @property
    def assembly(self) -> str:
        """The instructions of the machine code, as LLVM writes them."""
        processor, extras = features.target(self.chosen.level)
        effort = EFFORTS[self.chosen.optimization].codegen
        return machine.assembly(self.emitted.text, cpu=processor, features=extras, opt=effort)


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code of one kernel, for the arguments that it was lowered for and all others that its guards admit."""

    name: str
    program: Program
    code: bytes
    stages_ms: Mapping[str, float]
    chosen: Settings
    signature: inspect.Signature
    _runners: dict[tuple[Any, ...], Runner] = field(default_factory=dict[tuple[Any, ...], Runner])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = self.program.values_for(_given(self.signature, args, kwargs))
        if values is None:
            guards = ", ".join(map(str, self.program.guards)) or "none"
            raise BenchError(
                f"{self.name} was compiled for arguments of other kinds or sizes", hint=f"its guards: {guards}"
            )
        arrays = _arrays(values)
        key = tuple([_geometry(array) for array in arrays])
        run = self._runners.get(key)
        if run is None:
            assert self.program.executable is not None
            bound = self.program.executable.bind(arrays, deterministic=self.chosen.deterministic)
            run = self._runners.setdefault(key, bound)
        return run(*arrays)


def to_graph_ir(
    source: Kernel | str | Path,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
) -> GraphIR:
    """Traces a kernel for these arguments and puts it into a graph that calls it, through the passes over graphs."""
    profiler = CompilationProfiler()
    kernel, static = load_kernel(source, name), dict(kwargs or {})
    if not isinstance(source, Kernel):
        profiler.lap("load-source")
    instance, values = _traced(kernel, args, static)
    profiler.lap("trace")
    module = calling_module(instance, instance.schedule)
    profiler.lap("graph-call")
    origin = Origin(kernel, tuple(args), static, instance, tuple(values))
    return GraphIR(origin, _through("graph", module, profiler), profiler.stages_ms)


def to_schedule_ir(graph_ir: GraphIR, options: Mapping[str, Any] | None = None) -> ScheduleIR:
    """Turns calls into launches. `options` are fields of a schedule: tiles follow it from the start, so with some the
    kernel is traced anew."""
    profiler = CompilationProfiler(graph_ir.stages_ms)
    if options:
        origin = graph_ir.origin
        graph_ir = to_graph_ir(origin.kernel.with_schedule(_schedule(options)), origin.args, origin.kwargs)
        profiler.lap("retrace")
    return ScheduleIR(graph_ir.origin, _through("schedule", graph_ir.module, profiler), profiler.stages_ms)


def to_tile_ir(schedule_ir: ScheduleIR, options: Mapping[str, Any] | None = None) -> TileIR:
    """The tile program. There is nothing to choose at this level."""
    if options:
        raise BenchError(f"the tile level has no options, got {', '.join(options)}", hint="schedules are chosen above")
    profiler = CompilationProfiler(schedule_ir.stages_ms)
    return TileIR(schedule_ir.origin, _through("tile", schedule_ir.module, profiler), profiler.stages_ms)


def to_target_ir(tile_ir: TileIR, options: Mapping[str, Any] | None = None) -> TargetIR:
    """The kernel for this processor. `options`: `level`, `optimization`, `checks`, by default as calls have them."""
    chosen = _settings(options or {})
    instance = _instance_in(tile_ir)
    name, facts = instance.name, tile_ir.origin.kernel.assumed.facts(instance, _values_in(instance, tile_ir.origin))
    profiler = CompilationProfiler(tile_ir.stages_ms)
    # From here on as `compile_kernel` does it, which does not show what it emits. A test compares what comes out.
    made_for, effort = machine_for(chosen.level, chosen.optimization), EFFORTS[chosen.optimization]
    lowered, context = instance.module.clone(), CompileContext.with_facts(facts)
    if facts:
        specialize(lowered, context, name)
        profiler.lap("apply-facts-tile")
    if chosen.checks:
        Instrument(bounds="bounds" in chosen.checks, nan="nan" in chosen.checks, everywhere=False).apply(
            context, lowered
        )
        profiler.lap("instrument-checks")
    TileToCpu(made_for.level, made_for.lanes, contract=effort.contract, small=effort.small).apply(context, lowered)
    profiler.lap("tile-to-cpu")
    text.verify(lowered)
    profiler.lap("verify")
    emitted = emit(lowered, name, made_for)
    profiler.lap("emit")
    return TargetIR(tile_ir.origin, lowered, profiler.stages_ms, instance, emitted, context.recorder.guards, chosen)


def to_executable(target_ir: TargetIR) -> CompiledKernel:
    """Machine code, loaded."""
    chosen, emitted, instance = target_ir.chosen, target_ir.emitted, target_ir.instance
    profiler = CompilationProfiler(target_ir.stages_ms)
    processor, extras = features.target(chosen.level)
    codegen = EFFORTS[chosen.optimization].codegen
    code = machine.compile_text(emitted.text, cpu=processor, features=extras, opt=codegen)
    profiler.lap("llvm")
    flat = image.flatten(code)
    profiler.lap("image")
    made = MachineProgram(instance.name, flat, emitted.layout, emitted.messages, target_ir.guards)
    program = Program.of(instance, Executable(_plan(instance, made), flat), target_ir.guards)
    profiler.lap("load")
    signature = target_ir.origin.kernel.signature
    return CompiledKernel(instance.name, program, flat, profiler.stages_ms, chosen, signature)


class LocalRuntime:
    """What `TesseraIntegration` asks of a runtime: this process."""

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
        chosen = kernel if block_dim is None else kernel.with_schedule(_schedule({"block": block_dim}))
        return (chosen if grid_dim is None else chosen[grid_dim])(*args)


@dataclass
class Profile:
    """What a profiling found, once it is over."""

    results: dict[str, Any] = field(default_factory=dict[str, Any])

    def get_results(self) -> dict[str, Any]:
        return dict(self.results)


class TesseraIntegration:
    """Compiles with the time of each level, and launches with a profile. `runtime` does what `LocalRuntime` does."""

    def __init__(self, runtime: Any = None) -> None:
        from tessera.bench.compiler.inspector import IRInspector

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
        _prepare(_settings(config.get("target_opts", {})))
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
    """What a process does once, before its first compile: imports, the runtime, and LLVM for this processor."""
    import_module("tessera.tile.calls.trace")
    if chosen is None:
        return
    start_pool()
    processor, extras = features.target(chosen.level)
    codegen = EFFORTS[chosen.optimization].codegen
    machine.compile_text("define void @nothing() { ret void }", cpu=processor, features=extras, opt=codegen)


def _settings(options: Mapping[str, Any]) -> Settings:
    """How calls are compiled here and now, with some of it given."""
    known = ("level", "optimization", "checks")
    if unknown := sorted(options.keys() - set(known)):
        raise BenchError(f"the target has no options {', '.join(unknown)}", hint=f"it has {', '.join(known)}")
    found = settings()
    if found is None:
        raise BenchError(
            "kernels run in the interpreter here, which compiles nothing",
            hint="turn off the knobs interpret and backend, and checks around the call",
        )
    given = {**options, **({"checks": frozenset(options["checks"])} if "checks" in options else {})}
    return replace(found, **given) if given else found


def _schedule(options: Mapping[str, Any]) -> Schedule:
    try:
        return Schedule(**options)
    except TypeError as error:
        raise BenchError(f"not options of a schedule: {error}", hint="block, warps, stages, vector, swizzle") from None


def _given(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, without the static ones, arrays as tensors."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return {
        name: asarray(value) if is_array(value) else value
        for name, value in bound.arguments.items()
        if signature.parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY
    }


def _arrays(values: Sequence[Any]) -> list[Any]:
    return [value.numpy() if isinstance(value, Tensor) else value for value in values]


def _geometry(value: Any) -> Any:
    """What of an argument a launch is made for."""
    return value.__class__ if value.__class__ in NUMBERS else (value.shape, value.strides)


def _traced(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Instance, list[Any]]:
    """A fresh trace, without what is assumed, and the values of its arguments."""
    fresh = kernel.changed(_instances={}, _programs=Programs(), assumed=Assumptions())
    instance = fresh.lower(*args, **kwargs)
    return instance, collect(instance.paths, _given(kernel.signature, args, kwargs))


def _through(level: str, module: ModuleOp, profiler: CompilationProfiler) -> ModuleOp:
    """The pipeline's passes that end at a level."""
    chosen: dict[str, Stage] = {name: stage for name, stage in default_stages().items() if stage.level == level}
    compiled = compile_module(module, stages=chosen)
    profiler.take(compiled.seconds)
    return compiled.module


def _values_in(instance: Instance, origin: Origin) -> list[Any]:
    """The values of an instance's arguments, in its own order."""
    by_path = dict(zip(origin.instance.paths, origin.values, strict=True))
    return [by_path[path] for path in instance.paths]


_ARGUMENT = re.compile(r"arg(\d+)")


def _instance_in(tile_ir: TileIR) -> Instance:
    """The instance whose program is the one that a lowered graph launches, in a module of its own.

    In a graph arrays that a kernel fills are results, so they come behind its other arguments.
    """
    instance = tile_ir.origin.instance
    launches = [op for op in tile_ir.module.walk() if isinstance(op, schedule.LaunchOp | graph.CallKernelOp)]
    name = launches[0].callee.string_value() if launches else instance.name
    filled = symbol_in(instance.module, instance.name, tile.FuncOp).filled
    order = [*(place for place in range(len(instance.paths)) if place not in filled), *filled]
    places = {old: new for new, old in enumerate(order)}

    def renamed(atom: Fact) -> Fact:
        return replace(
            atom, subject=_ARGUMENT.sub(lambda found: f"arg{places.get(int(found[1]), int(found[1]))}", atom.subject)
        )

    return replace(
        instance,
        module=ModuleOp([symbol_in(tile_ir.module, name, tile.FuncOp).clone()]),
        name=name,
        paths=tuple(instance.paths[place] for place in order),
        kinds=tuple(instance.kinds[place] for place in order),
        guards=Facts(map(renamed, instance.guards)),
    )
