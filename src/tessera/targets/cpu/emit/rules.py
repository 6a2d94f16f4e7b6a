"""cpu level → LLVM text: importing this gathers the rules of all ops, which the other files of this folder register."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.interpreters.core.engine import symbol_in
from tessera.targets.cpu.emit import control, halves, matrix, memory, packs, tiles
from tessera.targets.cpu.emit.emitter import RULES, Emitted, Emitter, TargetMachine
from tessera.targets.cpu.ir import dialect as cpu

RULE_FILES = control, halves, matrix, memory, packs, tiles


def emit(module: ModuleOp, name: str, machine: TargetMachine) -> Emitted:
    """The LLVM text of one cpu function."""
    return Emitter(symbol_in(module, name, cpu.FuncOp), machine).emit()


def emitted_ops() -> frozenset[type[Operation]]:
    """The ops that have rules."""
    return frozenset(RULES)
