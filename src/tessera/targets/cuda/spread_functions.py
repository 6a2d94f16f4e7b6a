"""Functions by arithmetic, where the unit for functions would keep the tensor cores waiting.

That unit takes eight clocks for a function of a warp; multiplications and sums take one each. In a loop whose functions
take it as long as its products take the tensor cores, or longer, every second reciprocal that need not be exact is
computed otherwise (`functions.computed_reciprocal`).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr

from tessera.dialects import tile
from tessera.dialects.elementwise import TABLE
from tessera.dialects.tile_types import tile_type
from tessera.targets.cuda.agents_model import FLOPS, FUNCTION_CLOCKS, THREADS
from tessera.targets.llvm.marks import LOOSE, SPREAD


def spread_functions(function: tile.FuncOp) -> None:
    """Marks reciprocals in the loops around products."""
    for loop in function.body.walk():
        if isinstance(loop, scf.ForOp):
            ops = [op for op in loop.body.block.ops if isinstance(op, tile.EwOp | tile.DotOp)]
            works = [op for op in ops if isinstance(op, tile.EwOp) and tile_type(op.result).get_num_dims() == 2]
            products = sum(map(_product_clocks, (op for op in ops if isinstance(op, tile.DotOp))))
            if 0 < products <= sum(map(_function_clocks, works)):
                for op in works:
                    if op.fn.data == "reciprocal" and LOOSE in op.attributes:
                        op.attributes[SPREAD] = UnitAttr()


def _product_clocks(op: tile.DotOp) -> float:
    (rows, depth), (_, columns) = tile_type(op.a).get_shape(), tile_type(op.b).get_shape()
    return 2 * rows * depth * columns / FLOPS


def _function_clocks(op: tile.EwOp) -> float:
    """Four schedulers have a unit each; an agent has a warp on each of them."""
    rows, columns = tile_type(op.result).get_shape()
    return FUNCTION_CLOCKS * TABLE[op.fn.data].cost.special * rows * columns / THREADS
