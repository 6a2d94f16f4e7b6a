"""Memory of devices on the host for a while, as the tile interpreter needs it."""

from __future__ import annotations

import numpy as np

from tessera.runtime.device.device import Buffer, Device
from tessera.runtime.device.memory import Array, address, aligned_empty
from tessera.runtime.tensor.tensor import Tensor


class Mirror:
    """Memory of devices, brought over to the host for a while: each storage once, so that views of it stay views."""

    def __init__(self) -> None:
        self._held: dict[tuple[Device, int], tuple[Buffer, Array]] = {}

    def array(self, tensor: Tensor) -> Array:
        """The tensor's elements on the host, with its strides."""
        if tensor.device.backend.host_addressable:
            return tensor.numpy()
        buffer = tensor.buffer
        key = tensor.device, buffer.pointer
        if key not in self._held:
            stretch = aligned_empty((buffer.nbytes,), np.dtype(np.uint8))
            if buffer.nbytes:
                tensor.device.backend.copy_to_host(address(stretch), buffer.pointer, buffer.nbytes)
            self._held[key] = buffer, stretch
        _, stretch = self._held[key]
        steps = tuple(stride * tensor.itemsize for stride in tensor.strides)
        offset = tensor.pointer - buffer.pointer if tensor.size else 0
        found = np.ndarray(tensor.shape, tensor.dtype.storage, stretch.data, offset, steps)
        found.flags.writeable = tensor.writable
        return found

    def bring_back(self) -> None:
        """Copies the arrays on the host back to their devices."""
        for (device, pointer), (buffer, stretch) in self._held.items():
            if buffer.nbytes and buffer.writable:
                device.backend.copy_from_host(pointer, address(stretch), buffer.nbytes)
