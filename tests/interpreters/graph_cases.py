"""Cases of ops that read and write at looked-up indices, and of control flow: programs as text, and their formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from xdsl.ir import Operation

from tessera.ir.graph import control as graph_control
from tessera.ir.graph import indexing as graph_indexing

Draw = Callable[..., Any]


class Written(NamedTuple):
    """A program as text, its arguments, and what it gives."""

    text: str
    arguments: Sequence[Any]
    expected: Sequence[Any]


def _whole(draw: Draw, *shape: int) -> Any:
    """Whole numbers as f32: sums of them are exact in any order."""
    return np.random.default_rng(draw(st.integers(0, 999))).integers(-9, 9, shape).astype(np.float32)


def _cumulate(draw: Draw) -> Written:
    x, axis, exclusive = _whole(draw, draw(st.integers(0, 5)), 3), draw(st.integers(0, 1)), draw(st.booleans())
    type_ = "!graph.tensor<[N, 3], f32>"
    written = "exclusive" if exclusive else ""
    sums = np.cumsum(x, axis, dtype=np.float32) - (x if exclusive else 0)
    return Written(
        f"graph.func @f(%x: {type_}) -> ({type_}) {{\n"
        f"%y = graph.cumulate<sum> %x, {axis} {written} : {type_} -> {type_}\n"
        f"graph.return %y : {type_}\n}}",
        [x],
        [sums],
    )


def _scatter(draw: Draw) -> Written:
    kind = draw(st.sampled_from(["set", "add", "mul", "max", "min"]))
    x, updates = _whole(draw, 5, 2), _whole(draw, 4, 2)
    rows = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 5, 4).astype(np.int32)
    expected = x.copy()
    for index, update in zip(rows, updates, strict=True):
        rules = {"set": update, "add": expected[index] + update, "mul": expected[index] * update}
        rules |= {"max": np.maximum(expected[index], update), "min": np.minimum(expected[index], update)}
        expected[index] = rules[kind]
    into, what, at = "!graph.tensor<[M, 2], f32>", "!graph.tensor<[4, 2], f32>", "!graph.tensor<[4], i32>"
    return Written(
        f"graph.func @f(%x: {into}, %u: {what}, %i: {at}) -> ({into}) {{\n"
        f"%y = graph.scatter<{kind}> %u into %x[%i], [0] : {what} into {into}, {at} -> {into}\n"
        f"graph.return %y : {into}\n}}",
        [x, updates, rows],
        [expected],
    )


def _start(draw: Draw) -> tuple[Any, int]:
    """A start, and where a part of two rows out of five lies then: starts beyond the edges are moved inside."""
    start = draw(st.integers(-9, 9))
    return np.asarray(start, np.int32), min(max(start, 0), 3)


_WHOLE, _PART, _AT = "!graph.tensor<[5, 2], f32>", "!graph.tensor<[2, 2], f32>", "!graph.tensor<[], i32>"


def _dynamic_slice(draw: Draw) -> Written:
    x, (start, at) = _whole(draw, 5, 2), _start(draw)
    return Written(
        f"graph.func @f(%x: {_WHOLE}, %i: {_AT}) -> ({_PART}) {{\n"
        f"%y = graph.dynamic_slice %x[%i, %i] : {_WHOLE}, {_AT}, {_AT} -> {_PART}\ngraph.return %y : {_PART}\n}}",
        [x, start],
        [x[at : at + 2]],
    )


def _dynamic_update_slice(draw: Draw) -> Written:
    x, part, (start, at) = _whole(draw, 5, 2), _whole(draw, 2, 2), _start(draw)
    expected = x.copy()
    expected[at : at + 2] = part
    return Written(
        f"graph.func @f(%x: {_WHOLE}, %p: {_PART}, %i: {_AT}) -> ({_WHOLE}) {{\n"
        f"%y = graph.dynamic_update_slice %p into %x[%i, %i] : {_PART} into {_WHOLE}, {_AT}, {_AT} -> {_WHOLE}\n"
        f"graph.return %y : {_WHOLE}\n}}",
        [x, part, start],
        [expected],
    )


def _cond(draw: Draw) -> Written:
    x, chosen = _whole(draw, 3), draw(st.booleans())
    type_ = "!graph.tensor<[S], f32>"
    return Written(
        f"""graph.func @f(%p: !graph.tensor<[], i1>, %x: {type_}) -> ({type_}) {{
  %y = graph.cond %p then {{
    %a = graph.ew<neg> %x : {type_} -> {type_}
    graph.yield %a : {type_}
  }} else {{
    graph.yield %x : {type_}
  }} : !graph.tensor<[], i1> -> ({type_})
  graph.return %y : {type_}
}}""",
        [np.asarray(chosen), x],
        [-x if chosen else x],
    )


def _while(draw: Draw) -> Written:
    x, iterations = _whole(draw, 3), draw(st.integers(-1, 4))
    type_, count = "!graph.tensor<[S], f32>", "!graph.tensor<[], i64>"
    return Written(
        f"""graph.func @f(%n: {count}, %x: {type_}) -> ({type_}) {{
  %zero = graph.constant {count} = [0]
  %one = graph.constant {count} = [1]
  %j, %y = graph.while (%zero, %x) if {{
  ^bb0(%k: {count}, %u: {type_}):
    %c = graph.ew<lt> %k, %n : {count}, {count} -> !graph.tensor<[], i1>
    graph.yield %c : !graph.tensor<[], i1>
  }} do {{
  ^bb0(%k: {count}, %u: {type_}):
    %next = graph.ew<add> %k, %one : {count}, {count} -> {count}
    %twice = graph.ew<add> %u, %u : {type_}, {type_} -> {type_}
    graph.yield %next, %twice : {count}, {type_}
  }} : ({count}, {type_}) -> ({count}, {type_})
  graph.return %y : {type_}
}}""",
        [np.asarray(iterations, np.int64), x],
        [x * 2.0 ** max(iterations, 0)],
    )


def _scan(draw: Draw) -> Written:
    start, x, backwards = _whole(draw, 2), _whole(draw, draw(st.integers(0, 4)), 2), draw(st.booleans())
    row, rows = "!graph.tensor<[2], f32>", "!graph.tensor<[S, 2], f32>"
    steps = np.zeros_like(x)
    total = start.copy()
    for index in reversed(range(len(x))) if backwards else range(len(x)):
        total = total + x[index]
        steps[index] = total
    return Written(
        f"""graph.func @f(%s: {row}, %x: {rows}) -> ({row}, {rows}) {{
  %total, %steps = graph.scan <[S]> {"reverse" if backwards else ""} from (%s) over (%x) do {{
  ^bb0(%sum: {row}, %one: {row}):
    %next = graph.ew<add> %sum, %one : {row}, {row} -> {row}
    graph.yield %next, %next : {row}, {row}
  }} : ({row}), ({rows}) -> ({row}, {rows})
  graph.return %total, %steps : {row}, {rows}
}}""",
        [start, x],
        [total, steps],
    )


WRITTEN: dict[type[Operation], Callable[[Draw], Written]] = {
    graph_indexing.CumulateOp: _cumulate,
    graph_indexing.ScatterOp: _scatter,
    graph_indexing.DynamicSliceOp: _dynamic_slice,
    graph_indexing.DynamicUpdateSliceOp: _dynamic_update_slice,
    graph_control.CondOp: _cond,
    graph_control.WhileOp: _while,
    graph_control.ScanOp: _scan,
    graph_control.YieldOp: _cond,
}
