"""Arrays of devices: their geometry is that of NumPy's arrays, and nothing reads their elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tessera.errors import DeviceError
from tessera.runtime.device.memory import address, contiguous_strides, data_address
from tessera.runtime.native import objects
from tessera.runtime.native.device_array import DeviceArray

NOWHERE = 0x7F00_0000_0000
"""An address at which nothing can be read."""
Pair = tuple[Any, Any]


def pair(shape: tuple[int, ...], dtype: Any = np.float32) -> Pair:
    """An array of the host, and one of the same geometry that lies nowhere."""
    here = np.zeros(shape, dtype)
    return here, DeviceArray(NOWHERE, shape, here.dtype, None)


def check_same(pair: Pair, first: int) -> None:
    here, far = pair
    assert (far.shape, far.dtype) == (here.shape, here.dtype)
    assert far.strides == here.strides or not here.size
    assert (far.ndim, far.size, far.nbytes, far.itemsize) == (here.ndim, here.size, here.nbytes, here.itemsize)
    for name in ("writeable", "c_contiguous", "aligned"):
        assert getattr(far.flags, name) == getattr(here.flags, name), name
    assert far.address == address(far) == data_address(far)
    if here.size:
        assert far.address - NOWHERE == address(here) - first


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
def test_views_are_those_of_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    here, far = pair(shape, data.draw(st.sampled_from([np.uint8, np.float32, np.int64])))
    first = address(here)
    check_same((here, far), first)
    for _ in range(3):
        order = tuple(data.draw(st.permutations(range(here.ndim))))
        here, far = here.transpose(order), far.transpose(order)
        key = data.draw(hnp.basic_indices(here.shape, allow_newaxis=True))
        key = (*(key if isinstance(key, tuple) else (key,)),)
        key = key if Ellipsis in key else (*key, Ellipsis)
        here, far = here[key], far[key]
        check_same((here, far), first)
    check_same((np.broadcast_to(here, (2, *here.shape)), np.broadcast_to(far, (2, *here.shape))), first)
    check_same((here[None].swapaxes(0, -1), far[None].swapaxes(0, -1)), first)


def test_a_shape_that_needs_a_copy_is_refused() -> None:
    here, far = pair((4, 6))
    check_same((here.reshape(2, 12), far.reshape((2, 12), copy=False)), address(here))
    assert far.T.strides == here.T.strides
    for one in (here, far):
        with pytest.raises(ValueError, match="Unable to avoid creating a copy"):
            one.T.reshape((24,), copy=False)
        with pytest.raises(IndexError, match="out of bounds"):
            one[7, ...]
    assert far[3, 5].shape == ()
    assert (far.T.view(np.dtype(np.int32)).dtype, far.T.view(np.dtype(np.int32)).strides) == (np.int32, far.T.strides)
    with pytest.raises(TypeError, match="integers and slices"):
        far[np.zeros(2, np.int64)]


@given(st.data())
def test_memory_is_shared_where_numpy_says_so(data: st.DataObject) -> None:
    here, far = pair((5, 6))
    keys = [(data.draw(st.slices(5)), data.draw(st.slices(6)), ...) for _ in range(2)]
    near, distant = [here[key] for key in keys], [far[key] for key in keys]
    assert np.shares_memory(*distant) == np.shares_memory(*near)
    assert np.may_share_memory(*distant) == np.may_share_memory(*near)
    assert not np.may_share_memory(near[0], distant[0])


def test_nothing_reads_the_elements() -> None:
    _, far = pair((4, 6))
    uses: tuple[Callable[[Any], object], ...] = (
        *(np.asarray, np.array, np.sum, np.add.reduce),
        lambda one: one + one,
        lambda one: np.concatenate([one, one]),
    )
    for use in uses:
        with pytest.raises((DeviceError, TypeError)):
            use(far)
    for name in ("__array_interface__", "__array_struct__", "__dlpack__", "__buffer__", "ctypes", "data"):
        assert not hasattr(far, name)
    with pytest.raises(TypeError):
        memoryview(far)


def test_machine_code_finds_the_address() -> None:
    _, far = pair((4, 6))
    offset = objects.slot_of(far, "address")
    assert offset is None or objects.word(id(far) + offset) == id(far.address)
    assert far.strides == contiguous_strides((4, 6), 4)
    assert math.prod(far.shape) == far.size
