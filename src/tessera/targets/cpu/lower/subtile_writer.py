"""Writes a part (subtile) of each tile op at a time: the op is written again for that part, by a rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IndexType, IntegerType, UnitAttr
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, f32, i32
from tessera.ir.common import elementwise
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.emit.memory import UNROLL, mark_inside
from tessera.targets.cpu.emit.registers import is_column
from tessera.targets.cpu.emit.tiles import FOR_DOTS
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.lower.clipping import Clipping
from tessera.targets.cpu.lower.in_bounds import lane_axis, moved
from tessera.targets.cpu.lower.lowering import Lowering, counts
from tessera.targets.cpu.lower.nests import Nest, shape_of
from tessera.targets.cpu.lower.unmasked_columns import NO_MASKS
from tessera.targets.llvm.emitter_attributes import APPROXIMATE, ROUNDED
from tessera.transforms.algebra.masks import Linear, positions
from tessera.transforms.core.folding import materialize

Axes: TypeAlias = tuple[tuple[SSAValue, int], ...]
"""Along each axis of a tile, where a piece of it starts and how long it is."""


EASY = 3
"""Elementwise steps that are sooner done again than kept in memory."""


class SubtileWriter:
    """Writes subtiles for one group of rows of a nest."""

    def __init__(self, lowering: Lowering, nest: Nest) -> None:
        self.lowering = lowering
        self.nest = nest
        self.local: dict[tuple[SSAValue, DType], SSAValue] = {}
        """Buffers for one group of rows."""
        self.clipping: Clipping | None = None
        self.live: SSAValue | None = None
        self.careful = False
        self.masks = NO_MASKS
        """Masks that are true all over in this loop."""
        self.zero: SSAValue
        self.pieces: dict[tuple[SSAValue, Axes], SSAValue] = {}
        self.rows: dict[SSAValue, SSAValue] = {}
        self.group: tuple[SSAValue, int]
        self._easy: dict[SSAValue, bool] = {}

    def piece(self, value: SSAValue, axes: Axes) -> SSAValue:
        """A piece of a tile of the source: made in this step, read from a buffer, or made again."""
        key = value, axes
        if key not in self.pieces:
            self.pieces[key] = self._find(value, axes)
        return self.pieces[key]

    def _find(self, value: SSAValue, axes: Axes) -> SSAValue:
        if value in self.rows:
            return self.rows[value]
        if not self.lowering.analysis.is_free(value):
            return self._read(value, axes)
        op = value.owner
        assert isinstance(op, Operation)
        return self._make(op, axes)

    def _read(self, value: SSAValue, axes: Axes) -> SSAValue:
        dtype, shape = tile_dtype(value), shape_of(value)
        result = tile_of(tuple(size for _, size in axes), dtype)
        local = self.local.get((value, dtype))
        if local is None and value in self.nest.phase_of and self.is_easy(value):
            op = value.owner
            assert isinstance(op, Operation)
            return self._make(op, axes)
        if local is not None:
            return self.lowering.add(cpu.LoadOp(local, self.zero, axes[-1][0], result)).results[0]
        buffer, column = self.lowering.buffer_of(value, dtype), _is_column(axes) and shape[1] != 1
        load = cpu.LoadOp(buffer, *self._buffer_place(shape, axes), result, column=column)
        return self.lowering.add(load).results[0]

    def _buffer_place(self, shape: Sequence[int], axes: Axes) -> tuple[SSAValue, SSAValue]:
        if not axes:
            return self.zero, self.zero
        if len(axes) == 1 or (shape[1] == 1 and shape[0] != 1):
            return self.zero, axes[0][0]
        return axes[0][0], axes[1][0]

    def _make(self, op: Operation, axes: Axes) -> SSAValue:
        if isinstance(op, tile.EwOp) and op.fn.data == "select" and op.operands_[0] in self.masks:
            return self.piece(op.operands_[1], axes)
        with self.lowering.located(op):
            return PIECES[type(op)](self, op, axes).results[0]

    def places(self, op: tile.AtPlaces, axes: Axes) -> tuple[list[SSAValue], SSAValue | None]:
        """The pieces of the places of an access, and of its mask."""
        indices = [self.piece(index, axes) for index in op.indices]
        return indices, None if op.mask is None else self.piece(op.mask, axes)

    def is_straight(self, op: tile.LoadOp | tile.StoreOp, axes: Axes) -> bool:
        """Whether a piece's lanes run along the axis that was found to be dense; see `inside_conditions`."""
        lanes = 0 if _is_column(axes) or len(axes) == 1 else 1
        return bool(axes) and lanes == lane_axis(shape_of(moved(op)))

    def offsets(self, offsets: Sequence[SSAValue], axes: Axes) -> list[SSAValue]:
        values = self.lowering.values
        return [self.sum(values[offset], start) for offset, (start, _) in zip(offsets, axes, strict=True)]

    def sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if b is self.zero:
            return a
        return self.lowering.add(arith.AddiOp(a, b)).results[0]

    def rounded_up(self, value: SSAValue, step: int) -> SSAValue:
        lowering = self.lowering
        every = lowering.constant(step)
        return lowering.add(arith.MuliOp(lowering.add(arith.CeilDivSIOp(value, every)).results[0], every)).results[0]

    def is_easy(self, value: SSAValue) -> bool:
        """Whether a value is sooner computed again, from tiles in memory, than kept."""
        if value not in self._easy:
            steps = self._steps_to(value)
            self._easy[value] = steps is not None and steps <= EASY
        return self._easy[value]

    def _steps_to(self, value: SSAValue) -> int | None:
        """Elementwise steps from tiles in memory and values of one row to a value of this nest."""
        if value not in self.nest.phase_of or self.nest.phase_of[value][1]:
            return 0
        op = value.owner
        if not isinstance(op, tile.EwOp):
            return None
        cost, leaves = elementwise.TABLE[op.fn.data].cost, self.lowering.analysis.leaves
        below = [self._steps_to(leaf) for operand in op.operands_ for leaf, _ in leaves(operand, self.nest.rows)]
        if cost.special or cost.divide or any(steps is None for steps in below):
            return None
        return cost.simple + cost.convert + sum(steps for steps in below if steps is not None)


def _is_column(axes: Axes) -> bool:
    return is_column([size for _, size in axes])


def _full(writer: SubtileWriter, op: tile.FullOp, axes: Axes) -> Operation:
    return writer.lowering.add(tile.FullOp(writer.lowering.values[op.value], [size for _, size in axes]))


def _iota(writer: SubtileWriter, op: tile.IotaOp, axes: Axes) -> Operation:
    axis = op.axis.value.data
    base = writer.sum(writer.lowering.values[op.base], axes[axis][0])
    shape = tuple(size for _, size in axes)
    return writer.lowering.add(tile.IotaOp(base, axis, tile_of(shape, tile_dtype(op.result))))


def _expand(writer: SubtileWriter, op: tile.ExpandOp, axes: Axes) -> Operation:
    axis = op.axis.value.data
    piece = writer.piece(op.operand, (*axes[:axis], *axes[axis + 1 :]))
    return writer.lowering.add(tile.ExpandOp(piece, axis))


def _broadcast(writer: SubtileWriter, op: tile.BroadcastOp, axes: Axes) -> Operation:
    shape = shape_of(op.operand)
    inner = tuple((writer.zero, 1) if size == 1 else axis for size, axis in zip(shape, axes, strict=True))
    piece = writer.piece(op.operand, inner)
    return writer.lowering.add(tile.BroadcastOp(piece, [size for _, size in axes]))


def _trans(writer: SubtileWriter, op: tile.TransOp, axes: Axes) -> Operation:
    permutation = tuple(op.permutation.iter_values())
    inner = tuple(axes[permutation.index(axis)] for axis in range(len(axes)))
    return writer.lowering.add(tile.TransOp(writer.piece(op.operand, inner), permutation))


def _takes_zeros(writer: SubtileWriter, value: SSAValue) -> bool:
    """Whether zeros may stand for subnormal numbers: in operands of dots, and where kernels with dots take them so."""
    return writer.lowering.flushes or all(isinstance(user, tile.DotOp) for user, _ in writer.lowering.reads(value))


_FAR = 2**30
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _compared(writer: SubtileWriter, op: tile.EwOp, axes: Axes) -> Operation | None:
    """A comparison of positions in half the bits: their difference, cut off where it is far, against the column."""
    sides = [positions(operand) for operand in op.operands_] if len(axes) == 2 else []
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return None
    base, rows, cols = sides[0][0] - sides[1][0], sides[0][1] - sides[1][1], sides[0][2] - sides[1][2]
    name = op.fn.data
    if cols == 1:
        base, rows, cols, name = base * -1, -rows, -1, _SWAPPED[name]
    if cols != -1 or rows not in (0, 1):
        return None
    lowering = writer.lowering
    # rows · (row + start) + base against column + start
    for (start, _), sign in zip(axes, (rows, -1), strict=True):
        if start is not writer.zero:
            lowering.own.add(start)
            base += Linear(((start, sign),)) if sign else Linear()
    difference = lowering.linear(base)
    if difference is None:
        return None
    near = lowering.add(arith.MaxSIOp(difference, lowering.constant(-_FAR))).results[0]
    near = lowering.add(arith.MinSIOp(near, lowering.constant(_FAR))).results[0]
    shape = tuple(size for _, size in axes)
    if rows:
        left = lowering.add(tile.IotaOp(near, 0, tile_of(shape, i32))).results[0]
    else:
        scalar = lowering.add(arith.IndexCastOp(near, element_of(i32))).results[0]
        left = lowering.add(tile.FullOp(scalar, shape)).results[0]
    right = lowering.add(tile.IotaOp(writer.zero, 1, tile_of(shape, i32))).results[0]
    return lowering.add(tile.EwOp(name, [left, right]))


_SMALL = 2**8
"""Factors of rows and columns so small that no tile has positions beyond 2^23, whatever it starts from."""


def _as_float(writer: SubtileWriter, op: tile.EwOp, axes: Axes) -> Operation | None:
    """Positions as f32, from half the bits: what the first one rounds to, and what all are away from that.

    The sum of the two is rounded once, like the position itself.
    """
    found = positions(op.operands_[0]) if len(axes) == 2 and op.result_dtype is f32 else None
    if found is None or max(map(abs, found[1:])) > _SMALL or not all(counts(scalar) for scalar, _ in found[0].terms):
        return None
    base, *factors = found
    lowering, shape = writer.lowering, tuple(size for _, size in axes)
    for (start, _), factor in zip(axes, factors, strict=True):
        if start is not writer.zero and factor:
            lowering.own.add(start)
            base += Linear(((start, factor),))
    first = lowering.linear(base)
    if first is None:
        return None
    i64_, f32_ = IntegerType(64), Float32Type()
    whole = lowering.add(arith.IndexCastOp(first, i64_)).results[0]
    near = lowering.add(arith.SIToFPOp(whole, f32_)).results[0]
    back = lowering.add(arith.FPToSIOp(near, i64_)).results[0]
    rest = lowering.add(arith.IndexCastOp(lowering.add(arith.SubiOp(whole, back)).results[0], IndexType())).results[0]
    away: SSAValue | None = None
    for axis, factor in enumerate(factors):
        if not factor:
            continue
        steps = lowering.add(tile.IotaOp(writer.zero, axis, tile_of(shape, i32))).results[0]
        if factor != 1:
            scalar = lowering.add(materialize(factor, element_of(i32))).results[0]
            full = lowering.add(tile.FullOp(scalar, shape)).results[0]
            steps = lowering.add(tile.EwOp("mul", [steps, full])).results[0]
        away = steps if away is None else lowering.add(tile.EwOp("add", [away, steps])).results[0]
    scalar = lowering.add(arith.IndexCastOp(rest, element_of(i32))).results[0]
    beyond = lowering.add(tile.FullOp(scalar, shape)).results[0]
    away = beyond if away is None else lowering.add(tile.EwOp("add", [away, beyond])).results[0]
    distance = lowering.add(tile.EwOp("cast", [away], to=f32)).results[0]
    return lowering.add(tile.EwOp("add", [distance, lowering.add(tile.FullOp(near, shape)).results[0]]))


def _ew(writer: SubtileWriter, op: tile.EwOp, axes: Axes) -> Operation:
    if op.fn.data in _SWAPPED and (narrow := _compared(writer, op, axes)) is not None:
        return narrow
    if op.fn.data == "cast" and (narrow := _as_float(writer, op, axes)) is not None:
        return narrow
    operands = [writer.piece(operand, axes) for operand in op.operands_]
    made = tile.EwOp.create(
        operands=operands,
        properties=op.properties,
        result_types=[tile_of(tuple(size for _, size in axes), tile_dtype(op.result))],
    )
    if ROUNDED in op.attributes:
        made.attributes[ROUNDED] = UnitAttr()
    if writer.lowering.machine.contract and writer.lowering.tolerances.allows_approximation(op):
        made.attributes[APPROXIMATE] = UnitAttr()
    if op.fn.data == "cast" and _takes_zeros(writer, op.result):
        made.attributes[FOR_DOTS] = UnitAttr()
    return writer.lowering.add(made)


def _load(writer: SubtileWriter, op: tile.LoadOp, axes: Axes) -> Operation:
    pad = None if op.pad is None else op.pad_value
    offsets = writer.offsets(op.offsets, axes)
    made = tile.LoadOp(writer.lowering.values[op.view], offsets, [size for _, size in axes], pad)
    if not writer.careful and writer.is_straight(op, axes):
        mark_inside(made)
    return writer.lowering.add(made)


def _read(writer: SubtileWriter, op: tile.ReadOp, axes: Axes) -> Operation:
    indices, mask = writer.places(op, axes)
    return writer.lowering.add(tile.ReadOp(writer.lowering.values[op.view], indices, mask=mask))


def _take(writer: SubtileWriter, op: tile.TakeOp, axes: Axes) -> Operation:
    indices = [writer.piece(index, axes) for index in op.indices]
    shape, lowering = shape_of(op.operand), writer.lowering
    return lowering.add(cpu.TakeOp(lowering.buffer_of(op.operand, tile_dtype(op.operand)), indices, shape))


def _halves(writer: SubtileWriter, op: tile.UnpackOp | tile.PackOp, axes: Axes) -> Operation:
    lowering, starts = writer.lowering, [start for start, _ in axes]
    kind = cpu.LoadHalvesOp if isinstance(op, tile.UnpackOp) else cpu.LoadPairsOp
    buffer = lowering.buffer_of(op.operand, tile_dtype(op.operand))
    result = tile_of(tuple(size for _, size in axes), tile_dtype(op.result))
    return lowering.add(kind(buffer, starts, shape_of(op.operand), op.axis.value.data, result))


def _dot(writer: SubtileWriter, op: tile.DotOp, axes: Axes) -> Operation:
    lowering = writer.lowering
    dtype = tile_dtype(op.c)
    local = writer.local.get((op.a, dtype))
    left = local if local is not None else lowering.buffer_of(op.a, dtype)
    row = writer.zero if local is not None or writer.nest.rows == 1 else writer.group[0]
    if op in lowering.packed:
        right, number = lowering.packed[op]
    else:
        right, number = lowering.buffer_of(op.b, dtype), writer.zero
    start = writer.piece(op.c, axes)
    depth = None
    if writer.live is not None and writer.clipping is not None and op in writer.clipping.dots:
        depth = writer.rounded_up(writer.live, UNROLL)
    return lowering.add(cpu.DotOp(left, row, right, number, axes[1][0], start, depth=depth))


PIECES: Mapping[type[Operation], Callable[[SubtileWriter, Any, Axes], Operation]] = {
    tile.FullOp: _full,
    tile.IotaOp: _iota,
    tile.ExpandOp: _expand,
    tile.BroadcastOp: _broadcast,
    tile.TransOp: _trans,
    tile.EwOp: _ew,
    tile.LoadOp: _load,
    tile.ReadOp: _read,
    tile.TakeOp: _take,
    tile.UnpackOp: _halves,
    tile.PackOp: _halves,
    tile.DotOp: _dot,
}
