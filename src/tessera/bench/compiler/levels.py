"""Kernels taken through the levels one by one, each stage timed: graph, schedule, tile, target, machine code.

Nothing here reads or fills the compile cache: what is timed is done.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

import tessera
from tessera.bench.results.definitions import BenchError
from tessera.compiler.artifact import Words, plan_of
from tessera.compiler.launch_plan import Plan
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.runtime.program.executable import Executable, Runner
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.targets.cpu import features
from tessera.targets.cpu.compile import EFFORTS, CompiledImage, assembly_of, emitted_of, lower_kernel
from tessera.targets.cpu.emit.emitter import Emitted
from tessera.targets.llvm import image, machine
from tessera.tile.calls.arguments import NUMBERS, collect, is_array
from tessera.tile.calls.assumptions import Assumptions
from tessera.tile.calls.compiling import source_of
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.levels import calling_module
from tessera.tile.calls.program_cache import Programs
from tessera.tile.calls.settings import Settings, settings
from tessera.tile.language.schedule import Schedule
from tessera.transforms.core.facts import Fact, Facts
from tessera.transforms.pipeline import Stage, compile_module, default_stages


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
    """The same with launches instead of calls."""


class TileIR(IR):
    """The Tile IR of the kernel, as the target's compiler gets it."""


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
        return assembly_of(self.emitted.text, self.chosen.options())


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code of one kernel, for the arguments that it was lowered for and all others that its guards admit."""

    name: str
    program: GuardedKernel
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
        arrays = arrays_of(values)
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
    instance, values = traced(kernel, args, static)
    profiler.lap("trace")
    module = calling_module(instance, instance.schedule)
    profiler.lap("graph-call")
    origin = Origin(kernel, tuple(args), static, instance, tuple(values))
    return GraphIR(origin, _through("graph", module, profiler), profiler.stages_ms)


def to_schedule_ir(graph_ir: GraphIR, options: Mapping[str, Any] | None = None) -> ScheduleIR:
    """Converts calls to launches. `options` are fields of a schedule: tiles follow it from the start, so with some the
    kernel is traced anew."""
    profiler = CompilationProfiler(graph_ir.stages_ms)
    if options:
        origin = graph_ir.origin
        graph_ir = to_graph_ir(origin.kernel.with_schedule(schedule_of(options)), origin.args, origin.kwargs)
        profiler.lap("retrace")
    return ScheduleIR(graph_ir.origin, _through("schedule", graph_ir.module, profiler), profiler.stages_ms)


def to_tile_ir(schedule_ir: ScheduleIR, options: Mapping[str, Any] | None = None) -> TileIR:
    """The Tile IR. There is nothing to choose at this level."""
    if options:
        raise BenchError(f"the tile level has no options, got {', '.join(options)}", hint="schedules are chosen above")
    profiler = CompilationProfiler(schedule_ir.stages_ms)
    return TileIR(schedule_ir.origin, _through("tile", schedule_ir.module, profiler), profiler.stages_ms)


def to_target_ir(tile_ir: TileIR, options: Mapping[str, Any] | None = None) -> TargetIR:
    """The kernel for this processor. `options`: `level`, `optimization`, `checks`, by default as calls have them."""
    chosen = settings_with(options or {})
    instance = _instance_in(tile_ir)
    name, facts = instance.name, tile_ir.origin.kernel.assumed.facts(instance, _values_in(instance, tile_ir.origin))
    profiler, wanted = CompilationProfiler(tile_ir.stages_ms), chosen.options()
    lowered = lower_kernel(instance.module, name, wanted, facts)
    profiler.take(lowered.seconds)
    emitted = emitted_of(lowered.module, name, wanted)
    profiler.lap("emit")
    return TargetIR(tile_ir.origin, lowered.module, profiler.stages_ms, instance, emitted, lowered.guards, chosen)


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
    made = CompiledImage(instance.name, flat, emitted.layout, emitted.messages, target_ir.guards)
    program = GuardedKernel.of(instance, Executable(launch_plan(instance, made), flat), target_ir.guards)
    profiler.lap("load")
    signature = target_ir.origin.kernel.signature
    return CompiledKernel(instance.name, program, flat, profiler.stages_ms, chosen, signature)


def launch_plan(instance: Instance, made: CompiledImage) -> Plan:
    layout = made.layout
    return plan_of(source_of(instance), Words(layout.first, layout.grid, layout.words), made.messages)


def settings_with(options: Mapping[str, Any]) -> Settings:
    """How calls are compiled here and now, with some of it given."""
    known = ("level", "optimization", "checks")
    if unknown := sorted(options.keys() - set(known)):
        raise BenchError(f"the target has no options {', '.join(unknown)}", hint=f"it has {', '.join(known)}")
    found = settings()
    if found is None:
        raise BenchError(
            "kernels run in the interpreter here, which compiles nothing",
            hint="unset the knobs interpret and backend, and checks around the call",
        )
    given = {**options, **({"checks": frozenset(options["checks"])} if "checks" in options else {})}
    return replace(found, **given) if given else found


def schedule_of(options: Mapping[str, Any]) -> Schedule:
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


def arrays_of(values: Sequence[Any]) -> list[Any]:
    return [value.numpy() if isinstance(value, Tensor) else value for value in values]


def _geometry(value: Any) -> Any:
    """The properties of an argument that a launch is made for."""
    return value.__class__ if value.__class__ in NUMBERS else (value.shape, value.strides)


def traced(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Instance, list[Any]]:
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
    order = [*(index for index in range(len(instance.paths)) if index not in filled), *filled]
    numbers = {old: new for new, old in enumerate(order)}

    def renamed(atom: Fact) -> Fact:
        return replace(
            atom, subject=_ARGUMENT.sub(lambda found: f"arg{numbers.get(int(found[1]), int(found[1]))}", atom.subject)
        )

    return replace(
        instance,
        module=ModuleOp([symbol_in(tile_ir.module, name, tile.FuncOp).clone()]),
        name=name,
        paths=tuple(instance.paths[index] for index in order),
        kinds=tuple(instance.kinds[index] for index in order),
        guards=Facts(map(renamed, instance.guards)),
    )
