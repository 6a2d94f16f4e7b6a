"""Machine code of single kernels of a program: tile functions through the compilers of CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.programs import host
from tessera.runtime.program.launch_plan import Plan
from tessera.tile.calls.compiling import Source, log_compile, machined
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.facts import Facts


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
    guards = "" if lines is None else ", ".join(f"arg{index} row_aligned" for index, good in enumerate(lines) if good)
    log_compile(f"@{kernel.name}", guards, made.seconds)
    return made.plan, made.code


def machine_texts(module: ModuleOp, kernels: Sequence[host.Kernel], chosen: Settings) -> tuple[str, str]:
    """LLVM's text of all kernels of a module, and their assembly."""
    written = _for_gpu if chosen.target == "cuda" else _for_cpu
    found = [written(isolated(module, kernel.name), kernel, chosen) for kernel in kernels]
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
        ordered=chosen.deterministic,
        row_aligned=range(len(symbol_in(module, kernel.name, tile.FuncOp).arguments)),
        follows=True,
    )
    written = emit(lowered, kernel.name, chosen.level).text
    return written, ptx_of(written, chosen.level, chosen.optimization)
