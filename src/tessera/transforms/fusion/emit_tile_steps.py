"""Writes tile functions that go along an axis step by step: cumulations, and updates that are scattered.

A program instance owns some columns, positions along the other axes, and does all steps of them in order: what comes
out is the same in every run. Such a region holds one op.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from xdsl.ir import SSAValue

from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import Kind
from tessera.errors import CompileError
from tessera.ir.common import reductions
from tessera.ir.common.locations import span_of
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Dim, Shape, Size, ceil_div, dim, exact_quotient, size
from tessera.transforms.core.index_maps import Coordinates, Index, Looked, Var
from tessera.transforms.fusion.kernel_numbers import kernel_of
from tessera.transforms.fusion.tile_builder import TileWriter

_COLUMNS = 512

Step = graph_indexing.CumulateOp | graph_indexing.ScatterOp


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
    """Blocks of the axes besides the one along which steps go: columns of the last, one of each other."""
    shape, axis = graph_type(op.operand).shape, op.axis.value.data
    extents = [extent for index, extent in enumerate(shape) if index != axis]
    if not extents:
        return Config(block=())
    last = min(max(extents[-1], 1), _COLUMNS) if isinstance(extents[-1], int) else _COLUMNS
    return Config(block=(*(1,) * (len(extents) - 1), last))


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
        shape, self.axis = graph_type(op.operand).shape, op.axis.value.data
        self.kept = [Var(f"i{index}", extent) for index, extent in enumerate(shape) if index != self.axis]
        self.step = Var("step", shape[self.axis])
        given = region.config.data.block
        if given is None or len(given) != len(self.kept) or sum(block > 1 for block in given) > 1:
            raise CompileError(
                f"steps along axis {self.axis} of {graph_type(op.operand)} need a block of {len(self.kept)} sizes, "
                f"one of them above 1, got {given}",
                span=span_of(region.location),
                hint="give the region a config with one block size per axis but the one along which steps go",
            )
        blocks = dict(zip(self.kept, given, strict=True))
        kernel = new_kernel(name, region, [(var.extent, blocks[var]) for var in self.kept])
        inputs: dict[SSAValue, SSAValue] = dict(zip(region.body.block.args, kernel.arguments, strict=False))
        shapes = [graph_type(value).shape for value in (*region.arguments, *region.results_)]
        # Without columns there is one: tiles of one element, which stay out of what lies outside.
        axes = [var for var in self.kept if blocks[var] > 1] if self.kept else [Var("one", 1)]
        super().__init__(kernel, shapes, inputs, axes, blocks)
        self.blocks = blocks

    def write(self) -> tile.FuncOp:
        with self.placing(self.op):
            for axis, var in enumerate(self.kept):
                self.bind(var, self.number(self.times(self.add(tile.ProgramIdOp(axis)), self.blocks[var])))
            if not self.kept:
                self.bind(self.axes[0], self.number(0))
            if isinstance(self.op, graph_indexing.CumulateOp):
                self._cumulate(self.op)
            else:
                self._scatter(self.op)
            self.add_op(tile.ReturnOp())
        return self.kernel

    def make(self, value: SSAValue, at: Coordinates) -> SSAValue:
        return source_tile(self, value, at)

    def _at(self, position: Index) -> Coordinates:
        kept = [Index.of(var) for var in self.kept]
        return (*kept[: self.axis], position, *kept[self.axis :])

    def _cumulate(self, op: graph_indexing.CumulateOp) -> None:
        dtype, (view,) = graph_type(op.operand).dtype, self.kernel.arguments[self.kernel.input_count :]
        row, at = reductions.TABLE[op.kind.data], self._at(Index.of(self.step))
        total = accumulator(dtype).base if row.combine in ("add", "mul") else dtype.base
        shape = self.shape_at(at)
        start = self.full(row.identity(total), total, shape)

        def iteration(carried: Sequence[SSAValue]) -> list[SSAValue]:
            here = self.spread(self.cast(self.emit(op.operand, at), total), shape)
            after = self.ew(row.combine, carried[0], here)
            self.store(self.cast(carried[0] if op.exclusive is not None else after, dtype), view, at)
            return [after]

        self.loop([self.step], [start], iteration)

    def _scatter(self, op: graph_indexing.ScatterOp) -> None:
        (view,) = self.kernel.arguments[self.kernel.input_count :]
        indices = graph_type(op.indices)
        if indices.dtype.kind is not Kind.INT or indices.dtype.bits < 8:
            raise CompileError(
                f"scattering at indices of {indices.dtype} has no tile function yet",
                span=span_of(op.location),
                hint="cast the indices to i32 or i64 first",
            )

        def copy(_: Sequence[SSAValue]) -> list[SSAValue]:
            here = self._at(Index.of(self.step))
            self.store(self.emit(op.operand, here), view, here)
            return []

        numbers = [Var(f"n{axis}", extent) for axis, extent in enumerate(indices.shape)]
        which = tuple(Index.of(var) for var in numbers)

        def update(_: Sequence[SSAValue]) -> list[SSAValue]:
            at = self._at(Index.of(Looked(op.indices, which)).opened())
            here = self._at(Index.of(0))
            new = self.emit(op.updates, (*here[: self.axis], *which, *here[self.axis + 1 :]))
            if op.kind.data != "set":
                new = self.ew(op.kind.data, *self.matched([self.load(view, at), new]))
            self.store(new, view, at)
            return []

        self.loop([self.step], [], copy)
        self.loop(numbers, [], update)
