"""`DeviceArray`: what NumPy's arrays say of themselves, for memory that the host cannot reach.

It has an address, a shape, strides in bytes, a storage type and the owner of the memory, and no way to the elements:
NumPy makes no array of it. Its views are worked out by NumPy on a stand-in, an array of the host with the same shape
and strides that nothing reads and that is gone afterwards. Machine code reads the address from its slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias, cast, final

import numpy as np

from tessera.errors import DeviceError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_PLACE = np.zeros(1, np.uint64)
_PLACE_AT: int = _PLACE.ctypes.data
"""Where stand-ins begin."""


class _StandIn:
    """A stand-in as NumPy takes it; the array that NumPy makes of it keeps the owner of the memory alive."""

    __slots__ = ("__array_interface__", "owner")


@final
class DeviceArray:
    """An array of a device: its geometry and its owner, `base`."""

    __slots__ = ("_strides", "address", "base", "dtype", "shape", "writeable")

    __array_ufunc__ = None

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        base: object,
        strides: tuple[int, ...] | None = None,
        *,
        writeable: bool = True,
    ) -> None:
        self.address, self.shape, self.dtype, self.base = address, shape, dtype, base
        self._strides = strides
        """None where elements lie one after the other, the last axis fastest."""
        self.writeable = writeable

    @property
    def strides(self) -> tuple[int, ...]:
        found = self._strides
        if found is None:
            shape, itemsize = self.shape, self.dtype.itemsize
            found = self._strides = tuple([math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))])
        return found

    @property
    def flags(self) -> DeviceArray:
        """What has `writeable`, `c_contiguous` and `aligned`, where NumPy's arrays have them."""
        return self

    @property
    def c_contiguous(self) -> bool:
        return self._strides is None or bool(self.stand_in().flags.c_contiguous)

    @property
    def aligned(self) -> bool:
        """Whether every element lies where its type wants it."""
        steps = [stride for count, stride in zip(self.shape, self.strides, strict=True) if count > 1]
        return not self.size or all(one % self.dtype.alignment == 0 for one in (self.address, *steps))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    # Views

    @property
    def T(self) -> DeviceArray:  # noqa: N802  (the name of NumPy)
        return self.changed(np.transpose)

    def view(self, dtype: np.dtype[Any]) -> DeviceArray:
        """The same bytes as elements of another type of the same size."""
        assert dtype.itemsize == self.itemsize
        return DeviceArray(self.address, self.shape, dtype, self.base, self._strides, writeable=self.writeable)

    def swapaxes(self, first: int, second: int) -> DeviceArray:
        return self.changed(lambda array: array.swapaxes(first, second))

    def transpose(self, order: Sequence[int]) -> DeviceArray:
        return self.changed(lambda array: array.transpose(order))

    def reshape(self, shape: tuple[int, ...], *, copy: bool = False) -> DeviceArray:
        """A view; a `ValueError` where there is none."""
        assert not copy
        return self.changed(lambda array: array.reshape(shape, copy=False))

    def __getitem__(self, key: Any) -> DeviceArray:
        """A view, for integers, slices, None and an ellipsis."""
        given: list[Any] = list(np.index_exp[key])
        if not all(part is None or isinstance(part, int | slice | EllipsisType) for part in given):
            raise TypeError(f"arrays of devices have views for integers and slices, got {key!r}")
        # With an ellipsis, NumPy answers with an array where it would otherwise read out a scalar.
        whole = tuple(given) if any(part is Ellipsis for part in given) else (*given, Ellipsis)
        return self.changed(lambda array: array[whole])

    def changed(self, change: Callable[[Array], Array]) -> DeviceArray:
        """The view that a function of NumPy's gives; it must not look at elements."""
        found = change(self.stand_in())
        at = self.address + found.__array_interface__["data"][0] - _PLACE_AT
        return DeviceArray(at, found.shape, self.dtype, self.base, found.strides, writeable=found.flags.writeable)

    def stand_in(self, origin: int | None = None) -> Array:
        """An array of the host with these sizes and strides, as far from a place as this is from `origin`.

        Its elements must not be touched. It keeps the memory of this alive.
        """
        made = _StandIn()
        made.owner = self.base
        made.__array_interface__ = {
            "version": 3,
            "shape": self.shape,
            "strides": self.strides,
            # Plain integers of the right width: NumPy has no type strings for bf16 and its like.
            "typestr": f"=u{self.dtype.itemsize}",
            "data": (_PLACE_AT if origin is None else _PLACE_AT + self.address - origin, not self.writeable),
        }
        return np.asarray(made)

    # NumPy

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        found = _FUNCTIONS.get(function)
        return NotImplemented if found is None else found(*args, **kwargs)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise DeviceError("memory of a device cannot be read by the host", hint="bring the tensor over first: .cpu()")


device_array: Callable[..., Array] = cast("Any", DeviceArray)
"""`DeviceArray` for code that takes arrays of any device and asks for their geometry only."""


def _compared(function: Callable[..., bool]) -> Callable[..., bool]:
    """A function of two arrays, asked about stand-ins that lie to each other as they do."""

    def compared(a: Any, b: Any, *more: Any, **given: Any) -> bool:
        if not (isinstance(a, DeviceArray) and isinstance(b, DeviceArray)):
            return False  # one of them is the host's
        origin = min(a.address, b.address)
        return function(a.stand_in(origin), b.stand_in(origin), *more, **given)

    return compared


def _broadcast_to(array: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return array.changed(lambda one: np.broadcast_to(one, shape))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.broadcast_to: _broadcast_to,
    np.may_share_memory: _compared(np.may_share_memory),
    np.shares_memory: _compared(np.shares_memory),
}
"""NumPy's functions that ask for geometry only."""
