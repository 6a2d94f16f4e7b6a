"""nv level → LLVM text: importing this gathers the rules of all ops."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.core.engine import symbol_in
from tessera.targets.cuda.emit import control as emit_control
from tessera.targets.cuda.emit import conversions as emit_conversions
from tessera.targets.cuda.emit import copies as emit_copies
from tessera.targets.cuda.emit import effects as emit_effects
from tessera.targets.cuda.emit import hopper as emit_hopper
from tessera.targets.cuda.emit import hopper_transpose as emit_transposes
from tessera.targets.cuda.emit import memory as emit_memory
from tessera.targets.cuda.emit import mma as emit_products
from tessera.targets.cuda.emit import reductions as emit_reductions
from tessera.targets.cuda.emit import shared as emit_shared
from tessera.targets.cuda.emit import values as emit_values
from tessera.targets.cuda.emit import wgmma as emit_wgmma
from tessera.targets.cuda.emit.emitter import Emitted, Emitter
from tessera.targets.cuda.ir import dialect as nv

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
    "emit_transposes",
    "emit_values",
    "emit_wgmma",
]


def emit(module: ModuleOp, name: str, arch: str = "sm_90a") -> Emitted:
    """The LLVM text of one kernel of a module."""
    return Emitter(symbol_in(module, name, nv.FuncOp), arch).emit()
