"""Measurements besides the samples, each a run of its own: energy, memory, counters, overhead, the compile, the IR."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tessera.bench.compiler import integration
from tessera.bench.instruments import clock
from tessera.bench.instruments.counters import Counters
from tessera.bench.instruments.hardware import EnergyMeter, HardwareProfiler
from tessera.bench.measuring.definition import Built, Implementation, Setting
from tessera.bench.measuring.frameworks import adapted
from tessera.bench.measuring.sampling import Inputs, Side
from tessera.bench.results.definitions import BenchmarkMode, MeasurementType
from tessera.errors import TesseraError

_STREAM_SECONDS = 0.05
_GRAPH_SAMPLES = 30
_OVERHEAD = ("tessera", "torch", "numpy")
"""The frameworks whose calls return when their work is done."""


@dataclass
class Extras:
    """Measurements of one implementation beside its samples; one that fails is unavailable, with the reason."""

    setting: Setting
    implementation: Implementation
    built: Built
    side: Side
    arguments: Sequence[tuple[Any, ...]]
    found: dict[str, Any] = field(default_factory=dict[str, Any])
    unavailable: dict[str, str] = field(default_factory=dict[str, str])

    def measure(self) -> dict[str, Any]:
        """All that the configuration asks for."""
        asked, profiling = set(self.setting.config.measurements), self.setting.config.mode is BenchmarkMode.PROFILING
        wanted: dict[str, Callable[[], Any]] = {"peak_memory_mb": self._peak_memory}
        if MeasurementType.ENERGY in asked:
            wanted["energy_joules"] = self._energy
        if self.side.framework.name in _OVERHEAD:
            wanted["host_overhead_us"] = self._overhead
        if self.built.kernel is not None:
            wanted["stages_ms"] = self._stages
        on_gpu = self.side.framework.needs_gpu
        if on_gpu:
            wanted["kernel_ms"] = self._kernel_time
        if on_gpu and (profiling or MeasurementType.OCCUPANCY in asked):
            wanted["profile"] = self._profile
        if profiling and not on_gpu:
            wanted["counters"] = self._counters
        if profiling and self.built.kernel is not None:
            wanted["inspection"] = self._inspection
        for name, measure in wanted.items():
            try:
                self.found[name] = measure()
            except UnavailableError as error:
                self.unavailable[name] = str(error)
            except TesseraError as error:
                self.unavailable[name] = error.message
            except Exception as error:
                self.unavailable[name] = f"{type(error).__name__}: {error}"
        return {**self.found, "unavailable": self.unavailable}

    def _stream(self, seconds: float) -> int:
        """Calls back to back, at least one for each set of inputs, waited for at the end; how many."""
        call, calls = self.side.call, 0
        began, result = clock.now(), None
        while not calls or clock.now() - began < seconds * 1e9:
            for one in self.arguments:
                result = call(*one)
            calls += len(self.arguments)
        self.side.framework.finish(result)
        return calls

    def _peak_memory(self) -> float:
        """MB that the process grows by at most, after what is free has gone back to the system."""
        if (on_device := self.side.framework.peak_memory) is not None:
            return on_device(self._one_call) / 2**20
        profiler = HardwareProfiler()
        gc.collect()
        _give_back_free_memory()
        if (why := profiler.reset_peak_memory()) is not None:
            raise UnavailableError(why)
        before = profiler.get_memory_counters()["rss_bytes"]
        self._one_call()
        return max(0, profiler.get_memory_counters()["peak_rss_bytes"] - before) / 2**20

    def _one_call(self) -> None:
        self.side.framework.finish(self.side.call(*self.arguments[0]))

    def _energy(self) -> float:
        if self.side.framework.needs_gpu:
            from tessera.bench.instruments.gpu_conditions import millijoules
            from tessera.bench.instruments.gpu_timing import joules_per_call

            return joules_per_call(lambda: self._stream(_STREAM_SECONDS), millijoules)
        meter = EnergyMeter()
        meter.start()
        calls = self._stream(4 * _STREAM_SECONDS)
        joules = meter.stop()
        if joules is None:
            raise UnavailableError(meter.unavailable or "no meter")
        return joules / calls

    def _kernel_time(self) -> float:
        """Milliseconds of a call on the GPU, from a graph of calls: what they cost on the host is not in it."""
        record = self.side.framework.graph
        if record is None:
            raise UnavailableError("the framework's calls cannot be recorded as a graph")
        from tessera.bench.instruments import gpu_timing as timing

        graph = record([partial(self.side.call, *one) for one in self.arguments])
        flush = timing.Flush() if self.setting.config.cold else None
        timing.graph_milliseconds(graph.replay, len(self.arguments), 2, flush)
        return timing.median(timing.graph_milliseconds(graph.replay, len(self.arguments), _GRAPH_SAMPLES, flush))

    def _profile(self) -> dict[str, Any]:
        """Nsight Compute's figures, of a process of its own."""
        from tessera.bench.measuring.profiled import profile

        return profile(*self.setting.problem, self.implementation.name)

    def _overhead(self) -> float:
        """Microseconds of a call with next to no work, by the same implementation."""
        benchmark, size, precision = self.setting.problem
        smallest = benchmark.smallest(size)
        if smallest is None:
            raise UnavailableError("the benchmark has no smallest size")
        call = self.implementation.built(benchmark, smallest, precision).call
        inputs = Inputs(benchmark, smallest, precision, np.random.default_rng(0))
        arguments = adapted(self.side.framework, inputs.make(inputs.draw(1)[0]))
        return integration.host_overhead(lambda: call(*arguments))

    def _kernel_arguments(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        output = self.built.output
        values = self.arguments[0] if output is None else (*self.arguments[0], output())
        return values, self.built.keywords or {}

    def _stages(self) -> dict[str, float]:
        assert self.built.kernel is not None
        return integration.stages(self.built.kernel, *self._kernel_arguments())

    def _counters(self) -> dict[str, float]:
        counters = Counters()
        with counters:
            calls = self._stream(_STREAM_SECONDS)
        counted = dict(counters.found)
        self.unavailable.update({f"counters.{name}": why for name, why in counted.pop("unavailable").items()})
        return {name: value / calls for name, value in counted.items()}

    def _inspection(self) -> dict[str, Any]:
        from tessera.bench.compiler.inspector import IRInspector

        assert self.built.kernel is not None
        values, keywords = self._kernel_arguments()
        return IRInspector().inspect(self.built.kernel, *values, **keywords)


class UnavailableError(Exception):
    """A figure that cannot be had here, and why."""


def _give_back_free_memory() -> None:
    """Otherwise calls are served from memory that earlier calls have left, and nothing grows."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
