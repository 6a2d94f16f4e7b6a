"""Tile function → machine code for CPUs: the passes below the tile level, the emitter, LLVM, and a flat image.

Optimisation levels: 0 writes short code, on one vector or a few at a time, and compiles fastest; 1 fills the registers;
2 also lets products and sums contract into one rounding and runs LLVM's full code generation; 3 is 2 today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera import knobs
from tessera.compiler.options import CompileOptions
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.targets.common.preparing import first_stages, isolated
from tessera.targets.common.stage_times import StageTimes
from tessera.targets.cpu import features
from tessera.targets.cpu.emit.emitter import ArgumentBlockLayout, Emitted, TargetMachine
from tessera.targets.cpu.emit.rules import emit
from tessera.targets.cpu.levels import LEVELS, read
from tessera.targets.cpu.lower.legalize import legalize_stages
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.llvm import image, machine
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Facts
from tessera.transforms.core.stages import NO_FILES, Files, Stage, StageRunner


@dataclass(frozen=True)
class Effort:
    """The settings of an optimisation level."""

    contract: bool
    codegen: int
    small: bool = False
    """Whether code is short, and works on little at a time."""


EFFORTS: Mapping[int, Effort] = {
    0: Effort(contract=False, codegen=0, small=True),
    1: Effort(contract=False, codegen=1),
    2: Effort(contract=True, codegen=3),
    3: Effort(contract=True, codegen=3),
}


SHORT_LANES = 4
"""Lanes of vectors in fast compiles: LLVM takes half as long for these as for 16."""


@dataclass(frozen=True)
class CompiledImage:
    """Machine code of one kernel with its argument layout and messages; valid only where its guards hold."""

    name: str
    image: bytes
    layout: ArgumentBlockLayout
    messages: tuple[str, ...]
    guards: Facts
    seconds: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)


def unheeded_hints(op: Operation) -> Iterator[tuple[str, str]]:
    """The hints of an op, none of which changes code for CPUs."""
    reason = "it is a hint for GPUs: a processor's caches and the width of its vectors decide"
    return ((name, reason) for name, _ in hints_of(op).said())


def machine_for(options: CompileOptions) -> TargetMachine:
    effort, lanes = EFFORTS[options.optimization], features.lanes(options.level, 32)
    return TargetMachine(
        options.level, min(lanes, SHORT_LANES) if effort.small else lanes, effort.contract, effort.small
    )


def options_for(level: str | None = None, **others: Any) -> CompileOptions:
    """Options for a level, by default that of this machine."""
    return CompileOptions("cpu", features.level() if level is None else level, **others)


class LoweredToCpu(NamedTuple):
    """The cpu level of a tile function, the facts it rests on, and what each stage cost."""

    module: ModuleOp
    guards: Facts
    seconds: dict[str, float]
    files: Files
    stages: int
    """How many stages it went through."""


class EmittedForCpu(NamedTuple):
    """LLVM text of a function, the cpu level that it was written from, the facts it rests on, what each stage cost."""

    name: str
    module: ModuleOp
    emitted: Emitted
    guards: Facts
    seconds: dict[str, float]
    files: Files
    stages: int


def compile_kernel(
    module: ModuleOp, name: str, options: CompileOptions | None = None, facts: Facts | None = None
) -> CompiledImage:
    """Compiles one tile function of a module, which is left as it is.

    `facts` are about the function's arguments; those that a pass asked for are the guards of the compiled kernel.
    """
    options = options_for() if options is None else options
    return compile_emitted(emit_kernel(module, name, options, facts), options)


def emit_kernel(module: ModuleOp, name: str, options: CompileOptions, facts: Facts | None = None) -> EmittedForCpu:
    """LLVM text of a tile function."""
    lowered = lower_kernel(module, name, options, facts)
    return _emitted(lowered, name, options)


def _emitted(lowered: LoweredToCpu, name: str, options: CompileOptions) -> EmittedForCpu:
    laps = StageTimes()
    emitted = emitted_of(lowered.module, name, options, lowered.files, lowered.stages)
    laps.lap("emit")
    seconds = {**lowered.seconds, **laps}
    return EmittedForCpu(name, lowered.module, emitted, lowered.guards, seconds, lowered.files, lowered.stages)


def lower_kernel(module: ModuleOp, name: str, options: CompileOptions, facts: Facts | None = None) -> LoweredToCpu:
    """The cpu level of a tile function."""
    effort, made_for, given = EFFORTS[options.optimization], machine_for(options), facts or Facts()
    context, files = CompileContext.with_facts(given), Files.of(module, read)
    runner = StageRunner(f"@{name}", context, files, partial(text.write, module), LEVELS)
    stages = first_stages(symbol_in(module, name, tile.FuncOp), given, options.checks)
    lowering = TileToCpu(made_for.level, made_for.lanes, contract=effort.contract, small=effort.small)
    legal = legalize_stages(made_for.level, contract=effort.contract)
    stages |= {name: Stage(one, "tile") for name, one in legal.items()}
    stages[lowering.name] = Stage(lowering, "cpu")
    lowered, laps = runner.run(runner.begin(isolated(module, name), "kernel"), stages), StageTimes()
    # Fast compiles are not verified: a call waits for them. The full compile that follows is.
    if not effort.small or knobs.verify.value:
        runner.verify(lowered, "cpu")
    laps.lap("verify")
    return LoweredToCpu(lowered, context.recorder.guards, {**runner.seconds, **laps}, files, runner.count)


def compile_lowered(module: ModuleOp, name: str, options: CompileOptions | None = None) -> CompiledImage:
    """Compiles a function that is at the cpu level already, written by passes or by hand."""
    options = options_for() if options is None else options
    return compile_emitted(_emitted(LoweredToCpu(module, Facts(), {}, NO_FILES, 0), name, options), options)


def compile_emitted(made: EmittedForCpu, options: CompileOptions) -> CompiledImage:
    """Machine code of LLVM text."""
    seconds, emitted = StageTimes(), made.emitted
    processor, extras = features.target(options.level)
    effort = EFFORTS[options.optimization].codegen
    if made.files is not NO_FILES:
        made.files.show(made.stages + 1, "asm", lambda _: assembly_of(emitted.text, options), ".s")
    code = machine.compile_text(emitted.text, cpu=processor, features=extras, opt=effort)
    seconds.lap("llvm")
    flat = image.flatten(code)
    seconds.lap("image")
    return CompiledImage(made.name, flat, emitted.layout, emitted.messages, made.guards, {**made.seconds, **seconds})


def emitted_of(
    module: ModuleOp, name: str, options: CompileOptions, files: Files = NO_FILES, count: int = 0
) -> Emitted:
    """LLVM text of a function at the cpu level."""
    emitted = emit(module, name, machine_for(options))
    return (
        emitted if files is NO_FILES else replace(emitted, text=files.text_instead(count, "emit", emitted.text, ".ll"))
    )


def assembly_of(written: str, options: CompileOptions) -> str:
    """LLVM text as assembly."""
    processor, extras = features.target(options.level)
    return machine.assembly(written, cpu=processor, features=extras, opt=EFFORTS[options.optimization].codegen)
