"""Results of calls on a GPU: tensors on memory that the stream has used before, made by machine code (`results.ll`).

Python does it, too: memory from the list, an array that describes it, a tensor around that, and the way back when the
tensor goes. Machine code takes a third of the time. It writes into objects where CPython has their slots, which is
looked at first; where it is not as expected, or there is no memory on the list, Python does the same.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np

from tessera.dtypes.types import f32
from tessera.runtime.cuda.launching import has_entry, steps_on_host
from tessera.runtime.cuda.pool import Pool
from tessera.runtime.cuda.streams import FreeList, Stream
from tessera.runtime.device.device import CPU
from tessera.runtime.device.memory import ALIGNMENT, DeviceMemory
from tessera.runtime.native import objects
from tessera.runtime.native.device_array import DeviceArray, device_array
from tessera.runtime.tensor.meta import Meta
from tessera.runtime.tensor.tensor import Tensor
from tessera.runtime.tensor.tracking import histories
from tessera.targets.llvm import image

Result: TypeAlias = Callable[[Stream, int, Meta, np.dtype[Any]], Tensor]
"""Makes a tensor, given the stream, the size of its memory as the pool rounds it, its meta, and its storage type."""

_MEMORY_BYTES, _ADDRESS_AT, _HOME_AT = 32, 16, 24


def in_python(stream: Stream, size: int, meta: Meta, storage: np.dtype[Any]) -> Tensor:
    """A tensor on memory for use on a stream, as Python makes it."""
    memory = Pool.of(stream.context).allocate(stream, size)
    return Tensor.fresh(device_array(memory.address, meta.shape, storage, memory), meta)


@cache
def maker() -> Result:
    """The fastest function here that makes tensors of results."""
    offsets = _offsets() if has_entry() else None
    return in_python if offsets is None else _in_machine_code(offsets)


def _offsets() -> list[list[int]] | None:
    """Where streams, tensors and metas have what the code reads and writes; None where that cannot be told."""
    meta = Meta(f32, (), (), CPU, ALIGNMENT)
    stream = Stream.__new__(Stream)
    stream.free = {}
    wanted: list[tuple[Any, tuple[str, ...]]] = [
        (stream, ("free",)),
        (Tensor.fresh(np.empty(()), meta), ("geometry", "dtype", "device", "_buffer", "known_meta")),
        (meta, ("dtype", "device", "shape")),
        (DeviceArray(1 << 40, (), f32.storage, stream), ("address", "base", "dtype", "shape", "_strides", "writeable")),
    ]
    found = [[objects.slot_of(example, name) for name in names] for example, names in wanted]
    known = [[offset for offset in several if offset is not None] for several in found]
    return known if known == found else None


def _in_machine_code(offsets: list[list[int]]) -> Result:
    code = steps_on_host()
    introduce = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("introduce_lists"))
    introduce(id(FreeList))
    kinds = (Stream, Tensor, Meta, DeviceArray)
    kept = (_memory_class(code), cast("Any", histories).__self__, None, True, in_python)
    words = [*chain.from_iterable([id(kind), *of] for kind, of in zip(kinds, offsets, strict=True)), *map(id, kept)]
    record = struct.pack(f"<{len(words)}Q", *words)
    return objects.built_in("result", code.address("result"), record, kept)


def _memory_class(code: image.Image) -> type[DeviceMemory]:
    """Memory whose end is machine code, too."""
    members = [("address", _ADDRESS_AT, False), ("home", _HOME_AT, True)]
    does = [(objects.DEALLOC, code.address("memory_dealloc"))]
    return DeviceMemory.register(objects.new_class(f"{__name__}.QuickMemory", _MEMORY_BYTES, members, does))
