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


def _axes(op: graph.GatherOp | indexing.ScatterOp) -> list[int]:
    return list(op.axes.iter_values())


def _gather(w: GraphWriter, op: graph.GatherOp, given: Sequence[Tangent], _: IsLinear) -> Sequence[Tangent]:
    assert given[0] is not None
    found = w.scatter("add", w.zeros(graph_type(op.operand)), given[0], op.indices, _axes(op))
    return [found, *[None] * len(op.indices)]


def _scatter_jvp(at: Tangents, op: indexing.ScatterOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    w, old, new = at.linear, tangents[0], tangents[1]
    old = w.zeros(graph_type(op.operand)) if old is None else old
    if op.kind.data == "mul":
        return [_products(at, op, old, new)]
    if new is None:
        new = w.zeros(graph_type(op.updates))
    if op.kind.data in ("set", "add"):
        return [w.again(op, {0: old, 1: new})]
    # Of maxima and minima, those who are the result share its tangent.
    k, axes, type_ = at.known, _axes(op), graph_type(op.operand)
    stays = k.as_number(k("eq", op.operand, op.result), type_.dtype)
    there = k.gather(op.result, op.indices, axes)
    comes = k.as_number(k("eq", op.updates, there), type_.dtype)
    count = k.scatter("add", stays, comes, op.indices, axes)
    total = w.scatter("add", w("mul", old, stays), w("mul", new, comes), op.indices, axes)
    return [w("mul", total, k("reciprocal", count))]


def _products(at: Tangents, op: indexing.ScatterOp, old: SSAValue, new: Tangent) -> SSAValue:
    """The old tangent times all updates of its place, and each update's times all else that is multiplied there."""
    k, w, axes, type_ = at.known, at.linear, _axes(op), graph_type(op.updates)
    ones = k.filled(1.0, graph_type(op.operand))
    found = w("mul", old, k.scatter("mul", ones, op.updates, op.indices, axes))
    if new is None:
        return found
    zero, one = k.zeros(type_), k.filled(1.0, type_)
    is_zero = k("eq", op.updates, zero)
    without = k.scatter("mul", op.operand, k("select", is_zero, one, op.updates), op.indices, axes)
    zeros = k.scatter("add", k.zeros(graph_type(op.operand)), k("select", is_zero, one, zero), op.indices, axes)
    product, count = k.gather(without, op.indices, axes), k.gather(zeros, op.indices, axes)
    # With one zero at a place only that zero's partial is not 0.
    here = k("select", is_zero, k("sub", count, one), count)
    divided = k("div", product, k("select", is_zero, one, op.updates))
    partial = k("select", k("eq", here, zero), divided, zero)
    return w.scatter("add", found, w("mul", new, partial), op.indices, axes)


def _scatter(w: GraphWriter, op: indexing.ScatterOp, given: Sequence[Tangent], is_linear: IsLinear) -> list[Tangent]:
    (whole,) = given
    assert whole is not None
    axes, is_set = _axes(op), op.kind.data == "set"
    old: Tangent = None
    new: Tangent = None
    if is_linear(op.operand):
        old = w.scatter("set", whole, w.zeros(graph_type(op.updates)), op.indices, axes) if is_set else whole
    if is_linear(op.updates):
        new = w.gather(whole, op.indices, axes)
        if is_set:
            new = w("select", _is_last(w, op), new, w.zeros(graph_type(new)))
    return [old, new, *[None] * len(op.indices)]


def _is_last(w: GraphWriter, op: indexing.ScatterOp) -> SSAValue:
    """Whether each update is the last one at its place."""
    axes, shape = _axes(op), graph_type(op.indices[0]).shape
    count = element_count(shape)
    flat = [w.reshape(one, [count]) for one in op.indices]
    numbers = w.iota([count], 0)
    places = [graph_type(op.operand).shape[axis] for axis in axes]
    along = list(range(len(axes)))
    writers = w.scatter("set", w.broadcast(w.integer(-1), places), numbers, flat, along)
    last = w.reshape(w("eq", w.gather(writers, flat, along), numbers), shape)
    whole = graph_type(op.updates).shape
    behind = len(whole) - axes[0] - len(shape)
    return w.broadcast(w.reshape(last, [*[1] * axes[0], *shape, *[1] * behind]), whole)


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
