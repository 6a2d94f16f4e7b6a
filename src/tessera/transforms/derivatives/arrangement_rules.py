"""Derivatives of ops that arrange elements: what is broadcast, reshaped, transposed, cut out or put together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph.slices import LAST
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size, dim, size
from tessera.transforms.derivatives.graph_writer import GraphWriter
from tessera.transforms.derivatives.rules import IsLinear, Tangent, Tangents, constant, rule


def same_way(at: Tangents, op: Operation, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    """The tangent of a linear op of one operand goes the way of the value."""
    return [None if tangents[0] is None else at.linear.again(op, {0: tangents[0]})]


def _broadcast(w: GraphWriter, op: graph.BroadcastOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    return [w.sum_to(given[0], graph_type(op.operand).shape)]


def _reshape(w: GraphWriter, op: graph.ReshapeOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    return [w.reshape(given[0], graph_type(op.operand).shape)]


def _transpose(w: GraphWriter, op: graph.TransposeOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    order = list(op.permutation.iter_values())
    return [w.transpose(given[0], [order.index(axis) for axis in range(len(order))])]


def _slice(w: GraphWriter, op: graph.SliceOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    """Zeros with the part in its place, one axis after the other."""
    part = given[0]
    assert part is not None
    whole = graph_type(op.operand).shape
    bounds = zip(op.starts.iter_values(), op.stops.iter_values(), op.steps.iter_values(), strict=True)
    for axis, (start, stop, step) in enumerate(bounds):
        extent = whole[axis]
        if (start, step) == (0, 1) and graph_type(part).shape[axis] == extent:
            continue
        part = placed(w, part, axis, _first(extent, start, stop, step), step, extent)
    return [part]


def _first(extent: Size, start: int, stop: int, step: int) -> Size:
    """Where a slice of an axis begins."""
    if isinstance(extent, int):
        return slice(start, stop if stop >= -extent else None, step).indices(extent)[0]
    if start == LAST:
        return size(dim(extent) - 1)
    return start if start >= 0 else size(dim(extent) + start)


def placed(w: GraphWriter, part: SSAValue, axis: int, first: Size, step: int, extent: Size) -> SSAValue:
    """Zeros of an extent along an axis, with a part from `first` on, every `step`-th."""
    count = graph_type(part).shape[axis]
    if count == 0:
        return w.zeros(_with_size(part, axis, extent))
    if step < 0:
        part = w.flipped(part, axis)
        first, step = size(dim(first) + (dim(count) - 1) * step), -step
    if step != 1 and not (isinstance(first, int) and isinstance(count, int) and isinstance(extent, int)):
        counted = w("mul", w.iota((count,), 0), w.broadcast(w.integer(step), (count,)))
        indices = w("add", counted, w.broadcast(w.size(first), (count,)))
        return w.scatter("add", w.zeros(_with_size(part, axis, extent)), part, [indices], [axis])
    if step != 1:
        part = _spread(w, part, axis, step)
        room, count = (dim(extent) - dim(first)).constant, graph_type(part).shape[axis]
        if isinstance(count, int) and room is not None and room < count:
            part, count = _cut(w, part, axis, room), room
    rest = size(dim(extent) - dim(count) - dim(first))
    pieces = [w.zeros(_with_size(part, axis, first)), part, w.zeros(_with_size(part, axis, rest))]
    sizes = [first, count, rest]
    return w.concatenate([piece for piece, one in zip(pieces, sizes, strict=True) if one != 0], axis)


def _spread(w: GraphWriter, part: SSAValue, axis: int, step: int) -> SSAValue:
    """Elements along an axis with `step - 1` zeros behind each."""
    shape = list(graph_type(part).shape)
    apart = w.reshape(part, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    zeros = w.zeros(graph_type(part).with_shape([*shape[: axis + 1], step - 1, *shape[axis + 1 :]]))
    shape[axis] = size(dim(shape[axis]) * step)
    return w.reshape(w.concatenate([apart, zeros], axis + 1), shape)


def _cut(w: GraphWriter, part: SSAValue, axis: int, count: int) -> SSAValue:
    rank = len(graph_type(part).shape)
    return w.slice(part, [0] * rank, [count if one == axis else LAST for one in range(rank)], [1] * rank)


def _with_size(like: SSAValue, axis: int, extent: Size) -> graph.GraphTensorType:
    type_ = graph_type(like)
    return type_.with_shape([extent if one == axis else old for one, old in enumerate(type_.shape)])


def _concatenate_jvp(at: Tangents, op: graph.ConcatenateOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    w = at.linear
    parts = [
        w.zeros(graph_type(operand)) if tangent is None else tangent
        for operand, tangent in zip(op.operands_, tangents, strict=True)
    ]
    return [w.concatenate(parts, op.axis.value.data)]


def _concatenate(
    w: GraphWriter, op: graph.ConcatenateOp, given: Sequence[Tangent], is_linear: IsLinear
) -> list[Tangent]:
    assert given[0] is not None
    axis, found = op.axis.value.data, list[Tangent]()
    total = graph_type(op.result).shape
    before, after = dim(0), dim(total[axis])
    for operand in op.operands_:
        extent = graph_type(operand).shape[axis]
        after = after - dim(extent)
        found.append(_part(w, given[0], axis, size(before), extent, size(after)) if is_linear(operand) else None)
        before = before + dim(extent)
    return found


def _part(w: GraphWriter, whole: SSAValue, axis: int, before: Size, extent: Size, after: Size) -> SSAValue:
    """The part of an extent behind `before` elements and in front of `after`."""
    rank = len(graph_type(whole).shape)
    starts, stops = [0] * rank, [LAST] * rank
    if extent == 0:
        return w.zeros(_with_size(whole, axis, 0))
    if isinstance(before, int) and isinstance(after, int):
        starts[axis], stops[axis] = before, -after if after else LAST
    elif isinstance(before, int) and isinstance(extent, int):
        starts[axis], stops[axis] = before, before + extent
    elif isinstance(after, int) and isinstance(extent, int):
        starts[axis], stops[axis] = -after - extent, -after if after else LAST
    else:
        indices = w("add", w.iota((extent,), 0), w.broadcast(w.size(before), (extent,)))
        return w.gather(whole, [indices], [axis])
    return w.slice(whole, starts, stops, [1] * rank)


rule(graph.BroadcastOp, same_way, _broadcast)
rule(graph.ReshapeOp, same_way, _reshape)
rule(graph.TransposeOp, same_way, _transpose)
rule(graph.SliceOp, same_way, _slice)
rule(graph.ConcatenateOp, _concatenate_jvp, _concatenate)
constant(graph.ConstantOp, "its elements are known")
constant(graph.IotaOp, "it counts")
