"""`prefetch-epilogue`: issues the loads of an epilogue while the last dots of the main loop run.

A wait for a loop's accumulators may be followed by a load of a bias, a residual or the like. The load moves in front of
the wait, which takes as long as before: the loaded tile arrives meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.ir.pipe.warp_groups import ConsumerReleaseOp, DotWaitOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before


def prefetch_epilogues(function: tile.FuncOp, has_room: Callable[[tile.LoadOp], bool] = lambda load: True) -> int:
    """Moves a load in front of each wait for accumulators of a loop, if it `has_room` beside them; how many."""
    waits = [op for op in function.body.walk() if isinstance(op, DotWaitOp)]
    return sum(_overtake(op, has_room) for op in waits if isinstance(op.pending.owner, scf.ForOp))


PrefetchEpilogue = function_pass("prefetch-epilogue", prefetch_epilogues)


def _overtake(wait: DotWaitOp, has_room: Callable[[tile.LoadOp], bool]) -> bool:
    """Moves the first load behind a wait that does not need it, and scalars that the load needs, in front of it."""
    held: set[SSAValue] = set(wait.results)
    numbers: list[Operation] = []
    behind = wait.next_op
    while behind is not None:
        if isinstance(behind, tile.LoadOp) and held.isdisjoint(behind.operands) and has_room(behind):
            moved = [*_needed(behind, numbers), behind]
            for op in moved:
                op.detach()
            insert_before(wait, moved)
            return True
        if is_side_effect_free(behind) and not behind.regions and held.isdisjoint(behind.operands):
            numbers.append(behind)
        elif behind.regions or not (is_side_effect_free(behind) or isinstance(behind, tile.LoadOp | ConsumerReleaseOp)):
            # The memory that is read may be written here.
            return False
        else:
            held.update(behind.results)
        behind = behind.next_op
    return False


def _needed(load: tile.LoadOp, numbers: list[Operation]) -> list[Operation]:
    """Those ops that a load rests on, in order."""
    wanted, found = set[SSAValue](load.operands), list[Operation]()
    for op in reversed(numbers):
        if not wanted.isdisjoint(op.results):
            wanted.update(op.operands)
            found.insert(0, op)
    return found
