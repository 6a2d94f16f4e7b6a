"""Memory: where arrays lie, host arrays that start on 64-byte boundaries, and memory of devices by its address."""

from __future__ import annotations

import ctypes
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from tessera.errors import ResourceError
from tessera.runtime.native.device_array import Array, DeviceArray
from tessera.shapes.expr import format_shape

ALIGNMENT = 64
_DATA_AT = 16  # in an array object

# Bound once: every new tensor passes through these.
_BYTE = np.dtype(np.uint8)
_address_of, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


class Home(Protocol):
    """Where memory of a device goes when it is no longer needed."""

    @property
    def nbytes(self) -> int: ...

    def append(self, pointer: int, /) -> None: ...


class DeviceMemory(ABC):
    """Memory of a device from some address on, alive while this or an array on it is; then it goes home.

    How many bytes it has is the home's to know. There is Python's class, here, and one of machine code
    (`cuda/results.py`).
    """

    __slots__ = ()

    address: int

    @property
    @abstractmethod
    def home(self) -> Home: ...

    @home.setter
    @abstractmethod
    def home(self, home: Home) -> None: ...


class PlainMemory(DeviceMemory):
    """Such memory as Python has it.

    Its home is kept beside it, where Python's collector sees no way from the one to the other: it would end both in any
    order, and what comes home to a list that has ended is lost.
    """

    __slots__ = ("address",)

    _homes: ClassVar[dict[int, Home]] = {}

    def __init__(self, address: int, home: Home) -> None:
        self.address = address
        self.home = home

    @property
    def home(self) -> Home:
        return self._homes[id(self)]

    @home.setter
    def home(self, home: Home) -> None:
        self._homes[id(self)] = home

    def __del__(self) -> None:
        self._homes.pop(id(self)).append(self.address)


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a value is an array: NumPy's, or one of a device whose memory the host cannot reach."""
    return isinstance(value, np.ndarray | DeviceArray)


def address(array: Any) -> int:
    """Where `array` begins: `array.ctypes.data`, in a sixth of its time for plain arrays."""
    if array.__class__ is DeviceArray:
        return array.address
    try:
        return _address_of(_from_buffer(array))
    except (TypeError, ValueError, BufferError):  # read-only, strided, empty, or a type that buffers do not know
        return array.ctypes.data


def _data_reader() -> Callable[[Array], int]:
    """A function that reads where an array begins out of the array object, a tenth of what NumPy takes for it."""
    words = (ctypes.c_uint64 * (1 << 58)).from_address(0)
    shift = 3

    def read(array: Any) -> int:
        return array.address if array.__class__ is DeviceArray else words[(id(array) + _DATA_AT) >> shift]

    example = np.arange(6.0)
    tries = (example, example[2:], example.reshape(2, 3).T)
    is_as_expected = all(read(array) == array.ctypes.data for array in tries)
    return read if is_as_expected else address


data_address = _data_reader()


class AlignedStorage(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Bytes with room for alignment. NumPy's views go back to the aligned array in it, and not to the whole."""


def aligned_empty(shape: tuple[int, ...], storage: np.dtype[Any]) -> Array:
    """An uninitialised C-ordered host array that starts on a 64-byte boundary."""
    nbytes = math.prod(shape) * storage.itemsize
    try:
        raw: Any = AlignedStorage(nbytes + ALIGNMENT, _BYTE)
    except (MemoryError, ValueError, OverflowError):
        raise ResourceError(
            f"{nbytes:,} bytes of host memory cannot be had",
            shapes=[f"{format_shape(shape)}, {storage.itemsize} bytes each"],
            hint="use a smaller shape or a narrower dtype",
        ) from None
    return np.ndarray(shape, storage, raw, -_address_of(_from_buffer(raw)) % ALIGNMENT)


def aligned_copy(array: Array) -> Array:
    """A C-ordered, 64-byte aligned copy of a host array."""
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def aligned(array: Array) -> Array:
    """`array` itself where it is C-ordered and 64-byte aligned already, else such a copy."""
    if array.flags.c_contiguous and address(array) % ALIGNMENT == 0:
        return array
    return aligned_copy(array)


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of elements one after the other with the last axis fastest."""
    return tuple([math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))])


def usual_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides under which an array is the same, those of axes of size 1 as if what lies behind them followed itself.

    Such axes are never stepped over, and other libraries give them any strides: torch says 1.
    """
    found = list(strides)
    for axis in range(len(shape) - 2, -1, -1):
        if shape[axis] == 1:
            found[axis] = shape[axis + 1] * found[axis + 1]
    return tuple(found)


def byte_span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte and one past the last that `array` can touch."""
    return span_of(address(array), array.shape, array.strides, array.itemsize)


def span_of(first: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The same for an array that begins at `first`; strides are in bytes."""
    low = high = first
    if 0 in shape:
        return low, high
    for count, stride in zip(shape, strides, strict=True):
        reach = (count - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + itemsize
