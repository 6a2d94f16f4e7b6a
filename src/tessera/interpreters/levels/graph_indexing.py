"""The meaning of graph ops that scatter, slice at computed starts, or cumulate."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera.errors import RangeError, ShapeError
from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.interpreters.core.running import running
from tessera.ir.common import elementwise
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
    source, indices, updates = operands
    axis, dtype = op.axis.value.data, graph_type(op.operand).dtype
    found = np.moveaxis(source.copy(), axis, 0)
    rows = np.moveaxis(updates.reshape((*source.shape[:axis], indices.size, *source.shape[axis + 1 :])), axis, 0)
    for number, index in enumerate(indices.reshape(-1)):
        if not 0 <= int(index) < source.shape[axis]:
            raise RangeError(
                f"scatter: index {index} is out of range for axis {axis} of size {source.shape[axis]}",
                hint="indices count from 0; clamp or mask them first",
            )
        old, new = found[int(index)], rows[number]
        kind = op.kind.data
        found[int(index)] = new if kind == "set" else elementwise.apply(kind, [old, new], [dtype, dtype])
    return [np.ascontiguousarray(np.moveaxis(found, 0, axis))]
