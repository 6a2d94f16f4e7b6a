"""Legalizes a tile function for CPUs before nests are looked for: checks, and simpler ops."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cpu.lower.certain_masks import drop_certain_masks
from tessera.targets.cpu.lower.extents import Extents
from tessera.targets.llvm.elements import is_arm
from tessera.transforms.algebra.degenerate_matmuls import lower_degenerate_matmuls
from tessera.transforms.algebra.factoring import remove_unused
from tessera.transforms.algebra.multiples import single_multiples
from tessera.transforms.algebra.scaled_differences import use_scaled_differences
from tessera.transforms.algebra.scaled_maxima import scale_maxima
from tessera.transforms.algebra.wide_accumulation import widen_accumulation
from tessera.transforms.core.common_subexpressions import merge_equal


def legalize(function: tile.FuncOp, level: str, extents: Extents, *, contract: bool) -> frozenset[SSAValue]:
    """Rewrites a function; gives the multiples that may be rounded together with a sum.

    Without `contract`, exponentials stay what they are.
    """
    _check(function)
    drop_certain_masks(function, extents)
    multiples = single_multiples(function)
    widen_accumulation(function)
    lower_degenerate_matmuls(function)
    if contract and use_scaled_differences(function):
        merge_equal(function.body.block)
        remove_unused(function)
    else:
        # On AArch64 a dot's elements are multiplied while they are in registers: later, that takes longer.
        scale_maxima(function, of_dots=not is_arm(level))
    return multiples


def _check(function: tile.FuncOp) -> None:
    """Refuses what has no machine code, before anything is written."""
    for op in function.body.walk():
        for value in (*op.results, *op.operands):
            if isinstance(value.type, TensorType) and len(tile_type(value).get_shape()) > 2:
                raise CompileError(
                    f"{op.name} works on {tile_type(value)}: tiles on CPUs have at most two axes",
                    span=span_of(op.location),
                    hint="fold two axes into one, or run it in the interpreter: TESSERA_INTERPRET=1",
                )
        if isinstance(op, tile.AnyOp):
            raise CompileError(
                f"{op.name} has no machine code for CPUs",
                span=span_of(op.location),
                hint="lazy-rescale writes it for GPUs: leave that pass out",
            )
        if isinstance(op, tile.DebugPrintOp):
            raise CompileError(
                "a kernel that prints or stops runs in the interpreter only",
                span=span_of(op.location),
                hint="TESSERA_INTERPRET=1 sends every kernel there",
            )
