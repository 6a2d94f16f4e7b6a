"""Tiles that are folded, converted and seen with other axes: compiled to PTX, and run by the machine for tests.

Layouts are held against the simplest reading of what they say, and those of products against the tables of the PTX
manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import nv_cases
import ptx_checks
import pytest
from emitted_runs import run
from hypothesis import given, settings
from hypothesis import strategies as st
from nv_cases import Case, function_text, tile_text, view_text
from nv_layouts import Array, coordinates, random_layout, scatter
from test_nv_values import check, instructions_of, read

from tessera.dtypes.types import DType, bf16, bool_, f32, i8
from tessera.errors import CompileError
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.emit.conversion_plans import plan
from tessera.targets.cuda.ir.layouts import Digit, Layout, accumulator, blocked, left_operand, right_operand

few = settings(max_examples=40)

# Layouts


def drawn(seed: int) -> tuple[np.random.Generator, tuple[int, ...], Layout, Array]:
    """Sizes, a layout for them, and an array of them with numbers of its own in every place."""
    chance = np.random.default_rng(seed)
    shape = tuple(int(size) for size in chance.choice([1, 2, 3, 4, 6, 8, 16], int(chance.integers(1, 4))))
    layout = random_layout(chance, shape, 32, odd=bool(chance.random() < 0.5))
    return chance, shape, layout, np.arange(np.prod(shape)).reshape(shape)


@few
@given(st.integers(0, 10**9))
def test_every_element_is_held(seed: int) -> None:
    _, shape, layout, array = drawn(seed)
    places = coordinates(layout, len(shape), 32)
    for axis in range(len(shape)):
        bases = np.array([layout.base(thread, axis) for thread in range(32)])
        np.testing.assert_array_equal(bases[:, None] + np.array(layout.offsets(axis)), places[..., axis])
        assert [layout.offset(register, axis) for register in range(layout.count)] == layout.offsets(axis)
        assert layout.coverage(axis) == places[: layout.thread_count, :, axis].max() + 1 or layout.thread_count > 32
        assert layout.coverage(axis) >= shape[axis]
    held = scatter(array, layout, 32, ghost=-1)
    assert set(held.ravel()) - {-1} == set(array.ravel())
    assert layout.has_ghosts(shape) == bool((held == -1).any()) or layout.thread_count > 32


@few
@given(st.integers(0, 10**9))
def test_layouts_of_other_tiles_hold_what_those_tiles_have(seed: int) -> None:
    chance, shape, layout, array = drawn(seed)
    axis = int(chance.integers(len(shape)))
    held = scatter(array, layout, 32, ghost=-1)
    # A transposed tile has the same registers.
    permutation = tuple(int(place) for place in chance.permutation(len(shape)))
    np.testing.assert_array_equal(scatter(array.transpose(permutation), layout.permuted(permutation), 32, -1), held)
    # So has one with an axis more.
    np.testing.assert_array_equal(scatter(np.expand_dims(array, axis), layout.with_axis(axis), 32, -1), held)
    # What a tile repeats is held by every thread that holds a part of it.
    ones = tuple(1 if chance.random() < 0.5 else size for size in shape)
    row = array[tuple(slice(size) for size in ones)]
    narrow = scatter(row, layout.narrowed(ones), 32, -1)
    wide = scatter(np.broadcast_to(row, shape), layout, 32, -1)
    for thread in range(32):
        assert set(wide[thread]) - {-1} <= set(narrow[thread])
    # Where a tile has two elements for one, a thread holds the two of each that it held.
    pairs = np.repeat(2 * array, 2, axis)
    pairs[(*[slice(None)] * axis, slice(1, None, 2))] += 1
    for thread, one in enumerate(scatter(pairs, layout.doubled(axis), 32, -1)):
        assert set(one) - {-1} == {2 * each + half for each in set(held[thread]) - {-1} for half in (0, 1)}
    assert layout.doubled(axis).has_pairs(axis)
    # Where it has one for two, a thread holds that of each of the two.
    half = layout.halved(axis)
    if half is not None and shape[axis] % 2 == 0:
        firsts = np.repeat(np.take(array, range(0, shape[axis], 2), axis), 2, axis)
        bytes_ = scatter(np.take(array, range(0, shape[axis], 2), axis), half, 32, -1)
        for thread, one in enumerate(scatter(firsts, layout, 32, -1)):
            assert set(one) - {-1} == set(bytes_[thread]) - {-1}
    assert layout.doubled(axis).halved(axis) == Layout.of(layout.threads, layout.registers)
    # What is left of a folded tile is held by every thread that holds a part of it.
    first = np.take(array, 0, axis)
    without = scatter(first, layout.without(axis), 32, -1)
    spread = scatter(np.repeat(np.expand_dims(first, axis), shape[axis], axis), layout, 32, -1)
    for thread in range(32):
        assert set(spread[thread]) - {-1} <= set(without[thread])


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_operands_lie_as_the_manual_says(bits: int) -> None:
    """The tables of "Matrix fragments for mma" with shapes m16n8k8 (32 bits), m16n8k16 and m16n8k32."""
    side = 32 // bits
    depth = 8 * side
    left = coordinates(left_operand(16, depth, (1, 1), bits), 2, 32)
    right = coordinates(right_operand(depth, 8, (1, 1), bits), 2, 32)
    sums = coordinates(accumulator(16, 8, (1, 1)), 2, 32)
    for lane in range(32):
        group, inside = lane // 4, lane % 4
        for i in range(4 * side):
            word, part = divmod(i, side)
            row = group + 8 * (word % 2)
            column = inside * side + part + (4 * side if word >= 2 else 0)
            assert tuple(left[lane, i]) == (row, column)
        for i in range(2 * side):
            word, part = divmod(i, side)
            assert tuple(right[lane, i]) == (inside * side + part + 4 * side * word, group)
        for i in range(4):
            assert tuple(sums[lane, i]) == (group + 8 * (i // 2), 2 * inside + i % 2)


def test_sums_lie_as_the_left_operand_of_the_next_product() -> None:
    for warps in (1, 4):
        assert accumulator(16 * warps, 64, (warps, 1)) == left_operand(16 * warps, 64, (warps, 1), 16)


# Reductions, conversions, and the same registers seen otherwise


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_reductions(seed: int) -> None:
    check(nv_cases.reduction(seed))


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_conversions(seed: int) -> None:
    check(nv_cases.conversion(seed))


@settings(max_examples=20)
@given(st.integers(0, 10**9))
def test_halves_of_bytes(seed: int) -> None:
    check(nv_cases.halves(seed))


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("case", [nv_cases.reduction, nv_cases.conversion, nv_cases.movement, nv_cases.halves])
@settings(max_examples=500)
@given(seed=st.integers(0, 10**9))
def test_many_tiles(case: Callable[[int], Case], part: int, seed: int) -> None:
    """In parts, which several processes share."""
    check(case(seed * 6 + part))


def test_rows_of_a_warp_meet_by_shuffles_alone() -> None:
    layout = Layout.of([Digit(4, 1, 1), Digit(8, 0, 1), Digit(4, 0, 16)], [Digit(2, 0, 8)])
    whole, part = tile_text((64, 4), f32, layout), tile_text((64,), f32, layout.without(1))
    body = f"""%t = tile.load %a0[%c0, %c0] : {view_text(2, f32)} -> {whole}
%r = tile.reduce<top> %t, 1 : {whole} -> {part}
tile.store %r, %a1[%c0] : {part}, {view_text(1, f32)}"""
    source = function_text([view_text(2, f32), view_text(1, f32)], ["[64, 4]", "[64]"], 128, body)
    found = instructions_of(Case(source, []))
    assert found["shfl.sync.bfly.b32"] == 4
    assert not any(name.startswith(("bar", "st.shared", "ld.shared")) for name in found)
    made = compile_lowered(read(source), "k")
    assert made.shared == 0


def transposed_text(size: int, dtype: DType) -> str:
    vector = 16 // dtype.storage.itemsize
    layout = blocked((size, size), 128, vector)
    here, there = tile_text((size, size), dtype, layout), tile_text((size, size), dtype, layout.permuted((1, 0)))
    return function_text(
        [view_text(2, dtype)] * 2,
        [f"[{size}, {size}]"] * 2,
        128,
        f"""%t = tile.load %a0[%c0, %c0] : {view_text(2, dtype)} -> {here}
%r = tile.trans %t, [1, 0] : {here} -> {there}
%c = nv.convert %r : {there} -> {here}
tile.store %c, %a1[%c0, %c0] : {here}, {view_text(2, dtype)}""",
        marks=" attributes {row_aligned = array<i64: 0, 1>}",
    )


@pytest.mark.parametrize("dtype", [f32, bf16, i8], ids=str)
def test_transposing_has_no_bank_conflicts(dtype: DType) -> None:
    given_ = nv_cases.numbers(np.random.default_rng(0), (64, 64), dtype)
    mine = [given_, np.zeros_like(given_)]
    made = run(read(transposed_text(64, dtype)), "k", mine)
    np.testing.assert_array_equal(mine[1].astype(np.float32), given_.T.astype(np.float32))
    taken, least = made.conflicts
    assert taken <= 1.5 * least
    ptx_checks.check_clean(made.program.ptx, "sm_90a")


def test_plans_find_orders_without_conflicts() -> None:
    """From accumulators to rows and back, and transposed squares of registers: no bank conflicts."""
    square = Layout.of([Digit(8, 1, 8), Digit(16, 0, 4)], [Digit(8, 1, 1), Digit(4, 0, 1)])
    for source, result, itemsize in (
        (accumulator(64, 64), blocked((64, 64), 128, 4), 4),
        (accumulator(64, 64), blocked((64, 64), 128, 8), 2),
        (blocked((64, 64), 128, 8), accumulator(64, 64), 2),
        (square.permuted((1, 0)), square, 2),
    ):
        found = plan(source, result, (64, 64), itemsize, 128)
        assert found.wavefronts == found.least


REFUSED = {
    "tile.expand": "%x = tile.expand %t, 0 : {part} -> {other}",
    "tile.broadcast": "%e = tile.expand %t, 1 : {part} -> {column}\n%x = tile.broadcast %e : {column} -> {wide}",
    "tile.trans": "%e = tile.expand %t, 1 : {part} -> {column}\n%x = tile.trans %e, [1, 0] : {column} -> {other}",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_threads_do_not_hold_needs_a_conversion(name: str) -> None:
    layout, elsewhere = blocked((64,), 32, 2), blocked((64,), 32, 1)
    names = {
        "part": tile_text((64,), f32, layout),
        "column": tile_text((64, 1), f32, layout.with_axis(1)),
        "other": tile_text((1, 64), f32, elsewhere.with_axis(0)),
        "wide": tile_text((64, 4), f32, elsewhere.with_axis(1)),
    }
    body = f"%t = tile.load %a0[%c0] : {view_text(1, f32)} -> {names['part']}\n{REFUSED[name].format(**names)}"
    with pytest.raises(CompileError, match=f"{re.escape(name)} from layout .* needs nv.convert"):
        run(read(function_text([view_text(1, f32)], ["[64]"], 32, body)), "k", [np.zeros(64, np.float32)])


def test_operands_in_other_layouts_need_a_conversion() -> None:
    a, b = (tile_text((64,), f32, blocked((64,), 32, width)) for width in (1, 2))
    body = f"""%x = tile.load %a0[%c0] : {view_text(1, f32)} -> {a}
%y = tile.load %a0[%c0] : {view_text(1, f32)} -> {b}
%z = tile.ew<add> %x, %y : {a}, {b} -> {a}"""
    with pytest.raises(CompileError, match=r"needs nv\.convert"):
        run(read(function_text([view_text(1, f32)], ["[64]"], 32, body)), "k", [np.zeros(64, np.float32)])


def test_packed_tiles_that_loops_hand_on_unchanged() -> None:
    """Words made at the end of a loop's body are nobody else's."""
    layout = blocked((64,), 32, 2)
    type_, view = tile_text((64,), bf16, layout), view_text(1, bf16)
    truth = tile_text((64,), bool_, layout)
    body = f"""%one = arith.constant 1 : index
%x = tile.load %a0[%c0] : {view} -> {type_}
%m = tile.ew<isnan> %x : {type_} -> {truth}
%y = tile.ew<select> %m, %x, %x : {truth}, {type_}, {type_} -> {type_}
%r = scf.for %i = %c0 to %a1 step %one iter_args(%v = %x) -> ({type_}) {{
  scf.yield %y : {type_}
}}
tile.store %y, %a2[%c0] : {type_}, {view}
tile.store %r, %a3[%c0] : {type_}, {view}"""
    source = function_text([view, "index", view, view], ["[64]", "[]", "[64]", "[64]"], 32, body)
    given_ = nv_cases.numbers(np.random.default_rng(0), (64,), bf16)
    for iterations in (0, 2):
        check(Case(source, [given_, iterations, np.zeros_like(given_), np.zeros_like(given_)], 2))
