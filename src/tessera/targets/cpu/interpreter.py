"""The meaning of the cpu level: what the threads of a kernel do together, on NumPy.

Memory that was never written is full of NaN, or with a seed of random numbers, so that a kernel which reads it gives
itself away. Packed operands are kept as plain matrices: how they lie in memory is the emitter's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType
from tessera.errors import ShapeError
from tessera.interpreters.core.engine import Frame, Values, meaning, symbol_in
from tessera.interpreters.core.halves import bytes_of, halves_of
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.core.places import taken
from tessera.interpreters.core.views import Array, ArrayView, window
from tessera.interpreters.levels.machine_frame import MachineFrame
from tessera.interpreters.levels.tile import bind, check_writable, multiply
from tessera.ir.common import reductions
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cpu.emit.memory import INSIDE, UNROLL
from tessera.targets.cpu.emit.registers import extent, is_column
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, BufferType, PanelsType, buffer_type, panels_type, rounded_up


def run_cpu_kernel(
    module: ModuleOp, name: str, arguments: Sequence[Any], *, machine: Machine | None = None, seed: int | None = None
) -> None:
    """Runs a cpu function. Arrays are written in place; scalars are Python numbers.

    With a seed, program instances run in an order drawn from it, each as if on a thread of its own, and fresh memory
    holds numbers drawn from it. A correct kernel gives the same results with every seed, up to the order of atomic
    sums.
    """
    kernel = symbol_in(module, name, cpu.FuncOp)
    bound = bind(name, kernel.function_type, kernel.shapes, kernel.grid, arguments)
    check_writable(name, kernel.body.block, bound.values)
    chance = None if seed is None else np.random.default_rng(seed)
    machine = machine if machine is not None else Machine()
    with machine.recording():
        CpuFrame(machine, bound.symbols, grid=bound.grid, chance=chance).run(kernel.body.block, bound.values)


@dataclass
class CpuFrame(MachineFrame):
    """A run of a cpu function: its grid, and what order and contents of fresh memory are drawn from."""

    grid: tuple[int, ...] = ()

    def perform(self, op: Operation, operands: Values) -> Values:
        if INSIDE in op.attributes and isinstance(op, tile.LoadOp | tile.StoreOp):
            is_load = isinstance(op, tile.LoadOp)
            view, *offsets = operands if is_load else operands[1:]
            _check_inside(view, offsets, tile_type(op.result if is_load else op.value).get_shape())
        return super().perform(op, operands)


def _check_inside(view: ArrayView, offsets: Sequence[int], shape: Sequence[int]) -> None:
    """An access that is marked so is done without any test: it must lie in the view, its lanes side by side."""
    inside, within = window(view, offsets, shape)
    if any(part.stop - part.start != size for part, size in zip(within, shape, strict=True)):
        raise ShapeError(
            f"a tile of sizes {list(shape)} at {list(offsets)} is marked as inside a view of sizes {list(view.sizes)}",
            shapes=[f"inside are {[part.stop - part.start for part in inside]}"],
            hint="the pass that marks an access as inside has to test that it is",
        )
    lanes = 0 if len(shape) == 1 or is_column(shape) else 1
    if shape and shape[lanes] > 1 and view.strides[lanes] != 1:
        raise ShapeError(
            f"an access marked as inside has lanes {view.strides[lanes]} elements apart along axis {lanes}",
            hint="the pass that marks an access as inside has to test that its lanes are neighbours",
        )


# Program instances


@meaning(cpu.GridOp)
def _grid(frame: Frame, op: cpu.GridOp, operands: Values) -> Values:
    assert isinstance(frame, CpuFrame)
    return [frame.grid[op.axis.value.data]]


@meaning(cpu.ParallelOp)
def _parallel(frame: Frame, op: cpu.ParallelOp, operands: Values) -> None:
    assert isinstance(frame, CpuFrame)
    outer, inner = operands
    made: Values = []
    last: int | None = None
    for here, there in _pairs(outer, inner, frame.chance):
        if last != here or frame.chance is not None:
            made, last = frame.run(op.once.block, [here]), here
        frame.program = here, there
        frame.run(op.body.block, [here, there, *made])


def _pairs(outer: int, inner: int, chance: np.random.Generator | None) -> Iterator[tuple[int, int]]:
    pairs = np.arange(max(0, outer) * max(0, inner)) if chance is None else chance.permutation(max(0, outer * inner))
    for number in pairs:
        yield divmod(int(number), inner)


# Memory


@dataclass(frozen=True)
class Buffer:
    """Rows of a thread's own memory; `lines` holds what lies between them, too."""

    type: BufferType
    lines: Array

    @property
    def rows(self) -> Array:
        return self.lines[:, : self.type.cols.data]

    def part(self, row: int, col: int, size: Sequence[int]) -> Array:
        """So many rows and columns from a place on."""
        (height, width), (rows, cols) = size, self.type.shape
        if not (0 <= row <= rows - height and 0 <= col <= cols - width):
            raise ShapeError(
                f"{height} by {width} elements at [{row}, {col}] leave a buffer of {rows} by {cols}",
                hint="a tile of one axis or one column lies along a row of the buffer",
            )
        return self.rows[row : row + height, col : col + width]


@dataclass(frozen=True)
class Panels:
    """Packed matrices, by number."""

    type: PanelsType
    matrices: Array

    def matrix(self, number: int) -> Array:
        if not 0 <= number < len(self.matrices):
            raise ShapeError(
                f"matrix {number} of {len(self.matrices)} that are packed together",
                hint="reserve memory for all of them",
            )
        return self.matrices[number]


@meaning(cpu.BufferOp)
def _buffer(frame: Frame, op: cpu.BufferOp, operands: Values) -> Values:
    assert isinstance(frame, CpuFrame)
    type_ = buffer_type(op.result)
    return [Buffer(type_, frame.fresh((type_.rows.data, type_.stride // type_.dtype.storage.itemsize), type_.dtype))]


@meaning(cpu.BorrowOp)
def _borrow(frame: Frame, op: cpu.BorrowOp, operands: Values) -> Values:
    view, row, col, *written = operands
    type_ = buffer_type(op.result)
    rows, cols = type_.shape
    inside, within = window(view, (row, col), type_.shape)
    lines = view.array[inside]
    if lines.shape != type_.shape or within != (slice(0, rows), slice(0, cols)):
        raise ShapeError(f"{rows} by {cols} elements at [{row}, {col}] leave a view of {view.sizes}")
    if lines.strides != (type_.stride, type_.dtype.storage.itemsize):
        raise ShapeError(f"rows {lines.strides} bytes apart are borrowed as {type_}")
    overlaps = any(np.may_share_memory(lines, one.array) for one in written)
    return [Buffer(type_, lines.copy() if overlaps else lines)]


@meaning(cpu.ReserveOp)
def _reserve(frame: Frame, op: cpu.ReserveOp, operands: Values) -> Values:
    assert isinstance(frame, CpuFrame)
    type_ = panels_type(op.result)
    if operands[0] < 0:
        raise ShapeError(f"memory for {operands[0]} matrices: a count is not negative")
    return [Panels(type_, frame.fresh((operands[0], *type_.shape), type_.dtype))]


@meaning(cpu.ClearOp)
def _clear(frame: Frame, op: cpu.ClearOp, operands: Values) -> None:
    buffer: Buffer = operands[0]
    buffer.lines[...] = 0


@meaning(cpu.LoadOp)
def _load(frame: Frame, op: cpu.LoadOp, operands: Values) -> Values:
    buffer, row, col = operands
    shape = tile_type(op.result).get_shape()
    size = shape if op.column is not None else extent(shape)
    return [buffer.part(row, col, size).reshape(shape).copy()]


@meaning(cpu.TakeOp)
def _take(frame: Frame, op: cpu.TakeOp, operands: Values) -> Values:
    buffer, *indices = operands
    shape = tuple(op.shape.iter_values())
    return [taken(buffer.part(0, 0, extent(shape)).reshape(shape), indices)]


@meaning(cpu.LoadHalvesOp)
def _load_halves(frame: Frame, op: cpu.LoadHalvesOp, operands: Values) -> Values:
    return [_part_of(op, operands, halves_of)]


@meaning(cpu.LoadPairsOp)
def _load_pairs(frame: Frame, op: cpu.LoadPairsOp, operands: Values) -> Values:
    return [_part_of(op, operands, bytes_of)]


def _part_of(
    op: cpu.LoadHalvesOp | cpu.LoadPairsOp, operands: Values, make: Callable[[Array, int, DType], Array]
) -> Array:
    buffer, *starts = operands
    shape, sizes = tuple(op.shape.iter_values()), tile_type(op.result).get_shape()
    whole = make(buffer.part(0, 0, extent(shape)).reshape(shape), op.axis.value.data, tile_dtype(op.result))
    if any(not 0 <= start <= extent_ - size for start, size, extent_ in zip(starts, sizes, whole.shape, strict=True)):
        raise ShapeError(f"{list(sizes)} elements at {starts} leave a tile of {list(whole.shape)}")
    return whole[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))].copy()


@meaning(cpu.StoreOp)
def _store(frame: Frame, op: cpu.StoreOp, operands: Values) -> None:
    value, buffer, row, col = operands
    part = buffer.part(row, col, extent(value.shape))
    part[...] = value.reshape(part.shape)


@meaning(cpu.PackOp)
def _pack(frame: Frame, op: cpu.PackOp, operands: Values) -> None:
    view, first, second, panels, number = operands
    matrix = panels.matrix(number)
    seen = matrix.T if op.transposed is not None else matrix
    inside, within = window(view, (first, second), seen.shape)
    seen[...] = 0
    seen[within] = cast(view.array[inside], view_dtype(op), panels.type.dtype)


def view_dtype(op: cpu.PackOp) -> DType:
    assert isinstance(op.view.type, tile.ViewType)
    return op.view.type.dtype


# Dots


def _check_depth(depth: int, cols: int, step: int) -> None:
    """A shortened dot is done in whole steps."""
    if not 0 <= depth <= cols or depth % step:
        raise ShapeError(
            f"a dot over {depth} of {cols} columns: expected whole steps of {step}",
            hint="round up, and see to it that the columns of the last step hold zeros",
        )


@meaning(cpu.DotOp)
def _dot(frame: Frame, op: cpu.DotOp, operands: Values) -> Values:
    a, row, b, number, col, c, *depth = operands
    rows, cols = c.shape
    if not 0 <= row <= a.type.rows.data - rows:
        raise ShapeError(f"{rows} rows from {row} on leave a buffer of {a.type.rows.data}")
    left = a.rows[row : row + rows]
    if isinstance(b, Panels):
        width = b.type.width.data
        if col % width or cols > width:
            raise ShapeError(
                f"a dot of {cols} columns from {col} on: they are not those of one panel of {width}",
                hint="start where a panel starts, and take no more than it has",
            )
        right = b.matrix(number)
    else:
        right = b.rows[: a.type.cols.data]
    if not 0 <= col <= right.shape[1] - cols:
        raise ShapeError(f"{cols} columns from {col} on leave a matrix of {right.shape[1]}")
    if depth:
        _check_depth(depth[0], right.shape[0], UNROLL)
        left, right = left[:, : depth[0]], right[: depth[0]]
    product, carrier = multiply(left, right[:, col : col + cols], a.type.dtype, b.type.dtype)
    total = tile_dtype(op.c)
    with np.errstate(all="ignore"):
        return [cast(np.add(product, cast(c, total, carrier)), carrier, total)]


@meaning(cpu.MatmulOp)
def _matmul(frame: Frame, op: cpu.MatmulOp, operands: Values) -> None:
    a, b, number, out, row, col, *depth = operands
    height, width = op.size.iter_values()
    for buffer in (a, out):
        if not 0 <= row <= buffer.type.rows.data - height:
            raise ShapeError(f"{height} rows from {row} on leave a buffer of {buffer.type.rows.data}")
    if not 0 <= col <= out.lines.shape[1] - width:
        raise ShapeError(f"{width} columns from {col} on leave rows of {out.type.cols.data}, filled up to whole lines")
    # The unit works in whole lines of the left operand. Beyond the last column it finds rows of zeros on the right, and
    # on the left what lies between the buffer's rows: zeros if it was cleared.
    step = LINE // a.type.dtype.storage.itemsize
    deep = rounded_up(a.type.cols.data, step)
    first, last = depth or (0, deep)
    for bound in (first, last):
        _check_depth(bound, deep, step)
    matrix = b.matrix(number)
    right = np.zeros((max(0, last - first), width), matrix.dtype)
    block = matrix[first:last, col : col + width]
    right[: block.shape[0], : block.shape[1]] = block
    product, carrier = multiply(
        a.lines[row : row + height, first : max(first, last)], right, a.type.dtype, b.type.dtype
    )
    target = out.lines[row : row + height, col : col + width]
    with np.errstate(all="ignore"):
        if op.added is not None:
            product = np.add(product, cast(target, out.type.dtype, carrier))
        target[...] = cast(product, carrier, out.type.dtype)


@meaning(cpu.AnyOp)
def _any(frame: Frame, op: cpu.AnyOp, operands: Values) -> Values:
    return [int(np.any(operands[0]))]


@meaning(cpu.PartialOp)
def _partial(frame: Frame, op: cpu.PartialOp, operands: Values) -> Values:
    acc, x = operands
    dtype, count = tile_dtype(op.acc), acc.shape[-1]
    missing = -x.shape[-1] % count
    nothing = np.full((*x.shape[:-1], missing), reductions.TABLE[op.kind.data].identity(dtype), dtype.storage)
    everything = np.concatenate([acc, x, nothing], -1).reshape(*x.shape[:-1], -1, count)
    return [reductions.apply(op.kind.data, everything, dtype, [everything.ndim - 2])]
