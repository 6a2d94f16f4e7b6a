"""From a graph module to a program: the passes down to tile functions, and the compilers of CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tessera import knobs
from tessera.errors import DeviceError
from tessera.faults import boundary
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.tile import dialect as tile
from tessera.programs import host
from tessera.programs.code import Codes
from tessera.programs.levels import Level, Levels
from tessera.programs.lowered import described, host_of
from tessera.programs.program import Program
from tessera.runtime.device.device import Device, device
from tessera.runtime.device.memory import aligned
from tessera.runtime.program.launch_plan import Plan
from tessera.runtime.tensor.tensor import Tensor
from tessera.targets.choose_blocks import stages_for
from tessera.tile.calls.compiling import Source, log_compile, machined
from tessera.tile.calls.native import Settings, settings, settings_on
from tessera.transforms.core.facts import Facts
from tessera.transforms.pipeline import Stage, compile_module


def settings_for(target: str | Settings | None) -> Settings | None:
    """What to compile for: `cpu`, `cuda` or `cuda:1`, settings that say it; None where the interpreter runs all."""
    if isinstance(target, Settings):
        return target
    chosen = settings()
    if chosen is None:
        return None
    place = device(target or "cpu")
    if place.kind not in ("cpu", "cuda"):
        raise DeviceError(f"programs run on the CPU and on GPUs, not on {place}", hint="name cpu or cuda")
    return settings_on(place, chosen)


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
    if isinstance(target, str):
        program.device = device(target)
    if world is not None:
        program.world = world
    return program


def _lowered(
    module: ModuleOp, chosen: Settings, name: str, stages: Mapping[str, Stage] | None, facts: Facts | None
) -> Program:
    with boundary(f"@{name}", "lowering", partial(text.write, module)):
        stages = stages_for(chosen.target, chosen.level, checks=chosen.checks) if stages is None else stages
        lowered = compile_module(module, stages=stages, facts=facts)
        program = host_of(lowered.module, name, located=bool(chosen.checks))
    codes = Codes(
        name,
        program.kernels,
        text.write(module, locations=True),
        text.write(lowered.module, locations=True),
        module,
        lowered.module,
    )
    log_compile(f"@{name}", str(facts or "all that fits its signature"), lowered.seconds)
    texts = [Level(lowered.levels.get(level, "")) for level in ("graph", "schedule", "tile")]
    levels = Levels(*texts, below=lambda: machine_texts(codes, chosen))
    return Program(program, chosen, levels, codes)


def _interpreted(module: ModuleOp, name: str) -> Program:
    written = text.write(module)
    function = symbol_in(module, name, graph.FuncOp)
    values = [described(type_) for type_ in function.function_type.inputs]
    program = host.Host(name, tuple(values), tuple(range(len(values))), (), ())
    levels = Levels(Level(written), Level(""), Level(""), below=lambda: ("", ""))
    return Program(program, None, levels, Codes(name, (), text.write(module, locations=True), "", module))


def isolated(module: ModuleOp, name: str) -> ModuleOp:
    """A module that holds one tile function and nothing else."""
    return ModuleOp([symbol_in(module, name, tile.FuncOp).clone()])


def machine_code(
    module: ModuleOp, kernel: host.Kernel, chosen: Settings, lines: tuple[bool, ...] | None
) -> tuple[Plan, bytes]:
    """The launch plan and the code of a kernel; `lines` says how the rows of its arrays lie, results too."""
    alone = isolated(module, kernel.name)
    function = symbol_in(alone, kernel.name, tile.FuncOp)
    outputs = function.outputs.value.data
    inputs = len(function.arguments) - outputs
    source = Source(alone, kernel.name, inputs, outputs, kernel.warps, kernel.stages, follows=True)
    made = machined(source, chosen, Facts(), dict(enumerate(lines or ())))
    guards = "" if lines is None else ", ".join(f"arg{place} lined" for place, good in enumerate(lines) if good)
    log_compile(f"@{kernel.name}", guards, made.seconds)
    return made.plan, made.code


def machine_texts(codes: Codes, chosen: Settings) -> tuple[str, str]:
    """LLVM's text of all kernels, and their assembly."""
    written = _for_gpu if chosen.target == "cuda" else _for_cpu
    found = [written(isolated(codes.tile_module, kernel.name), kernel, chosen) for kernel in codes.kernels]
    return "\n".join(one for one, _ in found), "\n".join(one for _, one in found)


def _for_cpu(module: ModuleOp, kernel: host.Kernel, chosen: Settings) -> tuple[str, str]:
    from tessera.targets.cpu import features
    from tessera.targets.cpu.compile import EFFORTS, lower_kernel, machine_for
    from tessera.targets.cpu.emit.rules import emit
    from tessera.targets.llvm import machine

    level, effort = chosen.level, chosen.optimization
    lowered, _, _ = lower_kernel(module, kernel.name, level=level, optimization=effort, checks=chosen.checks)
    written = emit(lowered, kernel.name, machine_for(level, effort)).text
    processor, extras = features.target(level)
    return written, machine.assembly(written, cpu=processor, features=extras, opt=EFFORTS[effort].codegen)


def _for_gpu(module: ModuleOp, kernel: host.Kernel, chosen: Settings) -> tuple[str, str]:
    from tessera.targets.cuda.compile import lower_kernel, ptx_of
    from tessera.targets.cuda.emit.rules import emit

    lowered, _, _, _ = lower_kernel(
        module,
        kernel.name,
        arch=chosen.level,
        warps=kernel.warps,
        stages=kernel.stages,
        optimization=chosen.optimization,
        checks=chosen.checks,
        in_turn=chosen.deterministic,
        lined=range(len(symbol_in(module, kernel.name, tile.FuncOp).arguments)),
        follows=True,
    )
    written = emit(lowered, kernel.name, chosen.level).text
    return written, ptx_of(written, chosen.level, chosen.optimization)


def interpreted(
    module: ModuleOp, name: str, world: Callable[[], Machine], otherwise: Device
) -> Callable[..., tuple[Tensor, ...]]:
    """A function of tensors and numbers that runs a graph function in the interpreter; results lie where tensors do."""
    types = symbol_in(module, name, graph.FuncOp).function_type.outputs

    def run(*values: Any) -> tuple[Tensor, ...]:
        place = next((value.device for value in values if isinstance(value, Tensor)), otherwise)
        given = [value.cpu().numpy() if isinstance(value, Tensor) else value for value in values]
        names = knobs.checks.value
        wanted = Checks(nonfinite="nan" if "nan" in names else False, unwritten="unwritten" in names)
        with (
            boundary(f"@{name}", "the interpreter", partial(text.write, module)),
            checking(wanted) if wanted else nullcontext(),
        ):
            found = run_function(module, name, given, machine=world())
        made: list[Tensor] = []
        for array, type_ in zip(found, types, strict=True):
            assert isinstance(type_, GraphTensorType)
            made.append(Tensor.wrap(aligned(np.array(array)), type_.dtype).to(place))
        return tuple(made)

    return run
