"""`MeasurementEngine`: measurements around any piece of code, by the timer of the device that it runs on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tessera.bench.instruments.hardware import EnergyMeter, HardwareProfiler
from tessera.bench.instruments.timers import Timer, WallClock
from tessera.bench.results.definitions import BenchError, MeasurementType
from tessera.device_names import ACCELERATORS, HOST, is_accelerator, kind_of


def _gpu_timer() -> Timer:
    from tessera.bench.instruments.gpu_timing import event_timer

    return event_timer()


_timers: dict[str, Callable[[], Timer]] = {HOST: WallClock, **dict.fromkeys(ACCELERATORS, _gpu_timer)}


def register_timer(device: str, make: Callable[[], Timer]) -> None:
    """How work on a kind of device is timed; targets call this."""
    _timers[device] = make


def timer_for(device: str) -> Timer:
    """Of a kind of device, or of one such as `cuda:0`."""
    kind = kind_of(device)
    if kind not in _timers:
        raise BenchError(f"there is no timer for {device!r}", hint=f"one of {', '.join(_timers)}")
    return _timers[kind]()


def _meter_for(device: str) -> EnergyMeter:
    if not is_accelerator(device):
        return EnergyMeter()
    from tessera.bench.instruments.gpu_conditions import GpuEnergyMeter

    return GpuEnergyMeter()


class MeasurementEngine:
    """Measures what happens within a `with` statement.

        with engine.measure_execution([MeasurementType.LATENCY], {"flops": 1e9}) as found:
            work()
        found[MeasurementType.LATENCY]["latency_ms"]

    `context` says what the work is: `device`, `flops`, `bytes`, `calls`, and for accuracy `result` and `reference`,
    functions that are called afterwards. What cannot be measured holds `unavailable` with the reason.
    """

    def __init__(self) -> None:
        self.active_measurements: dict[str, dict[MeasurementType, dict[str, Any]]] = {}
        self.hardware_profiler = HardwareProfiler()
        self._numbers = itertools.count()

    @property
    def distributed_coordinator(self) -> Any:
        from tessera.bench.processes.distributed import DistributedCoordinator

        return DistributedCoordinator()

    @contextmanager
    def measure_execution(
        self, measurement_types: Sequence[MeasurementType], context: Mapping[str, Any] | None = None
    ) -> Generator[dict[MeasurementType, dict[str, Any]]]:
        context = context or {}
        found: dict[MeasurementType, dict[str, Any]] = {kind: {} for kind in measurement_types}
        device = context.get("device", HOST)
        energy = _meter_for(device) if MeasurementType.ENERGY in found else None
        handle = (
            self.hardware_profiler.start_profiling()
            if MeasurementType.COMPUTE_UTILIZATION in found or MeasurementType.OCCUPANCY in found
            else None
        )
        timer = timer_for(device)
        if energy is not None:
            energy.start()
        timer.start()
        try:
            yield found
        finally:
            milliseconds = timer.stop()
            joules = None if energy is None else energy.stop()
            profile = None if handle is None else self.hardware_profiler.stop_profiling(handle)
            for kind, figures in found.items():
                figures.update(_STOPPED[kind](milliseconds, joules, energy, profile, context))
            if MeasurementType.LATENCY in found:
                found[MeasurementType.LATENCY]["method"] = timer.method
            self.active_measurements[f"measure_{next(self._numbers)}"] = found


def _latency(milliseconds: float, *_: Any) -> dict[str, Any]:
    context: Mapping[str, Any] = _[-1]
    return {"latency_ms": milliseconds / context.get("calls", 1)}


def _per_second(what: str, name: str) -> Callable[..., dict[str, Any]]:
    def rate(milliseconds: float, *rest: Any) -> dict[str, Any]:
        context: Mapping[str, Any] = rest[-1]
        if what not in context:
            return {"unavailable": f"the context does not say how many {what} the work takes"}
        return {name: context[what] * context.get("calls", 1) / (milliseconds / 1e3)}

    return rate


def _utilization(milliseconds: float, _joules: Any, _energy: Any, profile: Any, context: Any) -> dict[str, Any]:
    """Of the peak that the context names; and the share of the processors' time that the process used."""
    used = profile.get("user_seconds", 0.0) + profile.get("system_seconds", 0.0)
    found: dict[str, Any] = {"processor_seconds": used, "profile": profile}
    peak = context.get("peak_flops_per_second")
    if peak is None or "flops" not in context:
        return {**found, "unavailable": "the context names no peak_flops_per_second and flops"}
    rate = context["flops"] * context.get("calls", 1) / (milliseconds / 1e3)
    return {**found, "compute_utilization_percent": 100 * rate / peak}


def _energy(_milliseconds: float, joules: float | None, meter: Any, _profile: Any, context: Any) -> dict[str, Any]:
    if joules is None:
        return {"unavailable": meter.unavailable or "no meter"}
    return {"energy_joules": joules / context.get("calls", 1)}


def _occupancy(*rest: Any) -> dict[str, Any]:
    context: Mapping[str, Any] = rest[-1]
    if not is_accelerator(context.get("device", HOST)):
        return {"unavailable": "a figure of GPUs"}
    return {"unavailable": "ncu starts what it measures: tessera.bench.instruments.ncu.profile, or --mode profiling"}


def _accuracy(*rest: Any) -> dict[str, Any]:
    import numpy as np

    context: Mapping[str, Any] = rest[-1]
    if "result" not in context or "reference" not in context:
        return {"unavailable": "the context names no result and reference"}
    found, truth = (np.asarray(context[name](), dtype=np.float64) for name in ("result", "reference"))
    difference = np.where(found == truth, 0.0, found - truth)
    norm = float(np.linalg.norm(truth))
    return {
        "relative_error": float(np.linalg.norm(difference)) / (norm or 1.0),
        "max_abs_error": float(np.abs(difference).max(initial=0.0)),
    }


_STOPPED: Mapping[MeasurementType, Callable[..., dict[str, Any]]] = {
    MeasurementType.LATENCY: _latency,
    MeasurementType.THROUGHPUT: _per_second("flops", "throughput_ops_per_sec"),
    MeasurementType.MEMORY_BANDWIDTH: _per_second("bytes", "memory_bytes_per_second"),
    MeasurementType.COMPUTE_UTILIZATION: _utilization,
    MeasurementType.ENERGY: _energy,
    MeasurementType.OCCUPANCY: _occupancy,
    MeasurementType.ACCURACY: _accuracy,
}
