"""Checks what masks are said to leave out: against brute force, over random masks, windows, instances and loops."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_masks import Writer
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, f32
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tessera.dtypes import types
from tessera.dtypes.types import saturate
from tessera.interpreters.core.engine import Frame
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels.tile import Array
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.algebra.masks import (
    Edge,
    Linear,
    Splat,
    Window,
    constant_of,
    dead_before,
    dead_from,
    is_skippable,
    known_where_false,
    linear,
    masks_in,
    positions,
    reach,
    true_if,
)

index = IndexType()
few = settings(max_examples=150)
SEEDS = st.integers(0, 10**9)


def evaluate(sum_: Linear, values: dict[SSAValue, Any]) -> int:
    return sum_.number + sum(factor * int(values[scalar]) for scalar, factor in sum_.terms)


def drawn(chance: random.Random) -> list[int]:
    return [chance.randint(-40, 40) for _ in range(4)]


SHAPES = [(1, 1), (1, 7), (5, 1), (4, 6), (3, 16), (8, 8)]


# Sums of scalars


@few
@given(SEEDS)
def test_a_scalar_is_the_sum_it_is_said_to_be(seed: int) -> None:
    writer = Writer(random.Random(seed))
    scalar = writer.scalar(4)
    found = linear(scalar)
    assert all(isinstance(term, BlockArgument) and factor != 0 for term, factor in found.terms)
    for _ in range(3):
        values = writer.run(drawn(writer.chance))
        assert evaluate(found, values) == values[scalar]


def test_sums_are_taken_apart_no_further_than_they_can_be() -> None:
    block = Block(arg_types=[index, index, element_of(types.i32)])
    wide, other, narrow = block.args
    product = arith.MuliOp(wide, other)
    assert linear(product.result) == Linear(((product.result, 1),))
    wraps = arith.AddiOp(narrow, narrow)
    assert linear(wraps.result) == Linear(((wraps.result, 1),))
    cut = arith.IndexCastOp(wide, element_of(types.i32))
    assert linear(cut.result) == Linear(((cut.result, 1),))
    kept = arith.IndexCastOp(arith.AddiOp(wide, other).result, element_of(types.i64))
    assert linear(kept.result) == Linear(((wide, 1), (other, 1)))


def test_terms_that_cancel_are_gone() -> None:
    (a,) = Block(arg_types=[index]).args
    one = Linear(((a, 2),), 5)
    assert one - one == Linear()
    assert one * 0 == Linear()
    assert (one * -3).factor_of(a) == -6
    assert one.without(a) == Linear(number=5)


# Where positions lie, and where masks are false


def windows(shape: tuple[int, int], chance: random.Random) -> tuple[tuple[int, int], tuple[int, int]]:
    size = (chance.randint(1, shape[0]), chance.randint(1, shape[1]))
    return (chance.randint(0, shape[0] - size[0]), chance.randint(0, shape[1] - size[1])), size


@few
@given(SEEDS)
def test_positions_lie_within_their_reach(seed: int) -> None:
    chance = random.Random(seed)
    writer, shape = Writer(chance), chance.choice(SHAPES)
    value = writer.positions(shape, 2)
    (row, col), (height, width) = windows(shape, chance)
    window = Window((Linear(number=row), Linear(number=col)), (height, width))
    found, sums = reach(value, window), positions(value)
    values = writer.run(drawn(chance))
    seen = values[value][row : row + height, col : col + width]
    assert found is not None
    assert evaluate(found[0], values) <= seen.min() <= seen.max() <= evaluate(found[1], values)
    if sums is not None:
        base, rows, cols = sums
        everywhere = rows * np.arange(shape[0])[:, None] + cols * np.arange(shape[1])
        assert np.array_equal(values[value], evaluate(base, values) + everywhere)


def bound(edges: Sequence[Sequence[Edge]], values: dict[SSAValue, Any], *, before: bool) -> int:
    """From where on a mask is false, or below what it is."""
    if before:
        return max(min(-evaluate(one.at, values) // one.factor + 1 for one in group) for group in edges)
    return min(max(math.ceil(evaluate(one.at, values) / one.factor) for one in group) for group in edges)


Ask = Callable[[SSAValue, SSAValue, Window], Sequence[Sequence[Edge]]]


def count_bounds_on_a_number(ask: Ask, seed: int, *, before: bool) -> bool:
    """Holds what is said of a mask in its first number against all masks for numbers around; whether something was."""
    chance = random.Random(seed)
    writer, shape = Writer(chance), chance.choice(SHAPES)
    mask = writer.mask(shape)
    variable = writer.numbers[0]
    edges = ask(mask, variable, Window.whole(shape))
    if not edges:
        return False
    assert all(edge.factor > 0 and edge.at.factor_of(variable) == 0 for group in edges for edge in group)
    given_ = drawn(chance)
    limit = bound(edges, writer.run(given_), before=before)
    near = range(limit - 12, limit) if before else range(limit, limit + 12)
    for number in (*near, limit + (-500 if before else 500)):
        assert not writer.run([number, *given_[1:]])[mask].any(), f"at {number}, {limit} is the bound"
    return True


@few
@given(SEEDS)
def test_a_mask_is_false_from_where_it_is_said_to_be(seed: int) -> None:
    count_bounds_on_a_number(dead_from, seed, before=False)


@few
@given(SEEDS)
def test_a_mask_is_false_before_where_it_is_said_to_be(seed: int) -> None:
    count_bounds_on_a_number(dead_before, seed, before=True)


@pytest.mark.acceptance
def test_most_masks_have_bounds() -> None:
    """The properties above are not empty."""
    assert sum(count_bounds_on_a_number(dead_from, seed, before=False) for seed in range(200)) > 25
    assert sum(count_bounds_on_a_number(dead_before, seed, before=True) for seed in range(200)) > 25


@few
@given(SEEDS)
def test_columns_that_are_left_out_are_dead_for_all_rows_of_a_group(seed: int) -> None:
    """As nests ask: for some rows from one on, and a column that is not known yet."""
    chance = random.Random(seed)
    writer, shape = Writer(chance), chance.choice(SHAPES)
    mask = writer.mask(shape)
    column, start = Block(arg_types=[index, index]).args
    height = chance.randint(1, shape[0])
    row = chance.randint(0, shape[0] - height)
    edges = dead_from(mask, column, Window((Linear(((start, 1),)), Linear(((column, 1),))), (height, 1)))
    values = writer.run(drawn(chance))
    if edges:
        limit = max(0, bound(edges, {**values, start: row}, before=False))
        assert not values[mask][row : row + height, limit:].any()


def count_true_masks(seed: int) -> bool:
    """Holds what is said of when a mask is true all over against the mask; whether it was said to be."""
    chance = random.Random(seed)
    writer, shape = Writer(chance), chance.choice(SHAPES)
    mask = writer.mask(shape)
    values = writer.run(drawn(chance))
    found = any(all(evaluate(one, values) > 0 for one in sums) for sums in true_if(mask, Window.whole(shape)))
    assert not found or values[mask].all()
    return found


@few
@given(SEEDS)
def test_a_mask_is_true_where_it_is_said_to_be(seed: int) -> None:
    count_true_masks(seed)


@pytest.mark.acceptance
def test_some_masks_are_known_to_be_true() -> None:
    assert sum(count_true_masks(seed) for seed in range(400)) > 15


# Masks as kernels have them, with the bound they deserve.


def attention_mask(writer: Writer, rows: int, cols: int, window: SSAValue | None, length: SSAValue | None) -> SSAValue:
    """Causal, perhaps within a window, perhaps up to a length; the first numbers are the first column and row."""
    counter, first = writer.numbers[:2]
    down = writer.add(tile.IotaOp(first, 0, tile_of((rows, cols), types.i64)))
    across = writer.add(tile.IotaOp(counter, 1, tile_of((rows, cols), types.i64)))
    mask = writer.add(tile.EwOp("ge", [down, across]))
    for limit, operands in ((window, "distance"), (length, "across")):
        if limit is not None:
            scalar = writer.add(arith.IndexCastOp(limit, element_of(types.i64)))
            full = writer.add(tile.FullOp(scalar, (rows, cols)))
            number = writer.add(tile.EwOp("sub", [down, across])) if operands == "distance" else across
            mask = writer.add(tile.EwOp("and", [mask, writer.add(tile.EwOp("lt", [number, full]))]))
    return mask


@few
@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(0, 99),
    st.integers(1, 60),
    st.integers(0, 99),
    st.booleans(),
    st.booleans(),
)
def test_causal_windows_and_prefixes_are_bounded_exactly(
    rows: int, cols: int, first: int, size: int, length: int, windowed: bool, prefix: bool
) -> None:
    writer = Writer(random.Random(0))
    window, limit = writer.numbers[2] if windowed else None, writer.numbers[3] if prefix else None
    mask = attention_mask(writer, rows, cols, window, limit)
    counter = writer.numbers[0]
    whole = Window.whole((rows, cols))
    values = writer.run([0, first, size, length])
    end = bound(dead_from(mask, counter, whole), values, before=False)
    assert end == min(first + rows, length if prefix else first + rows)
    if windowed:
        start = bound(dead_before(mask, counter, whole), values, before=True)
        assert start == first - size - cols + 2
    else:
        assert not dead_before(mask, counter, whole)
    (sums,) = true_if(mask, whole)
    assert all(evaluate(one, values) > 0 for one in sums) == values[mask].all()


def test_nothing_is_said_of_masks_that_may_wrap_or_are_no_positions() -> None:
    block = Block(arg_types=[index, f32])
    counter, number = block.args
    for dtype in (types.i8, types.i16, types.u8, types.u64, types.f32, types.f64):
        a, b = (tile.IotaOp(counter, axis, tile_of((4, 4), dtype)).result for axis in (0, 1))
        mask = tile.EwOp("ge", [a, b]).result
        assert dead_from(mask, counter, Window.whole((4, 4))) == []
        assert reach(a, Window.whole((4, 4))) is None
    full = tile.FullOp(number, (4, 4)).result
    mask = tile.EwOp("lt", [full, full]).result
    assert dead_from(mask, counter, Window.whole((4, 4))) == []
    equal = tile.EwOp("eq", [tile.IotaOp(counter, 0, tile_of((4, 4), types.i64)).result] * 2).result
    assert dead_from(equal, counter, Window.whole((4, 4))) == []
    assert dead_before(equal, counter, Window.whole((4, 4))) == []


# What is known where a mask is false

NUMBERS = (0.0, 1.0, -math.inf, math.inf, 2.5)
BINARY = ("add", "sub", "mul", "div", "max", "min")
FOLDS = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "max": -math.inf, "min": math.inf}
COMPARE = ("lt", "le", "gt", "ge", "eq")


@dataclass
class Body(Writer):
    """Straight-line work on tiles of floats, much of it under a mask."""

    values: list[SSAValue] = field(default_factory=list[SSAValue])
    mask_: SSAValue | None = None

    def floats(self, shape: Sequence[int] | None = None) -> SSAValue:
        fitting = [value for value in self.values if tile_dtype(value) is types.f32]
        if shape is not None:
            fitting = [value for value in fitting if tile_type(value).get_shape() == tuple(shape)]
        if fitting and self.chance.random() < 0.8:
            return self.chance.choice(fitting)
        return self.full(self.chance.choice(NUMBERS), shape or (4, 6))

    def full(self, value: float, shape: Sequence[int]) -> SSAValue:
        scalar = self.add(arith.ConstantOp(FloatAttr(value, f32)))
        return self.add(tile.FullOp(scalar, list(shape)))

    def step(self) -> None:
        assert self.mask_ is not None
        choice = self.chance.random()
        value = self.floats()
        shape = tile_type(value).get_shape()
        if choice < 0.25:
            masked = self.floats((4, 6))
            made = tile.EwOp("select", [self.mask_, masked, self.full(self.chance.choice(NUMBERS), (4, 6))])
        elif choice < 0.5:
            made = tile.EwOp(self.chance.choice(BINARY), [value, self.floats(shape)])
        elif choice < 0.6:
            made = tile.EwOp(self.chance.choice(("exp", "neg", "abs", "sqrt")), [value])
        elif choice < 0.7:
            truth = self.add(tile.EwOp(self.chance.choice(COMPARE), [value, self.floats(shape)]))
            made = tile.EwOp("select", [truth, self.floats(shape), self.floats(shape)])
        elif choice < 0.8 and shape == (4, 6):
            reduced = self.add(tile.ReduceOp(self.chance.choice(("sum", "max", "min", "prod")), value, 1))
            column = self.add(tile.ExpandOp(reduced, 1))
            self.values.append(column)
            made = tile.BroadcastOp(column, (4, 6))
        elif choice < 0.9:
            right = self.floats((6, 6)) if shape == (4, 6) else None
            if right is None:
                return
            made = tile.DotOp(value, right, self.floats((4, 6)))
        else:
            made = tile.EwOp("cast", [self.add(tile.EwOp("cast", [value], to=types.bf16))], to=types.f32)
        self.values.append(self.add(made))

    def folded(self, carried: SSAValue) -> SSAValue:
        """A carried value with something masked folded in, as loops do; often what is masked out is neutral."""
        assert self.mask_ is not None
        name, neutral = self.chance.choice((*FOLDS.items(), *FOLDS.items(), ("add", 1.0), ("max", 0.0)))
        masked = self.add(tile.EwOp("select", [self.mask_, self.floats((4, 6)), self.full(neutral, (4, 6))]))
        if tile_type(carried).get_shape() == (4, 1):
            kind = {"add": "sum", "mul": "prod"}.get(name, name)
            kind = kind if kind in ("sum", "prod", "max", "min") else "sum"
            masked = self.add(tile.ExpandOp(self.add(tile.ReduceOp(kind, masked, 1)), 1))
        return self.add(tile.EwOp(name, [carried, masked]))


def body(seed: int, carried: int, steps: int) -> Body:
    """A loop's body: numbers, then what it carries; a mask of positions, and work."""
    chance = random.Random(seed)
    tiles = [tile_of(chance.choice(((4, 6), (4, 6), (4, 1))), types.f32) for _ in range(carried)]
    made = Body(chance, Block(arg_types=[index, *tiles]))
    made.values = list(made.block.args[1:])
    counted = made.add(tile.IotaOp(made.block.args[0], 1, tile_of((4, 6), types.i64)))
    limit = made.add(arith.ConstantOp(IntegerAttr(100, 64)))
    made.mask_ = made.add(tile.EwOp("lt", [counted, made.add(tile.FullOp(limit, (4, 6)))]))
    for _ in range(steps):
        made.step()
    return made


def tiles_for(made: Body, generator: np.random.Generator) -> list[Array]:
    """Finite numbers, or a row's first maximum: −∞."""
    found: list[Array] = []
    for argument in made.block.args[1:]:
        numbers = generator.integers(-4, 5, tile_type(argument).get_shape()).astype(np.float32)
        if generator.random() < 0.2:
            numbers[...] = -np.inf
        found.append(numbers)
    return found


def same(one: Array, other: Array) -> bool:
    """Equal, or NaN where the other is: what is NaN may stay so."""
    return bool(np.all((one == other) | np.isnan(one) | np.isnan(other)))


@few
@given(SEEDS)
def test_what_is_known_where_a_mask_is_false_is_so(seed: int) -> None:
    made = body(seed, 3, 12)
    assert made.mask_ is not None
    known = known_where_false(made.block.ops, made.mask_)
    values = made.run([1000, *tiles_for(made, np.random.default_rng(seed))])
    assert not values[made.mask_].any()
    for value, said in known.items():
        found = np.asarray(values[value], np.float64)
        wanted = np.asarray(said.number if isinstance(said, Splat) else values[said], np.float64)
        assert same(found, np.broadcast_to(wanted, found.shape))


def test_much_is_known_where_a_mask_is_false() -> None:
    counts = 0
    for seed in range(50):
        made = body(seed, 3, 12)
        assert made.mask_ is not None
        known = known_where_false(made.block.ops, made.mask_)
        counts += sum(said is not value for value, said in known.items())
    assert counts > 250


def as_loop(made: Body, yielded: Sequence[SSAValue]) -> scf.ForOp:
    outside = Block(arg_types=[argument.type for argument in made.block.args[1:]])
    start, stop, step = (arith.ConstantOp(IntegerAttr(number, index)) for number in (0, 1, 1))
    made.block.add_op(scf.YieldOp(*yielded))
    return scf.ForOp(start.result, stop.result, step.result, list(outside.args), Region(made.block))


def skippable(seed: int) -> bool:
    """Whether a loop is said to change nothing in a dead iteration; if so, it is seen not to."""
    made = body(seed, 2, 8)
    assert made.mask_ is not None
    yielded: list[SSAValue] = []
    for argument in made.block.args[1:]:
        fitting = [value for value in made.values if value.type == argument.type]
        yielded.append(made.folded(argument) if made.chance.random() < 0.8 else made.chance.choice(fitting))
    loop = as_loop(made, yielded)
    if not is_skippable(loop, made.mask_):
        return False
    for again in range(3):
        given_ = tiles_for(made, np.random.default_rng(seed + again))
        frame = Frame(Machine())
        found = frame.run(made.block, [1000, *given_])
        assert all(same(one, other) for one, other in zip(found, given_, strict=True))
    return True


@settings(max_examples=200)
@given(SEEDS)
def test_a_loop_that_is_skipped_changes_nothing(seed: int) -> None:
    skippable(seed)


@pytest.mark.acceptance
def test_some_loops_are_skipped() -> None:
    assert 40 < sum(skippable(seed) for seed in range(200)) < 160


@pytest.mark.acceptance
@settings(max_examples=20000)
@given(SEEDS)
def test_no_loop_of_thousands_that_is_skipped_changes_anything(seed: int) -> None:
    skippable(seed)


@pytest.mark.parametrize("effect", ["store", "assert", "print", "region"])
def test_a_loop_with_effects_is_never_skipped(effect: str) -> None:
    made = body(0, 1, 0)
    assert made.mask_ is not None
    argument = made.block.args[1]
    made.add(tile.EwOp("select", [made.mask_, made.full(1.0, (4, 6)), made.full(0.0, (4, 6))]))
    view = Block(arg_types=[tile.ViewType(2, element_of(types.f32))]).args[0]
    zero = made.number(0)
    effects: dict[str, Callable[[], Operation]] = {
        "store": lambda: tile.StoreOp(made.full(1.0, (4, 6)), view, [zero, zero]),
        "assert": lambda: tile.AssertOp(made.mask_, "no") if made.mask_ is not None else tile.ReturnOp(),
        "print": lambda: tile.DebugPrintOp("here", [zero]),
        "region": lambda: scf.IfOp(made.add(arith.CmpiOp(zero, zero, "eq")), [], [scf.YieldOp()]),
    }
    plain = body(0, 1, 0)
    assert plain.mask_ is not None
    assert is_skippable(as_loop(plain, [plain.block.args[1]]), plain.mask_)
    made.block.add_op(effects[effect]())
    assert not is_skippable(as_loop(made, [argument]), made.mask_)


def test_constants_are_computed_as_the_program_computes_them() -> None:
    """Rounded to their type; not at all where a policy says how."""
    block = Block(arg_types=[index])
    scalar = arith.ConstantOp(IntegerAttr(100, 8))
    hundred = tile.FullOp(scalar.result, (4,))
    mask = tile.EwOp("lt", [hundred.result, hundred.result])
    wraps = tile.EwOp("add", [hundred.result, hundred.result])
    stops = tile.EwOp("add", [hundred.result, hundred.result], policy=saturate)
    narrow = tile.EwOp("cast", [hundred.result], to=types.bf16)
    ops = [scalar, hundred, mask, wraps, stops, narrow]
    block.add_ops(ops)
    known = known_where_false(block.ops, mask.result)
    assert known[wraps.result] == Splat(-56)
    assert known[stops.result] is stops.result
    assert known[narrow.result] == Splat(100.0)


def test_masks_are_found_where_they_choose_between_a_value_and_a_constant() -> None:
    made = body(3, 2, 0)
    assert made.mask_ is not None
    x = made.block.args[1]
    wide = (4, 6)
    other = made.add(tile.EwOp("gt", [made.full(1.0, wide), made.full(2.0, wide)]))
    both = [made.full(0.0, wide), made.full(1.0, wide)]
    made.add(tile.EwOp("select", [made.mask_, both[0], both[1]]))
    made.add(tile.EwOp("select", [made.mask_, both[1], both[0]]))
    varying = made.add(tile.EwOp("exp", [both[0]]))
    made.add(tile.EwOp("select", [other, both[0], varying]))
    assert list(masks_in(made.block)) == [made.mask_]
    assert x is made.block.args[1]
    thin = made.full(2.5, (4, 1))
    assert constant_of(made.add(tile.BroadcastOp(thin, wide))) == 2.5
    assert constant_of(varying) is None
