"""NVML: clocks, power, energy, temperature and load of a GPU, as the driver's management library reports them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from tessera.errors import DeviceError
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.streams import cuda_device
from tessera.runtime.device.device import Device


class Clocks(NamedTuple):
    """In MHz: of the multiprocessors and of the memory, now and at most."""

    multiprocessors: int
    memory: int
    most_multiprocessors: int
    most_memory: int


class GpuLoad(NamedTuple):
    """In percent of the time of the last moments: a kernel was running; memory was read or written."""

    multiprocessors: int
    memory: int


@cache
def library() -> Any:
    """The module `pynvml`, started."""
    try:
        pynvml: Any = import_module("pynvml")
    except ImportError as error:
        raise DeviceError(
            f"clocks and energy need the package nvidia-ml-py, which cannot be imported: {error}",
            hint="pip install 'tessera-lang[cuda]'",
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise DeviceError(
            f"NVIDIA's management library does not start: {error}", hint="see whether nvidia-smi works"
        ) from None
    return pynvml


class Meter:
    """Readings of one GPU. Those that a GPU does not have are None."""

    def __init__(self, device: str | Device | None = None) -> None:
        self.device = cuda_device(device)
        self._nvml = library()
        # By its bus, because CUDA_VISIBLE_DEVICES renumbers devices for the one library and not for the other.
        bus = Context.of(self.device.index).properties.pci_bus
        self._handle = self._nvml.nvmlDeviceGetHandleByPciBusId(bus.encode())

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(self._handle, *arguments)
        except self._nvml.NVMLError:
            return None

    def clocks(self) -> Clocks | None:
        """The clocks now, and the highest there are."""
        kinds = (self._nvml.NVML_CLOCK_SM, self._nvml.NVML_CLOCK_MEM)
        found = [
            self._ask(name, kind) for name in ("nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo") for kind in kinds
        ]
        return None if None in found else Clocks(*found)

    def watts(self) -> float | None:
        """The power that it draws."""
        found = self._ask("nvmlDeviceGetPowerUsage")
        return None if found is None else found / 1e3

    def watts_limit(self) -> float | None:
        """The power that it may draw."""
        found = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        return None if found is None else found / 1e3

    def joules(self) -> float | None:
        """The energy that it has used since the driver was loaded. It is counted every 20 to 100 ms."""
        found = self._ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if found is None else found / 1e3

    def celsius(self) -> int | None:
        """Its temperature."""
        return self._ask("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU)

    def load(self) -> GpuLoad | None:
        """How busy it has been."""
        found = self._ask("nvmlDeviceGetUtilizationRates")
        return None if found is None else GpuLoad(found.gpu, found.memory)

    def throttle_reasons(self) -> int | None:
        """Why it does not run faster, as NVML's bits."""
        return self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")


def driver_version() -> str:
    """The version of the driver, such as 580.65.06."""
    found = library().nvmlSystemGetDriverVersion()
    return found.decode() if isinstance(found, bytes) else found
