"""Kernels and jitted functions taken through the levels one by one, each stage timed: graph, schedule, tile, target.

Nothing here reads or fills the compile cache: what is timed is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tessera.compile.chosen_target import changed, settings_for
from tessera.compile.example_arguments import example_arguments
from tessera.compile.functions import FunctionSubject
from tessera.compile.kernels import KernelSubject
from tessera.compile.profiler import CompilationProfiler
from tessera.compile.sources import Compilable, load, name_of
from tessera.compile.subjects import Part, Subject
from tessera.compiler.artifact import LoweredKernel
from tessera.errors import CompileError
from tessera.ir import text
from tessera.tile.calls.compiling import lowered
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.pipeline import compile_module


@dataclass(frozen=True)
class LevelIR:
    """A kernel or jitted function at one level, and the milliseconds of all stages up to there, in their order."""

    subject: Subject
    chosen: Settings
    """The target, its instruction set, and the other settings that it is compiled with."""
    module: ModuleOp
    stages_ms: Mapping[str, float]
    texts: Mapping[str, str]
    """The text of each level so far."""
    refusals: tuple[Refusal, ...]
    """The fusions that stages so far have refused, and why."""

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def applied_optimizations(self) -> tuple[str, ...]:
        """The stages that made it what it is."""
        return tuple(self.stages_ms)

    @property
    def text(self) -> str:
        return text.write(self.module)


class GraphIR(LevelIR):
    """A graph function: a traced one, or one that calls a kernel."""


class ScheduleIR(LevelIR):
    """The same with launches, and regions of ops that become one kernel each."""


class TileIR(LevelIR):
    """Tile functions and what launches them, as the target's compiler gets them."""


@dataclass(frozen=True)
class LoweredPart:
    """A tile function in its target's own words: IR of the target, the emitter's text, assembly."""

    part: Part
    made: LoweredKernel

    @property
    def name(self) -> str:
        return self.part.source.name

    @property
    def launches(self) -> int:
        """How often a call of the whole launches it; what stands in a loop counts once."""
        return self.part.launches


@dataclass(frozen=True)
class TargetIR(LevelIR):
    """All tile functions for a target, one step before machine code; `module` is that of the tile level."""

    parts: tuple[LoweredPart, ...]

    @property
    def text(self) -> str:
        """What the target's emitter writes of all kernels: LLVM's text, where the target has LLVM."""
        return "\n".join(one.made.text for one in self.parts)

    @property
    def assembly(self) -> str:
        """The instructions, as LLVM writes them: of the processor, or PTX."""
        return "\n".join(one.made.assembly() for one in self.parts)

    @property
    def report(self) -> Mapping[str, CompileReport]:
        """How each kernel was compiled, and which ways were refused, for which reasons."""
        return {one.name: one.made.report for one in self.parts}


def to_graph_ir(
    source: Compilable | str | Path,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    sizes: Mapping[str, int] | None = None,
) -> GraphIR:
    """Traces a kernel or a jitted function for these arguments, and takes its graph through the passes over graphs.

    Without arguments, zeros of the annotated types are taken; `sizes` are those of symbols, by default 64.

    `options` say what for: `target`, `level` (an instruction set, such as sm_90a), `optimization`, `checks`; by default
    as calls with these arguments have them. The blocks of kernels are chosen for that target.
    """
    profiler = CompilationProfiler()
    found, static = load(source, name), dict(kwargs or {})
    if found is not source:
        profiler.lap("load-source")
    if not args and not static:
        args = example_arguments(found, sizes or {}, "give the arguments, or annotate it with a shape")
    chosen = settings_for(name_of(found), [*args, *static.values()], options or {})
    subject = _traced(found, args, static, chosen)
    profiler.lap("trace")
    return _graph_of(subject, chosen, profiler)


def to_schedule_ir(graph_ir: GraphIR, options: Mapping[str, Any] | None = None) -> ScheduleIR:
    """Converts calls to launches, and ops to regions. `options` are fields of a kernel's schedule: tiles follow it from
    the start, so with some the kernel is traced anew."""
    profiler = CompilationProfiler(graph_ir.stages_ms)
    if options:
        subject = graph_ir.subject.retraced(options, graph_ir.chosen)
        profiler.lap("retrace")
        graph_ir = _graph_of(subject, graph_ir.chosen, profiler)
    return ScheduleIR(graph_ir.subject, graph_ir.chosen, *_through("schedule", graph_ir, profiler))


def to_tile_ir(schedule_ir: ScheduleIR, options: Mapping[str, Any] | None = None) -> TileIR:
    """The Tile IR. There is nothing to choose at this level."""
    if options:
        raise CompileError(
            f"the tile level has no options, got {', '.join(options)}", hint="schedules are chosen above"
        )
    profiler = CompilationProfiler(schedule_ir.stages_ms)
    return TileIR(schedule_ir.subject, schedule_ir.chosen, *_through("tile", schedule_ir, profiler))


def to_target_ir(tile_ir: TileIR, options: Mapping[str, Any] | None = None) -> TargetIR:
    """All tile functions in the target's own words, down to assembly; no device is needed for that.

    `options` are those of `to_graph_ir`. For another target than there, tiles keep the blocks that they have.
    """
    chosen = changed(tile_ir.chosen, options or {})
    profiler = CompilationProfiler(tile_ir.stages_ms)
    parts: list[LoweredPart] = []
    for part in tile_ir.subject.parts(tile_ir.module, chosen):
        made = lowered(part.source, chosen, part.facts, part.lines)
        profiler.take(made.seconds)
        parts.append(LoweredPart(part, made))
    above = (tile_ir.module, profiler.stages_ms, tile_ir.texts, tile_ir.refusals)
    return TargetIR(tile_ir.subject, chosen, *above, tuple(parts))


def _traced(found: Compilable, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Settings) -> Subject:
    kind = KernelSubject if isinstance(found, Kernel) else FunctionSubject
    return kind.of(found, args, kwargs, chosen)  # pyright: ignore[reportArgumentType]  (the kind fits what was found)


def _graph_of(subject: Subject, chosen: Settings, profiler: CompilationProfiler) -> GraphIR:
    module = subject.graph()
    profiler.lap("graph-call")
    return GraphIR(subject, chosen, *_through("graph", GraphIR(subject, chosen, module, {}, {}, ()), profiler))


def _through(
    level: str, above: LevelIR, profiler: CompilationProfiler
) -> tuple[ModuleOp, Mapping[str, float], Mapping[str, str], tuple[Refusal, ...]]:
    """The module after the stages that end at a level, and times, texts and refusals so far."""
    stages = {name: stage for name, stage in above.subject.stages(above.chosen).items() if stage.level == level}
    made = compile_module(above.module, stages=stages)
    profiler.take(made.seconds)
    refusals = (*above.refusals, *made.report.refusals)
    return made.module, profiler.stages_ms, {**above.texts, **made.levels}, refusals
