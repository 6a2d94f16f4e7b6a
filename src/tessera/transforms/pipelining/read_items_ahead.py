"""`read-items-ahead`: a producer reads numbers that say where its first copies are while it waits for those that say
whether there are any.

Where a producer begins with a branch, as in front of a loop that was peeled, the items in there that do not depend on
it move in front of it, with what they are computed of: an item outside of its view is 0, so reading one too many does
no harm. Numbers of pages are such, and the length of the sequence is what the branch asks for: reading one after the
other would take twice as long.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import takewhile

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.interpreters.core.scalars import DIVISIONS
from tessera.ir.pipe.warp_groups import ProducerCopies, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.function_pass import function_pass


def read_items_ahead(function: tile.FuncOp) -> None:
    """Moves items in branches of producers in front of them."""
    written = tile.written_memory(function)
    for partitions in [op for op in function.body.walk() if isinstance(op, WarpSpecializeOp)]:
        for branch in [op for op in partitions.producer.walk() if isinstance(op, scf.IfOp)]:
            for op in [op for block in branch.true_region.blocks for op in _movable(block, written)]:
                op.detach()
                parent = branch.parent_block()
                assert parent is not None
                parent.insert_op_before(op, branch)


ReadItemsAhead = function_pass("read-items-ahead", read_items_ahead)


def _movable(block: Block, written: AbstractSet[SSAValue]) -> list[Operation]:
    """The items in front of a block's first copy that only rest on what is known in front of the block, and what they
    rest on, in order."""
    known: set[Operation] = set()
    for op in takewhile(lambda op: not isinstance(op, ProducerCopies | scf.ForOp), block.ops):
        may_move = isinstance(op, tile.ItemOp) and tile.memory_of(op.view) not in written
        if (may_move or _is_harmless(op)) and all(_is_known(value, block, known) for value in op.operands):
            known.add(op)
    wanted: set[Operation] = set()
    for op in reversed(list(block.ops)):
        if op in known and (isinstance(op, tile.ItemOp) or any(use.operation in wanted for use in op.results[0].uses)):
            wanted.add(op)
    return [op for op in block.ops if op in wanted]


def _is_known(value: SSAValue, block: Block, known: AbstractSet[Operation]) -> bool:
    owner = value.owner
    return owner in known or (owner is not block and not (isinstance(owner, Operation) and owner.parent is block))


def _is_harmless(op: Operation) -> bool:
    """Whether an op has one result and no effect, whatever its operands are."""
    divides = isinstance(op, DIVISIONS) and not integer_of(op.operands[1])
    return len(op.results) == 1 and not op.regions and not divides and is_side_effect_free(op)
