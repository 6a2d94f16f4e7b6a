"""`one-by-one`: agents begin the products of a turn one after the other, so that one computes while another multiplies.

Agents that are left to themselves come to do the same at the same time: all multiply, each at a part of the machine's
speed, and then all compute, and nothing multiplies. Where what they compute in a turn takes longer than their products
have left to run, this shows. Here an agent begins all products of a turn (`pipe.enter`, `pipe.leave`) before the next
one begins its own.

It is for loops that multiply what they compute, and that all agents go through equally often: loops and branches
around them must not depend on which agent it is. So it comes behind `skip-turns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.dialects import pipe_agents, tile
from tessera.dialects.pipe_order import EnterOp, LeaveOp
from tessera.transforms.rewriting import adopt_location


@dataclass(frozen=True)
class OneByOne(ModulePass):
    """The pass, for every tile function with roles."""

    name = "one-by-one"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            one_by_one(function)


def one_by_one(function: tile.FuncOp) -> int:
    """Orders the products of agents in every loop where that may be done; says in how many."""
    count = 0
    for roles in [op for op in function.body.walk() if isinstance(op, pipe_agents.RolesOp)]:
        if roles.agents.value.data == 1:
            continue
        own = _own_values(roles)
        for loop in [op for op in roles.computes.walk() if isinstance(op, scf.ForOp)]:
            starts = [op for op in loop.body.block.ops if isinstance(op, pipe_agents.DotStartOp)]
            computed = any(not isinstance(factor_source(op.a), pipe_agents.TakeOp) for op in starts)
            if len(starts) > 1 and computed and not _depends(loop, own):
                _order(starts)
                count += 1
    return count


def factor_source(value: SSAValue) -> Operation | Block:
    """What a factor was, before it was turned."""
    owner = value.owner
    while isinstance(owner, tile.TransOp):
        owner = owner.operand.owner
    return owner


def _order(starts: list[pipe_agents.DotStartOp]) -> None:
    block = starts[0].parent_block()
    assert block is not None
    enter, leave = EnterOp(), LeaveOp()
    adopt_location([enter, leave], starts[0])
    block.insert_op_before(enter, starts[0])
    block.insert_op_after(leave, starts[-1])


def _depends(loop: scf.ForOp, own: set[SSAValue]) -> bool:
    """Whether agents go through a loop differently often."""
    op: Operation | None = loop
    while op is not None and not isinstance(op, pipe_agents.RolesOp):
        if isinstance(op, scf.IfOp) and op.cond in own:
            return True
        if isinstance(op, scf.ForOp) and own & {op.lb, op.ub, op.step}:
            return True
        if isinstance(op, scf.WhileOp) and any(value in own for value in _conditions(op)):
            return True
        op = op.parent_op()
    return False


def _conditions(op: scf.WhileOp) -> Iterator[SSAValue]:
    end = op.before_region.block.last_op
    if isinstance(end, scf.ConditionOp):
        yield end.condition


def _own_values(roles: pipe_agents.RolesOp) -> set[SSAValue]:
    """Values that may differ between agents: what is made of their numbers, or of their tiles."""
    own: set[SSAValue] = set()
    before = -1
    while len(own) != before:
        before = len(own)
        for op in roles.computes.walk():
            for region in op.regions:
                own.update(list(_carried(op, region.block, own)))
            differs = isinstance(op, pipe_agents.AgentOp | pipe_agents.TakeOp)
            if differs or (not op.regions and any(value in own for value in op.operands)):
                own.update(op.results)
    return own


def _carried(op: Operation, block: Block, own: set[SSAValue]) -> Iterator[SSAValue]:
    """Values that a loop or branch hands on, of those that differ."""
    end = block.last_op
    assert end is not None
    chosen = isinstance(op, scf.IfOp) and op.cond in own
    bounds = isinstance(op, scf.ForOp) and bool(own & {op.lb, op.ub, op.step})
    if isinstance(op, scf.ForOp):
        if bounds:
            yield block.args[0]
        for start, argument, last, result in zip(op.iter_args, block.args[1:], end.operands, op.results, strict=True):
            if bounds or start in own or last in own:
                yield from (argument, result)
    elif isinstance(op, scf.IfOp):
        yield from (result for last, result in zip(end.operands, op.results, strict=False) if chosen or last in own)
    elif any(value in own for value in (*op.operands, *end.operands)):
        yield from (*block.args, *op.results)
