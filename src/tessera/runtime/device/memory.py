"""Memory: the `Buffer` that owns a range of bytes, and host arrays that start on 64-byte boundaries."""

from __future__ import annotations

import ctypes
import math
import sys
from abc import ABC
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from tessera.errors import ResourceError
from tessera.shapes.expr import format_shape

if TYPE_CHECKING:
    from tessera.runtime.device.device import Device

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64
_DATA_AT = 16  # in an array object

# Bound once: every new tensor passes through these.
_BYTE = np.dtype(np.uint8)
_address_of, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


class Buffer:
    """A range of bytes on a device, alive as long as `keepalive` is; every view on it holds the buffer."""

    __slots__ = ("__weakref__", "device", "keepalive", "nbytes", "pointer", "writable")

    def __init__(self, pointer: int, nbytes: int, device: Device, keepalive: object, *, writable: bool = True) -> None:
        self.pointer = pointer
        self.nbytes = nbytes
        self.device = device
        self.keepalive = keepalive
        self.writable = writable

    def __repr__(self) -> str:
        return f"Buffer({self.nbytes} bytes at {self.pointer:#x}, device={self.device})"

    def array(self, storage: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
        """An array at `offset` bytes, with `strides` in bytes.

        It only carries an address, a shape and strides until somebody reads it, so it also describes memory
        that the host cannot reach: NumPy then does the arithmetic of views, and nothing else.
        """
        window = _Window(self, shape, strides, storage.itemsize, offset)
        return np.asarray(window).view(storage)


class Home(Protocol):
    """Where memory of a device goes when nobody needs it any longer."""

    @property
    def nbytes(self) -> int: ...

    def append(self, pointer: int, /) -> None: ...


class DeviceMemory(ABC):
    """Memory of a device from some address on, for whoever holds this or an array on it; then it goes home.

    To NumPy it is bytes, so arrays on it are made in a moment. How many bytes is the home's to know: no type of its own
    for each size. There is Python's, here, and one of machine code (`cuda/results.py`).
    """

    home: Home
    address: int


@DeviceMemory.register
class _Bytes(ctypes.c_char * (1 << 40)):
    """Such memory as Python has it."""

    __slots__ = ("home",)

    home: Home

    @property
    def address(self) -> int:
        return _address_of(self)

    def __del__(self, address_of: Any = ctypes.addressof) -> None:
        self.home.append(address_of(self))


memory_at: Callable[[int], DeviceMemory] = cast("Any", _Bytes.from_address)
"""Memory at an address; whoever asks for it says where its home is."""


class _Window:
    """What NumPy takes an address from; the array made of it keeps the window, and so the buffer, alive."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(
        self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, offset: int
    ) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            # Plain integers of the right width: NumPy has no type strings for bf16 and its like.
            "typestr": f"=u{itemsize}",
            "data": (buffer.pointer + offset, not buffer.writable),
        }


def address(array: Any) -> int:
    """Where `array` begins: `array.ctypes.data`, in a sixth of its time for plain arrays."""
    try:
        return _address_of(_from_buffer(array))
    except (TypeError, ValueError, BufferError):  # read-only, strided, empty, or a type that buffers do not know
        return array.ctypes.data


def _data_reader() -> Callable[[Array], int]:
    """A function that reads where an array begins out of the array object, a tenth of what NumPy takes for it."""
    words = (ctypes.c_uint64 * (1 << 58)).from_address(0)
    shift = 3

    def read(array: Array) -> int:
        return words[(id(array) + _DATA_AT) >> shift]

    example = np.arange(6.0)
    tries = (example, example[2:], example.reshape(2, 3).T)
    is_as_expected = all(read(array) == array.ctypes.data for array in tries)
    return read if is_as_expected else lambda array: array.ctypes.data


data_address = _data_reader()


class _Storage(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Bytes with room for alignment. NumPy's views go back to the aligned array in it, and not to the whole."""


def aligned_empty(shape: tuple[int, ...], storage: np.dtype[Any]) -> Array:
    """An uninitialised C-ordered host array that starts on a 64-byte boundary."""
    nbytes = math.prod(shape) * storage.itemsize
    try:
        raw: Any = _Storage(nbytes + ALIGNMENT, _BYTE)
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


def buffer_of(array: Array, device: Device) -> Buffer:
    """The storage that an array is a view of, as far as NumPy knows it."""
    root = _root(array)
    if isinstance(root.base, _Window):
        return root.base.buffer
    if isinstance(root.base, DeviceMemory):
        return Buffer(root.base.address, root.base.home.nbytes, device, root.base)
    low, high = byte_span(root)
    return Buffer(low, high - low, device, root, writable=root.flags.writeable)


def owner_of(array: Array) -> object:
    """What keeps the memory of an array alive: a device's memory, what a buffer was made with, or an array's base."""
    base = _root(array).base
    return base.buffer.keepalive if isinstance(base, _Window) else base


def device_of(array: Array) -> Device | None:
    """The device that an array was placed on by a buffer; None for arrays of the host."""
    base = _root(array).base
    return base.buffer.device if isinstance(base, _Window) else None


def _root(array: Array) -> Array:
    root = array
    while isinstance(root.base, np.ndarray) and not isinstance(root.base, _Storage):
        root = root.base
    return root


class _Holder(Protocol):
    @property
    def geometry(self) -> Array: ...


def _references(holder: _Holder) -> tuple[int, int]:
    """How many refer to an array, and to what it lies on; whoever looks is among them."""
    array = holder.geometry
    return sys.getrefcount(array), sys.getrefcount(array.base)


class _Lone:
    """Holds an array that nobody else knows."""

    def __init__(self) -> None:
        self.geometry = aligned_empty((1,), _BYTE)


_TOP, _BELOW = _references(_Lone())
_OWN = (_Storage, bytearray)
"""With memory of devices, what arrays lie on whose memory is Tessera's own: nobody looks at it without a reference."""

_BENEATH: Mapping[type, str] = {np.ndarray: "base", _Window: "buffer", Buffer: "keepalive"}
"""What holds memory by something else."""


def taken(holder: _Holder, shape: tuple[int, ...], storage: np.dtype[Any]) -> Array | None:
    """An array in the memory of another one that its holder gives away; None where somebody else may look at that."""
    array: Any = holder.geometry
    if sys.getrefcount(array) != _TOP or not array.flags.writeable:
        return None
    at, base = data_address(array), array
    while base.__class__ not in _OWN and not isinstance(base, DeviceMemory):
        if base.__class__ is np.ndarray and base.base is None:
            # NumPy's own memory, which only this array leads to.
            whole = base.reshape(-1).view(_BYTE) if base.flags.owndata and base.flags.c_contiguous else None
            return None if whole is None else np.ndarray(shape, storage, whole, at - data_address(whole))
        name = _BENEATH.get(base.__class__)
        # A tensor may know the buffer that it lies on.
        also = base.__class__ is _Window and base.buffer is getattr(holder, "_buffer", None)
        if name is None or sys.getrefcount(getattr(base, name)) != _BELOW + also:
            return None
        base = getattr(base, name)
    start = base.address if isinstance(base, DeviceMemory) else _address_of(_from_buffer(base))
    buffer: Any = base
    return np.ndarray(shape, storage, buffer, at - start)
