"""The interface of tensors: what operators, indices and assignments, which stand below the class, ask of a tensor."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from tessera.dtypes.types import DType
from tessera.errors import TesseraError
from tessera.runtime.device.device import Buffer, Device
from tessera.runtime.device.memory import Array

DTypeLike: TypeAlias = DType | str | np.dtype[Any] | type


class TensorInterface(Protocol):
    """Elements of one dtype at strided addresses of one device: `Tensor`, without what is built on these."""

    geometry: Array
    device: Device
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def strides(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def pointer(self) -> int: ...

    @property
    def writable(self) -> bool: ...

    @classmethod
    def wrap(cls, array: Array, dtype: DType, device: Device = ..., buffer: Buffer | None = None) -> Self: ...

    def __getitem__(self, key: tuple[slice | list[int], ...], /) -> TensorInterface: ...

    def __int__(self) -> int: ...

    def to(self, target: DTypeLike | Device, *, copy: bool = False, seed: int | None = None) -> TensorInterface: ...

    def cpu(self) -> TensorInterface: ...

    def numpy(self) -> Array: ...

    def values(self) -> Array: ...


class Conversion(Protocol):
    """A function that makes a tensor of other things; see `creation.asarray`."""

    def __call__(
        self, x: object, dtype: DTypeLike | None = None, *, device: str | Device | None = None, copy: bool | None = None
    ) -> TensorInterface: ...


_conversions: list[Conversion] = []


def provide_conversion(conversion: Conversion) -> None:
    """From now on, `asarray` is this function: it makes tensors, so that it stands above them."""
    _conversions[:] = [conversion]


def asarray(
    x: object, dtype: DTypeLike | None = None, *, device: str | Device | None = None, copy: bool | None = None
) -> TensorInterface:
    """`x` as a tensor; see `creation.asarray`."""
    if not _conversions:
        raise TesseraError("nothing makes tensors here", hint="import tessera, not only parts of it")
    return _conversions[0](x, dtype, device=device, copy=copy)
