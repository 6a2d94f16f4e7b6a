"""Results of calls on a GPU: tensors on memory that the stream has used before, made by machine code (`results.ll`).

Python does it, too: memory from the list, an array that describes it, a tensor around that, and the way back when the
tensor goes. Machine code takes a third of the time. It writes into objects where CPython and NumPy have their fields,
which is looked at first; where it is not as expected, or there is no memory on the list, Python does the same.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np

from tessera.dtypes.types import f32
from tessera.runtime.cuda.launching import has_entry, steps_on_host
from tessera.runtime.cuda.pool import FreeList, Pool
from tessera.runtime.cuda.streams import Stream
from tessera.runtime.device import CPU
from tessera.runtime.memory import ALIGNMENT, DeviceMemory
from tessera.runtime.meta import Meta
from tessera.runtime.tensor import Tensor
from tessera.runtime.tracking import histories
from tessera.targets.cpu import launch as host_launch
from tessera.targets.llvm import image

Result: TypeAlias = Callable[[Stream, int, Meta, np.dtype[Any]], Tensor]
"""Makes a tensor, given the stream, the size of its memory as the pool rounds it, its meta, and its storage type."""

_NEW_FROM_DESCR, _SET_BASE_OBJECT = 94, 282  # in NumPy's table of functions, which only grows
_DEALLOC, _MEMBERS, _GET_BUFFER = 52, 72, 1  # CPython's numbers for what a class has
_DEFAULT, _NOT_MADE_BY_CALLS = 1 << 18, 1 << 7  # flags of classes
_OBJECT, _READ_ONLY = 16, 1  # of members
_MEMORY_BYTES, _ADDRESS_AT, _HOME_AT = 32, 16, 24
_KEPT: list[object] = []
"""What a class points to as long as there is one."""


def in_python(stream: Stream, size: int, meta: Meta, storage: np.dtype[Any]) -> Tensor:
    """A tensor on memory for use on a stream, as Python makes it."""
    memory = Pool.of(stream.context).allocate(stream, size)
    return Tensor.fresh(np.ndarray(meta.shape, storage, memory), meta)  # pyright: ignore[reportArgumentType]


@cache
def maker() -> Result:
    """What makes tensors in the quickest way that there is here."""
    places = _places() if has_entry() else None
    return in_python if places is None else _in_machine_code(places)


def _places() -> list[list[int]] | None:
    """Where streams, tensors and metas have what the code reads and writes; None where that cannot be told."""
    meta = Meta(f32, (), (), CPU, ALIGNMENT)
    stream = Stream.__new__(Stream)
    stream.free = {}
    wanted: list[tuple[Any, tuple[str, ...]]] = [
        (stream, ("free",)),
        (Tensor.fresh(np.empty(()), meta), ("geometry", "dtype", "device", "_buffer", "meta")),
        (meta, ("dtype", "device", "shape")),
    ]
    found = [[host_launch.slot_of(example, name) for name in names] for example, names in wanted]
    known = [[place for place in several if place is not None] for several in found]
    return known if known == found else None


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _in_machine_code(places: list[list[int]]) -> Result:
    code = steps_on_host()
    introduce = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("introduce_lists"))
    introduce(id(FreeList))
    memory, functions = _memory_class(code), _numpy_functions()
    objects = (np.ndarray, memory, cast("Any", histories).__self__, None, in_python)
    words = [
        *chain.from_iterable([id(kind), *of] for kind, of in zip((Stream, Tensor, Meta), places, strict=True)),
        id(np.ndarray),
        *functions,
        *map(id, objects[1:]),
    ]
    record = struct.pack(f"<{len(words)}Q", *words)
    return host_launch.built_in("result", code.address("result"), record, objects)


def _numpy_functions() -> list[int]:
    """PyArray_NewFromDescr and PyArray_SetBaseObject."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    multiarray: Any = import_module("numpy._core.multiarray")
    table = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(multiarray.__dict__["_ARRAY_API"], None)
    return [_word(table + struct.calcsize("P") * place) for place in (_NEW_FROM_DESCR, _SET_BASE_OBJECT)]


class _Member(ctypes.Structure):
    """CPython's PyMemberDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    """CPython's PyType_Slot."""

    _fields_ = (("number", ctypes.c_int), ("value", ctypes.c_void_p))


class _Specification(ctypes.Structure):
    """CPython's PyType_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def _memory_class(code: image.Image) -> type[DeviceMemory]:
    """Memory whose end is machine code, too."""
    members = (_Member * 3)(
        _Member(b"address", _OBJECT, _ADDRESS_AT, _READ_ONLY), _Member(b"home", _OBJECT, _HOME_AT, 0)
    )
    slots = (_Slot * 4)(
        _Slot(_DEALLOC, code.address("memory_dealloc")),
        _Slot(_GET_BUFFER, code.address("memory_buffer")),
        _Slot(_MEMBERS, ctypes.addressof(members)),
    )
    flags = _DEFAULT | _NOT_MADE_BY_CALLS
    name = f"{__name__}.QuickMemory".encode()
    told = _Specification(name, _MEMORY_BYTES, 0, flags, ctypes.addressof(slots))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)
    made = prototype(("PyType_FromSpecWithBases", ctypes.pythonapi))(ctypes.addressof(told), (object,))
    _KEPT.extend((told, members, slots))
    return DeviceMemory.register(made)
