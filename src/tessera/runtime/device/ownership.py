"""Ownership: the buffer and the device behind an array, and the memory of arrays that a call may take over."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from tessera.runtime.device.device import Buffer, BufferView, Device
from tessera.runtime.device.memory import AlignedStorage, Array, DeviceMemory, aligned_empty, byte_span, data_address
from tessera.runtime.native.device_array import DeviceArray, device_array

_BYTE = np.dtype(np.uint8)


def buffer_of(array: Array, device: Device) -> Buffer:
    """The storage that an array is a view of, as far as it is known."""
    found = _holder(array)
    if isinstance(found, Buffer):
        return found
    if isinstance(found, DeviceMemory):
        return Buffer(found.address, found.home.nbytes, device, found)
    root = _root(array)
    low, high = byte_span(root)
    return Buffer(low, high - low, device, root, writable=root.flags.writeable)


def owner_of(array: Array) -> object:
    """The object that keeps an array's memory alive: a device's memory, the owner given to a buffer, or a base."""
    found = _holder(array)
    return found.keepalive if isinstance(found, Buffer) else found


def device_of(array: Array) -> Device | None:
    """The device that a buffer put an array on; None for arrays of the host."""
    found = _holder(array)
    return found.device if isinstance(found, Buffer) else None


def _holder(array: Array | DeviceArray) -> object:
    """What an array's memory belongs to: a buffer, where it is on one."""
    base = array.base if isinstance(array, DeviceArray) else _root(array).base
    return base.buffer if isinstance(base, BufferView) else base


def _root(array: Array) -> Array:
    root = array
    while isinstance(root.base, np.ndarray) and not isinstance(root.base, AlignedStorage):
        root = root.base
    return root


class _Holder(Protocol):
    @property
    def geometry(self) -> Array: ...


def _references(holder: _Holder) -> tuple[int, int]:
    """How many refer to an array, and to what it lies on; the one that asks is among them."""
    array = holder.geometry
    return sys.getrefcount(array), sys.getrefcount(array.base)


class _Lone:
    """Holds an array that nothing else refers to."""

    def __init__(self) -> None:
        self.geometry = aligned_empty((1,), _BYTE)


_TOP, _BELOW = _references(_Lone())
_OWN = (AlignedStorage, bytearray)
"""With memory of devices, what arrays lie on whose memory is Tessera's own: it is not read without a reference."""

_BENEATH: Mapping[type, str] = {np.ndarray: "base", DeviceArray: "base", BufferView: "buffer", Buffer: "keepalive"}
"""Holders of memory that belongs to another object."""


def taken(holder: _Holder, shape: tuple[int, ...], storage: np.dtype[Any]) -> Array | None:
    """An array in the memory of another one that its holder gives away; None where others may read that."""
    array: Any = holder.geometry
    if sys.getrefcount(array) != _TOP or not array.flags.writeable:
        return None
    at, base = data_address(array), array
    known = id(getattr(holder, "_buffer", None))  # a tensor may know the buffer that it lies on
    while base.__class__ not in _OWN and not isinstance(base, DeviceMemory):
        if base.__class__ is np.ndarray and base.base is None:
            # NumPy's own memory, which only this array leads to.
            whole = base.reshape(-1).view(_BYTE) if base.flags.owndata and base.flags.c_contiguous else None
            return None if whole is None else np.ndarray(shape, storage, whole, at - data_address(whole))
        name = _BENEATH.get(base.__class__)
        also = name is not None and id(getattr(base, name)) == known
        if name is None or sys.getrefcount(getattr(base, name)) != _BELOW + also:
            return None
        base = getattr(base, name)
    if isinstance(base, DeviceMemory):
        return device_array(at, shape, storage, base)
    start = ctypes.addressof(ctypes.c_char.from_buffer(base))
    buffer: Any = base
    return np.ndarray(shape, storage, buffer, at - start)
