"""Checks loops that masks shorten and divide: no iteration that counts is left out, none loses a mask that counts."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_masks import Writer
from rewritten_programs import Rewrite, check_same, count, rewritten, run
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, ModuleOp, f32
from xdsl.ir import Block, Region, SSAValue

from tessera.dtypes import types
from tessera.interpreters.core.engine import RULES
from tessera.ir.common.elements import tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import dim
from tessera.targets import text
from tessera.transforms.loops.live_iterations import ClipRanges, SplitRanges, clip_ranges, split_ranges
from tessera.transforms.pipelining.make_async import make_async
from tessera.transforms.pipelining.unroll_rings import unroll_rings

index, wide = IndexType(), IntegerType(64)
ROWS, KEYS, DEPTH = 6, 30, 3


@dataclass
class Loop(Writer):
    """Writes a loop over keys: masked weights, their sums, maxima and dots with values."""

    given: tuple[SSAValue, ...] = ()
    """The queries, as a tile, and the keys, as a view."""

    def full(self, value: float, shape: tuple[int, int]) -> SSAValue:
        return self.add(tile.FullOp(self.add(arith.ConstantOp(FloatAttr(value, f32))), shape))

    def weights(self, width: int) -> SSAValue:
        """One mask, or several, over the dots of queries and keys; some have other uses as well."""
        counter, zero = self.numbers[0], self.numbers[-1]
        keys = self.add(tile.TransOp(self.add(tile.LoadOp(self.given[1], [counter, zero], (width, DEPTH))), (1, 0)))
        scores = self.add(tile.DotOp(self.given[0], keys, self.full(0.0, (ROWS, width))))
        for _ in range(self.chance.choice((1, 1, 2))):
            mask = self.likely((ROWS, width)) if self.chance.random() < 0.5 else self.mask((ROWS, width))
            scores = self.add(tile.EwOp("select", [mask, scores, self.full(0.0, (ROWS, width))]))
            if self.chance.random() < 0.2:
                flags = self.add(tile.EwOp("cast", [mask], to=types.f32))
                scores = self.add(tile.EwOp("mul", [scores, self.add(tile.EwOp("add", [flags, flags]))]))
        return scores

    def likely(self, shape: tuple[int, int]) -> SSAValue:
        """A causal mask, perhaps a window, perhaps the constant kind of comparison."""
        counter, first = self.numbers[:2]
        down, across = (
            self.add(tile.IotaOp(base, axis, tile_of(shape, types.i64))) for axis, base in ((0, first), (1, counter))
        )
        kinds = [self.add(tile.EwOp(self.chance.choice(("ge", "gt", "le")), [down, across]))]
        if self.chance.random() < 0.5:
            far = self.add(arith.ConstantOp(IntegerAttr(self.chance.randint(1, 20), wide)))
            distance = self.add(tile.EwOp("sub", [down, across]))
            kinds.append(self.add(tile.EwOp("lt", [distance, self.add(tile.FullOp(far, shape))])))
        if self.chance.random() < 0.3:
            here = self.add(tile.IotaOp(self.numbers[-1], 1, tile_of(shape, types.i64)))
            least = self.add(arith.ConstantOp(IntegerAttr(self.chance.randint(-1, 3), wide)))
            kinds.append(self.add(tile.EwOp("ge", [here, self.add(tile.FullOp(least, shape))])))
        mask = kinds[0]
        for kind in kinds[1:]:
            mask = self.add(tile.EwOp(self.chance.choice(("and", "and", "or")), [mask, kind]))
        return mask


def program(seed: int) -> ModuleOp:
    """A loop from, to and by numbers that are arguments."""
    chance = random.Random(seed)
    width = chance.choice((1, 4, 5, 8))
    view = ViewType(2, f32)
    shapes = [["M", "D"], ["N", "D"], ["N", "D"], ["M", "D"], ["M", "O"], ["M", "O"], *[[]] * 5]
    types_ = [view] * 6 + [index] * 5
    function = tile.FuncOp("k", types_, 0, [[dim(size) for size in shape] for shape in shapes], [1])
    entry = function.body.block
    writer = Loop(chance, entry)
    q, keys, values, *outputs = entry.args[:6]
    start, stop, step = entry.args[6:9]
    zero = writer.number(0)
    writer.given = writer.add(tile.LoadOp(q, [zero, zero], (ROWS, DEPTH))), keys
    carried = [writer.full(0.0, (ROWS, DEPTH)), writer.full(0.0, (ROWS, 1)), writer.full(-np.inf, (ROWS, 1))]
    body = Block(arg_types=[index, *(value.type for value in carried)])
    counter, acc, total, top = body.args
    writer.block, writer.numbers = body, [counter, *entry.args[9:], zero]
    weights = writer.weights(width)
    sums = writer.add(tile.ExpandOp(writer.add(tile.ReduceOp("sum", weights, 1)), 1))
    mask = writer.likely((ROWS, width))
    high = writer.add(tile.EwOp("select", [mask, weights, writer.full(-np.inf, (ROWS, width))]))
    tops = writer.add(tile.ExpandOp(writer.add(tile.ReduceOp("max", high, 1)), 1))
    following = [
        writer.add(tile.DotOp(weights, writer.add(tile.LoadOp(values, [counter, zero], (width, DEPTH))), acc)),
        writer.add(tile.EwOp("add", [total, sums])),
        writer.add(tile.EwOp("max", [top, tops])) if chance.random() < 0.5 else top,
    ]
    body.add_op(scf.YieldOp(*following))
    loop = scf.ForOp(start, stop, step, carried, Region(body))
    entry.add_op(loop)
    for result, output in zip(loop.results, outputs, strict=True):
        entry.add_op(tile.StoreOp(result, output, [zero, zero]))
    entry.add_op(tile.ReturnOp())
    return ModuleOp([function])


def arguments(seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    inputs = [generator.integers(-3, 4, (rows, DEPTH)).astype(np.float32) for rows in (ROWS, KEYS, KEYS)]
    outputs = [np.zeros((ROWS, columns), np.float32) for columns in (DEPTH, 1, 1)]
    start, stop, step = generator.integers(-9, 9), generator.integers(-5, KEYS + 10), generator.integers(1, 9)
    return [*inputs, *outputs, int(start), int(stop), int(step), *map(int, generator.integers(-10, KEYS, 2))]


def together(function: tile.FuncOp) -> None:
    clip_ranges(function)
    make_async(function, 3)
    split_ranges(function)
    unroll_rings(function)


WAYS: dict[str, Rewrite] = {"clipped": clip_ranges, "split": split_ranges, "together": together}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=25)
@given(st.integers(0, 10**9))
@example(53)
def test_no_bit_changes(way: str, seed: int) -> None:
    check_same(program(seed), WAYS[way], arguments(seed))


@pytest.mark.acceptance
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=2000)
@given(st.integers(0, 10**9))
def test_no_bit_of_thousands_changes(way: str, seed: int) -> None:
    check_same(program(seed), WAYS[way], arguments(seed))


@pytest.mark.acceptance
def test_much_is_clipped_and_split() -> None:
    """The properties above are not empty."""
    clipped = split = 0
    for seed in range(60):
        _, function, _ = rewritten(program(seed), clip_ranges)
        (loop,) = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
        clipped += loop.ub is not function.arguments[7] or loop.lb is not function.arguments[6]
        split += count(rewritten(program(seed), split_ranges)[1], scf.ForOp) > 1
    assert clipped > 10
    assert split > 10


# Masks as people write them

CAUSAL = """
tile.func @k(%q: !tile.view<2, f32, global>, %x: !tile.view<2, f32, global>, %row: index,
    %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 4], [N, 4], [], [4, 8]] grid [1] {{
  %zero = arith.constant 0 : index
  %n = tile.dim %x, 0 : !tile.view<2, f32, global>
  %eight = arith.constant 8 : index
  %nothing = arith.constant 0.0 : f32
  %two = arith.constant 2 : i64
  %twos = tile.full %two : tensor<4x8xi64>
  %sixteen = arith.constant 16 : i64
  %many = tile.full %sixteen : tensor<4x8xi64>
  %a = tile.load %q[%zero, %zero] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  %clear = tile.full %nothing : tensor<4x8xf32>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %clear) -> (tensor<4x8xf32>) {{
    %b = tile.load %x[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
    %t = tile.trans %b, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %d = tile.dot %a, %t, %clear : tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %across = tile.iota %i, 1 : tensor<4x8xi64>
    %down = tile.iota %row, 0 : tensor<4x8xi64>
{mask}
    %w = tile.ew<select> %m, %d, %clear : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %next = tile.ew<add> %acc, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    scf.yield %next : tensor<4x8xf32>
  }}
  tile.store %sum, %y[%zero, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
  tile.return
}}
"""
PAIR = "tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>"
BOTH = "tensor<4x8xi1>, tensor<4x8xi1> -> tensor<4x8xi1>"
MASKS = {
    # The mask, and how many loops there are afterwards.
    "causal": (f"%m = tile.ew<ge> %down, %across : {PAIR}", 2),
    "after": (f"%m = tile.ew<le> %down, %across : {PAIR}", 2),
    "a window": (
        f"""%c = tile.ew<ge> %down, %across : {PAIR}
        %distance = tile.ew<sub> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi64>
        %near = tile.ew<lt> %distance, %twos : {PAIR}
        %m = tile.ew<and> %c, %near : {BOTH}""",
        3,
    ),
    "a constant part that is not true": (
        f"""%here = tile.iota %zero, 1 : tensor<4x8xi64>
        %part = tile.ew<ge> %here, %twos : {PAIR}
        %c = tile.ew<ge> %down, %across : {PAIR}
        %m = tile.ew<and> %part, %c : {BOTH}""",
        1,
    ),
    "a constant part that is true": (
        f"""%here = tile.iota %eight, 1 : tensor<4x8xi64>
        %part = tile.ew<ge> %here, %twos : {PAIR}
        %c = tile.ew<ge> %down, %across : {PAIR}
        %m = tile.ew<and> %part, %c : {BOTH}""",
        2,
    ),
    "one of two ways": (
        f"""%part = tile.ew<ge> %down, %twos : {PAIR}
        %c = tile.ew<ge> %down, %across : {PAIR}
        %m = tile.ew<or> %part, %c : {BOTH}""",
        2,
    ),
    "either of two ways": (
        f"""%part = tile.ew<lt> %across, %many : {PAIR}
        %c = tile.ew<ge> %down, %across : {PAIR}
        %m = tile.ew<or> %c, %part : {BOTH}""",
        2,
    ),
    "twice the position": (
        f"""%twice = tile.ew<add> %across, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi64>
        %m = tile.ew<le> %down, %twice : {PAIR}""",
        2,
    ),
    "no position": (f"%m = tile.ew<ge> %down, %twos : {PAIR}", 1),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("row", [-5, 0, 9, 40])
@pytest.mark.parametrize("keys", [0, 8, 30])
def test_masks_as_people_write_them(name: str, row: int, keys: int) -> None:
    mask, loops = MASKS[name]
    source = CAUSAL.format(mask=mask)
    generator = np.random.default_rng(0)
    inputs = [generator.integers(-3, 4, (size, 4)).astype(np.float32) for size in (4, keys)]
    for way in WAYS.values():
        check_same(source, way, [*inputs, row, np.zeros((4, 8), np.float32)])
    _, function, _ = rewritten(source, split_ranges)
    assert count(function, scf.ForOp) == loops
    assert count(function, tile.DotOp) == loops
    masked = [op for op in function.body.walk() if isinstance(op, tile.EwOp) and op.fn.data == "select"]
    assert len(masked) == max(1, loops - 1)


def test_ranges_of_two_ways_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below row 16 the second way has more full iterations, above it the first."""
    for row, full in ((0, 2), (40, 4)):
        module, function, _ = rewritten(CAUSAL.format(mask=MASKS["either of two ways"][0]), split_ranges)
        first, second = (op for op in function.body.walk() if isinstance(op, scf.ForOp))
        assert count(function, scf.ForOp) == 2
        x = np.ones((32, 4), np.float32)
        values = [x[:4], x, row, np.zeros((4, 8), np.float32)]
        replaced = second.iter_args[0]
        second.results[0].replace_all_uses_with(replaced)
        second.detach()
        second.erase()
        assert not any(isinstance(op, tile.EwOp) and op.fn.data == "select" for op in first.body.walk())
        assert iterations(module, values, monkeypatch) == full


def test_a_mask_that_is_always_true_goes() -> None:
    mask = f"""%here = tile.iota %eight, 1 : tensor<4x8xi64>
        %m = tile.ew<ge> %here, %twos : {PAIR}"""
    _, function, _ = rewritten(CAUSAL.format(mask=mask), split_ranges)
    assert count(function, scf.ForOp) == 1
    assert not any(isinstance(op, tile.EwOp) and op.fn.data == "select" for op in function.body.walk())


def iterations(module: ModuleOp, values: list[Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many iterations loops run: each has one dot."""
    counted, rule = 0, RULES[tile.DotOp]

    def counting(*given_: Any) -> Any:
        nonlocal counted
        counted += 1
        return rule(*given_)

    with monkeypatch.context() as patch:
        patch.setitem(RULES, tile.DotOp, counting)
        run(module, values)
    return counted


@pytest.mark.parametrize(("name", "expected"), [("causal", 3), ("after", 8), ("a window", 1), ("no position", 10)])
def test_iterations_that_are_masked_out_are_not_run(name: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [np.ones((4, 4), np.float32), np.ones((80, 4), np.float32), 20, np.zeros((4, 8), np.float32)]
    source = CAUSAL.format(mask=MASKS[name][0])
    assert iterations(text.read(source), values, monkeypatch) == 10
    for way in (clip_ranges, together):
        assert iterations(rewritten(source, way)[0], values, monkeypatch) == expected


def test_loops_within_loops_are_split_inside_first() -> None:
    """Both loops have dots and masks; the outer one is written several times, with the rewritten inner one."""
    source = CAUSAL.format(mask=MASKS["causal"][0])
    start, stop = source.index("  %sum = scf.for"), source.index("  tile.store")
    loop = source[start:stop]
    names = {"i", "acc", *re.findall(r"%(\w+) = ", loop)} - {"acc"}
    inner = re.sub(r"%(\w+)", lambda found: f"%{found[1]}{'_' * (found[1] in names)}", loop)
    inner = inner.replace("(%acc = %clear)", "(%acc_ = %next)").replace("%acc,", "%acc_,")
    outer = loop.replace("    scf.yield %next ", f"{inner}    scf.yield %sum_ ")
    generator = np.random.default_rng(0)
    inputs = [generator.integers(-3, 4, (size, 4)).astype(np.float32) for size in (4, 30)]
    for row in (0, 13):
        for way in WAYS.values():
            check_same(source[:start] + outer + source[stop:], way, [*inputs, row, np.zeros((4, 8), np.float32)])
    assert count(rewritten(source[:start] + outer + source[stop:], split_ranges)[1], scf.ForOp) == 6


def test_the_passes() -> None:
    source = CAUSAL.format(mask=MASKS["causal"][0])
    for kind, rewrite in ((ClipRanges, clip_ranges), (SplitRanges, split_ranges)):
        module = text.read(source)
        kind().apply(text.new_context(), module)
        assert text.write(module) == text.write(rewritten(source, rewrite)[0])
        assert text.write(module) != text.write(text.read(source))
