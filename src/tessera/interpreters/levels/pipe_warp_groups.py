"""The meaning of agents that share rings: they run in every order that their waits allow, and copies land late.

A copy lands when somebody takes its turn, or by chance at once. A product is done when somebody waits for it. What is
released while it may still be read, taken twice or left behind is an error. Workers run one after the other: by chance
one finds that the others, which are yet to run, have been quicker, and drawn all programs that there were. Each worker
of a team fetches all of a tile that they share, and is held to what the first of them fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.casting import cast
from tessera.dtypes.types import f64
from tessera.errors import RaceError
from tessera.interpreters.core.concurrency import CooperativeThreads
from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.interpreters.core.views import Array, ArrayView, window
from tessera.interpreters.levels.pipe import Ring
from tessera.interpreters.levels.tile import Runner, multiply
from tessera.ir.common.elements import dtype_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import pingpong, tile_scheduler, transpose, warp_groups
from tessera.ir.tile.types import tile_dtype

_HINT = "every agent takes and releases every turn that is filled, and there are slots for those under way"


@dataclass(eq=False)
class Turns:
    """A ring that agents share: how many turns were filled, and how many each that reads it has taken and released."""

    ring: Ring
    value: SSAValue
    name: str
    taken: dict[int, int]
    released: dict[int, int]
    filled: int = 0
    inbound: dict[int, Callable[[], Array]] = field(default_factory=dict[int, Callable[[], Array]])
    """Copies on their way, by their turns."""
    ended: bool = False
    """Of a mailbox: there is nothing left to draw."""

    @property
    def depth(self) -> int:
        return len(self.ring.slots)

    def land(self, turn: int) -> None:
        """A copy arrives, if it has not yet."""
        copy = self.inbound.pop(turn, None)
        if copy is not None:
            self.ring.slots[turn % self.depth] = copy()

    def check_turn(self, turn: int, next_: int, verb: str) -> None:
        """Turns come in order, each once."""
        if turn == next_:
            return
        why = f"{verb} already" if turn < next_ else f"turn {next_} was not {verb} yet"
        raise RaceError(
            f"turn {turn} of {self.name} cannot be {verb}: {why}",
            hint="turns come in order, each once: check which cursor is used, and where pipe.advance is",
        )

    def check_end(self) -> None:
        for agent, released in self.released.items():
            if released < self.filled:
                taken = self.taken[agent]
                what = "taken" if taken < self.filled else "released"
                count = taken if taken < self.filled else released
                raise RaceError(
                    f"{self.filled} turns of {self.name} were filled, and {agent_name(agent)} has {what} {count}",
                    hint="every agent takes and releases every turn that is filled",
                )


@dataclass(eq=False)
class Product:
    """Sums under way: there is a value when it is done. `reads` are the turns that its factors are in."""

    finish: Callable[[], Array]
    reads: list[tuple[Turns, int]]
    value: Array | None = None
    used: str = ""
    """What the sums have become, in words; nothing can be made of them again."""


@dataclass(eq=False)
class Held:
    """A tile that an agent took; the array is kept so that no other is mistaken for it."""

    array: Array
    turns: Turns
    turn: int


@dataclass(eq=False)
class Stage:
    """What the agents of one `pipe.warp_specialize` share."""

    threads: CooperativeThreads
    count: int
    chance: np.random.Generator | None
    shared: dict[Ring, Turns] = field(default_factory=dict[Ring, Turns])
    place: int = 0
    """The agent that has the place."""

    def turns(self, ring: Ring, value: SSAValue) -> Turns:
        if ring not in self.shared:
            name = f"%{value.name_hint}" if value.name_hint else "a ring"
            readers = self._readers(value)
            self.shared[ring] = Turns(ring, value, name, dict.fromkeys(readers, 0), dict.fromkeys(readers, 0))
        return self.shared[ring]

    def _readers(self, ring: SSAValue) -> list[int]:
        """Who takes what is filled: those that compute, or whoever turns it. Numbers of programs are for all."""
        if transpose.is_transposed_from(ring):
            return [TURNS]
        reads = [use.operation for use in ring.uses if isinstance(use.operation, tile_scheduler.SchedulerReadOp)]
        also = [TURNS] if any(not warp_groups.is_in_consumer(op) for op in reads) else []
        return [*range(self.count), *also]


COPIES, TURNS = -1, -2
"""Numbers of the agents that do not compute."""


def agent_name(number: int) -> str:
    return {COPIES: "the agent that copies", TURNS: "the agent that turns"}.get(number, f"agent {number}")


@dataclass(eq=False)
class Member:
    """One agent: its number, its products under way, oldest first, and the tiles it took."""

    stage: Stage
    number: int
    products: list[Product] = field(default_factory=list[Product])
    held: dict[int, Held] = field(default_factory=dict[int, Held])
    placed: bool = False
    """Whether it has the place."""

    def hold(self, array: Array, turns: Turns, turn: int) -> None:
        self.held[id(array)] = Held(array, turns, turn)

    def origin(self, value: Any) -> Held | None:
        """The tile that was taken and is read by this value, which may be another view of it."""
        while value is not None and id(value) not in self.held:
            value = getattr(value, "base", None)
        return self.held.get(id(value))

    def guard(self, op: Operation, operands: Values) -> None:
        """Refuses to read what was released; loops and branches only hand it on."""
        if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            return
        for held in map(self.origin, operands):
            if held is not None and held.turn < held.turns.released[self.number]:
                raise RaceError(
                    f"{op.name} reads turn {held.turn} of {held.turns.name}, which this agent has released",
                    hint="put pipe.consumer_release behind the last op that reads the tile",
                )

    def finish(self, younger: int) -> None:
        """Ends all products but the youngest."""
        while len(self.products) > younger:
            done = self.products.pop(0)
            done.value = done.finish()


def _member(frame: Frame) -> Member:
    return frame.kept[Member]


def _wait(member: Member, ready: Callable[[], bool], waits_for: str) -> None:
    member.stage.threads.wait(ready, waits_for)


# Who does what


@meaning(warp_groups.WarpSpecializeOp)
def _roles(frame: Frame, op: warp_groups.WarpSpecializeOp, operands: Values) -> Values:
    chance, count = frame.machine.chance, op.consumers.value.data
    stage = Stage(CooperativeThreads(chance, hint=_HINT), count, chance)
    regions = {COPIES: op.producer, TURNS: op.transposer} | dict.fromkeys(range(count), op.consumer)
    for number, region in regions.items():
        if region is not None:
            apart, member = frame.fork(), Member(stage, number)
            apart.kept[Member], apart.guard = member, member.guard
            stage.threads.add(agent_name(number), partial(_live, apart, region.block))
    stage.threads.run()
    for turns in stage.shared.values():
        turns.check_end()
    _check_shared(frame.kept[Runner], stage)
    return []


def _live(frame: Frame, block: Any) -> None:
    frame.run(block, [])
    if _member(frame).products:
        raise RaceError(
            "an agent ends while products of its run", hint="put pipe.dot_wait or pipe.dots_wait 0 at the end"
        )


@meaning(warp_groups.ConsumerIdOp)
def _agent(frame: Frame, op: warp_groups.ConsumerIdOp, operands: Values) -> Values:
    return [_member(frame).number]


@meaning(warp_groups.CtaIdOp)
def _worker(frame: Frame, op: warp_groups.CtaIdOp, operands: Values) -> Values:
    return [frame.program[0]]


@meaning(warp_groups.CtaCountOp)
def _workers(frame: Frame, op: warp_groups.CtaCountOp, operands: Values) -> Values:
    return [frame.kept[Runner].ctas]


@meaning(warp_groups.GridExtentOp)
def _extent(frame: Frame, op: warp_groups.GridExtentOp, operands: Values) -> Values:
    return [frame.kept[Runner].grid[op.axis.value.data]]


# Rings


@meaning(warp_groups.PipelineStateOp)
def _cursor(frame: Frame, op: warp_groups.PipelineStateOp, operands: Values) -> Values:
    return [0]


@meaning(warp_groups.AdvanceOp)
def _next(frame: Frame, op: warp_groups.AdvanceOp, operands: Values) -> Values:
    return [operands[0] + 1]


@meaning(warp_groups.ProducerCopyOp)
def _fill(frame: Frame, op: warp_groups.ProducerCopyOp, operands: Values) -> Values:
    view, *offsets, ring, turn = operands
    member = _member(frame)
    turns = member.stage.turns(ring, op.ring)
    _await_empty(member, turns, turn)
    if isinstance(op.ring.owner, pipe.RingOp) and op.ring.owner.multicast is not None:
        _share(frame.kept[Runner], turns, op.ring, turn, (id(view.argument), view.first, view.strides, *offsets))
    turns.inbound[turn] = partial(_copied, op, view, offsets)
    turns.filled += 1
    if member.stage.chance is not None and member.stage.chance.integers(2):
        turns.land(turn)
    return []


def _await_empty(member: Member, turns: Turns, turn: int) -> None:
    turns.check_turn(turn, turns.filled, "filled")
    before = turn - turns.depth
    _wait(member, lambda: min(turns.released.values()) > before, f"all to release turn {before} of {turns.name}")


def _share(runner: Runner, turns: Turns, ring: SSAValue, turn: int, fetched: object) -> None:
    """Workers of a team fetch the same tiles in the same turns."""
    number, rank = divmod(runner.program[0], runner.cluster)
    known = runner.shared.setdefault((number, ring), [])
    if rank == 0:
        known.append(fetched)
    elif turn >= len(known) or known[turn] != fetched:
        raise RaceError(
            f"turn {turn} of {turns.name} is shared, and worker {rank} of a team fetches another tile than worker 0",
            hint="share rings whose tiles do not depend on the number of a worker in its team",
        )


def _check_shared(runner: Runner, stage: Stage) -> None:
    """Nobody of a team leaves out what others wait for."""
    number, rank = divmod(runner.program[0], runner.cluster)
    filled = {turns.value: turns.filled for turns in stage.shared.values()}
    for (cluster, ring), known in runner.shared.items():
        if cluster == number and rank and filled.get(ring, 0) != len(known):
            raise RaceError(
                f"worker 0 of a team fills {len(known)} turns of a ring that is shared, worker {rank} of it "
                f"{filled.get(ring, 0)}",
                hint="share rings that all workers of a team fill equally often",
            )


def _copied(op: warp_groups.ProducerCopyOp, view: ArrayView, offsets: Sequence[int]) -> Array:
    type_ = pipe.slot_type(op.ring)
    dtype = dtype_of(type_.element_type)
    found = np.full(type_.get_shape(), cast(np.zeros(()), f64, dtype), dtype.storage)
    inside, cut = window(view, offsets, type_.get_shape())
    found[cut] = view.array[inside]
    return found


@meaning(warp_groups.ConsumerWaitOp)
def _take(frame: Frame, op: warp_groups.ConsumerWaitOp, operands: Values) -> Values:
    ring, turn = operands
    member = _member(frame)
    turns = member.stage.turns(ring, op.ring)
    if turn < turns.released[member.number]:
        raise RaceError(
            f"turn {turn} of {turns.name} is taken again after its release",
            hint="put pipe.advance in front of pipe.consumer_wait",
        )
    turns.check_turn(turn, turns.taken[member.number], "taken")
    _wait(member, lambda: turns.filled > turn, f"turn {turn} of {turns.name} to be filled")
    turns.land(turn)
    turns.taken[member.number] += 1
    found = ring.slots[turn % turns.depth]
    if op.part is not None:
        rows = len(found) // member.stage.count
        found = found[member.number * rows : (member.number + 1) * rows]
    # A transposed tile stays one in memory, so that products add in the same order.
    mine = found.copy(order="K")
    member.hold(mine, turns, turn)
    return [mine]


@meaning(warp_groups.ConsumerReleaseOp)
def _release(frame: Frame, op: warp_groups.ConsumerReleaseOp, operands: Values) -> Values:
    ring, turn = operands
    member = _member(frame)
    turns = member.stage.turns(ring, op.ring)
    if turn >= turns.taken[member.number]:
        raise RaceError(
            f"turn {turn} of {turns.name} is released, and was not taken",
            hint="put pipe.consumer_wait in front of pipe.consumer_release",
        )
    turns.check_turn(turn, turns.released[member.number], "released")
    for behind, product in enumerate(reversed(member.products)):
        if (turns, turn) in product.reads:
            raise RaceError(
                f"turn {turn} of {turns.name} is released while a product that reads it may run",
                hint=f"put pipe.dot_wait or pipe.dots_wait with {behind} younger products in front of it",
            )
    turns.released[member.number] += 1
    return []


@meaning(transpose.TransposeSmemOp)
def _turn(frame: Frame, op: transpose.TransposeSmemOp, operands: Values) -> Values:
    ring, other, turn = operands
    member = _member(frame)
    turns, transposed = member.stage.turns(ring, op.ring), member.stage.turns(other, op.transposed)
    turns.check_turn(turn, turns.taken[TURNS], "turned")
    _await_empty(member, transposed, turn)
    _wait(member, lambda: turns.filled > turn, f"turn {turn} of {turns.name} to be filled")
    turns.land(turn)
    other.slots[turn % transposed.depth] = ring.slots[turn % turns.depth].T
    transposed.filled += 1
    turns.taken[TURNS] += 1
    turns.released[TURNS] += 1
    return []


# Numbers of programs


@meaning(tile_scheduler.WorkQueueOp)
def _mailbox(frame: Frame, op: tile_scheduler.WorkQueueOp, operands: Values) -> Values:
    return [Ring([None] * warp_groups.ring_depth(op.result))]


@meaning(tile_scheduler.SchedulerFetchOp)
def _draw(frame: Frame, op: tile_scheduler.SchedulerFetchOp, operands: Values) -> Values:
    work_queue, turn = operands
    member = _member(frame)
    turns = member.stage.turns(work_queue, op.work_queue)
    turns.check_turn(turn, turns.filled, "drawn")
    before = turn - turns.depth
    _wait(member, lambda: min(turns.released.values()) > before, f"all to read turn {before} of {turns.name}")
    number = _next_program(frame.kept[Runner], turns, member.stage.chance)
    work_queue.slots[turn % turns.depth] = np.asarray(number)
    turns.filled += 1
    return [number]


def _next_program(runner: Runner, turns: Turns, chance: np.random.Generator | None) -> int:
    assert runner.ctas is not None
    # The last worker has to draw what is left.
    is_last = runner.program[0] == runner.ctas - 1
    if chance is not None and not is_last and not chance.integers(3):
        turns.ended = True
    if turns.ended:
        return prod(runner.grid)
    number = runner.ctas + len(runner.drawn)
    runner.drawn.append(number)
    return number


@meaning(tile_scheduler.SchedulerReadOp)
def _drawn(frame: Frame, op: tile_scheduler.SchedulerReadOp, operands: Values) -> Values:
    work_queue, turn = operands
    member = _member(frame)
    turns = member.stage.turns(work_queue, op.work_queue)
    turns.check_turn(turn, turns.taken[member.number], "read")
    _wait(member, lambda: turns.filled > turn, f"turn {turn} of {turns.name} to be drawn")
    turns.taken[member.number] += 1
    turns.released[member.number] += 1
    return [int(work_queue.slots[turn % turns.depth])]


# One after the other


@meaning(pingpong.PingpongWaitOp)
def _await_place(frame: Frame, op: pingpong.PingpongWaitOp, operands: Values) -> Values:
    member = _member(frame)
    _wait(member, lambda: member.stage.place == member.number, "its place")
    member.placed = True
    return []


@meaning(pingpong.PingpongArriveOp)
def _pass_place(frame: Frame, op: pingpong.PingpongArriveOp, operands: Values) -> Values:
    member = _member(frame)
    if not member.placed:
        raise RaceError(
            f"{agent_name(member.number)} hands on the place, and has not waited for it",
            hint="put pipe.pingpong_wait in front of pipe.pingpong_arrive",
        )
    member.placed = False
    member.stage.place = (member.number + 1) % member.stage.count
    return []


# Products


@meaning(warp_groups.DotStartOp)
def _dot_start(frame: Frame, op: warp_groups.DotStartOp, operands: Values) -> Values:
    a, b, c = operands
    member = _member(frame)
    if isinstance(c, Product):
        _use(c, "were handed to another product")
    left, right, total = tile_dtype(op.a), tile_dtype(op.b), dtype_of(warp_groups.accumulator_type(op.c).element_type)

    def finish() -> Array:
        product, carrier = multiply(a, b, left, right)
        before: Any = c.value if isinstance(c, Product) else c
        with np.errstate(all="ignore"):
            return cast(np.add(product, cast(before, total, carrier)), carrier, total)

    held = [found for found in map(member.origin, (a, b)) if found is not None]
    made = Product(finish, [(one.turns, one.turn) for one in held])
    member.products.append(made)
    return [made]


def _use(product: Product, becomes: str) -> None:
    if product.used:
        raise RaceError(
            f"sums of a product are used that {product.used}",
            hint="use what pipe.dot_wait or the last pipe.dot_start gave",
        )
    product.used = becomes


@meaning(warp_groups.DotWaitOp)
def _dot_await(frame: Frame, op: warp_groups.DotWaitOp, operands: Values) -> Values:
    product: Product = operands[0]
    member, younger = _member(frame), op.younger.value.data
    _use(product, "were awaited")
    member.finish(younger)
    if product.value is None:
        behind = len(member.products) - 1 - member.products.index(product)
        raise RaceError(
            f"a product is awaited with {younger} younger ones, and {behind} were begun behind it",
            hint=f"say younger {behind}, or less",
        )
    return [product.value]


@meaning(warp_groups.DotsWaitOp)
def _dots_behind(frame: Frame, op: warp_groups.DotsWaitOp, operands: Values) -> Values:
    _member(frame).finish(op.younger.value.data)
    return []
