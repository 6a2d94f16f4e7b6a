"""Writes tile functions of pointwise and rows regions.

A program instance owns a block of the iteration space. What it stores is pulled from what it loads: each op asks for
the tiles of its operands at the coordinates where it needs them. A tile has size 1 along the axes that its value does
not depend on. Rows that are longer than the block are folded in loops, and read again for whatever comes behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from xdsl.ir import Operation, SSAValue

from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, i64
from tessera.errors import CompileError
from tessera.ir.common import reductions
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.transforms.core.index_maps import Coordinates, Index, Var, concatenated_before, pulled, update_starts
from tessera.transforms.fusion.emit_tile_steps import Step, emit_steps, new_kernel, source_tile
from tessera.transforms.fusion.region_spaces import Space, UnfitError, folded_extents, operand_of, space_of
from tessera.transforms.fusion.row_blocks import tile_axes
from tessera.transforms.fusion.tile_builder import TileWriter


def emit_rows(name: str, region: schedule.RegionOp) -> tile.FuncOp:
    """The tile function of a region."""
    end = region.body.block.last_op
    assert isinstance(end, schedule.YieldOp)
    ops = [op for op in region.body.block.ops if op is not end]
    steps = [op for op in ops if isinstance(op, Step)]
    # What replaces a part is written for all of the array where its region is pointwise, or folds.
    whole = region.kind.data == "pointwise" or any(isinstance(op, graph.ReduceOp) for op in ops)
    if len(steps) == 1 and not (whole and isinstance(steps[0], graph_indexing.DynamicUpdateSliceOp)):
        return emit_steps(name, region, steps[0])
    try:
        space = space_of(ops, list(end.values))
    except UnfitError as unfit:
        raise CompileError(
            unfit.message,
            span=unfit.span or span_of(region.location),
            shapes=[str(value.type) for value in end.values],
            hint="put these ops into several regions, or write them as a tile kernel and call it",
        ) from unfit
    return _Writer(name, region, end, space).write()


class _Writer(TileWriter):
    """Writes the tile function of one region."""

    def __init__(self, name: str, region: schedule.RegionOp, end: schedule.YieldOp, space: Space) -> None:
        self.region, self.end, self.space = region, end, space
        axes, self.blocks = tile_axes(space, region.config.data, list(end.values), span_of(region.location))
        tensors = [graph_type(value) for value in (*region.arguments, *region.results_)]
        self.grid_variables = [var for var in space.variables if var not in space.rows]
        kernel = new_kernel(name, region, [(var.extent, self.blocks[var]) for var in self.grid_variables])
        inputs: dict[SSAValue, SSAValue] = dict(zip(region.body.block.args, kernel.arguments, strict=False))
        super().__init__(kernel, [tensor.shape for tensor in tensors], inputs, axes, self.blocks)
        self.whole = all(self._is_whole(var) for var in space.rows)
        """Whether tiles hold whole rows."""
        self.levels: dict[Operation, int] = {}

    def _is_whole(self, var: Var) -> bool:
        # Rows without elements are no tile: a loop without iterations leaves each reduction what it begins with.
        if not isinstance(var.extent, int) or var.extent == 0:
            return False
        return self.blocks[var] >= var.extent and (var in self.axes or var.extent == 1)

    def write(self) -> tile.FuncOp:
        with self.placing(self.region):
            for axis, var in enumerate(self.grid_variables):
                if var.extent == 1:
                    continue
                program_id = self.add(tile.ProgramIdOp(axis))
                self.bind(var, self.number(self.times(program_id, self.blocks[var])))
            if self.whole:
                for var in self.space.rows:
                    self.bind(var, self.number(0))
            elif self.space.rows:
                self._fold_in_loops()
            self._store_all()
            self.add_op(tile.ReturnOp())
        return self.kernel

    # Rows in loops

    def _level(self, value: SSAValue) -> int:
        """How many reductions one behind the other a value rests on."""
        owner = value.owner
        if not isinstance(owner, Operation) or owner.parent is not self.region.body.block:
            return 0
        if owner not in self.levels:
            below = max((self._level(operand) for operand in owner.operands), default=0)
            self.levels[owner] = below + (isinstance(owner, graph.ReduceOp) and bool(folded_extents(owner)))
        return self.levels[owner]

    def _fold_in_loops(self) -> None:
        """One loop for all reductions that rest on equally many others."""
        folds = [op for op in self.region.body.block.ops if isinstance(op, graph.ReduceOp) and folded_extents(op)]
        for level in sorted({self._level(op.result) for op in folds}):
            group = [op for op in folds if self._level(op.result) == level]
            carried = [self._clear(op) for op in group]

            def iteration(totals_before: Sequence[SSAValue], group: Sequence[graph.ReduceOp] = group) -> list[SSAValue]:
                return [self._added(op, total) for op, total in zip(group, totals_before, strict=True)]

            totals = self.loop(self.space.rows, carried, iteration)
            for op, total in zip(group, totals, strict=True):
                with self.placing(op):
                    self.remember(op.result, self.space.coordinates[op.result], self._finished(op, total))

    def _fold_type(self, op: graph.ReduceOp) -> DType:
        dtype = graph_type(op.operand).dtype
        return accumulator(dtype).base if reductions.TABLE[op.kind.data].combine in ("add", "mul") else dtype.base

    def _row_axis(self) -> int:
        return next(axis for axis, var in enumerate(self.axes) if var in self.space.rows)

    def _clear(self, op: graph.ReduceOp) -> SSAValue:
        """The initial value of a reduction, for each row of a program instance."""
        at = self.space.coordinates[op.result]
        shape = self.shape_at(at)
        dtype = self._fold_type(op)
        with self.placing(op):
            return self.full(reductions.TABLE[op.kind.data].identity(dtype), dtype, shape)

    def _folded(self, op: graph.ReduceOp) -> SSAValue:
        """A block of rows, folded."""
        axis, dtype = self._row_axis(), self._fold_type(op)
        at = operand_of(op, self.space.coordinates[op.result], self.space.rows)
        value = self.cast(self.emit(op.operand, at), dtype)
        shape = list(self.shape_at(at))
        shape[axis] = self.widths[axis]
        value = self.spread(value, tuple(shape))
        var = self.axes[axis]
        whole = isinstance(var.extent, int) and var.extent % self.widths[axis] == 0
        if not whole and not (op.kind.data == "sum" and self._is_nothing_beyond(op.operand, at)):
            inside = self.spread(self.below(var), tuple(shape))
            nothing = self.full(reductions.TABLE[op.kind.data].identity(dtype), dtype, tuple(shape))
            value = self.ew("select", inside, value, nothing)
        return self.folded(op.kind.data, value, axis)

    def _is_nothing_beyond(self, value: SSAValue, at: Coordinates) -> bool:
        """Whether a value is 0 behind the end of rows: what is loaded from there is."""
        if value in self.inputs:
            rows, shape = [index.lone for index in at], graph_type(value).shape
            return any(
                var in self.space.rows and var in self.axes and var.extent == extent
                for var, extent in zip(rows, shape, strict=True)
                if var is not None
            )
        op = value.owner
        if isinstance(op, graph.EwOp) and op.fn.data in ("cast", "neg", "abs", "add", "sub", "mul"):
            return all(self._is_nothing_beyond(operand, at) for operand in op.operands_)
        return False

    def _added(self, op: graph.ReduceOp, total: SSAValue) -> SSAValue:
        with self.placing(op):
            part = self.spread(self._folded(op), tile_type(total).get_shape())
            return self.ew(reductions.TABLE[op.kind.data].combine, total, part)

    def _finished(self, op: graph.ReduceOp, total: SSAValue) -> SSAValue:
        return self.cast(total, graph_type(op.result).dtype)

    # Values

    def make(self, value: SSAValue, at: Coordinates) -> SSAValue:
        op = value.owner
        assert isinstance(op, Operation)
        with self.placing(op):
            return _RULES[type(op)](self, op, at)

    def reduce(self, op: graph.ReduceOp, at: Coordinates) -> SSAValue:
        if not folded_extents(op):
            return self._finished(op, self.emit(op.operand, operand_of(op, at, self.space.rows)))
        return self._finished(op, self._folded(op))

    # Results

    def _store_all(self) -> None:
        views = self.kernel.arguments[self.kernel.input_count :]
        late: list[tuple[SSAValue, SSAValue]] = []
        for value, view in zip(self.end.values, views, strict=True):
            at = self.space.coordinates[value]
            if not self.whole and any(var in self.space.rows for index in at for var in index.variables()):
                late.append((value, view))
            else:
                self._store(value, view)
        if late:

            def iteration(_: Sequence[SSAValue]) -> list[SSAValue]:
                for value, view in late:
                    self._store(value, view)
                return []

            self.loop(self.space.rows, [], iteration)

    def _store(self, value: SSAValue, view: SSAValue) -> None:
        at = self.space.coordinates[value]
        made = self.emit(value, at)
        with self.placing(self.end):
            self.store(made, view, at)


def _elementwise(writer: _Writer, op: graph.EwOp, at: Coordinates) -> SSAValue:
    if op.seed is not None:
        raise CompileError(
            "stochastic rounding by element position has no tile function yet",
            span=span_of(op.location),
            hint="round to nearest, or call a kernel that takes the key",
        )
    operands = writer.matched([writer.emit(operand, at) for operand in op.operands_])
    result = graph_type(op.result).dtype
    if any(graph_type(value).dtype.policy.loss_scale is not None for value in (*op.operands_, op.result)):
        raise CompileError(
            f"{op.fn.data} of loss-scaled values has no tile function yet",
            span=span_of(op.location),
            shapes=[str(value.type) for value in (*op.operands_, op.result)],
            hint="cast to a type without a loss scale in a kernel of your own",
        )
    if op.fn.data == "cast":
        return writer.add(tile.EwOp("cast", operands, to=result))
    return writer.add(tile.EwOp(op.fn.data, operands, policy=result.policy))


def _moved(writer: _Writer, op: Operation, at: Coordinates) -> SSAValue:
    return writer.emit(op.operands[0], pulled(op, 0, at))


def _source(writer: _Writer, op: Operation, at: Coordinates) -> SSAValue:
    return source_tile(writer, op.results[0], at)


def _concatenate(writer: _Writer, op: graph.ConcatenateOp, at: Coordinates) -> SSAValue:
    """The last operand that begins before the position has it."""
    position = at[op.axis.value.data]
    found: SSAValue | None = None
    for number, operand in enumerate(op.operands_):
        if graph_type(operand).shape[op.axis.value.data] == 0:
            continue
        piece = writer.emit(operand, pulled(op, number, at))
        if found is None:
            found = piece
            continue
        begins = writer.counted(Index.of(concatenated_before(op, number)), i64)
        behind = writer.ew("ge", *writer.matched([writer.counted(position, i64), begins]))
        found = writer.ew("select", *writer.matched([behind, piece, found]))
    return writer.full(0, graph_type(op.result).dtype.base, writer.ones) if found is None else found


def _dynamic_update(writer: _Writer, op: graph_indexing.DynamicUpdateSliceOp, at: Coordinates) -> SSAValue:
    """The update where a position is inside of it."""
    found, inside = writer.emit(op.operand, at), None
    update = writer.emit(op.update, pulled(op, 1, at))
    for axis, (index, start) in enumerate(zip(at, update_starts(op), strict=True)):
        if start is None:
            continue
        position, length = index + start.times(-1), Index.of(graph_type(op.update).shape[axis])
        for fn, bound in (("ge", Index.of(0)), ("lt", length)):
            here = writer.ew(fn, *writer.matched([writer.counted(position, i64), writer.counted(bound, i64)]))
            inside = here if inside is None else writer.ew("and", *writer.matched([inside, here]))
    if inside is None:
        return update
    return writer.ew("select", *writer.matched([inside, update, found]))


_RULES: Mapping[type[Operation], Callable[[_Writer, Any, Coordinates], SSAValue]] = MappingProxyType(
    {
        graph.EwOp: _elementwise,
        graph.BroadcastOp: _moved,
        graph.ReshapeOp: _moved,
        graph.TransposeOp: _moved,
        graph.SliceOp: _moved,
        graph.GatherOp: _moved,
        graph_indexing.DynamicSliceOp: _moved,
        graph_indexing.DynamicUpdateSliceOp: _dynamic_update,
        graph.ConcatenateOp: _concatenate,
        graph.IotaOp: _source,
        graph.ConstantOp: _source,
        graph.ReduceOp: _Writer.reduce,
    }
)
