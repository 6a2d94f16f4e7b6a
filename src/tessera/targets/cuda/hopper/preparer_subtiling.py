"""Preparer subtiling: an operand is computed some rows at a time, between reading them and writing them.

A tile that is computed as a whole would be in registers as a whole, in f32 at that, and threads of a preparer have few.
Where each element depends on those at its own position only, the pieces follow each other: what is read of shared
memory is read for the piece, unless it is little, and what a thread has for all rows is made once, in front of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tessera.ir.common.attributes import integer
from tessera.ir.common.elements import TileType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper import MbarrierArriveOp
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import laid_out, layout_of
from tessera.targets.cuda.lower.layout_analysis import is_tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace

HELD = 32
"""Elements that a thread computes at a time."""
READ_BYTES = 64
"""Of a tile that a thread reads at once, in front of all pieces: then it waits for shared memory once."""


def subtile_preparers(function: nv.FuncOp) -> int:
    """Subtiles tiles that are computed of shared memory and written to shared memory, and returns how many."""
    writes = [op for op in function.body.walk() if isinstance(op, nv.WriteOp)]
    return sum(_Chain(op).cut() for op in writes)


SubtilePreparers = function_pass("subtile-preparers", subtile_preparers, nv.FuncOp)


class _Chain:
    """The ops that a written tile is made by, with the axis along which each has the rows of the piece."""

    def __init__(self, write: nv.WriteOp) -> None:
        self.write = write
        self.axes: dict[Operation, int] = {}
        self.reads_early = False
        """Whether a tile is read at once."""

    def cut(self) -> bool:
        """Writes the chain once for each piece, if all of it can be cut into as many; whether there was one."""
        layout = layout_of(self.write.value)
        count = _pieces(layout)
        block = self.write.parent_block()
        assert block is not None
        self._follow(self.write.value, 0, count)
        inside = [op for op in block.ops if op in self.axes]
        reads = [op for op in inside if isinstance(op, nv.ReadOp)]
        if (
            count == 1
            or not (reads or self.reads_early)
            or any(map(self._is_released_behind, reads))
            or _narrowed(tile_type(self.write.value), 0, count) is None
        ):
            return False
        made: list[Operation] = []
        for piece in range(count):
            values: dict[SSAValue, SSAValue] = {}
            for op in inside:
                made += self._piece(op, piece, count, values)
            rows = tile_type(self.write.value).get_shape()[0] // count
            made.append(nv.WriteOp(values[self.write.value], self.write.shared, row=piece * rows))
        replace(self.write, made, [])
        for op in reversed(inside):
            if not any(result.first_use for result in op.results):
                op.detach()
                op.erase()
        return True

    def _follow(self, value: SSAValue, axis: int, count: int) -> None:
        """Adds the op that makes a tile, and those behind it, as far as they can be cut along their axis."""
        op = value.owner
        if not isinstance(op, Operation) or op.parent_block() is not self.write.parent_block():
            return
        if self.axes.get(op, axis) != axis or not isinstance(op, _CUT):
            return
        operands = list(_operands(op, axis))
        if _narrowed(tile_type(value), axis, count) is None or any(
            _narrowed(tile_type(one), along, count) is None for one, along in operands
        ):
            return
        if not all(self._is_inside(use.operation) for use in value.uses):
            return
        if isinstance(op, nv.ReadOp) and layout_of(value).count * tile_dtype(value).storage.itemsize <= READ_BYTES:
            self.reads_early = True
            return
        self.axes[op] = axis
        for one, along in operands:
            self._follow(one, along, count)

    def _is_released_behind(self, read: Operation) -> bool:
        """Whether something is released between a read and the write: the read stays in front of it then."""
        op: Operation | None = read
        while op is not None and op is not self.write:
            if isinstance(op, MbarrierArriveOp):
                return True
            op = op.next_op
        return False

    def _is_inside(self, op: Operation) -> bool:
        return op is self.write or op in self.axes

    def _piece(self, op: Operation, piece: int, count: int, values: dict[SSAValue, SSAValue]) -> list[Operation]:
        made: list[Operation] = []
        axis = self.axes[op]
        for value, along in _operands(op, axis):
            if value not in values:
                owner = value.owner
                assert not isinstance(owner, Operation) or owner not in self.axes
                rows = tile_type(value).get_shape()[along] // count
                part = nv.RowsOp(value, along, piece * rows, _narrow(tile_type(value), along, count))
                made.append(part)
                values[value] = part.result
        clone = op.clone(dict(values))
        rows = tile_type(op.results[0]).get_shape()[axis] // count
        if isinstance(clone, nv.ReadOp):
            first = clone.row if axis == 0 else clone.column
            clone.properties["row" if axis == 0 else "column"] = integer(first.value.data + piece * rows)
        Rewriter.replace_value_with_new_type(clone.results[0], _narrow(tile_type(op.results[0]), axis, count))
        values[op.results[0]] = clone.results[0]
        return [*made, clone]


_CUT = (nv.ReadOp, tile.EwOp, tile.UnpackOp, tile.BroadcastOp, tile.ExpandOp, tile.TransOp)
"""Ops of which a piece is made of pieces of their operands."""


def _operands(op: Operation, axis: int) -> Sequence[tuple[SSAValue, int]]:
    """The tiles that a piece of an op's result takes pieces of, with their axes."""
    match op:
        case tile.EwOp() | tile.UnpackOp():
            return [(value, axis) for value in op.operands if is_tile(value)]
        case tile.BroadcastOp():
            return [] if tile_type(op.operand).get_shape()[axis] == 1 else [(op.operand, axis)]
        case tile.ExpandOp():
            inserted = op.axis.value.data
            return [] if axis == inserted else [(op.operand, axis - (axis > inserted))]
        case tile.TransOp():
            return [(op.operand, tuple(op.permutation.iter_values())[axis])]
        case _:
            return []


def _pieces(layout: Layout) -> int:
    """Into how many pieces a tile is cut: the fewest that a thread holds at most so many elements of."""
    top = max((digit for digit in layout.registers if digit.axis == 0), key=lambda digit: digit.step, default=None)
    if top is None:
        return 1
    counts = [count for count in range(1, top.size + 1) if top.size % count == 0]
    return next((count for count in counts if layout.count // count <= HELD), counts[-1])


def _narrowed(type_: TileType, axis: int, count: int) -> Layout | None:
    """The layout of a piece, whose registers are those of the highest digit along an axis; None where it is none."""
    layout, size = layout_of(type_), type_.get_shape()[axis]
    top = max((digit for digit in layout.registers if digit.axis == axis), key=lambda digit: digit.step, default=None)
    if top is None or top.size % count or top.size * top.step != size:
        return None
    if any(digit.axis == axis and digit.step > top.step for digit in layout.threads):
        return None
    registers = [digit._replace(size=digit.size // count) if digit is top else digit for digit in layout.registers]
    return Layout.of(layout.threads, registers)


def _narrow(type_: TileType, axis: int, count: int) -> TileType:
    layout = _narrowed(type_, axis, count)
    assert layout is not None
    shape = list(type_.get_shape())
    shape[axis] //= count
    return laid_out(TensorType(type_.element_type, shape), layout)
