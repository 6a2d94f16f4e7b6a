"""The model of flash attention, as the specification names it, on fits to measured times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tessera.dtypes.types import DType, bf16, f32
from tessera.errors import TesseraError
from tessera.kernels.schedule import Schedule
from tessera.metatracing.attention import attention_operations, flash_attention
from tessera.metatracing.models.amounts import H200, Machine, Program
from tessera.metatracing.models.kernel_times import KernelTimes, Measured, shipped
from tessera.metatracing.records import AttentionTrace, ExecutionTier, InputProfile
from tessera.metatracing.situation import Situation
from tessera.metatracing.stand_ins import stand_in
from tessera.runtime.device import CPU
from tessera.runtime.memory import ALIGNMENT, contiguous_strides
from tessera.runtime.meta import Meta

_COMPUTE = ("products", "functions", "elements", "lanes", "dots", "turns")
_MEMORY = ("near", "far", "footprint")


@dataclass(frozen=True)
class ModelParameters:
    """A problem, and how it is cut up. Hardware and kernel characteristics are those of the specification.

    Peaks only say how much of them is reached: what a machine takes is fitted. `block` None is the kernel's own choice;
    `specialized`, that all sizes are known to the program. The utilisations are outcomes: None until somebody measured.
    """

    batch_size: int = 1
    num_heads: int = 1
    seq_len: int = 1
    head_dim: int = 64
    is_causal: bool = False
    dtype: DType = bf16
    block: tuple[int, ...] | None = None
    warps: int | None = None
    specialized: bool = False
    peak_compute_tflops: float = 989.0
    memory_bandwidth_gbps: float = 4800.0
    num_sms: int = 132
    max_threads_per_sm: int = 2048
    tensor_core_utilization: float | None = None
    memory_efficiency: float | None = None
    occupancy_achieved: float | None = None

    @property
    def profile(self) -> InputProfile:
        sizes = self.batch_size, self.num_heads, self.seq_len, self.head_dim
        return InputProfile(*sizes, self.dtype, self.is_causal)

    @property
    def flops(self) -> float:
        """4·B·H·S²·D, half of it where it is causal: a multiplication and an addition for each term of products."""
        return attention_operations(self.profile, self.seq_len)

    @property
    def memory_bytes(self) -> int:
        """Of the three inputs and the result, each element once."""
        elements = self.batch_size * self.num_heads * self.seq_len * self.head_dim
        return 4 * elements * self.dtype.storage.itemsize


@dataclass(frozen=True)
class PerformancePrediction:
    """What is predicted. Intervals have 95 % of such times in them. The three ratios add up to 1."""

    predicted_time_ms: float
    predicted_tflops: float
    predicted_memory_bw_gbps: float
    predicted_occupancy: float | None
    time_confidence_interval: tuple[float, float]
    tflops_confidence_interval: tuple[float, float]
    compute_bound_ratio: float
    memory_bound_ratio: float
    overhead_ratio: float


class FlashAttentionPerformanceModel:
    """Predicts how long attention takes on a machine whose times were fitted; by default on an H200."""

    ModelParameters = ModelParameters

    def __init__(self, times: KernelTimes | None = None) -> None:
        found = shipped(H200.name) if times is None else times
        if found is None:
            raise TesseraError(
                "no model of attention came with this package", hint="calibrate one: KernelTimes.calibrated(…)"
            )
        self.times = found

    @staticmethod
    def calibrated(machine: Machine, traces: Sequence[AttentionTrace]) -> FlashAttentionPerformanceModel:
        """Fitted to traces of attention; those of one input are left out together when errors are found out."""
        measured: list[Measured] = []
        for trace in traces:
            parameters = parameters_of(trace)
            if trace.execution_pattern.execution_time_ms > 0:
                seconds = trace.execution_pattern.execution_time_ms / 1e3
                measured.append(Measured(program_of(parameters, machine), seconds, trace.input_profile))
        return FlashAttentionPerformanceModel(KernelTimes.calibrated(machine, measured))

    def program(self, params: ModelParameters) -> Program:
        return program_of(params, self.times.machine)

    def predict_performance(self, params: ModelParameters) -> PerformancePrediction:
        found = self.times.predict(self.program(params))
        tera, whole = params.flops / 1e12, sum(found.parts.values())
        compute, memory = (sum(found.parts.get(name, 0.0) for name in names) for names in (_COMPUTE, _MEMORY))
        return PerformancePrediction(
            1e3 * found.seconds,
            tera / found.seconds,
            params.memory_bytes / 1e9 / found.seconds,
            params.occupancy_achieved,
            (1e3 * found.low, 1e3 * found.high),
            (tera / found.high, tera / found.low),
            compute / whole,
            memory / whole,
            1 - (compute + memory) / whole,
        )


def parameters_of(trace: AttentionTrace) -> ModelParameters:
    """The problem of a trace, at the tier that it was recorded at."""
    profile = trace.input_profile
    return ModelParameters(
        profile.batch_size,
        profile.num_heads,
        profile.seq_len,
        profile.head_dim,
        profile.is_causal,
        profile.input_dtype or f32,
        specialized=trace.tier is ExecutionTier.TIER3_SPECIALIZED,
    )


@lru_cache(maxsize=1024)
def program_of(params: ModelParameters, machine: Machine) -> Program:
    """Attention's program for a problem."""
    shape = params.batch_size, params.num_heads, params.seq_len, params.head_dim
    meta = Meta(params.dtype, shape, contiguous_strides(shape, 1), CPU, ALIGNMENT)
    heads = tuple(stand_in(meta) for _ in range(4))
    kernel = flash_attention
    if params.block is not None or params.warps is not None:
        kernel = kernel.with_schedule(Schedule(block=params.block, warps=params.warps))
    scale = params.head_dim**-0.5
    here = Situation(kernel, (*heads, scale), {"causal": params.is_causal}, machine, params.specialized)
    return here.program()
