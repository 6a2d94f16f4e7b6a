"""Tensors that machine code makes on memory of a stream: the same as Python's, and the memory goes home."""

from __future__ import annotations

import ctypes
import gc
import sys
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

import tessera as ts
from tessera.dtypes.types import DType
from tessera.runtime.cuda.pool import Pool, note_use
from tessera.runtime.cuda.results import in_python, maker
from tessera.runtime.cuda.streams import FreeList, Stream, StreamHandle
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import DeviceMemory, PlainMemory, contiguous_strides, data_address
from tessera.runtime.device.ownership import buffer_of, owner_of, taken
from tessera.runtime.native.device_array import DeviceArray
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.runtime.tensor.tracking import shape_history, track_shapes

SIZE, GPU = 4096, Device("cuda", 0)


class Sandbox:
    """A stream with memory of the host on its list, and a pool that has more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pieces = [ctypes.create_string_buffer(SIZE) for _ in range(8)]
        self.addresses = [ctypes.addressof(one) for one in self.pieces]
        context: Any = SimpleNamespace(index=0, at_end=id)
        owner = StreamHandle(context, 1, owned=False)
        self.stream = Stream.__new__(Stream)
        self.stream.owner, self.stream.handle, self.stream.device, self.stream.free = owner, 1, GPU, {}
        self.home = self.stream.free[SIZE] = FreeList(SIZE, owner)
        self.home += self.addresses[:4]
        self.asked = 0

        def allocate(_stream: Stream, _size: int) -> DeviceMemory:
            self.asked += 1
            return PlainMemory(self.home.pop() if self.home else self.addresses[4], self.home)

        def pool(_context: object) -> SimpleNamespace:
            return SimpleNamespace(allocate=allocate)

        monkeypatch.setattr(Pool, "of", pool)

    def made(self, shape: tuple[int, ...], dtype: DType = ts.f32, size: int = SIZE) -> Tensor:
        meta = Meta(dtype, shape, contiguous_strides(shape, 1), GPU, 64)
        return maker()(self.stream, size, meta, dtype.storage)


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    return Sandbox(monkeypatch)


@pytest.mark.parametrize("shape", [(), (3,), (0, 5), (2, 3, 4), (1, 2, 1)])
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.bool_])
def test_a_tensor_is_what_python_makes(sandbox: Sandbox, shape: tuple[int, ...], dtype: DType) -> None:
    assert maker() is not in_python
    meta = Meta(dtype, shape, contiguous_strides(shape, 1), GPU, 64)
    found, expected = sandbox.made(shape, dtype), in_python(sandbox.stream, SIZE, meta, dtype.storage)
    assert sandbox.asked == 1
    for one, address in zip((found, expected), sandbox.addresses[3:1:-1], strict=True):
        assert (one.meta, one.dtype, one.device) == (meta, dtype, GPU)
        array = one.geometry
        assert (array.__class__, array.shape, array.dtype) == (DeviceArray, shape, dtype.storage)
        assert data_address(array) == address
        assert buffer_of(array, GPU).pointer == address
        assert buffer_of(array, GPU).nbytes == SIZE
    assert found.geometry.strides == expected.geometry.strides
    for name in ("writeable", "c_contiguous", "aligned"):
        assert getattr(found.geometry.flags, name) is getattr(expected.geometry.flags, name) is True
    assert found._buffer is None  # pyright: ignore[reportPrivateUsage]  (machine code wrote it)


def test_memory_goes_home_with_its_last_view(sandbox: Sandbox) -> None:
    found = sandbox.made((8, 4))
    view = found.geometry[2:].T
    assert (view.shape, view.strides) == ((4, 6), (4, 16))
    assert data_address(view) == sandbox.addresses[3] + 32
    owner = owner_of(view)
    assert isinstance(owner, DeviceMemory)
    assert owner.address == sandbox.addresses[3]
    del found, owner
    assert sandbox.home == sandbox.addresses[:3]
    del view
    assert sandbox.home == sandbox.addresses[:4]


def test_memory_that_others_used_goes_home_another_way(sandbox: Sandbox) -> None:
    found = sandbox.made((8,))
    owner: Any = owner_of(found.geometry)
    note_use(owner, StreamHandle(sandbox.stream.context, 5, owned=False))
    assert list(owner.home.users) == [5]
    del found, owner
    assert sandbox.home == sandbox.addresses[:4]


def test_a_home_that_fails_is_told(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    owner: Any = owner_of(sandbox.made((8,)).geometry)
    owner.home = ()  # has no such method
    del owner
    assert [one.exc_type for one in told] == [AttributeError]


def test_python_does_the_rest(sandbox: Sandbox) -> None:
    held = [sandbox.made((8,)) for _ in range(4)]
    assert sandbox.asked == 0
    held.append(sandbox.made((8,)))  # the list is empty
    assert sandbox.asked == 1
    held.append(sandbox.made((8,), size=512))  # there is no list
    assert sandbox.asked == 2
    del held[0]
    with track_shapes():
        found = sandbox.made((2, 3))
        assert shape_history(found).op == "made"
    assert sandbox.asked == 3
    with pytest.raises(AttributeError):
        maker()(None, SIZE, found.meta, ts.f32.storage)  # pyright: ignore[reportArgumentType]


def test_memory_may_be_given_away(sandbox: Sandbox) -> None:
    found = sandbox.made((8,))
    array = taken(found, (2, 2), ts.f32.storage)
    assert array is not None
    assert data_address(array) == sandbox.addresses[3]
    assert taken(found, (2, 2), ts.f32.storage) is None  # it is still held
    del array, found
    assert sandbox.home == sandbox.addresses[:4]


def test_nothing_is_lost_or_shared(sandbox: Sandbox) -> None:
    seen: list[list[int]] = []

    def work() -> None:
        for _ in range(200):
            held = [sandbox.made((16,)) for _ in range(2)]
            seen.append([data_address(one.geometry) for one in held])

    gc.collect()
    before = sys.getrefcount(ts.f32.storage), sys.getrefcount(sandbox.home), sys.getrefcount(None)
    threads = [Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(first != second for first, second in seen)
    assert sorted(sandbox.home) == sorted(sandbox.addresses[:4])
    seen.clear()
    gc.collect()
    after = sys.getrefcount(ts.f32.storage), sys.getrefcount(sandbox.home), sys.getrefcount(None)
    assert all(abs(one - other) < 100 for one, other in zip(before, after, strict=True))
