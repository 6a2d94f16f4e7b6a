"""Odd kernels in which memory decides: machine code against the interpreter, and equal bits with any threads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odd_places
from tessera import CompileError, DtypeError, RangeError, ShapeError, kernel, knobs, tile
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.runtime.native import pool

Array = np.ndarray[Any, np.dtype[Any]]


def agree(found: Array, expected: Array) -> None:
    """Equal, NaN and the signs of zeros included; sums may differ in the last bits."""
    if expected.dtype.kind in "biu":
        assert np.array_equal(found, expected)
        return
    one, other = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert np.array_equal(np.signbit(one[other == 0]), np.signbit(other[other == 0]))


# Sorting networks are long, and so are their compiles.
LONG = {name for name in (*odd_places.CASES, *odd_places.REPEATED) if name.startswith("sorted_")}


def named(cases: Iterable[str]) -> Any:
    marked = [pytest.param(name, marks=[pytest.mark.acceptance] * (name in LONG)) for name in cases]
    return pytest.mark.parametrize("name", marked)


@named(odd_places.CASES)
def test_machine_code_gives_what_the_interpreter_gives(name: str) -> None:
    case = odd_places.CASES[name]
    expected, found = case.arrays(), case.arrays()
    with knobs.interpret.using(True):
        case.program[case.grid](*expected)
    with knobs.backend.using("cpu"):
        case.program[case.grid](*found)
    for one, other in zip(found, expected, strict=True):
        agree(one, other)


def test_nested_loops_are_left_as_python_leaves_them() -> None:
    case = odd_places.CASES["nested_break"]
    counts, limits, out = case.arrays()
    case.program[case.grid](counts, limits, out)
    for row, count in enumerate(counts.tolist()):
        total = 0
        for a in range(count):
            left = int(limits[row, a])
            if left > 8:
                break
            for b in range(left):
                if b * a > 3:
                    break
                if (a + b) % 3 != 2:
                    total += 10 * a + b
            while left > 0:
                left -= 2
                if left == 1:
                    total += 1000
                    break
        assert out[row] == total


# Laws


@kernel
def looked_up_and_added(x: Any, table: Any, keep: Any, out: Any):
    p = tile.program_id(0) * 4
    at, there = tile.load(table, at=(p,), shape=(4,)), tile.load(keep, at=(p,), shape=(4,))
    inside = tile.iota(4) + p < table.shape[0]
    part = tile.gather(x, at, shape=(8,), mask=there & inside, pad=0.5)
    tile.scatter_add(out, at, part, mask=inside)


@kernel
def packed(x: Any, starts: Any, order: Any, out: Any):
    """Sequences of different lengths, taken in an order, one behind the other."""
    s = tile.program_id(0)
    which = tile.item(order, s)
    end = tile.item(starts, which + 1)
    for at in tile.range(tile.item(starts, which), end, 4):
        there = (tile.iota((4, 1)) + at < end) & (tile.iota((1, 8), 1) < x.shape[1])
        part = tile.load(x, at=(at, 0), shape=(4, 8))
        tile.store(out[s], part, at=(at - tile.item(starts, which), 0), mask=there)


tables = st.lists(st.one_of(st.integers(-2, 7), st.sampled_from((2**31, -(2**32), 2**62))), max_size=9)


def stretched(array: Array, how: int) -> Array:
    """The same numbers: as they are, backwards with holes between them, or transposed in memory."""
    if how == 1:
        memory = np.zeros(tuple(3 * size for size in array.shape), array.dtype)
        view = memory[(slice(None, None, -3),) * array.ndim]
        view[...] = array
        return view
    return np.ascontiguousarray(array.T).T if how == 2 else array.copy()


@given(data=st.data())
@settings(max_examples=25)
def test_tables_with_repeats_holes_and_what_is_not_there(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 9))
    table = np.array(data.draw(tables), np.int64)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))), bool)
    x = np.random.default_rng(0).integers(-9, 9, (height, width)).astype(np.float32)
    expected = np.zeros((height, width), np.float32)
    for index, there in zip(table.tolist(), keep.tolist(), strict=True):
        if 0 <= index < height:
            expected[index, :8] += x[index, :8] if there else 0.5
    ways = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    for interpreted in (True, False):
        out = stretched(np.zeros_like(expected), ways[1])
        with knobs.interpret.using(interpreted):
            looked_up_and_added[3](stretched(x, ways[0]), table, keep, out)
        assert np.array_equal(out, expected)


@given(data=st.data())
@settings(max_examples=25)
def test_sequences_of_different_lengths_and_empty_ones(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 11), min_size=1, max_size=5))
    width, starts = data.draw(st.integers(0, 8)), np.cumsum([0, *lengths]).astype(np.int32)
    order = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=4)), np.int8)
    x = np.random.default_rng(1).standard_normal((int(starts[-1]), width)).astype(np.float32)
    expected = np.full((len(order), 11, width), 9, np.float32)
    for number, which in enumerate(order.tolist()):
        expected[number, : lengths[which]] = x[starts[which] : starts[which + 1]]
    how = data.draw(st.integers(0, 2))
    for interpreted in (True, False):
        out = np.full_like(expected, 9)
        with knobs.interpret.using(interpreted):
            packed[len(order)](stretched(x, how), starts, order, out)
        assert np.array_equal(out, expected)


@given(data=st.data())
@settings(max_examples=15)
def test_checks_find_each_entry_that_is_not_there_and_no_other(data: st.DataObject) -> None:
    table = np.array(data.draw(tables), np.int64)
    x, out, keep = np.ones((5, 8), np.float32), np.zeros((5, 8), np.float32), np.ones(len(table), bool)
    wrong = [index for index in table.tolist() if not 0 <= index < 5]
    with knobs.checks.using("bounds"):
        if wrong:
            with pytest.raises(RangeError, match="gather has an index outside its view, along axis 0"):
                looked_up_and_added[3](x, table, keep, out)
        else:
            looked_up_and_added[-(-len(table) // 4)](x, table, keep, out)
    if wrong:
        with checking(Checks(bounds=True)), pytest.raises(RangeError, match=f"index {wrong[0]} of axis 0 is out of"):
            looked_up_and_added[-(-len(table) // 4)](x, table, keep, out)


# What went wrong once


@kernel
def every(x: Any, steps: Any, out: Any, *, leave: bool):
    total = 0.0
    for at in tile.range(0, x.shape[0], tile.item(steps, 0)):
        total = total + tile.item(x, at)
        if leave and at > 5:
            break
    tile.store(out, tile.full((1,), total), at=(0,))


@pytest.mark.parametrize("leave", [False, True])
@pytest.mark.parametrize("step", [0, -1, -(2**62)])
def test_a_loop_ends_whatever_its_step_is_and_the_step_is_refused(step: int, leave: bool) -> None:
    for interpreted in (True, False):
        with knobs.interpret.using(interpreted), pytest.raises(CompileError, match=r"tile\.range has a step below 1"):
            every[1](np.ones(9, np.float32), np.array([step]), np.zeros(1, np.float32), leave=leave)


@kernel
def every_of(x: Any, out: Any, step: int):
    total = 0.0
    for at in tile.range(0, x.shape[0], step):
        total = total + tile.item(x, at)
    tile.store(out, tile.full((1,), total), at=(0,))


def test_a_step_that_is_an_argument_is_refused_too() -> None:
    out = np.zeros(1, np.float32)
    every_of[1](np.ones(9, np.float32), out, 2)
    assert out[0] == 5
    with pytest.raises(CompileError, match=r"tile\.range has a step below 1") as caught:
        every_of[1](np.ones(9, np.float32), out, 0)
    assert "loops go upward" in str(caught.value)


@kernel
def mistaken(x: Any, rows: Any, out: Any, *, how: str):
    part: Any = tile.load(x, at=(0, 0), shape=(4, 8))
    {
        "a view below 0": lambda: tile.load(x[-1], at=0, shape=8),
        "an array compared": lambda: rows[0] == 3,
        "a remainder of 0": lambda: tile.load(x, at=(tile.item(rows, 0) % 0, 0), shape=(4, 8)),
        "offsets of more than 64 bits": lambda: tile.load(x, at=(1 << 70, 0), shape=(4, 8)),
        "a mask for a block": lambda: tile.store(out, part, part > 0, at=(0, 0)),
    }[how]()


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("a view below 0", RangeError, "indices count from 0"),
        ("an array compared", DtypeError, "is memory, not a value"),
        ("a remainder of 0", CompileError, "a position is divided by 0"),
        ("offsets of more than 64 bits", DtypeError, "is no position: those have 64 bits"),
        ("a mask for a block", ShapeError, "a mask is given by name"),
    ],
)
def test_what_was_taken_without_a_word_is_refused(how: str, kind: Any, words: str) -> None:
    with pytest.raises(kind) as caught:
        mistaken[1](np.ones((20, 8), np.float32), np.arange(4), np.ones((20, 8), np.float32), how=how)
    assert words in str(caught.value)
    assert caught.value.span is not None


# Equal bits


@named(odd_places.REPEATED)
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    case, before, found = odd_places.REPEATED[name], pool.threads(), set[bytes]()
    try:
        with knobs.deterministic.using(True), knobs.backend.using("cpu"):
            for count in (1, 2, 3, 5, 2):
                pool.set_threads(count)
                arrays = case.arrays()
                case.program[case.grid](*arrays)
                found.add(arrays[-1].tobytes())
    finally:
        pool.set_threads(before)
    assert len(found) == 1
    assert np.frombuffer(found.pop(), np.uint8).any()
