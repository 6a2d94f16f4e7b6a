"""Deterministic atomics: blocks add floats to memory one after the other, in the order of their numbers.

Sums of floats depend on the order of the atomics that add to them. A function that has such atomics waits for its
semaphore in front of the first of them, and signals the next block at its end; in between, threads of the block wait
for each other, and add one after the other where places are computed. Blocks begin in the order of their numbers, so
that a block that is waited for has begun.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.ir.common.attributes import integer
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.ir import dialect as nv
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location

COUNTER_BYTES = 4


def order_atomics(function: nv.FuncOp) -> bool:
    """Puts atomics that add floats into the order of blocks; returns False where there are none."""
    atomics = [op for op in function.body.walk() if isinstance(op, tile.Atomic) and op.shows_order]
    if not atomics:
        return False
    for op in atomics:
        _insert(nv.BarrierOp(), op)
        if isinstance(op, tile.AtomicAtOp):  # threads may add to one place
            op.attributes[nv.ORDERED] = UnitAttr()
    if not all(extent == 1 for extent in function.grid.data):
        block = function.body.block
        assert block.last_op is not None
        _insert(nv.SemaphoreWaitOp(), next(op for op in block.ops if any(inner in atomics for inner in op.walk())))
        _insert(nv.SemaphoreSignalOp(), block.last_op)
        function.attributes["counters"] = integer(COUNTER_BYTES)
    return True


OrderAtomics = function_pass("order-atomics", order_atomics, nv.FuncOp)


def _insert(made: Operation, before: Operation) -> None:
    adopt_location([made], before)
    Rewriter.insert_op(made, InsertPoint.before(before))
