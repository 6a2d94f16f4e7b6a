"""Pieces of tiles: how each tile op of the source is written again for a part of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, IndexType, IntegerType, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import f32, i32
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.emit.memory import UNROLL, mark_inside
from tessera.targets.cpu.emit.tiles import FOR_PRODUCTS
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.lower.nests import shape_of
from tessera.targets.llvm.marks import BRIEF, ROUNDED
from tessera.transforms.algebra.masks import Linear, positions
from tessera.transforms.core.folding import materialize

if TYPE_CHECKING:
    from tessera.targets.cpu.lower.nest_writer import NestWriter

Axes: TypeAlias = tuple[tuple[SSAValue, int], ...]
"""Along each axis of a tile, where a piece of it starts and how long it is."""


def _full(writer: NestWriter, op: tile.FullOp, axes: Axes) -> Operation:
    return writer.lowering.add(tile.FullOp(writer.lowering.values[op.value], [size for _, size in axes]))


def _iota(writer: NestWriter, op: tile.IotaOp, axes: Axes) -> Operation:
    axis = op.axis.value.data
    base = writer.sum(writer.lowering.values[op.base], axes[axis][0])
    shape = tuple(size for _, size in axes)
    return writer.lowering.add(tile.IotaOp(base, axis, tile_of(shape, tile_dtype(op.result))))


def _expand(writer: NestWriter, op: tile.ExpandOp, axes: Axes) -> Operation:
    axis = op.axis.value.data
    piece = writer.piece(op.operand, (*axes[:axis], *axes[axis + 1 :]))
    return writer.lowering.add(tile.ExpandOp(piece, axis))


def _broadcast(writer: NestWriter, op: tile.BroadcastOp, axes: Axes) -> Operation:
    shape = shape_of(op.operand)
    inner = tuple((writer.zero, 1) if size == 1 else axis for size, axis in zip(shape, axes, strict=True))
    piece = writer.piece(op.operand, inner)
    return writer.lowering.add(tile.BroadcastOp(piece, [size for _, size in axes]))


def _trans(writer: NestWriter, op: tile.TransOp, axes: Axes) -> Operation:
    permutation = tuple(op.permutation.iter_values())
    inner = tuple(axes[permutation.index(axis)] for axis in range(len(axes)))
    return writer.lowering.add(tile.TransOp(writer.piece(op.operand, inner), permutation))


def _takes_zeros(writer: NestWriter, value: SSAValue) -> bool:
    """Whether zeros may stand for subnormal numbers: in products, and where kernels with products take them so."""
    return writer.lowering.flushes or all(isinstance(user, tile.DotOp) for user, _ in writer.lowering.reads(value))


_FAR = 2**30
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _compared(writer: NestWriter, op: tile.EwOp, axes: Axes) -> Operation | None:
    """A comparison of positions in half the bits: their difference, cut off where it is far, against the column."""
    sides = [positions(operand) for operand in op.operands_] if len(axes) == 2 else []
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return None
    base, rows, cols = sides[0][0] - sides[1][0], sides[0][1] - sides[1][1], sides[0][2] - sides[1][2]
    name = op.fn.data
    if cols == 1:
        base, rows, cols, name = base * -1, -rows, -1, _TURNED[name]
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


def _as_float(writer: NestWriter, op: tile.EwOp, axes: Axes) -> Operation | None:
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


def counts(scalar: SSAValue) -> bool:
    """Whether a scalar counts programs, turns or elements: memory bounds it, and numbers of users do not."""
    owner = scalar.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), scf.ForOp) and owner.args[0] is scalar
    return isinstance(owner, tile.ProgramIdOp | tile.DimOp)


def _ew(writer: NestWriter, op: tile.EwOp, axes: Axes) -> Operation:
    if op.fn.data in _TURNED and (narrow := _compared(writer, op, axes)) is not None:
        return narrow
    if op.fn.data == "cast" and (narrow := _as_float(writer, op, axes)) is not None:
        return narrow
    operands = [writer.piece(operand, axes) for operand in op.operands_]
    made = tile.EwOp.create(
        operands=operands,
        properties=op.properties,
        result_types=[tile_of(tuple(size for _, size in axes), tile_dtype(op.result))],
    )
    if op.fn.data == "mul" and op.result not in writer.lowering.multiples:
        made.attributes[ROUNDED] = UnitAttr()
    if writer.lowering.machine.contract and writer.lowering.tolerances.is_brief(op):
        made.attributes[BRIEF] = UnitAttr()
    if op.fn.data == "cast" and _takes_zeros(writer, op.result):
        made.attributes[FOR_PRODUCTS] = UnitAttr()
    return writer.lowering.add(made)


def _load(writer: NestWriter, op: tile.LoadOp, axes: Axes) -> Operation:
    pad = None if op.pad is None else op.pad_value
    offsets = writer.offsets(op.offsets, axes)
    made = tile.LoadOp(writer.lowering.values[op.view], offsets, [size for _, size in axes], pad)
    if not writer.careful and writer.is_straight(op, axes):
        mark_inside(made)
    return writer.lowering.add(made)


def _read(writer: NestWriter, op: tile.ReadOp, axes: Axes) -> Operation:
    places = [writer.piece(index, axes) for index in op.indices]
    return writer.lowering.add(tile.ReadOp(writer.lowering.values[op.view], places))


def _dot(writer: NestWriter, op: tile.DotOp, axes: Axes) -> Operation:
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
    if writer.live is not None and writer.clipping is not None and op in writer.clipping.products:
        depth = writer.rounded_up(writer.live, UNROLL)
    return lowering.add(cpu.DotOp(left, row, right, number, axes[1][0], start, depth))


PIECES: Mapping[type[Operation], Callable[[NestWriter, Any, Axes], Operation]] = {
    tile.FullOp: _full,
    tile.IotaOp: _iota,
    tile.ExpandOp: _expand,
    tile.BroadcastOp: _broadcast,
    tile.TransOp: _trans,
    tile.EwOp: _ew,
    tile.LoadOp: _load,
    tile.ReadOp: _read,
    tile.DotOp: _dot,
}
