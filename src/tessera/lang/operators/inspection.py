"""Inspection of the array namespace, as the standard asks: devices, element types, capabilities, constants."""

from __future__ import annotations

import math
from typing import Any

from tessera.dtypes.types import STANDARD_NAMES, DType, f32, i64
from tessera.errors import DeviceError
from tessera.lang.operators.data_types import isdtype
from tessera.runtime.device.device import CPU, Device, default_device
from tessera.runtime.device.device import device as find_device
from tessera.runtime.tensor.creation import DeviceLike

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None


class NamespaceInfo:
    """The capabilities of this namespace, as the Array API's inspection functions tell them."""

    def capabilities(self) -> dict[str, Any]:
        """Masks as indices and results with as many elements as values say work outside a trace."""
        return {"boolean indexing": True, "data-dependent shapes": True}

    def default_device(self) -> Device:
        return default_device()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        _found(device)
        return {"real floating": f32, "integral": i64, "indexing": i64}

    def devices(self) -> list[Device]:
        found = [CPU]
        for index in range(16):
            try:
                one = find_device(f"cuda:{index}")
                one.backend  # noqa: B018  (it fails where there is no such device)
            except DeviceError:
                break
            found.append(one)
        return found

    def dtypes(
        self, *, device: DeviceLike | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        _found(device)
        return {name: dtype for name, dtype in STANDARD_NAMES.items() if kind is None or isdtype(dtype, kind)}


def _found(device: DeviceLike | None) -> None:
    if device is not None:
        find_device(device)


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  (the standard's name)
    """Devices, element types and capabilities."""
    return NamespaceInfo()
