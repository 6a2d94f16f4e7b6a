"""Checks products that are a turn apart: they change no bit, and loops in which sums come first are left alone."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten_programs import check_same, count, rewritten
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation

from tessera import Schedule, stdlib
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.lower.preparing import prepare
from tessera.transforms.loops.live_iterations import clip_ranges, split_ranges
from tessera.transforms.pipelining.software_pipeline_dots import SoftwarePipelineDots, pipeline_dots

sys.path.append(str(Path(__file__).parents[1] / "kernels"))
lib: Any = import_module("library")

VIEW, TILE = "!tile.view<2, f32, global>", "tensor<4x4xf32>"
PROGRAM = f"""
tile.func @k(%q: {VIEW}, %k: {VIEW}, %v: {VIEW}, %from: index, %to: index, %by: index, %y: {VIEW}, %z: {VIEW})
    outputs 0 shapes [[4, 4], [N, 4], [M, 4], [], [], [], [4, 4], [L, 4]] grid [1] {{{{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %twenty = arith.constant 20 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : {TILE}
  %a = tile.load %q[%zero, %zero] : {VIEW} -> {TILE}
  %sum, %most = scf.for %i = {{start}} to {{stop}} step {{step}} iter_args(%acc = %clear, %top = %a)
      -> ({TILE}, {TILE}) {{{{
{{body}}
  }}}} {{{{tile.unordered, other}}}}
  tile.store %sum, %y[%zero, %zero] : {TILE}, {VIEW}
  tile.store %most, %z[%zero, %zero] : {TILE}, {VIEW}
  tile.return
}}}}
"""


def program(body: str, start: str = "%from", stop: str = "%to", step: str = "%by") -> str:
    return PROGRAM.format(body=body, start=start, stop=stop, step=step)


def dot(result: str, a: str, b: str, c: str) -> str:
    return f"%{result} = tile.dot %{a}, %{b}, %{c} : {TILE}, {TILE}, {TILE} -> {TILE}\n"


def ew(name: str, result: str, *operands: str) -> str:
    taken = ", ".join(f"%{operand}" for operand in operands)
    return f"%{result} = tile.ew<{name}> {taken} : {', '.join([TILE] * len(operands))} -> {TILE}\n"


def load(result: str, view: str, at: str = "i") -> str:
    return f"%{result} = tile.load %{view}[%{at}, %zero] : {VIEW} -> {TILE}\n"


def trans(result: str, a: str) -> str:
    return f"%{result} = tile.trans %{a}, [1, 0] : {TILE} -> {TILE}\n"


def store(value: str, view: str) -> str:
    return f"tile.store %{value}, %{view}[%i, %zero] : {TILE}, {VIEW}\n"


def end(*values: str) -> str:
    return f"scf.yield %{values[0]}, %{values[1]} : {TILE}, {TILE}\n"


SCORES = load("keys", "k") + dot("s", "a", "keys", "clear") + ew("sin", "p", "s")
VALUES = load("values", "v")
PLAIN = SCORES + VALUES + dot("sums", "p", "values", "acc")
BRANCH = f"""%early = arith.cmpi slt, %i, %four : index
%p = scf.if %early -> ({TILE}) {{{{
  {ew("add", "r", "s", "s")}
  scf.yield %r : {TILE}
}}}} else {{{{
  scf.yield %s : {TILE}
}}}}
""".replace("{{", "{").replace("}}", "}")
# What is carried from turn to turn afterwards: what the first stage keeps for itself, and what it hands on.
SKEWED = {
    "plain": (PLAIN + end("sums", "top"), 3),
    "a prefix": (
        SCORES
        + ew("max", "more", "top", "s")
        + ew("sub", "less", "top", "more")
        + ew("exp2", "factor", "less")
        + ew("mul", "scaled", "acc", "factor")
        + VALUES
        + dot("sums", "p", "values", "scaled")
        + end("sums", "more"),
        3,
    ),
    "a suffix": (PLAIN + ew("neg", "turned", "sums") + end("turned", "top"), 3),
    "a suffix that looks back": (
        PLAIN + ew("add", "both", "sums", "p") + ew("mul", "back", "both", "acc") + end("back", "top"),
        3,
    ),
    "a suffix that needs more": (
        PLAIN + ew("add", "both", "sums", "top") + ew("max", "more", "top", "s") + end("both", "more"),
        4,
    ),
    "what looks at sums is carried, too": (PLAIN + ew("max", "more", "top", "sums") + end("sums", "more"), 3),
    "sums of the turn before": (PLAIN + end("sums", "acc"), 2),
    "two and two": (
        SCORES
        + VALUES
        + dot("t", "a", "values", "keys")
        + ew("mul", "u", "s", "t")
        + dot("sums", "p", "values", "acc")
        + dot("others", "u", "keys", "top")
        + end("sums", "others"),
        4,
    ),
    "sums of two": (
        load("keys", "k")
        + dot("r", "a", "keys", "clear")
        + dot("s", "keys", "a", "r")
        + ew("sin", "p", "s")
        + VALUES
        + dot("sums", "p", "values", "acc")
        + dot("more", "values", "p", "sums")
        + end("more", "top"),
        3,
    ),
    "two in a row": (
        SCORES
        + dot("t", "p", "keys", "clear")
        + VALUES
        + dot("sums", "t", "values", "acc")
        + dot("others", "values", "s", "sums")
        + end("others", "top"),
        4,
    ),
    "the other factor": (SCORES + VALUES + dot("sums", "values", "p", "acc") + end("sums", "top"), 3),
    "nothing of the counter": (SCORES + dot("sums", "p", "a", "acc") + end("sums", "top"), 3),
    "sums by themselves": (PLAIN + dot("others", "keys", "values", "top") + end("sums", "others"), 3),
    "a view of the turn": (
        SCORES
        + """%near = arith.remsi %i, %two : index
        %size = arith.addi %near, %one : index
        """
        + f"%part = tile.view %v offset %near sizes[%size, %four] strides[%four, %one] : {VIEW} -> {VIEW}\n"
        + load("values", "part", "zero")
        + trans("across", "values")
        + dot("sums", "p", "across", "acc")
        + end("sums", "top"),
        3,
    ),
    "a branch": (
        SCORES.replace("%p", "%w") + BRANCH + VALUES + dot("sums", "p", "values", "acc") + end("sums", "top"),
        3,
    ),
    "what the first stage writes": (
        SCORES + store("s", "z") + store("p", "z") + VALUES + dot("sums", "p", "values", "acc") + end("sums", "top"),
        3,
    ),
    "what the first stage writes and reads": (
        # What it has read is carried: it cannot be read again.
        SCORES
        + store("s", "z")
        + load("back", "z", "one")
        + VALUES
        + dot("sums", "p", "values", "acc")
        + ew("add", "both", "sums", "back")
        + end("both", "top"),
        4,
    ),
}
ALONE = {
    "one product": load("l", "k") + VALUES + dot("sums", "l", "values", "acc") + end("sums", "top"),
    "two sums": PLAIN.replace("%clear", "%top") + end("sums", "s"),
    "sums that change places": PLAIN + dot("others", "p", "keys", "top") + end("others", "sums"),
    "no sums": PLAIN.replace("%acc", "%clear") + end("sums", "top"),
    "sums that nobody carries on": PLAIN + end("s", "top"),
    "products that do not meet": SCORES + VALUES + dot("sums", "keys", "values", "acc") + end("sums", "p"),
    "first products of sums": (
        ew("sin", "w", "acc")
        + dot("s", "w", "a", "clear")
        + ew("sin", "p", "s")
        + dot("sums", "p", "a", "acc")
        + end("sums", "top")
    ),
    "first products of what follows from sums": (
        dot("s", "top", "a", "clear") + ew("sin", "p", "s") + dot("sums", "p", "a", "acc") + end("sums", "sums")
    ),
    "operands of sums": (
        SCORES + ew("mul", "w", "p", "acc") + VALUES + dot("sums", "w", "values", "acc") + end("sums", "top")
    ),
    "sums as operands": SCORES + ew("add", "c", "acc", "p") + dot("sums", "p", "acc", "c") + end("sums", "top"),
    "starts that are carried": (
        SCORES.replace("%clear", "%top") + VALUES + dot("sums", "p", "values", "acc") + end("sums", "p")
    ),
    "sums that are written": PLAIN + store("sums", "z") + end("sums", "top"),
    "first products of what is written": (
        store("top", "z") + PLAIN.replace("%keys = tile.load %k", "%keys = tile.load %z") + end("sums", "p")
    ),
    "only products of other sums": (
        load("keys", "k")
        + dot("others", "a", "keys", "top")
        + dot("s", "others", "keys", "clear")
        + dot("sums", "s", "a", "acc")
        + end("sums", "others")
    ),
}
BOUNDS = ((0, 0, 4), (0, 1, 4), (0, 4, 4), (0, 5, 4), (0, 20, 4), (3, 18, 2), (-5, 9, 3), (9, 3, 1))


def arguments(start: int, stop: int, step: int) -> list[object]:
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((rows, 4)).astype(np.float32) for rows in (4, 21, 18, 4, 30)]
    return [*inputs[:3], start, stop, step, *inputs[3:]]


def loops_of(function: tile.FuncOp) -> list[scf.ForOp]:
    return [op for op in function.body.walk() if isinstance(op, scf.ForOp)]


@pytest.mark.parametrize("name", SKEWED)
def test_no_bit_changes(name: str) -> None:
    body, carried = SKEWED[name]
    for bounds in BOUNDS:
        if "view" in name and bounds[0] < 0:
            continue
        function = check_same(program(body), pipeline_dots, arguments(*bounds))
        (loop,) = loops_of(function)
        assert isinstance(loop.parent_op(), scf.IfOp)
        assert len(loop.iter_args) == carried


@pytest.mark.parametrize("name", ALONE)
def test_what_stays_as_it_is(name: str) -> None:
    source = program(ALONE[name])
    module, _, said = rewritten(source, pipeline_dots)
    assert said is False
    assert text.write(module) == text.write(text.read(source))


def test_counters_are_indices() -> None:
    """Others would wrap at other numbers than the places that are made of them."""
    names = {"start": "from", "stop": "to", "step": "by"}
    casts = (f"%{name} = arith.index_cast %{given_} : index to i64\n" for name, given_ in names.items())
    at = "%at = arith.index_cast %i : i64 to index\n"
    source = program(at + PLAIN.replace("%i,", "%at,") + end("sums", "top"), "%start", "%stop", "%step")
    wide = source.replace(f"({TILE}, {TILE}) {{", f"({TILE}, {TILE}) : i64 {{")
    wide = wide.replace("%sum,", f"{''.join(casts)}%sum,", 1)
    assert rewritten(wide, pipeline_dots)[2] is False


def kinds(ops: list[Operation]) -> list[str]:
    """The loads, products and stores among ops, in order."""
    return [op.name.removeprefix("tile.") for op in ops if isinstance(op, tile.LoadOp | tile.DotOp | tile.StoreOp)]


def test_products_of_a_turn_come_first_and_then_those_of_the_turn_before() -> None:
    _, function, _ = rewritten(program(SKEWED["two and two"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    branch = loop.parent_op()
    assert isinstance(branch, scf.IfOp)
    outside = list(branch.true_region.block.ops)
    at = outside.index(loop)
    pair = ["load", "load", "dot", "dot"]
    assert kinds(outside[:at]) == kinds(outside[at:]) == pair
    ops = list(loop.body.block.ops)
    assert kinds(ops) == [*pair, *pair]
    # Copies of the turn before are of the turn before.
    loads = [op for op in ops if isinstance(op, tile.LoadOp)]
    assert [load.offsets[0] is loop.body.block.args[0] for load in loads] == [True, True, False, False]
    for load_ in loads[2:]:
        back = load_.offsets[0].owner
        assert isinstance(back, arith.SubiOp)
        assert tuple(back.operands) == (loop.body.block.args[0], loop.step)
    # What makes operands of the first products comes behind the second ones.
    last = max(at for at, op in enumerate(ops) if isinstance(op, tile.DotOp))
    assert [op.fn.data for op in ops[last:] if isinstance(op, tile.EwOp)] == ["sin", "mul"]
    assert not any(isinstance(op, tile.EwOp) for op in ops[:last])


def test_products_that_add_to_each_other_stay_together() -> None:
    _, function, _ = rewritten(program(SKEWED["sums of two"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    assert kinds(list(loop.body.block.ops)) == ["load", "dot", "dot", "load", "dot", "dot"]
    _, function, _ = rewritten(program(SKEWED["two in a row"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    # The second of three needs the end of the first: it waits until the last ones of the turn before are begun.
    assert kinds(list(loop.body.block.ops)) == ["load", "dot", "load", "dot", "dot", "dot"]


def test_a_prefix_moves_to_the_end_of_the_turn_before() -> None:
    _, function, _ = rewritten(program(SKEWED["a prefix"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    last = loop.body.block.last_op
    assert last is not None
    scaled = last.operands[2].owner
    assert isinstance(scaled, tile.EwOp)
    assert scaled.fn.data == "mul"
    assert scaled.next_op is last
    assert isinstance(scaled.operands_[0].owner, tile.DotOp)


def test_constants_may_show_that_there_is_a_first_turn() -> None:
    body = SKEWED["plain"][0]
    function = check_same(program(body, "%zero", "%twenty"), pipeline_dots, arguments(0, 0, 3))
    assert count(function, scf.IfOp) == 0
    assert len(loops_of(function)) == 1
    empty = program(body, "%twenty", "%zero")
    assert rewritten(empty, pipeline_dots)[2] is False
    assert count(rewritten(program(body, "%zero", "%to"), pipeline_dots)[1], scf.IfOp) == 1


def test_turns_have_an_order_afterwards() -> None:
    _, function, _ = rewritten(program(SKEWED["plain"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    assert list(loop.attributes) == ["other"]


def test_once_is_enough() -> None:
    for body, _ in SKEWED.values():
        module, function, said = rewritten(program(body), pipeline_dots)
        assert said is True
        before = text.write(module)
        assert pipeline_dots(function) is False
        assert text.write(module) == before


def test_ops_keep_their_places_in_the_source() -> None:
    for body, _ in SKEWED.values():
        module = text.read(program(body))
        known = {str(op.location) for op in module.walk()}
        SoftwarePipelineDots().apply(text.new_context(), module)
        for op in module.walk():
            assert op.location != UnknownLoc()
            assert str(op.location) in known


def test_loops_within_loops() -> None:
    """Both are skewed: the first stage of the outer loop has the inner one in it."""
    inner = PLAIN + end("sums", "top")
    for name in ("i", "acc", "top", "keys", "s", "p", "values", "sums"):
        inner = inner.replace(f"%{name} ", f"%{name}_ ").replace(f"%{name},", f"%{name}_,").replace(f"%{name}[", "%q[")
    inner = inner.replace("%i_,", "%i,")
    body = (
        load("keys", "k")
        + dot("s", "a", "keys", "clear")
        + f"%p, %w = scf.for %i_ = %zero to %by step %one iter_args(%acc_ = %s, %top_ = %s) -> ({TILE}, {TILE}) {{\n"
        + inner
        + "}\n"
        + VALUES
        + dot("sums", "p", "values", "acc")
        + end("sums", "top")
    )
    for bounds in BOUNDS:
        function = check_same(program(body), pipeline_dots, arguments(*bounds))
        # The outer loop, and the inner one in its first turn and in the others.
        assert len(loops_of(function)) == 3
        assert count(function, scf.IfOp) == 3


def test_the_pass() -> None:
    source = program(SKEWED["plain"][0])
    module = text.read(source)
    SoftwarePipelineDots().apply(text.new_context(), module)
    assert text.write(module) == text.write(rewritten(source, pipeline_dots)[0])
    assert text.write(text.read(text.write(module))) == text.write(module)


# Random loops


@dataclass
class Lines:
    """Writes lines of a loop; `values` are what they may take."""

    chance: random.Random
    lines: list[str] = field(default_factory=list[str])
    values: list[str] = field(default_factory=lambda: ["a", "clear", "acc", "top"])

    def add(self, write: Callable[..., str], *operands: str) -> str:
        result = f"x{len(self.lines)}"
        self.lines.append(write(result, *operands))
        self.values.append(result)
        return result

    def ew(self, name: str, *operands: str) -> str:
        return self.add(partial(ew, name), *operands)

    def some(self) -> str:
        """What is new is more likely than what is old."""
        return self.chance.choice(self.values[-5:] if self.chance.random() < 0.7 else self.values)

    def anything(self) -> None:
        for _ in range(self.chance.randrange(3)):
            kind = self.chance.random()
            if kind < 0.2:
                self.add(load, self.chance.choice("qkvz"))
            elif kind < 0.3:
                self.add(trans, self.some())
            elif kind < 0.45:
                self.add(dot, self.some(), self.some(), self.some())
            elif kind < 0.55:
                self.lines.append(store(self.some(), "z"))
            elif kind < 0.7:
                self.ew("sin", self.some())
            else:
                self.ew(self.chance.choice(("add", "mul", "max")), self.some(), self.some())


def random_body(seed: int) -> str:
    """A loop with two stages, and whatever else."""
    chance = random.Random(seed)
    work = Lines(chance)
    work.anything()
    scores = work.add(dot, "a", work.add(load, "k"), work.some() if chance.random() < 0.2 else "clear")
    work.anything()
    weights = work.ew("sin", scores)
    if chance.random() < 0.3:
        weights = work.ew("max", weights, work.some())
    work.anything()
    sums = work.ew("add", "acc", work.some()) if chance.random() < 0.5 else "acc"
    sums = work.add(dot, weights, work.add(load, "v"), sums)
    if chance.random() < 0.3:
        work.anything()
        sums = work.ew("max", sums, work.some())
    return "".join(work.lines) + end(sums, work.some() if chance.random() < 0.5 else weights)


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.sampled_from(BOUNDS))
def test_no_bit_of_random_loops_changes(seed: int, bounds: tuple[int, int, int]) -> None:
    check_same(program(random_body(seed)), pipeline_dots, arguments(*bounds))


@pytest.mark.acceptance
@settings(max_examples=3000)
@given(st.integers(0, 10**9), st.sampled_from(BOUNDS))
def test_no_bit_of_thousands_of_loops_changes(seed: int, bounds: tuple[int, int, int]) -> None:
    check_same(program(random_body(seed)), pipeline_dots, arguments(*bounds))


def test_many_random_loops_are_skewed_and_many_are_not() -> None:
    """The properties above are not empty."""
    said = [rewritten(program(random_body(seed)), pipeline_dots)[2] for seed in range(60)]
    assert 20 < sum(map(bool, said)) < 55


# Programs as people write them

Made = tuple[ModuleOp, list[Any]]
ROWS, BLOCK, DEPTH = 16, 8, 8


def traced(kernel: Any, given_: list[Any], **static: Any) -> Made:
    """A kernel as a tile program @k, and its arguments."""
    module = kernel.with_schedule(Schedule(block=(ROWS, BLOCK, DEPTH))).lower(*given_, **static).module.clone()
    function = next(op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    function.properties["sym_name"] = StringAttr("k")
    outputs = function.outputs.value.data
    return module, [*given_, *(np.zeros_like(given_[0]) for _ in range(outputs))]


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


def attention(kernel: Any, *others: Any, **static: Any) -> Callable[[int], Made]:
    def make(keys: int) -> Made:
        q, k, v = numbers(2, 21, DEPTH), numbers(2, keys, DEPTH), numbers(2, keys, DEPTH)
        return traced(kernel, [q, k, v, *others], **static)

    return make


KERNELS: dict[str, Callable[[int], Made]] = {
    "full": attention(stdlib.attention),
    "causal": attention(stdlib.attention, mask=stdlib.causal),
    "score": attention(stdlib.attention, score=stdlib.own_score, mask=stdlib.causal),
    "window": attention(stdlib.window_attention, 11),
    "prefix": attention(stdlib.prefix_attention, 5),
    "sigmoid": attention(lib.sigmoid_attention, 0.5),
    "alibi": attention(lib.alibi_attention, numbers(2)),
    "mlp": lambda hidden: traced(lib.mlp, [numbers(21, DEPTH), numbers(DEPTH, hidden), numbers(hidden, DEPTH)]),
}
LENGTHS = (0, 1, BLOCK, BLOCK + 1, 37)


def prepared(function: tile.FuncOp) -> None:
    prepare(function, contract=True)
    clip_ranges(function)


@pytest.mark.quick
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_give_the_same_bits(name: str, length: int) -> None:
    module, given_ = KERNELS[name](length)
    function = check_same(module, pipeline_dots, given_)
    (loop,) = loops_of(function)
    assert kinds(list(loop.body.block.ops)) == ["load", "dot", "load", "dot"]


@pytest.mark.quick
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", KERNELS)
def test_prepared_kernels_give_the_same_bits(name: str, length: int) -> None:
    """Before and after splitting, too."""
    module, given_ = KERNELS[name](length)
    module, _, _ = rewritten(module, prepared)
    check_same(module, pipeline_dots, given_)
    check_same(module, lambda function: pipeline_dots(function) and split_ranges(function), given_)


def masks_of(loop: scf.ForOp) -> int:
    """How many tiles of scores are masked."""
    selects = (op for op in loop.body.block.ops if isinstance(op, tile.EwOp) and op.fn.data == "select")
    return sum(op.result.type == op.operands_[1].type and "16x8" in str(op.result.type) for op in selects)


@pytest.mark.parametrize(("name", "masked"), [("full", [0, 1]), ("causal", [0, 2]), ("window", [2, 0, 2])])
def test_turns_without_masks_are_split_off_afterwards(name: str, masked: list[int]) -> None:
    """The counter is that of the first stage: what masks say of it holds as before."""
    module, _, _ = rewritten(KERNELS[name](37)[0], prepared)
    _, function, _ = rewritten(module, lambda function: pipeline_dots(function) and split_ranges(function))
    loops = loops_of(function)
    assert [masks_of(loop) for loop in loops] == masked
    assert all(kinds(list(loop.body.block.ops)) == ["load", "dot", "load", "dot"] for loop in loops)


def test_a_gemm_is_left_alone() -> None:
    a, b, c = numbers(21, 30), numbers(30, 19), numbers(21, 19)
    for kernel, given_ in ((stdlib.gemm, [a, b, c]), (lib.gemm, [a, b, numbers(19), c])):
        module, _ = traced(kernel[2, 3], given_)
        assert rewritten(module, pipeline_dots)[2] is False
