"""Views at indices from memory: nothing lies where a table is wrong, on every backend, and checks find it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from deciding_kernels import paged, paged_columns, paged_out, paged_twice
from hypothesis import given, settings
from hypothesis import strategies as st
from test_places import everywhere, refused, strided

from tessera import RangeError, ShapeError, kernel, knobs, tile
from tessera.ir.tile import dialect as tile_ir
from tessera.ir.tile.parts import PART, conditions_of

Array = np.ndarray[Any, np.dtype[Any]]

WRONG = (-1, -(2**62), 2**31 - 1, 2**32, 2**32 + 1, 2**62, -(2**32))
"""Indices that lie nowhere, though some of their halves do."""
tables = st.lists(st.one_of(st.integers(-2, 6), st.sampled_from(WRONG)), min_size=2, max_size=6)


def page(pages: Array, index: int) -> Array:
    """One of the pages, or one without elements."""
    return pages[index] if 0 <= index < len(pages) else pages[:0].reshape(0, *pages.shape[2:])


@st.composite
def some_pages(draw: st.DrawFn) -> tuple[Array, Array]:
    sizes = draw(st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(1, 9)))
    dtype = draw(st.sampled_from((np.float32, np.float64, np.float16, np.int32, np.uint8)))
    pages = np.random.default_rng(draw(st.integers(0, 99))).integers(1, 99, sizes).astype(dtype)
    return strided(pages, draw(st.integers(0, 1))), np.array(draw(tables), np.int64)


@given(some_pages(), st.sampled_from((0, 3)))
@settings(max_examples=20)
def test_a_page_that_is_not_there_is_padding(made: tuple[Array, Array], pad: int) -> None:
    pages, table = made
    expected = np.full((len(table), 4, 8), pad, pages.dtype)
    for number, index in enumerate(table.tolist()):
        found = page(pages, index)[:, :8]
        expected[number, : found.shape[0], : found.shape[1]] = found
    for _, _, out in everywhere(paged, pages, table, np.zeros_like(expected), grid=len(table), pad=pad):
        assert np.array_equal(out, expected)


@given(some_pages())
@settings(max_examples=20)
def test_so_are_rows_of_pages_one_element_and_gathers(made: tuple[Array, Array]) -> None:
    pages, table = made[0].astype(np.float32), made[1]
    expected = np.zeros((len(table) - 1, 8), np.float32)
    for number, (one, other) in enumerate(itertools.pairwise(table.tolist())):
        row = np.zeros(16, np.float32)
        rows = page(pages, one)
        if 0 <= other < len(rows):
            row[: rows.shape[1]] = rows[other]
        expected[number] = row[1:9] + row[2] + row[np.arange(8) // 2]
    for _, _, out in everywhere(paged_twice, pages, table, np.zeros_like(expected), grid=len(expected)):
        assert np.array_equal(out, expected)


@given(some_pages())
@settings(max_examples=20)
def test_so_is_a_view_at_an_index_of_another_axis(made: tuple[Array, Array]) -> None:
    pages, table = made
    expected = np.zeros((len(table), 8, 8), pages.dtype)
    for number, index in enumerate((table + 1).tolist()):
        found = pages[:, index, :8] if 0 <= index < pages.shape[1] else pages[:0, 0, :8]
        expected[number, : found.shape[0], : found.shape[1]] = found
    for _, _, out in everywhere(paged_columns, pages, table, np.zeros_like(expected), grid=len(table)):
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("how", ["store", "atomic", "scatter"])
@given(data=st.data())
@settings(max_examples=12)
def test_nothing_is_written_to_a_page_that_is_not_there(how: str, data: st.DataObject) -> None:
    table = np.array(data.draw(st.permutations([0, 1, 2, 3, *WRONG])))[: data.draw(st.integers(1, 11))]
    values = np.random.default_rng(0).standard_normal((len(table), 4, 8)).astype(np.float32)
    sizes = data.draw(st.tuples(st.integers(0, 4), st.integers(1, 6), st.integers(1, 12)))
    # What lies around the pages has to stay as it is.
    around = np.full((sizes[0] + 2, *sizes[1:]), 9, np.float32)
    expected = around.copy()
    for value, index in zip(values, table.tolist(), strict=True):
        if 0 <= index < sizes[0]:
            part = expected[1 + index, :4, :8]
            part[...] = value[: part.shape[0], : part.shape[1]] + (0 if how == "store" else part)
    for interpreted in (True, False):
        memory = around.copy()
        with knobs.interpret.using(interpreted):
            paged_out[len(table)](values, table, memory[1:-1], how=how)
        assert np.array_equal(memory, expected)


def test_checks_name_the_index() -> None:
    pages, out = np.ones((5, 4, 8), np.float32), np.zeros((3, 4, 8), np.float32)
    error = refused(lambda: paged[3](pages, np.array([0, 4, 7]), out), RangeError)
    assert "a view in program instance [2]: index 7 of axis 0 is out of range, the size is 5" in str(error)
    assert "pages[tile.item(table, i)]" in str(error)
    with knobs.checks.using("bounds"):
        for table in ([0, -1, 1], [0, 1, 2**32]):
            with pytest.raises(RangeError, match="view has an index out of range, along axis 0") as caught:
                paged[3](pages, np.array(table), out)
            assert "pages[tile.item(table, i)]" in str(caught.value)
        paged[3](pages, np.array([0, 4, 2]), out)


@kernel
def rows_at(x: Any, out: Any, first: int):
    i = tile.program_id(0)
    tile.store(out[i], tile.load(x[first + i * 2], at=(0,), shape=(8,)), at=(0,))


def test_checks_find_an_index_that_the_program_computes() -> None:
    x, out = np.ones((5, 8), np.float32), np.zeros((3, 8), np.float32)
    with knobs.checks.using("bounds"):
        rows_at[3](x, out, 0)
        for first in (-1, 1):
            with pytest.raises(RangeError, match="view has an index out of range, along axis 0"):
                rows_at[3](x, out, first)
    assert "index 5 of axis 0 is out of range" in str(refused(lambda: rows_at[3](x, out, 1), RangeError))


def test_only_an_index_that_memory_decides_is_guarded() -> None:
    arrays = np.ones((5, 4, 8), np.float32), np.zeros(3, np.int64), np.ones((3, 4, 8), np.float32)
    views = [op for op in paged[3].lower(*arrays).module.walk() if isinstance(op, tile_ir.ViewOp)]
    guarded = [op for op in views if PART in op.attributes]
    assert (len(views), len(guarded)) == (2, 1)
    assert len(conditions_of(guarded[0])) == 1


@kernel
def one_element(x: Any, table: Any, out: Any):
    found = x[tile.item(table, 0)]
    tile.store(out, tile.load(found, at=(), shape=())[None], at=(0,))


def test_a_view_without_axes_says_what_to_write_instead() -> None:
    with pytest.raises(ShapeError, match="a view without axes at an index from memory") as caught:
        one_element[1](np.ones(3, np.float32), np.array([1]), np.zeros(1, np.float32))
    assert "tile.item(x, i, …)" in str(caught.value)
