"""Sums of floats in memory that come out the same every time: blocks add to them one after the other.

What atomics leave in memory depends on their order where they add floats. A function that has such atomics computes as
before, waits for its turn in front of the first of them, and hands it on at its end; between them, threads of the block
wait for each other. Blocks begin in the order of their numbers, so that whoever is waited for is there.
"""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.ir.common.attributes import integer
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.ir import dialect as nv
from tessera.transforms.core.rewriting import adopt_location

COUNTER_BYTES = 4


def order_atomics(function: nv.FuncOp) -> bool:
    """Puts sums of floats in memory into the order of blocks; False where there are none."""
    sums = [op for op in function.body.walk() if isinstance(op, tile.AtomicOp) and op.shows_order]
    if not sums:
        return False
    for op in sums:
        _insert(nv.BarrierOp(), op)
    if not all(extent == 1 for extent in function.grid.data):
        block = function.body.block
        assert block.last_op is not None
        _insert(nv.SemaphoreWaitOp(), next(op for op in block.ops if any(inner in sums for inner in op.walk())))
        _insert(nv.SemaphoreSignalOp(), block.last_op)
        function.attributes["counters"] = integer(COUNTER_BYTES)
    return True


def _insert(made: Operation, before: Operation) -> None:
    adopt_location([made], before)
    Rewriter.insert_op(made, InsertPoint.before(before))
