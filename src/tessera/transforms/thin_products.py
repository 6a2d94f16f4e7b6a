"""Products over one column, or into one: written as multiplications and sums before nests are looked for.

A tile of one column lies along a row, in buffers and in registers; products want rows and columns apart. Sums of
narrow floats are wide by now.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_dtype, tile_type
from tessera.dtypes.types import DType
from tessera.transforms.rewriting import replace


def spread_thin_products(function: tile.FuncOp) -> None:
    """Replaces every product of a function with K = 1 or N = 1."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.DotOp):
            (_, depth), (_, cols) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
            if depth == 1 or cols == 1:
                replace(op, _spread(op, summed=depth != 1))


def _spread(op: tile.DotOp, *, summed: bool) -> list[Operation]:
    made: list[Operation] = []

    def add(new: Operation) -> SSAValue:
        made.append(new)
        return new.results[0]

    def cast(value: SSAValue, dtype: DType) -> SSAValue:
        return value if tile_dtype(value) is dtype else add(tile.EwOp("cast", [value], to=dtype))

    def spread(value: SSAValue, shape: tuple[int, int]) -> SSAValue:
        return value if tile_type(value).get_shape() == shape else add(tile.BroadcastOp(value, shape))

    total = tile_dtype(op.c)
    (rows, depth), (_, cols) = (tile_type(operand).get_shape() for operand in (op.a, op.b))
    right = add(tile.TransOp(op.b, (1, 0))) if summed else op.b
    shape = (rows, depth) if summed else (rows, cols)
    product = add(tile.EwOp("mul", [spread(cast(operand, total), shape) for operand in (op.a, right)]))
    if summed:
        product = add(tile.ExpandOp(add(tile.ReduceOp("sum", product, 1)), 1))
    add(tile.EwOp("add", [op.c, product]))
    return made
