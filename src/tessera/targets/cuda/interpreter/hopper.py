"""The meaning of the ops for sm_90a: kernels whose warpgroups run on their own, on NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.errors import CompileError, RaceError, ShapeError
from tessera.interpreters.core.concurrency import CooperativeThreads
from tessera.interpreters.core.engine import Frame, Values, meaning, symbol_in
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.views import Array, ArrayView
from tessera.interpreters.levels.tile import bind
from tessera.targets.cuda.interpreter import wgmma
from tessera.targets.cuda.interpreter.warp_groups import (
    BY_THREAD,
    THREADS,
    Barrier,
    Block,
    Lanes,
    Launch,
    Meeting,
    SharedTiles,
    WarpgroupFrame,
    at,
    warpgroup,
)
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper, hopper_copies, hopper_transpose
from tessera.targets.cuda.ir.hopper_types import barriers_type, map_type
from tessera.targets.cuda.ir.types import SharedType, shared_type

RULES_ELSEWHERE = (wgmma,)  # importing it fills the table
BY_THREAD.update([hopper.MbarrierArriveOp, hopper_copies.TmaStoreOp, hopper.CountOp])


def run_warpgroups(
    module: ModuleOp, name: str, arguments: Sequence[Any], *, blocks: int | None = None, seed: int | None = None
) -> None:
    """Runs an nv function for sm_90a. Arrays are written in place; scalars are Python numbers.

    `blocks` of them share the work of a persistent kernel, or there is one for each point of the grid. With a seed,
    warp groups run in random order, and fresh memory holds random numbers: a right kernel gives the same results.
    """
    kernel = symbol_in(module, name, nv.FuncOp)
    bound = bind(name, kernel.function_type, kernel.shapes, kernel.grid, arguments)
    chance = None if seed is None else np.random.default_rng(seed)
    attribute: Any = kernel.attributes.get("cluster")
    size = attribute.value.data if attribute is not None else 1
    count = int(np.prod(bound.grid)) if blocks is None else blocks
    threads = CooperativeThreads(chance, hint="count arrivals, phases and bytes")
    launch = Launch(Machine(), chance, threads, count, tuple(bound.grid))
    if count % size:
        raise CompileError(f"{count} blocks are no whole clusters of {size}")
    everyone = [Block(number, number % size, kernel.thread_count, launch) for number in range(count)]
    for block in everyone:
        block.cluster = everyone[block.number - block.rank :][:size]
        for group in range(kernel.thread_count // THREADS):
            frame = WarpgroupFrame(launch.machine, bound.symbols, block=block, group=group, chance=chance)
            threads.add(
                f"warpgroup {group} of block {block.number}", lambda frame=frame: _live(frame, kernel, bound.values)
            )
    threads.run()
    if any(launch.counters):
        raise RaceError(f"counters are left at {launch.counters}", hint="the last block sets them to 0 again")


def _live(frame: WarpgroupFrame, kernel: nv.FuncOp, values: Sequence[Any]) -> None:
    frame.run(kernel.body.block, values)
    if frame.stores or any(frame.sent) or any(one.value is None for one in frame.dots):
        raise RaceError("a warp group ends while its copies or dots are in flight", hint="wait for them")


# Numbers of threads and blocks


@meaning(hopper.IdOp)
def _id(frame: Frame, op: hopper.IdOp, operands: Values) -> Values:
    here = warpgroup(frame)
    first = THREADS * here.group
    threads = range(first, first + THREADS)
    numbers: dict[str, Any] = {
        "thread": Lanes(tuple(threads)),
        "lane": Lanes(tuple(thread % 32 for thread in threads)),
        "warp": Lanes(tuple(thread // 32 for thread in threads)),
        "warpgroup": here.group,
        "block": here.block.number,
        "blocks": here.block.launch.blocks,
        "rank": here.block.rank,
    }
    return [numbers[op.kind.data]]


@meaning(hopper.ExtentOp)
def _extent(frame: Frame, op: hopper.ExtentOp, operands: Values) -> Values:
    return [warpgroup(frame).block.launch.grid[op.axis.value.data]]


@meaning(hopper.SetmaxnregOp)
def _set_registers(frame: Frame, op: hopper.SetmaxnregOp, operands: Values) -> None:
    if len(warpgroup(frame).running) != THREADS:
        raise RaceError("a part of a warpgroup changes its registers", hint="all its threads come to nv.setmaxnreg")


@meaning(hopper.AdvanceOp)
def _advance(frame: Frame, op: hopper.AdvanceOp, operands: Values) -> Values:
    slot, phase = operands
    return [slot + 1, phase] if slot + 1 < op.depth.value.data else [0, phase ^ 1]


# Barriers


@meaning(hopper.MbarriersOp)
def _barriers(frame: Frame, op: hopper.MbarriersOp, operands: Values) -> Values:
    count = barriers_type(op.result).count.data
    return [warpgroup(frame).block.once(op, lambda: _Barriers(op, [Barrier() for _ in range(count)]))]


@dataclass(frozen=True)
class _Barriers:
    """Some mbarriers, and the op that made them, by which other blocks' are found."""

    origin: hopper.MbarriersOp
    all: list[Barrier]

    def __getitem__(self, number: int) -> Barrier:
        if not 0 <= number < len(self.all):
            raise ShapeError(f"mbarrier {number} of {len(self.all)}", hint="count modulo the slots of the ring")
        return self.all[number]


@meaning(hopper.MbarrierInitOp)
def _init(frame: Frame, op: hopper.MbarrierInitOp, operands: Values) -> None:
    for barrier in operands[0].all:
        barrier.arrivals = barrier.missing = op.arrivals.value.data


@meaning(hopper.MbarrierWaitOp)
def _wait(frame: Frame, op: hopper.MbarrierWaitOp, operands: Values) -> None:
    barriers, number, parity = operands
    barrier = barriers[number]
    warpgroup(frame).wait(lambda: barrier.ended(parity), f"%{op.barriers.name_hint}[{number}], parity {parity}")


@meaning(hopper.MbarrierArriveOp)
def _arrive(frame: Frame, op: hopper.MbarrierArriveOp, operands: Values) -> None:
    barriers, number, *condition = operands
    for thread in warpgroup(frame).running:
        if not condition or at(condition[0], thread):
            at(barriers, thread)[at(number, thread)].arrive(1)


@meaning(hopper.MbarrierExpectOp)
def _expect(frame: Frame, op: hopper.MbarrierExpectOp, operands: Values) -> None:
    barriers, number = operands
    for _ in warpgroup(frame).running:
        barriers[number].arrive(1, op.bytes.value.data)


@meaning(hopper.FenceOp)
def _fence(frame: Frame, op: hopper.FenceOp, operands: Values) -> None:
    here = warpgroup(frame)
    if op.kind.data == "async":
        here.block.unfenced = [one for one in here.block.unfenced if one[0] != here.group]


@meaning(hopper.BarrierSyncOp)
def _sync(frame: Frame, op: hopper.BarrierSyncOp, operands: Values) -> None:
    warpgroup(frame).meet(operands[0], op.threads.value.data, stay=True)


@meaning(hopper.BarrierArriveOp)
def _announce(frame: Frame, op: hopper.BarrierArriveOp, operands: Values) -> None:
    warpgroup(frame).meet(operands[0], op.threads.value.data, stay=False)


@meaning(hopper.WarpSyncOp, hopper_copies.PrefetchOp)
def _nothing(frame: Frame, op: Operation, operands: Values) -> None:
    """Threads of a warp go on together here, and there are no caches."""


@meaning(hopper.ClusterSyncOp)
def _cluster_sync(frame: Frame, op: hopper.ClusterSyncOp, operands: Values) -> None:
    here = warpgroup(frame)
    meeting = here.block.cluster[0].named.setdefault(-1, Meeting())
    opened = meeting.opened
    meeting.arrive(len(here.running), here.block.threads * len(here.block.cluster))
    here.wait(lambda: meeting.opened > opened, "the other blocks of the cluster")


@meaning(hopper.MapaOp)
def _elsewhere(frame: Frame, op: hopper.MapaOp, operands: Values) -> Values:
    barriers, rank = operands
    other = warpgroup(frame).block.cluster[int(rank)]
    return [other.held[barriers.origin]]


# Copies


@dataclass(frozen=True)
class _Map:
    """How a copy sees an array: axes of the box, innermost first, and how they move along the array's."""

    view: ArrayView
    axes: tuple[tuple[int, str, int], ...]
    box: tuple[int, ...]

    def coordinates(self, offsets: Sequence[int]) -> tuple[tuple[Array, ...], Array]:
        """Indices into the array for each element of the box, outermost axis first, and which are inside the map."""
        shape = self.box[::-1]
        indices = [np.zeros(shape, np.int64) for _ in self.view.sizes]
        inside = np.ones(shape, np.bool_)
        for index, (axis, part, step) in enumerate(self.axes):
            size = self.view.sizes[axis]
            extent = {"whole": size, "inner": step, "outer": -(-size // step)}[part]
            along = [1] * len(shape)
            along[len(shape) - 1 - index] = self.box[index]
            counted = (offsets[index] + np.arange(self.box[index])).reshape(along)
            inside = inside & (counted >= 0) & (counted < extent)
            indices[axis] = indices[axis] + counted * (step if part == "outer" else 1)
        for axis, size in enumerate(self.view.sizes):
            if np.any(inside & (indices[axis] >= size)):
                raise ShapeError(f"a tensor map reaches beyond axis {axis}, which has {size} elements")
        return tuple(np.where(inside, index, 0) for index in indices), inside

    def read(self, offsets: Sequence[int], type_: SharedType) -> Array:
        """The box at some offsets as a tile."""
        indices, inside = self.coordinates(offsets)
        found: Any = self.view.array[indices]
        found[~inside] = 0
        return found.reshape(_panels(type_)).swapaxes(0, 1).reshape(type_.shape)

    def write(self, offsets: Sequence[int], tile: Array, type_: SharedType) -> None:
        indices, inside = self.coordinates(offsets)
        panels, rows, wide = _panels(type_)
        moved = tile.reshape(rows, panels, wide).swapaxes(0, 1)
        self.view.array[tuple(index[inside] for index in indices)] = moved.reshape(inside.shape)[inside]


def _panels(type_: SharedType) -> tuple[int, int, int]:
    return type_.panels, type_.rows, type_.columns // type_.panels


@meaning(hopper_copies.TensorMapOp)
def _tensor_map(frame: Frame, op: hopper_copies.TensorMapOp, operands: Values) -> Values:
    return [_Map(operands[0], op.axes.data, map_type(op.result).box)]


@meaning(hopper_copies.TmaLoadOp)
def _copy_in(frame: Frame, op: hopper_copies.TmaLoadOp, operands: Values) -> Values:
    here, axes = warpgroup(frame), len(op.offsets)
    map_, *offsets = operands[: 1 + axes]
    tiles, *rest = operands[1 + axes :]
    first = None if op.row is None else int(rest.pop(2))
    barriers, number, *mask = rest
    if len(here.running) != 1:
        raise RaceError(f"{len(here.running)} threads begin the same copy", hint="one thread begins it")
    everyone = here.block.cluster
    chosen = [block for block in everyone if mask[0] >> block.rank & 1] if mask else [here.block]
    rows = tiles.type.rows if first is None else map_.box[1]
    place = slice(first or 0, (first or 0) + rows)
    source = map_.read(offsets, SharedType((rows, tiles.type.columns), tiles.type.element, tiles.type.panel))
    for block in chosen:
        target: SharedTiles = tiles.there(block)
        target.array[place] = here.fresh(target.array[place].shape, target.type.dtype)

        def land(target: SharedTiles = target) -> int:
            target.array[place] = source
            return source.size * target.type.itemsize

        block.held[barriers.origin][number].inbound.append(land)
    return []


@meaning(hopper_copies.TmaStoreOp)
def _copy_out(frame: Frame, op: hopper_copies.TmaStoreOp, operands: Values) -> None:
    here, axes = warpgroup(frame), len(op.offsets)
    tiles, map_, *offsets = operands[: 2 + axes]
    condition = operands[2 + axes :]
    for thread in here.running:
        if condition and not at(condition[0], thread):
            continue
        source: SharedTiles = at(tiles, thread)
        here.block.check_fenced(source.array)
        where = [at(offset, thread) for offset in offsets]
        here.stores.append(lambda source=source, where=where: map_.write(where, source.array, source.type))


@meaning(hopper_copies.TmaCommitOp)
def _commit_copies(frame: Frame, op: hopper_copies.TmaCommitOp, operands: Values) -> None:
    here = warpgroup(frame)
    here.sent.append(here.stores)
    here.stores = []


@meaning(hopper_copies.TmaWaitOp)
def _wait_copies(frame: Frame, op: hopper_copies.TmaWaitOp, operands: Values) -> None:
    here = warpgroup(frame)
    while len(here.sent) > op.pending.value.data:
        for store in here.sent.pop(0):
            store()


@meaning(hopper_copies.RecastOp)
def _recast(frame: Frame, op: hopper_copies.RecastOp, operands: Values) -> Values:
    return [operands[0].recast(shared_type(op.result))]


@meaning(hopper_transpose.TransposeSmemOp)
def _transpose(frame: Frame, op: hopper_transpose.TransposeSmemOp, operands: Values) -> None:
    here, (source, target) = warpgroup(frame), operands
    target.array[...] = source.array.T[:, target.type.held_columns]
    here.block.unfenced.append((here.group, target.array))


# Schedulers


@meaning(hopper.WordsOp)
def _words(frame: Frame, op: hopper.WordsOp, operands: Values) -> Values:
    return [warpgroup(frame).block.once(op, dict[int, int])]


@meaning(hopper.PutOp)
def _put(frame: Frame, op: hopper.PutOp, operands: Values) -> None:
    value, words, number = operands
    words[number] = value


@meaning(hopper.GetOp)
def _get(frame: Frame, op: hopper.GetOp, operands: Values) -> Values:
    words, number = operands
    if number not in words:
        raise RaceError(f"word {number} is read before it was written", hint="wait for the thread that writes it")
    return [words[number]]


@meaning(hopper.CountOp)
def _count(frame: Frame, op: hopper.CountOp, operands: Values) -> Values:
    here = warpgroup(frame)
    counters, number = here.block.launch.counters, op.counter.value.data
    found = [0] * THREADS
    for thread in here.running:
        found[thread] = counters[number]
        counters[number] += at(operands[0], thread)
    return [found[here.running[0]] if len(here.running) == 1 else Lanes.of(found)]


@meaning(hopper.ResetOp)
def _reset(frame: Frame, op: hopper.ResetOp, operands: Values) -> None:
    warpgroup(frame).block.launch.counters[op.counter.value.data] = 0
