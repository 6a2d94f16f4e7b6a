"""Views: indexing, reshaping and striding give NumPy's elements, strides and memory, for any shape and index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.errors import ResourceError, ShapeError
from tessera.runtime.tensor.meta import may_overlap

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES = (ts.f32, ts.f64, ts.f16, ts.bf16, ts.f8e4m3, ts.f4e2m1, ts.tf32, ts.i8, ts.i64, ts.u4, ts.u16, ts.bool_)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def numbered(shape: tuple[int, ...], dtype: ts.DType = ts.i64) -> ts.Tensor:
    """Every element has a number of its own, as far as `dtype` goes."""
    count = int(np.prod(shape))
    return ts.asarray((np.arange(count) % 100 - 50).astype(dtype.storage).reshape(shape)).to(dtype)


def agree(tensor: ts.Tensor, expected: Array, source: ts.Tensor) -> None:
    """`tensor` is the very view on `source` that NumPy makes."""
    assert tensor.shape == expected.shape
    assert tensor.dtype is source.dtype
    assert tensor.strides == tuple(stride // source.itemsize for stride in expected.strides)
    assert tensor.numpy().tobytes() == expected.tobytes()
    assert tensor.buffer.pointer == source.buffer.pointer
    if tensor.size:
        assert np.shares_memory(tensor.numpy(), source.numpy())
        assert tensor.pointer == expected.ctypes.data


@given(st.data(), SHAPES, st.sampled_from(DTYPES))
def test_basic_indices_are_views(data: st.DataObject, shape: tuple[int, ...], dtype: ts.DType) -> None:
    tensor = numbered(shape, dtype)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    parts = key if isinstance(key, tuple) else (key,)
    agree(tensor[key], tensor.numpy()[(*parts, ...) if Ellipsis not in parts else parts], tensor)


@given(st.data(), SHAPES)
def test_views_of_views(data: st.DataObject, shape: tuple[int, ...]) -> None:
    root = tensor = numbered(shape)
    array = tensor.numpy()
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(("index", "permute", "expand", "squeeze", "transpose")))
        if step == "index":
            key = data.draw(hnp.basic_indices(array.shape, allow_ellipsis=False))
            parts = key if isinstance(key, tuple) else (key,)
            tensor, array = tensor[key], array[(*parts, ...)]
        elif step == "permute":
            order = data.draw(st.permutations(range(array.ndim)))
            tensor, array = tensor.permute(*order), array.transpose(order)
        elif step == "expand":
            axis = data.draw(st.integers(-array.ndim - 1, array.ndim))
            tensor, array = tensor.expand_dims(axis), np.expand_dims(array, axis)
        elif step == "squeeze":
            tensor, array = tensor.squeeze(), np.squeeze(array)
        elif array.ndim >= 2:
            tensor, array = tensor.mT, array.mT
        agree(tensor, array, root)


def test_an_empty_view_keeps_its_strides_when_squeezed() -> None:
    tensor = numbered((1, 1, 1, 2))[0, :, 0:0, 0]
    agree(tensor.squeeze(), np.squeeze(tensor.numpy()), tensor)


@given(st.data(), SHAPES.filter(len))
def test_integer_array_indices_are_copies(data: st.DataObject, shape: tuple[int, ...]) -> None:
    assume(0 not in shape)
    tensor = numbered(shape)
    key = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    found, expected = tensor[key], tensor.numpy()[key]
    np.testing.assert_array_equal(found.numpy(), expected)
    assert not ts.share_memory(found, tensor)
    assert found.meta.is_contiguous
    np.testing.assert_array_equal(tensor[tuple(ts.asarray(part) for part in key)].numpy(), expected)


@given(st.data(), SHAPES)
def test_boolean_masks_are_copies(data: st.DataObject, shape: tuple[int, ...]) -> None:
    tensor = numbered(shape)
    mask = data.draw(hnp.arrays(np.bool_, shape[: data.draw(st.integers(0, len(shape)))]))
    for key in (mask, ts.asarray(mask)):
        found = tensor[key]
        np.testing.assert_array_equal(found.numpy(), tensor.numpy()[mask])
        assert not ts.share_memory(found, tensor)


@given(st.data(), SHAPES)
def test_storing_by_index(data: st.DataObject, shape: tuple[int, ...]) -> None:
    tensor = numbered(shape)
    expected = tensor.numpy().copy()
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    value = data.draw(st.integers(-9, 9))
    tensor[key], expected[key] = value, value
    np.testing.assert_array_equal(tensor.numpy(), expected)
    tensor[key] = tensor[key] + 1
    expected[key] = expected[key] + 1
    np.testing.assert_array_equal(tensor.numpy(), expected)


@given(st.data(), SHAPES)
def test_reshape_shares_exactly_where_numpy_can(data: st.DataObject, shape: tuple[int, ...]) -> None:
    tensor = numbered(shape).permute(*data.draw(st.permutations(range(len(shape)))))
    tensor = tensor[data.draw(hnp.basic_indices(tensor.shape, allow_ellipsis=False))]
    target = data.draw(st.permutations([*tensor.shape, 1]))
    expected = tensor.numpy().reshape(target)
    found = tensor.reshape(*target)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found.shape == expected.shape
    shared = ts.share_memory(found, tensor)
    assert shared == np.shares_memory(expected, tensor.numpy())
    assert not ts.share_memory(tensor.reshape(tuple(target), copy=True), tensor)
    if shared:
        assert found.strides == tensor.reshape(target, copy=False).strides
        assert found.view_as(tensor).shape == tensor.shape
    elif tensor.size:
        with pytest.raises(ShapeError, match="no view"):
            tensor.reshape(target, copy=False)


def test_reshape_fills_in_what_is_left() -> None:
    tensor = numbered((4, 6))
    assert tensor.reshape(2, -1).shape == (2, 12)
    assert tensor.reshape((-1,)).shape == (24,)
    assert tensor.reshape(np.int64(3), 8).shape == (3, 8)


@given(SHAPES, SHAPES)
def test_broadcast_to_repeats_without_copying(small: tuple[int, ...], leading: tuple[int, ...]) -> None:
    tensor = numbered(small)
    target = (*leading, *(3 if size == 1 else size for size in small))
    found = tensor.broadcast_to(target)
    expected = np.broadcast_to(tensor.numpy(), target)
    agree(found, expected, tensor)
    assert not found.writable
    if found.size:
        with pytest.raises(ResourceError, match="read-only"):
            found[...] = 0
    assert found.copy().writable


def test_transposes() -> None:
    tensor = numbered((2, 3, 4))
    agree(tensor.mT, tensor.numpy().mT, tensor)
    agree(tensor.transpose(0, 2), tensor.numpy().swapaxes(0, 2), tensor)
    agree(tensor.transpose(), tensor.numpy().mT, tensor)
    agree(tensor[0].T, tensor.numpy()[0].T, tensor)
    agree(tensor.permute((2, 0, 1)), tensor.numpy().transpose(2, 0, 1), tensor)
    with pytest.raises(ShapeError, match="for matrices"):
        _ = tensor.T


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
def test_as_strided_reaches_every_element_and_nothing_else(data: st.DataObject, shape: tuple[int, ...]) -> None:
    """Whatever is accepted lies in the storage; whatever lies in the storage is accepted."""
    root = numbered((12,))
    start = data.draw(st.integers(0, 11))
    tensor = root[start:]
    strides = tuple(data.draw(st.lists(st.integers(-4, 4), min_size=len(shape), max_size=len(shape))))
    offset = data.draw(st.integers(-12, 12))
    indices = np.indices(shape).reshape(len(shape), -1).T
    offsets = {start + offset + int(np.dot(index, strides)) for index in indices}
    inside = all(0 <= at < 12 for at in offsets)
    if not inside:
        with pytest.raises(ShapeError, match="storage of 96 bytes"):
            tensor.as_strided(shape, strides, offset)
        return
    view = tensor.as_strided(shape, strides, offset)
    assert view.strides == strides
    assert view.shape == shape
    flat = root.numpy()[[start + offset + int(np.dot(index, strides)) for index in indices]]
    np.testing.assert_array_equal(view.numpy().reshape(-1), flat)
    assert ts.share_memory(view, root)
    repeats = len(offsets) < len(indices)
    assert may_overlap(shape, strides) or not repeats
    assert view.writable == (not may_overlap(shape, strides))


def test_as_strided_keeps_memory_alive_and_read_only() -> None:
    windows = ts.arange(10).as_strided((8, 3), (1, 1))
    assert windows.tolist() == [[i, i + 1, i + 2] for i in range(8)]
    assert not windows.writable
    frozen = np.arange(4)
    frozen.flags.writeable = False
    assert not ts.asarray(frozen).as_strided((2,), (1,)).writable
    assert ts.zeros((0,)).as_strided((0, 7), (1, 1)).shape == (0, 7)
    with pytest.raises(ShapeError, match="not a geometry"):
        ts.zeros(4).as_strided((2, 2), (1,))


def test_iteration_and_length() -> None:
    tensor = numbered((3, 2))
    rows = list(tensor)
    assert len(tensor) == 3
    assert [row.tolist() for row in rows] == tensor.tolist()
    assert all(ts.share_memory(row, tensor) for row in rows)
    with pytest.raises(ShapeError, match="no length"):
        len(ts.asarray(1))
    with pytest.raises(ShapeError, match="no length"):
        iter(ts.asarray(1))


def test_single_numbers_of_any_kind_index_as_views() -> None:
    tensor = numbered((4, 3))
    for one in (1, np.int32(1), ts.asarray(1), ts.asarray(1, ts.u8), np.asarray(1)):
        assert ts.share_memory(tensor[one], tensor)
        assert tensor[one].tolist() == tensor.tolist()[1]
        assert tensor[one:].shape == (3, 3)


def test_share_memory() -> None:
    tensor = numbered((4, 4))
    assert ts.share_memory(tensor[:2], tensor[1:])
    assert not ts.share_memory(tensor[:2], tensor[2:])
    assert not ts.share_memory(tensor[:, ::2], tensor[:, 1::2])
    assert not ts.share_memory(tensor, tensor.copy())


def test_geometry() -> None:
    tensor = ts.zeros((2, 3, 4), ts.bf16)
    assert (tensor.ndim, tensor.size, tensor.itemsize, tensor.nbytes) == (3, 24, 2, 48)
    assert tensor.buffer.nbytes == 48
    assert tensor.pointer % 64 == 0
    assert tensor[1:].buffer.nbytes == 48
