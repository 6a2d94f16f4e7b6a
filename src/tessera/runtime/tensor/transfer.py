"""Copies of tensors' elements, within a device and between devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tessera.runtime.device.device import CPU, Device
from tessera.runtime.device.memory import (
    Array,
    Buffer,
    address,
    aligned,
    aligned_copy,
    aligned_empty,
    byte_span,
    contiguous_strides,
)

if TYPE_CHECKING:
    from tessera.runtime.tensor.tensor import Tensor


class MemoryTransferInfo(NamedTuple):
    """A copy of elements from one device to another."""

    source: Device
    target: Device
    nbytes: int


LISTENERS: list[Callable[[MemoryTransferInfo], object]] = []
"""Who is told of every copy of a tensor to another device."""


def transfer(array: Array, source: Device, target: Device) -> tuple[Array, Buffer | None]:
    """A copy of `array`, which lies on `source`, in C order in fresh memory of `target`."""
    if LISTENERS and source is not target:
        for listener in LISTENERS:
            listener(MemoryTransferInfo(source, target, array.nbytes))
    if source.backend.host_addressable:
        return (aligned_copy(array), None) if target is CPU else _to_device(array, target)
    if not array.flags.c_contiguous and (gathered := source.backend.gather(array)) is not None:
        strides = contiguous_strides(array.shape, array.itemsize)
        array = gathered.array(array.dtype, array.shape, strides)
        if target is source:
            return array, gathered
    if target.kind == source.kind and array.flags.c_contiguous:
        buffer = target.backend.allocate(array.nbytes)
        if array.nbytes:
            target.backend.copy_from_device(buffer.pointer, source, address(array), array.nbytes)
            source.backend.note_use(array)
        return buffer.array(array.dtype, array.shape, array.strides), buffer
    host = _to_host(array, source)
    return (host, None) if target is CPU else _to_device(host, target)


def _to_device(array: Array, target: Device) -> tuple[Array, Buffer]:
    contiguous = aligned(array)
    buffer = target.backend.allocate(contiguous.nbytes)
    if contiguous.nbytes:
        target.backend.copy_from_host(buffer.pointer, address(contiguous), contiguous.nbytes)
    return buffer.array(contiguous.dtype, contiguous.shape, contiguous.strides), buffer


def _to_host(array: Array, source: Device) -> Array:
    """The whole stretch that `array` reaches over in one copy, and its elements picked out of that here."""
    if not array.size:
        return aligned_empty(array.shape, array.dtype)
    low, high = byte_span(array)
    stretch = aligned_empty((high - low,), np.dtype(np.uint8))
    source.backend.copy_to_host(address(stretch), low, high - low)
    picked = np.ndarray(array.shape, array.dtype, stretch.data, address(array) - low, array.strides)
    return aligned(picked)


class Mirror:
    """Memory of devices, brought over to the host for a while: each storage once, so that views of it stay views."""

    def __init__(self) -> None:
        self._held: dict[tuple[Device, int], tuple[Buffer, Array]] = {}

    def array(self, tensor: Tensor) -> Array:
        """The tensor's elements on the host, with its strides."""
        if tensor.device.backend.host_addressable:
            return tensor.numpy()
        buffer = tensor.buffer
        key = tensor.device, buffer.pointer
        if key not in self._held:
            stretch = aligned_empty((buffer.nbytes,), np.dtype(np.uint8))
            if buffer.nbytes:
                tensor.device.backend.copy_to_host(address(stretch), buffer.pointer, buffer.nbytes)
            self._held[key] = buffer, stretch
        _, stretch = self._held[key]
        steps = tuple(stride * tensor.itemsize for stride in tensor.strides)
        offset = tensor.pointer - buffer.pointer if tensor.size else 0
        found = np.ndarray(tensor.shape, tensor.dtype.storage, stretch.data, offset, steps)
        found.flags.writeable = tensor.writable
        return found

    def bring_back(self) -> None:
        """What is on the host now, back to where it came from."""
        for (place, pointer), (buffer, stretch) in self._held.items():
            if buffer.nbytes and buffer.writable:
                place.backend.copy_from_host(pointer, address(stretch), buffer.nbytes)
