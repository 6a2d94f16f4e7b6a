"""Operators that make, arrange, index and update tensors against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from compared import array, closely, exactly, seeds, shapes, tensor, traced
from hypothesis import given, settings
from hypothesis import strategies as st
from lambdas import binary, ternary

import tessera as ts
from tessera import knobs
from tessera.lang.operators.methods import METHODS

few = settings(max_examples=6)


def drawn(shape: tuple[int, ...], seed: int) -> Any:
    return array(ts.i32, shape, seed, high=50)


@few
@given(shape=shapes(least=1, most=4), seed=seeds, data=st.data())
def test_axes_and_shapes(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    rank = len(shape)
    axis = data.draw(st.integers(-rank, rank - 1))
    order = tuple(data.draw(st.permutations(range(rank))))
    t = tensor(x, ts.i32)
    exactly(ts.permute_dims(t, order), np.transpose(x, order))
    exactly(ts.flip(t, axis=axis), np.flip(x, axis))
    exactly(ts.flip(t), np.flip(x))
    exactly(ts.expand_dims(t, axis=axis), np.expand_dims(x, axis))
    exactly(ts.squeeze(ts.expand_dims(t, axis=axis), axis), x)
    exactly(ts.reshape(t, (-1,)) if x.size else ts.reshape(t, (0,)), x.reshape(-1))
    exactly(ts.moveaxis(t, axis, 0), np.moveaxis(x, axis, 0))
    exactly(ts.broadcast_to(t, (2, *shape)), np.broadcast_to(x, (2, *shape)))
    if rank > 1:
        exactly(ts.matrix_transpose(t), np.swapaxes(x, -1, -2))
        exactly(ts.tril(t, k=1), np.tril(x, 1))
        exactly(ts.triu(t, k=-1), np.triu(x, -1))


@few
@given(shape=shapes(least=1), seed=seeds, data=st.data())
def test_joining_repeating_and_rolling(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x, y = drawn(shape, seed), drawn(shape, seed + 1)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = data.draw(st.integers(0, 3))
    t, u = tensor(x, ts.i32), tensor(y, ts.i32)
    exactly(ts.concat([t, u], axis=axis), np.concatenate([x, y], axis))
    exactly(ts.concat([t, u], axis=None), np.concatenate([x, y], None))
    exactly(ts.stack([t, u], axis=axis), np.stack([x, y], axis))
    exactly(ts.repeat(t, count, axis=axis), np.repeat(x, count, axis))
    exactly(ts.repeat(t, 2), np.repeat(x, 2))
    counts = np.random.default_rng(seed).integers(0, 3, shape[axis])
    exactly(ts.repeat(t, counts, axis=axis), np.repeat(x, counts, axis))
    exactly(ts.ops.tile(t, (2, 1, count)), np.tile(x, (2, 1, count)))
    shift = data.draw(st.integers(-9, 9))
    exactly(ts.roll(t, shift, axis=axis), np.roll(x, shift, axis))
    exactly(ts.roll(t, shift), np.roll(x, shift))
    for one, other in zip(ts.unstack(t, axis=axis), np.unstack(x, axis=axis), strict=True):
        exactly(one, other)
    widths = tuple((at, count) for at in range(len(shape)))
    exactly(ts.pad(t, widths, value=7), np.pad(x, widths, constant_values=7))
    if shape[axis]:
        parts = ts.split(t, (1, shape[axis] - 1), axis=axis)
        for one, other in zip(parts, np.split(x, [1], axis), strict=True):
            exactly(one, other)


def test_grids_and_broadcasts() -> None:
    a, b = np.arange(3), np.arange(4.0)
    for indexing in ("xy", "ij"):
        for one, other in zip(ts.meshgrid(a, b, indexing=indexing), np.meshgrid(a, b, indexing=indexing), strict=True):  # pyright: ignore[reportArgumentType]
            exactly(one, other)
    for one, other in zip(ts.broadcast_arrays(a, b[:, None]), np.broadcast_arrays(a, b[:, None]), strict=True):
        exactly(one, other)


def test_making_tensors_inside_and_outside_of_traces() -> None:
    def make(x: Any) -> list[Any]:
        return [
            ts.zeros((2, 3)),
            ts.ones((2,), dtype=ts.i32),
            ts.full((2, 2), 7),
            ts.full_like(x, 2.0),
            ts.zeros_like(x, dtype=ts.i64),
            ts.ones_like(x),
            ts.arange(5),
            ts.arange(1, 10, 3),
            ts.arange(0.5, 2.0, 0.5),
            ts.arange(5, 0, -2, dtype=ts.f32),
            ts.linspace(0, 1, 5),
            ts.eye(3, 4, k=1),
            ts.eye(2, dtype=ts.i32),
            ts.asarray(x),
            ts.asarray([1, 2, 3]),
            ts.one_hot(ts.asarray([0, 2]), 3),
        ]

    x = ts.asarray([[1.0, 2.0]])
    for inside, outside in zip(ts.jit(make)(x), make(x), strict=True):
        assert inside.dtype is outside.dtype
        exactly(inside, outside.numpy())
    exactly(traced(lambda x: ts.arange(x.shape[1]))(ts.zeros((1, 4))), np.arange(4))
    assert ts.jit(ts.empty_like)(x).shape == ts.empty((1, 2)).shape
    with pytest.raises(ts.DeviceError):
        traced(lambda x: x + ts.zeros(2, device="cuda:0"))(x)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    parts: list[Any] = []
    arrays = draw(st.booleans())
    masked = draw(st.integers(0, 3)) if not arrays else len(shape)
    for axis, size in enumerate(shape):
        kind = draw(st.integers(0, 4))
        if axis == masked:
            parts.append(np.asarray(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool))
        elif kind == 0 and size:
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == 1 and arrays and size:
            indices = np.asarray(draw(st.lists(st.integers(-size, size - 1), min_size=2, max_size=2)))
            parts.append(indices.reshape(draw(st.sampled_from(((2,), (2, 1), (1, 2))))))
        elif kind == 2:
            ends = st.none() | st.integers(-size - 1, size + 1)
            parts.append(slice(draw(ends), draw(ends), draw(st.sampled_from((None, 1, 2, -1, -2)))))
        else:
            parts.append(slice(None))
        if draw(st.integers(0, 5)) == 0:
            parts.append(None)
    cut = draw(st.integers(0, len(parts)))
    if draw(st.booleans()):
        parts = [*parts[:cut], ...] if draw(st.booleans()) else parts[:cut]
    return tuple(parts)


@settings(max_examples=25)
@given(shape=shapes(least=1, most=4), seed=seeds, data=st.data())
def test_indexing_is_numpy_s(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    key = data.draw(keys(shape))
    found = METHODS["__getitem__"](tensor(x, ts.i32), key)
    exactly(found, x[key])


@settings(max_examples=25)
@given(shape=shapes(least=1, most=4), seed=seeds, data=st.data())
def test_indexing_in_traces_is_numpy_s(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    key = data.draw(keys(shape))
    at = [number for number, part in enumerate(key) if isinstance(part, np.ndarray)]
    if any(key[number].dtype == bool for number in at):
        with pytest.raises(ts.ShapeError, match="depends on elements"):
            traced(lambda xs: xs[0][with_arrays(key, at, xs[1])])((x, [key[number] for number in at]))
        return
    exactly(traced(lambda xs: xs[0][with_arrays(key, at, xs[1])])((x, [key[number] for number in at])), x[key])


def with_arrays(key: tuple[Any, ...], at: list[int], arrays: list[Any]) -> tuple[Any, ...]:
    """A key with traced arrays for those that it has."""
    given = dict(zip(at, arrays, strict=True))
    return tuple(given.get(number, part) for number, part in enumerate(key))


@settings(max_examples=12)
@given(shape=shapes(least=1, most=4), seed=seeds, data=st.data())
def test_updates_in_traces_are_numpy_s(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    key = data.draw(keys(shape))
    at = [number for number, part in enumerate(key) if isinstance(part, np.ndarray)]
    is_masked = any(key[number].dtype == bool for number in at)
    values = np.int32(5) if is_masked else drawn(x[key].shape, seed + 7)
    for name, ufunc in (("set", None), ("add", np.add), ("max", np.maximum), ("multiply", np.multiply)):
        expected = x.copy()
        index: Any = key
        if ufunc is None:
            expected[index] = values
        else:
            ufunc.at(expected, index, values)

        def updated(xs: Any, name: str = name) -> Any:
            return getattr(xs[0].at[with_arrays(key, at, xs[1])], name)(xs[2])

        exactly(traced(updated)((x, [key[number] for number in at], values)), expected)


@settings(max_examples=25)
@given(shape=shapes(least=1, most=4), seed=seeds, data=st.data())
def test_updates_are_numpy_s(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    key = data.draw(keys(shape))
    part = x[key]
    values = drawn(part.shape, seed + 7)
    t = tensor(x, ts.i32)
    expected = x.copy()
    expected[key] = values
    exactly(t.at[key].set(tensor(values, ts.i32)), expected)
    for name, ufunc in (("add", np.add), ("max", np.maximum), ("multiply", np.multiply), ("min", np.minimum)):
        expected = x.copy()
        index: Any = key
        ufunc.at(expected, index, values)
        exactly(getattr(t.at[key], name)(tensor(values, ts.i32)), expected)
    exactly(t, x)


def test_updates_of_nothing_are_numpy_s() -> None:
    x = np.zeros((1, 0), np.int32)
    found = tensor(x, ts.i32).at[np.array([0]),]
    for how in ("set", "add", "max"):
        exactly(getattr(found, how)(tensor(np.zeros((1, 0), np.int32), ts.i32)), x)


@few
@given(shape=shapes(least=1, most=3), seed=seeds, data=st.data())
def test_updates_at_masks_are_numpy_s(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    mask = array(ts.bool_, shape[: data.draw(st.integers(1, len(shape)))], seed)
    changed: dict[str, Any] = {"set": np.full_like(x, 3), "add": x + 3, "max": np.maximum(x, 3)}
    for name, expected in changed.items():
        picked = x.copy()
        picked[mask] = expected[mask]
        exactly(getattr(tensor(x, ts.i32).at[mask], name)(3), picked)
        exactly(traced(lambda xs, name=name: getattr(xs[0].at[xs[1]], name)(3))((x, mask)), picked)


@few
@given(shape=shapes(least=1, empty=False), seed=seeds, data=st.data())
def test_taking(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    x = drawn(shape, seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    indices = np.random.default_rng(seed).integers(-size, size, (2, 3))
    exactly(ts.take(tensor(x, ts.i32), indices, axis=axis), np.take(x, indices, axis))
    lead = [*shape]
    lead[axis] = 4
    along = np.random.default_rng(seed).integers(0, size, lead)
    exactly(ts.take_along_axis(tensor(x, ts.i32), along, axis=axis), np.take_along_axis(x, along, axis))


def test_indices_that_do_not_fit_are_refused() -> None:
    x = ts.zeros((2, 3))

    def at(key: Any) -> Any:
        return traced(lambda x: x[key])(x)

    with pytest.raises(ts.ShapeError, match="index 2 is out of range for axis 0 of size 2"):
        at(2)
    with pytest.raises(ts.ShapeError, match="3 indices for 2 axes"):
        at((0, 0, 0))
    with pytest.raises(ts.DtypeError, match="expected integer indices, got f32"):
        traced(lambda x: x[x])(x)
    with pytest.raises(ts.EffectError, match=r"assigned to in place"):
        traced(lambda x: x.__setitem__(0, 1))(x)
    with pytest.raises(ts.ShapeError, match="must have a length that is known"):
        traced(ternary(lambda x, i, n: x[i : i + n]))(x, 0, 1)
    with pytest.raises(ts.ShapeError, match="must have a length that is known"):
        traced(binary(lambda x, i: x[i:]))(x, 0)
    with pytest.raises(ts.DtypeError, match="the ends of a slice are whole numbers"):
        traced(lambda x: x[x[0, 0] : x[0, 0] + 1])(x)
    with pytest.raises(ts.ShapeError, match="a mask has the shape"):
        traced(lambda x: x.at[x[:, :2] > 0].set(0.0))(x)
    with pytest.raises(ts.ShapeError, match="at a mask takes one value"):
        traced(lambda x: x.at[x > 0].set(x))(x)


def test_slices_from_traced_starts() -> None:
    """They are moved inside, and negative starts count from the end; numbers, tensors and computed starts alike."""
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)

    def part(x: Any, i: Any) -> Any:
        return x[:, i : i + 2], x[i + 1 : i + 3, None, 0], x[1:][..., i - 1 : i + 1]

    def written(x: Any, i: Any) -> Any:
        return x.at[:, i : i + 2].set(0.0), x.at[i, 1:3].add(1.0), x.at[i : 2 + i, [0, 2]].max(7.0)

    for i in (0, 1):
        for start in (i, np.int64(i), ts.asarray(i, ts.i32)):
            for found, wanted in zip(
                ts.jit(part)(x, start), part(x, i) if i else (x[:, :2], x[1:3, None, 0], None), strict=True
            ):
                if wanted is not None:
                    exactly(found, wanted)
            first, second, third = x.copy(), x.copy(), x.copy()
            first[:, i : i + 2] = 0
            second[i, 1:3] += 1
            third[i : i + 2, [0, 2]] = np.maximum(third[i : i + 2, [0, 2]], 7)
            for found, wanted in zip(ts.jit(written)(x, start), (first, second, third), strict=True):
                exactly(found, wanted)
    one = ts.jit(binary(lambda x, i: x[:, i : i + 2]))
    exactly(one(x, 9), x[:, 4:])
    exactly(one(x, -3), x[:, 3:5])
    exactly(ts.asarray(x)[:, ts.asarray(1) : ts.asarray(3)], x[:, 1:3])
    exactly(ts.jit(ternary(lambda x, y, i: x[i : i + y.shape[0]]))(x, x[:2], 1), x[1:3])


def test_sizes_that_change_stay_symbols() -> None:
    @ts.jit
    def f(x: Any) -> Any:
        return x[1:], x[-1], x[:, ::-1], x[None, :-1], x.at[0].add(1.0)

    for rows in (3, 4, 5, 6):
        x = array(ts.f32, (rows, 2), rows, odd=False)
        expected = x.copy()
        expected[0] += 1
        for found, wanted in zip(f(x), (x[1:], x[-1], x[:, ::-1], x[None, :-1], expected), strict=True):
            exactly(found, wanted)


def test_casts_and_limits() -> None:
    x = ts.asarray([1.5, -2.5])
    exactly(ts.astype(x, ts.i32), np.array([1, -2], np.int32))
    assert ts.astype(x, ts.f32, copy=False) is x
    assert ts.astype(x, ts.f32) is not x
    assert ts.cast_like(x, ts.zeros(1, dtype=ts.bf16)).dtype is ts.bf16
    assert ts.finfo(ts.f32).eps == np.finfo(np.float32).eps
    assert ts.finfo(x).smallest_normal == float(np.finfo(np.float32).smallest_normal)
    assert (ts.iinfo(ts.i8).min, ts.iinfo(ts.i8).max, ts.iinfo(ts.u16).bits) == (-128, 127, 16)
    assert ts.isdtype(ts.bf16, "real floating")
    assert ts.isdtype(ts.i8, ("bool", "signed integer"))
    assert not ts.isdtype(ts.f32, "integral")
    assert ts.can_cast(ts.i8, ts.i16)
    assert not ts.can_cast(x, ts.bf16)
    for wrong in (lambda: ts.finfo(ts.i8), lambda: ts.iinfo(ts.f32), lambda: ts.isdtype(ts.f32, "nothing")):
        with pytest.raises(ts.DtypeError):
            wrong()


def test_products() -> None:
    a, b = array(ts.f32, (2, 3, 4), 0, odd=False), array(ts.f32, (4, 5), 1, odd=False)
    wide_a, wide_b = a.astype(float), b.astype(float)

    def near(found: Any, expected: Any) -> None:
        closely(found, expected, ts.f32, least=2e-5)

    near(ts.matmul(a, b), wide_a @ wide_b)
    near(tensor(a, ts.f32) @ tensor(b, ts.f32), wide_a @ wide_b)
    near(ts.matmul(a[0, 0], b), wide_a[0, 0] @ wide_b)
    near(ts.matmul(a, b[:, 0]), wide_a @ wide_b[:, 0])
    near(ts.matmul(a[0, 0], b[:, 0]), wide_a[0, 0] @ wide_b[:, 0])
    near(ts.tensordot(a, b, axes=1), np.tensordot(wide_a, wide_b, 1))
    near(ts.tensordot(a, a, axes=((0, 2), (0, 2))), np.tensordot(wide_a, wide_a, ((0, 2), (0, 2))))
    near(ts.tensordot(a, b, axes=0), np.tensordot(wide_a, wide_b, 0))
    near(ts.vecdot(a, a[:1]), np.vecdot(wide_a, wide_a[:1]))
    near(ts.vecdot(a, a, axis=-2), np.einsum("bij,bij->bj", wide_a, wide_a))
    near(ts.linear(a, b, b[0]), wide_a @ wide_b + wide_b[0])
    near(ts.outer(b[0], b[1]), np.outer(wide_b[0], wide_b[1]))
    ints = np.arange(6, dtype=np.int32).reshape(2, 3)
    exactly(ts.matmul(ints, ints.T), ints @ ints.T)
    narrow = tensor(a, ts.f32).to(ts.f8e4m3)
    assert ts.matmul(narrow, ts.matrix_transpose(narrow)).dtype is ts.f8e4m3
    assert ts.matmul(narrow, ts.matrix_transpose(narrow), dtype=ts.f32).dtype is ts.f32
    with pytest.raises(ts.ShapeError, match="must match the rows"):
        ts.matmul(a, a)


@pytest.mark.parametrize(
    ("formula", "shapes_given"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("bhsd,bhtd->bhst", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->i", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,j->ij", [(2, 3), (3,)]),
        ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]),
        ("abc,adc,d->b", [(2, 3, 4), (2, 5, 4), (5,)]),
        ("ij,ij", [(2, 3), (2, 3)]),
    ],
)
def test_einstein_s_sums(formula: str, shapes_given: list[tuple[int, ...]]) -> None:
    given_arrays = [array(ts.f64, shape, at, odd=False) for at, shape in enumerate(shapes_given)]
    closely(ts.einsum(formula, *given_arrays), np.einsum(formula, *given_arrays), ts.f64, least=1e-12)


def test_masks_as_indices_outside_of_traces() -> None:
    x = array(ts.f32, (3, 4), 1, odd=False)
    item = METHODS["__getitem__"]
    exactly(item(tensor(x, ts.f32), x > 0), x[x > 0])
    exactly(item(tensor(x, ts.f32), x[:, 0] > 0), x[x[:, 0] > 0])
    with pytest.raises(ts.ShapeError, match="a mask has the shape"):
        item(tensor(x, ts.f32), x[0] > 0)


@pytest.mark.quick(2)
@pytest.mark.parametrize("step", [None, 2, -1, -2])
def test_slices_are_python_s_for_every_size(step: int | None) -> None:
    """Also where they begin before the first element or end behind the last; sizes after the first are symbols."""
    ends = (None, -4, -3, -1, 0, 2, 6)
    for start, stop in product(ends, ends):
        key = slice(start, stop, step)
        taken = ts.jit(_taking(key))
        for size in (3, 2, 0, 5):
            x = np.arange(size, dtype=np.float32)
            with knobs.backend.using("interpreter"):
                assert taken(x).tolist() == x[key].tolist(), (size, key)


def _taking(key: slice) -> Callable[[Any], Any]:
    def taken(x: Any) -> Any:
        return x[key]

    return taken
