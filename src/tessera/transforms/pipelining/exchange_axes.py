"""`exchange-axes`: operands of dots are loaded in the order in which memory has them, and transposed as tiles.

Arrays whose last axis is not the contiguous one, such as `w.T`, are views like all others: their loads become loads of
a view whose axes are exchanged, and a `tile.trans` each. Copies of targets bring tiles in rows, and dots read either
order for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.ir.common.attributes import integers
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type, view_type
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import adopt_location, insert_before, replace
from tessera.transforms.core.tile_ops import Ops
from tessera.transforms.pipelining.make_async import feeds_dots, is_transposed

ROW_AXES = "tile.row_axes"
"""Names, in pairs, arguments of a function that are contiguous along another axis than the last, and that axis."""


@dataclass(frozen=True)
class ExchangeAxes(FunctionPass):
    """`exchange_axes`, for every tile function; the arguments and their contiguous axes are given side by side."""

    name = "exchange-axes"
    arguments: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()

    @staticmethod
    def of(exchanged: Iterable[tuple[int, int]]) -> ExchangeAxes:
        pairs = tuple(exchanged)
        return ExchangeAxes(tuple(argument for argument, _ in pairs), tuple(axis for _, axis in pairs))

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        exchange_axes(function, dict(zip(self.arguments, self.axes, strict=True)))


def exchange_axes(function: tile.FuncOp, axes: Mapping[int, int]) -> None:
    """Rewrites loads of arguments that are contiguous along the given axes, and says so in the head of the function."""
    views: dict[SSAValue, SSAValue] = {}
    loads = [op for op in function.body.walk() if isinstance(op, tile.LoadOp) and feeds_dots(op)]
    for load in loads:
        axis = _contiguous_axis(load.view, axes)
        if axis is not None and axis != view_type(load.view).rank.data - 1:
            _exchange(load, views)
    if axes:
        function.attributes[ROW_AXES] = integers([number for pair in axes.items() for number in pair])


def _exchange(load: tile.LoadOp, views: dict[SSAValue, SSAValue]) -> None:
    """Loads the transpose of a tile from its view with exchanged axes."""
    view = load.view
    if view not in views:
        views[view] = _exchanged_view(view)
    rows, columns = tile_type(load.result).get_shape()
    made = tile.LoadOp(views[view], load.offsets[::-1], (columns, rows))
    made.attributes.update(load.attributes)
    insert_before(load, [made])
    for use in list(load.result.uses):
        if isinstance(user := use.operation, tile.TransOp) and is_transposed(user):
            replace(user, [], [made.result])
    if load.result.first_use is None:
        load.detach()
        load.erase()
    else:
        replace(load, [tile.TransOp(made.result, (1, 0))])


def _exchanged_view(view: SSAValue) -> SSAValue:
    ops = Ops()
    sizes = [ops.add(tile.DimOp(view, axis)) for axis in (1, 0)]
    strides = [ops.add(tile.StrideOp(view, axis)) for axis in (1, 0)]
    made = ops.add(tile.ViewOp(view, ops.index(0), sizes, strides))
    made.name_hint = view.name_hint
    owner = view.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    assert block is not None
    around = block.parent_op() if isinstance(owner, Block) else owner
    assert around is not None
    adopt_location(ops.ops, around)
    Rewriter.insert_op(ops.ops, InsertPoint.at_start(block) if isinstance(owner, Block) else InsertPoint.after(owner))
    return made


def exchanged_axes(function: tile.FuncOp, lines: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """The arguments that are contiguous along another axis than the last, and that axis.

    `lines` counts from the end: 1 is the last axis, 0 none.
    """
    ranks = {index: view_type(function.body.block.args[index]).rank.data for index, axis in lines.items() if axis > 1}
    return tuple((index, rank - lines[index]) for index, rank in ranks.items())


def row_axis_of(argument: BlockArgument) -> int | None:
    """The axis of an argument that is contiguous, where the function's head says that it is not the last."""
    function = argument.block.parent_op()
    found = None if function is None else function.attributes.get(ROW_AXES)
    if not isinstance(found, DenseArrayBase):
        return None
    numbers = [int(number) for number in found.iter_values()]
    return dict(zip(numbers[::2], numbers[1::2], strict=True)).get(argument.index)


def _contiguous_axis(view: SSAValue, axes: Mapping[int, int]) -> int | None:
    """The axis of a view along which the argument behind it is contiguous; None where that is not known."""
    if isinstance(view, BlockArgument):
        return axes.get(view.index)
    if not isinstance(owner := view.owner, tile.ViewOp):
        return None
    inner = _contiguous_axis(owner.base, axes)
    if inner is None:
        return None
    for axis, stride in enumerate(owner.strides):
        found = stride.owner
        if isinstance(found, tile.StrideOp) and found.view is owner.base and found.axis.value.data == inner:
            return axis
    return None
