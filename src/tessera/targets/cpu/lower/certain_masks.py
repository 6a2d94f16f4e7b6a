"""Masks that are true wherever they are looked at: what they choose from is taken without them.

With sizes that are known a block of columns often ends where the array does, and nothing is beyond it. Bounds of
positions come from loops, from the grid and from facts; those that decide a mask become guards.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.ir import SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cpu.lower.extents import Extents, Span
from tessera.transforms.algebra.masks import Window, true_if
from tessera.transforms.core.context import recorder_of
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import replace


@dataclass(frozen=True)
class DropCertainMasks(FunctionPass):
    """Replaces choices by masks that are true wherever they are looked at; facts that decide that become guards."""

    name = "drop-certain-masks"

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        drop_certain_masks(function, Extents(function, recorder_of(ctx)))


def drop_certain_masks(function: tile.FuncOp, extents: Extents) -> None:
    """Replaces choices by masks that are certain."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.EwOp) and op.fn.data == "select":
            mask, chosen, _ = op.operands_
            if tile_type(chosen) == tile_type(op.result) and _is_certain(mask, extents):
                replace(op, [], [chosen])


def _is_certain(mask: SSAValue, extents: Extents) -> bool:
    window = Window.whole(tile_type(mask).get_shape())
    for bounds in true_if(mask, window):
        spans = [(one.number, [(extents.span(scalar), factor) for scalar, factor in one.terms]) for one in bounds]
        if all(number + sum(_least(span, factor) for span, factor in terms) > 0 for number, terms in spans):
            extents.decide(*(span for _, terms in spans for span, _ in terms))
            return True
    return False


def _least(span: Span, factor: int) -> float:
    return factor * (span.low if factor > 0 else span.high)
