"""nv level → LLVM text: importing this gathers the rules of all ops."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.core.engine import symbol_in
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda import (
    emit_control,
    emit_conversions,
    emit_copies,
    emit_effects,
    emit_hopper,
    emit_memory,
    emit_products,
    emit_reductions,
    emit_shared,
    emit_turns,
    emit_values,
    emit_wgmma,
)
from tessera.targets.cuda.emitter import Emitted, Emitter

__all__ = [
    "emit",
    "emit_control",
    "emit_conversions",
    "emit_copies",
    "emit_effects",
    "emit_hopper",
    "emit_memory",
    "emit_products",
    "emit_reductions",
    "emit_shared",
    "emit_turns",
    "emit_values",
    "emit_wgmma",
]


def emit(module: ModuleOp, name: str, arch: str = "sm_90a") -> Emitted:
    """The LLVM text of one kernel of a module."""
    return Emitter(symbol_in(module, name, nv.FuncOp), arch).emit()
