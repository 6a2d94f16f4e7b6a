"""Modes, measurements and configurations of benchmarks, and the error of those that cannot be run."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera.errors import TesseraError
from tessera.field_checks import check_fields

ProblemSize = Mapping[str, Any]


class BenchmarkMode(enum.Enum):
    """The purpose of a run; `docs/bench.md` says what each one runs."""

    SINGLE_GPU = "single_gpu"
    MULTI_GPU = "multi_gpu"
    DISTRIBUTED = "distributed"
    REGRESSION = "regression"
    COMPARISON = "comparison"
    PROFILING = "profiling"


class MeasurementType(enum.Enum):
    """A measurement of every implementation; only those that are asked for are run."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY_BANDWIDTH = "memory_bandwidth"
    COMPUTE_UTILIZATION = "compute_utilization"
    ENERGY = "energy"
    OCCUPANCY = "occupancy"
    ACCURACY = "accuracy"


@dataclass(frozen=True)
class HardwareConfig:
    """The machine that a run is meant for. The defaults are one H100's; `hardware.detect()` describes this machine.

    Ceilings that rates are held against are measured; these figures are only a description.
    """

    gpu_arch: str
    gpu_count: int = 1
    memory_size_gb: float = 80
    memory_bandwidth_gbps: float | None = 3352.0
    compute_capability: str = "9.0"
    tensor_cores: bool = True
    nvlink_bandwidth_gbps: float = 900.0
    nvswitch_bandwidth_gbps: float = 1800.0

    def __post_init__(self) -> None:
        check_fields(
            self, positive=("memory_size_gb", "memory_bandwidth_gbps"), not_negative=("gpu_count",), error=BenchError
        )


_POSITIVE = (
    *("timing_iterations", "threads", "seconds_per_case", "sample_seconds"),
    *("tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size"),
)
_NOT_NEGATIVE = ("max_variance_percent", "warmup_iterations", "pause_seconds", "seed")
_PARTS = ("statistical_significance",)


@dataclass(frozen=True)
class BenchmarkConfig:
    """How a benchmark is run. A row stops at the first of: precise enough, enough samples, out of time."""

    name: str = "default"
    description: str = ""
    mode: BenchmarkMode = BenchmarkMode.COMPARISON
    measurements: Sequence[MeasurementType] = (
        MeasurementType.LATENCY,
        MeasurementType.THROUGHPUT,
        MeasurementType.MEMORY_BANDWIDTH,
        MeasurementType.COMPUTE_UTILIZATION,
        MeasurementType.ACCURACY,
    )
    hardware: HardwareConfig = field(default_factory=lambda: HardwareConfig("sm_90"))

    warmup_iterations: int = 5
    timing_iterations: int = 100
    """The most samples of an implementation."""
    statistical_significance: float = 0.95
    max_variance_percent: float = 5.0
    """Precise enough: the interval of the median is no wider than this to either side."""

    precision_policies: Sequence[str] = ("bf16@accum(fp32)",)
    ir_optimization_levels: Sequence[str] = ("O3",)
    autotuning_enabled: bool = True

    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    pipeline_parallel_size: int = 1

    # What the specification leaves open.
    sizes: Sequence[ProblemSize] | None = None
    """None: the benchmark's own."""
    implementations: Sequence[str] | None = None
    """None: all of them; the first one named is the one that others are compared with."""
    threads: int | None = None
    """None: as many as the knob `num_threads` says, for every implementation alike."""
    seconds_per_case: float = 10.0
    sample_seconds: float = 2e-4
    """How long a sample of the quickest is to take: short calls are repeated, each on inputs of its own."""
    cold: bool = False
    """Whether caches are emptied before each sample."""
    pause_seconds: float = 0.0
    """Between samples, for machines that have to cool down."""
    seed: int | None = None
    """Of the inputs; None: another one in every run, recorded with it."""

    def __post_init__(self) -> None:
        check_fields(self, positive=_POSITIVE, not_negative=_NOT_NEGATIVE, parts=_PARTS, error=BenchError)


class BenchError(TesseraError):
    """A benchmark that cannot be run as asked: an unknown name, a size that makes no sense, a file of another kind."""
