"""`early-loads`: memory that a program reads behind its products is read while the last of them run.

A wait for the sums of a loop's products is followed by loads of what is added to them, and the like. Those come in
front of the wait: it takes as long as ever, and what was asked for arrives meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from tessera.dialects import tile
from tessera.dialects.pipe_agents import DotAwaitOp, ReleaseOp
from tessera.transforms.rewriting import insert_before


@dataclass(frozen=True)
class EarlyLoads(ModulePass):
    """The pass, for every tile function with roles."""

    name = "early-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            early_loads(function)


def early_loads(function: tile.FuncOp) -> int:
    """Puts loads in front of waits for the sums of loops; how many."""
    waits = [op for op in function.body.walk() if isinstance(op, DotAwaitOp)]
    return sum(_overtake(op) for op in waits if isinstance(op.pending.owner, scf.ForOp))


def _overtake(wait: DotAwaitOp) -> int:
    """Loads behind a wait that rest on nothing between, and the numbers that they need, come in front of it."""
    held: set[SSAValue] = set(wait.results)
    numbers: list[Operation] = []
    moved = 0
    behind = wait.next_op
    while behind is not None:
        following = behind.next_op
        if isinstance(behind, tile.LoadOp) and held.isdisjoint(behind.operands):
            needed = _needed(behind, numbers)
            for op in (*needed, behind):
                op.detach()
            insert_before(wait, [*needed, behind])
            numbers = [op for op in numbers if op not in needed]
            moved += 1
        elif is_side_effect_free(behind) and not behind.regions and held.isdisjoint(behind.operands):
            numbers.append(behind)
        elif behind.regions or not (is_side_effect_free(behind) or isinstance(behind, tile.LoadOp | ReleaseOp)):
            # Somebody may write what is read.
            break
        else:
            held.update(behind.results)
        behind = following
    return moved


def _needed(load: tile.LoadOp, numbers: list[Operation]) -> list[Operation]:
    """Those ops that a load rests on, in order."""
    wanted, found = set[SSAValue](load.operands), list[Operation]()
    for op in reversed(numbers):
        if not wanted.isdisjoint(op.results):
            wanted.update(op.operands)
            found.insert(0, op)
    return found
