"""Writes tile programs of pointwise regions.

A program owns one block of the result. Every value of the region broadcasts to the result, so its tile has the
block's size along the axes it has in full and size 1 along the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from tessera.dialects import graph, schedule, tile
from tessera.dialects.elements import element_of, tile_of
from tessera.dialects.graph_types import graph_type
from tessera.dialects.locations import span_of
from tessera.dialects.schedule_types import Config
from tessera.dialects.tile_types import ViewType, tile_type
from tessera.dtypes.types import Kind, i64
from tessera.errors import CompileError
from tessera.shapes.expr import Shape, ceil_div, size
from tessera.transforms.folding import materialize
from tessera.transforms.rewriting import adopt_location

_index = IndexType()


def write_rows(name: str, region: schedule.RegionOp) -> tile.FuncOp:
    """The tile program of a region."""
    return _Writer(name, region).write()


class _Writer:
    """Writes the tile function of one region."""

    def __init__(self, name: str, region: schedule.RegionOp) -> None:
        for op in region.body.block.ops:
            if type(op) not in _RULES and not isinstance(op, schedule.YieldOp):
                raise CompileError(
                    f"{op.name} has no tile program yet",
                    span=span_of(op.location),
                    hint="write it as a tile kernel and call it with graph.call_kernel",
                )
        self.region = region
        end = region.body.block.last_op
        assert isinstance(end, schedule.YieldOp)
        shapes = {graph_type(value).shape for value in end.values}
        if len(shapes) != 1:
            raise CompileError(
                f"a pointwise region gives results of one shape, here are {len(shapes)}",
                span=span_of(region.location),
                shapes=[str(value.type) for value in end.values],
                hint="put results of other shapes into regions of their own",
            )
        self.shape: Shape = shapes.pop()
        self.block = _block_of(region.config.data, len(self.shape))
        tensors = [graph_type(value) for value in (*region.arguments, *region.results_)]
        self.kernel = tile.FuncOp(
            name,
            [ViewType(len(tensor.shape), tensor.element) for tensor in tensors],
            len(region.results_),
            [tensor.shape for tensor in tensors],
            [size(ceil_div(extent, step)) for extent, step in zip(self.shape, self.block, strict=True)],
        )
        self.kernel.location = region.location
        for view, value in zip(self.kernel.arguments, (*region.arguments, *region.results_), strict=True):
            view.name_hint = value.name_hint
        self.tiles: dict[SSAValue, SSAValue] = {}
        self.zero: SSAValue | None = None
        self.offsets: list[SSAValue] = []

    @property
    def body(self) -> Block:
        return self.kernel.body.block

    def add(self, op: Operation, source: Operation) -> SSAValue:
        adopt_location([op], source)
        self.body.add_op(op)
        return op.results[0]

    def write(self) -> tile.FuncOp:
        source = self.region
        for axis, step in enumerate(self.block):
            program = self.add(tile.ProgramIdOp(axis), source)
            width = self.add(materialize(step, _index), source)
            self.offsets.append(self.add(arith.MuliOp(program, width), source))
        self.zero = self.add(materialize(0, _index), source)
        for argument, view in zip(source.body.block.args, self.kernel.arguments, strict=False):
            offsets, extents = self.placed(graph_type(argument).shape)
            self.tiles[argument] = self.add(tile.LoadOp(view, offsets, extents), source)
        for op in source.body.block.ops:
            if isinstance(op, schedule.YieldOp):
                for value, view in zip(op.values, self.kernel.arguments[self.kernel.input_count :], strict=True):
                    self.body.add_op(tile.StoreOp(self.tiles[value], view, self.offsets))
                self.body.add_op(tile.ReturnOp())
                adopt_location([o for o in self.body.ops if isinstance(o, tile.StoreOp | tile.ReturnOp)], op)
                continue
            self.tiles[op.results[0]] = _RULES[type(op)](self, op)
        return self.kernel

    def placed(self, shape: Shape) -> tuple[list[SSAValue], tuple[int, ...]]:
        """Where the block lies in a value of this shape, and how much of it there is."""
        assert self.zero is not None
        lead = len(self.shape) - len(shape)
        offsets: list[SSAValue] = []
        extents: list[int] = []
        for axis, extent in enumerate(shape):
            whole = extent == self.shape[lead + axis]
            offsets.append(self.offsets[lead + axis] if whole else self.zero)
            extents.append(self.block[lead + axis] if whole else 1)
        return offsets, tuple(extents)


def _block_of(config: Config, rank: int) -> tuple[int, ...]:
    if config.block is None or len(config.block) != rank:
        raise CompileError(
            f"a pointwise region of rank {rank} needs a block of {rank} sizes, got {config.block}",
            hint="give the region a config with one block size per axis of its result",
        )
    return config.block


def _elementwise(writer: _Writer, op: graph.EwOp) -> SSAValue:
    if op.seed is not None:
        raise CompileError(
            "stochastic rounding by element position has no tile program yet",
            span=span_of(op.location),
            hint="round to nearest, or call a kernel that takes the key",
        )
    operands = [writer.tiles[operand] for operand in op.operands_]
    result = graph_type(op.result).dtype
    if any(graph_type(value).dtype.policy.loss_scale is not None for value in (*op.operands_, op.result)):
        raise CompileError(
            f"{op.fn.data} of loss-scaled values has no tile program yet",
            span=span_of(op.location),
            shapes=[str(value.type) for value in (*op.operands_, op.result)],
            hint="cast to a type without a loss scale in a kernel of your own",
        )
    if op.fn.data == "cast":
        return writer.add(tile.EwOp("cast", operands, to=result), op)
    return writer.add(tile.EwOp(op.fn.data, operands, policy=result.policy), op)


def _broadcast(writer: _Writer, op: graph.BroadcastOp) -> SSAValue:
    value = writer.tiles[op.operand]
    shape = graph_type(op.result).shape
    for _ in range(len(shape) - tile_type(value).get_num_dims()):
        value = writer.add(tile.ExpandOp(value, 0), op)
    extents = writer.placed(shape)[1]
    if tile_type(value).get_shape() == extents:
        return value
    return writer.add(tile.BroadcastOp(value, extents), op)


def _iota(writer: _Writer, op: graph.IotaOp) -> SSAValue:
    result = graph_type(op.result)
    offsets, extents = writer.placed(result.shape)
    axis = op.axis.value.data
    return writer.add(tile.IotaOp(offsets[axis], axis, tile_of(extents, result.dtype)), op)


def _constant(writer: _Writer, op: graph.ConstantOp) -> SSAValue:
    result = graph_type(op.result)
    numbers = np.frombuffer(op.value.data, result.dtype.storage)
    if len(numbers) != 1:
        raise CompileError(
            f"a constant of {result} has no tile program, only one number that fills it",
            span=span_of(op.location),
            hint="leave the constant outside the region and pass it in",
        )
    extents = writer.placed(result.shape)[1]
    if result.dtype.kind is Kind.UINT:
        # Scalars are signed: the same bits, taken for unsigned ones.
        scalar = writer.add(materialize(numbers.astype(np.int64)[0], element_of(i64)), op)
        return writer.add(tile.EwOp("cast", [writer.add(tile.FullOp(scalar, extents), op)], to=result.dtype), op)
    scalar = writer.add(materialize(numbers[0], element_of(result.dtype)), op)
    return writer.add(tile.FullOp(scalar, extents), op)


_RULES: Mapping[type[Operation], Callable[[_Writer, Any], SSAValue]] = MappingProxyType(
    {graph.EwOp: _elementwise, graph.BroadcastOp: _broadcast, graph.IotaOp: _iota, graph.ConstantOp: _constant}
)
