"""Waits for products that stay behind what agents compute meanwhile.

ptxas moves waits up, or what stands in front of them down: it knows no reason why one should be in front of the other,
and values that are first needed behind a wait take fewer registers there. What was to be done while products run is
then done when they have ended. It moves nothing across a branch: a wait that is `held` has one in front of it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from tessera.dialects import tile
from tessera.dialects.tile_types import tile_dtype
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda import hopper_products as products

_COMPUTES = tile.EwOp | tile.ReduceOp | products.PartialOp


def hold_waits(function: nv.FuncOp) -> None:
    """Marks the waits in front of which something is computed since products were begun or waited for."""
    for op in function.body.walk():
        if isinstance(op, products.WgmmaWaitOp) and _has_work(op.prev_op):
            op.held = UnitAttr()


def _has_work(op: Operation | None) -> bool:
    while op is not None and not isinstance(op, products.WgmmaOp | products.WgmmaWaitOp):
        # Masks are left to the assembler: it has registers for few of their bits.
        if isinstance(op, _COMPUTES) and tile_dtype(op.results[0]).is_float:
            return True
        op = op.prev_op
    return False
