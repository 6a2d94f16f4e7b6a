"""canonicalize, cse and dce: one normal form, nothing lost, effects respected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.dead_code import DeadCode

_T = "!graph.tensor<[4], f32>"


def cleaned(source: str, *steps: type[Canonicalize | CommonSubexpressions | DeadCode]) -> str:
    module = text.read(source)
    for step in steps or (Canonicalize, CommonSubexpressions, DeadCode):
        step().apply(CompileContext.with_facts(), module)
        text.verify(module)
    return text.write(module)


def function(body: str, effects: str = "") -> str:
    return f"""
graph.state @slot : {_T}
graph.state @other : {_T}
graph.func @f(%x: {_T}, %y: {_T}) -> ({_T}) {effects} {{
{body}
}}"""


@pytest.mark.parametrize(
    ("between", "reads"),
    [
        ("", 1),
        (f'graph.print "hello", %x : {_T}', 1),
        (f"graph.state_write @other, %x : {_T}", 1),
        (f"%r = graph.random<uniform> : {_T}", 1),
        (f"graph.state_write @slot, %x : {_T}", 2),
    ],
)
def test_reads_merge_unless_something_wrote_in_between(between: str, reads: int) -> None:
    body = f"""
  %a = graph.state_read @slot : {_T}
  {between}
  %b = graph.state_read @slot : {_T}
  %c = graph.ew<add> %a, %b : {_T}, {_T} -> {_T}
  graph.return %c : {_T}"""
    written = cleaned(function(body, 'effects [io, random, "state(slot)", "state(other)"]'))
    assert written.count("graph.state_read") == reads


def test_random_draws_are_neither_merged_nor_removed() -> None:
    body = f"""
  %a = graph.random<uniform> : {_T}
  %b = graph.random<uniform> : {_T}
  %unused = graph.random<normal> : {_T}
  %c = graph.ew<sub> %a, %b : {_T}, {_T} -> {_T}
  graph.return %c : {_T}"""
    assert cleaned(function(body, "effects [random]")).count("graph.random") == 3


def test_unused_reads_and_pure_ops_go() -> None:
    body = f"""
  %a = graph.state_read @slot : {_T}
  %b = graph.ew<add> %a, %x : {_T}, {_T} -> {_T}
  %c = graph.ew<mul> %b, %b : {_T}, {_T} -> {_T}
  graph.return %x : {_T}"""
    written = cleaned(function(body, 'effects ["state(slot)"]'), DeadCode)
    assert "graph.state_read" not in written
    assert "graph.ew" not in written


def test_reductions_of_one_element_are_what_they_take() -> None:
    source = """
graph.func @f(%x: !graph.tensor<[M, 1, 3], f32>)
    -> (!graph.tensor<[M, 1, 3], f32>, !graph.tensor<[M, 3], f32>, !graph.tensor<[M, 1, 1], f32>) {
  %a = graph.reduce<sum> %x, [1] keepdims : !graph.tensor<[M, 1, 3], f32> -> !graph.tensor<[M, 1, 3], f32>
  %b = graph.reduce<max> %x, [1] : !graph.tensor<[M, 1, 3], f32> -> !graph.tensor<[M, 3], f32>
  %c = graph.reduce<sum> %x, [1, 2] keepdims : !graph.tensor<[M, 1, 3], f32> -> !graph.tensor<[M, 1, 1], f32>
  graph.return %a, %b, %c : !graph.tensor<[M, 1, 3], f32>, !graph.tensor<[M, 3], f32>, !graph.tensor<[M, 1, 1], f32>
}"""
    written = cleaned(source)
    assert written.count("graph.reduce<sum>") == 1
    assert "graph.reduce<max>" not in written
    assert "graph.return %x, " in written


def test_calls_are_kept_for_the_effects_their_callee_declares() -> None:
    source = f"""
graph.func @quiet(%x: {_T}) -> ({_T}) {{
  graph.return %x : {_T}
}}
graph.func @loud(%x: {_T}) -> ({_T}) effects [io] {{
  graph.print "x", %x : {_T}
  graph.return %x : {_T}
}}
graph.func @f(%x: {_T}) -> ({_T}) effects [io] {{
  %a = graph.call @quiet(%x) : ({_T}) -> {_T}
  %b = graph.call @loud(%x) : ({_T}) -> {_T}
  graph.return %x : {_T}
}}"""
    written = cleaned(source)
    assert "graph.call @quiet" not in written
    assert "graph.call @loud" in written


# Random programs over effects and algebra: same results, same log, same final state.

_LINES = st.sampled_from(
    [
        "%{n} = graph.ew<add> %{a}, %{b} : T, T -> T",
        "%{n} = graph.ew<mul> %{a}, %{b} : T, T -> T",
        "%{n} = graph.ew<max> %{b}, %{a} : T, T -> T",
        "%{n} = graph.ew<neg> %{a} : T -> T",
        "%{n} = graph.constant T = [2.0]",
        "%{n} = graph.random<normal> : T",
        "%{n} = graph.state_read @slot : T",
        "graph.state_write @slot, %{a} : T\n  %{n} = graph.transpose %{b}, [0] : T -> T",
        'graph.print "p", %{a} : T\n  %{n} = graph.reshape %{a} : T -> T',
        "%{n} = graph.ew<cast> %{a} : T -> T",
    ]
)


@st.composite
def effectful_programs(draw: st.DrawFn) -> str:
    values = ["x", "y"]
    lines: list[str] = []
    for number in range(draw(st.integers(1, 12))):
        line = draw(_LINES)
        picked = {"a": draw(st.sampled_from(values)), "b": draw(st.sampled_from(values)), "n": f"v{number}"}
        lines.append("  " + line.format(**picked).replace(" T", f" {_T}"))
        values.append(f"v{number}")
    lines.append(f"  graph.return %{values[-1]} : {_T}")
    return function("\n".join(lines), 'effects [io, random, "state(slot)"]')


def _observe(source: str) -> tuple[bytes, list[str], bytes, int]:
    log: list[str] = []
    machine = Machine(seed=5, write=log.append)
    x, y = np.arange(4, dtype=np.float32), np.full(4, 0.5, np.float32)
    (result,) = run_function(text.read(source), "f", [x, y], machine=machine)
    slot = machine.slots.get("slot", np.zeros(0))
    return np.ascontiguousarray(result).tobytes(), log, slot.tobytes(), machine.position


@settings(max_examples=80, deadline=None)
@given(effectful_programs())
def test_cleaning_up_is_not_noticed_and_reaches_a_fixed_point(source: str) -> None:
    written = cleaned(source)
    assert _observe(written) == _observe(source)
    assert cleaned(written) == written
