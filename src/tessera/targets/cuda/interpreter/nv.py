"""The interpreter of the nv level: a block of threads on whole tiles, on NumPy.

Tiles are whole arrays; which thread holds what is the emitter's business. Shared memory that was not written is full of
NaN, or with a seed of random numbers, and so is the target of a copy until it was waited for: a kernel that reads too
early shows in its results. Threads run apart from each other between barriers, so that reading what was written since
the last one, or writing what was read since then, is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.dtypes.casting import cast
from tessera.errors import RaceError, ShapeError
from tessera.interpreters.core.engine import Frame, Values, meaning, symbol_in
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.views import Array, read_window
from tessera.interpreters.levels.machine_frame import MachineFrame
from tessera.interpreters.levels.tile import bind, check_writable, multiply
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.types import SharedType, shared_type


def run_nv_kernel(
    module: ModuleOp, name: str, arguments: Sequence[Any], *, machine: Machine | None = None, seed: int | None = None
) -> None:
    """Runs an nv function over its grid. Arrays are written in place; scalars are Python numbers.

    With a seed, blocks run in a random order, and fresh memory holds random numbers. A right kernel gives the same
    results with every seed, up to the order of atomics. Blocks with a semaphore run in order.
    """
    kernel = symbol_in(module, name, nv.FuncOp)
    bound = bind(name, kernel.function_type, kernel.shapes, kernel.grid, arguments)
    check_writable(name, kernel.body.block, bound.values)
    machine = machine if machine is not None else Machine()
    chance = None if seed is None else np.random.default_rng(seed)
    instances = list(itertools.product(*(range(extent) for extent in bound.grid)))
    if chance is not None and not any(isinstance(op, nv.SemaphoreWaitOp) for op in kernel.body.walk()):
        order: list[int] = chance.permutation(len(instances)).tolist()
        instances = [instances[index] for index in order]
    with machine.recording():
        for instance in instances:
            NvFrame(machine, bound.symbols, instance, chance=chance).run(kernel.body.block, bound.values)


@dataclass
class Tiles:
    """Tiles in shared memory, by number, and when each was last touched: so many barriers after the start."""

    type: SharedType
    array: Array
    written: Array
    read: Array

    def slot(self, number: int) -> Tiles:
        if not 0 <= number < len(self.array):
            raise ShapeError(f"tile {number} of {len(self.array)} in shared memory", hint="count modulo the tiles")
        return Tiles(self.type.slot, self.array[number], self.written[number, ...], self.read[number, ...])


@dataclass
class Copy:
    """A copy under way."""

    target: Array
    source: Array


@dataclass
class NvFrame(MachineFrame):
    """One block: how many barriers it has passed, and the copies that are under way."""

    barriers: int = 0
    begun: list[Copy] = field(default_factory=list[Copy])
    groups: list[list[Copy]] = field(default_factory=list[list[Copy]])

    def reads(self, tiles: Tiles) -> None:
        """Notes that a tile is read; what was written since the last barrier, other threads need not see."""
        if tiles.written == self.barriers:
            raise RaceError(
                "shared memory is read that was written since the last barrier",
                hint="threads see what others wrote after nv.barrier, and what others copied after nv.wait",
            )
        tiles.read[...] = self.barriers

    def writes(self, tiles: Tiles) -> None:
        """Notes that a tile is written; what was read since the last barrier, other threads may read still."""
        if tiles.read == self.barriers:
            raise RaceError(
                "shared memory is written that was read since the last barrier",
                hint="put nv.barrier between the last reader and the next writer",
            )
        tiles.written[...] = self.barriers


def frame_of(frame: Frame) -> NvFrame:
    assert isinstance(frame, NvFrame), "ops of the nv level run in nv functions"
    return frame


@meaning(nv.ConvertOp)
def _convert(frame: Frame, op: nv.ConvertOp, operands: Values) -> Values:
    return [operands[0]]


@meaning(nv.BarrierOp, nv.SemaphoreWaitOp, nv.SemaphoreSignalOp)
def _barrier(frame: Frame, op: Operation, operands: Values) -> None:
    frame_of(frame).barriers += 1


@meaning(nv.GriddepcontrolWaitOp)
def _follow(frame: Frame, op: nv.GriddepcontrolWaitOp, operands: Values) -> None:
    """Does nothing: kernels are interpreted one after the other."""


# Shared memory


@meaning(nv.AllocOp)
def _alloc(frame: Frame, op: nv.AllocOp, operands: Values) -> Values:
    type_ = shared_type(op.result)
    never = np.full(type_.shape[:-2], -1)
    return [Tiles(type_, frame_of(frame).fresh(type_.shape, type_.dtype), never, never.copy())]


@meaning(nv.SlotOp)
def _slot(frame: Frame, op: nv.SlotOp, operands: Values) -> Values:
    ring, number = operands
    return [ring.slot(int(number))]


@meaning(nv.WriteOp)
def _write(frame: Frame, op: nv.WriteOp, operands: Values) -> None:
    value, tiles = operands
    frame_of(frame).writes(tiles)
    tiles.array[op.first_row : op.first_row + len(value)] = value


@meaning(nv.RowsOp)
def _rows(frame: Frame, op: nv.RowsOp, operands: Values) -> Values:
    axis, first = op.axis.value.data, op.first.value.data
    return [operands[0].take(range(first, first + tile_type(op.result).get_shape()[axis]), axis=axis)]


@meaning(nv.ReadOp)
def _read(frame: Frame, op: nv.ReadOp, operands: Values) -> Values:
    tiles: Tiles = operands[0]
    frame_of(frame).reads(tiles)
    row, column, shape = op.row.value.data, op.column.value.data, tile_type(op.result).get_shape()
    height, width = shape if op.transposed is None else shape[::-1]
    part = tiles.array[row : row + height, column : column + width]
    return [(part if op.transposed is None else part.T).copy()]


# Copies


@meaning(nv.CopyAsyncOp)
def _copy(frame: Frame, op: nv.CopyAsyncOp, operands: Values) -> None:
    view, *offsets, tiles = operands
    block, transposed = frame_of(frame), op.transposed is not None
    block.writes(tiles)
    target = tiles.array
    shape = target.T.shape if transposed else target.shape
    extents = (*[1] * (len(offsets) - 2), *shape)
    source = read_window(view, offsets, extents).reshape(shape)
    target[...] = block.fresh(target.shape, tiles.type.dtype)
    block.begun.append(Copy(target, source.T if transposed else source))


@meaning(nv.CommitOp)
def _commit(frame: Frame, op: nv.CommitOp, operands: Values) -> None:
    block = frame_of(frame)
    block.groups.append(block.begun)
    block.begun = []


@meaning(nv.WaitOp)
def _wait(frame: Frame, op: nv.WaitOp, operands: Values) -> None:
    block, pending = frame_of(frame), op.pending.value.data
    landing = block.groups[: max(0, len(block.groups) - pending)]
    del block.groups[: len(landing)]
    for copy in itertools.chain.from_iterable(landing):
        copy.target[...] = copy.source
    block.barriers += 1


# Dots


@meaning(nv.MmaOp)
def _mma(frame: Frame, op: nv.MmaOp, operands: Values) -> Values:
    a, b, c = operands
    multiplied, carrier = multiply(a, b, tile_dtype(op.a), tile_dtype(op.b))
    total = tile_dtype(op.c)
    with np.errstate(all="ignore"):
        return [cast(np.add(multiplied, cast(c, total, carrier)), carrier, total)]
