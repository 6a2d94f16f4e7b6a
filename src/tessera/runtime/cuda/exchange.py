"""The CUDA array interface, version 3: memory of a GPU for libraries that do not speak DLPack, and theirs for us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tessera.dtypes.promotion import as_dtype
from tessera.errors import DeviceError, DtypeError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.pool import note_use
from tessera.runtime.cuda.streams import LEGACY, current_stream, order
from tessera.runtime.device.device import Buffer, Device
from tessera.runtime.device.memory import Array, address, contiguous_strides, span_of, usual_strides
from tessera.runtime.device.ownership import owner_of

if TYPE_CHECKING:
    from tessera.dtypes.types import DType

VERSION = 3


def described(array: Array, device: Device) -> dict[str, object]:
    """The description of an array of a GPU for a consumer that does not tell its stream."""
    note_use(owner_of(array), None)
    return {
        "version": VERSION,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (address(array) if array.size else 0, not array.flags.writeable),
        "strides": None if array.flags.c_contiguous else array.strides,
        "stream": current_stream(device).handle,
    }


def taken(given: Any) -> tuple[Array, DType, Buffer]:
    """The memory of anything with `__cuda_array_interface__`, ordered after what its producer did."""
    found: dict[str, Any] = given.__cuda_array_interface__
    if found.get("mask") is not None:
        raise DtypeError("arrays with masks are no tensors", hint="fill in the masked elements on the other side")
    try:
        dtype = as_dtype(np.dtype(found["typestr"]))
    except TypeError:
        raise DtypeError(
            f"elements of type {found['typestr']!r} have no dtype here", hint="cast them on the other side first"
        ) from None
    shape = tuple(map(int, found["shape"]))
    pointer, read_only = found["data"]
    device = Device("cuda", _index_of(pointer) if pointer else 0)
    strides = found.get("strides")
    steps = (
        contiguous_strides(shape, dtype.storage.itemsize)
        if strides is None
        else usual_strides(shape, tuple(map(int, strides)))
    )
    stream = found.get("stream")
    if stream is not None:
        order(Context.of(device.index), int(stream) or LEGACY, current_stream(device).handle)
    low, high = span_of(pointer, shape, steps, dtype.storage.itemsize)
    buffer = Buffer(low, high - low, device, given, writable=not read_only)
    return buffer.array(dtype.storage, shape, steps, pointer - low), dtype, buffer


def _index_of(pointer: int) -> int:
    """The GPU that an address belongs to."""
    cu = driver.bindings()
    which = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    status, found = cu.cuPointerGetAttribute(which, pointer)
    if status:
        raise DeviceError(f"{pointer:#x} is not an address of a GPU", hint="share memory of a CUDA device")
    return int(found)
