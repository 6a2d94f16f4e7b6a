"""Runs of nv functions as they are emitted: compiled to PTX, which the machine for tests runs on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ptx_values
from gpu_options import gpu
from ptx_machine import Launch, Machine
from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.tile import bind
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile.types import ViewType
from tessera.targets.cuda.compile import CompiledPtx, compile_lowered
from tessera.targets.cuda.ir import dialect as nv

RULES = ptx_values.RULES
"""What the machine can do besides products."""


@dataclass
class Run:
    """What a run leaves behind, besides what it wrote."""

    program: CompiledPtx
    status: int
    machines: list[Machine]

    @property
    def message(self) -> str | None:
        return None if self.status == 0 else self.program.messages[self.status - 1]

    @property
    def conflicts(self) -> tuple[int, int]:
        """Turns of the banks of shared memory: how many there were, and how few there could have been."""
        found = [each for machine in self.machines for each in machine.conflicts.values()]
        return sum(each.taken for each in found), sum(each.least for each in found)


def run(module: ModuleOp, name: str, arguments: Sequence[Any], *, arch: str = "sm_90a") -> Run:
    """Compiles an nv function and runs it over its grid; arrays are written in place."""
    kernel = symbol_in(module, name, nv.FuncOp)
    program = compile_lowered(module, name, gpu(arch))
    grid = bind(name, kernel.function_type, kernel.shapes, kernel.grid, arguments).grid
    launch, record = Launch(), np.zeros(8, np.uint64)
    for value, type_ in zip(arguments, kernel.function_type.inputs, strict=True):
        if isinstance(type_, ViewType):
            launch.view(value)
        else:
            launch.words.append(_word(value, dtype_of(type_).storage))
    launch.words += grid
    launch.view(record)
    # Of the record only its address is a word of the parameter.
    del launch.words[program.block.report + 1 :]
    blocks = range(int(np.prod(grid, dtype=np.int64)))
    machines = launch.run(program.ptx, program.threads, program.shared, program.block.size, blocks)
    return Run(program, int(record[0]), machines)


def _word(value: Any, storage: Any) -> int:
    return int.from_bytes(np.asarray(value).astype(storage).tobytes(), "little")
