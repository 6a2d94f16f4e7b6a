"""DLPack both ways: capsules out of tensors, and memory of other libraries in without a copy.

Exports are NumPy's own capsules, for an array of plain integers at the same address, with the element type and the
device corrected. Their deleter and destructor are C code, which a consumer may run in any thread, with an exception
pending or while the interpreter shuts down, where a Python callback would not be safe.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tessera.dtypes import types as dt
from tessera.dtypes.types import DType, Kind
from tessera.errors import ResourceError
from tessera.runtime.device.device import Buffer, Device, device_of_dlpack
from tessera.runtime.device.memory import Array, contiguous_strides, span_of, usual_strides
from tessera.runtime.native.device_array import DeviceArray

# The version that has the narrow floats and the flag for sub-byte elements in bytes of their own.
VERSION = (1, 1)

_READ_ONLY, _IS_COPIED, _SUBBYTE_PADDED = 1, 2, 4

_CODES: dict[DType, tuple[int, int]] = {
    **{dtype: (2, dtype.storage.itemsize * 8) for dtype in (dt.f64, dt.f32, dt.tf32, dt.f16)},
    **{dtype: (0 if dtype.kind is Kind.INT else 1, dtype.bits) for dtype in dt.INTEGERS},
    dt.bf16: (4, 16),
    dt.bool_: (6, 8),
    dt.f8e4m3: (10, 8),
    dt.f8e5m2: (12, 8),
    dt.f6e2m3: (15, 6),
    dt.f6e3m2: (16, 6),
    dt.f4e2m1: (17, 4),
}
_DTYPES = {code: dtype for dtype, code in _CODES.items() if dtype is not dt.tf32}


class ExchangeError(ResourceError, BufferError):
    """Memory that cannot be shared as asked; a BufferError too, because DLPack consumers expect one."""


class _DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Legacy(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_STRUCTURES: dict[bytes, type[_Legacy | _Versioned]] = {b"dltensor": _Legacy, b"dltensor_versioned": _Versioned}
# A capsule does not copy its name, so the names must live as long as the module.
_USED_NAMES = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}

_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def export(
    array: Array, dtype: DType, device: Device, max_version: tuple[int, int] | None, *, copied: bool = False
) -> object:
    """A capsule for the memory of `array`, in the newest form that a consumer of `max_version` understands."""
    versioned = max_version is not None and max_version >= (1, 0)
    padded = dtype.bits < 8 and dtype.base is not dt.bool_
    if dtype.policy.loss_scale is not None:
        raise ExchangeError(
            f"{dtype} stores multiples of its values, which DLPack cannot say",
            hint=f"share the values: .to({dtype.base})",
        )
    if padded and (max_version is None or max_version < VERSION):
        raise ExchangeError(
            f"{dtype.base} takes a byte per element here, while consumers of DLPack before 1.1 expect it packed",
            hint="cast to a type of 8 bits or more, or pass the bytes on with .numpy()",
        )
    is_far = isinstance(array, DeviceArray)
    carrier = array.stand_in() if is_far else array.view(f"u{array.itemsize}")
    if dtype.base is dt.tf32:
        # It goes out as f32, and not every f32 number may come back.
        carrier.flags.writeable = False
    if not versioned and not carrier.flags.writeable:
        raise ExchangeError(
            f"this memory of {dtype} is read-only, which a consumer of DLPack before 1.0 cannot be told",
            hint="share a copy: .to(f32)" if dtype.base is dt.tf32 else "share a copy: .copy()",
        )
    capsule = carrier.__dlpack__(max_version=(1, 0) if versioned else None)
    managed = _open(capsule, _capsule_name(capsule))
    tensor = managed.tensor
    tensor.dtype.code, tensor.dtype.bits = _CODES[dtype.base]
    tensor.device = _DLDevice(device.backend.dlpack_type, device.index)
    if is_far:
        tensor.data = array.address
    if isinstance(managed, _Versioned):
        managed.minor = VERSION[1]
        managed.flags |= (_IS_COPIED if copied else 0) | (_SUBBYTE_PADDED if padded else 0)
    return capsule


def _open(capsule: object, name: bytes) -> _Legacy | _Versioned:
    return _STRUCTURES[name].from_address(_capsule_pointer(capsule, name))


@dataclass(frozen=True, slots=True)
class Imported:
    """Memory taken over from a capsule; the producer's deleter runs when the last view on `buffer` is gone."""

    array: Array
    dtype: DType
    buffer: Buffer


class Lender:
    """Calls the producer's deleter once, when it is no longer referenced; `before` that, whatever is to be done."""

    __slots__ = ("address", "before", "deleter")

    def __init__(self, address: int, deleter: int | None) -> None:
        self.address = address
        self.deleter = deleter
        self.before: dict[int, Callable[[], None]] = {}

    def __del__(self) -> None:
        for action in self.before.values():
            action()
        if self.deleter is not None:
            _Deleter(self.deleter)(self.address)


def take(capsule: object) -> Imported:
    """The memory of `capsule`, which is used up by this; a capsule that is refused stays as it was."""
    name: bytes | None = _capsule_name(capsule)
    if name not in _STRUCTURES:
        raise ExchangeError(
            f"expected a fresh DLPack capsule, got one named {(name or b'').decode()!r}",
            hint="a capsule can be used once: ask its producer for another",
        )
    managed = _open(capsule, name)
    # What a legacy capsule may be used for it cannot say; JAX, for one, hands out immutable arrays in them.
    flags, padded = _READ_ONLY, False
    if isinstance(managed, _Versioned):
        if managed.major != VERSION[0]:
            raise ExchangeError(
                f"expected DLPack {VERSION[0]}.x, got {managed.major}.{managed.minor}",
                hint="use versions of both libraries that share a DLPack version",
            )
        flags, padded = managed.flags, bool(managed.flags & _SUBBYTE_PADDED)
    tensor = managed.tensor
    dtype = _dtype_of(tensor.dtype, padded=padded)
    device = device_of_dlpack(tensor.device.device_type, tensor.device.device_id)
    shape = tuple(tensor.shape[: tensor.ndim])
    itemsize = dtype.storage.itemsize
    if tensor.strides:
        strides = usual_strides(shape, tuple([stride * itemsize for stride in tensor.strides[: tensor.ndim]]))
    else:
        strides = contiguous_strides(shape, itemsize)
    first = (tensor.data or 0) + tensor.byte_offset
    low, high = span_of(first, shape, strides, itemsize)
    _rename_capsule(capsule, _USED_NAMES[name])
    owner = Lender(ctypes.addressof(managed), managed.deleter)
    buffer = Buffer(low, high - low, device, owner, writable=not flags & _READ_ONLY)
    return Imported(buffer.array(dtype.storage, shape, strides, first - low), dtype, buffer)


def _dtype_of(given: Any, *, padded: bool) -> DType:
    dtype = _DTYPES.get((given.code, given.bits))
    if dtype is None or given.lanes != 1:
        raise ExchangeError(
            f"elements of DLPack type (code {given.code}, {given.bits} bits, {given.lanes} lanes) have no dtype here",
            hint="cast them on the other side first",
        )
    if dtype.bits < 8 and dtype is not dt.bool_ and not padded:
        raise ExchangeError(
            f"{dtype} elements come packed, and are one to a byte here", hint="cast them on the other side first"
        )
    return dtype
