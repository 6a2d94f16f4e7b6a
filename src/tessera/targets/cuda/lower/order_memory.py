"""order-memory: threads of a block wait for each other where one may touch what another one has yet to read or write.

A tile function loads and stores in the order in which it is written. Its threads do not: one that is ahead stores while
another has not loaded. Between two accesses of the same memory, one of which writes, comes a barrier, unless each
thread meets only elements of its own: both access the same coordinates of the same view, in the same layout.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import get_effects

from tessera.ir.common.effects import MEMORY, READ
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.types import layout_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before


class _Access(NamedTuple):
    """One access of memory since the last barrier: whether it writes, and the elements of each thread, where known."""

    memory: SSAValue
    writes: bool
    is_atomic: bool
    own: tuple[object, ...] | None

    def meets(self, other: _Access) -> bool:
        """Whether another access of other threads may touch the same element, and the order of both shows."""
        if self.memory is not other.memory or not (self.writes or other.writes) or (self.is_atomic and other.is_atomic):
            return False
        return self.own is None or self.own != other.own

    def forgotten(self) -> _Access:
        """The same access in an earlier iteration: where that was is not known any more."""
        return self._replace(own=None)


def order_memory(function: nv.FuncOp) -> int:
    """Puts barriers into a function without partitions, and returns how many."""
    return _Ordering(function.thread_count).block(function.body.block, frozenset[_Access]())[1]


OrderMemory = function_pass("order-memory", order_memory, nv.FuncOp)


class _Ordering:
    """One walk over a function in program order."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def block(self, block: Block, before: frozenset[_Access]) -> tuple[frozenset[_Access], int]:
        """The accesses since the last barrier at the end of a block, with `before` at its start; and new barriers."""
        pending: frozenset[_Access] = before
        count = 0
        for op in list(block.ops):
            if isinstance(op, scf.ForOp | scf.WhileOp):
                pending, more = self._loop(op, pending)
                count += more
            elif op.regions:
                ends = [self.block(inner, pending) for region in op.regions for inner in region.blocks]
                pending = pending.union(*(end for end, _ in ends))
                count += sum(more for _, more in ends)
            elif isinstance(op, nv.BarrierOp):
                pending = frozenset[_Access]()
            else:
                found = self._accesses(op)
                if any(one.meets(other) for one in found for other in pending):
                    insert_before(op, [nv.BarrierOp()])
                    pending, count = frozenset[_Access](), count + 1
                pending |= found
        return pending, count

    def _loop(self, op: Operation, before: frozenset[_Access]) -> tuple[frozenset[_Access], int]:
        """Puts barriers into a loop: accesses of an iteration meet those of the next one."""
        pending: frozenset[_Access] = before
        count = 0
        for _ in range(2):
            for region in op.regions:
                for inner in region.blocks:
                    pending, more = self.block(inner, pending)
                    count += more
            pending = frozenset([one.forgotten() for one in pending])
        # A loop may have no iterations.
        return pending | before, count

    def _accesses(self, op: Operation) -> frozenset[_Access]:
        """The accesses of an op to memory of arguments."""
        touched = [
            (one.value, one.kind)
            for one in get_effects(op) or ()
            if one.resource == MEMORY and isinstance(one.value, SSAValue) and isinstance(one.value.type, ViewType)
        ]
        written = {memory for memory, kind in touched if kind is not READ}
        is_atomic, own = isinstance(op, tile.Atomic), self._own(op)
        return frozenset(_Access(memory, memory in written, is_atomic, own) for memory, _ in touched)

    def _own(self, op: Operation) -> tuple[object, ...] | None:
        """The view, offsets and layout that say which thread touches which element; None where several touch one."""
        if not isinstance(op, tile.LoadOp | tile.StoreOp):
            return None
        moved = op.result if isinstance(op, tile.LoadOp) else op.value
        layout = layout_of(moved)
        if layout.has_replicas or layout.thread_count != self.threads:
            return None
        return (op.view, *op.offsets, moved.type)
