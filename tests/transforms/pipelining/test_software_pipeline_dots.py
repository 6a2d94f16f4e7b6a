"""Checks pipelined dots: they change no bit, and loops in which accumulators come first are left alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
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
from tessera.targets.cuda.lower.legalize import legalize
from tessera.transforms.loops.live_iterations import clip_ranges, split_ranges
from tessera.transforms.pipelining.software_pipeline_dots import SoftwarePipelineDots, pipeline_dots

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


def kernel(body: str, start: str = "%from", stop: str = "%to", step: str = "%by") -> str:
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
PLAIN = SCORES + VALUES + dot("total", "p", "values", "acc")
BRANCH = f"""%early = arith.cmpi slt, %i, %four : index
%p = scf.if %early -> ({TILE}) {{{{
  {ew("add", "r", "s", "s")}
  scf.yield %r : {TILE}
}}}} else {{{{
  scf.yield %s : {TILE}
}}}}
""".replace("{{", "{").replace("}}", "}")
# What is carried from iteration to iteration afterwards: what the first stage keeps for itself, and what it hands on.
PIPELINED = {
    "plain": (PLAIN + end("total", "top"), 3),
    "a prefix": (
        SCORES
        + ew("max", "more", "top", "s")
        + ew("sub", "less", "top", "more")
        + ew("exp2", "factor", "less")
        + ew("mul", "scaled", "acc", "factor")
        + VALUES
        + dot("total", "p", "values", "scaled")
        + end("total", "more"),
        3,
    ),
    "a suffix": (PLAIN + ew("neg", "negated", "total") + end("negated", "top"), 3),
    "a suffix that looks back": (
        PLAIN + ew("add", "both", "total", "p") + ew("mul", "back", "both", "acc") + end("back", "top"),
        3,
    ),
    "a suffix that needs more": (
        PLAIN + ew("add", "both", "total", "top") + ew("max", "more", "top", "s") + end("both", "more"),
        4,
    ),
    "what looks at accumulators is carried, too": (PLAIN + ew("max", "more", "top", "total") + end("total", "more"), 3),
    "accumulators of the iteration before": (PLAIN + end("total", "acc"), 2),
    "two and two": (
        SCORES
        + VALUES
        + dot("t", "a", "values", "keys")
        + ew("mul", "u", "s", "t")
        + dot("total", "p", "values", "acc")
        + dot("others", "u", "keys", "top")
        + end("total", "others"),
        4,
    ),
    "accumulators of two": (
        load("keys", "k")
        + dot("r", "a", "keys", "clear")
        + dot("s", "keys", "a", "r")
        + ew("sin", "p", "s")
        + VALUES
        + dot("total", "p", "values", "acc")
        + dot("more", "values", "p", "total")
        + end("more", "top"),
        3,
    ),
    "two in a row": (
        SCORES
        + dot("t", "p", "keys", "clear")
        + VALUES
        + dot("total", "t", "values", "acc")
        + dot("others", "values", "s", "total")
        + end("others", "top"),
        4,
    ),
    "the other operand": (SCORES + VALUES + dot("total", "values", "p", "acc") + end("total", "top"), 3),
    "nothing of the counter": (SCORES + dot("total", "p", "a", "acc") + end("total", "top"), 3),
    "accumulators by themselves": (PLAIN + dot("others", "keys", "values", "top") + end("total", "others"), 3),
    "a view of the iteration": (
        SCORES
        + """%near = arith.remsi %i, %two : index
        %size = arith.addi %near, %one : index
        """
        + f"%part = tile.view %v offset %near sizes[%size, %four] strides[%four, %one] : {VIEW} -> {VIEW}\n"
        + load("values", "part", "zero")
        + trans("across", "values")
        + dot("total", "p", "across", "acc")
        + end("total", "top"),
        3,
    ),
    "a branch": (
        SCORES.replace("%p", "%w") + BRANCH + VALUES + dot("total", "p", "values", "acc") + end("total", "top"),
        3,
    ),
    "what the first stage writes": (
        SCORES + store("s", "z") + store("p", "z") + VALUES + dot("total", "p", "values", "acc") + end("total", "top"),
        3,
    ),
    "what the first stage writes and reads": (
        # What it has read is carried: it cannot be read again.
        SCORES
        + store("s", "z")
        + load("back", "z", "one")
        + VALUES
        + dot("total", "p", "values", "acc")
        + ew("add", "both", "total", "back")
        + end("both", "top"),
        4,
    ),
}
ALONE = {
    "one dot": load("l", "k") + VALUES + dot("total", "l", "values", "acc") + end("total", "top"),
    "two accumulators": PLAIN.replace("%clear", "%top") + end("total", "s"),
    "accumulators that are swapped": PLAIN + dot("others", "p", "keys", "top") + end("others", "total"),
    "no accumulators": PLAIN.replace("%acc", "%clear") + end("total", "top"),
    "accumulators that are not carried": PLAIN + end("s", "top"),
    "dots that do not meet": SCORES + VALUES + dot("total", "keys", "values", "acc") + end("total", "p"),
    "first dots of accumulators": (
        ew("sin", "w", "acc")
        + dot("s", "w", "a", "clear")
        + ew("sin", "p", "s")
        + dot("total", "p", "a", "acc")
        + end("total", "top")
    ),
    "first dots of what follows from accumulators": (
        dot("s", "top", "a", "clear") + ew("sin", "p", "s") + dot("total", "p", "a", "acc") + end("total", "total")
    ),
    "operands of accumulators": (
        SCORES + ew("mul", "w", "p", "acc") + VALUES + dot("total", "w", "values", "acc") + end("total", "top")
    ),
    "accumulators as operands": SCORES
    + ew("add", "c", "acc", "p")
    + dot("total", "p", "acc", "c")
    + end("total", "top"),
    "starts that are carried": (
        SCORES.replace("%clear", "%top") + VALUES + dot("total", "p", "values", "acc") + end("total", "p")
    ),
    "accumulators that are written": PLAIN + store("total", "z") + end("total", "top"),
    "first dots of what is written": (
        store("top", "z") + PLAIN.replace("%keys = tile.load %k", "%keys = tile.load %z") + end("total", "p")
    ),
    "only dots of other accumulators": (
        load("keys", "k")
        + dot("others", "a", "keys", "top")
        + dot("s", "others", "keys", "clear")
        + dot("total", "s", "a", "acc")
        + end("total", "others")
    ),
}
BOUNDS = ((0, 0, 4), (0, 1, 4), (0, 4, 4), (0, 5, 4), (0, 20, 4), (3, 18, 2), (-5, 9, 3), (9, 3, 1))


def arguments(start: int, stop: int, step: int) -> list[object]:
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((rows, 4)).astype(np.float32) for rows in (4, 21, 18, 4, 30)]
    return [*inputs[:3], start, stop, step, *inputs[3:]]


def loops_of(function: tile.FuncOp) -> list[scf.ForOp]:
    return [op for op in function.body.walk() if isinstance(op, scf.ForOp)]


@pytest.mark.parametrize("name", PIPELINED)
def test_no_bit_changes(name: str) -> None:
    body, carried = PIPELINED[name]
    for bounds in BOUNDS:
        if "view" in name and bounds[0] < 0:
            continue
        function = check_same(kernel(body), pipeline_dots, arguments(*bounds))
        (loop,) = loops_of(function)
        assert isinstance(loop.parent_op(), scf.IfOp)
        assert len(loop.iter_args) == carried


@pytest.mark.parametrize("name", ALONE)
def test_what_stays_as_it_is(name: str) -> None:
    source = kernel(ALONE[name])
    module, _, said = rewritten(source, pipeline_dots)
    assert said is False
    assert text.write(module) == text.write(text.read(source))


def test_counters_are_indices() -> None:
    """Others would wrap at other numbers than the offsets that are computed from them."""
    names = {"start": "from", "stop": "to", "step": "by"}
    casts = (f"%{name} = arith.index_cast %{given_} : index to i64\n" for name, given_ in names.items())
    at = "%at = arith.index_cast %i : i64 to index\n"
    source = kernel(at + PLAIN.replace("%i,", "%at,") + end("total", "top"), "%start", "%stop", "%step")
    wide = source.replace(f"({TILE}, {TILE}) {{", f"({TILE}, {TILE}) : i64 {{")
    wide = wide.replace("%sum,", f"{''.join(casts)}%sum,", 1)
    assert rewritten(wide, pipeline_dots)[2] is False


def kinds(ops: list[Operation]) -> list[str]:
    """The loads, dots and stores among ops, in order."""
    return [op.name.removeprefix("tile.") for op in ops if isinstance(op, tile.LoadOp | tile.DotOp | tile.StoreOp)]


def test_dots_of_an_iteration_come_first_and_then_those_of_the_iteration_before() -> None:
    _, function, _ = rewritten(kernel(PIPELINED["two and two"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    branch = loop.parent_op()
    assert isinstance(branch, scf.IfOp)
    outside = list(branch.true_region.block.ops)
    at = outside.index(loop)
    pair = ["load", "load", "dot", "dot"]
    assert kinds(outside[:at]) == kinds(outside[at:]) == pair
    ops = list(loop.body.block.ops)
    assert kinds(ops) == [*pair, *pair]
    # Copies of the iteration before have its counter.
    loads = [op for op in ops if isinstance(op, tile.LoadOp)]
    assert [load.offsets[0] is loop.body.block.args[0] for load in loads] == [True, True, False, False]
    for load_ in loads[2:]:
        back = load_.offsets[0].owner
        assert isinstance(back, arith.SubiOp)
        assert tuple(back.operands) == (loop.body.block.args[0], loop.step)
    # What makes operands of the first dots comes behind the second ones.
    last = max(at for at, op in enumerate(ops) if isinstance(op, tile.DotOp))
    assert [op.fn.data for op in ops[last:] if isinstance(op, tile.EwOp)] == ["sin", "mul"]
    assert not any(isinstance(op, tile.EwOp) for op in ops[:last])


def test_dots_that_add_to_each_other_stay_together() -> None:
    _, function, _ = rewritten(kernel(PIPELINED["accumulators of two"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    assert kinds(list(loop.body.block.ops)) == ["load", "dot", "dot", "load", "dot", "dot"]
    _, function, _ = rewritten(kernel(PIPELINED["two in a row"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    # The second of three needs the end of the first: it waits until the last ones of the iteration before are begun.
    assert kinds(list(loop.body.block.ops)) == ["load", "dot", "load", "dot", "dot", "dot"]


def test_a_prefix_moves_to_the_end_of_the_iteration_before() -> None:
    _, function, _ = rewritten(kernel(PIPELINED["a prefix"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    last = loop.body.block.last_op
    assert last is not None
    scaled = last.operands[2].owner
    assert isinstance(scaled, tile.EwOp)
    assert scaled.fn.data == "mul"
    assert scaled.next_op is last
    assert isinstance(scaled.operands_[0].owner, tile.DotOp)


def test_constants_may_show_that_there_is_a_first_iteration() -> None:
    body = PIPELINED["plain"][0]
    function = check_same(kernel(body, "%zero", "%twenty"), pipeline_dots, arguments(0, 0, 3))
    assert count(function, scf.IfOp) == 0
    assert len(loops_of(function)) == 1
    empty = kernel(body, "%twenty", "%zero")
    assert rewritten(empty, pipeline_dots)[2] is False
    assert count(rewritten(kernel(body, "%zero", "%to"), pipeline_dots)[1], scf.IfOp) == 1


def test_iterations_have_an_order_afterwards() -> None:
    _, function, _ = rewritten(kernel(PIPELINED["plain"][0]), pipeline_dots)
    (loop,) = loops_of(function)
    assert list(loop.attributes) == ["other"]


def test_once_is_enough() -> None:
    for body, _ in PIPELINED.values():
        module, function, said = rewritten(kernel(body), pipeline_dots)
        assert said is True
        before = text.write(module)
        assert pipeline_dots(function) is False
        assert text.write(module) == before


def test_ops_keep_their_source_locations() -> None:
    for body, _ in PIPELINED.values():
        module = text.read(kernel(body))
        known = {str(op.location) for op in module.walk()}
        SoftwarePipelineDots().apply(text.new_context(), module)
        for op in module.walk():
            assert op.location != UnknownLoc()
            assert str(op.location) in known


def test_loops_within_loops() -> None:
    """Both are skewed: the first stage of the outer loop has the inner one in it."""
    inner = PLAIN + end("total", "top")
    for name in ("i", "acc", "top", "keys", "s", "p", "values", "total"):
        inner = inner.replace(f"%{name} ", f"%{name}_ ").replace(f"%{name},", f"%{name}_,").replace(f"%{name}[", "%q[")
    inner = inner.replace("%i_,", "%i,")
    body = (
        load("keys", "k")
        + dot("s", "a", "keys", "clear")
        + f"%p, %w = scf.for %i_ = %zero to %by step %one iter_args(%acc_ = %s, %top_ = %s) -> ({TILE}, {TILE}) {{\n"
        + inner
        + "}\n"
        + VALUES
        + dot("total", "p", "values", "acc")
        + end("total", "top")
    )
    for bounds in BOUNDS:
        function = check_same(kernel(body), pipeline_dots, arguments(*bounds))
        # The outer loop, and the inner one in its first iteration and in the others.
        assert len(loops_of(function)) == 3
        assert count(function, scf.IfOp) == 3


def test_the_pass() -> None:
    source = kernel(PIPELINED["plain"][0])
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
    total = work.ew("add", "acc", work.some()) if chance.random() < 0.5 else "acc"
    total = work.add(dot, weights, work.add(load, "v"), total)
    if chance.random() < 0.3:
        work.anything()
        total = work.ew("max", total, work.some())
    return "".join(work.lines) + end(total, work.some() if chance.random() < 0.5 else weights)


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.sampled_from(BOUNDS))
def test_no_bit_of_random_loops_changes(seed: int, bounds: tuple[int, int, int]) -> None:
    check_same(kernel(random_body(seed)), pipeline_dots, arguments(*bounds))


@pytest.mark.acceptance
@settings(max_examples=3000)
@given(st.integers(0, 10**9), st.sampled_from(BOUNDS))
def test_no_bit_of_thousands_of_loops_changes(seed: int, bounds: tuple[int, int, int]) -> None:
    check_same(kernel(random_body(seed)), pipeline_dots, arguments(*bounds))


@pytest.mark.acceptance
def test_many_random_loops_are_skewed_and_many_are_not() -> None:
    """The properties above are not empty."""
    said = [rewritten(kernel(random_body(seed)), pipeline_dots)[2] for seed in range(60)]
    assert 20 < sum(map(bool, said)) < 55


# Kernels as people write them

Made = tuple[ModuleOp, list[Any]]
ROWS, BLOCK, DEPTH = 16, 8, 8


def traced(kernel: Any, given_: list[Any], **static: Any) -> Made:
    """A kernel as a tile function @k, and its arguments."""
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
    legalize(function, contract=True)
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
def test_iterations_without_masks_are_split_off_afterwards(name: str, masked: list[int]) -> None:
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
