"""Parameters annotated `Tile`: whose rows they are, what is whole, which sizes are guards, and what is refused."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera import Schedule, ShapeError, Tile, bf16, f16, f32, kernel, knobs, tile
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile_dialect

Array = np.ndarray[Any, np.dtype[Any]]
LEADING = [((), ()), ((3,), (3,)), ((3,), ()), ((2, 4), (2, 2)), ((2, 3), (6,)), ((6,), (2,))]
few = settings(max_examples=20, deadline=None)


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


@kernel
def scores(q: Tile, k: Tile) -> Tile:
    return tile.dot(q, k.T) / sqrt(q.shape[1])


def spread(array: Array, leading: tuple[int, ...]) -> Array:
    """An array with every leading entry repeated for the group of program instances that shares it."""
    if array.ndim == 2:
        return np.broadcast_to(array, (*leading, *array.shape))
    if array.ndim - 2 != len(leading):
        grouped: Array = array.reshape(-1, *array.shape[-2:])
        return np.repeat(grouped, prod(leading) // len(grouped), 0).reshape(*leading, *array.shape[-2:])
    for axis, size in enumerate(leading):
        array = np.repeat(array, size // array.shape[axis], axis)
    return array


@few
@given(
    st.sampled_from(LEADING),
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 40),
    st.sampled_from([1, 7, 16, 64]),
    st.sampled_from([f32, f16, bf16]),
)
def test_the_first_is_rows_and_the_others_are_whole(
    leading: tuple[tuple[int, ...], tuple[int, ...]], rows: int, columns: int, width: int, block: int, dtype: Any
) -> None:
    q = normal(*leading[0], rows, width, dtype=dtype.storage)
    k = normal(*leading[1], columns, width, dtype=dtype.storage)
    with checking(Checks.all()):
        found = scores.with_schedule(Schedule(block=(block,)))(q, k)
    a, b = q.astype(np.float64), spread(k.astype(np.float64), leading[0])
    expected = a @ np.swapaxes(b, -1, -2) / sqrt(width)
    assert found.shape == expected.shape
    assert found.dtype is f32
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [f32, bf16])
@pytest.mark.parametrize("leading", [((), ()), ((2, 4), (2, 2))])
def test_machine_code_agrees(leading: tuple[tuple[int, ...], tuple[int, ...]], dtype: Any) -> None:
    q, k = (normal(*lead, rows, 16, dtype=dtype.storage) for lead, rows in zip(leading, (70, 33), strict=True))
    found = scores(q, k).numpy()
    with knobs.interpret.using(True):
        np.testing.assert_allclose(found, scores(q, k).numpy(), rtol=1e-5, atol=1e-5)


@kernel
def shifted(x: Tile, offset: Tile) -> Tile:
    return x * 2.0 + offset


@pytest.mark.parametrize("n", [1, 63, 64, 65])
def test_arrays_with_one_axis(n: int) -> None:
    assert np.array_equal(shifted(normal(n), np.array([3], np.float32)).numpy(), normal(n) * 2 + 3)
    rows, offset = normal(n, 5), normal(5)
    assert np.array_equal(shifted(rows, offset).numpy(), rows * 2 + offset)


def test_sizes_of_whole_arrays_are_guards_and_rows_are_not() -> None:
    first = scores.lower(normal(5, 8), normal(6, 8))
    assert [str(guard) for guard in first.guards] == ["arg0.size[1] = 8", "arg1.size[0] = 6", "arg1.size[1] = 8"]
    assert scores.lower(normal(500, 8), normal(6, 8)) is first
    assert scores.lower(normal(5, 8), normal(7, 8)) is not first


def test_each_is_loaded_where_it_is_annotated() -> None:
    module = scores.lower(normal(5, 8), normal(6, 8)).module
    spans = [span_of(op.location) for op in module.walk() if isinstance(op, tile_dialect.LoadOp)]
    texts = [span.excerpt() for span in spans if span is not None]
    assert len(texts) == 2
    assert all("def scores(q: Tile, k: Tile)" in text and text.count("^") == len("Tile") for text in texts)


@kernel
def mixed(table: Any, q: Tile, scale: float, w: Tile, shared: Any) -> Any:
    here = tile.context()
    assert here.d == q.shape[1]
    column = tile.load(shared)
    return tile.dot(q, w) * scale + column[:, None] + tile.load(table, at=(0,), shape=(w.shape[1],))


def test_views_tiles_and_numbers_go_together_and_the_first_tile_drives() -> None:
    table, q, w, shared = normal(9), normal(2, 70, 6), normal(6, 4), normal(70)
    found = mixed.with_schedule(Schedule(block=(16,)))(table, q, 0.5, w, shared).numpy()
    expected = q.astype(np.float64) @ w * 0.5 + shared[:, None] + table[:4]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_given_grid_still_counts_blocks_of_rows() -> None:
    x = normal(10, 3)
    small = shifted.with_schedule(Schedule(block=(5,)))
    for grid in (2, 3):
        assert np.array_equal(small[grid](x, np.zeros(3, np.float32)).numpy(), x * 2)
    with pytest.raises(ShapeError, match=r"no program instance of shifted writes result\[5:\]"):
        small[1](x, np.zeros(3, np.float32))


def test_rows_beyond_the_array_are_zero_and_never_stored() -> None:
    @kernel
    def counted(x: Tile) -> Any:
        return tile.sum(tile.cast(x == 0.0, f32), 0, keepdims=True) + tile.zeros((tile.context().m, 1))

    # Five rows of a block of eight: the sum over rows sees three made-up ones, and five results come back.
    found = counted.with_schedule(Schedule(block=(8,)))(np.ones((5, 1), np.float32)).numpy()
    assert found.tolist() == [[3.0]] * 5


def test_empty_arrays() -> None:
    assert scores(normal(0, 8), normal(6, 8)).shape == (0, 6)
    assert scores(normal(5, 8), normal(0, 8)).shape == (5, 0)
    assert shifted(normal(5, 0), normal(0)).shape == (5, 0)


def test_tensors_of_any_origin() -> None:
    q, k = ts.randn((5, 8), seed=1), ts.randn((6, 8), seed=2)
    assert np.array_equal(scores(q, k).numpy(), scores(q.numpy(), k.numpy()).numpy())
    assert np.array_equal(scores(q.numpy()[::-1], k).numpy()[::-1], scores(q, k).numpy())


@pytest.mark.parametrize("given", [3.0, 7, None, "k", (1.0, 2.0)])
def test_what_is_no_array_is_refused(given: Any) -> None:
    with pytest.raises(ShapeError, match=r"argument 'k': expected Tile\[\.\.\.\], got") as found:
        scores(normal(5, 8), given)
    assert found.value.hint is not None
    assert "the annotation is at" in found.value.hint


def test_an_array_without_axes_is_refused() -> None:
    number = np.zeros((), np.float32)
    for arguments in ((number, normal(3)), (normal(3), number)):
        with pytest.raises(ShapeError, match="a Tile is cut from an array with axes"):
            shifted(*arguments)


def test_a_tile_is_a_value_and_cannot_be_loaded_from() -> None:
    @kernel
    def loaded(x: Tile) -> Any:
        return tile.load(x)  # pyright: ignore[reportArgumentType]  (the mistake)

    with pytest.raises(ts.DtypeError, match=r"tile\.load works on an array argument, got a tile"):
        loaded(normal(3))
