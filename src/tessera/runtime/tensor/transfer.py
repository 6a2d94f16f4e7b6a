"""Copies of tensors' elements, within a device and between devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tessera.runtime.device.device import CPU, Buffer, Device
from tessera.runtime.device.memory import (
    Array,
    address,
    aligned,
    aligned_copy,
    aligned_empty,
    byte_span,
    contiguous_strides,
)


class MemoryTransferInfo(NamedTuple):
    """A copy of elements from one device to another."""

    source: Device
    target: Device
    nbytes: int


LISTENERS: list[Callable[[MemoryTransferInfo], object]] = []
"""Functions that are told of every copy of a tensor to another device."""


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
