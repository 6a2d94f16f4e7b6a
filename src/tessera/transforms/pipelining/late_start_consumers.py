"""`late-start-consumers`: a consumer starts a loop where its own rows first need it, and only drains the stages before.

Loops start where the first row of a program instance needs them to (`live_iterations.clip_ranges` marks such starts);
rows of the last consumers need them later. Stages that the producer fills for the other consumers are waited for and
released in front of the loop. The other end is the work of `early-exit-consumers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location, insert_before
from tessera.transforms.loops.live_iterations import ROWS_BEGIN, Scalars, is_marked
from tessera.transforms.pipelining.early_exit_consumers import draining, rows_in


def start_late(function: tile.FuncOp) -> None:
    """Starts the loops of consumers at the first iteration of their own rows."""
    for partitions in [op for op in function.body.walk() if isinstance(op, warp_groups.WarpSpecializeOp)]:
        if partitions.consumers.value.data == 1:
            continue
        for loop in [op for op in partitions.consumer.walk() if isinstance(op, scf.ForOp)]:
            rows, first = rows_in(loop), _first_iteration(loop)
            if rows is not None and first is not None:
                _Loop(loop, first, rows).begin_later()


LateStartConsumers = function_pass("late-start-consumers", start_late)


def _first_iteration(loop: scf.ForOp) -> SSAValue | None:
    """The induction variable of the first iteration, if it is marked: that of the loop, or of one peeled off it."""
    owner = loop.lb.owner
    if isinstance(owner, arith.AddiOp) and owner.rhs is loop.step and is_marked(owner.lhs, ROWS_BEGIN):
        return owner.lhs
    return loop.lb if is_marked(loop.lb, ROWS_BEGIN) else None


@dataclass
class _Loop:
    """One loop of a consumer, and the induction variable of its first iteration."""

    loop: scf.ForOp
    first: SSAValue
    rows: int

    def begin_later(self) -> None:
        whole = self._whole()
        states = None if whole is None else self._first_states(whole)
        if whole is None or states is None:
            return
        loop = self.loop
        uses = list(self.first.uses)
        owner = self.first.owner
        assert isinstance(owner, Operation)
        assert owner.next_op is not None
        scalars = Scalars(owner.next_op)
        own = self._for_consumer(scalars, self.first, scalars.add(warp_groups.ConsumerIdOp()))
        for use in uses:
            use.operation.operands[use.index] = own
        scalars = Scalars(whole)
        # A consumer without iterations of its own drains all that there are.
        end = scalars.add(arith.MinSIOp(own, loop.ub))
        distance = scalars.add(arith.MaxSIOp(scalars.add(arith.SubiOp(end, self.first)), scalars.index(0)))
        iterations = scalars.add(arith.CeilDivSIOp(distance, loop.step))
        made = draining(states, (scalars.index(0), iterations, scalars.index(1)))
        adopt_location([made], loop)
        insert_before(whole, [made])
        for state, following in zip(states.values(), made.results, strict=True):
            state.replace_uses_with_if(following, lambda use: _is_in(use.operation, whole))

    def _for_consumer(self, scalars: Scalars, value: SSAValue, consumer: SSAValue) -> SSAValue:
        """A number, for the rows of this consumer alone."""
        owner = value.owner
        if not isinstance(owner, Operation) or not is_marked(value, ROWS_BEGIN):
            return value
        mark = owner.attributes.get(ROWS_BEGIN)
        if isinstance(mark, IntegerAttr):
            share = scalars.index(self.rows * mark.value.data)
            return scalars.add(arith.AddiOp(value, scalars.add(arith.MuliOp(consumer, share))))
        given = {operand: self._for_consumer(scalars, operand, consumer) for operand in owner.operands}
        return scalars.add(owner.clone(given))

    def _whole(self) -> Operation | None:
        """The op, beside the first induction variable, that is or contains the loop and all waits for its rings."""
        assert isinstance(self.first.owner, Operation)
        block = self.first.owner.parent_block()
        found: Operation | None = self.loop
        while found is not None and found.parent_block() is not block:
            found = found.parent_op()
        end = self.loop.ub.owner
        if found is None or (isinstance(end, Operation) and _is_in(end, found)):
            return None
        loops = [op for op in found.walk() if isinstance(op, scf.ForOp) and _waits(op)]
        rings = {op.ring for op in _waits(self.loop)}
        alike = all(op.ring in rings for op in found.walk() if isinstance(op, warp_groups.ConsumerWaitOp))
        return found if loops == [self.loop] and alike else None

    def _first_states(self, whole: Operation) -> dict[SSAValue, SSAValue] | None:
        """The pipeline state in front of `whole`, for each ring of the loop; None where one has more than one tile in
        an iteration."""
        found: dict[SSAValue, SSAValue] = {}
        for wait in _waits(self.loop):
            if wait.ring in found:
                return None
            first = next(
                op for op in whole.walk() if isinstance(op, warp_groups.ConsumerWaitOp) and op.ring is wait.ring
            )
            state = _from_outside(first.state, whole)
            if state is None:
                return None
            found[wait.ring] = state
        return found or None


def _waits(loop: scf.ForOp) -> list[warp_groups.ConsumerWaitOp]:
    return [op for op in loop.body.block.ops if isinstance(op, warp_groups.ConsumerWaitOp)]


def _is_in(op: Operation, whole: Operation) -> bool:
    return op is whole or whole.is_ancestor(op)


def _from_outside(state: SSAValue, whole: Operation) -> SSAValue | None:
    """The pipeline state in front of an op that a state in it starts from."""
    while isinstance(state, BlockArgument):
        loop = state.block.parent_op()
        if loop is None or not _is_in(loop, whole):
            return state
        if not isinstance(loop, scf.ForOp) or state.index == 0:
            return None
        state = loop.iter_args[state.index - 1]
    owner = state.owner
    assert isinstance(owner, Operation)
    return None if _is_in(owner, whole) else state
