"""`partition-rows`: a kernel whose rows are independent of each other takes fewer rows at a time.

Every store of such a kernel is of rows, each made from the same rows of the loaded tiles. The whole body then runs in a
loop over groups of rows; values that all groups share are computed once, in front. Kernels in which rows meet (in a sum
over rows, or a dot of rows with each other) are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tessera.ir.common.attributes import SizesAttr
from tessera.ir.common.elements import TileType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.slices import Slice
from tessera.transforms.pipelining.row_branches import decides_row_by_row

_index = IndexType()


@dataclass(frozen=True)
class PartitionRows(FunctionPass):
    """The pass, for every tile function whose number of rows is a multiple of `rows`, and greater."""

    name = "partition-rows"
    rows: int = 1

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        partition_rows(function, self.rows)


_AT_ONCE = (tile.Atomic, tile.AssertOp, tile.DebugPrintOp, tile.PrintRecordOp)
"""Ops with an effect that a part of their rows would not have."""
RowStore = tile.StoreOp | tile.WriteOp
"""Ops that write a tile's rows to memory: to a box of it, or each element to a place of its own."""


class Rows:
    """Along which axis each tile of a function has its rows; tiles that are not in here are the same for all rows."""

    def __init__(self, function: tile.FuncOp, count: int, needed: Slice | None = None) -> None:
        """With a slice of the function, only that is looked at; dots, branches and computed places have rows, too."""
        self.function = function
        self.count = count
        self.needed = needed
        self.axes: dict[SSAValue, int] = {}
        self.shared: set[SSAValue] = set()
        self.refused: tuple[Operation | None, str] = None, ""
        """The op, and the reason, for which the function does not work row by row."""

    def find(self) -> bool:
        """Whether the function works row by row; `refused` says otherwise why not."""
        ops = list(self.function.body.walk())
        stores = [op for op in ops if isinstance(op, RowStore)]
        if not stores:
            return self._refuse(None, "it stores no tile")
        for op in stores:
            if self.needed is None and isinstance(op, tile.WriteOp):
                return self._refuse(op, f"{op.name} is for all rows at once")
            if not self._stands_outside(op):
                return self._refuse(op, f"a store stands in a loop{' or a branch' if self.needed is None else ''}")
        written = {tile.memory_of(op.view) for op in stores}
        for op in ops:
            if isinstance(op, _AT_ONCE):
                return self._refuse(op, f"{op.name} is for all rows at once")
            # Rows that were read before any was written would be read after some were.
            if isinstance(op, tile.LoadOp | tile.ReadOp | tile.ItemOp) and tile.memory_of(op.view) in written:
                return self._refuse(op, "memory is read that the kernel writes")
            # Random rounding depends on the numbers of elements.
            if isinstance(op, tile.EwOp) and op.seed is not None:
                return self._refuse(op, "random rounding depends on the numbers of elements")
        for one, other in combinations(stores, 2):
            if not _writes_same_rows(one, other):
                return self._refuse(other, "two stores into one array do not write the same rows")
        for op in stores:
            values = [op.value, *op.indices, *_present(op.mask)] if isinstance(op, tile.WriteOp) else [op.value]
            if not all(self.ask(value, 0) for value in values):
                return self._refuse(op, "its rows are not computed row by row")
        for op in ops:
            if not self._keeps_rows(op):
                return self._refuse(op, f"{op.name} makes a value that all rows share")
        return True

    def _stands_outside(self, op: Operation) -> bool:
        """Whether an op runs at most once in a program instance: with a slice, it may stand in branches."""
        around = op.parent_op()
        while self.needed is not None and isinstance(around, scf.IfOp):
            around = around.parent_op()
        return around is self.function

    def _refuse(self, op: Operation | None, reason: str) -> bool:
        if self.refused[1] == "":
            self.refused = op, reason
        return False

    def ask(self, value: SSAValue, axis: int | None) -> bool:
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
        owner = value.owner
        if tile_type(value).get_shape()[axis] != self.count:
            wrong = owner if isinstance(owner, Operation) else None
            return self._refuse(wrong, f"a tile of another number of rows than {self.count} goes into the result")
        self.axes[value] = axis
        if isinstance(owner, Block):
            return self._ask_argument(value, owner, axis)
        if isinstance(owner, scf.ForOp | scf.IfOp):
            index = list(owner.results).index(value)  # pyright: ignore[reportArgumentType]
            is_loop = isinstance(owner, scf.ForOp)
            return self._ask_loop(owner, index, axis) if is_loop else self._ask_branch(owner, index, axis)
        rule = _ASKS.get(type(owner))
        if rule is None or not rule(self, owner, axis):
            return self._refuse(owner, f"rows of {owner.name} depend on other rows")
        return True

    def _ask_argument(self, value: SSAValue, block: Block, axis: int) -> bool:
        loop = block.parent_op()
        if not isinstance(loop, scf.ForOp):
            return False
        return self._ask_loop(loop, list(block.args).index(value) - 1, axis)  # pyright: ignore[reportArgumentType]

    def _ask_loop(self, loop: scf.ForOp, index: int, axis: int) -> bool:
        end = loop.body.block.last_op
        assert end is not None
        parts = loop.iter_args[index], loop.body.block.args[index + 1], end.operands[index], loop.results[index]
        return all(self.ask(part, axis) for part in parts)

    def _ask_branch(self, branch: scf.IfOp, index: int, axis: int) -> bool:
        ends = [region.block.last_op for region in branch.regions]
        return self.needed is not None and all(end is not None and self.ask(end.operands[index], axis) for end in ends)

    def _keeps_rows(self, op: Operation) -> bool:
        """Whether an op makes rows of rows, and never values that all rows share."""
        match op:
            case tile.StoreOp() | tile.WriteOp():
                return True
            case scf.ForOp():
                values = list(zip(op.iter_args, op.body.block.args[1:], op.results, strict=True))
                return all(len({value in self.axes for value in values[index]}) == 1 for index in self._indices(op))
            case scf.YieldOp() if isinstance(around := op.parent_op(), scf.ForOp | scf.IfOp):
                pairs = list(zip(op.operands, around.results, strict=True))
                return all(len({value in self.axes for value in pairs[index]}) == 1 for index in self._indices(around))
            case _ if self.needed is not None and op not in self.needed.ops:
                return True
            case tile.AnyOp() if self.needed is not None:
                return op.operand not in self.axes or decides_row_by_row(op, self._indices)
            case _:
                looks = any(value in self.axes for value in op.operands)
                return not looks or (bool(op.results) and all(result in self.axes for result in op.results))

    def _indices(self, op: Operation) -> Iterable[int]:
        """The indices of the results of a loop or branch that are looked at."""
        return range(len(op.results)) if self.needed is None else self.needed.indices_of(op)


def _writes_same_rows(one: RowStore, other: RowStore) -> bool:
    """Whether two stores never meet, unless in the same row of both."""
    if tile.memory_of(one.view) is not tile.memory_of(other.view):
        return True
    if isinstance(one, tile.WriteOp) or isinstance(other, tile.WriteOp):
        return False
    return _is_same(one.view, other.view) and _is_same(one.offsets[0], other.offsets[0])


def _present(value: SSAValue | None) -> Iterable[SSAValue]:
    return () if value is None else (value,)


def _is_same(one: SSAValue, other: SSAValue) -> bool:
    """Whether two values are one, or computed in the same way."""
    if one is other:
        return True
    a, b = one.owner, other.owner
    if not isinstance(a, Operation) or not isinstance(b, Operation) or not is_side_effect_free(a) or a.regions:
        return False
    alike = type(a) is type(b) and a.properties == b.properties and one.type == other.type
    pairs = zip(a.operands, b.operands, strict=False)
    return alike and len(a.operands) == len(b.operands) and all(_is_same(*pair) for pair in pairs)


def _ask_elementwise(rows: Rows, op: Any, axis: int) -> bool:
    return all(rows.ask(operand, axis) for operand in op.operands_)


def _ask_read(rows: Rows, op: Any, axis: int) -> bool:
    return all(rows.ask(index, axis) for index in op.indices)


def _ask_broadcast(rows: Rows, op: Any, axis: int) -> bool:
    repeated = tile_type(op.operand).get_shape()[axis] == 1 and rows.count != 1
    return rows.ask(op.operand, None if repeated else axis)


def _ask_expand(rows: Rows, op: Any, axis: int) -> bool:
    inserted = op.axis.value.data
    return axis != inserted and rows.ask(op.operand, axis - (axis > inserted))


def _ask_reduce(rows: Rows, op: Any, axis: int) -> bool:
    return rows.ask(op.operand, axis + (axis >= op.axis.value.data))


def _ask_transpose(rows: Rows, op: Any, axis: int) -> bool:
    return rows.ask(op.operand, tuple(op.permutation.iter_values())[axis])


def _ask_halves(rows: Rows, op: tile.UnpackOp | tile.PackOp, axis: int) -> bool:
    """Along their axis there are not as many bytes as halves."""
    return axis != op.axis.value.data and rows.ask(op.operand, axis)


def _ask_scan(rows: Rows, op: Any, axis: int) -> bool:
    return axis != op.axis.value.data and rows.ask(op.operand, axis)


def _ask_dot(rows: Rows, op: Any, axis: int) -> bool:
    """Rows of a dot are rows of its left operand and of its accumulator; all of them meet the right operand."""
    return rows.needed is not None and axis == 0 and rows.ask(op.a, 0) and rows.ask(op.c, 0) and rows.ask(op.b, None)


def _ask_nothing(rows: Rows, op: Any, axis: int) -> bool:
    return True


_ASKS: Mapping[type[Operation], Callable[[Rows, Any, int], bool]] = {
    tile.EwOp: _ask_elementwise,
    tile.BroadcastOp: _ask_broadcast,
    tile.ExpandOp: _ask_expand,
    tile.ReduceOp: _ask_reduce,
    **dict.fromkeys((tile.ScanOp, tile.SortOp), _ask_scan),
    tile.TransOp: _ask_transpose,
    tile.UnpackOp: _ask_halves,
    tile.PackOp: _ask_halves,
    tile.DotOp: _ask_dot,
    tile.LoadOp: _ask_nothing,
    tile.ReadOp: _ask_read,
    tile.FullOp: _ask_nothing,
    tile.IotaOp: _ask_nothing,
}


def row_stores(function: tile.FuncOp) -> list[RowStore]:
    """The stores of a function, those to computed places among them."""
    return [op for op in function.body.walk() if isinstance(op, RowStore)]


def rows_of(function: tile.FuncOp, *, at_places: bool = False) -> int | None:
    """How many rows a program instance has, if all its stores are of as many; None otherwise.

    Stores to computed places are looked at where they are asked for.
    """
    stores = [op for op in row_stores(function) if at_places or isinstance(op, tile.StoreOp)]
    found = {tile_type(op.value).get_shape()[:1] for op in stores}
    if len(found) != 1:
        return None
    (shape,) = found
    return shape[0] if shape else None


def partition_rows(function: tile.FuncOp, group: int) -> bool:
    """Rewrites a function to take `group` of its rows at a time; whether it could."""
    rows = _grouped(function, group)
    if rows is not None:
        _Writer(function, rows, group).run()
    return rows is not None


def spread_rows(function: tile.FuncOp, group: int) -> bool:
    """Gives a function's rows to more program instances, `group` rows each; whether it could.

    The grid gets one axis more. Each instance then computes for itself what is the same for all rows.
    """
    rows = _grouped(function, group)
    if rows is not None:
        _Writer(function, rows, group).spread()
    return rows is not None


def _grouped(function: tile.FuncOp, group: int) -> Rows | None:
    """The rows of a function that can be taken `group` at a time; None where they cannot."""
    count = rows_of(function)
    if count is None or count % group or group >= count:
        return None
    rows = Rows(function, count)
    return rows if rows.find() else None


class Narrowing:
    """Gives tiles only `group` of their rows, from row `start` on, which is a scalar."""

    def __init__(self, rows: Rows, group: int, start: SSAValue) -> None:
        self.rows = rows
        self.group = group
        self.start = start

    def narrow(self, op: Operation) -> None:
        """Gives an op's tiles fewer rows, and adds the first row to their offsets."""
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

    def _move(self, op: Operation, index: int) -> None:
        added = arith.AddiOp(op.operands[index], self.start)
        adopt_location([added], op)
        block = op.parent_block()
        assert block is not None
        block.insert_op_before(added, op)
        op.operands[index] = added.result

    def _retype(self, value: SSAValue) -> None:
        axis = self.rows.axes.get(value)
        if axis is None:
            return
        type_: TileType = tile_type(value)
        shape = list(type_.get_shape())
        shape[axis] = self.group
        made = Rewriter.replace_value_with_new_type(value, TensorType(type_.element_type, shape))
        self.rows.axes[made] = axis


class _Writer:
    """Moves ops that depend on rows into a loop over them."""

    def __init__(self, function: tile.FuncOp, rows: Rows, group: int) -> None:
        self.function = function
        self.rows = rows
        self.group = group

    def run(self) -> None:
        block = self.function.body.block
        inner = Block(arg_types=[_index])
        inside: set[Operation] = set()
        for op in block.ops:
            if self._depends(op, inside):
                inside.add(op)
        for op in [op for op in block.ops if op in inside]:
            op.detach()
            inner.add_op(op)
        self._narrow(inner, inner.args[0])
        inner.add_op(scf.YieldOp())
        bounds = [arith.ConstantOp(IntegerAttr(number, _index)) for number in (0, self.rows.count, self.group)]
        first, stop, step = (bound.result for bound in bounds)
        loop = scf.ForOp(first, stop, step, [], Region(inner))
        last = block.last_op
        assert last is not None
        adopt_location([*bounds, loop], self.function)
        block.insert_ops_before([*bounds, loop], last)

    def spread(self) -> None:
        """Uses program instances along another axis of the grid instead of iterations of a loop."""
        function, block = self.function, self.function.body.block
        sizes = function.grid.data
        program, group = tile.ProgramIdOp(len(sizes)), arith.ConstantOp(IntegerAttr(self.group, _index))
        start = arith.MuliOp(program.result, group.result)
        self._narrow(block, start.result)
        function.properties["grid"] = SizesAttr((*sizes, self.rows.count // self.group))
        first = block.first_op
        assert first is not None
        adopt_location([program, group, start], function)
        block.insert_ops_before([program, group, start], first)

    def _depends(self, op: Operation, inside: set[Operation]) -> bool:
        """Whether an op belongs into the loop: it works on rows, or on values that are computed there."""
        if isinstance(op, tile.StoreOp):
            return True
        ops = list(op.walk())
        return any(value in self.rows.axes for inner in ops for value in (*inner.results, *inner.operands)) or any(
            value.owner in inside for inner in ops for value in inner.operands
        )

    def _narrow(self, block: Block, start: SSAValue) -> None:
        narrowing = Narrowing(self.rows, self.group, start)
        for op in list(block.walk()):
            narrowing.narrow(op)
