"""Maxima of multiples: max(c · x) = c · max(x) for c > 0, exactly, because rounding keeps order.

One multiplication for each row replaces one for each element, wherever the elements come from. Masks that
replace elements by −∞ (or ∞, for minima) stand between the two without harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps

_NOTHING = {"max": -math.inf, "top": -math.inf, "min": math.inf}


@dataclass(frozen=True)
class ScaleMaxima(FunctionPass):
    """Scales maxima and minima of positive multiples instead of their elements, with `of_dots` those of dots, too."""

    name = "scale-maxima"
    of_dots: bool = True

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        scale_maxima(function, of_dots=self.of_dots)


def scale_maxima(function: tile.FuncOp, *, of_dots: bool = True) -> None:
    """Rewrites every maximum and minimum of a positive multiple; those of a dot's elements only if that pays."""
    for op in list(function.body.walk()):
        if isinstance(op, tile.ReduceOp) and op.kind.data in _NOTHING and tile_dtype(op.operand).is_float:
            made = _rewritten(op, of_dots)
            if made:
                replace(op, made)


def _rewritten(op: tile.ReduceOp, of_dots: bool) -> list[Operation]:
    """The maximum first, and then its multiple; nothing where it is not one."""
    multiple, choices = op.operand, list[tile.EwOp]()
    while (choice := _masking(multiple, op.kind.data)) is not None:
        choices.append(choice)
        _, multiple, _ = choice.operands_
    found = _factor(multiple)
    if found is None:
        return []
    element, factor = found
    if isinstance(element.owner, tile.DotOp) and not of_dots:
        return []
    ops = TileOps()
    for choice in reversed(choices):
        mask, _, nothing = choice.operands_
        element = ops.ew("select", mask, element, nothing)
    top = ops.add(tile.ReduceOp(op.kind.data, element, op.axis.value.data))
    ops.ew("mul", top, ops.add(tile.FullOp(factor, tile_type(top).get_shape())))
    return ops.ops


def _masking(value: SSAValue, kind: str) -> tile.EwOp | None:
    """The choice between elements and what is nothing to a reduction."""
    choice = value.owner
    if not isinstance(choice, tile.EwOp) or choice.fn.data != "select":
        return None
    return choice if constant_of(choice.operands_[2]) == _NOTHING[kind] else None


def _factor(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The operand that is multiplied by a positive number, and the number as a scalar."""
    op = value.owner
    # What a policy makes of a multiple, it need not make of the greatest element.
    if not isinstance(op, tile.EwOp) or op.fn.data != "mul" or op.policy is not None:
        return None
    for element, factor in (op.operands_, op.operands_[::-1]):
        number = constant_of(factor)
        source: SSAValue = factor
        while isinstance(owner := source.owner, tile.ExpandOp | tile.BroadcastOp):
            source = owner.operand
        full = source.owner
        same = tile_dtype(element) is tile_dtype(value)
        if number is not None and 0 < number < math.inf and isinstance(full, tile.FullOp) and same:
            return element, full.value
    return None
