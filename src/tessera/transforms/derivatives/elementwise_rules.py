"""Derivatives of elementwise ops: the partials of their table, and the transposes of those that are linear."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.ir.common import elementwise
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.transforms.derivatives.graph_writer import GraphWriter, number_of
from tessera.transforms.derivatives.rules import IsLinear, Tangent, Tangents, refused, rule


def _jvp(at: Tangents, op: graph.EwOp, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    name, w = op.fn.data, at.linear
    partials = elementwise.TABLE[name].derivative
    type_ = graph_type(op.result)
    if partials is None or not type_.dtype.is_float:
        return [None]
    if op.seed is not None:
        raise refused(
            op,
            f"{name} rounds to {type_.dtype} at random, and has no derivative",
            "cast to the type without stochastic_round where gradients are wanted, or put ts.stop_gradient around it",
        )
    if name == "cast":
        (tangent,) = tangents
        return [None if tangent is None else w.cast(tangent, type_.dtype)]
    if name == "neg":
        (tangent,) = tangents
        return [None if tangent is None else w("neg", tangent)]
    if name == "select":
        condition, a, b = op.operands_[0], tangents[1], tangents[2]
        zeros = w.zeros(type_)
        return [w("select", condition, zeros if a is None else a, zeros if b is None else b)]
    terms: list[Tangent] = []
    for partial, tangent in zip(partials(at.known, *op.operands_, op.result), tangents, strict=True):
        if partial is not None and tangent is not None and number_of(partial) != 0.0:
            terms.append(w.scaled(tangent, partial))
    return [w.sum_of(terms)]


def _transpose(w: GraphWriter, op: graph.EwOp, cotangents: Sequence[Tangent], is_linear: IsLinear) -> Sequence[Tangent]:
    name, xs = op.fn.data, op.operands_
    (given,) = cotangents
    assert given is not None
    if name == "add":
        return [w.cast(given, graph_type(x).dtype) if is_linear(x) else None for x in xs]
    if name == "neg":
        return [w("neg", given)]
    if name == "cast":
        return [w.cast(given, graph_type(xs[0]).dtype)]
    if name == "mul":
        a, b = xs
        return [w("mul", given, b) if is_linear(a) else None, w("mul", given, a) if is_linear(b) else None]
    assert name == "select", f"{name} is written among linear ops"
    zeros = w.zeros(graph_type(given))
    condition, a, b = xs
    return [
        None,
        w("select", condition, given, zeros) if is_linear(a) else None,
        w("select", condition, zeros, given) if is_linear(b) else None,
    ]


rule(graph.EwOp, _jvp, _transpose)
