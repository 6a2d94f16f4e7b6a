"""Compiles a graph module to a program: the passes down to tile functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from tessera.errors import DeviceError
from tessera.internal_errors import boundary
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.core.machine import Machine
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.programs import host
from tessera.programs.code import Codes
from tessera.programs.levels import Levels, LevelText
from tessera.programs.lowered import described, host_of
from tessera.programs.machine_code import machine_texts
from tessera.programs.program import Program
from tessera.programs.size_classes import SizeClasses
from tessera.runtime.device.device import device
from tessera.targets.choose_blocks import stages_for
from tessera.tile.calls.compiling import log_compile
from tessera.tile.calls.settings import Settings, settings, settings_on
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Facts
from tessera.transforms.facts.limit_sizes import LimitSizes
from tessera.transforms.pipeline import Stage, compile_module


def settings_for(target: str | Settings | None) -> Settings | None:
    """The settings for a target, `cpu`, `cuda` or `cuda:1`, or for themselves; None where the interpreter runs all."""
    if isinstance(target, Settings):
        return target
    chosen = settings()
    if chosen is None:
        return None
    found = device(target or "cpu")
    if not found.has_programs:
        raise DeviceError(f"programs run on the CPU and on GPUs, not on {found}", hint="name cpu or cuda")
    return settings_on(found, chosen)


def compile_graph(
    module: ModuleOp,
    target: str | Settings | None = "cpu",
    *,
    name: str = "main",
    stages: Mapping[str, Stage] | None = None,
    facts: Facts | None = None,
    world: Callable[[], Machine] | None = None,
) -> Program:
    """Compiles a graph function with all that it calls. The module is left as it is.

    Machine code is made when the program is first bound. Where the interpreter is to run programs, nothing is lowered.
    With `facts` about sizes of arguments, it is right only where they hold: that is for the caller to ask. `world` says
    what effects touch; without it, the program has a world of its own.
    """
    chosen = settings_for(target)
    program = _interpreted(module, name) if chosen is None else _lowered(module, chosen, name, stages, facts)
    if chosen is not None and stages is None and facts is None:
        program.size_classes = SizeClasses(program, chosen, compile_for_sizes)
    if isinstance(target, str):
        program.device = device(target)
    if world is not None:
        program.world = world
    return program


def compile_for_sizes(general: Program, hints: tuple[str, ...], most: tuple[str, ...] = ()) -> Program:
    """The function of a program compiled again, with blocks for about these sizes of its symbols.

    It serves no larger ones than `most` says.
    """
    chosen, name = general.settings, general.name
    assert chosen is not None
    stages = stages_for(chosen.target, chosen.level, hints, checks=chosen.checks)
    if most:
        stages[LimitSizes.name] = Stage(LimitSizes(most), "tile")
    program = _lowered(general.codes.graph_module, chosen, name, stages, None)
    program.world, program.device = general.world, general.device
    return program


def _lowered(
    module: ModuleOp, chosen: Settings, name: str, stages: Mapping[str, Stage] | None, facts: Facts | None
) -> Program:
    with boundary(f"@{name}", "lowering", partial(text.write, module)):
        stages = stages_for(chosen.target, chosen.level, checks=chosen.checks) if stages is None else stages
        lowered = compile_module(module, stages=stages, facts=facts)
        log_compile(f"@{name}", str(facts or "all that fits its signature"), lowered.seconds)
        program = program_of(module, lowered.module, lowered.levels, chosen, name, lowered.report)
    program.report.tell(name)
    return program


def program_of(
    graph_module: ModuleOp,
    tile_module: ModuleOp,
    texts: Mapping[str, str],
    chosen: Settings,
    name: str = "main",
    report: CompileReport | None = None,
) -> Program:
    """The program of a module that is at the tile level; `texts` are those of the levels that it went through.

    The `report` says what was refused on the way.
    """
    program = host_of(tile_module, name, located=bool(chosen.checks))
    codes = Codes(
        name,
        program.kernels,
        text.write(graph_module, locations=True),
        text.write(tile_module, locations=True),
        graph_module,
        tile_module,
    )
    levels = Levels(
        *(LevelText(texts.get(level, "")) for level in ("graph", "schedule", "tile")),
        below=lambda: machine_texts(codes.tile_module, codes.kernels, chosen),
    )
    count = len(program.launches)
    found = CompileReport() if report is None else report
    made = CompileReport(f"as {count} kernel{'s' * (count != 1)}", found.refusals, found.choices)
    return Program(program, chosen, levels, codes, report=made)


def _interpreted(module: ModuleOp, name: str) -> Program:
    written = text.write(module)
    function = symbol_in(module, name, graph.FuncOp)
    values = [described(type_) for type_ in function.function_type.inputs]
    program = host.Host(name, tuple(values), tuple(range(len(values))), (), ())
    levels = Levels(LevelText(written), LevelText(""), LevelText(""), below=lambda: ("", ""))
    return Program(program, None, levels, Codes(name, (), text.write(module, locations=True), "", module))
