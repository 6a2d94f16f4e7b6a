"""Checks asynchronous dots: they give the same bits, are waited for late, and release what they read."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import KERNELS, MATMULS, STAGES, check_partitions, prepared
from random_matmuls import arguments as random_arguments
from random_matmuls import random_program
from rewritten_programs import at_length, count, rewritten
from xdsl.dialects import scf
from xdsl.ir import Operation

import golden_kernels
from tessera import Schedule, stdlib
from tessera.interpreters.core.machine import Machine
from tessera.ir.pipe.warp_groups import (
    ConsumerReleaseOp,
    ConsumerWaitOp,
    DotStartOp,
    DotsWaitOp,
    DotWaitOp,
    PendingType,
    WarpSpecializeOp,
)
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.loops.live_iterations import split_ranges
from tessera.transforms.pipelining.insert_wgmma_waits import InsertWgmmaWaits, insert_waits
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize

GEMM = (golden_kernels.FOLDER / "pipe" / "gemm.pipe").read_text(encoding="utf-8")
VIEW, ACC = "!tile.view<2, f32, global>", "tensor<8x4xf32>"
PROGRAM = f"""
tile.func @k(%a: {VIEW}, %b: {VIEW}, %from: index, %to: index, %y: {VIEW}, %z: {VIEW}) outputs 2
    shapes [[M, 20], [20, 4], [], [], [M, 4], [M, 4]] grid ["(M + 7)//8"] {{{{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %instance = tile.program_id 0
  %row = arith.muli %instance, %c8 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : {ACC}
{{body}}
  tile.store %s, %y[%row, %c0] : {ACC}, {VIEW}
  tile.store %t, %z[%row, %c0] : {ACC}, {VIEW}
  tile.return
}}}}
"""
NOTHING_ELSE = f"%t = tile.ew<neg> %s : {ACC} -> {ACC}"


def loads(name: str, at: str) -> str:
    return f"""
    %l{name} = tile.load %a[%row, {at}] : {VIEW} -> tensor<8x4xf32>
    %r{name} = tile.load %b[{at}, %c0] : {VIEW} -> tensor<4x4xf32>
    """


def dot(result: str, name: str, accumulators: str) -> str:
    return f"{result} = tile.dot %l{name}, %r{name}, {accumulators} : {ACC}, tensor<4x4xf32>, {ACC} -> {ACC}\n"


def loop(body: str, start: str = "%from", stop: str = "%to") -> str:
    return f"""
  %s, %t = scf.for %i = {start} to {stop} step %c3 iter_args(%p = %clear, %q = %clear) -> ({ACC}, {ACC}) {{
{body}
  }}
"""


def kernel(body: str) -> str:
    return PROGRAM.format(body=body)


def arguments(start: int, stop: int) -> list[object]:
    chance = np.random.default_rng(stop)
    left, right = (chance.integers(-4, 5, shape).astype(np.float32) for shape in ((21, 20), (20, 4)))
    return [left, right, start, stop, np.zeros((21, 4), np.float32), np.zeros((21, 4), np.float32)]


def with_waits(consumers: int = 2, depth: int = 2, ahead: int = 2, *, skew: bool = False, split: bool = False) -> Any:
    """Everything from a prepared kernel to asynchronous dots."""

    def rewrite(function: tile.FuncOp) -> None:
        if skew:
            pipeline_dots(function)
        assert warp_specialize(function, consumers=consumers, depth=depth, ahead=ahead)
        if split:
            split_ranges(function)
        insert_waits(function)

    return rewrite


def computing(function: tile.FuncOp) -> list[Operation]:
    (partitions,) = (op for op in function.body.block.ops if isinstance(op, WarpSpecializeOp))
    return list(partitions.consumer.walk())


def inner_loops(function: tile.FuncOp) -> list[scf.ForOp]:
    """The loops of the consumers, but the one over program instances."""
    return [op for op in computing(function) if isinstance(op, scf.ForOp)][1:]


def order(ops: Any) -> list[str]:
    """The ops of a block on rings and dots, in words; waits with how many younger dots may run."""
    found: list[str] = []
    for op in ops:
        if isinstance(op, DotWaitOp | DotsWaitOp):
            found.append(f"{op.name.removeprefix('pipe.')} {op.younger.value.data}")
        elif isinstance(op, ConsumerWaitOp | ConsumerReleaseOp | DotStartOp | scf.ForOp | scf.IfOp):
            found.append(op.name.partition(".")[2])
    return found


def is_pending_around(function: tile.FuncOp) -> list[bool]:
    """Of each loop, whether it carries accumulators that are in flight."""
    return [any(isinstance(value.type, PendingType) for value in loop.results) for loop in inner_loops(function)]


# The golden text


def test_a_gemm_becomes_the_golden_text() -> None:
    kernel = stdlib.gemm.with_schedule(Schedule(block=(128, 256, 64)))[32, 16]
    square = np.zeros((4096, 4096), ml_dtypes.bfloat16)
    module = kernel.lower(square, square, square).module.clone()
    (function,) = (op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    prepared(function)
    with_waits(consumers=2, depth=4)(function)
    text.verify(module)
    golden = text.read(GEMM)
    (written,) = golden.body.block.ops
    assert text.structural_hash(function) == text.structural_hash(written), text.write(module)


# Kernels as people write them


@pytest.mark.quick
@pytest.mark.parametrize(("length", "consumers", "depth"), [(0, 2, 2), (1, 3, 1), (41, 2, 2)])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_give_the_same_bits(name: str, length: int, consumers: int, depth: int) -> None:
    module, given_ = KERNELS[name](length)
    module, _, _ = rewritten(module, prepared)
    function = check_partitions(
        module, with_waits(consumers, depth, split=consumers == 2), given_, [Machine(), by_chance(5)]
    )
    assert count(function, tile.DotOp) == 0
    around = name in MATMULS and depth == 2
    assert is_pending_around(function) == [around] * len(inner_loops(function))


def by_chance(seed: int) -> Machine:
    return Machine(ctas=2, chance=np.random.default_rng(seed))


@pytest.mark.acceptance
@pytest.mark.quick(name=["prefix"])
@pytest.mark.parametrize("name", at_length(STAGES, "full", "soft cap", "prefix"))
def test_skewed_kernels_give_the_same_bits(name: str) -> None:
    """The second dot runs while the first is waited for, and both while the first operands are made."""
    for length, depth in ((0, 2), (1, 2), (41, 1), (41, 3)):
        module, given_ = STAGES[name](length)
        module, _, _ = rewritten(module, prepared)
        rewrite = with_waits(3, depth, skew=True, split=True)
        function = check_partitions(module, rewrite, given_, [Machine(), by_chance(length)])
        iteration = [
            "consumer_wait",
            "dot_start",
            "consumer_wait",
            "dot_start",
            "dot_wait 1",
            "consumer_release",
            "dot_wait 0",
            "consumer_release",
        ]
        assert [order(loop.body.block.ops) for loop in inner_loops(function)] == [iteration] * len(
            inner_loops(function)
        )
        assert not any(is_pending_around(function))


def test_a_wait_stands_in_front_of_the_first_use() -> None:
    module, _, _ = rewritten(STAGES["causal"](41)[0], prepared)
    _, function, _ = rewritten(module, with_waits(3, skew=True, split=True))
    for wait in (op for op in computing(function) if isinstance(op, DotWaitOp)):
        following = wait.next_op
        while isinstance(following, ConsumerReleaseOp | DotWaitOp):
            following = following.next_op
        assert following is not None
        assert wait.result in following.operands


# Around a loop

ONE = loop(loads("", "%i") + dot("%d", "", "%p") + f"scf.yield %d, %q : {ACC}, {ACC}")
CHAIN = loop(
    loads("1", "%i")
    + dot("%d", "1", "%p")
    + loads("2", "%c4")
    + dot("%e", "2", "%d")
    + f"scf.yield %e, %q : {ACC}, {ACC}"
)
BOTH = loop(
    loads("1", "%i")
    + dot("%e", "1", "%q")
    + loads("2", "%c4")
    + dot("%d", "2", "%p")
    + f"scf.yield %d, %e : {ACC}, {ACC}"
)
BESIDE = loop(
    loads("", "%i") + dot("%d", "", "%p") + f"%e = tile.ew<neg> %q : {ACC} -> {ACC}\nscf.yield %d, %e : {ACC}, {ACC}"
)
LOOKED_AT = loop(
    loads("", "%i")
    + dot("%d", "", "%p")
    + f"%e = tile.ew<max> %q, %d : {ACC}, {ACC} -> {ACC}\nscf.yield %d, %e : {ACC}, {ACC}"
)
CROSSED = loop(
    loads("1", "%i")
    + dot("%d", "1", "%p")
    + loads("2", "%c4")
    + dot("%e", "2", "%q")
    + f"scf.yield %e, %d : {ACC}, {ACC}"
)
COMPUTED = loop(
    loads("0", "%i").replace("%r0", "%r")
    + f"%l = tile.ew<neg> %l0 : {ACC} -> {ACC}\n"
    + dot("%d", "", "%p")
    + f"scf.yield %d, %q : {ACC}, {ACC}"
)
ANEW = loop(loads("", "%i") + dot("%d", "", "%clear") + f"scf.yield %d, %p : {ACC}, {ACC}")
SCALED = loop(
    loads("", "%i")
    + f"%n = tile.ew<neg> %p : {ACC} -> {ACC}\n"
    + dot("%d", "", "%n")
    + f"scf.yield %d, %q : {ACC}, {ACC}"
)
# What loops do, and whether their accumulators stay in flight: with 2 slots, with 4.
LOOPS = {
    "one dot": (ONE, True, True),
    "one after the other": (CHAIN, False, True),
    "two accumulators": (BOTH, False, True),
    "something else is carried": (BESIDE, True, True),
    "accumulators that are looked at": (LOOKED_AT, False, False),
    "accumulators that are swapped": (CROSSED, False, False),
    "an operand in registers": (COMPUTED, False, False),
    "accumulators that begin anew": (ANEW, False, False),
    "accumulators that are scaled": (SCALED, False, False),
}


@pytest.mark.quick
@pytest.mark.parametrize(("start", "stop"), [(0, 0), (4, 3), (0, 3), (2, 6), (1, 13)])
@pytest.mark.parametrize("name", LOOPS)
def test_accumulators_that_no_other_op_reads_stay_in_flight(name: str, start: int, stop: int) -> None:
    body, *pending = LOOPS[name]
    for depth, around in zip((2, 4), pending, strict=True):
        function = check_partitions(
            kernel(body), with_waits(depth=depth), arguments(start, stop), [Machine(), by_chance(stop)]
        )
        assert is_pending_around(function) == [around]


def test_one_slot_is_enough() -> None:
    for body, *_ in LOOPS.values():
        function = check_partitions(
            kernel(body), with_waits(depth=1, ahead=1), arguments(1, 11), [Machine(), by_chance(1)]
        )
        assert is_pending_around(function) == [False]


def test_an_iteration_releases_what_the_iteration_before_has_read() -> None:
    _, function, _ = rewritten(kernel(BOTH), with_waits(depth=4))
    (inner,) = inner_loops(function)
    starts = ["consumer_wait", "consumer_wait", "dot_start", "consumer_wait", "consumer_wait", "dot_start"]
    assert order(inner.body.block.ops) == [*starts, "dots_wait 2", *["consumer_release"] * 4]
    around = inner.parent_block()
    assert around is not None
    assert order(around.ops) == [*starts, "for", "dot_wait 1", "dot_wait 0", *["consumer_release"] * 4]


def test_loops_that_run_need_no_branch() -> None:
    for stop, branches in (("%c8", 0), ("%c0", 1), ("%to", 1)):
        source = kernel(loop(loads("", "%i") + dot("%d", "", "%p") + f"scf.yield %d, %q : {ACC}, {ACC}", "%c0", stop))
        function = check_partitions(source, with_waits(), arguments(0, 7), [Machine(), by_chance(2)])
        assert count(function, scf.IfOp) == branches
        assert is_pending_around(function) == [True]


# In a row

ROW = {
    "one": (
        loads("", "%c0") + dot("%s", "", "%clear") + NOTHING_ELSE,
        ["consumer_wait", "consumer_wait", "dot_start", "dot_wait 0", "consumer_release", "consumer_release"],
    ),
    "accumulators that are handed on": (
        loads("1", "%c0") + dot("%d", "1", "%clear") + loads("2", "%c4") + dot("%s", "2", "%d") + NOTHING_ELSE,
        [
            *["consumer_wait", "consumer_wait", "dot_start"] * 2,
            "dots_wait 1",
            *["consumer_release"] * 2,
            "dot_wait 0",
            *["consumer_release"] * 2,
        ],
    ),
    "accumulators that another op needs, too": (
        loads("1", "%c0")
        + dot("%d", "1", "%clear")
        + loads("2", "%c4")
        + dot("%s", "2", "%d")
        + f"%t = tile.ew<neg> %d : {ACC} -> {ACC}",
        [
            *["consumer_wait", "consumer_wait"],
            "dot_start",
            "consumer_wait",
            "consumer_wait",
            "dot_wait 0",
            *["consumer_release"] * 2,
            "dot_start",
            "dot_wait 0",
        ]
        + ["consumer_release"] * 2,
    ),
    "the later one first": (
        loads("1", "%c0")
        + dot("%d", "1", "%clear")
        + loads("2", "%c4")
        + dot("%s", "2", "%clear")
        + f"%t = tile.ew<neg> %s : {ACC} -> {ACC}\n"
        + f"%both = tile.ew<add> %d, %t : {ACC}, {ACC} -> {ACC}",
        # Everything has run when the second is there.
        [*["consumer_wait", "consumer_wait", "dot_start"] * 2, "dot_wait 0", *["consumer_release"] * 4],
    ),
    "a loop in between": (
        loads("1", "%c0") + dot("%x", "1", "%clear") + ONE + f"%both = tile.ew<add> %x, %s : {ACC}, {ACC} -> {ACC}",
        ["consumer_wait", "consumer_wait", "dot_start", "dot_wait 0", "consumer_release", "consumer_release", "if"],
    ),
}


@pytest.mark.parametrize("name", ROW)
def test_dots_in_a_row(name: str) -> None:
    body, expected = ROW[name]
    stored = "%both" if "%both" in body else "%s"
    source = kernel(body).replace("tile.store %s", f"tile.store {stored}")
    function = check_partitions(source, with_waits(depth=2, ahead=2), arguments(1, 9))
    walk = next(op for op in computing(function) if isinstance(op, scf.ForOp))
    found = order(walk.body.block.ops)
    if name == "the later one first":
        assert found.pop(-1) == "dot_wait 1"
    assert found == expected


def test_a_slot_is_waited_for_before_it_is_needed() -> None:
    """With one slot, the tile of the first dot has to go before the second one's is waited for."""
    body, _ = ROW["accumulators that are handed on"]
    function = check_partitions(kernel(body), with_waits(ahead=1), arguments(0, 0))
    walk = next(op for op in computing(function) if isinstance(op, scf.ForOp))
    first = ["consumer_wait", "consumer_wait", "dot_start", "dots_wait 0", "consumer_release", "consumer_release"]
    assert order(walk.body.block.ops) == [
        *first,
        "consumer_wait",
        "consumer_wait",
        "dot_start",
        "dot_wait 0",
        "consumer_release",
        "consumer_release",
    ]


@pytest.mark.acceptance
@settings(max_examples=25)
@given(
    st.integers(0, 10**9),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
)
def test_no_bit_of_random_kernels_changes(
    seed: int, n: int, m: int, consumers: int, depth: int, ahead: int, skew: bool
) -> None:
    worlds = [Machine(ctas=2), by_chance(seed)]
    function = check_partitions(
        random_program(seed), with_waits(consumers, depth, ahead, skew=skew), random_arguments(n, m), worlds
    )
    assert count(function, tile.DotOp) == 0


def test_functions_without_partitions_stay_as_they_are() -> None:
    module, _, _ = rewritten(kernel(ONE), insert_waits)
    assert text.write(module) == text.write(text.read(kernel(ONE)))


def test_the_pass() -> None:
    module, _, _ = rewritten(kernel(ONE), lambda function: warp_specialize(function, consumers=2, depth=2))
    InsertWgmmaWaits().apply(text.new_context(), module)
    written = text.write(module)
    assert "pipe.dot_start" in written
    assert text.write(text.read(written)) == written
