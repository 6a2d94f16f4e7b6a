"""Machine code of single kernels of a program: tile functions through the compilers of CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from tessera.compiler.artifact import Artifact, Source
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.programs import host
from tessera.tile.calls.compiling import log_compile, lowered, machined
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.facts import Facts


def isolated(module: ModuleOp, name: str) -> ModuleOp:
    """A module that holds one tile function and nothing else."""
    return ModuleOp([symbol_in(module, name, tile.FuncOp).clone()])


def source_in(module: ModuleOp, kernel: host.Kernel) -> Source:
    """A kernel of a program as a target compiles it."""
    alone = isolated(module, kernel.name)
    function = symbol_in(alone, kernel.name, tile.FuncOp)
    outputs = function.outputs.value.data
    inputs = len(function.arguments) - outputs
    return Source(alone, kernel.name, inputs, outputs, kernel.warps, kernel.stages, follows=True)


def machine_code(module: ModuleOp, kernel: host.Kernel, chosen: Settings, lines: tuple[int, ...] | None) -> Artifact:
    """The launch plan and the code of a kernel; `lines` says how the rows of its arrays lie, results too."""
    made = machined(source_in(module, kernel), chosen, Facts(), dict(enumerate(lines or ())))
    guards = "" if lines is None else ", ".join(f"arg{index} row_aligned" for index, good in enumerate(lines) if good)
    log_compile(f"@{kernel.name}", guards, made.seconds)
    return made


def machine_texts(module: ModuleOp, kernels: Sequence[host.Kernel], chosen: Settings) -> tuple[str, str]:
    """What the target writes of all kernels of a module, which is LLVM's text where it has LLVM; and their assembly.

    It is that for arrays whose rows are aligned.
    """
    found: list[tuple[str, str]] = []
    for kernel in kernels:
        source = source_in(module, kernel)
        made = lowered(source, chosen, Facts(), dict.fromkeys(range(source.inputs + source.outputs), 1))
        found.append((made.text, made.assembly()))
    return "\n".join(one for one, _ in found), "\n".join(one for _, one in found)
