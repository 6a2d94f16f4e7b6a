"""`merge-masks`: one choice by two masks instead of one choice after the other.

A kernel's own mask comes first, then that of columns beyond the last. Where both put the same number in, it is enough
to choose once: truths are cheaper to join than values to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.rewriting import replace


@dataclass(frozen=True)
class MergeMasks(ModulePass):
    """The pass, for every tile function."""

    name = "merge-masks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            merge_masks(function)


def merge_masks(function: tile.FuncOp) -> None:
    """Joins the masks of choices that follow each other."""
    for op in [op for op in function.body.walk() if isinstance(op, tile.EwOp)]:
        inner = _masked_before(op)
        if inner is not None:
            both = tile.EwOp("and", [inner.operands_[0], op.operands_[0]])
            replace(op, [both, tile.EwOp("select", [both.result, *inner.operands_[1:]])])
            inner.detach()
            inner.erase()


def _masked_before(op: tile.EwOp) -> tile.EwOp | None:
    """The choice between a value and the same number whose result is masked once more, if it has no other use."""
    if op.fn.data != "select":
        return None
    inner = op.operands_[1].owner
    if not isinstance(inner, tile.EwOp) or inner.fn.data != "select" or not op.operands_[1].has_one_use():
        return None
    numbers = [constant_of(choice.operands_[2]) for choice in (op, inner)]
    return inner if numbers[0] is not None and numbers[0] == numbers[1] else None
