"""Tiles whose elements change places, against NumPy: in the interpreter and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera import DtypeError, ShapeError, f32, kernel, knobs, tile
from tessera.dtypes import types as dtypes
from tessera.errors import TesseraError

Array = np.ndarray[Any, np.dtype[Any]]
FLOATS = (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16)
WHOLE = (dtypes.i32, dtypes.i64, dtypes.i8, dtypes.u16)


@kernel
def rearranged(x: Any, out: Any, *, shape: Any, how: Any):
    found: Any = how(tile.load(x, at=(0,) * len(shape), shape=shape))
    tile.store(out, tile.cast(found, out.dtype), at=(0,) * found.ndim)


def check(x: Array, how: Callable[[Any], Any], expected: Array, rtol: float = 0, atol: float = 0) -> None:
    for interpreted in (True, False):
        out = np.zeros(expected.shape, expected.dtype)
        with knobs.interpret.using(interpreted):
            rearranged[1](x, out, shape=x.shape, how=how)
        wide = out.astype(np.float64), expected.astype(np.float64)
        assert np.allclose(*wide, rtol, atol, equal_nan=True) if atol else np.array_equal(*wide, equal_nan=True)


@st.composite
def tiles(draw: st.DrawFn, dtypes_: Any = (*FLOATS, *WHOLE), *, nan: bool = False, most: int = 19) -> tuple[Array, int]:
    shape = draw(st.one_of(st.tuples(st.integers(1, most)), st.tuples(st.integers(1, 9), st.integers(1, most))))
    dtype, random = draw(st.sampled_from(dtypes_)), np.random.default_rng(draw(st.integers(0, 99)))
    x = random.integers(0 if dtype.min_value == 0 else -5, 6, shape).astype(dtype.storage)
    if nan and dtype.is_float:
        x[random.random(shape) < 0.2] = np.nan
        x[random.random(shape) < 0.1] = -np.inf
    return x, draw(st.integers(-len(shape), len(shape) - 1))


@given(data=st.data())
@settings(max_examples=8)
def test_parts_are_cut_turned_round_and_joined(data: st.DataObject) -> None:
    x, axis = data.draw(tiles())
    start = data.draw(st.integers(0, x.shape[axis] - 1))
    key = [slice(None)] * x.ndim
    key[axis] = slice(start, data.draw(st.integers(start + 1, x.shape[axis])), data.draw(st.integers(1, 3)))
    part, by = tuple(key), data.draw(st.sampled_from((-1, -2)))
    check(x, lambda v: v[part], x[part])
    key[axis] = slice(None, None, by)
    back = tuple(key)
    check(x, lambda v: v[back], x[back])
    check(x, lambda v: tile.flip(v, axis), np.flip(x, axis))
    check(x, lambda v: tile.concat((v, v[part], v), axis), np.concatenate([x, x[part], x], axis))


@given(data=st.data())
@settings(max_examples=6)
def test_elements_are_counted_row_by_row_in_any_shape(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 12))
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    fitting = [(one, x.size // one) for one in range(1, x.size + 1) if x.size % one == 0]
    shape = data.draw(st.sampled_from([*fitting, (x.size,)]))
    check(x, lambda v: tile.reshape(v, shape), x.reshape(shape))
    check(x, lambda v: tile.reshape(tile.reshape(v, -1), (columns, -1)), x.reshape(columns, -1))


@given(data=st.data())
@settings(max_examples=6)
def test_elements_are_taken_from_where_indices_say(data: st.DataObject) -> None:
    x = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, 99, (5, 7)).astype(np.float32)
    step, shift = data.draw(st.integers(1, 4)), data.draw(st.integers(-2, 2))
    indices = np.arange(4)[None] * step + shift + np.arange(5)[:, None]
    inside = (indices >= 0) & (indices < 7)
    expected = np.where(inside, np.take_along_axis(x, np.clip(indices, 0, 6), 1), 0)

    def along(v: Any) -> Any:
        return tile.take(v, tile.iota((5, 4), 1) * step + shift + tile.iota((5, 4), 0), 1)

    check(x, along, expected)
    check(x, lambda v: tile.take(v, (tile.iota((3, 1)), tile.iota((1, 2), 1) * step)), x[:3, : 2 * step : step])


@given(data=st.data())
@settings(max_examples=6)
def test_running_sums(data: st.DataObject) -> None:
    x, axis = data.draw(tiles((dtypes.f32, dtypes.i32, dtypes.i64)))
    check(x, lambda v: tile.cumsum(v, axis), np.cumsum(x, axis, dtype=x.dtype))
    backwards = np.flip(np.cumsum(np.flip(x, axis), axis, dtype=x.dtype), axis)
    check(x, lambda v: tile.cumsum(v, axis, reverse=True), backwards)
    check(x, lambda v: tile.scan(v, tile.maximum, axis), np.maximum.accumulate(x, axis))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_keeps_the_order_of_its_operands(reverse: bool) -> None:
    """A linear recurrence: the function is associative, and its operands cannot be exchanged."""
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 13)).astype(np.float32)
    gates, expected, state = 1 / (1 + np.exp(-x)), np.zeros_like(x), np.zeros(3)
    for at in reversed(range(13)) if reverse else range(13):
        state = gates[:, at] * state + x[:, at]
        expected[:, at] = state

    def combine(one: Any, other: Any) -> Any:
        first, second = (other, one) if reverse else (one, other)
        return first[0] * second[0], first[1] * second[0] + second[1]

    check(x, lambda v: tile.scan((tile.sigmoid(v), v), combine, reverse=reverse)[1], expected, rtol=1e-4, atol=1e-5)


@given(data=st.data())
@settings(max_examples=6)
def test_sorting_puts_nan_last_and_keeps_equal_elements_in_order(data: st.DataObject) -> None:
    x, axis = data.draw(tiles(nan=True, most=9))
    wide = x.astype(np.float64)  # NumPy does not know where NaN belongs in narrow types
    up, order = np.sort(wide, axis), np.argsort(wide, axis, kind="stable")
    check(x, lambda v: tile.sort(v, axis), up)
    check(x, lambda v: tile.argsort(v, axis), order)
    k = data.draw(st.integers(1, x.shape[axis]))
    key = [slice(None)] * x.ndim
    key[axis] = slice(0, k)
    check(x, lambda v: tile.topk(v, k, axis)[0], np.flip(up, axis)[tuple(key)])
    check(x, lambda v: tile.topk(v, k, axis, largest=False)[1], order[tuple(key)])


def test_the_first_of_equal_elements_comes_first_downward_too() -> None:
    x = np.array([[3, 1, 3, np.nan, 1, 3, 2], [0, 0, 5, 5, 0, 5, 0]], np.float32)
    check(x, lambda v: tile.argsort(v, descending=True), np.array([[3, 0, 2, 5, 6, 1, 4], [2, 3, 5, 0, 1, 4, 6]]))


@pytest.mark.parametrize("dtype", [dtypes.u8, dtypes.u16, dtypes.u32, dtypes.i32, dtypes.u64], ids=str)
def test_whole_numbers_of_either_half_are_in_order(dtype: dtypes.DType) -> None:
    least, most = int(dtype.min_value), int(dtype.max_value)
    x = np.array([[1, most, 5, most // 2 + 1, least, most, most // 2]], dtype.storage)
    check(x, tile.argsort, np.argsort(x, kind="stable"))
    check(x, lambda v: tile.topk(v, 3)[1], np.array([[1, 5, 3]]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_of_vectors_are_sorted(dtype: dtypes.DType) -> None:
    x = np.random.default_rng(0).standard_normal((2, 70)).astype(dtype.storage)
    check(x, tile.sort, np.sort(x.astype(np.float64)).astype(dtype.storage))


@given(data=st.data())
@settings(max_examples=6)
def test_the_first_of_the_largest_is_found(data: st.DataObject) -> None:
    x, axis = data.draw(tiles(nan=True))
    wide = x.astype(np.float64)
    check(x, lambda v: tile.argmax(v, axis, keepdims=True), np.expand_dims(wide.argmax(axis), axis))
    check(x, lambda v: tile.argmin(v, axis, keepdims=True), np.expand_dims(wide.argmin(axis), axis))


@kernel
def misused(x: Any, *, how: str):
    v: Any = tile.load(x, at=(0, 0), shape=(4, 8))
    {
        "reshape": lambda: tile.reshape(v, (5, 7)),
        "reshape by two": lambda: tile.reshape(v, (-1, -1)),
        "reshape by a float": lambda: tile.reshape(v, 2.0),
        "reshape of a view": lambda: tile.reshape(x, (32,)),
        "an empty part": lambda: v[2:2],
        "a row": lambda: v[0],
        "a part by a tile": lambda: v[tile.iota(4)],
        "a part by a scalar": lambda: v[: tile.program_id(0)],
        "a part by a float": lambda: v[:0.5],
        "slice beyond": lambda: tile.slice(v, (0, 4), (4, 5)),
        "slice of one axis": lambda: tile.slice(v, (0,), (4,)),
        "flip": lambda: tile.flip(v, 2),
        "concat of types": lambda: tile.concat((v, v.to(dtypes.i32))),
        "concat of sizes": lambda: tile.concat((v, v[:2]), 1),
        "concat of nothing": lambda: tile.concat(()),
        "scan": lambda: tile.scan(v, lambda a, b: tile.sum(a + b)),
        "scan of shapes": lambda: tile.scan((v, v[:2]), lambda a, b: a),
        "topk": lambda: tile.topk(v, 9),
        "topk of half": lambda: tile.topk(v, 0.5),  # pyright: ignore[reportArgumentType]  (the mistake)
        "sort": lambda: tile.sort(v, None),  # pyright: ignore[reportArgumentType]  (the mistake)
        "argmax": lambda: tile.argmax(x),
        "take": lambda: tile.take(v, tile.iota((2, 8)), 1),
        "take at floats": lambda: tile.take(v, v, 1),
        "take of one": lambda: tile.take(v, (tile.iota(4),)),
    }[how]()


MISUSES: dict[str, tuple[str, str]] = {
    "reshape": ("it has 32 elements", "the product of all sizes"),
    "reshape by two": ("it has 32 elements", "the product of all sizes"),
    "reshape by a float": ("must be an integer known now, got 2.0", "give a number"),
    "reshape of a view": ("tile.reshape takes a tile", "tile.load"),
    "an empty part": ("is cut into nothing along axis 0", "a tile has elements along every axis"),
    "a row": ("only None and slices of numbers are possible", "tile.take gives the elements"),
    "a part by a tile": ("only None and slices of numbers are possible", "tile.take gives the elements"),
    "a part by a scalar": ("is known only when the kernel runs", "are static"),
    "a part by a float": ("is cut by", "between numbers known now"),
    "slice beyond": ("leaves an axis of 8", "inside of its tile"),
    "slice of one axis": ("1 starts and 1 sizes", "give 2 of each"),
    "flip": ("axis 2", ""),
    "concat of types": ("tile.concat of a tile of [4, 8] f32 and a tile of [4, 8] i32", "cast one of the two"),
    "concat of sizes": ("along axis 1", "other axes have equal sizes"),
    "concat of nothing": ("tile.concat of no tiles", "at least one"),
    "scan": ("the function of tile.scan gives", "tiles of the same shapes"),
    "scan of shapes": ("tiles of different shapes", "broadcast them first"),
    "topk": ("the k of tile.topk is 9, and 1 to 8 are possible", "check the sizes"),
    "topk of half": ("the k of tile.topk must be an integer known now, got 0.5", "give a number"),
    "sort": ("tile.sort goes along one axis, and None is none", "give its number"),
    "argmax": ("tile.argmax takes a tile", "tile.load"),
    "take": ("indices of [2, 8] along axis 1", "or 1"),
    "take at floats": ("indices are integers", "cast it"),
    "take of one": ("1 tiles of indices for a tile of [4, 8] f32", "give 2"),
}


@pytest.mark.parametrize("how", MISUSES)
def test_misuse_says_what_to_write_instead(how: str) -> None:
    with pytest.raises((ShapeError, DtypeError, TesseraError)) as caught:
        misused[1](np.ones((4, 8), np.float32), how=how)
    message, hint = MISUSES[how]
    assert message in str(caught.value)
    assert hint in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_what_beyond_an_array_was_made_up_stays_so() -> None:
    from tessera.interpreters.sanitizers.checks import Checks, checking

    @kernel
    def turned(x: Any, out: Any):
        tile.store(out, tile.flip(tile.load(x, at=(0,), shape=(8,)).to(f32)), at=(0,))

    with checking(Checks.all()), pytest.raises(ShapeError, match="a value from beyond the array reaches a store"):
        turned[1](np.ones(5, np.float32), np.zeros(8, np.float32))
