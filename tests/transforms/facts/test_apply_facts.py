"""apply-facts: the guards recorded are exactly the facts needed, and the specialised code computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera.errors import GuardError
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Facts, observe
from tessera.transforms.facts.apply_facts import ApplyFacts

_VIEW = "!tile.view<2, f32, global>"


def specialise(source: str, facts: Facts) -> tuple[str, Facts]:
    """The code under `facts`, as text, and its guards."""
    context = CompileContext.with_facts(facts)
    module = text.read(source)
    for step in (Canonicalize(), ApplyFacts(), Canonicalize(), CommonSubexpressions(), Canonicalize()):
        step.apply(context, module)
        text.verify(module)
    return text.write(module), context.recorder.guards


def code(source: str, facts: Facts) -> str:
    return structural_hash(text.read(specialise(source, facts)[0]))


def assert_exact(source: str, facts: Facts) -> Facts:
    """The guards alone give the same code, each of them is needed for it, and no other fact matters to it."""
    written, guards = specialise(source, facts)
    whole = structural_hash(text.read(written))
    assert guards <= facts
    assert code(source, guards) == whole, "the guards do not suffice"
    assert specialise(source, guards)[1] == guards
    for atom in guards:
        assert code(source, guards.without(atom)) != whole, f"the guard {atom} is needless"
    return guards


def kernel(body: str, *, scalars: str = "", shapes: str = "") -> str:
    """A kernel over two matrices and some scalars that stores what `body` leaves in %result."""
    return f"""
tile.func @k(%a: {_VIEW}, %b: {_VIEW}{scalars}, %out: !tile.view<1, i64, global>) outputs 1
    shapes [[M, K], [P, N]{shapes}, [1]] grid [1] {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %sixteen = arith.constant 16 : index
{body}
  %tile = tile.iota %result, 0 : tensor<1xi64>
  tile.store %tile, %out[%zero] : tensor<1xi64>, !tile.view<1, i64, global>
  tile.return
}}"""


_ROWS = f"%rows = tile.dim %a, 0 : {_VIEW}"
_DEPTH = f"%depth = tile.dim %a, 1 : {_VIEW}"
_STEP = f"%step = tile.stride %a, 0 : {_VIEW}"
_OTHER = f"%other = tile.dim %b, 0 : {_VIEW}"

_CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "a size that is used": (
        kernel(f"{_ROWS}\n%result = arith.addi %rows, %one : index"),
        ["arg0.size[0] = 64", "arg0.size[1] = 32", "arg0.stride[0] = 32"],
        ["arg0.size[0] = 64"],
    ),
    "both sides of a select are equal": (
        kernel(f"{_ROWS}\n%result = arith.select %flag, %zero, %rows : index", scalars=", %flag: i1", shapes=", []"),
        ["arg2 = false", "arg0.size[0] = 0"],
        ["arg0.size[0] = 0"],
    ),
    "a size that is computed but never used": (
        kernel(f"{_ROWS}\n{_DEPTH}\n%dead = arith.addi %rows, %one : index\n%result = arith.addi %depth, %one : index"),
        ["arg0.size[0] = 64", "arg0.size[1] = 32"],
        ["arg0.size[1] = 32"],
    ),
    "a product with a zero needs only the zero": (
        kernel(f"{_ROWS}\n{_STEP}\n%result = arith.muli %rows, %step : index"),
        ["arg0.size[0] = 0", "arg0.stride[0] = 7"],
        ["arg0.size[0] = 0"],
    ),
    "the branch not taken asks nothing": (
        kernel(
            f"{_ROWS}\n{_DEPTH}\n%result = scf.if %flag -> (index) {{\n%x = arith.muli %rows, %sixteen : index\n"
            "scf.yield %x : index\n} else {\n%y = arith.addi %depth, %one : index\nscf.yield %y : index\n}",
            scalars=", %flag: i1",
            shapes=", []",
        ),
        ["arg2 = false", "arg0.size[0] = 64", "arg0.size[1] = 32"],
        ["arg2 = false", "arg0.size[1] = 32"],
    ),
    "a select takes one side": (
        kernel(
            f"{_ROWS}\n{_DEPTH}\n%result = arith.select %flag, %rows, %depth : index",
            scalars=", %flag: i1",
            shapes=", []",
        ),
        ["arg2 = true", "arg0.size[0] = 64", "arg0.size[1] = 32"],
        ["arg2 = true", "arg0.size[0] = 64"],
    ),
    "a branch whose result is not used": (
        kernel(
            f"{_DEPTH}\n%unused = scf.if %flag -> (index) {{\nscf.yield %one : index\n}} else {{\n"
            "scf.yield %zero : index\n}\n%result = arith.addi %depth, %one : index",
            scalars=", %flag: i1",
            shapes=", []",
        ),
        ["arg2 = true", "arg0.size[1] = 32"],
        ["arg0.size[1] = 32"],
    ),
    "a remainder by a divisor of a known multiple": (
        kernel(f"{_ROWS}\n%x = arith.muli %rows, %sixteen : index\n%result = arith.remsi %rows, %sixteen : index"),
        ["arg0.size[0] % 32 = 0", "arg0.stride[0] % 16 = 0"],
        ["arg0.size[0] % 32 = 0"],
    ),
    "a remainder that divisibility does not decide": (
        kernel(f"{_ROWS}\n%result = arith.remsi %rows, %sixteen : index"),
        ["arg0.size[0] % 8 = 0"],
        [],
    ),
    "a sum of multiples": (
        kernel(f"{_ROWS}\n{_OTHER}\n%x = arith.addi %rows, %other : index\n%result = arith.remsi %x, %sixteen : index"),
        ["arg0.size[0] % 32 = 0", "arg1.size[0] % 16 = 0"],
        ["arg0.size[0] % 32 = 0", "arg1.size[0] % 16 = 0"],
    ),
    "equal sizes need one question": (
        kernel(f"{_DEPTH}\n{_OTHER}\n%result = arith.subi %depth, %other : index"),
        ["arg0.size[1] = arg1.size[0]", "arg0.size[0] = 3"],
        ["arg0.size[1] = arg1.size[0]"],
    ),
    "a size known through an equal one": (
        kernel(f"{_OTHER}\n%result = arith.addi %other, %one : index"),
        ["arg0.size[1] = arg1.size[0]", "arg0.size[1] = 32"],
        ["arg0.size[1] = arg1.size[0]", "arg0.size[1] = 32"],
    ),
    "a loop that never runs": (
        kernel(
            f"{_ROWS}\n{_STEP}\n%result = scf.for %i = %zero to %rows step %one iter_args(%x = %one) -> (index) {{\n"
            "%y = arith.addi %x, %step : index\nscf.yield %y : index\n}"
        ),
        ["arg0.size[0] = 0", "arg0.stride[0] = 5"],
        ["arg0.size[0] = 0"],
    ),
    "a loop that runs": (
        kernel(
            f"{_ROWS}\n{_STEP}\n%result = scf.for %i = %zero to %rows step %one iter_args(%x = %one) -> (index) {{\n"
            "%y = arith.addi %x, %step : index\nscf.yield %y : index\n}"
        ),
        ["arg0.size[0] = 4", "arg0.stride[0] = 5"],
        ["arg0.size[0] = 4", "arg0.stride[0] = 5"],
    ),
    "a scalar": (
        kernel("%result = arith.muli %n, %sixteen : index", scalars=", %n: index, %m: index", shapes=", [], []"),
        ["arg2 = 3", "arg3 = 9"],
        ["arg2 = 3"],
    ),
    "reads across a write of another array": (
        f"""
tile.func @k(%a: {_VIEW}, %b: {_VIEW}, %out: {_VIEW}) outputs 1 shapes [[M, K], [M, K], [M, K]] grid [1] {{
  %zero = arith.constant 0 : index
  %x = tile.load %a[%zero, %zero] : {_VIEW} -> tensor<4x4xf32>
  tile.store %x, %out[%zero, %zero] : tensor<4x4xf32>, {_VIEW}
  %y = tile.load %a[%zero, %zero] : {_VIEW} -> tensor<4x4xf32>
  %z = tile.ew<add> %x, %y : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  tile.store %z, %out[%zero, %zero] : tensor<4x4xf32>, {_VIEW}
  tile.return
}}""",
        ["arg0 disjoint arg2", "arg0 disjoint arg1", "arg1 disjoint arg2"],
        ["arg0 disjoint arg2"],
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_guards_are_exactly_what_is_needed(name: str) -> None:
    source, facts, needed = _CASES[name]
    assert assert_exact(source, Facts.parse(*facts)) == Facts.parse(*needed)


@pytest.mark.parametrize("name", _CASES)
def test_no_facts_no_guards_no_change(name: str) -> None:
    source = _CASES[name][0]
    module = text.read(source)
    Canonicalize().apply(text.new_context(), module)
    before = text.write(module)
    ApplyFacts().apply(CompileContext.with_facts(), module)
    assert text.write(module) == before


def test_a_value_in_the_signature_needs_no_guard() -> None:
    source = kernel(f"{_ROWS}\n%result = arith.addi %rows, %one : index").replace("[[M, K]", "[[64, K]")
    written, guards = specialise(source, Facts.parse("arg0.size[0] = 64"))
    assert "tile.dim" not in written
    assert guards == Facts()


def test_sizes_of_one_name_need_no_equality_fact() -> None:
    source = kernel(f"{_OTHER}\n%result = arith.addi %other, %one : index").replace("[P, N]", "[K, N]")
    guards = assert_exact(source, Facts.parse("arg0.size[1] = 32"))
    assert guards == Facts.parse("arg0.size[1] = 32")


_GRAPH = """
graph.func @f(%x: !graph.tensor<[B, S], f32>, %y: !graph.tensor<["2*S", B], f32>) -> (!graph.tensor<[B, B], f32>) {
  %t = graph.transpose %y, [1, 0] : !graph.tensor<["2*S", B], f32> -> !graph.tensor<[B, "2*S"], f32>
  %z = graph.concatenate %x, %x axis 1
      : !graph.tensor<[B, S], f32>, !graph.tensor<[B, S], f32> -> !graph.tensor<[B, "2*S"], f32>
  %u = graph.transpose %z, [1, 0] : !graph.tensor<[B, "2*S"], f32> -> !graph.tensor<["2*S", B], f32>
  %r = graph.matmul %t, %u
      : !graph.tensor<[B, "2*S"], f32>, !graph.tensor<["2*S", B], f32> -> !graph.tensor<[B, B], f32>
  graph.return %r : !graph.tensor<[B, B], f32>
}"""


def test_graph_symbols_take_one_fact_each() -> None:
    facts = Facts.parse("arg0.size[0] = 2", "arg0.size[1] = 3", "arg1.size[0] = 6", "arg1.size[1] = 2")
    assert assert_exact(_GRAPH, facts) == Facts.parse("arg0.size[0] = 2", "arg0.size[1] = 3")
    assert assert_exact(_GRAPH, Facts.parse("arg1.size[0] = 6")) == Facts.parse("arg1.size[0] = 6")
    written, _ = specialise(_GRAPH, facts)
    assert '"2*S"' not in written
    x, y = np.ones((2, 3), np.float32), np.full((6, 2), 0.5, np.float32)
    (expected,) = run_function(text.read(_GRAPH), "f", [x, y])
    (found,) = run_function(text.read(written), "f", [x, y])
    assert np.array_equal(expected, found)


@pytest.mark.parametrize(
    ("source", "facts", "message"),
    [
        (_GRAPH, ["arg0.size[1] = 3", "arg1.size[0] = 7"], "contradicts the others"),
        (_GRAPH, ["arg1.size[0] = 7"], "contradicts the others"),
        (_GRAPH, ["arg0.dtype = f64"], "contradicts the signature"),
        (_GRAPH, ["arg0.rank = 3"], "contradicts the signature"),
        (_CASES["a size that is used"][0].replace("[M, K]", "[M, 8]"), ["arg0.size[1] = 9"], "the signature"),
        (_GRAPH + _GRAPH.replace("@f", "@g"), ["arg0.rank = 2"], "found 2 that they could be about"),
    ],
)
def test_facts_that_cannot_be_are_refused_and_change_nothing(source: str, facts: Sequence[str], message: str) -> None:
    module = text.read(source)
    before = text.write(module)
    with pytest.raises(GuardError, match=message):
        ApplyFacts().apply(CompileContext.with_facts(Facts.parse(*facts)), module)
    assert text.write(module) == before


# Random programs: integer expressions over sizes, strides and scalars, with branches.

_BINARY = ("addi", "subi", "muli", "minsi", "maxsi")
_BY_CONSTANT = ("divsi", "remsi", "floordivsi", "ceildivsi")


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = [
        _ROWS,
        _DEPTH,
        _STEP,
        _OTHER,
        f"%across = tile.stride %a, 1 : {_VIEW}",
        "%three = arith.constant 3 : index",
    ]
    values = ["%zero", "%one", "%sixteen", "%three", "%rows", "%depth", "%step", "%other", "%across", "%n"]
    flags = ["%flag"]
    for number in range(draw(st.integers(1, 8))):
        name = f"%v{number}"
        one, two = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        match draw(st.integers(0, 5)):
            case 0 | 1:
                lines.append(f"{name} = arith.{draw(st.sampled_from(_BINARY))} {one}, {two} : index")
            case 2:
                divisor = draw(st.sampled_from(["%one", "%sixteen", "%three"]))
                lines.append(f"{name} = arith.{draw(st.sampled_from(_BY_CONSTANT))} {one}, {divisor} : index")
            case 3:
                predicate = draw(st.sampled_from(["eq", "ne", "slt", "sle", "sgt", "sge"]))
                lines.append(f"%c{number} = arith.cmpi {predicate}, {one}, {two} : index")
                flags.append(f"%c{number}")
                lines.append(f"{name} = arith.select %c{number}, {two}, {one} : index")
            case 4:
                lines.append(f"{name} = arith.select {draw(st.sampled_from(flags))}, {one}, {two} : index")
            case _:
                inner = draw(st.sampled_from(_BINARY))
                lines.append(
                    f"{name} = scf.if {draw(st.sampled_from(flags))} -> (index) {{\n"
                    f"%t{number} = arith.{inner} {one}, {two} : index\nscf.yield %t{number} : index\n}} else {{\n"
                    f"scf.yield {two} : index\n}}"
                )
        values.append(name)
    lines.append(f"%result = arith.addi {values[-1]}, {draw(st.sampled_from(values))} : index")
    return kernel("\n".join(lines), scalars=", %n: index, %flag: i1", shapes=", [], []")


@st.composite
def argument_lists(draw: st.DrawFn) -> dict[str, Any]:
    a = ts.zeros((draw(st.integers(0, 4)) * 4, draw(st.integers(1, 6))))
    b = ts.zeros((draw(st.sampled_from([a.shape[1], 5])), 3))
    return {"arg0": a, "arg1": b, "arg2": draw(st.integers(-2, 3)), "arg3": draw(st.booleans())}


def _check_random_program(source: str, arguments: dict[str, Any], chosen: st.DataObject) -> None:
    everything = list(observe(arguments))
    facts = Facts(chosen.draw(st.lists(st.sampled_from(everything), unique=True)))
    assert_exact(source, facts)
    written, _ = specialise(source, facts)
    results: list[int] = []
    for program in (source, written):
        out = np.zeros(1, np.int64)
        values = [arguments["arg0"].numpy(), arguments["arg1"].numpy(), arguments["arg2"], arguments["arg3"], out]
        run_kernel(text.read(program), "k", values)
        results.append(int(out[0]))
    assert results[0] == results[1]


@settings(max_examples=60, deadline=None)
@given(programs(), argument_lists(), st.data())
def test_random_programs_keep_their_meaning_and_exact_guards(
    source: str, arguments: dict[str, Any], chosen: st.DataObject
) -> None:
    _check_random_program(source, arguments, chosen)


@pytest.mark.acceptance
@settings(max_examples=1000, deadline=None)
@given(programs(), argument_lists(), st.data())
def test_many_random_programs_keep_their_meaning_and_exact_guards(
    source: str, arguments: dict[str, Any], chosen: st.DataObject
) -> None:
    _check_random_program(source, arguments, chosen)
