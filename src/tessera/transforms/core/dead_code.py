"""dce: removes ops without effects whose results are not used."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator, SymbolOpInterface, get_effects

from tessera.ir.common.effects import observable


def is_removable(op: Operation) -> bool:
    """Whether the op may go once its results are unused."""
    if op.has_trait(IsTerminator) or op.has_trait(SymbolOpInterface):
        return False
    effects = get_effects(op)
    return effects is not None and not any(observable(effect) for effect in effects)


def is_dead(op: Operation) -> bool:
    return all(result.first_use is None for result in op.results) and is_removable(op)


def sweep(block: Block) -> None:
    """Removes dead ops of a block, last first, so that what only they used goes too."""
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        if is_dead(op):
            op.detach()
            op.erase()
        else:
            for region in op.regions:
                for inner in region.blocks:
                    sweep(inner)
        op = previous


@dataclass(frozen=True)
class DeadCode(ModulePass):
    """Removes ops without use and without observable effect."""

    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sweep(op.body.block)
