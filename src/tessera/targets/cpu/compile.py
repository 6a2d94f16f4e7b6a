"""Tile function → machine code for CPUs: the passes below the tile level, the emitter, LLVM, and a flat image.

Optimisation levels: 0 writes short code, on one vector or a few at a time, and compiles fastest; 1 fills the registers;
2 also lets products and sums contract into one rounding and runs LLVM's full code generation; 3 is 2 today.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from tessera import knobs
from tessera.internal_errors import verified
from tessera.ir import text
from tessera.targets.common.specializing import specialized
from tessera.targets.common.stage_times import StageTimes
from tessera.targets.cpu import features
from tessera.targets.cpu.emit.emitter import ArgumentBlockLayout, TargetMachine
from tessera.targets.cpu.emit.rules import emit
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.llvm import image, machine
from tessera.transforms.core.facts import Facts


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


def machine_for(level: str, optimization: int = 3) -> TargetMachine:
    effort, lanes = EFFORTS[optimization], features.lanes(level, 32)
    return TargetMachine(level, min(lanes, SHORT_LANES) if effort.small else lanes, effort.contract, effort.small)


def compile_kernel(
    module: ModuleOp,
    name: str,
    *,
    level: str | None = None,
    optimization: int = 3,
    checks: Collection[str] = (),
    facts: Facts | None = None,
) -> CompiledImage:
    """Compiles one tile function of a module, which is left as it is.

    `checks` are written into the code. `facts` are about the function's arguments; those that a pass asked for are the
    guards of the compiled kernel.
    """
    level = features.level() if level is None else level
    lowered, guards, seconds = lower_kernel(
        module, name, level=level, optimization=optimization, checks=checks, facts=facts
    )
    compiled = compile_lowered(lowered, name, level=level, optimization=optimization)
    return replace(compiled, guards=guards, seconds={**seconds, **compiled.seconds})


def lower_kernel(
    module: ModuleOp,
    name: str,
    *,
    level: str,
    optimization: int = 3,
    checks: Collection[str] = (),
    facts: Facts | None = None,
) -> tuple[ModuleOp, Facts, Mapping[str, float]]:
    """The cpu level of a tile function, the facts it rests on, and what each stage cost."""
    effort, made_for, seconds = EFFORTS[optimization], machine_for(level, optimization), StageTimes()
    lowered, context = specialized(module, name, facts, checks, seconds)
    TileToCpu(made_for.level, made_for.lanes, contract=effort.contract, small=effort.small).apply(context, lowered)
    seconds.lap("tile-to-cpu")
    # Fast compiles are not verified: a call waits for them. The full compile that follows is.
    if not effort.small or knobs.verify.value:
        verified(partial(text.verify, lowered), f"@{name}", "tile-to-cpu", partial(text.write, module))
    seconds.lap("verify")
    return lowered, context.recorder.guards, seconds


def compile_lowered(module: ModuleOp, name: str, *, level: str | None = None, optimization: int = 3) -> CompiledImage:
    """Compiles a function that is at the cpu level already, written by passes or by hand."""
    level = features.level() if level is None else level
    seconds = StageTimes()
    emitted = emit(module, name, machine_for(level, optimization))
    seconds.lap("emit")
    processor, extras = features.target(level)
    code = machine.compile_text(emitted.text, cpu=processor, features=extras, opt=EFFORTS[optimization].codegen)
    seconds.lap("llvm")
    flat = image.flatten(code)
    seconds.lap("image")
    return CompiledImage(name, flat, emitted.layout, emitted.messages, Facts(), dict(seconds))
