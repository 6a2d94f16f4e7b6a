"""Sinks ops that compute wgmma operands in registers behind waits, so that they run while no wgmma does.

While a wgmma is in flight, ptxas wants no other instruction to write registers that a wgmma reads: it would serialize
them instead (its remark C7513). Left operands of a later dot, those of the next iteration among them, are often ready
earlier. The op that makes them moves behind the last wait that it can be behind.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma
from tessera.transforms.core.function_pass import function_pass


def sink_wgmma_operands(function: nv.FuncOp) -> None:
    """Sinks the ops that make left operands of wgmma."""
    for op in list(function.body.walk()):
        if isinstance(op, wgmma.WgmmaOp):
            for owner in _makers(op.a, set()):
                _sink(owner)


SinkWgmmaOperands = function_pass("sink-wgmma-operands", sink_wgmma_operands, nv.FuncOp)


def _makers(value: SSAValue, seen: set[SSAValue]) -> list[tile.EwOp]:
    """The elementwise ops that a value comes from, through loops and branches."""
    if value in seen:
        return []
    seen.add(value)
    owner = value.owner
    if isinstance(owner, tile.EwOp):
        return [owner]
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, scf.ForOp):
            return []
        index = owner.args.index(value) - 1  # pyright: ignore[reportArgumentType]  # it is one of them
        return [*_makers(loop.iter_args[index], seen), *_makers(_yielded(owner, index), seen)]
    index = owner.results.index(value)  # pyright: ignore[reportArgumentType]
    if isinstance(owner, scf.ForOp):
        return [*_makers(owner.iter_args[index], seen), *_makers(_yielded(owner.body.block, index), seen)]
    if isinstance(owner, scf.IfOp):
        return [maker for region in owner.regions for maker in _makers(_yielded(region.block, index), seen)]
    return []


def _yielded(block: Block, index: int) -> SSAValue:
    assert block.last_op is not None
    return block.last_op.operands[index]


def _sink(op: tile.EwOp) -> None:
    users = {_in_block(use.operation, op.parent_block()) for use in op.result.uses}
    target: Operation | None = None
    following = op.next_op
    while following is not None and following not in users:
        if isinstance(following, wgmma.WgmmaWaitOp):
            target = following
        following = following.next_op
    block = op.parent_block()
    if target is not None and block is not None:
        op.detach()
        block.insert_op_after(op, target)


def _in_block(op: Operation, block: Block | None) -> Operation | None:
    """The op of a block that an op is, or is a part of."""
    found: Operation | None = op
    while found is not None and found.parent_block() is not block:
        found = found.parent_op()
    return found
