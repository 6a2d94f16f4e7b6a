"""The meaning of choosing and repeating: bodies run in the frame around them, whose values they see."""

from __future__ import annotations

import numpy as np

from tessera.interpreters.core.engine import Frame, Values, meaning
from tessera.ir.graph import control as graph_control
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import dim


@meaning(graph_control.CondOp)
def _cond(frame: Frame, op: graph_control.CondOp, operands: Values) -> Values:
    body = op.chosen if bool(operands[0]) else op.otherwise
    return frame.run(body.block, [])


@meaning(graph_control.WhileOp)
def _while(frame: Frame, op: graph_control.WhileOp, operands: Values) -> Values:
    carried = operands
    while bool(frame.run(op.condition.block, carried)[0]):
        carried = frame.run(op.body.block, carried)
    return carried


@meaning(graph_control.ScanOp)
def _scan(frame: Frame, op: graph_control.ScanOp, operands: Values) -> Values:
    count = dim(op.count).evaluate(frame.symbols)
    carried, xs = list(operands[: len(op.inits)]), operands[len(op.inits) :]
    stacked = [
        np.zeros(
            [dim(size).evaluate(frame.symbols) for size in graph_type(value).shape], graph_type(value).dtype.storage
        )
        for value in op.results_[len(carried) :]
    ]
    indices = range(count)
    for index in reversed(indices) if op.reverse is not None else indices:
        given = frame.run(op.body.block, [*carried, *(x[index] for x in xs)])
        carried = list(given[: len(carried)])
        for whole, piece in zip(stacked, given[len(carried) :], strict=True):
            whole[index] = piece
    return [*carried, *stacked]
