"""The state of a GPU while something is measured, what it is, and its energy; by the driver and by NVML."""

from __future__ import annotations

from functools import cache
from typing import Any

from tessera.bench.instruments.hardware import EnergyMeter
from tessera.errors import TesseraError
from tessera.runtime.cuda import driver, nvml
from tessera.runtime.cuda.context import Context

_NO_COUNTER = "the GPU has no energy counter"


@cache
def _meter(index: int) -> nvml.Meter:
    return nvml.Meter(f"cuda:{index}")


def gpu_conditions(index: int = 0) -> dict[str, Any]:
    """Clocks, power, temperature and why it runs no faster, at this moment; or why that is not known."""
    try:
        meter = _meter(index)
    except TesseraError as error:
        return {"unavailable": error.message}
    clocks = meter.clocks()
    return {
        "sm_mhz": None if clocks is None else clocks.multiprocessors,
        "memory_mhz": None if clocks is None else clocks.memory,
        "watts": meter.watts(),
        "celsius": meter.celsius(),
        "throttle_reasons": meter.throttle_reasons(),
    }


def gpu_environment(index: int = 0) -> dict[str, Any]:
    """Properties of a GPU that figures depend on and that do not change during a run."""
    properties = Context.of(index).properties
    found: dict[str, Any] = {
        "gpu": properties.name,
        "capability": ".".join(map(str, properties.capability)),
        "multiprocessors": properties.multiprocessors,
        "gpu_memory_bytes": properties.memory,
        "l2_cache_bytes": properties.l2_cache,
        "cuda": driver.driver_version(),
    }
    try:
        clocks, found["driver"] = _meter(index).clocks(), nvml.driver_version()
        found["watts_limit"] = _meter(index).watts_limit()
        found["most_sm_mhz"] = None if clocks is None else clocks.most_multiprocessors
    except TesseraError as error:
        found["driver"] = f"unknown: {error.message}"
    return found


def millijoules(index: int = 0) -> int:
    """The energy that the GPU has used since its driver was loaded."""
    found = _meter(index).joules()
    if found is None:
        raise TesseraError(_NO_COUNTER)
    return round(1e3 * found)


class GpuEnergyMeter(EnergyMeter):
    """Joules that a GPU used between `start` and `stop`, by its own counter, which moves every 20 to 100 ms."""

    def __init__(self, index: int = 0) -> None:
        self.unavailable: str | None = None
        self._index = index
        self._from: int | None = None
        try:
            millijoules(index)
        except TesseraError as error:
            self.unavailable = error.message

    def start(self) -> None:
        if self.unavailable is None:
            self._from = millijoules(self._index)

    def stop(self) -> float | None:
        """The joules since `start`; None where there is no meter. What is under way is waited for."""
        if self.unavailable is not None or self._from is None:
            return None
        Context.of(self._index).synchronize()
        return (millijoules(self._index) - self._from) / 1e3
