"""`insert-wgmma-waits`: makes the dots of consumers asynchronous, and waits for them where their accumulators are used.

A dot is issued where it stood. The wait stands in front of the first op that reads the accumulator, and the operands of
the dot are released right behind it; where an accumulator is passed on to a dot of the same iteration, they are
released while that one runs. Accumulators that a loop carries from dot to dot, with no other reader, stay in flight: an
iteration issues its dots, and releases the operands of the iteration before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe.warp_groups import (
    ConsumerReleaseOp,
    ConsumerWaitOp,
    DotStartOp,
    DotsWaitOp,
    DotWaitOp,
    PendingType,
    WarpSpecializeOp,
)
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.constants import integer_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.core.slices import end_of, operand_source


def insert_waits(function: tile.FuncOp) -> None:
    """Makes the dots of all consumers asynchronous."""
    for op in function.body.block.ops:
        if isinstance(op, WarpSpecializeOp):
            _insert_waits(op.consumer.block)


InsertWgmmaWaits = function_pass("insert-wgmma-waits", insert_waits)


def _insert_waits(block: Block) -> None:
    for op in list(block.ops):
        chains = _chains(op) if isinstance(op, scf.ForOp) else []
        if isinstance(op, scf.ForOp) and chains:
            _carry_on(op, chains)
            continue
        for region in op.regions:
            for inner in region.blocks:
                _insert_waits(inner)
    _Sequence(block).run()


def _has_dots(op: Operation) -> bool:
    return any(isinstance(inner, tile.DotOp | DotStartOp) for inner in op.walk())


def _depth(ring: SSAValue) -> int:
    return pipe.ring_type(ring).depth.data


# In a row


class _Sequence:
    """The dots of one block. None of them runs when it is entered, and none when it is left."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.dots: list[tile.DotOp] = []
        self.started: list[DotStartOp] = []
        self.done = 0
        """So many of them, the oldest, have been waited for."""
        self.running: dict[SSAValue, DotStartOp] = {}
        """Dots that have not been waited for, by the results of the dots that they replace."""
        self.waits: dict[tuple[SSAValue, SSAValue], ConsumerWaitOp] = {}
        self.late: list[ConsumerReleaseOp] = []
        """Releases that have to wait for a dot."""

    def run(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, ConsumerReleaseOp):
                self._release(op)
                continue
            if op.has_trait(IsTerminator) or (_has_dots(op) and not isinstance(op, tile.DotOp)):
                self._wait_for_all(op)
            for value in self._looks_at(op):
                self._await(value, op)
            if isinstance(op, tile.DotOp):
                self._start(op)
            elif isinstance(op, ConsumerWaitOp):
                self._make_room(op)
                self.waits[op.ring, op.state] = op
        for op in reversed(self.dots):
            op.detach()
            op.erase()

    def _looks_at(self, op: Operation) -> list[SSAValue]:
        """The accumulators that an op has to wait for. A dot that is the only user of its own does not wait for it."""
        used = [value for inner in op.walk() for value in inner.operands]
        if isinstance(op, tile.DotOp) and op.c.has_one_use():
            used.remove(op.c)
        return [value for value in dict.fromkeys(used) if value in self.running]

    def _start(self, op: tile.DotOp) -> None:
        pending = self.running.pop(op.c, None)
        start = DotStartOp(op.a, op.b, op.c if pending is None else pending.result)
        insert_before(op, [start])
        self.dots.append(op)
        self.started.append(start)
        self.running[op.result] = start
        if pending is not None:
            self._free_older(op)

    def _free_older(self, before: Operation) -> None:
        """Releases the operands of all dots but the youngest as soon as these are done."""
        done = len(self.started) - 1
        if any(self._readers(op) <= done for op in self.late):
            insert_before(before, [DotsWaitOp(1)])
            self._pass(done, before)

    def _await(self, value: SSAValue, before: Operation) -> None:
        start = self.running.pop(value)
        behind = len(self.started) - 1 - self.started.index(start)
        wait = DotWaitOp(start.result, behind)
        wait.location, wait.result.name_hint = start.location, value.name_hint
        insert_before(before, [wait])
        value.replace_all_uses_with(wait.result)
        self._pass(len(self.started) - behind, before)

    def _wait_for_all(self, before: Operation) -> None:
        for value in list(self.running):
            self._await(value, before)

    def _pass(self, done: int, before: Operation) -> None:
        """Notes that so many dots have been waited for, and inserts the releases that were waiting for them."""
        self.done = max(self.done, done)
        for op in list(self.late):
            if self._is_free(op):
                self.late.remove(op)
                insert_before(before, [op])

    def _release(self, op: ConsumerReleaseOp) -> None:
        if not self._is_free(op):
            op.detach()
            self.late.append(op)

    def _is_free(self, op: ConsumerReleaseOp) -> bool:
        """Whether a tile can be released: all dots that read it are waited for, and earlier tiles are released."""
        first = next((other for other in self.late if other.ring is op.ring), op)
        return first is op and self._readers(op) <= self.done

    def _readers(self, op: ConsumerReleaseOp) -> int:
        """The number of dots up to the last one that reads a tile."""
        wait = self.waits.get((op.ring, op.state))
        numbered = enumerate(self.started, 1)
        return max(
            (number for number, start in numbered if wait in (operand_source(start.a), operand_source(start.b))),
            default=0,
        )

    def _make_room(self, op: ConsumerWaitOp) -> None:
        """Waits until there is a slot for the copy that is about to be waited for."""
        late = [other for other in self.late if other.ring is op.ring]
        if len(late) >= _depth(op.ring):
            done = self._readers(late[0])
            insert_before(op, [DotsWaitOp(len(self.started) - done)])
            self._pass(done, op)


# Around a loop


@dataclass(frozen=True)
class _Chain:
    """Dots that pass an accumulator on, around a loop: the index of its carried value, and the last dot."""

    index: int
    last: tile.DotOp


def _chains(loop: scf.ForOp) -> list[_Chain]:
    """How the accumulators of all dots of a loop go around it; none if something else reads any of them."""
    body = loop.body.block
    dots = [op for op in body.ops if isinstance(op, tile.DotOp)]
    if any(op.regions and _has_dots(op) for op in body.ops) or not _has_room(body):
        return []
    chains: list[_Chain] = []
    linked: set[Operation] = set()
    for index, accumulator in enumerate(body.args[1:]):
        found = list(_linked(accumulator, body))
        if found and _is_yielded(found[-1].result, index, body):
            chains.append(_Chain(index, found[-1]))
            linked.update(found)
    # Operands in registers would have to stay there until the next iteration.
    lasting = all(isinstance(operand_source(operand), ConsumerWaitOp) for op in dots for operand in (op.a, op.b))
    return chains if lasting and linked.issuperset(dots) else []


def _linked(accumulator: SSAValue, body: Block) -> Iterator[tile.DotOp]:
    """Dots that add to an accumulator, one after the other, as long as it has no other user."""
    while (use := accumulator.get_user_of_unique_use()) is not None:
        if not isinstance(use, tile.DotOp) or use.c is not accumulator or use.parent_block() is not body:
            return
        yield use
        accumulator = use.result


def _is_yielded(accumulator: SSAValue, index: int, body: Block) -> bool:
    return accumulator.has_one_use() and end_of(body).operands[index] is accumulator


def _has_room(body: Block) -> bool:
    """Whether rings have slots for the tiles of two iterations."""
    waits = [op for op in body.ops if isinstance(op, ConsumerWaitOp)]
    return all(_depth(op.ring) >= 2 * sum(other.ring is op.ring for other in waits) for op in waits)


def _carry_on(loop: scf.ForOp, chains: Sequence[_Chain]) -> None:
    """Peels the first iteration: no dot runs before it whose operands could be released."""
    body = loop.body.block
    first = _Iteration(body, {body.args[0]: loop.lb, **dict(zip(body.args[1:], loop.iter_args, strict=True))})
    chained = {chain.index for chain in chains}
    types = [value.type for value in loop.results]
    for index in chained:
        types[index] = PendingType(types[index])
    inner = Block(arg_types=[body.args[0].type, *types, *(state.type for _, state in first.held)])
    for old, new in zip(body.args, inner.args, strict=False):
        new.name_hint = old.name_hint
    before = inner.args[len(body.args) :]
    held = [(ring, state) for (ring, _), state in zip(first.held, before, strict=True)]
    iteration = _Iteration(body, dict(zip(body.args, inner.args, strict=False)), held)
    inner.add_ops([*iteration.ops, scf.YieldOp(*iteration.yielded, *(state for _, state in iteration.held))])
    at, second = _second(loop)
    rest = scf.ForOp(second, loop.ub, loop.step, [*first.yielded, *(state for _, state in first.held)], Region(inner))
    rest.attributes.update(loop.attributes)
    results: list[SSAValue] = list(rest.results[: len(types)])
    waits: list[Operation] = []
    for chain in sorted(chains, key=lambda chain: iteration.dots.index(chain.last)):
        wait = DotWaitOp(results[chain.index], len(iteration.dots) - 1 - iteration.dots.index(chain.last))
        results[chain.index] = wait.result
        waits.append(wait)
    last = zip(held, rest.results[len(types) :], strict=True)
    waits += [ConsumerReleaseOp(ring, state) for (ring, _), state in last]
    ops = [*first.ops, *at, rest, *waits]
    if _runs(loop):
        replace(loop, ops, results)
        return
    some = arith.CmpiOp(loop.lb, loop.ub, "slt")
    then, otherwise = Block([*ops, scf.YieldOp(*results)]), Block([scf.YieldOp(*loop.iter_args)])
    branch = scf.IfOp(some.result, [value.type for value in loop.results], Region(then), Region(otherwise))
    replace(loop, [some, branch])


class _Iteration:
    """The ops of one iteration, which only issues its dots; `before` are the tiles that the one before still holds."""

    def __init__(
        self, body: Block, values: dict[SSAValue, SSAValue], before: Sequence[tuple[SSAValue, SSAValue]] = ()
    ) -> None:
        self.ops: list[Operation] = []
        self.held: list[tuple[SSAValue, SSAValue]] = []
        """The rings and pipeline states of the tiles it waits for."""
        self.dots = [op for op in body.ops if isinstance(op, tile.DotOp)]
        end = end_of(body)
        for op in body.ops:
            if isinstance(op, ConsumerReleaseOp):
                self.held.append((op.ring, values.get(op.state, op.state)))
            elif isinstance(op, tile.DotOp):
                start = DotStartOp(*(values.get(value, value) for value in op.operands))
                start.location = op.location
                values[op.result] = start.result
                self.ops.append(start)
                if before and op is self.dots[-1]:
                    self.ops += [DotsWaitOp(len(self.dots)), *(ConsumerReleaseOp(*held) for held in before)]
            elif op is not end:
                self.ops.append(op.clone(values))
        self.yielded = [values.get(value, value) for value in end.operands]


def _second(loop: scf.ForOp) -> tuple[list[Operation], SSAValue]:
    """The counter of the second iteration, and the ops that compute it."""
    if integer_of(loop.lb) == 0:
        return [], loop.step
    op = arith.AddiOp(loop.lb, loop.step)
    return [op], op.result


def _runs(loop: scf.ForOp) -> bool:
    """Whether a loop certainly has an iteration."""
    first, stop = integer_of(loop.lb), integer_of(loop.ub)
    return first is not None and stop is not None and first < stop
