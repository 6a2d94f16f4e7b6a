"""Derivatives of reductions, running reductions and products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing
from tessera.ir.graph.control import ScanOp, YieldOp, body_of
from tessera.ir.graph.slices import LAST
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import element_count
from tessera.transforms.derivatives.graph_writer import GraphWriter, axes_of, kept_shape
from tessera.transforms.derivatives.rules import IsLinear, Tangent, Tangents, rule


def _reduce_jvp(at: Tangents, op: graph.ReduceOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    (tangent,) = tangents
    if tangent is None:
        return [None]
    w, keepdims, axes = at.linear, op.keepdims is not None, axes_of(op)
    if op.kind.data == "sum":
        return [w.again(op, {0: tangent})]
    share = _PARTIALS[op.kind.data](at.known, op, axes)
    return [w.sum(w("mul", tangent, share), axes, keepdims=keepdims)]


def _share(w: GraphWriter, op: graph.ReduceOp, axes: Sequence[int]) -> SSAValue:
    """Elements that are the extreme share its tangent."""
    type_ = graph_type(op.operand)
    extreme = w.broadcast(w.reshape(op.result, kept_shape(type_.shape, axes)), type_.shape)
    hits = w.as_number(w("eq", op.operand, extreme), type_.dtype)
    count = w.sum(hits, axes, keepdims=True)
    return w("div", hits, w.broadcast(count, type_.shape))


def _others(w: GraphWriter, op: graph.ReduceOp, axes: Sequence[int]) -> SSAValue:
    """The product of all other elements, which may be zeros."""
    shape = graph_type(op.operand).shape
    first = [axis for axis in range(len(shape)) if axis not in axes]
    order = [*first, *axes]
    rows = w.transpose(op.operand, order)
    apart = graph_type(rows).shape
    rows = w.reshape(rows, [*apart[: len(first)], element_count(apart[len(first) :])])
    along = len(first)
    before = w.cumulate("prod", rows, along, exclusive=True)
    behind = w.flipped(w.cumulate("prod", w.flipped(rows, along), along, exclusive=True), along)
    found = w.reshape(w("mul", before, behind), apart)
    return w.transpose(found, [order.index(axis) for axis in range(len(order))])


_PARTIALS: dict[str, Callable[[GraphWriter, graph.ReduceOp, Sequence[int]], SSAValue]] = {
    "max": _share,
    "min": _share,
    "top": _share,
    "prod": _others,
}


def _reduce(w: GraphWriter, op: graph.ReduceOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    shape = graph_type(op.operand).shape
    return [w.broadcast(w.reshape(given[0], kept_shape(shape, axes_of(op))), shape)]


def _cumulate_jvp(at: Tangents, op: indexing.CumulateOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    (tangent,) = tangents
    if tangent is None:
        return [None]
    if op.kind.data == "sum":
        return [at.linear.again(op, {0: tangent})]
    return [(_running_product if op.kind.data == "prod" else _running_extreme)(at, op, tangent)]


def _running_product(at: Tangents, op: indexing.CumulateOp, tangent: SSAValue) -> SSAValue:
    """The recurrence `d' = d * x + before * dx` along the axis: right where elements are zero, too."""
    axis, exclusive = op.axis.value.data, op.exclusive is not None
    k, w = at.known, at.linear
    before = op.result if exclusive else k.cumulate("prod", op.operand, axis, exclusive=True)
    factors = k.moved(op.operand, axis, 0)
    steps = w.moved(w("mul", tangent, before), axis, 0)
    row = graph_type(factors).with_shape(graph_type(factors).shape[1:])
    body = body_of([row, row, row])
    inside = GraphWriter(body.block, w.known)
    inside.location = w.location
    carried, factor, step = body.block.args
    after = inside("add", inside("mul", carried, factor), step)
    inside.write(YieldOp([after, carried if exclusive else after]))
    made = w.write(ScanOp(graph_type(factors).shape[0], [w.zeros(row)], [factors, steps], body))
    return w.moved(made.results[1], 0, axis)


def _running_extreme(at: Tangents, op: indexing.CumulateOp, tangent: SSAValue) -> SSAValue:
    """The tangent of the element that is the extreme so far: the first of equal ones."""
    k, w = at.known, at.linear
    axis, type_ = op.axis.value.data, graph_type(op.operand)
    shape = type_.shape
    whole = k.cumulate(op.kind.data, op.operand, axis)
    before = k.cumulate(op.kind.data, op.operand, axis, exclusive=True)
    count = k.iota(shape, axis)
    # A place is a new extreme where what comes before it is not one; the first place always is.
    is_new = k("or", k("ne", whole, before), k("eq", count, k.broadcast(k.integer(0), shape)))
    place = k.cumulate("max", k("select", is_new, count, k.broadcast(k.integer(0), shape)), axis)
    flat = element_count(shape)
    index = place
    if len(shape) > 1:
        rows = k.moved(place, axis, len(shape) - 1)
        rest = graph_type(rows).shape
        row_count = element_count(rest[:-1])
        lines = k.reshape(rows, [row_count, rest[-1]])
        base = k("mul", k.iota([row_count, rest[-1]], 0), k.broadcast(k.size(rest[-1]), [row_count, rest[-1]]))
        index = k.reshape(k("add", base, lines), [flat])
        taken = w.gather(w.reshape(w.moved(tangent, axis, len(shape) - 1), [flat]), [index], [0])
        found = w.moved(w.reshape(taken, rest), len(shape) - 1, axis)
    else:
        found = w.gather(tangent, [index], [0])
    if op.exclusive is None:
        return found
    rank = len(shape)
    leading = type_.with_shape([1 if one == axis else size for one, size in enumerate(shape)])
    # The shift by one place drops the last.
    extended = w.concatenate([w.zeros(leading), found], axis)
    return w.slice(extended, [0] * rank, [-1 if one == axis else LAST for one in range(rank)], [1] * rank)


def _cumulate(w: GraphWriter, op: indexing.CumulateOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    axis = op.axis.value.data
    swept = w.cumulate("sum", w.flipped(given[0], axis), axis, exclusive=op.exclusive is not None)
    return [w.flipped(swept, axis)]


def _matmul_jvp(at: Tangents, op: graph.MatmulOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    w = at.linear
    return [w.sum_of([None if tangent is None else w.again(op, {i: tangent}) for i, tangent in enumerate(tangents)])]


def _matmul(w: GraphWriter, op: graph.MatmulOp, given: Sequence[Tangent], is_linear: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    left, right = graph_type(op.a), graph_type(op.b)
    found: list[Tangent] = [None, None]
    cotangent = w.cast(given[0], left.dtype)
    if is_linear(op.a):
        product = w.add(graph.MatmulOp(cotangent, w.matrix_transposed(w.cast(op.b, left.dtype)), to=left.dtype))
        found[0] = w.sum_to(product, left.shape)
    else:
        a = w.cast(op.a, right.dtype)
        cotangent = w.cast(given[0], right.dtype)
        if len(right.shape) == 2:  # the rows of all matrices are those of one
            a = w.reshape(a, [element_count(left.shape[:-1]), left.shape[-1]])
            shape = graph_type(cotangent).shape
            cotangent = w.reshape(cotangent, [element_count(shape[:-1]), shape[-1]])
        product = w.add(graph.MatmulOp(w.matrix_transposed(a), cotangent, to=right.dtype))
        found[1] = w.sum_to(product, right.shape)
    return found


rule(graph.ReduceOp, _reduce_jvp, _reduce)
rule(indexing.CumulateOp, _cumulate_jvp, _cumulate)
rule(graph.MatmulOp, _matmul_jvp, _matmul)
