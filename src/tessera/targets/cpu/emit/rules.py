"""cpu level → LLVM text: importing this gathers the rules of all ops, which the other files of this folder register."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tessera.targets.cpu.emit import control as emit_control
from tessera.targets.cpu.emit import matrix as emit_matrix
from tessera.targets.cpu.emit import memory as emit_memory
from tessera.targets.cpu.emit import packs as emit_packs
from tessera.targets.cpu.emit import tiles as emit_tiles
from tessera.targets.cpu.emit.emitter import Emitted, Emitter, TargetMachine
from tessera.targets.cpu.ir import dialect as cpu

RULE_FILES = emit_control, emit_matrix, emit_memory, emit_packs, emit_tiles


def emit(module: ModuleOp, name: str, machine: TargetMachine) -> Emitted:
    """The LLVM text of one cpu function."""
    function = next(op for op in module.body.block.ops if isinstance(op, cpu.FuncOp) and op.sym_name.data == name)
    return Emitter(function, machine).emit()
