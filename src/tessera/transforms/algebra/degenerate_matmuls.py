"""Rewrites dots with K, N or M = 1 as multiplications and reductions.

A tile of one column lies along a row, in buffers and in registers; dots want rows and columns apart. One row leaves
most of a matrix unit idle, and reading the other operand is all the work: threads that read it multiply and add what
they have read. Sums of narrow floats are wide by now.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.multiples import mark
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps


@dataclass(frozen=True)
class DegenerateMatmuls(FunctionPass):
    """Writes dots of one column or one step as what they are; with `rows`, those of one row, too.

    The multiples of rows need no rounding.
    """

    name = "degenerate-matmuls"
    rows: bool = True

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        mark(lower_degenerate_matmuls(function, rows=self.rows))


def lower_degenerate_matmuls(function: tile.FuncOp, *, rows: bool = False) -> set[SSAValue]:
    """Replaces every dot of a function with K = 1 or N = 1, and with `rows` those with M = 1.

    Gives the multiples of the latter: they are added as they are, and need not be rounded before.
    """
    multiples: set[SSAValue] = set()
    for op in list(function.body.walk()):
        if isinstance(op, tile.DotOp):
            (height, depth), (_, cols) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
            if depth == 1 or cols == 1:
                replace(op, _spread(op, summed=depth != 1))
            elif rows and height == 1:
                made = _spread_row(op)
                multiples |= {one.results[0] for one in made if isinstance(one, tile.EwOp) and one.fn.data == "mul"}
                replace(op, made)
    return multiples


def _spread_row(op: tile.DotOp) -> list[Operation]:
    """The row is transposed beside the other operand, which lies as it was read; sums go down its columns."""
    ops, total = TileOps(), tile_dtype(op.c)
    left = ops.spread(ops.cast(ops.add(tile.TransOp(op.a, (1, 0))), total), tile_type(op.b).get_shape())
    product = ops.ew("mul", left, ops.cast(op.b, total))
    ops.ew("add", op.c, ops.folded("sum", product, 0))
    return ops.ops


def _spread(op: tile.DotOp, *, summed: bool) -> list[Operation]:
    ops, total = TileOps(), tile_dtype(op.c)
    (rows, depth), (_, cols) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
    right = ops.add(tile.TransOp(op.b, (1, 0))) if summed else op.b
    shape = (rows, depth) if summed else (rows, cols)
    product = ops.ew("mul", *(ops.spread(ops.cast(operand, total), shape) for operand in (op.a, right)))
    ops.ew("add", op.c, ops.folded("sum", product, 1) if summed else product)
    return ops.ops
