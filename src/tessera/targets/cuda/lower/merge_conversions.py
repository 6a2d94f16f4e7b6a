"""Reductions through shared memory give the layout that is needed next: no conversion follows them.

A reduction across warps leaves every thread with all results of its columns, though each is needed by one thread. Where
only a conversion uses it, it has the layout of the conversion at once.
"""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.lower.budget import partial_sums
from tessera.transforms.core.function_pass import function_pass


def merge_conversions(function: nv.FuncOp) -> None:
    """Gives reductions of a function the layouts that they are converted into."""
    for op in [op for op in function.body.walk() if isinstance(op, tile.ReduceOp)]:
        users = [use.operation for use in op.result.uses]
        if len(users) != 1 or not isinstance(convert := users[0], nv.ConvertOp):
            continue
        layout, axis = layout_of(op.operand), op.axis.value.data
        whole = not layout.has_ghosts(tile_type(op.operand).get_shape())
        if not whole or layout_of(convert.result).has_ghosts(tile_type(op.result).get_shape()):
            continue
        if partial_sums(layout, axis) and convert.parent is op.parent:
            made = convert.result
            Rewriter.replace_value_with_new_type(op.result, made.type)
            made.replace_all_uses_with(op.result)
            convert.detach()
            convert.erase()


MergeConversions = function_pass("merge-conversions", merge_conversions, nv.FuncOp)
