"""Writes tile functions that go along axes step by step, or write a part of an array: cumulations and updates.

A program instance owns some columns, positions along the other axes, and does all steps of them in order: what comes
out is the same in every run. Such a region holds one op. Updates write the elements that change: their result holds
those of an argument before (`tile.UPDATES`), in its memory where that is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from xdsl.ir import BlockArgument, Operation, SSAValue

from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import Kind
from tessera.errors import CompileError
from tessera.ir.common import reductions
from tessera.ir.common.attributes import integer
from tessera.ir.common.locations import span_of
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.updates import UPDATES
from tessera.shapes.expr import Dim, Shape, Size, ceil_div, dim, exact_quotient, size
from tessera.transforms.core.index_maps import Coordinates, Index, Var, looked_up, update_starts
from tessera.transforms.fusion.kernel_numbers import kernel_of
from tessera.transforms.fusion.regions import is_splat
from tessera.transforms.fusion.tile_builder import TileWriter, computes_number

_COLUMNS = 512
_MOST_ROWS = 16

Step = graph_indexing.CumulateOp | graph_indexing.ScatterOp | graph_indexing.DynamicUpdateSliceOp


class Names:
    """Sizes of a kernel in symbols that its arguments tell: a product that they tell only as a whole gets its own."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        sizes = [dim(extent) for shape in shapes for extent in shape]
        taken = {symbol for extent in sizes for symbol in extent.symbols}
        plain = {str(extent) for extent in sizes if str(extent).isidentifier()}
        self.own: dict[Dim, Dim] = {}
        for extent in dict.fromkeys(sizes):
            told = extent.symbols <= plain or (extent.is_affine and len(extent.symbols) == 1)
            if not told and extent not in self.own:
                name = next(name for number in count() if (name := f"s{number}") not in taken)
                taken.add(name)
                self.own[extent] = dim(name)

    def of(self, extent: Size) -> Size:
        for known, name in self.own.items():
            factor = exact_quotient(extent, known)
            if factor is not None and factor.constant is not None:
                return size(name * factor)
        return extent


def new_kernel(name: str, region: schedule.RegionOp, grid: Sequence[tuple[Size, int]]) -> tile.FuncOp:
    """The tile function of a region, empty: its arguments, and a grid of extents by blocks."""
    tensors = [graph_type(value) for value in (*region.arguments, *region.results_)]
    names = Names([tensor.shape for tensor in tensors])
    extents = [size(ceil_div(names.of(extent), block)) for extent, block in grid]
    return kernel_of(name, region, names.of, extents)


def steps_config(op: Step) -> Config:
    """Blocks of the axes besides those along which steps go: columns of the last, one of each other.

    Of a part that is replaced, rows as well.
    """
    extents = [extent for _, extent in _columns(op)]
    if not extents:
        return Config(block=())
    blocks = [*(1,) * (len(extents) - 1), _bounded(extents[-1], _COLUMNS)]
    if len(extents) > 1 and isinstance(op, graph_indexing.DynamicUpdateSliceOp):
        blocks[-2] = _bounded(extents[-2], _MOST_ROWS)
    return Config(block=tuple(blocks))


def _bounded(extent: Size, most: int) -> int:
    return min(max(extent, 1), most) if isinstance(extent, int) else most


def _along(op: Step) -> tuple[int, ...]:
    """The axes along which steps go."""
    match op:
        case graph_indexing.CumulateOp():
            return (op.axis.value.data,)
        case graph_indexing.ScatterOp():
            return tuple(op.axes.iter_values())
        case graph_indexing.DynamicUpdateSliceOp():
            return ()


def _columns(op: Step) -> list[tuple[int, Size]]:
    """The axes of columns, and how long they are: of a part that is replaced, those with more than one element."""
    if isinstance(op, graph_indexing.DynamicUpdateSliceOp):
        return [(axis, extent) for axis, extent in enumerate(graph_type(op.update).shape) if extent != 1]
    along = _along(op)
    return [(axis, extent) for axis, extent in enumerate(graph_type(op.operand).shape) if axis not in along]


def index_work(op: Operation) -> set[Operation]:
    """The ops that make the numbers that an update is at: its kernel computes them, where it can and needs no more."""
    if not isinstance(op, graph_indexing.ScatterOp | graph_indexing.DynamicUpdateSliceOp):
        return set()
    numbers = op.indices if isinstance(op, graph_indexing.ScatterOp) else op.starts
    found = set[Operation]().union(*(_number_work(value, op) or () for value in numbers))
    read = {operand for one in found for operand in one.operands}
    return set() if read & {op.operand} else found


def _number_work(value: SSAValue, user: Operation) -> set[Operation] | None:
    """The ops that make single numbers, or rows of them; None where they are no whole numbers that kernels look up."""
    made, type_ = value.owner, graph_type(value)
    if is_splat(value) and type_.dtype.is_integer:
        return set()
    if isinstance(made, Operation) and made.parent is user.parent and computes_number(made):
        parts = [_number_work(operand, user) for operand in made.operands]
        if all(part is not None for part in parts):
            return {made}.union(*(part or () for part in parts))
    return set() if type_.dtype.kind is Kind.INT and type_.dtype.bits >= 8 else None


def writes_part(op: Operation) -> bool:
    """Whether an op replaces a part of an array that is there as a whole: then the other elements need no work."""
    if not isinstance(op, graph_indexing.DynamicUpdateSliceOp) or op.operand in (op.update, *op.starts):
        return False
    if any(_number_work(start, op) is None for start in op.starts):
        return False
    return not isinstance(op.operand.owner, graph.ConstantOp | graph.IotaOp)


def emit_steps(name: str, region: schedule.RegionOp, op: Step) -> tile.FuncOp:
    """The tile function of a region that holds one such op."""
    return _Writer(name, region, op).write()


def source_tile(writer: TileWriter, value: SSAValue, at: Coordinates) -> SSAValue:
    """The tile of a value that is made from nothing: a number, or positions."""
    op, type_ = value.owner, graph_type(value)
    if isinstance(op, graph.IotaOp):
        return writer.counted(at[op.axis.value.data], type_.dtype.base)
    assert isinstance(op, graph.ConstantOp)
    numbers = np.frombuffer(op.value.data, type_.dtype.storage)
    if len(numbers) != 1:
        raise CompileError(
            f"a constant of {type_} has no tile function, only one number that fills it",
            span=span_of(op.location),
            hint="leave the constant outside the region and pass it in",
        )
    return writer.full(numbers[0], type_.dtype.base, writer.ones)


class _Writer(TileWriter):
    """Writes the tile function of one op."""

    def __init__(self, name: str, region: schedule.RegionOp, op: Step) -> None:
        self.op = op
        shape, self.along = graph_type(op.operand).shape, _along(op)
        columns = {axis: Var(f"i{axis}", extent) for axis, extent in _columns(op)}
        self.kept = list(columns.values())
        self.steps = [Var("step" if axis == self.along[0] else f"step{axis}", shape[axis]) for axis in self.along]
        self.home = tuple(Index.of(columns[axis]) if axis in columns else Index.of(0) for axis in range(len(shape)))
        """The coordinates of a program instance's columns, at the beginning of the axes along which steps go."""
        given, most = region.config.data.block, 1 if self.along else 2
        if given is None or len(given) != len(self.kept) or sum(block > 1 for block in given) > most:
            raise CompileError(
                f"steps along {_axes(self.along)} of {graph_type(op.operand)} need a block of {len(self.kept)} sizes, "
                f"{'one' if most == 1 else 'two'} of them above 1, got {given}",
                span=span_of(region.location),
                hint="give the region a config with one block size per axis but those along which steps go",
            )
        blocks = dict(zip(self.kept, given, strict=True))
        kernel = new_kernel(name, region, [(var.extent, blocks[var]) for var in self.kept])
        inputs: dict[SSAValue, SSAValue] = dict(zip(region.body.block.args, kernel.arguments, strict=False))
        shapes = [graph_type(value).shape for value in (*region.arguments, *region.results_)]
        # Without columns there is one: tiles of one element, which stay out of what lies outside.
        axes = [var for var in self.kept if blocks[var] > 1] or [Var("one", 1)]
        super().__init__(kernel, shapes, inputs, axes, blocks)
        self.blocks = blocks
        self.is_update = not isinstance(op, graph_indexing.CumulateOp) and self._takes_over(region)

    def _takes_over(self, region: schedule.RegionOp) -> bool:
        """Says of the function that its result holds the array before, if that is read for nothing else."""
        arguments = list(region.body.block.args)
        before = self.op.operands[0]
        if not isinstance(before, BlockArgument) or len(list(before.uses)) != 1:
            return False
        self.kernel.attributes[UPDATES] = integer(arguments.index(before))
        return True

    def write(self) -> tile.FuncOp:
        with self.placing(self.op):
            for axis, var in enumerate(self.kept):
                self.bind(var, self.number(self.times(self.add(tile.ProgramIdOp(axis)), self.blocks[var])))
            if self.axes[0] not in self.kept:
                self.bind(self.axes[0], self.number(0))
            match self.op:
                case graph_indexing.CumulateOp():
                    self._cumulate(self.op)
                case graph_indexing.ScatterOp():
                    self._scatter(self.op)
                case graph_indexing.DynamicUpdateSliceOp():
                    self._replace(self.op)
            self.add_op(tile.ReturnOp())
        return self.kernel

    def make(self, value: SSAValue, at: Coordinates) -> SSAValue:
        if not isinstance(value.owner, graph.ConstantOp | graph.IotaOp):
            raise CompileError(
                "an op that goes along an axis in order, or replaces a part, is alone with the numbers that it is at",
                span=span_of(self.op.location),
                hint="put what it reads into a region in front of it",
            )
        return source_tile(self, value, at)

    def _at(self, *positions: Index) -> Coordinates:
        """The coordinates of columns at positions along the axes along which steps go."""
        found = dict(zip(self.along, positions, strict=True))
        return tuple(found.get(axis, index) for axis, index in enumerate(self.home))

    def _cumulate(self, op: graph_indexing.CumulateOp) -> None:
        dtype, (view,) = graph_type(op.operand).dtype, self.kernel.arguments[self.kernel.input_count :]
        row, at = reductions.TABLE[op.kind.data], self._at(Index.of(self.steps[0]))
        total = accumulator(dtype).base if row.combine in ("add", "mul") else dtype.base
        shape = self.shape_at(at)
        start = self.full(row.identity(total), total, shape)

        def iteration(carried: Sequence[SSAValue]) -> list[SSAValue]:
            here = self.spread(self.cast(self.emit(op.operand, at), total), shape)
            after = self.ew(row.combine, carried[0], here)
            self.store(self.cast(carried[0] if op.exclusive is not None else after, dtype), view, at)
            return [after]

        self.loop(self.steps, [start], iteration)

    def _scatter(self, op: graph_indexing.ScatterOp) -> None:
        (view,) = self.kernel.arguments[self.kernel.input_count :]
        for indices in map(graph_type, op.indices):
            if indices.dtype.kind is not Kind.INT or indices.dtype.bits < 8:
                raise CompileError(
                    f"scattering at indices of {indices.dtype} has no tile function yet",
                    span=span_of(op.location),
                    hint="cast the indices to i32 or i64 first",
                )

        def copy(_: Sequence[SSAValue]) -> list[SSAValue]:
            here = self._at(*map(Index.of, self.steps))
            self.store(self.emit(op.operand, here), view, here)
            return []

        numbers = [Var(f"n{axis}", extent) for axis, extent in enumerate(graph_type(op.indices[0]).shape)]
        which = tuple(Index.of(var) for var in numbers)
        shape, first = graph_type(op.operand).shape, self.along[0]
        columns = [index for axis, index in enumerate(self.home) if axis not in self.along]

        def update(_: Sequence[SSAValue]) -> list[SSAValue]:
            places = zip(self.along, op.indices, strict=True)
            at = self._at(*[looked_up(indices, which, shape[axis]) for axis, indices in places])
            new = self.emit(op.updates, (*columns[:first], *which, *columns[first:]))
            if op.kind.data != "set":
                new = self.ew(op.kind.data, *self.matched([self.load(view, at), new]))
            self.store(new, view, at)
            return []

        if not self.is_update:
            self.loop(self.steps, [], copy)
        self.loop(numbers, [], update)

    def _replace(self, op: graph_indexing.DynamicUpdateSliceOp) -> None:
        if not self.is_update:
            raise CompileError(
                "a part is replaced of an array that is made or read by the same region",
                span=span_of(op.location),
                hint="give the region the kind pointwise",
            )
        (view,) = self.kernel.arguments[self.kernel.input_count :]
        starts = update_starts(op)
        at = tuple(index if start is None else index + start for index, start in zip(self.home, starts, strict=True))
        self.store(self.emit(op.update, self.home), view, at)


def _axes(axes: Sequence[int]) -> str:
    return f"{'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}"
