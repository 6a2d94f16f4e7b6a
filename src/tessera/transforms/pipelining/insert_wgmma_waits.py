"""`insert-wgmma-waits`: makes the dots of consumers asynchronous, and waits for them where their accumulators are used.

A dot is issued where it stood. The wait stands in front of the first op that reads the accumulator, and the operands of
the dot are released right behind it; where an accumulator is passed on to a dot of the same iteration, they are
released while that one runs. Accumulators that a loop carries from dot to dot, with no other reader, stay in flight: an
iteration issues its dots, and releases the operands of the iteration before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
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
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.core.slices import end_of, operand_source


@dataclass(frozen=True)
class InsertWgmmaWaits(ModulePass):
    """The pass, for every tile function that has roles."""

    name = "insert-wgmma-waits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            insert_waits(function)


def insert_waits(function: tile.FuncOp) -> None:
    """Lets the products of all agents that compute run by themselves."""
    for op in function.body.block.ops:
        if isinstance(op, WarpSpecializeOp):
            _place(op.consumer.block)


def _place(block: Block) -> None:
    for op in list(block.ops):
        chains = _chains(op) if isinstance(op, scf.ForOp) else []
        if isinstance(op, scf.ForOp) and chains:
            _carry_on(op, chains)
            continue
        for region in op.regions:
            for inner in region.blocks:
                _place(inner)
    _Sequence(block).run()


def _has_products(op: Operation) -> bool:
    return any(isinstance(inner, tile.DotOp | DotStartOp) for inner in op.walk())


def _depth(ring: SSAValue) -> int:
    return pipe.ring_type(ring).depth.data


# In a row


class _Sequence:
    """The products of one block. None of them runs when it is entered, and none when it is left."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.products: list[tile.DotOp] = []
        self.started: list[DotStartOp] = []
        self.done = 0
        """So many of them, the oldest, have been waited for."""
        self.running: dict[SSAValue, DotStartOp] = {}
        """By the sums of the old product, those that nobody has got yet."""
        self.taken: dict[tuple[SSAValue, SSAValue], ConsumerWaitOp] = {}
        self.late: list[ConsumerReleaseOp] = []
        """Releases that have to wait for a product."""

    def run(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, ConsumerReleaseOp):
                self._release(op)
                continue
            if op.has_trait(IsTerminator) or (_has_products(op) and not isinstance(op, tile.DotOp)):
                self._wait_for_all(op)
            for value in self._looks_at(op):
                self._await(value, op)
            if isinstance(op, tile.DotOp):
                self._start(op)
            elif isinstance(op, ConsumerWaitOp):
                self._make_room(op)
                self.taken[op.ring, op.state] = op
        for op in reversed(self.products):
            op.detach()
            op.erase()

    def _looks_at(self, op: Operation) -> list[SSAValue]:
        """The sums that have to be there for an op. A product goes on with sums that nobody else has as they are."""
        used = [value for inner in op.walk() for value in inner.operands]
        if isinstance(op, tile.DotOp) and op.c.has_one_use():
            used.remove(op.c)
        return [value for value in dict.fromkeys(used) if value in self.running]

    def _start(self, op: tile.DotOp) -> None:
        sums = self.running.pop(op.c, None)
        start = DotStartOp(op.a, op.b, op.c if sums is None else sums.result)
        insert_before(op, [start])
        self.products.append(op)
        self.started.append(start)
        self.running[op.result] = start
        if sums is not None:
            self._free_older(op)

    def _free_older(self, before: Operation) -> None:
        """What others than the youngest product have read is released as soon as they are done."""
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
        """So many products have been waited for: releases that they kept come next."""
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
        """Whether a tile can be released: all that read it have been waited for, and earlier ones are released."""
        first = next((other for other in self.late if other.ring is op.ring), op)
        return first is op and self._readers(op) <= self.done

    def _readers(self, op: ConsumerReleaseOp) -> int:
        """How many products have begun when the last one that reads a tile has."""
        take = self.taken.get((op.ring, op.state))
        numbered = enumerate(self.started, 1)
        return max(
            (number for number, start in numbered if take in (operand_source(start.a), operand_source(start.b))),
            default=0,
        )

    def _make_room(self, op: ConsumerWaitOp) -> None:
        """Waits until there is a slot for the copy that is about to be taken."""
        late = [other for other in self.late if other.ring is op.ring]
        if len(late) >= _depth(op.ring):
            done = self._readers(late[0])
            insert_before(op, [DotsWaitOp(len(self.started) - done)])
            self._pass(done, op)


# Around a loop


@dataclass(frozen=True)
class _Chain:
    """Products that hand sums on, once around a loop: the place in which it carries them, and the last product."""

    place: int
    last: tile.DotOp


def _chains(loop: scf.ForOp) -> list[_Chain]:
    """How the sums of all products of a loop go around it; nothing if something else looks at any of them."""
    body = loop.body.block
    products = [op for op in body.ops if isinstance(op, tile.DotOp)]
    if any(op.regions and _has_products(op) for op in body.ops) or not _has_room(body):
        return []
    chains: list[_Chain] = []
    linked: set[Operation] = set()
    for place, sums in enumerate(body.args[1:]):
        found = list(_linked(sums, body))
        if found and _is_yielded(found[-1].result, place, body):
            chains.append(_Chain(place, found[-1]))
            linked.update(found)
    # Factors in registers would have to stay there until the next turn.
    lasting = all(isinstance(operand_source(factor), ConsumerWaitOp) for op in products for factor in (op.a, op.b))
    return chains if lasting and linked.issuperset(products) else []


def _linked(sums: SSAValue, body: Block) -> Iterator[tile.DotOp]:
    """Products that go on with sums, one after the other, as long as nobody else has them."""
    while (use := sums.get_user_of_unique_use()) is not None:
        if not isinstance(use, tile.DotOp) or use.c is not sums or use.parent_block() is not body:
            return
        yield use
        sums = use.result


def _is_yielded(sums: SSAValue, place: int, body: Block) -> bool:
    return sums.has_one_use() and end_of(body).operands[place] is sums


def _has_room(body: Block) -> bool:
    """Whether rings have slots for what two turns take."""
    takes = [op for op in body.ops if isinstance(op, ConsumerWaitOp)]
    return all(_depth(op.ring) >= 2 * sum(other.ring is op.ring for other in takes) for op in takes)


def _carry_on(loop: scf.ForOp, chains: Sequence[_Chain]) -> None:
    """Writes the first turn by itself: no product runs yet whose factors could be released."""
    body = loop.body.block
    first = _Turn(body, {body.args[0]: loop.lb, **dict(zip(body.args[1:], loop.iter_args, strict=True))})
    chained = {chain.place for chain in chains}
    types = [value.type for value in loop.results]
    for place in chained:
        types[place] = PendingType(types[place])
    inner = Block(arg_types=[body.args[0].type, *types, *(state.type for _, state in first.held)])
    for old, new in zip(body.args, inner.args, strict=False):
        new.name_hint = old.name_hint
    before = inner.args[len(body.args) :]
    held = [(ring, state) for (ring, _), state in zip(first.held, before, strict=True)]
    turn = _Turn(body, dict(zip(body.args, inner.args, strict=False)), held)
    inner.add_ops([*turn.ops, scf.YieldOp(*turn.yielded, *(state for _, state in turn.held))])
    at, second = _second(loop)
    rest = scf.ForOp(second, loop.ub, loop.step, [*first.yielded, *(state for _, state in first.held)], Region(inner))
    rest.attributes.update(loop.attributes)
    results: list[SSAValue] = list(rest.results[: len(types)])
    waits: list[Operation] = []
    for chain in sorted(chains, key=lambda chain: turn.products.index(chain.last)):
        wait = DotWaitOp(results[chain.place], len(turn.products) - 1 - turn.products.index(chain.last))
        results[chain.place] = wait.result
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


class _Turn:
    """The ops of one turn, whose products are only begun; `before` is what the turn before it still holds."""

    def __init__(
        self, body: Block, values: dict[SSAValue, SSAValue], before: Sequence[tuple[SSAValue, SSAValue]] = ()
    ) -> None:
        self.ops: list[Operation] = []
        self.held: list[tuple[SSAValue, SSAValue]] = []
        """The rings and cursors of what it takes."""
        self.products = [op for op in body.ops if isinstance(op, tile.DotOp)]
        end = end_of(body)
        for op in body.ops:
            if isinstance(op, ConsumerReleaseOp):
                self.held.append((op.ring, values.get(op.state, op.state)))
            elif isinstance(op, tile.DotOp):
                start = DotStartOp(*(values.get(value, value) for value in op.operands))
                start.location = op.location
                values[op.result] = start.result
                self.ops.append(start)
                if before and op is self.products[-1]:
                    self.ops += [DotsWaitOp(len(self.products)), *(ConsumerReleaseOp(*held) for held in before)]
            elif op is not end:
                self.ops.append(op.clone(values))
        self.yielded = [values.get(value, value) for value in end.operands]


def _second(loop: scf.ForOp) -> tuple[list[Operation], SSAValue]:
    """The counter of the second turn, and the ops that compute it."""
    if integer_of(loop.lb) == 0:
        return [], loop.step
    op = arith.AddiOp(loop.lb, loop.step)
    return [op], op.result


def _runs(loop: scf.ForOp) -> bool:
    """Whether a loop certainly has a turn."""
    first, stop = integer_of(loop.lb), integer_of(loop.ub)
    return first is not None and stop is not None and first < stop
