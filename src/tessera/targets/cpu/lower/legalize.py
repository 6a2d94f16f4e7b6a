"""Legalizes a tile function for CPUs before nests are looked for: checks, and stages of simpler ops."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cpu.lower.certain_masks import DropCertainMasks
from tessera.targets.llvm.elements import is_arm
from tessera.targets.llvm.prints import unrecorded
from tessera.targets.llvm.round_multiples import RoundMultiples
from tessera.transforms.algebra.degenerate_matmuls import DegenerateMatmuls
from tessera.transforms.algebra.multiples import MarkMultiples
from tessera.transforms.algebra.scaled_differences import ScaledDifferences
from tessera.transforms.algebra.scaled_maxima import ScaleMaxima
from tessera.transforms.algebra.wide_accumulation import WidenAccumulation
from tessera.transforms.axes.expand_scans import ExpandScans
from tessera.transforms.axes.expand_sorts import ExpandSorts
from tessera.transforms.axes.fold_leading_axes import FoldLeadingAxes
from tessera.transforms.axes.loop_leading_axes import LoopLeadingAxes
from tessera.transforms.axes.split_batched_dots import SplitBatchedDots, SplitCarriedDots
from tessera.transforms.core.function_pass import FunctionPass


def legalize_stages(level: str, *, contract: bool = True) -> dict[str, FunctionPass]:
    """The passes that legalize a function, in order. Without `contract`, exponentials stay what they are."""
    # On AArch64 a dot's elements are multiplied while they are in registers: later, that takes longer.
    maxima = (ScaledDifferences if contract else ScaleMaxima)(of_dots=not is_arm(level))
    # Whether what is not marked is rounded together with a sum is for the emitter to say, by its machine.
    passes = (
        DropCertainMasks(),
        MarkMultiples(),
        WidenAccumulation(),
        ExpandScans(),
        ExpandSorts(),
        SplitCarriedDots(),
        LoopLeadingAxes(),
        SplitBatchedDots(),
        FoldLeadingAxes(),
        DegenerateMatmuls(rows=False),
        maxima,
        RoundMultiples(),
    )
    return {one.name: one for one in passes}


def check_supported(function: tile.FuncOp) -> None:
    """Raises the refusal of ops without machine code, before anything is written."""
    for op in function.body.walk():
        for value in (*op.results, *op.operands):
            if isinstance(value.type, TensorType) and len(tile_type(value).get_shape()) > 2:
                raise CompileError(
                    f"{op.name} works on {tile_type(value)}: tiles on CPUs have at most two axes",
                    span=span_of(op.location),
                    hint="run fold-leading-axes in front, or run it in the interpreter: TESSERA_INTERPRET=1",
                )
        if isinstance(op, tile.DotOp) and (tile_type(op.b).get_shape()[1] == 1 or tile_type(op.a).get_shape()[1] == 1):
            raise CompileError(
                f"{op.name} has one column, or one step: it is no dot of nests",
                span=span_of(op.location),
                hint="run degenerate-matmuls in front, which writes it as multiplications and sums",
            )
        if isinstance(op, tile.AnyOp):
            raise CompileError(
                f"{op.name} has no machine code for CPUs",
                span=span_of(op.location),
                hint="lazy-rescale writes it for GPUs: leave that pass out",
            )
        if isinstance(op, tile.DebugPrintOp):
            raise unrecorded(op)
