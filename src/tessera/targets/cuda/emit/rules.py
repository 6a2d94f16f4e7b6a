"""nv level → LLVM text: importing this gathers the rules of all ops."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.interpreters.core.engine import symbol_in
from tessera.targets.cuda.emit import (
    along_axes,
    control,
    conversions,
    copies,
    effects,
    hopper,
    hopper_transpose,
    memory,
    mma,
    reductions,
    shared,
    values,
    wgmma,
)
from tessera.targets.cuda.emit.emitter import RULES, Emitted, Emitter
from tessera.targets.cuda.ir import dialect as nv

RULE_FILES = (
    *(along_axes, control, conversions, copies, effects, hopper, hopper_transpose),
    *(memory, mma, reductions, shared, values, wgmma),
)


def emit(module: ModuleOp, name: str, arch: str = "sm_90a") -> Emitted:
    """The LLVM text of one kernel of a module."""
    return Emitter(symbol_in(module, name, nv.FuncOp), arch).emit()


def emitted_ops() -> frozenset[type[Operation]]:
    """The ops that have rules."""
    return frozenset(RULES)
