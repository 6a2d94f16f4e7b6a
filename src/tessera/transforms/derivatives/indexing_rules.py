"""Derivatives of ops that read or write at computed places."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import element_count
from tessera.transforms.derivatives.arrangement_rules import same_way
from tessera.transforms.derivatives.graph_writer import GraphWriter
from tessera.transforms.derivatives.rules import IsLinear, Tangent, Tangents, rule


def _gather(w: GraphWriter, op: graph.GatherOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    return [w.scatter("add", w.zeros(graph_type(op.operand)), op.indices, given[0], op.axis.value.data), None]


def _scatter_jvp(at: Tangents, op: indexing.ScatterOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    w, old, new = at.linear, tangents[0], tangents[2]
    old = w.zeros(graph_type(op.operand)) if old is None else old
    if new is None:
        new = w.zeros(graph_type(op.updates))
    if op.kind.data in ("set", "add"):
        return [w.again(op, {0: old, 2: new})]
    # Of maxima and minima, those who are the result share its tangent.
    k, axis, type_ = at.known, op.axis.value.data, graph_type(op.operand)
    stays = k.as_number(k("eq", op.operand, op.result), type_.dtype)
    there = k.gather(op.result, op.indices, axis)
    comes = k.as_number(k("eq", op.updates, there), type_.dtype)
    count = k.scatter("add", stays, op.indices, comes, axis)
    total = w.scatter("add", w("mul", old, stays), op.indices, w("mul", new, comes), axis)
    return [w("mul", total, k("reciprocal", count))]


def _scatter(w: GraphWriter, op: indexing.ScatterOp, given: Sequence[Tangent], is_linear: IsLinear) -> list[Tangent]:
    (whole,) = given
    assert whole is not None
    axis, is_set = op.axis.value.data, op.kind.data == "set"
    old: Tangent = None
    new: Tangent = None
    if is_linear(op.operand):
        old = w.scatter("set", whole, op.indices, w.zeros(graph_type(op.updates)), axis) if is_set else whole
    if is_linear(op.updates):
        new = w.gather(whole, op.indices, axis)
        if is_set:
            new = w("select", _is_last(w, op), new, w.zeros(graph_type(new)))
    return [old, None, new]


def _is_last(w: GraphWriter, op: indexing.ScatterOp) -> SSAValue:
    """Whether each update is the last one at its place."""
    axis, shape = op.axis.value.data, graph_type(op.indices).shape
    count = element_count(shape)
    flat = w.reshape(op.indices, [count])
    numbers = w.iota([count], 0)
    extent = graph_type(op.operand).shape[axis]
    writers = w.scatter("set", w.broadcast(w.integer(-1), [extent]), flat, numbers, 0)
    last = w.reshape(w("eq", w.gather(writers, flat, 0), numbers), shape)
    whole = graph_type(op.updates).shape
    behind = len(whole) - axis - len(shape)
    return w.broadcast(w.reshape(last, [*[1] * axis, *shape, *[1] * behind]), whole)


def _slice(w: GraphWriter, op: indexing.DynamicSliceOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    placed = w.add(indexing.DynamicUpdateSliceOp(w.zeros(graph_type(op.operand)), given[0], op.starts))
    return [placed, *[None] * len(op.starts)]


def _update_jvp(at: Tangents, op: indexing.DynamicUpdateSliceOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    w = at.linear
    parts = [
        w.zeros(graph_type(value)) if tangent is None else tangent
        for value, tangent in zip((op.operand, op.update), tangents[:2], strict=True)
    ]
    return [w.again(op, dict(enumerate(parts)))]


def _update(
    w: GraphWriter, op: indexing.DynamicUpdateSliceOp, given: Sequence[Tangent], is_linear: IsLinear
) -> Sequence[Tangent]:
    (whole,) = given
    assert whole is not None
    old: Tangent = None
    new: Tangent = None
    if is_linear(op.operand):
        zeros = w.zeros(graph_type(op.update))
        old = w.add(indexing.DynamicUpdateSliceOp(whole, zeros, op.starts))
    if is_linear(op.update):
        new = w.add(indexing.DynamicSliceOp(whole, op.starts, graph_type(op.update).shape))
    return [old, new, *[None] * len(op.starts)]


rule(graph.GatherOp, same_way, _gather)
rule(indexing.ScatterOp, _scatter_jvp, _scatter)
rule(indexing.DynamicSliceOp, same_way, _slice)
rule(indexing.DynamicUpdateSliceOp, _update_jvp, _update)
