"""Rewrites dots with K, N or M = 1 as multiplications and reductions.

A tile of one column lies along a row, in buffers and in registers; dots want rows and columns apart. One row leaves
most of a matrix unit idle, and reading the other operand is all the work: threads that read it multiply and add what
they have read. Sums of narrow floats are wide by now.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.rewriting import replace


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
    made: list[Operation] = []

    def add(new: Operation) -> SSAValue:
        made.append(new)
        return new.results[0]

    total = tile_dtype(op.c)
    shape = tile_type(op.b).get_shape()
    left = add(tile.BroadcastOp(_cast(add, add(tile.TransOp(op.a, (1, 0))), total), shape))
    product = add(tile.EwOp("mul", [left, _cast(add, op.b, total)]))
    row_sum = add(tile.ExpandOp(add(tile.ReduceOp("sum", product, 0)), 0))
    add(tile.EwOp("add", [op.c, row_sum]))
    return made


def _cast(add: Callable[[Operation], SSAValue], value: SSAValue, dtype: DType) -> SSAValue:
    return value if tile_dtype(value) is dtype else add(tile.EwOp("cast", [value], to=dtype))


def _spread(op: tile.DotOp, *, summed: bool) -> list[Operation]:
    made: list[Operation] = []

    def add(new: Operation) -> SSAValue:
        made.append(new)
        return new.results[0]

    def spread(value: SSAValue, shape: tuple[int, int]) -> SSAValue:
        return value if tile_type(value).get_shape() == shape else add(tile.BroadcastOp(value, shape))

    total = tile_dtype(op.c)
    (rows, depth), (_, cols) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
    right = add(tile.TransOp(op.b, (1, 0))) if summed else op.b
    shape = (rows, depth) if summed else (rows, cols)
    product = add(tile.EwOp("mul", [spread(_cast(add, operand, total), shape) for operand in (op.a, right)]))
    if summed:
        product = add(tile.ExpandOp(add(tile.ReduceOp("sum", product, 1)), 1))
    add(tile.EwOp("add", [op.c, product]))
    return made
