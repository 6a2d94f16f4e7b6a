"""Metas: what a tensor is apart from its values, interned so that a guard is one `is`."""

from __future__ import annotations

import math
from threading import Lock
from typing import ClassVar, final
from weakref import WeakValueDictionary

from tessera.dtypes.types import DType
from tessera.runtime.device import Device
from tessera.runtime.memory import ALIGNMENT


@final
class Meta:
    """dtype, shape, strides in elements, device, and the largest power of two up to 64 that divides the address.

    Equal metas are the same object while anybody holds one. The table holds them weakly: it cannot grow beyond the
    metas in use, and one that a guard holds is never replaced by a twin.
    """

    __slots__ = ("__weakref__", "alignment", "device", "dtype", "shape", "strides")

    _interned: ClassVar[WeakValueDictionary[tuple[object, ...], Meta]] = WeakValueDictionary()
    _lock: ClassVar[Lock] = Lock()

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: Device
    alignment: int

    def __new__(
        cls, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], device: Device, alignment: int
    ) -> Meta:
        key = (dtype, shape, strides, device, alignment)
        found = cls._interned.get(key)
        if found is not None:
            return found
        fresh = object.__new__(cls)
        fresh.dtype, fresh.shape, fresh.strides, fresh.device, fresh.alignment = key
        # The lookup above needs no lock; two threads that both miss must agree on one meta here.
        with cls._lock:
            return cls._interned.setdefault(key, fresh)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements, each once: what a contiguous copy takes."""
        return self.size * self.dtype.storage.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other, the last axis fastest; sizes 1 and 0 fit any stride."""
        expected = 1
        for count, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if count != 1 and stride != expected and self.size:
                return False
            expected *= count
        return True

    def __repr__(self) -> str:
        return (
            f"Meta({self.dtype}, shape={self.shape}, strides={self.strides}, device={self.device}, "
            f"alignment={self.alignment})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Meta, (self.dtype, self.shape, self.strides, self.device, self.alignment)


def alignment_of(pointer: int) -> int:
    """The largest power of two up to 64 that divides `pointer`."""
    return (pointer | ALIGNMENT) & -(pointer | ALIGNMENT)


def may_overlap(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two indices might name one element; False is a proof, True is caution."""
    reach = 0
    for stride, count in sorted((abs(stride), count) for stride, count in zip(strides, shape, strict=True)):
        if count > 1:
            if stride <= reach:
                return True
            reach += (count - 1) * stride
    return False
