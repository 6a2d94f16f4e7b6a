"""The meaning of warp groups that share rings: they run in every order that their waits allow, and copies land late.

A copy lands when a consumer waits for it, or by chance at once. A dot is done when it is waited for. Releasing a tile
that may still be read, waiting twice for the same tile, or leaving one behind is an error. Persistent CTAs run one
after the other: by chance one finds that the others, which are yet to run, have been quicker, and fetched all program
instances that there were. Each CTA of a cluster copies all of a multicast tile, and must copy the same as the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tessera.errors import RaceError
from tessera.interpreters.core.concurrency import CooperativeThreads
from tessera.interpreters.core.engine import Frame, Values, meaning, meanings
from tessera.interpreters.core.views import Array, read_boxes, read_window
from tessera.interpreters.levels.pipe import Ring
from tessera.interpreters.levels.tile import Runner, accumulate
from tessera.ir.common.elements import dtype_of
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import pingpong, prepare, tile_scheduler, transpose, warp_groups
from tessera.ir.tile.types import tile_dtype

_HINT = "every consumer waits for and releases every tile that is copied, and there are slots for those in flight"


@dataclass(eq=False)
class SharedRing:
    """A ring or work queue that warp groups share: how often it was filled, and how far each reader has come.

    Entries are numbered in the order in which they are filled: a pipeline state is the number of an entry, which is in
    the slot of that number modulo the depth.
    """

    ring: Ring
    value: SSAValue
    name: str
    waited: dict[int, int]
    """How many entries each warp group that reads it has waited for."""
    released: dict[int, int]
    filled: int = 0
    inbound: dict[int, Callable[[], Array]] = field(default_factory=dict[int, Callable[[], Array]])
    """Copies in flight, by the numbers of their entries."""
    ended: bool = False
    """Of a work queue: there is nothing left to fetch."""

    @property
    def depth(self) -> int:
        return len(self.ring.slots)

    def land(self, entry: int) -> None:
        """Puts a copy into its slot, unless it has arrived before."""
        copy = self.inbound.pop(entry, None)
        if copy is not None:
            self.ring.slots[entry % self.depth] = copy()

    def check_order(self, entry: int, next_: int, verb: str) -> None:
        """Refuses an entry that is not the next one."""
        if entry == next_:
            return
        why = f"{verb} already" if entry < next_ else f"entry {next_} was not {verb} yet"
        raise RaceError(
            f"entry {entry} of {self.name} cannot be {verb}: {why}",
            hint="entries come in order, each once: check which pipeline state is used, and where pipe.advance is",
        )

    def check_end(self) -> None:
        for reader, released in self.released.items():
            if released < self.filled:
                waited = self.waited[reader]
                what = "waited for" if waited < self.filled else "released"
                count = waited if waited < self.filled else released
                raise RaceError(
                    f"{self.filled} entries of {self.name} were filled, and {warp_group_name(reader)} has {what} "
                    f"{count}",
                    hint="every consumer waits for and releases every tile that is copied",
                )


@dataclass(eq=False)
class PendingDot:
    """A dot in flight: it has a value when it is done. `reads` are the entries of rings that its operands are in."""

    finish: Callable[[], Array]
    reads: list[tuple[SharedRing, int]]
    value: Array | None = None
    used: str = ""
    """The use that was made of the accumulator, in words; there is no second one."""


@dataclass(eq=False)
class HeldTile:
    """A tile that a consumer has waited for; the array is kept so that no other is mistaken for it."""

    array: Array
    ring: SharedRing
    entry: int


@dataclass(eq=False)
class WarpGroups:
    """The state that the warp groups of one `pipe.warp_specialize` share."""

    threads: CooperativeThreads
    count: int
    chance: np.random.Generator | None
    shared: dict[Ring, SharedRing] = field(default_factory=dict[Ring, SharedRing])
    pingpong: int = 0
    """The consumer that the ping-pong barrier lets go on."""

    def ring(self, ring: Ring, value: SSAValue) -> SharedRing:
        if ring not in self.shared:
            name = f"%{value.name_hint}" if value.name_hint else "a ring"
            readers = self._readers(value)
            self.shared[ring] = SharedRing(ring, value, name, dict.fromkeys(readers, 0), dict.fromkeys(readers, 0))
        return self.shared[ring]

    def _readers(self, ring: SSAValue) -> list[int]:
        """The warp groups that wait for entries: consumers or the preparer, and all of them for a work queue."""
        if transpose.is_transposed_from(ring) or prepare.feeds_preparer(ring):
            return [PREPARER]
        reads = [use.operation for use in ring.uses if isinstance(use.operation, tile_scheduler.SchedulerReadOp)]
        also = [PREPARER] if any(not warp_groups.is_in_consumer(op) for op in reads) else []
        return [*range(self.count), *also]


PRODUCER, PREPARER = -1, -2
"""Numbers of the warp groups that are no consumers."""


def warp_group_name(number: int) -> str:
    return {PRODUCER: "the producer", PREPARER: "the preparer"}.get(number, f"consumer {number}")


@dataclass(eq=False)
class WarpGroup:
    """One warp group: its number, its dots in flight, oldest first, and the tiles it has waited for."""

    groups: WarpGroups
    number: int
    dots: list[PendingDot] = field(default_factory=list[PendingDot])
    held: dict[int, HeldTile] = field(default_factory=dict[int, HeldTile])
    holds_pingpong: bool = False
    """Whether it has passed the ping-pong barrier, and not arrived yet."""

    def hold(self, array: Array, ring: SharedRing, entry: int) -> None:
        self.held[id(array)] = HeldTile(array, ring, entry)

    def origin(self, value: Any) -> HeldTile | None:
        """The tile of a ring that this value, which may be another view of it, reads."""
        while value is not None and id(value) not in self.held:
            value = getattr(value, "base", None)
        return self.held.get(id(value))

    def guard(self, op: Operation, operands: Values) -> None:
        """Refuses to read a released tile; loops and branches only pass it on."""
        if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            return
        for held in map(self.origin, operands):
            if held is not None and held.entry < held.ring.released[self.number]:
                raise RaceError(
                    f"{op.name} reads entry {held.entry} of {held.ring.name}, which this consumer has released",
                    hint="put pipe.consumer_release behind the last op that reads the tile",
                )

    def finish(self, younger: int) -> None:
        """Ends all dots but the youngest."""
        while len(self.dots) > younger:
            done = self.dots.pop(0)
            done.value = done.finish()


def _warp_group(frame: Frame) -> WarpGroup:
    return frame.kept[WarpGroup]


def _wait(group: WarpGroup, ready: Callable[[], bool], waits_for: str) -> None:
    group.groups.threads.wait(ready, waits_for)


# Partitions


@meaning(warp_groups.WarpSpecializeOp)
def _warp_specialize(frame: Frame, op: warp_groups.WarpSpecializeOp, operands: Values) -> None:
    chance, count = frame.machine.chance, op.consumers.value.data
    groups = WarpGroups(CooperativeThreads(chance, hint=_HINT), count, chance)
    regions = {PRODUCER: op.producer, PREPARER: op.preparer} | dict.fromkeys(range(count), op.consumer)
    for number, region in regions.items():
        if region is not None:
            apart, group = frame.fork(), WarpGroup(groups, number)
            apart.kept[WarpGroup], apart.guard = group, group.guard
            groups.threads.add(warp_group_name(number), partial(_run, apart, region.block))
    groups.threads.run()
    for ring in groups.shared.values():
        ring.check_end()
    _check_multicast_end(frame.kept[Runner], groups)


def _run(frame: Frame, block: Any) -> None:
    frame.run(block, [])
    if _warp_group(frame).dots:
        raise RaceError("a consumer ends while its dots run", hint="put pipe.dot_wait or pipe.dots_wait 0 at the end")


meanings(
    {
        warp_groups.ConsumerIdOp: lambda frame, op, operands: [_warp_group(frame).number],
        warp_groups.CtaIdOp: lambda frame, op, operands: [frame.program[0]],
        warp_groups.CtaCountOp: lambda frame, op, operands: [frame.kept[Runner].ctas],
        warp_groups.GridExtentOp: lambda frame, op, operands: [frame.kept[Runner].grid[op.axis.value.data]],
        warp_groups.PipelineStateOp: lambda frame, op, operands: [0],
        warp_groups.AdvanceOp: lambda frame, op, operands: [operands[0] + 1],
        tile_scheduler.WorkQueueOp: lambda frame, op, operands: [Ring([None] * warp_groups.ring_depth(op.result))],
    }
)


# Rings


@meaning(warp_groups.ProducerCopyOp)
def _producer_copy(frame: Frame, op: warp_groups.ProducerCopyOp, operands: Values) -> None:
    view, *offsets, ring, entry = operands
    group = _warp_group(frame)
    shared = group.groups.ring(ring, op.ring)
    _acquire(group, shared, entry)
    if isinstance(op.ring.owner, pipe.RingOp) and op.ring.owner.multicast is not None:
        _check_multicast(
            frame.kept[Runner], shared, op.ring, entry, (id(view.argument), view.first, view.strides, *offsets)
        )
    _send(group, shared, entry, partial(read_window, view, offsets, pipe.slot_type(op.ring).get_shape()))


@meaning(warp_groups.ProducerCopyBoxesOp)
def _producer_copy_boxes(frame: Frame, op: warp_groups.ProducerCopyBoxesOp, operands: Values) -> None:
    view, *starts, ring, entry = operands
    until = starts.pop() if op.until is not None else None
    group = _warp_group(frame)
    shared = group.groups.ring(ring, op.ring)
    _acquire(group, shared, entry)
    axes, shape = tuple(op.axes.iter_values()), pipe.slot_type(op.ring).get_shape()
    _send(group, shared, entry, partial(read_boxes, view, starts, axes, shape, until))


def _send(group: WarpGroup, shared: SharedRing, entry: int, copy: Callable[[], Array]) -> None:
    """Begins a copy into an entry, which lands by chance at once."""
    shared.inbound[entry] = copy
    shared.filled += 1
    if group.groups.chance is not None and group.groups.chance.integers(2):
        shared.land(entry)


def _acquire(group: WarpGroup, shared: SharedRing, entry: int) -> None:
    shared.check_order(entry, shared.filled, "filled")
    before = entry - shared.depth
    _wait(group, lambda: min(shared.released.values()) > before, f"all to release entry {before} of {shared.name}")


def _check_multicast(runner: Runner, shared: SharedRing, ring: SSAValue, entry: int, copied: object) -> None:
    """Refuses a tile of a multicast ring that is not the one that the first CTA of the cluster has copied."""
    number, rank = divmod(runner.program[0], runner.cluster)
    known = runner.shared.setdefault((number, ring), [])
    if rank == 0:
        known.append(copied)
    elif entry >= len(known) or known[entry] != copied:
        raise RaceError(
            f"entry {entry} of {shared.name} is multicast, and CTA {rank} of a cluster copies another tile than CTA 0",
            hint="multicast rings whose tiles do not depend on the rank of a CTA in its cluster",
        )


def _check_multicast_end(runner: Runner, groups: WarpGroups) -> None:
    """Refuses a CTA that has filled a multicast ring less or more often than the first of its cluster."""
    number, rank = divmod(runner.program[0], runner.cluster)
    filled = {shared.value: shared.filled for shared in groups.shared.values()}
    for (cluster, ring), known in runner.shared.items():
        if cluster == number and rank and filled.get(ring, 0) != len(known):
            raise RaceError(
                f"CTA 0 of a cluster fills a multicast ring {len(known)} times, CTA {rank} of it "
                f"{filled.get(ring, 0)} times",
                hint="multicast rings that all CTAs of a cluster fill equally often",
            )


@meaning(warp_groups.ConsumerWaitOp)
def _consumer_wait(frame: Frame, op: warp_groups.ConsumerWaitOp, operands: Values) -> Values:
    ring, entry = operands
    group = _warp_group(frame)
    shared = group.groups.ring(ring, op.ring)
    if entry < shared.released[group.number]:
        raise RaceError(
            f"entry {entry} of {shared.name} is waited for again after its release",
            hint="put pipe.advance in front of pipe.consumer_wait",
        )
    shared.check_order(entry, shared.waited[group.number], "waited for")
    _wait(group, lambda: shared.filled > entry, f"entry {entry} of {shared.name} to be filled")
    shared.land(entry)
    shared.waited[group.number] += 1
    found = ring.slots[entry % shared.depth]
    if (axis := op.shared_axis) is not None:
        size = found.shape[axis] // group.groups.count
        share = slice(group.number * size, (group.number + 1) * size)
        found = found[share] if axis == 0 else found[:, share]
    # A transposed tile stays one in memory, so that dots add in the same order.
    mine = found.copy(order="K")
    group.hold(mine, shared, entry)
    return [mine]


@meaning(warp_groups.ConsumerReleaseOp)
def _consumer_release(frame: Frame, op: warp_groups.ConsumerReleaseOp, operands: Values) -> None:
    ring, entry = operands
    group = _warp_group(frame)
    shared = group.groups.ring(ring, op.ring)
    if entry >= shared.waited[group.number]:
        raise RaceError(
            f"entry {entry} of {shared.name} is released, and was not waited for",
            hint="put pipe.consumer_wait in front of pipe.consumer_release",
        )
    shared.check_order(entry, shared.released[group.number], "released")
    for behind, dot in enumerate(reversed(group.dots)):
        if (shared, entry) in dot.reads:
            raise RaceError(
                f"entry {entry} of {shared.name} is released while a dot that reads it may run",
                hint=f"put pipe.dot_wait or pipe.dots_wait with {behind} younger dots in front of it",
            )
    shared.released[group.number] += 1


@meaning(transpose.TransposeSmemOp)
def _transpose_smem(frame: Frame, op: transpose.TransposeSmemOp, operands: Values) -> None:
    ring, other, entry = operands
    group = _warp_group(frame)
    shared, transposed = group.groups.ring(ring, op.ring), group.groups.ring(other, op.transposed)
    shared.check_order(entry, shared.waited[PREPARER], "transposed")
    _acquire(group, transposed, entry)
    _wait(group, lambda: shared.filled > entry, f"entry {entry} of {shared.name} to be filled")
    shared.land(entry)
    other.slots[entry % transposed.depth] = ring.slots[entry % shared.depth].T
    transposed.filled += 1
    shared.waited[PREPARER] += 1
    shared.released[PREPARER] += 1


@meaning(prepare.ProducerWriteOp)
def _producer_write(frame: Frame, op: prepare.ProducerWriteOp, operands: Values) -> None:
    value, ring, entry = operands
    group = _warp_group(frame)
    shared = group.groups.ring(ring, op.ring)
    _acquire(group, shared, entry)
    ring.slots[entry % shared.depth] = value.copy(order="K")
    shared.filled += 1


# The tile scheduler


@meaning(tile_scheduler.SchedulerFetchOp)
def _scheduler_fetch(frame: Frame, op: tile_scheduler.SchedulerFetchOp, operands: Values) -> Values:
    work_queue, entry = operands
    group = _warp_group(frame)
    shared = group.groups.ring(work_queue, op.work_queue)
    shared.check_order(entry, shared.filled, "fetched")
    before = entry - shared.depth
    _wait(group, lambda: min(shared.released.values()) > before, f"all to read entry {before} of {shared.name}")
    number = _next_instance(frame.kept[Runner], shared, group.groups.chance)
    work_queue.slots[entry % shared.depth] = np.asarray(number)
    shared.filled += 1
    return [number]


def _next_instance(runner: Runner, shared: SharedRing, chance: np.random.Generator | None) -> int:
    assert runner.ctas is not None
    # The last CTA has to fetch what is left.
    is_last = runner.program[0] == runner.ctas - 1
    if chance is not None and not is_last and not chance.integers(3):
        shared.ended = True
    if shared.ended:
        return prod(runner.grid)
    number = runner.ctas + len(runner.fetched)
    runner.fetched.append(number)
    return number


@meaning(tile_scheduler.SchedulerReadOp)
def _scheduler_read(frame: Frame, op: tile_scheduler.SchedulerReadOp, operands: Values) -> Values:
    work_queue, entry = operands
    group = _warp_group(frame)
    shared = group.groups.ring(work_queue, op.work_queue)
    shared.check_order(entry, shared.waited[group.number], "read")
    _wait(group, lambda: shared.filled > entry, f"entry {entry} of {shared.name} to be fetched")
    shared.waited[group.number] += 1
    shared.released[group.number] += 1
    return [int(work_queue.slots[entry % shared.depth])]


# Ping-pong barriers


@meaning(pingpong.PingpongWaitOp)
def _pingpong_wait(frame: Frame, op: pingpong.PingpongWaitOp, operands: Values) -> None:
    group = _warp_group(frame)
    _wait(group, lambda: group.groups.pingpong == group.number, "the ping-pong barrier")
    group.holds_pingpong = True


@meaning(pingpong.PingpongArriveOp)
def _pingpong_arrive(frame: Frame, op: pingpong.PingpongArriveOp, operands: Values) -> None:
    group = _warp_group(frame)
    if not group.holds_pingpong:
        raise RaceError(
            f"{warp_group_name(group.number)} arrives at the ping-pong barrier, and has not waited for it",
            hint="put pipe.pingpong_wait in front of pipe.pingpong_arrive",
        )
    group.holds_pingpong = False
    group.groups.pingpong = (group.number + 1) % group.groups.count


# Dots


@meaning(warp_groups.DotStartOp)
def _dot_start(frame: Frame, op: warp_groups.DotStartOp, operands: Values) -> Values:
    a, b, c = operands
    group = _warp_group(frame)
    if isinstance(c, PendingDot):
        _use(c, "was passed on to another dot")
    left, right, total = tile_dtype(op.a), tile_dtype(op.b), dtype_of(warp_groups.accumulator_type(op.c).element_type)

    def finish() -> Array:
        before: Any = c.value if isinstance(c, PendingDot) else c
        return accumulate(a, b, before, left, right, total)

    held = [found for found in map(group.origin, (a, b)) if found is not None]
    made = PendingDot(finish, [(one.ring, one.entry) for one in held])
    group.dots.append(made)
    return [made]


def _use(dot: PendingDot, becomes: str) -> None:
    if dot.used:
        raise RaceError(
            f"the accumulator of a dot is used that {dot.used}",
            hint="use the result of pipe.dot_wait or of the last pipe.dot_start",
        )
    dot.used = becomes


@meaning(warp_groups.DotWaitOp)
def _dot_wait(frame: Frame, op: warp_groups.DotWaitOp, operands: Values) -> Values:
    dot: PendingDot = operands[0]
    group, younger = _warp_group(frame), op.younger.value.data
    _use(dot, "was waited for")
    group.finish(younger)
    if dot.value is None:
        behind = len(group.dots) - 1 - group.dots.index(dot)
        raise RaceError(
            f"a dot is waited for with {younger} younger ones, and {behind} were begun after it",
            hint=f"say younger {behind}, or less",
        )
    return [dot.value]


@meaning(warp_groups.DotsWaitOp)
def _dots_wait(frame: Frame, op: warp_groups.DotsWaitOp, operands: Values) -> None:
    _warp_group(frame).finish(op.younger.value.data)
