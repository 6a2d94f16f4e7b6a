"""The performance monitor: metrics of the recorded calls between two moments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from tessera.errors import TesseraError
from tessera.tiers.reports import ReportingRuntime


@dataclass(frozen=True)
class PerformanceMetrics:
    """Means over recorded calls; None where no call had such a figure. Memory and registers are the most of any."""

    memory_bandwidth_gbps: float | None
    compute_utilization: float | None
    occupancy_achieved: float | None
    shared_memory_used: int | None
    registers_per_thread: int | None
    calls: int


class PerformanceMonitor:
    """Watches a runtime between `begin_monitoring` and `end_monitoring`.

    `peak_tflops` is the peak of its machine: utilisation is the rate that was achieved over it, where a rate is known.
    """

    def __init__(self, runtime: ReportingRuntime, peak_tflops: float | None = None) -> None:
        self._runtime, self._peak = runtime, peak_tflops
        self._began: int | None = None
        self._ended: int | None = None

    def begin_monitoring(self) -> None:
        self._began, self._ended = self._runtime.clock(), None

    def end_monitoring(self) -> None:
        self._ended = self._runtime.clock()

    def get_metrics(self) -> PerformanceMetrics:
        """The metrics of the calls that were recorded in between, or until now."""
        if self._began is None:
            raise TesseraError("nothing was monitored", hint="call begin_monitoring() first")
        until = self._runtime.clock() if self._ended is None else self._ended
        began = self._began
        traces = [one for one in self._runtime.get_traces() if began <= one.timestamp <= until]
        samples = [one for one in self._runtime.get_performance_history() if began <= one.timestamp <= until]
        patterns = [one.execution_pattern for one in traces]
        rates = [one.tflops_achieved for one in samples if one.tflops_achieved is not None]
        utilization = fmean(rates) / self._peak if rates and self._peak else None
        return PerformanceMetrics(
            _mean(one.memory_bandwidth_gbps for one in patterns),
            utilization,
            _mean(one.occupancy_achieved for one in patterns),
            max((one.shared_memory_used for one in patterns if one.shared_memory_used is not None), default=None),
            max((one.registers_per_thread for one in patterns if one.registers_per_thread is not None), default=None),
            sum(one.execution_count for one in traces),
        )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return fmean(known) if known else None
