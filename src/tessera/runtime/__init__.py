"""The runtime: tensors, devices and their memory, compiled programs, and the devices that come with the package."""

from __future__ import annotations

from tessera.runtime.device.device import DeviceBackend, provide_backend


def _cuda() -> type[DeviceBackend]:
    from tessera.runtime.cuda.backend import CudaBackend  # for processes that use a GPU

    return CudaBackend


provide_backend("cuda", _cuda)
