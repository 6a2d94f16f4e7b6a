"""Places that memory decides: items, gathers and scatters, against NumPy, in the interpreter and as machine code."""

from __future__ import annotations

from typing import Any

import deciding_kernels
import numpy as np
import pytest
from deciding_kernels import (
    a_column,
    gathered_columns,
    gathered_rows,
    item_of,
    open_scatter,
    pairs,
    place_of,
    scattered,
    stored_where,
    summed_segments,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import DtypeError, RaceError, RangeError, ShapeError, f32, i32, kernel, knobs, tile
from tessera.dtypes import types as dtypes
from tessera.dtypes.types import DType
from tessera.errors import CompileError, TesseraError
from tessera.interpreters.sanitizers.checks import Checks, checking

Array = np.ndarray[Any, np.dtype[Any]]

INTEGERS = (dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64, dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64)
FLOATS = (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16, dtypes.f8e4m3)


def everywhere(function: Any, *arrays: Any, grid: Any, **options: Any) -> list[list[Any]]:
    """The arrays after a call, by the interpreter and by machine code: the last is what a kernel fills."""
    last: Any = next(one for one in reversed(arrays) if hasattr(one, "dtype"))
    found: list[list[Any]] = []
    for interpreted in (True, False):
        copies: list[Any] = [np.array(one) if one is last else one for one in arrays]
        with knobs.interpret.using(interpreted):
            function[grid](*copies, **options)
        found.append(copies)
    return found


def strided(array: Array, how: int) -> Array:
    """The same numbers: as they are, backwards with gaps, or with columns side by side."""
    if how == 1:
        memory = np.zeros(tuple(2 * size for size in array.shape), array.dtype)
        view = memory[(slice(None, None, -2),) * array.ndim]
        view[...] = array
        return view
    return np.ascontiguousarray(array.T).T if how == 2 else array


# Items


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_integer_of_memory_is_a_position(dtype: DType) -> None:
    low, high = int(dtype.min_value), min(int(dtype.max_value), (1 << 63) - 1)
    x = np.diag(np.array([low, high, 0, 1], dtype.storage))
    for _, out in everywhere(place_of, x, np.zeros(5, np.int64), grid=5):
        assert out.tolist() == [low, high, 0, 1, 0]  # there is nothing at 4, 4


@pytest.mark.parametrize("dtype", [*FLOATS, dtypes.bool_], ids=str)
def test_other_numbers_of_memory_are_scalars(dtype: DType) -> None:
    x = np.array([0.5, -2.0, 0.0, np.inf if dtype is f32 else 1.5]).astype(dtype.storage)
    for _, out in everywhere(item_of, x, np.zeros(4, np.float32), grid=4):
        assert np.array_equal(out, x.astype(np.float32))


@given(data=st.data())
@settings(max_examples=12)
def test_memory_decides_where_a_loop_begins_and_ends(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=5))
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths))))
    x = np.arange(starts[-1], dtype=np.float32)
    expected = [x[a:b].sum() if use else 0 for a, b, use in zip(starts, starts[1:], wanted, strict=False)]
    for *_, out in everywhere(
        summed_segments, x, starts, wanted, np.zeros(len(lengths), np.float32), grid=len(lengths)
    ):
        assert np.allclose(out, expected)


# Gathers and scatters


def looked_up(x: Array, indices: Array, pad: float) -> Array:
    """Rows of `x` from column 2 on, eight wide, at some indices; `pad` where there is nothing."""
    found = np.full((len(indices), 8), pad, x.dtype)
    for number, index in enumerate(indices.tolist()):
        if 0 <= index < x.shape[0]:
            part = x[index, 2:10]
            found[number, : len(part)] = part
    return found


@given(data=st.data())
@settings(max_examples=20)
def test_a_gather_takes_what_is_there(data: st.DataObject) -> None:
    sizes = data.draw(st.tuples(st.integers(0, 7), st.integers(0, 12)))
    dtype, which = data.draw(st.sampled_from((*FLOATS, *INTEGERS))), data.draw(st.sampled_from(INTEGERS))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = strided(random.integers(0, 99, sizes).astype(dtype.storage), data.draw(st.integers(0, 2)))
    low = -3 if which.min_value < 0 else 0
    indices = random.integers(low, sizes[0] + 3, data.draw(st.integers(1, 9))).astype(which.storage)
    indices = strided(indices, data.draw(st.integers(0, 1)))
    pad = data.draw(st.sampled_from((0, 1)))
    expected, grid = looked_up(x, indices, pad), -(-len(indices) // 4)
    for *_, out in everywhere(gathered_rows, x, indices, np.zeros(expected.shape, x.dtype), grid=grid, pad=pad):
        assert np.array_equal(out.astype(np.float64), expected.astype(np.float64))
    for *_, out in everywhere(gathered_columns, x.T, indices, np.zeros(expected.T.shape, x.dtype), grid=grid, pad=pad):
        assert np.array_equal(out.astype(np.float64), expected.T.astype(np.float64))


def test_each_axis_may_have_its_own_indices() -> None:
    x = np.random.default_rng(0).standard_normal((8, 11, 3)).astype(np.float32)
    rows, columns = np.arange(8)[:, None], np.arange(4)
    for _, out, _ in everywhere(pairs, x, np.zeros((8, 4), np.float32), 5, grid=1):
        assert np.array_equal(out, x[rows, (rows * 5 + columns) % 11, 1])


def put(how: str, out: Array, rows: Array, value: Array) -> Array:
    """What a scatter makes of an array, from column 1 on."""
    made = out.copy()
    for row, new in zip(rows.tolist(), value, strict=True):
        if 0 <= row < out.shape[0]:
            for column, one in enumerate(new[: out.shape[1] - 1], 1):
                old = made[row, column]
                made[row, column] = {
                    "scatter": one,
                    "scatter_add": old + one,
                    "scatter_max": max(old, one),
                    "scatter_min": min(old, one),
                }[how]
    return made


@pytest.mark.parametrize("how", ["scatter", "scatter_add", "scatter_max", "scatter_min"])
@given(data=st.data())
@settings(max_examples=12)
def test_a_scatter_leaves_everything_else_alone(how: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from((dtypes.f32, dtypes.bf16, dtypes.f16, dtypes.i32, dtypes.i8, dtypes.u16)))
    height, width, count = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    rows = random.permutation(height + 6)[:count] - 3 if how == "scatter" else random.integers(-2, height + 2, count)
    value = random.integers(0, 9, (len(rows), 8)).astype(dtype.storage)
    out = random.integers(0, 9, (height, width)).astype(dtype.storage)
    expected, layout = put(how, out, rows, value), data.draw(st.integers(0, 2))
    for interpreted in (True, False):
        filled = strided(out.copy(), layout)
        with knobs.interpret.using(interpreted):
            scattered[-(-len(rows) // 4)](rows.astype(np.int64), value, filled, how=how)
        assert np.array_equal(filled.astype(np.float64), expected.astype(np.float64))


def test_a_masked_store_leaves_elements_as_they_are() -> None:
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    out = np.full((7, 12), 9, np.float32)
    expected = out.copy()
    expected[1:, 2:] = np.where(x[:6, :10] > 0, x[:6, :10], 9)
    for _, found in everywhere(stored_where, x, out, grid=1):
        assert np.array_equal(found, expected)


def test_a_view_is_taken_at_an_index_of_any_axis() -> None:
    x = np.random.default_rng(0).standard_normal((4, 5, 8)).astype(np.float32)
    for _, out in everywhere(a_column, x, np.zeros((5, 4, 8), np.float32), grid=5):
        expected = x.transpose(1, 0, 2) + x[1, :4, 0][None, :, None]
        assert np.array_equal(out, expected)


# Checks


def refused(call: Any, kind: type[TesseraError]) -> TesseraError:
    with checking(Checks.all()), pytest.raises(kind) as caught:
        call()
    return caught.value


def test_an_index_out_of_range_is_found_and_named() -> None:
    x, out = np.ones((5, 11), np.float32), np.zeros((4, 8), np.float32)
    error = refused(lambda: gathered_rows[1](x, np.array([0, 1, 5, -1]), out), RangeError)
    assert "gather of element [2, 0] in program instance [0]: index 5 of axis 0 is out of range, the size is 5" in str(
        error
    )
    assert "tile.gather(x, at" in str(error)
    assert "16 of 32 places" in str(error)
    error = refused(lambda: open_scatter[1](np.array([1, 2, -7, 3]), np.ones(4), np.zeros(6)), RangeError)
    assert "scatter of element [2] in program instance [0]: index -7 of axis 0 is out of range, the size is 6" in str(
        error
    )
    error = refused(lambda: item_of[4](np.ones(3, np.float32), np.zeros(4, np.float32)), RangeError)
    assert "item at [3] in program instance [3]: index 3 of axis 0 is out of range, the size is 3" in str(error)


def test_machine_code_finds_such_an_index_too() -> None:
    x, out = np.ones((5, 11), np.float32), np.zeros((4, 8), np.float32)
    with knobs.checks.using("bounds"):
        with pytest.raises(RangeError, match="gather has an index outside its view, along axis 0") as caught:
            gathered_rows[1](x, np.array([0, 1, 5, 2]), out)
        assert caught.value.span is not None
        assert caught.value.span.file == deciding_kernels.__file__
        with pytest.raises(RangeError, match="scatter_add has an index outside its view, along axis 0"):
            scattered[1](np.array([0, 1, -1, 2]), np.ones((4, 8), np.float32), out, how="scatter_add")
        with pytest.raises(RangeError, match=r"tile\.item has an index outside its view, along axis 0"):
            item_of[4](np.ones(3, np.float32), np.zeros(4, np.float32))
        gathered_rows[1](x, np.array([0, 1, 4, 2]), out)
        scattered[1](np.array([0, 1, 2]), np.ones((3, 8), np.float32), out, how="scatter_add")


def test_one_element_written_twice_is_a_race() -> None:
    error = refused(lambda: open_scatter[1](np.array([1, 2, 4, 2]), np.ones(4), np.zeros(6)), RaceError)
    assert "program instance [0] writes out[2] twice in one store" in str(error)
    assert "value 1 of" in str(error)
    assert "value 3 of" in str(error)


def test_two_instances_that_scatter_to_one_element_race() -> None:
    rows = np.array([0, 1, 2, 3, 6, 7, 2, 5])
    error = refused(lambda: open_scatter[2](rows, np.ones(8), np.zeros(8)), RaceError)
    assert "program instances [0] and [1] race" in str(error)
    assert str(error).count("out[2]") >= 2


def test_what_is_read_at_made_up_places_may_not_be_stored() -> None:
    x, out = np.ones((5, 11), np.float32), np.zeros((8, 8), np.float32)
    error = refused(lambda: gathered_rows[2](x, np.array([0, 1, 2, 3, 4]), out), ShapeError)
    assert "a value from beyond the array reaches a store" in str(error)


# Misuse


@kernel
def misused(x: Any, rows: Any, out: Any, *, how: str):
    here = tile.context()
    index: Any = tile.load(rows, at=(0,), shape=(4,))
    part: Any = tile.load(x, at=(0, 0), shape=(4, 8))
    {
        "item without all places": lambda: tile.item(x, 0),
        "item at a tile": lambda: tile.item(x, index, 0),
        "item of a tile": lambda: tile.item(part, 0, 0),
        "load at a tile": lambda: tile.load(x, at=(index, 0), shape=(4, 8)),
        "gather at a number": lambda: tile.gather(x, 3, shape=(8,)),
        "gather at floats": lambda: tile.gather(x, index.to(f32), shape=(8,)),
        "gather without sizes": lambda: tile.gather(x, index),
        "gather along no axis": lambda: tile.gather(x, index, 2, shape=(8,)),
        "gather of a tile": lambda: tile.gather(part, index, shape=(8,)),
        "gather with a mask of another shape": lambda: tile.gather(x, index, shape=(8,), mask=part > 0),
        "gather with numbers for a mask": lambda: tile.gather(x, index, shape=(8,), mask=index),
        "gather with one index of two": lambda: tile.gather(x, (index,)),
        "gather with each index and a shape": lambda: tile.gather(x, (index, index), shape=(8,)),
        "gather at numbers": lambda: tile.gather(x, (0, here.row_start)),
        "scatter of another type": lambda: tile.scatter(out, index, part.to(i32)),
        "scatter of another shape": lambda: tile.scatter(out, (index, index), part),
        "scatter of a number": lambda: tile.scatter(out, index, 1.0),
        "store with a mask of another shape": lambda: tile.store(out, part, at=(0, 0), mask=index > 0),
        "view at a slice": lambda: out[1:2],
        "view at a tile": lambda: out[index],
    }[how]()


MISUSES: dict[str, tuple[str, str]] = {
    "item without all places": ("an item of x", "give 2 places"),
    "item at a tile": ("at a tile of [4] i64", "tile.gather looks up many"),
    "item of a tile": ("tile.item works on an array argument", "pass a kernel argument"),
    "load at a tile": ("expected a position or a size, got a tile", "tile.gather and tile.scatter take a tile"),
    "gather at a number": ("expected a tile of indices, got 3", "for one element there is tile.item"),
    "gather at floats": ("indices are integers, and this is a tile of [4] f32", "tile.cast(x, i32)"),
    "gather without sizes": ("1 offsets and 0 sizes for its other axes", "give 1 offsets (at=) and 1 sizes (shape=)"),
    "gather along no axis": ("has no axis 2", "its axes are 0 to 1"),
    "gather of a tile": ("tile.gather works on an array argument", "pass a kernel argument"),
    "gather with a mask of another shape": (
        "the mask has the shape [4, 8], what it is for [4]",
        "a condition for each",
    ),
    "gather with numbers for a mask": ("a mask is a tile of conditions", "compare something"),
    "gather with one index of two": ("1 tiles of indices for x", "one for each of its 2 axes"),
    "gather with each index and a shape": ("says all of them", "leave them out"),
    "gather at numbers": ("none of the indices is a tile", "tile.item(x, i, …)"),
    "scatter of another type": ("storing i32 elements into out", "tile.cast(x, f32)"),
    "scatter of another shape": ("the tile is [4, 8], the places are [4]", "an element for each place"),
    "scatter of a number": ("tile.scatter takes a tile, got 1.0", "tile.load or tile.full"),
    "store with a mask of another shape": ("the mask has the shape [4], what it is for [4, 8]", "a condition for each"),
    "view at a slice": ("a view takes an integer or : for each axis", "tile.gather the elements"),
    "view at a tile": ("a view takes an integer or : for each axis", "tile.gather the elements"),
}


@pytest.mark.parametrize("how", MISUSES)
def test_misuse_says_what_to_write_instead(how: str) -> None:
    x, out = np.ones((4, 8), np.float32), np.ones((4, 8), np.float32)
    with pytest.raises((CompileError, ShapeError, DtypeError)) as caught:
        misused[1](x, np.arange(4), out, how=how)
    message, hint = MISUSES[how]
    assert message in str(caught.value)
    assert hint in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
