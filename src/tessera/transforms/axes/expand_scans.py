"""expand-scans: a running reduction becomes elementwise work on elements that are taken from further before each time.

For targets that have no code of their own for them: log n steps, each over the whole tile.
"""

from __future__ import annotations

from tessera.dtypes.types import i64
from tessera.ir.common import reductions
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.core.folding import materialize
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps


def expand_scans(function: tile.FuncOp) -> None:
    """Rewrites all running reductions of a function."""
    for op in [one for one in function.body.walk() if isinstance(one, tile.ScanOp)]:
        ops = TileOps()
        _expand(ops, op)
        if ops.ops:
            replace(op, ops.ops)
        else:
            op.result.replace_all_uses_with(op.operand)
            op.detach()
            op.erase()


ExpandScans = function_pass("expand-scans", expand_scans)


def _expand(ops: TileOps, op: tile.ScanOp) -> None:
    shape, along, value = tile_type(op.operand).get_shape(), op.axis.value.data, op.operand
    extent, step = shape[along], 1
    if extent < 2:
        return
    zero, places = ops.index(0), tile_of(shape, i64)
    at = [ops.add(tile.IotaOp(zero, axis, places)) for axis in range(len(shape))]

    while step < extent:
        apart = ops.add(tile.FullOp(ops.add(materialize(step, element_of(i64))), shape))
        is_first = ops.ew("lt", at[along], apart)
        # In front of the first element there is none: what is taken there is not used.
        before = ops.ew("sub", at[along], apart)
        other = ops.add(tile.TakeOp(value, [*at[:along], before, *at[along + 1 :]]))
        joined = ops.ew(reductions.TABLE[op.kind.data].combine, other, value)
        value = ops.ew("select", is_first, value, joined)
        step *= 2
