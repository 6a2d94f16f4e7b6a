"""Sigmoids whose reciprocals are computed together, where the unit for functions would keep the tensor cores waiting.

That unit takes eight clocks for a function of a warp; multiplications and sums take one each. In a loop whose functions
take it longer than its dots take the tensor cores, sigmoids that need not be exact are marked: four of them share a
reciprocal, that of the product of their divisors (`functions.inverses`).
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr

from tessera.ir.common.elementwise import TABLE
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.lower.multiprocessor_model import FLOPS, FUNCTION_CLOCKS, THREADS
from tessera.targets.llvm.emitter_attributes import APPROXIMATE, TOGETHER


def share_reciprocals(function: tile.FuncOp) -> None:
    """Marks sigmoids in the loops around dots."""
    for loop in function.body.walk():
        if isinstance(loop, scf.ForOp):
            ops = list(loop.body.block.ops)
            works = [op for op in ops if isinstance(op, tile.EwOp) and tile_type(op.result).get_num_dims() == 2]
            dots = _dot_clocks(op for op in ops if isinstance(op, tile.DotOp))
            if 0 < dots < sum(map(_function_clocks, works)):
                for op in works:
                    if op.fn.data == "sigmoid" and APPROXIMATE in op.attributes:
                        op.attributes[TOGETHER] = UnitAttr()


def _dot_clocks(ops: Iterable[tile.DotOp]) -> float:
    found = 0.0
    for op in ops:
        (rows, depth), (_, columns) = tile_type(op.a).get_shape(), tile_type(op.b).get_shape()
        found += rows * depth * columns * tile_dtype(op.a).storage.itemsize / FLOPS
    return found


def _function_clocks(op: tile.EwOp) -> float:
    """Clocks of the unit for functions. Four schedulers have one each; a warp group has a warp on each of them."""
    rows, columns = tile_type(op.result).get_shape()
    return FUNCTION_CLOCKS * TABLE[op.fn.data].cost.special * rows * columns / THREADS
