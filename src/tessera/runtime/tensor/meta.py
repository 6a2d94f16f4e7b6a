"""Metas: what a tensor is apart from its values, interned so that a guard is one `is`."""

from __future__ import annotations

import math
from threading import Lock
from typing import Any, ClassVar, final
from weakref import WeakValueDictionary

from tessera.dtypes.types import DType
from tessera.forking import fork_waits_for
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import ALIGNMENT, contiguous_strides


@final
class Kind:
    """The content of a meta apart from sizes: one object for all metas that differ in sizes only, while they are plain.

    Strides that do not follow from the sizes are left out, too; `is_plain` says whether there are such.
    """

    __slots__ = ("alignment", "device", "dtype", "is_plain", "rank")

    _interned: ClassVar[dict[tuple[object, ...], Kind]] = {}

    def __init__(self, dtype: DType, rank: int, device: Device, alignment: int, is_plain: bool) -> None:
        self.dtype, self.rank, self.device, self.alignment, self.is_plain = dtype, rank, device, alignment, is_plain

    @staticmethod
    def of(*told: Any) -> Kind:
        """The one object of this kind."""
        found = Kind._interned.get(told)
        return Kind._interned.setdefault(told, Kind(*told)) if found is None else found


@final
class Meta:
    """dtype, shape, strides in elements, device, and the largest power of two up to 64 that divides the address.

    Equal metas are the same object while one is held. The table holds them weakly: it cannot grow beyond the
    metas in use, and one that a guard holds is never replaced by a twin.
    """

    __slots__ = ("__weakref__", "_kind", "alignment", "device", "dtype", "shape", "strides")

    _interned: ClassVar[WeakValueDictionary[tuple[object, ...], Meta]] = WeakValueDictionary()
    _lock: ClassVar[Lock] = Lock()
    fork_waits_for(_lock, rank=2)

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: Device
    alignment: int
    _kind: Kind | None

    def __new__(
        cls, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], device: Device, alignment: int
    ) -> Meta:
        key = (dtype, shape, strides, device, alignment)
        found = cls._interned.get(key)
        if found is not None:
            return found
        fresh = object.__new__(cls)
        fresh.dtype, fresh.shape, fresh.strides, fresh.device, fresh.alignment = key
        fresh._kind = None
        # The lookup above needs no lock; two threads that both miss must agree on one meta here.
        with cls._lock:
            return cls._interned.setdefault(key, fresh)

    @property
    def kind(self) -> Kind:
        """The content apart from sizes."""
        found = self._kind
        if found is None:
            is_plain = self.strides == contiguous_strides(self.shape, 1)
            found = self._kind = Kind.of(self.dtype, len(self.shape), self.device, self.alignment, is_plain)
        return found

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
