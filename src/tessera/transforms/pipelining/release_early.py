"""`release-early`: a consumer releases a tile behind its last use, and not only at the end of the instance.

A tile that a branch uses is released behind the branch. Where the last op that uses it is a loop, and all dots in there
have been waited for behind that loop, the release moves there: the producer may refill the stage while this consumer
still computes.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.pipe.warp_groups import ConsumerReleaseOp, ConsumerWaitOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before


def release_early(function: tile.FuncOp) -> None:
    """Moves releases behind branches into them."""
    for partitions in [op for op in function.body.walk() if isinstance(op, WarpSpecializeOp)]:
        for op in [inner for inner in partitions.consumer.walk() if isinstance(inner, ConsumerReleaseOp)]:
            _move(op)


ReleaseEarly = function_pass("release-early", release_early)


def _move(op: ConsumerReleaseOp) -> None:
    block = op.parent_block()
    assert block is not None
    waits = [
        one for one in block.ops if isinstance(one, ConsumerWaitOp) and (one.ring, one.state) == (op.ring, op.state)
    ]
    if len(waits) != 1:
        return
    last = _last_user(block, waits[0].result)
    if not isinstance(last, scf.IfOp) or last.false_region.first_block is None:
        return
    points = [_behind(region.block, waits[0].result) for region in last.regions]
    if any(point is None for point in points):
        return
    for point in points:
        assert point is not None
        insert_before(point, [ConsumerReleaseOp(op.ring, op.state)])
    op.detach()
    op.erase()


def _behind(block: Block, waited: SSAValue) -> Operation | None:
    """The op of a branch in front of which a tile is needed no more; None where a dot may still read it."""
    last = _last_user(block, waited)
    if last is None:
        return block.first_op
    return last.next_op if isinstance(last, scf.ForOp) else None


def _last_user(block: Block, waited: SSAValue) -> Operation | None:
    found: Operation | None = None
    pending = list(waited.uses)
    while pending:
        user: Operation | None = pending.pop().operation
        if isinstance(user, tile.TransOp):
            pending += user.result.uses
        while user is not None and user.parent_block() is not block:
            user = user.parent_op()
        if user is not None and (found is None or found.is_before_in_block(user)):
            found = user
    return found
