"""Checks that loops and columns which masks leave out are never missed: random masks in loops, at both levels."""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_runs import MACHINES, at_cpu_level, at_tile_level, lowered
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, ModuleOp, bf16, f32
from xdsl.ir import Block, Region, SSAValue

import tessera
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import dim
from tessera.targets.cpu.ir import dialect as cpu

masks: Any = import_module("random_masks")
DEPTH = 3
index = IndexType()


@dataclass(frozen=True)
class Size:
    """Of kernels: rows, keys, how many keys an iteration has, and the type that is multiplied."""

    rows: int
    keys: int
    widths: tuple[int, ...]
    element: Any


SMALL = Size(9, 40, (4, 8, 12, 17), f32)
LARGE = Size(20, 400, (64, 128, 192), bf16)
"""Large enough that the matrix unit's blocks are cut, too."""


def loop_program(seed: int, size: Size = SMALL, *, kept: bool = False) -> ModuleOp:
    """Weights of queries and keys, masked; their sums, maxima and products with values, block by block of keys.

    Where weights are `kept`, the loop also carries those of the last block, which are stored behind it.
    """
    chance = random.Random(seed)
    width, step = chance.choice(size.widths), chance.choice(size.widths)
    given_, view = ViewType(2, size.element), ViewType(2, f32)
    types = [given_, given_, given_, view, view, view, *([view] if kept else []), index, index, index]
    shapes = [["M", "D"], ["N", "D"], ["N", "D"], ["M", "D"], ["M", "O"], ["M", "O"], *([["M", "W"]] if kept else [])]
    shapes += [[], [], []]
    function = tile.FuncOp("k", types, 0, [[dim(size) for size in shape] for shape in shapes], [1])
    entry = function.body.block
    writer = masks.Writer(chance, entry)
    q, k, v, *outputs = entry.args[:-3]
    zero = writer.number(0)

    def full(value: float, shape: tuple[int, int]) -> SSAValue:
        return writer.add(tile.FullOp(writer.add(arith.ConstantOp(FloatAttr(value, f32))), shape))

    queries = writer.add(tile.LoadOp(q, [zero, zero], (size.rows, DEPTH)))
    carried = [full(0.0, (size.rows, DEPTH)), full(0.0, (size.rows, 1)), full(-np.inf, (size.rows, 1))]
    carried += [full(0.0, (size.rows, width))] if kept else []
    body = Block(arg_types=[index, *(value.type for value in carried)])
    counter, acc, total, top = body.args[:4]
    writer.block, writer.numbers = body, [counter, *entry.args[-3:]]
    keys = writer.add(tile.TransOp(writer.add(tile.LoadOp(k, [counter, zero], (width, DEPTH))), (1, 0)))
    scores = writer.add(tile.DotOp(queries, keys, full(0.0, (size.rows, width))))
    mask = writer.mask((size.rows, width))
    weights = writer.add(tile.EwOp("select", [mask, scores, full(0.0, (size.rows, width))]))
    sums = writer.add(tile.ExpandOp(writer.add(tile.ReduceOp("sum", weights, 1)), 1))
    high = writer.add(tile.EwOp("select", [mask, scores, full(-np.inf, (size.rows, width))]))
    tops = writer.add(tile.ExpandOp(writer.add(tile.ReduceOp("max", high, 1)), 1))
    narrow = size.element != f32
    factors = writer.add(tile.EwOp("cast", [weights], to=tessera.bf16)) if narrow else weights
    values = writer.add(tile.LoadOp(v, [counter, zero], (width, DEPTH)))
    following = [
        writer.add(tile.DotOp(factors, values, acc)),
        writer.add(tile.EwOp("add", [total, sums])),
        writer.add(tile.EwOp("max", [top, tops])),
    ]
    if chance.random() < 0.2:  # this changes something in every iteration
        following[1] = writer.add(tile.EwOp("add", [following[1], full(1.0, (size.rows, 1))]))
    body.add_op(scf.YieldOp(*following, *([weights] if kept else [])))
    writer.block = entry
    loop = scf.ForOp(zero, writer.number(size.keys), writer.number(step), carried, Region(body))
    entry.add_op(loop)
    for result, output in zip(loop.results, outputs, strict=True):
        entry.add_op(tile.StoreOp(result, output, [zero, zero]))
    entry.add_op(tile.ReturnOp())
    return ModuleOp([function])


def arguments(seed: int, size: Size = SMALL, columns: tuple[int, ...] = (DEPTH, 1, 1)) -> list[Any]:
    generator = np.random.default_rng(seed)
    dtype = np.float32 if size.element == f32 else ml_dtypes.bfloat16
    inputs = [generator.integers(-3, 4, (rows, DEPTH)).astype(dtype) for rows in (size.rows, size.keys, size.keys)]
    outputs = [np.zeros((size.rows, cols), np.float32) for cols in columns]
    return [*inputs, *outputs, *(int(number) for number in generator.integers(-20, size.keys + 20, 3))]


def check(seed: int, level: str, size: Size = SMALL) -> None:
    module = loop_program(seed, size)
    given_ = arguments(seed, size)
    expected = at_tile_level(module, "k", given_)
    found = at_cpu_level(lowered(module, level), "k", given_)
    # Small whole numbers: every order of sums gives the same bits.
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.quick(2)
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


@pytest.mark.acceptance
@settings(max_examples=12)
@given(st.integers(0, 10**9))
@example(3)
def test_nothing_live_is_left_out_by_the_matrix_unit(seed: int) -> None:
    check(seed, "amx", LARGE)


@pytest.mark.acceptance
@settings(max_examples=1000)
@given(st.integers(0, 10**9))
def test_nothing_live_is_left_out_by_the_matrix_unit_of_thousands(seed: int) -> None:
    check(seed, "amx", LARGE)


@pytest.mark.parametrize("seed", [30, 47, 108])
def test_kept_weights_are_whole_with_the_matrix_unit(seed: int) -> None:
    """A tile that is read after the loop is computed in full, though its sums and products are cut short."""
    module = loop_program(seed, LARGE, kept=True)
    given_ = arguments(seed, LARGE, (DEPTH, 1, 1, max(LARGE.widths)))
    expected = at_tile_level(module, "k", given_)
    found = at_cpu_level(lowered(module, "amx"), "k", given_)
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.acceptance
def test_much_is_left_out_by_the_matrix_unit() -> None:
    cut, later = 0, 0
    for seed in range(40):
        products = [op for op in lowered(loop_program(seed, LARGE), "amx").walk() if isinstance(op, cpu.MatmulOp)]
        depths = [op.depth for op in products if op.depth]
        cut += bool(depths)
        later += any(isinstance(first.owner, arith.MinSIOp) for first, _ in depths)
    assert cut > 4
    assert later > 2


@pytest.mark.acceptance
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
