"""DLPack: capsules of both kinds both ways, all dtypes, who may write, and deleters that run exactly once."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tessera as ts
from tessera.dtypes.types import ALL
from tessera.errors import DtypeError, ResourceError, TesseraError
from tessera.runtime.device.device import Buffer
from tessera.runtime.tensor import dlpack

Array = np.ndarray[Any, np.dtype[Any]]

# (type code, bits) as in dlpack.h 1.1.
CODES = {
    ts.f64: (2, 64),
    ts.f32: (2, 32),
    ts.tf32: (2, 32),
    ts.f16: (2, 16),
    ts.bf16: (4, 16),
    ts.f8e4m3: (10, 8),
    ts.f8e5m2: (12, 8),
    ts.f6e2m3: (15, 6),
    ts.f6e3m2: (16, 6),
    ts.f4e2m1: (17, 4),
    **{getattr(ts, f"i{bits}"): (0, bits) for bits in (4, 8, 16, 32, 64)},
    **{getattr(ts, f"u{bits}"): (1, bits) for bits in (4, 8, 16, 32, 64)},
    ts.bool_: (6, 8),
}


class DLTensor(ctypes.Structure):
    """The header's own layout, written down a second time on purpose."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def opened(capsule: object) -> Any:
    """The structure in a capsule, which stays alive with it."""
    name = _name(capsule)
    managed: Any = {b"dltensor": Legacy, b"dltensor_versioned": Versioned}[name].from_address(_pointer(capsule, name))
    managed.capsule = capsule
    return managed


class Producer:
    """Shares an array by hand-made capsules, and counts how often its deleter is called."""

    def __init__(self, array: Array, name: bytes, *, flags: int = 0, version: tuple[int, int] = (1, 1)) -> None:
        self.array = array
        self.name = name
        self.deleted = 0
        self.managed: Any = Legacy() if name.endswith(b"dltensor") else Versioned()
        self._shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
        self._deleter = DELETER(self._delete)
        self.managed.deleter = ctypes.cast(self._deleter, ctypes.c_void_p).value
        if isinstance(self.managed, Versioned):
            self.managed.major, self.managed.minor = version
            self.managed.flags = flags
        code, bits = CODES[ts.as_dtype(array.dtype)]
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = array.ctypes.data or None, 1, array.ndim
        tensor.code, tensor.bits, tensor.lanes = code, bits, 1
        tensor.shape, tensor.strides = self._shape, self._strides

    def _delete(self, address: int) -> None:
        assert address == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: object) -> Any:
        return _make(ctypes.addressof(self.managed), self.name, None)


NAMES = (b"dltensor", b"dltensor_versioned")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype_has_its_code(dtype: ts.DType) -> None:
    x = ts.zeros((2, 3), dtype)
    managed = opened(x.__dlpack__(max_version=(1, 1)))
    tensor = managed.tensor
    assert (tensor.code, tensor.bits, tensor.lanes) == (*CODES[dtype], 1)
    assert (tensor.device_type, tensor.device_id) == x.__dlpack_device__() == (1, 0)
    assert tensor.data + tensor.byte_offset == x.pointer
    assert tensor.shape[:2] == [2, 3]
    assert tensor.strides[:2] == [3, 1]
    assert (managed.major, managed.minor) == (1, 1)
    assert managed.flags == (1 if dtype is ts.tf32 else 4 if dtype.bits < 8 and dtype is not ts.bool_ else 0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype_comes_back(dtype: ts.DType) -> None:
    x = ts.asarray([[1, 0, 1], [0, 0, 1]]).to(dtype)
    y = ts.from_dlpack(x)
    assert y.dtype is (ts.f32 if dtype is ts.tf32 else dtype)
    assert y.pointer == x.pointer
    assert y.tolist() == x.tolist()
    assert y.writable == (dtype is not ts.tf32)
    x[0, 1] = True
    assert y.tolist() == x.tolist()


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), st.sampled_from(NAMES))
def test_every_geometry_comes_back(data: st.DataObject, shape: tuple[int, ...], name: bytes) -> None:
    x = ts.arange(int(np.prod(shape))).reshape(shape).permute(*data.draw(st.permutations(range(len(shape)))))
    x = x[data.draw(hnp.basic_indices(x.shape, allow_newaxis=True))]
    producer = Producer(x.numpy(), name)
    for y in (ts.from_dlpack(x), ts.from_dlpack(producer)):
        assert y.shape == x.shape
        assert y.tolist() == x.tolist()
        if x.size:
            assert y.pointer == x.pointer
            assert y.buffer.pointer <= y.pointer < y.buffer.pointer + y.buffer.nbytes
        assert all(a == b for a, b, size in zip(y.strides, x.strides, x.shape, strict=True) if size > 1 and x.size)
    del y
    assert producer.deleted == 1


@pytest.mark.parametrize(
    ("shape", "given_", "strides"),
    [
        ((1, 6), (1, 1), (6, 1)),
        ((2, 1, 3), (3, 7, 1), (3, 3, 1)),
        ((6, 1), (1, 1), (1, 1)),
        ((1, 1, 4), (9, 9, 1), (4, 4, 1)),
    ],
)
def test_axes_of_size_1_have_usual_strides(
    shape: tuple[int, ...], given_: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """Other libraries say anything of them; rows of one row are as far apart as if there were more."""
    producer = Producer(np.arange(6, dtype=np.int64)[: int(np.prod(shape))].reshape(shape), NAMES[0])
    for axis, stride in enumerate(given_):
        producer.managed.tensor.strides[axis] = stride
    found = ts.from_dlpack(producer)
    assert found.strides == strides
    assert found.tolist() == np.arange(np.prod(shape)).reshape(shape).tolist()


def test_numpy_takes_ours_and_we_take_numpys() -> None:
    x = ts.asarray([[1.0, 2.0], [3.0, 4.0]])
    array = np.from_dlpack(x.T)
    assert np.shares_memory(array, x.numpy())
    array[0, 1] = 9
    assert x.tolist() == [[1.0, 2.0], [9.0, 4.0]]
    y = ts.from_dlpack(array)
    y[0, 0] = 7.0
    assert x[0, 0].item() == 7.0


def test_memory_outlives_either_side() -> None:
    x = ts.asarray([1.0, 2.0, 3.0])
    storage = weakref.ref(x.numpy().base)
    array = np.from_dlpack(x)
    del x
    gc.collect()
    assert array.tolist() == [1.0, 2.0, 3.0]
    y = ts.from_dlpack(array)
    view = y[1:]
    del array, y
    gc.collect()
    assert storage() is not None
    assert view.tolist() == [2.0, 3.0]
    del view
    gc.collect()
    assert storage() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_that_is_not_consumed_frees_its_memory(version: tuple[int, int] | None) -> None:
    x = ts.asarray([1.0, 2.0])
    storage = weakref.ref(x.numpy().base)
    capsule = x.__dlpack__(max_version=version)
    del x
    assert storage() is not None
    del capsule
    gc.collect()
    assert storage() is None


def test_a_capsule_that_a_consumer_refuses_frees_its_memory() -> None:
    """NumPy does not know bf16: it drops the capsule while its own exception is pending."""
    x = ts.ones(2, ts.bf16)
    storage = weakref.ref(x.numpy().base)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(x)
    del x
    gc.collect()
    assert storage() is None


@pytest.mark.parametrize("name", NAMES)
def test_the_deleter_runs_once_after_the_last_view(name: bytes) -> None:
    producer = Producer(np.arange(6.0), name)
    x = ts.from_dlpack(producer)
    view, copy = x[2:], x.copy()
    array = x.numpy()
    del x
    gc.collect()
    assert producer.deleted == 0
    assert view.tolist() == [2.0, 3.0, 4.0, 5.0]
    del view
    assert producer.deleted == 0
    del array
    gc.collect()
    assert producer.deleted == 1
    del copy
    gc.collect()
    assert producer.deleted == 1


def test_a_deleter_may_be_missing() -> None:
    producer = Producer(np.arange(3.0), NAMES[0])
    producer.managed.deleter = None
    x = ts.from_dlpack(producer)
    assert x.tolist() == [0.0, 1.0, 2.0]
    del x
    assert producer.deleted == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_capsule_is_used_once(name: bytes) -> None:
    producer = Producer(np.arange(3), name)
    capsule = producer.__dlpack__()
    taken = dlpack.take(capsule)
    assert _name(capsule) == b"used_" + name
    with pytest.raises(BufferError, match="used_dltensor"):
        dlpack.take(capsule)
    del taken
    assert producer.deleted == 1


def test_strides_may_be_missing() -> None:
    producer = Producer(np.arange(6).reshape(2, 3), NAMES[1])
    producer.managed.tensor.strides = None
    x = ts.from_dlpack(producer)
    assert x.strides == (3, 1)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_byte_offsets_count() -> None:
    array = np.arange(8)
    producer = Producer(array[2:], NAMES[1])
    producer.managed.tensor.data, producer.managed.tensor.byte_offset = array.ctypes.data, 16
    assert ts.from_dlpack(producer).tolist() == [2, 3, 4, 5, 6, 7]


def test_who_may_write() -> None:
    assert ts.from_dlpack(Producer(np.zeros(2), NAMES[1])).writable
    assert not ts.from_dlpack(Producer(np.zeros(2), NAMES[1], flags=1)).writable
    assert not ts.from_dlpack(Producer(np.zeros(2), NAMES[0])).writable
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    x = ts.from_dlpack(ts.asarray(frozen))
    assert not x.writable
    with pytest.raises(ResourceError, match="read-only"):
        x[0] = 1.0
    assert opened(x.__dlpack__(max_version=(1, 0))).flags == 1
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()


def test_what_is_refused_is_not_used_up() -> None:
    def with_type(code: int, bits: int, lanes: int = 1) -> Producer:
        producer = Producer(np.zeros(2, np.uint8), NAMES[1])
        tensor = producer.managed.tensor
        tensor.code, tensor.bits, tensor.lanes = code, bits, lanes
        return producer

    cases = {
        "code 5, 64 bits": with_type(5, 64),
        "code 3, 8 bits": with_type(3, 8),
        "2 lanes": with_type(17, 4, 2),
        "come packed": with_type(17, 4),
        "expected DLPack 1.x, got 2.0": Producer(np.zeros(2), NAMES[1], version=(2, 0)),
        "named 'other'": Producer(np.zeros(2), b"other"),
    }
    for message, producer in cases.items():
        with pytest.raises(TesseraError, match=message):
            ts.from_dlpack(producer)
        assert producer.deleted == 0


def test_sub_byte_elements_are_shared_padded_or_not_at_all() -> None:
    x = ts.asarray([1, -2, 3]).to(ts.i4)
    for version in (None, (1, 0)):
        with pytest.raises(BufferError, match="a byte per element"):
            x.__dlpack__(max_version=version)
    assert ts.from_dlpack(x).tolist() == [1, -2, 3]


def test_scaled_elements_are_not_shared_as_if_they_were_plain() -> None:
    x = ts.ones(2, ts.f16 @ ts.loss_scale(8.0))
    for share in (x.__dlpack__, lambda: np.asarray(x), lambda: ts.from_dlpack(x)):
        with pytest.raises(BufferError, match="multiples of its values"):
            share()
    assert x.numpy().tolist() == [8.0, 8.0]
    assert ts.from_dlpack(x.to(ts.f16)).tolist() == [1.0, 1.0]


def test_copies_on_demand() -> None:
    x = ts.ones(3)
    copied = opened(x.__dlpack__(copy=True, max_version=(1, 0)))
    assert copied.tensor.data != x.pointer
    assert copied.flags == 2
    assert opened(x.__dlpack__(copy=False)).tensor.data == x.pointer
    assert ts.from_dlpack(x, copy=True).pointer != x.pointer
    assert ts.from_dlpack(x, copy=False).pointer == x.pointer
    assert opened(x.__dlpack__(dl_device=(1, 0))).tensor.data == x.pointer
    with pytest.raises(TesseraError, match="no streams"):
        x.__dlpack__(stream=1)


def test_misaligned_memory_is_copied() -> None:
    raw = np.zeros(33, np.uint8)
    odd = raw[-raw.ctypes.data % 8 + 1 :][:16].view(np.float64)
    producer = Producer(odd, NAMES[1])
    with pytest.raises(ResourceError, match="not a multiple"):
        ts.from_dlpack(producer, copy=False)
    assert producer.deleted == 1
    x = ts.from_dlpack(Producer(odd, NAMES[1]))
    assert x.tolist() == [0.0, 0.0]
    assert x.meta.alignment == 64


class OldProducer:
    """Knows nothing of versions."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, stream: int | None = None) -> Any:
        return np.arange(3).__dlpack__()


class Unwilling:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: object) -> Any:
        raise RuntimeError("not today")


def test_producers_of_all_ages() -> None:
    assert ts.from_dlpack(OldProducer()).tolist() == [0, 1, 2]
    assert ts.asarray(OldProducer()).tolist() == [0, 1, 2]
    with pytest.raises(ResourceError, match="Unwilling does not share its memory: not today"):
        ts.from_dlpack(Unwilling())
    with pytest.raises(DtypeError, match="cannot make a tensor of a object"):
        ts.asarray(object())


def test_nothing_leaks() -> None:
    """Ten thousand exchanges; what is alive afterwards is what was alive before."""
    x = ts.ones(4)

    def living() -> int:
        gc.collect()
        return sum(type(thing) in (ts.Tensor, Buffer) for thing in gc.get_objects())

    before = living(), sys.getrefcount(x.geometry)
    for _ in range(10_000):
        ts.from_dlpack(x)
        x.__dlpack__()
    after = living(), sys.getrefcount(x.geometry)
    assert after == before


def test_threads_may_drop_what_they_like() -> None:
    producers = [Producer(np.arange(4), NAMES[1]) for _ in range(50)]
    tensors = [ts.from_dlpack(producer) for producer in producers]

    def drop() -> None:
        while tensors:
            try:
                tensors.pop()
            except IndexError:
                return

    workers = [threading.Thread(target=drop) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [producer.deleted for producer in producers] == [1] * 50


def test_memory_may_be_alive_at_exit() -> None:
    code = (
        "import tessera as ts, numpy as np\n"
        "a = np.from_dlpack(ts.ones(3)); b = ts.from_dlpack(np.ones(3)); c = ts.ones(3).__dlpack__()\n"
        "print(a.sum(), b.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3.0 [1.0, 1.0, 1.0]\n"
    assert done.stderr == ""
