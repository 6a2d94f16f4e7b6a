"""`pingpong-consumers`: consumers issue their dots one after the other, and compute while the others multiply.

Where all consumers issue at the same time, the tensor cores work on all dots at once, and then idle while all consumers
compute. A consumer that holds the ping-pong barrier issues all dots of its iteration, and hands the barrier on. All
consumers must run the same number of iterations: a loop whose length depends on a consumer's rows is left alone, and so
is one that waits for dots between others, or that has no vector work.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.pipe.pingpong import PingpongArriveOp, PingpongWaitOp
from tessera.ir.pipe.warp_groups import DotStartOp, DotsWaitOp, DotWaitOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before
from tessera.transforms.core.slices import end_of
from tessera.transforms.loops.consumer_values import differ_between_consumers


def pingpong(function: tile.FuncOp, pays: Callable[[scf.ForOp], bool] = lambda _: True) -> bool:
    """Adds ping-pong barriers to all loops that can have one, and where it pays; whether there were any."""
    found = False
    for partitions in [op for op in function.body.walk() if isinstance(op, WarpSpecializeOp)]:
        if partitions.consumers.value.data == 1:
            continue
        for loop in [op for op in partitions.consumer.walk() if isinstance(op, scf.ForOp)]:
            starts = _starts(loop.body.block)
            if starts and _computes(loop.body.block) and _is_common(loop, partitions) and pays(loop):
                insert_before(starts[0], [PingpongWaitOp()])
                behind = starts[-1].next_op
                assert behind is not None
                insert_before(behind, [PingpongArriveOp()])
                found = True
    return found


PingpongConsumers = function_pass("pingpong-consumers", pingpong)


def _starts(block: Block) -> list[DotStartOp]:
    """The dots that an iteration issues; none where it waits for dots in between."""
    starts = [op for op in block.ops if isinstance(op, DotStartOp)]
    if not starts:
        return []
    op: Operation | None = starts[0]
    while op is not None and op is not starts[-1]:
        if isinstance(op, DotWaitOp | DotsWaitOp | tile.EwOp) or op.regions:
            return []
        op = op.next_op
    return starts


def _computes(block: Block) -> bool:
    """Whether an iteration computes on whole tiles."""
    return any(
        isinstance(op, tile.EwOp) and isinstance(type_ := op.result.type, TensorType) and type_.get_num_dims() == 2
        for op in block.ops
    )


def _is_common(loop: scf.ForOp, partitions: WarpSpecializeOp) -> bool:
    """Whether all consumers run a loop equally often."""
    decided: list[SSAValue] = []
    op: Operation | None = loop
    while op is not None and op is not partitions:
        match op:
            case scf.ForOp():
                decided += [op.lb, op.ub, op.step]
            case scf.IfOp():
                decided.append(op.cond)
            case scf.WhileOp():
                decided.append(end_of(op.before_region.block).operands[0])
            case _:
                return False
        op = op.parent_op()
    return not differ_between_consumers(decided)
