"""`partition-rows`: a program whose rows have nothing to do with each other takes fewer of them at a time.

Every store of such a program is of rows, each made from the same rows of what was loaded. The whole program then runs
in a loop, over groups of its rows; what is the same for all of them is made once, in front. Programs in which rows meet
(they are added up, or multiplied with each other) are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tessera.dialects import tile
from tessera.dialects.elements import TileType
from tessera.dialects.tile_types import tile_type
from tessera.transforms.rewriting import adopt_location

_index = IndexType()


class Rows:
    """Along which axis each tile of a function has its rows; tiles that are not in here are the same for all rows."""

    def __init__(self, function: tile.FuncOp, count: int) -> None:
        self.function = function
        self.count = count
        self.axes: dict[SSAValue, int] = {}
        self.shared: set[SSAValue] = set()

    def find(self) -> bool:
        """Whether all that the function does, it does row by row."""
        effects = [op for op in self.function.body.walk() if isinstance(op, tile.StoreOp | tile.AtomicOp)]
        if not effects or any(op.parent_block() is not self.function.body.block for op in effects):
            return False
        written = {tile.base_of(op.view) for op in effects}
        for op in self.function.body.walk():
            if isinstance(op, tile.AssertOp | tile.DebugPrintOp):
                return False
            # Rows that were read before any was written would be read after some were.
            if isinstance(op, tile.LoadOp) and tile.base_of(op.view) in written:
                return False
        if not all(isinstance(op, tile.StoreOp) and self._ask(op.value, 0) for op in effects):
            return False
        return all(self._is_shared(value) for value in self.shared)

    def _ask(self, value: SSAValue, axis: int | None) -> bool:
        """Whether a value can be had with its rows along an axis, or (None) for all rows at once."""
        if not isinstance(value.type, TensorType):
            return True
        if axis is None:
            if value in self.axes:
                return False
            self.shared.add(value)
            return True
        if value in self.axes or value in self.shared:
            return self.axes.get(value) == axis
        if tile_type(value).get_shape()[axis] != self.count:
            return False
        self.axes[value] = axis
        owner = value.owner
        if isinstance(owner, Block):
            return self._ask_argument(value, owner, axis)
        if isinstance(owner, scf.ForOp):
            place = list(owner.results).index(value)  # pyright: ignore[reportArgumentType]
            return self._ask_loop(owner, place, axis)
        rule = _ASKS.get(type(owner))
        return rule is not None and rule(self, owner, axis)

    def _ask_argument(self, value: SSAValue, block: Block, axis: int) -> bool:
        loop = block.parent_op()
        if not isinstance(loop, scf.ForOp):
            return False
        return self._ask_loop(loop, list(block.args).index(value) - 1, axis)  # pyright: ignore[reportArgumentType]

    def _ask_loop(self, loop: scf.ForOp, place: int, axis: int) -> bool:
        end = loop.body.block.last_op
        assert end is not None
        parts = loop.iter_args[place], loop.body.block.args[place + 1], end.operands[place], loop.results[place]
        return all(self._ask(part, axis) for part in parts)

    def _is_shared(self, value: SSAValue) -> bool:
        """Whether nothing that a value is made of is divided into rows."""
        pending, seen = [value], set[SSAValue]()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self.axes:
                return False
            owner = current.owner
            if isinstance(owner, Operation):
                if owner.regions:
                    return False
                pending += owner.operands
        return True


def _ask_elementwise(rows: Rows, op: Any, axis: int) -> bool:
    return all(rows._ask(operand, axis) for operand in op.operands_)  # noqa: SLF001


def _ask_broadcast(rows: Rows, op: Any, axis: int) -> bool:
    repeated = tile_type(op.operand).get_shape()[axis] == 1 and rows.count != 1
    return rows._ask(op.operand, None if repeated else axis)  # noqa: SLF001


def _ask_expand(rows: Rows, op: Any, axis: int) -> bool:
    inserted = op.axis.value.data
    return axis != inserted and rows._ask(op.operand, axis - (axis > inserted))  # noqa: SLF001


def _ask_reduce(rows: Rows, op: Any, axis: int) -> bool:
    return rows._ask(op.operand, axis + (axis >= op.axis.value.data))  # noqa: SLF001


def _ask_transpose(rows: Rows, op: Any, axis: int) -> bool:
    return rows._ask(op.operand, tuple(op.permutation.iter_values())[axis])  # noqa: SLF001


def _ask_nothing(rows: Rows, op: Any, axis: int) -> bool:
    return True


_ASKS: Mapping[type[Operation], Callable[[Rows, Any, int], bool]] = {
    tile.EwOp: _ask_elementwise,
    tile.BroadcastOp: _ask_broadcast,
    tile.ExpandOp: _ask_expand,
    tile.ReduceOp: _ask_reduce,
    tile.TransOp: _ask_transpose,
    tile.LoadOp: _ask_nothing,
    tile.FullOp: _ask_nothing,
    tile.IotaOp: _ask_nothing,
}


def rows_of(function: tile.FuncOp) -> int | None:
    """How many rows a program has, if all its stores are of as many; None otherwise."""
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    found = {tile_type(op.value).get_shape()[:1] for op in stores}
    if len(found) != 1:
        return None
    (shape,) = found
    return shape[0] if shape else None


def partition_rows(function: tile.FuncOp, group: int) -> bool:
    """Rewrites a function to take `group` of its rows at a time; whether it could."""
    count = rows_of(function)
    if count is None or count % group or group >= count:
        return False
    rows = Rows(function, count)
    if not rows.find():
        return False
    _Writer(function, rows, group).run()
    return True


class _Writer:
    """Moves what depends on rows into a loop over them."""

    def __init__(self, function: tile.FuncOp, rows: Rows, group: int) -> None:
        self.function = function
        self.rows = rows
        self.group = group

    def run(self) -> None:
        block = self.function.body.block
        inner = Block(arg_types=[_index])
        self.start = inner.args[0]
        inside = [op for op in block.ops if self._depends(op)]
        for op in inside:
            op.detach()
            inner.add_op(op)
        for op in list(inner.walk()):
            self._narrow(op)
        inner.add_op(scf.YieldOp())
        bounds = [arith.ConstantOp(IntegerAttr(number, _index)) for number in (0, self.rows.count, self.group)]
        loop = scf.ForOp(*(bound.result for bound in bounds), [], Region(inner))
        last = block.last_op
        assert last is not None
        adopt_location([*bounds, loop], self.function)
        block.insert_ops_before([*bounds, loop], last)

    def _depends(self, op: Operation) -> bool:
        if isinstance(op, tile.StoreOp):
            return True
        return any(
            value in self.rows.axes
            for inner in op.walk()
            for value in (*inner.results, *inner.operands)
        )

    def _narrow(self, op: Operation) -> None:
        """Gives an op's tiles fewer rows, and moves what says where they are."""
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    self._retype(argument)
        for result in op.results:
            axis = self.rows.axes.get(result)
            if isinstance(op, tile.LoadOp) and axis is not None:
                self._move(op, 1 + axis)
            elif isinstance(op, tile.IotaOp) and axis == op.axis.value.data:
                self._move(op, 0)
            self._retype(result)
        if isinstance(op, tile.StoreOp):
            self._move(op, 2 + self.rows.axes[op.value])

    def _move(self, op: Operation, place: int) -> None:
        added = arith.AddiOp(op.operands[place], self.start)
        adopt_location([added], op)
        block = op.parent_block()
        assert block is not None
        block.insert_op_before(added, op)
        op.operands[place] = added.result

    def _retype(self, value: SSAValue) -> None:
        axis = self.rows.axes.get(value)
        if axis is None:
            return
        type_: TileType = tile_type(value)
        shape = list(type_.get_shape())
        shape[axis] = self.group
        made = Rewriter.replace_value_with_new_type(value, TensorType(type_.element_type, shape))
        self.rows.axes[made] = axis
