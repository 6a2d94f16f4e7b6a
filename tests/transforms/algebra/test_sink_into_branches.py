"""Checks what moves into branches: it changes no bit, no tile leaves a branch, and what cannot move stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_programs import KERNELS, check_partitions, prepared
from rewritten_programs import check_same, count, rewritten
from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr, TensorType

from tessera.interpreters.core.machine import Machine
from tessera.ir.pipe.warp_groups import DotWaitOp, WarpSpecializeOp
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.transforms.algebra.sink_into_branches import SinkIntoBranches, sink_into_branches
from tessera.transforms.loops.live_iterations import split_ranges
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.warp_specialize import warp_specialize

VIEW, TILE = "!tile.view<2, f32, global>", "tensor<4x4xf32>"
PROGRAM = f"""
tile.func @k(%x: {VIEW}, %n: index, %y: {VIEW}, %z: {VIEW}) outputs 0
    shapes [[4, 4], [], [16, 4], [16, 4]] grid [1] {{{{
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %a = tile.load %x[%zero, %zero] : {VIEW} -> {TILE}
  %some = arith.cmpi slt, %zero, %n : index
  %s, %at = scf.if %some -> ({TILE}, index) {{{{
    %twice = tile.ew<add> %a, %a : {TILE}, {TILE} -> {TILE}
    scf.yield %twice, %n : {TILE}, index
  }}}} else {{{{
    scf.yield %a, %zero : {TILE}, index
  }}}} {{{{other}}}}
{{body}}
  tile.return
}}}}
"""


def kernel(*lines: str) -> str:
    return PROGRAM.format(body="\n".join(f"  {line}" for line in lines))


def ew(name: str, result: str, *operands: str) -> str:
    taken = ", ".join(f"%{operand}" for operand in operands)
    return f"%{result} = tile.ew<{name}> {taken} : {', '.join([TILE] * len(operands))} -> {TILE}"


def store(value: str, view: str = "y", at: str = "zero") -> str:
    return f"tile.store %{value}, %{view}[%{at}, %zero] : {TILE}, {VIEW}"


def arguments(n: int) -> list[Any]:
    chance = np.random.default_rng(3)
    return [
        chance.standard_normal((4, 4)).astype(np.float32),
        n,
        *(chance.standard_normal((16, 4)).astype(np.float32) for _ in range(2)),
    ]


def yields_tiles(function: tile.FuncOp) -> bool:
    branches = [op for op in function.body.walk() if isinstance(op, scf.IfOp)]
    return any(isinstance(result.type, TensorType) for op in branches for result in op.results)


LOAD = f"%old = tile.load %z[%zero, %zero] : {VIEW} -> {TILE}"
MOVED = {
    "one store": [store("s")],
    "a chain": [ew("neg", "t", "s"), ew("mul", "u", "t", "s"), store("u")],
    "two stores keep their order": [store("s"), ew("neg", "t", "s"), store("t")],
    "what it needs besides goes in front": [
        "%next = arith.addi %n, %four : index",
        ew("neg", "b", "a"),
        ew("add", "t", "s", "b"),
        store("t", at="next"),
    ],
    "a number of the branch": [store("s", at="at")],
    "what has no uses stays": [ew("neg", "b", "a"), store("s"), store("b", "z")],
    "what is read for it is read in the branches": [LOAD, ew("add", "t", "s", "old"), store("t", "z")],
    "what is read behind a store": [store("s", "z"), LOAD, ew("add", "t", "s", "old"), store("t")],
    "made of a number of the branch": ["%next = arith.addi %at, %four : index", store("s", at="next")],
    "numbers that follow": [store("s"), "%more = arith.addi %at, %four : index", store("a", "z", "more")],
}
STAYS = {
    "it would overtake a store": [store("a", "z"), store("s")],
    "it would overtake a load": [LOAD, store("s", "z"), store("old")],
    "others need what is read": [LOAD, ew("add", "t", "s", "old"), store("t", "z"), store("old")],
    "others need a number of the branch": [
        "%next = arith.addi %at, %four : index",
        store("s", at="next"),
        store("a", "z", "next"),
    ],
    "there is nothing": [store("a")],
    "another branch asks for it": ["scf.if %some {", store("s"), "}"],
}


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("n", [0, 8])
def test_what_rests_on_tiles_of_branches_moves_into_them(name: str, n: int) -> None:
    function = check_same(kernel(*MOVED[name]), sink_into_branches, arguments(n))
    assert not yields_tiles(function)
    (branch,) = (op for op in function.body.walk() if isinstance(op, scf.IfOp))
    assert "other" in branch.attributes
    # What was written once is written in both.
    stored = sum("%s" in line or "%t" in line or "%u" in line for line in MOVED[name] if "store" in line)
    assert count(function, tile.StoreOp) == len([line for line in MOVED[name] if "store" in line]) + stored


@pytest.mark.parametrize("name", STAYS)
def test_what_cannot_move_stays(name: str) -> None:
    source = kernel(*STAYS[name])
    module, function, _ = rewritten(source, sink_into_branches)
    assert yields_tiles(function)
    assert text.write(module) == text.write(text.read(source))


def test_tiles_that_a_loop_carries_stay() -> None:
    """They reach the end of the block."""
    source = f"""
tile.func @k(%x: {VIEW}, %n: index, %y: {VIEW}) outputs 0 shapes [[4, 4], [], [4, 4]] grid [1] {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.load %x[%zero, %zero] : {VIEW} -> {TILE}
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %a) -> ({TILE}) {{
    %first = arith.cmpi eq, %i, %zero : index
    %s = scf.if %first -> ({TILE}) {{
      scf.yield %a : {TILE}
    }} else {{
      scf.yield %acc : {TILE}
    }}
    %next = tile.ew<add> %s, %acc : {TILE}, {TILE} -> {TILE}
    scf.yield %next : {TILE}
  }}
  tile.store %sum, %y[%zero, %zero] : {TILE}, {VIEW}
  tile.return
}}
"""
    module, _, _ = rewritten(source, sink_into_branches)
    assert text.write(module) == text.write(text.read(source))


def test_branches_in_branches() -> None:
    inner = f"""%s2 = scf.if %some -> ({TILE}) {{
    scf.yield %s : {TILE}
  }} else {{
    scf.yield %a : {TILE}
  }}"""
    # The outer tile reaches a branch, which stays; the inner one is finished.
    function = check_same(kernel(inner, ew("neg", "t", "s2"), store("t")), sink_into_branches, arguments(8))
    assert count(function, tile.StoreOp) == 2
    nested = kernel(store("s")).replace(
        f"scf.yield %a, %zero : {TILE}, index",
        f"""%r = scf.if %some -> ({TILE}) {{
      scf.yield %a : {TILE}
    }} else {{
      %less = tile.ew<neg> %a : {TILE} -> {TILE}
      scf.yield %less : {TILE}
    }}
    scf.yield %r, %zero : {TILE}, index""",
    )
    for n in (0, 3):
        function = check_same(nested, sink_into_branches, arguments(n))
        assert not yields_tiles(function)
        assert count(function, tile.StoreOp) == 3


# Warp-specialized kernels


def finished(consumers: int, depth: int, *, skew: bool) -> Any:
    def rewrite(function: tile.FuncOp) -> None:
        if skew:
            pipeline_dots(function)
        assert warp_specialize(function, consumers=consumers, depth=depth)
        split_ranges(function)
        insert_waits(function)
        sink_into_branches(function)

    return rewrite


@pytest.mark.quick(4)
@pytest.mark.parametrize(("length", "skew"), [(0, True), (1, False), (41, True)])
@pytest.mark.parametrize("name", KERNELS)
def test_accumulators_are_waited_for_and_stored_in_the_same_branch(name: str, length: int, skew: bool) -> None:
    module, given_ = KERNELS[name](length)
    module, _, _ = rewritten(module, prepared)
    by_chance = Machine(ctas=2, chance=np.random.default_rng(length))
    function = check_partitions(module, finished(3, 2, skew=skew), given_, [Machine(), by_chance])
    (partitions,) = (op for op in function.body.block.ops if isinstance(op, WarpSpecializeOp))
    for store_ in (op for op in partitions.consumer.walk() if isinstance(op, tile.StoreOp)):
        block = store_.parent_block()
        assert block is not None
        behind_dots = any(isinstance(op, DotWaitOp | scf.ForOp) for op in block.ops)
        assert behind_dots or isinstance(block.parent_op(), scf.IfOp)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=10), st.integers(0, 1))
def test_no_bit_of_random_kernels_changes(kinds: list[int], n: int) -> None:
    """Ops that rest on the branch's tile or do not, loads, numbers of the branch, stores; in any order."""
    tiles, numbers, lines = ["s", "a"], ["at", "n", "zero"], list[str]()
    for index, kind in enumerate(kinds):
        if kind == 2:
            lines.append(LOAD.replace("%old", f"%v{index}"))
            tiles.append(f"v{index}")
        elif kind < 2:
            lines.append(ew("add", f"v{index}", tiles[kind], tiles[-1]))
            tiles.append(f"v{index}")
        elif kind == 3:
            lines.append(f"%n{index} = arith.addi %{numbers[index % len(numbers)]}, %four : index")
            numbers.append(f"n{index}")
        else:
            lines.append(store(tiles[index % len(tiles)], "yz"[kind - 4], numbers[index % len(numbers)]))
    check_same(kernel(*lines, store(tiles[-1])), sink_into_branches, arguments(4 * n))


def test_the_pass() -> None:
    module = text.read(kernel(*MOVED["a chain"]))
    SinkIntoBranches().apply(text.new_context(), module)
    text.verify(module)
    again, _, _ = rewritten(kernel(*MOVED["a chain"]), sink_into_branches)
    assert text.write(module) == text.write(again)
    (function,) = (op for op in module.ops if isinstance(op, tile.FuncOp))
    assert function.sym_name == StringAttr("k")
