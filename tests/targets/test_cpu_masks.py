"""Checks that loops and columns which masks leave out are never missed: random masks in loops, at both levels."""

from __future__ import annotations

import random
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_runs import MACHINES, at_cpu_level, at_tile_level, lowered
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, ModuleOp, f32
from xdsl.ir import Block, Region, SSAValue

from tessera.dialects import tile
from tessera.dialects.tile_types import ViewType
from tessera.shapes.expr import dim
from tessera.targets.cpu import dialect as cpu

sys.path.append(str(Path(__file__).parents[1] / "transforms"))
masks: Any = import_module("random_masks")
ROWS, KEYS, DEPTH = 9, 40, 3
index = IndexType()
view = ViewType(2, f32)


def loop_program(seed: int) -> ModuleOp:
    """Weights of queries and keys, masked; their sums, maxima and products with values, block by block of keys."""
    chance = random.Random(seed)
    width, step = chance.choice((4, 8, 12, 17)), chance.choice((4, 8, 12, 17))
    types = [view, view, view, view, view, view, index, index, index]
    shapes = [["M", "D"], ["N", "D"], ["N", "D"], ["M", "D"], ["M", "O"], ["M", "O"], [], [], []]
    function = tile.FuncOp("k", types, 0, [[dim(size) for size in shape] for shape in shapes], [1])
    entry = function.body.block
    writer = masks.Writer(chance, entry)
    q, k, v, *outputs = entry.args[:6]
    zero = writer.number(0)

    def full(value: float, shape: tuple[int, int]) -> SSAValue:
        return writer.add(tile.FullOp(writer.add(arith.ConstantOp(FloatAttr(value, f32))), shape))

    queries = writer.add(tile.LoadOp(q, [zero, zero], (ROWS, DEPTH)))
    carried = [full(0.0, (ROWS, DEPTH)), full(0.0, (ROWS, 1)), full(-np.inf, (ROWS, 1))]
    body = Block(arg_types=[index, *(value.type for value in carried)])
    counter, acc, total, top = body.args
    writer.block, writer.numbers = body, [counter, *entry.args[6:]]
    keys = writer.add(tile.TransOp(writer.add(tile.LoadOp(k, [counter, zero], (width, DEPTH))), (1, 0)))
    scores = writer.add(tile.DotOp(queries, keys, full(0.0, (ROWS, width))))
    mask = writer.mask((ROWS, width))
    weights = writer.add(tile.EwOp("select", [mask, scores, full(0.0, (ROWS, width))]))
    sums = writer.add(tile.ExpandOp(writer.add(tile.ReduceOp("sum", weights, 1)), 1))
    high = writer.add(tile.EwOp("select", [mask, scores, full(-np.inf, (ROWS, width))]))
    tops = writer.add(tile.ExpandOp(writer.add(tile.ReduceOp("max", high, 1)), 1))
    values = writer.add(tile.LoadOp(v, [counter, zero], (width, DEPTH)))
    following = [
        writer.add(tile.DotOp(weights, values, acc)),
        writer.add(tile.EwOp("add", [total, sums])),
        writer.add(tile.EwOp("max", [top, tops])),
    ]
    if chance.random() < 0.2:  # this changes something in every turn
        following[1] = writer.add(tile.EwOp("add", [following[1], full(1.0, (ROWS, 1))]))
    body.add_op(scf.YieldOp(*following))
    writer.block = entry
    loop = scf.ForOp(zero, writer.number(KEYS), writer.number(step), carried, Region(body))
    entry.add_op(loop)
    for result, output in zip(loop.results, outputs, strict=True):
        entry.add_op(tile.StoreOp(result, output, [zero, zero]))
    entry.add_op(tile.ReturnOp())
    return ModuleOp([function])


def arguments(seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    inputs = [generator.integers(-3, 4, (rows, DEPTH)).astype(np.float32) for rows in (ROWS, KEYS, KEYS)]
    outputs = [np.zeros((ROWS, cols), np.float32) for cols in (DEPTH, 1, 1)]
    return [*inputs, *outputs, *(int(number) for number in generator.integers(-20, 60, 3))]


def check(seed: int, level: str) -> None:
    module = loop_program(seed)
    given_ = arguments(seed)
    expected = at_tile_level(module, "k", given_)
    found = at_cpu_level(lowered(module, level), "k", given_)
    # Small whole numbers: every order of sums gives the same bits.
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@settings(max_examples=12)
@given(st.integers(0, 10**9))
@pytest.mark.parametrize("level", MACHINES)
def test_nothing_live_is_left_out(level: str, seed: int) -> None:
    check(seed, level)


@pytest.mark.acceptance
@settings(max_examples=1000)
@given(st.integers(0, 10**9))
@pytest.mark.parametrize("level", MACHINES)
def test_nothing_live_is_left_out_of_thousands(level: str, seed: int) -> None:
    check(seed, level)


def test_much_is_left_out() -> None:
    """The properties above are not empty: loops end sooner, and products are cut short."""
    made = [lowered(loop_program(seed), "avx2") for seed in range(40)]
    cut = [any(isinstance(op, cpu.DotOp) and op.depth is not None for op in module.walk()) for module in made]
    assert sum(cut) > 4
    sooner = 0
    for module in made:
        loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
        sooner += any(isinstance(loop.ub.owner, arith.MinSIOp) for loop in loops)
    assert sooner > 8
