"""Stand-ins for tensors: everything that compilers look at, and no memory behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tessera.dtypes.types import DType
from tessera.runtime.device.device import Buffer, Device
from tessera.runtime.device.memory import ALIGNMENT, contiguous_strides
from tessera.runtime.tensor.meta import Meta, alignment_of
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, described
from tessera.tiers.records import Described, Number


def stand_in(meta: Meta) -> Tensor:
    """A tensor of a meta. Its elements must not be touched."""
    itemsize = meta.dtype.storage.itemsize
    room = np.empty(3 * ALIGNMENT + itemsize, np.uint8)
    # The first multiple of 64 behind the start, and from there as far as the address is to be from one.
    start = -room.ctypes.data % ALIGNMENT + (meta.alignment if meta.alignment < ALIGNMENT else 0)
    first: Any = room[start : start + itemsize].view(meta.dtype.storage)
    assert alignment_of(first.ctypes.data) == meta.alignment or not meta.size
    strides = tuple([stride * itemsize for stride in meta.strides])
    if meta.device.is_host:
        return Tensor.wrap(as_strided(first, meta.shape, strides), meta.dtype)
    # Programs are bound to where arrays lie, too.
    buffer = Buffer(first.ctypes.data, itemsize, meta.device, room)
    return Tensor.wrap(buffer.array(meta.dtype.storage, meta.shape, strides), meta.dtype, meta.device, buffer)


def stand_ins(arguments: Iterable[Meta | Number]) -> list[Tensor | Number]:
    """Arguments of which only metas and numbers are known."""
    return [stand_in(one) if isinstance(one, Meta) else one for one in arguments]


def contiguous(dtype: DType, shape: tuple[int, ...], device: Device) -> Meta:
    """The meta of an array that lies row by row."""
    return Meta(dtype, shape, contiguous_strides(shape, 1), device, ALIGNMENT)


def stand_in_call(call: Call, values: tuple[Any, ...]) -> Call:
    """A call without the memory of its user."""
    return Call(tuple(stand_ins(described(values))), call.fixed, call.context)


def values_of(kept: Call, described: Described) -> tuple[Any, ...]:
    """The arguments of a call that is kept, with the numbers of another one of its metas."""
    return tuple([one if isinstance(one, Tensor) else now for one, now in zip(kept.values, described, strict=True)])
