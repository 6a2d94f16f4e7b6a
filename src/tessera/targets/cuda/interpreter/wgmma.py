"""The meaning of wgmma, of waits for it, and of ops on its accumulators, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.types import f64
from tessera.errors import RaceError
from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.interpreters.core.views import Array
from tessera.interpreters.levels.tile import multiply
from tessera.ir.common.reductions import TABLE
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.interpreter.warp_groups import (
    BY_THREAD,
    PASSING,
    THREADS,
    WARPS,
    Lanes,
    Pending,
    SharedTiles,
    at,
    owners,
    same,
    warpgroup,
)
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ir.types import layout_of, shared_type

BY_THREAD.add(wgmma.StmatrixOp)
PASSING.update([wgmma.WgmmaOp, wgmma.WgmmaWaitOp])


@meaning(wgmma.WgmmaOp)
def _wgmma(frame: Frame, op: wgmma.WgmmaOp, operands: Values) -> Values:
    here, (a, b, *rest) = warpgroup(frame), operands
    beside = rest.pop(0) if op.beside is not None else None
    before = rest.pop(0) if op.sum is not None else None
    columns = tile_type(op.result).get_shape()[1]
    for tiles in (a, b, beside):
        if isinstance(tiles, SharedTiles):
            here.block.check_fenced(tiles.array)

    def finish() -> Array:
        left = a.array if isinstance(a, SharedTiles) else a
        left = left.T if op.across is not None else left
        right = _in_order(b).T if op.transposed is not None else b.array
        if beside is not None:
            right = np.concatenate([right, beside.array], 1)[:, :columns]
        dtype = a.type.dtype if isinstance(a, SharedTiles) else tile_dtype(op.a)
        multiplied, carrier = multiply(left, right, dtype, b.type.dtype)
        start = before.value if isinstance(before, Pending) else before
        total = tile_dtype(op.result)
        with np.errstate(all="ignore"):
            return cast(multiplied if start is None else multiplied + cast(start, total, carrier), carrier, total)

    made = Pending(finish)
    here.dots.append(made)
    return [made]


def _in_order(tiles: SharedTiles) -> Array:
    """A tile of shared memory, its columns in order."""
    found = np.empty_like(tiles.array)
    found[:, tiles.type.held_columns] = tiles.array
    return found


@meaning(wgmma.WgmmaWaitOp)
def _wgmma_wait(frame: Frame, op: wgmma.WgmmaWaitOp, operands: Values) -> Values:
    here = warpgroup(frame)
    while len(here.dots) > op.pending.value.data:
        done = here.dots.pop(0)
        done.value = done.finish()
    found: list[Any] = []
    for value in operands[: len(op.values)]:
        if isinstance(value, Pending) and value.value is None:
            raise RaceError("an accumulator is handed on while its dot may still run", hint="wait for more groups")
        found.append(value.value if isinstance(value, Pending) else value)
    return found


@meaning(wgmma.StmatrixOp)
def _store_matrix(frame: Frame, op: wgmma.StmatrixOp, operands: Values) -> None:
    here, (value, tiles) = warpgroup(frame), operands
    type_ = shared_type(op.shared)
    first = op.column.value.data
    part = value[:, first : first + type_.columns]
    if type_.rows == wgmma.ROWS:
        parts = [(same(tiles, "the tile of 64 rows"), part)]
    else:
        parts = [(at(tiles, 32 * warp), part[16 * warp : 16 * warp + 16]) for warp in range(WARPS)]
    for target, rows in parts:
        target.array[...] = rows
        here.block.unfenced.append((here.group, target.array))


@meaning(wgmma.ColumnsOp)
def _columns(frame: Frame, op: wgmma.ColumnsOp, operands: Values) -> Values:
    first = op.first.value.data
    return [operands[0][:, first : first + tile_type(op.result).get_shape()[1]]]


@meaning(wgmma.JoinOp)
def _join(frame: Frame, op: wgmma.JoinOp, operands: Values) -> Values:
    return [np.concatenate(operands, 1)]


@meaning(wgmma.PartialOp)
def _partial(frame: Frame, op: wgmma.PartialOp, operands: Values) -> Values:
    """The reduction of each thread's elements along the axis, a column for each thread."""
    value: Array = operands[0]
    axis, dtype, shape = op.axis.value.data, tile_dtype(op.operand), tile_type(op.result).get_shape()
    layout = layout_of(op.operand)
    reduction = TABLE[op.kind.data]
    wide = np.moveaxis(cast(value, dtype, f64), axis, 0)
    starts = [0]
    for digit in layout.threads:
        if digit.axis == axis:
            starts = [low + high * digit.step for high in range(digit.size) for low in starts]
    offsets = np.array(sorted(set(layout.offsets(axis))))
    assert len(starts) == shape[axis]
    found = [reduction.numpy(wide[start + offsets], axis=(0,), initial=reduction.identity(dtype)) for start in starts]
    return [cast(np.moveaxis(np.stack(found), 0, axis), f64, dtype)]


@meaning(wgmma.AnyOp)
def _any(frame: Frame, op: wgmma.AnyOp, operands: Values) -> Values:
    value: Array = operands[0]
    warps = owners(layout_of(op.operand), value.shape) // 32
    flags = [int(np.any(value & (warps == warp))) for warp in range(WARPS)]
    return [Lanes.of([flags[thread // 32] for thread in range(THREADS)])]
