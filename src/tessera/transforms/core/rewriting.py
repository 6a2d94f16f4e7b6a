"""The one way ops are replaced: new ops stand where the old one stood and keep its source location."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter


def adopt_location(ops: Sequence[Operation], source: Operation) -> None:
    """Gives the location of `source` to all `ops`, nested ones too, that have none of their own."""
    for op in ops:
        for inner in op.walk() if op.regions else (op,):
            if isinstance(inner.location, UnknownLoc):
                inner.location = source.location


def replace(op: Operation, new_ops: Sequence[Operation], results: Sequence[SSAValue] | None = None) -> None:
    """Replaces `op` by `new_ops`; its results become `results`, by default those of the last new op."""
    if results is None:
        results = new_ops[-1].results
    adopt_location(new_ops, op)
    for old, new in zip(op.results, results, strict=True):
        if old.name_hint is not None and new.name_hint is None:
            new.name_hint = old.name_hint
    Rewriter.replace_op(op, list(new_ops), list(results))


def insert_before(op: Operation, new_ops: Sequence[Operation]) -> None:
    """Puts `new_ops` in front of `op`, at its location."""
    adopt_location(new_ops, op)
    Rewriter.insert_op(list(new_ops), InsertPoint.before(op))


def inline_before(op: Operation, block: Block) -> tuple[SSAValue, ...]:
    """Moves the ops of a nested block in front of `op` and gives what its terminator yielded."""
    terminator = block.last_op
    assert terminator is not None
    yielded = tuple(terminator.operands)
    terminator.detach()
    terminator.erase()
    for inner in list(block.ops):
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(op))
    return yielded


def inherit_locations(function: Operation) -> None:
    """Gives every op in a function that has no location that of the code it belongs to.

    That is the first op that uses its result, as an index is computed for a load; else the op behind it in its block,
    as a barrier is there for what follows; else, at the end of a block, the op around it. A pass that knows for which
    op it makes another says so by itself: this is for scaffolding.
    """
    for region in function.regions:
        for block in region.blocks:
            _inherit_in_block(block, function.location)


def _inherit_in_block(block: Block, around: LocationAttr) -> None:
    """Goes backwards: users and followers have their locations already."""
    behind, op = around, block.last_op
    while op is not None:
        if isinstance(op.location, UnknownLoc):
            uses = (use.operation for result in op.results for use in result.uses)
            op.location = next((user.location for user in uses if not isinstance(user.location, UnknownLoc)), behind)
        behind = op.location
        for region in op.regions:
            for inner in region.blocks:
                _inherit_in_block(inner, behind)
        op = op.prev_op
