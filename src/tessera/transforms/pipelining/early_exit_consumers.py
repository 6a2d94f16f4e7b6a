"""`early-exit-consumers`: a consumer leaves a loop once its own rows need no more iterations.

Loops end where the last row of a program instance needs them to (`live_iterations.clip_ranges` marks such ends); the
rows of the first consumers need less. Stages that the producer fills for the other consumers are still waited for and
released, in a loop behind everything else that this consumer does for the instance.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location, insert_before
from tessera.transforms.core.tile_ops import Ops
from tessera.transforms.loops.live_iterations import ALL_ROWS, ROWS_END

_index = IndexType()


def exit_early(function: tile.FuncOp) -> None:
    """Shortens the loops of consumers to the iterations of their own rows."""
    for partitions in [op for op in function.body.walk() if isinstance(op, warp_groups.WarpSpecializeOp)]:
        if partitions.consumers.value.data == 1:
            continue
        for loop in [op for op in partitions.consumer.walk() if isinstance(op, scf.ForOp)]:
            rows = rows_in(loop)
            if rows is not None and _is_marked(loop.ub) and ALL_ROWS not in loop.attributes:
                _Loop(loop, partitions.consumers.value.data, rows).shorten()


EarlyExitConsumers = function_pass("early-exit-consumers", exit_early)


def rows_in(loop: scf.ForOp) -> int | None:
    """How many rows a consumer has, by the accumulators of its dots in a loop."""
    starts = [op for op in loop.body.block.ops if isinstance(op, warp_groups.DotStartOp)]
    found = {warp_groups.accumulator_type(op.c).get_shape()[0] for op in starts}
    found |= {tile_type(op.c).get_shape()[0] for op in loop.body.block.ops if isinstance(op, tile.DotOp)}
    return found.pop() if len(found) == 1 else None


def _is_marked(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, arith.MinSIOp | arith.MaxSIOp):
        return _is_marked(owner.lhs) or _is_marked(owner.rhs)
    return isinstance(owner, Operation) and ROWS_END in owner.attributes


@dataclass
class _Loop:
    """Rewrites one loop of a consumer."""

    loop: scf.ForOp
    consumers: int
    rows: int

    def shorten(self) -> None:
        states = self._last_states()
        if states is None:
            return
        front = Ops()
        add, constant = front.add, front.index
        consumer = add(warp_groups.ConsumerIdOp())
        behind = add(arith.SubiOp(constant(self.consumers - 1), consumer))

        def end_of(value: SSAValue) -> SSAValue:
            """A bound for the rows of this consumer alone."""
            owner = value.owner
            if isinstance(owner, arith.MinSIOp | arith.MaxSIOp) and _is_marked(value):
                return add(type(owner)(end_of(owner.lhs), end_of(owner.rhs)))
            mark = owner.attributes.get(ROWS_END) if isinstance(owner, Operation) else None
            if not isinstance(mark, IntegerAttr):
                return value
            fewer = add(arith.MuliOp(behind, constant(self.rows * mark.value.data)))
            return add(arith.SubiOp(value, fewer))

        loop = self.loop
        end = add(arith.MinSIOp(loop.ub, end_of(loop.ub)))
        zero, whole_end = constant(0), loop.ub

        def iterations(stop: SSAValue) -> SSAValue:
            distance = add(arith.MaxSIOp(add(arith.SubiOp(stop, loop.lb)), zero))
            return add(arith.CeilDivSIOp(distance, loop.step))

        left = add(arith.SubiOp(iterations(whole_end), iterations(end)))
        one = constant(1)
        insert_before(loop, front.ops)
        loop.operands[1] = end
        self._drain(states, (zero, left, one))

    def _last_states(self) -> dict[SSAValue, SSAValue] | None:
        """The last pipeline state of each ring that the loop waits for, as the block around yields it; None where one
        is not found."""
        block = self.loop.parent_block()
        assert block is not None
        last = block.last_op
        assert last is not None
        found: dict[SSAValue, SSAValue] = {}
        for wait in [op for op in self.loop.body.block.ops if isinstance(op, warp_groups.ConsumerWaitOp)]:
            carried = wait.state
            if (
                not isinstance(carried, BlockArgument)
                or carried.block is not self.loop.body.block
                or wait.ring in found
            ):
                return None
            state: SSAValue = self.loop.results[carried.index - 1]
            while (following := _next(state, block)) is not None:
                state = following
            if not any(operand is state for operand in last.operands):
                return None
            found[wait.ring] = state
        return found or None

    def _drain(self, states: dict[SSAValue, SSAValue], bounds: tuple[SSAValue, SSAValue, SSAValue]) -> None:
        """Drains the stages that are left, in a loop at the end of the block around."""
        block = self.loop.parent_block()
        assert block is not None
        last = block.last_op
        assert last is not None
        made = draining(states, bounds)
        adopt_location([made], self.loop)
        insert_before(last, [made])
        for state, result in zip(states.values(), made.results, strict=True):
            for index, operand in enumerate(last.operands):
                if operand is state:
                    last.operands[index] = result


def draining(states: dict[SSAValue, SSAValue], bounds: tuple[SSAValue, SSAValue, SSAValue]) -> scf.ForOp:
    """A loop that waits for a tile of each ring in every iteration, and releases it."""
    body = Block(arg_types=[_index, *(state.type for state in states.values())])
    following: list[SSAValue] = []
    for ring, state in zip(states, body.args[1:], strict=True):
        ops = [
            warp_groups.ConsumerWaitOp(ring, state),
            warp_groups.ConsumerReleaseOp(ring, state),
            warp_groups.AdvanceOp(state),
        ]
        body.add_ops(ops)
        following.append(ops[-1].results[0])
    body.add_op(scf.YieldOp(*following))
    return scf.ForOp(*bounds, list(states.values()), Region(body))


def _next(state: SSAValue, block: Block) -> SSAValue | None:
    """The pipeline state that follows another one in the same block."""
    for use in state.uses:
        if isinstance(use.operation, warp_groups.AdvanceOp) and use.operation.parent_block() is block:
            return use.operation.result
    return None
