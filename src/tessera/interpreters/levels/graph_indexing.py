"""The meaning of graph ops that gather, scatter, slice at computed starts, or cumulate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tessera.dtypes.types import Kind
from tessera.errors import RangeError, ShapeError
from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.interpreters.core.running import running
from tessera.ir.common import elementwise
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import dim

Array = np.ndarray[Any, np.dtype[Any]]


def _part(starts: Values, whole: tuple[int, ...], part: tuple[int, ...]) -> tuple[slice, ...]:
    """Where a part lies: its starts, moved so that all of it is inside."""
    axes = zip(starts, whole, part, strict=True)
    found = [(max(0, min(int(start), size - length)), length) for start, size, length in axes]
    return tuple(slice(start, start + length) for start, length in found)


@meaning(graph_indexing.DynamicSliceOp)
def _dynamic_slice(frame: Frame, op: graph_indexing.DynamicSliceOp, operands: Values) -> Values:
    source, *starts = operands
    sizes = tuple(dim(size).evaluate(frame.symbols) for size in graph_type(op.result).shape)
    if any(size > have for size, have in zip(sizes, source.shape, strict=True)):
        raise ShapeError(f"dynamic_slice: {list(sizes)} is no part of {list(source.shape)}")
    return [source[_part(starts, source.shape, sizes)]]


@meaning(graph_indexing.DynamicUpdateSliceOp)
def _dynamic_update_slice(frame: Frame, op: graph_indexing.DynamicUpdateSliceOp, operands: Values) -> Values:
    source, update, *starts = operands
    if any(size > have for size, have in zip(update.shape, source.shape, strict=True)):
        raise ShapeError(f"dynamic_update_slice: {list(update.shape)} is no part of {list(source.shape)}")
    found = source.copy()
    found[_part(starts, source.shape, update.shape)] = update
    return [found]


@meaning(graph_indexing.CumulateOp)
def _cumulate(frame: Frame, op: graph_indexing.CumulateOp, operands: Values) -> Values:
    dtype, exclusive = graph_type(op.operand).dtype, op.exclusive is not None
    return [running(op.kind.data, operands[0], dtype, op.axis.value.data, exclusive=exclusive)]


@meaning(graph_indexing.ScatterOp)
def _scatter(frame: Frame, op: graph_indexing.ScatterOp, operands: Values) -> Values:
    source, updates, *given = operands
    axes, kind, dtype = list(op.axes.iter_values()), op.kind.data, graph_type(op.operand).dtype
    indices = inside("scatter", given, op.indices, source.shape, axes)
    found = np.array(source)
    # The axes of indices in front: a slice for each index, in order.
    rank = indices[0].ndim
    rows = np.moveaxis(updates, range(axes[0], axes[0] + rank), range(rank))
    slices = np.moveaxis(found, axes, range(len(axes)))
    for at in np.ndindex(indices[0].shape):
        where = tuple([int(one[at]) for one in indices])
        new = rows[at]
        slices[where] = new if kind == "set" else elementwise.apply(kind, [slices[where], new], [dtype, dtype])
    return [found]


def inside(
    what: str, given: Values, indices: Sequence[SSAValue], shape: Sequence[int], axes: Sequence[int]
) -> list[Array]:
    """Indices as i64; an error where one is outside of its axis."""
    found: list[Array] = []
    for values, value, axis in zip(given, indices, axes, strict=True):
        wide = values.astype(np.int64 if graph_type(value).dtype.kind is Kind.INT else np.uint64)
        if wide.size and not (wide.min() >= 0 and wide.max() < shape[axis]):
            worst = wide.min() if wide.min() < 0 else wide.max()
            raise RangeError(
                f"{what}: index {worst} is out of range for axis {axis} of size {shape[axis]}",
                hint="indices count from 0; clamp or mask them first",
            )
        found.append(wide.astype(np.int64))
    return found


@meaning(graph.GatherOp)
def _gather(frame: Frame, op: graph.GatherOp, operands: Values) -> Values:
    source, *given = operands
    axes = list(op.axes.iter_values())
    indices = inside("gather", given, op.indices, source.shape, axes)
    if len(axes) == 1:
        return [np.take(source, indices[0], axis=axes[0])]
    found = np.asarray(np.moveaxis(source, axes, range(len(axes)))[tuple(indices)])
    rank = indices[0].ndim
    return [np.moveaxis(found, range(rank), range(axes[0], axes[0] + rank))]
