"""Tiles as boxes of an argument: the description of a load or a store that tensor maps (TMA) need.

A view that was made of an argument by fixing the coordinates of some axes is a part of it as a box is: its strides are
those of the argument's axes, its sizes theirs, and its offset is a sum of coordinates times strides. Copies through
tensor maps find the ends of an array by themselves, so a box ends where the argument does, and nowhere before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from tessera.dtypes.types import DType, bf16, f8e4m3, f8e5m2, f16, i8, u8
from tessera.ir.common.elements import TileType, dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.parts import comparisons
from tessera.ir.tile.types import tile_type
from tessera.shapes.expr import Size
from tessera.targets.cuda.ir.hopper_types import MOST_AXES, WIDEST_BOX
from tessera.targets.cuda.ir.tensor_cores import WGMMA_TYPES, depth_step
from tessera.transforms.core.constants import integer_of
from tessera.transforms.pipelining.exchange_axes import row_axis_of
from tessera.transforms.pipelining.prepared_operands import is_short_row

PANEL_BYTES = 128
"""Columns of a box, in bytes: wgmma wants panels of this width, swizzled."""
ROWS = 8
"""Rows of shared memory come in groups of so many: then swizzling begins anew."""

_STORED = {f16, bf16, f8e4m3, f8e5m2, i8, u8}
"""What goes out through shared memory: 16 bits, and 8."""
_MULTIPLIED = {left for left, _, _ in WGMMA_TYPES}

Start = SSAValue | int
"""Where a box begins along an axis."""


def panel_columns(dtype: DType) -> int:
    """Elements of a panel side by side."""
    return PANEL_BYTES // dtype.storage.itemsize


@dataclass(frozen=True)
class Box:
    """A tile of an argument: which of its axes the tile's are, and where it begins along every axis of it."""

    argument: BlockArgument
    axes: tuple[int, ...]
    starts: tuple[Start, ...]

    @property
    def sizes(self) -> tuple[Size, ...]:
        return _sizes_of(self.argument)

    @property
    def others(self) -> tuple[int, ...]:
        """The axes along which it has one coordinate, innermost first."""
        return tuple(axis for axis in reversed(range(len(self.starts))) if axis not in self.axes)

    def splits(self, columns: int, panel: int) -> bool:
        """Whether one copy can bring several panels of so many columns: rows of the argument are whole panels, and
        there is an axis to count them along."""
        last = self.sizes[self.axes[-1]]
        whole = isinstance(last, int) and last % panel == 0
        return whole and columns > panel and len(self.starts) < MOST_AXES and _divides(self.starts[self.axes[-1]])


def _divides(start: Start) -> bool:
    """Whether a box begins with a panel."""
    return _number(start) == 0


def box_of(view: SSAValue, offsets: Sequence[SSAValue]) -> Box | None:
    """The box of an argument that a tile at `offsets` of a view is; None where it is not one."""
    argument = tile.base_of(view)
    if not isinstance(argument, BlockArgument) or len(_sizes_of(argument)) > MOST_AXES:
        return None
    rank = len(_sizes_of(argument))
    last = row_axis_of(argument)
    last = rank - 1 if last is None else last
    if view is argument:
        return Box(argument, tuple(range(rank)), tuple(offsets)) if last == rank - 1 else None
    owner = view.owner
    assert isinstance(owner, tile.ViewOp)
    starts: list[Start | None] = [None] * rank
    for term in _offset_terms(view):
        found = _coordinate(term, argument)
        if found is None or starts[found[0]] is not None:
            return None
        starts[found[0]] = found[1]
    axes = _axes(owner, argument, last)
    # Axes in their order, and last the one whose elements lie side by side.
    if not axes or axes[-1] != last or list(axes[:-1]) != sorted({*axes} - {last}):
        return None
    for axis, size, offset in zip(axes, owner.sizes, offsets, strict=True):
        if starts[axis] is not None or _size(size, argument, starts) != _sizes_of(argument)[axis]:
            return None
        starts[axis] = offset
    return Box(argument, axes, tuple(0 if start is None else start for start in starts))


def _axes(owner: tile.ViewOp, argument: BlockArgument, last: int) -> tuple[int, ...] | None:
    """The argument's axes along which a view goes; along `last` neighbours lie side by side."""
    found: list[int] = []
    for index, stride in enumerate(owner.strides):
        axis = _stride_axis(stride, argument)
        if axis is None and index == len(owner.strides) - 1 and integer_of(stride) == 1:
            axis = last
        if axis is None:
            return None
        found.append(axis)
    return tuple(found)


def _sizes_of(argument: BlockArgument) -> tuple[Size, ...]:
    function = argument.block.parent_op()
    assert isinstance(function, tile.FuncOp)
    return tuple(function.shapes.data[argument.index].data)


def _size(value: SSAValue, argument: BlockArgument, starts: Sequence[Start | None]) -> Size | None:
    """A size as the function's head spells it. Where a part is guarded, boxes find by themselves what is outside."""
    owner = value.owner
    if isinstance(owner, tile.DimOp):
        view = owner.view
        if isinstance(view.owner, tile.ViewOp):
            return _size(view.owner.sizes[owner.axis.value.data], argument, starts)
        return _sizes_of(view)[owner.axis.value.data] if isinstance(view, BlockArgument) else None
    if isinstance(owner, arith.SelectOp) and integer_of(owner.rhs) == 0:
        tested = list(comparisons(owner.cond))
        seen = all(_is_coordinate(one, argument, starts) for one in tested)
        return _size(owner.lhs, argument, starts) if tested and seen else None
    return integer_of(value)


def _is_coordinate(test: arith.CmpiOp, argument: BlockArgument, starts: Sequence[Start | None]) -> bool:
    """Whether a test asks for a coordinate of a box in the range of its axis."""
    size, number = _size(test.rhs, argument, starts), integer_of(test.lhs)
    return size is not None and any(
        found == size and (start is test.lhs or (start is not None and number is not None and _number(start) == number))
        for start, found in zip(starts, _sizes_of(argument), strict=True)
    )


def _number(start: Start) -> int | None:
    return integer_of(start) if isinstance(start, SSAValue) else start


def _stride_axis(value: SSAValue, argument: BlockArgument) -> int | None:
    """The axis of the argument whose stride a value is."""
    owner = value.owner
    if not isinstance(owner, tile.StrideOp):
        return None
    if isinstance(owner.view.owner, tile.ViewOp):
        return _stride_axis(owner.view.owner.strides[owner.axis.value.data], argument)
    return owner.axis.value.data if owner.view is argument else None


def _offset_terms(view: SSAValue) -> Iterator[SSAValue]:
    """The terms of the offsets of a view, and of the views that it was made of."""
    owner = view.owner
    if isinstance(owner, tile.ViewOp):
        yield from _terms(owner.offset)
        yield from _offset_terms(owner.base)


def _terms(value: SSAValue) -> Iterator[SSAValue]:
    owner = value.owner
    if isinstance(owner, arith.AddiOp):
        yield from _terms(owner.lhs)
        yield from _terms(owner.rhs)
    elif integer_of(value) != 0:
        yield value


def _coordinate(term: SSAValue, argument: BlockArgument) -> tuple[int, Start] | None:
    """The axis and the coordinate that a term of an offset stands for."""
    axis = _stride_axis(term, argument)
    if axis is not None:
        return axis, 1
    owner = term.owner
    if isinstance(owner, arith.MuliOp):
        for stride, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            axis = _stride_axis(stride, argument)
            if axis is not None:
                return axis, other
    return None


def boxes_of(view: SSAValue, boxes: Sequence[Sequence[SSAValue]], axes: Sequence[int]) -> list[Box] | None:
    """The boxes of an argument, along some axes of a view, that start at given places; None where they are not such."""
    found = [box_of(view, starts) for starts in boxes]
    return [replace(one, axes=tuple(one.axes[axis] for axis in axes)) for one in found if one is not None] or None


def is_mapped(op: tile.BoxLoad | tile.StoreOp) -> bool:
    """Whether a tile can come, or go, through a tensor map.

    It has two axes, rows in groups of 8 (or is one row, which threads read), and columns in groups of 32 bytes. What is
    loaded has a type that warpgroups multiply, and zeros outside; what is stored has 16 or 8 bits, and a panel of
    columns at least. That the argument's rows lie at multiples of 16 bytes, their elements side by side, is known only
    when it is there.
    """
    if isinstance(op, tile.LoadOp):
        sized = fits(tile_type(op.result)) or is_short_row(op.result)
        return op.pad_value == 0 and sized and box_of(op.view, op.offsets) is not None
    if isinstance(op, tile.LoadBoxesOp):
        return fits(tile_type(op.result)) and boxes_of(op.view, op.boxes, tuple(op.axes.iter_values())) is not None
    type_ = tile_type(op.value)
    dtype = dtype_of(type_.element_type)
    if dtype not in _STORED or not fits(type_) or type_.get_shape()[1] < panel_columns(dtype):
        return False
    return box_of(op.view, op.offsets) is not None


def fits(type_: TileType) -> bool:
    """Whether tiles of a type have sizes and elements that copies and dots take."""
    shape, dtype = type_.get_shape(), dtype_of(type_.element_type)
    if len(shape) != 2 or dtype not in _MULTIPLIED:
        return False
    return shape[0] % ROWS == 0 and shape[1] % depth_step(dtype) == 0


def rows_at_once(rows: int) -> int:
    """The most rows that one copy brings, so that all bring as many."""
    return max(size for size in range(ROWS, min(rows, WIDEST_BOX) + 1, ROWS) if rows % size == 0)
