"""Writes graph ops into a block: what rules of derivatives and of batches are written with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import DType, bool_, i64
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing
from tessera.ir.graph.slices import BEFORE_FIRST, LAST
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.shapes.bounds import Interval
from tessera.shapes.expr import DimLike, Size, dim, shape_of

Known = Mapping[str, Interval]
"""How small and large symbols of sizes may be."""


def number_of(value: SSAValue) -> float | None:
    """The number that a value is everywhere, if that is known."""
    op = value.owner
    while isinstance(op, graph.BroadcastOp | graph.ReshapeOp):
        op = op.operand.owner
    if not isinstance(op, graph.ConstantOp):
        return None
    type_ = graph_type(op.result)
    storage = type_.dtype.storage
    if len(op.value.data) != storage.itemsize or type_.dtype.base.storage.isbuiltin != 1:
        return None
    return float(np.frombuffer(op.value.data, storage)[0])


class GraphWriter:
    """Ops at a place in a block. It is the builder that rows of the elementwise table write their partials with."""

    def __init__(self, block: Block, known: Known) -> None:
        self.block = block
        self.known = known
        self.location: LocationAttr = UnknownLoc()
        self.before: Operation | None = None
        """The op in front of which ops go, if not to the end."""

    def write(self, op: Operation) -> Operation:
        if isinstance(op.location, UnknownLoc):
            op.location = self.location
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        return op

    def add(self, op: Operation) -> SSAValue:
        """Writes an op with one result."""
        return self.write(op).results[0]

    def again(self, op: Operation, operands: Mapping[int, SSAValue]) -> SSAValue:
        """Writes an op once more, with other operands at these indices."""
        made = op.clone()
        for index, value in operands.items():
            made.operands[index] = value
        return self.add(made)

    # Elementwise

    def __call__(self, name: str, *values: SSAValue) -> SSAValue:
        return self.add(graph.EwOp(name, values))

    def constant(self, value: float, like: SSAValue) -> SSAValue:
        return self.filled(value, graph_type(like))

    def filled(self, value: float, type_: GraphTensorType) -> SSAValue:
        return self.add(graph.ConstantOp.splat(value, type_))

    def zeros(self, type_: GraphTensorType) -> SSAValue:
        return self.filled(0.0, type_)

    def cast(self, x: SSAValue, dtype: DType) -> SSAValue:
        return x if graph_type(x).dtype is dtype else self.add(graph.EwOp("cast", [x], to=dtype))

    def scaled(self, x: SSAValue, factor: SSAValue) -> SSAValue:
        """`x` times a factor that may be known to be 1 or -1."""
        number = number_of(factor)
        if number == 1.0:
            return x
        if number == -1.0:
            return self("neg", x)
        return self("mul", x, self.cast(factor, graph_type(x).dtype))

    def sum_of(self, values: Sequence[SSAValue | None]) -> SSAValue | None:
        total: SSAValue | None = None
        for value in values:
            if value is not None:
                total = value if total is None else self("add", total, self.cast(value, graph_type(total).dtype))
        return total

    # Shapes

    def broadcast(self, x: SSAValue, shape: Sequence[DimLike]) -> SSAValue:
        target = shape_of(shape)
        return x if graph_type(x).shape == target else self.add(graph.BroadcastOp(x, target))

    def reshape(self, x: SSAValue, shape: Sequence[DimLike]) -> SSAValue:
        target = shape_of(shape)
        return x if graph_type(x).shape == target else self.add(graph.ReshapeOp(x, target))

    def transpose(self, x: SSAValue, permutation: Sequence[int]) -> SSAValue:
        order = list(permutation)
        return x if order == sorted(order) else self.add(graph.TransposeOp(x, order))

    def moved(self, x: SSAValue, source: int, target: int) -> SSAValue:
        """An axis taken out and put in elsewhere."""
        order = [axis for axis in range(len(graph_type(x).shape)) if axis != source]
        order.insert(target, source)
        return self.transpose(x, order)

    def matrix_transposed(self, x: SSAValue) -> SSAValue:
        rank = len(graph_type(x).shape)
        return self.transpose(x, [*range(rank - 2), rank - 1, rank - 2])

    def slice(self, x: SSAValue, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> SSAValue:
        return self.add(graph.SliceOp(x, starts, stops, steps, known=self.known))

    def flipped(self, x: SSAValue, axis: int) -> SSAValue:
        rank = len(graph_type(x).shape)
        starts, stops, steps = [0] * rank, [LAST] * rank, [1] * rank
        starts[axis], stops[axis], steps[axis] = LAST, BEFORE_FIRST, -1
        return self.slice(x, starts, stops, steps)

    def concatenate(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        return values[0] if len(values) == 1 else self.add(graph.ConcatenateOp(values, axis))

    def iota(self, shape: Sequence[DimLike], axis: int) -> SSAValue:
        return self.add(graph.IotaOp(axis, GraphTensorType.of(shape_of(shape), i64)))

    def integer(self, value: int, shape: Sequence[DimLike] = ()) -> SSAValue:
        return self.filled(value, GraphTensorType.of(shape_of(shape), i64))

    def size(self, size: DimLike) -> SSAValue:
        """A size as an i64 without axes."""
        total: SSAValue | None = None
        for monomial, coefficient in dim(size).terms:
            term = self.integer(coefficient)
            for atom in monomial:
                if isinstance(atom, str):
                    factor = self.sum(self.integer(1, (dim(atom),)), [0])
                else:
                    factor = self("floordiv", self.size(atom.numerator), self.integer(atom.divisor))
                term = self("mul", term, factor)
            total = term if total is None else self("add", total, term)
        return self.integer(0) if total is None else total

    # Reductions

    def sum(self, x: SSAValue, axes: Sequence[int], *, keepdims: bool = False) -> SSAValue:
        return self.reduce("sum", x, axes, keepdims=keepdims)

    def reduce(self, kind: str, x: SSAValue, axes: Sequence[int], *, keepdims: bool = False) -> SSAValue:
        return x if not axes else self.add(graph.ReduceOp(kind, x, axes, keepdims=keepdims))

    def sum_to(self, x: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """The transpose of a broadcast from a shape."""
        have = graph_type(x).shape
        leading = len(have) - len(shape)
        repeated = [leading + axis for axis, size in enumerate(shape) if size == 1 and have[leading + axis] != 1]
        return self.reshape(self.sum(x, [*range(leading), *repeated], keepdims=True), shape)

    def cumulate(self, kind: str, x: SSAValue, axis: int, *, exclusive: bool = False) -> SSAValue:
        return self.add(indexing.CumulateOp(kind, x, axis, exclusive=exclusive))

    # Places

    def gather(self, x: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int]) -> SSAValue:
        return self.add(graph.GatherOp(x, indices, axes))

    def scatter(
        self, kind: str, x: SSAValue, updates: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int]
    ) -> SSAValue:
        return self.add(indexing.ScatterOp(kind, x, updates, indices, axes))

    def as_number(self, flag: SSAValue, dtype: DType) -> SSAValue:
        """1 where a bool holds, else 0."""
        assert graph_type(flag).dtype.base is bool_
        type_ = graph_type(flag).with_dtype(dtype)
        return self("select", flag, self.filled(1.0, type_), self.zeros(type_))


def axes_of(op: graph.ReduceOp) -> list[int]:
    return list(op.axes.iter_values())


def kept_shape(shape: Sequence[Size], axes: Sequence[int]) -> tuple[Size, ...]:
    """The shape of a reduction that keeps its axes."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
