"""The model of flash attention, as the specification names it, on fits to measured times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tessera.dtypes.types import DType, bf16, f32
from tessera.errors import TesseraError
from tessera.metatracing.attention import attention_operations
from tessera.metatracing.models.kernel_times import KernelTimes, Measured, shipped
from tessera.metatracing.models.situation import Situation
from tessera.metatracing.models.work_features import H200, Machine, ModelledProgram
from tessera.runtime.device.device import CPU
from tessera.stdlib import flash_attention
from tessera.tiers.records import AttentionTrace, ExecutionTier, InputProfile
from tessera.tiers.stand_ins import contiguous, stand_ins
from tessera.tile.language.schedule import Schedule

_COMPUTE = ("products", "functions", "elements", "lanes", "dots", "iterations")
_MEMORY = ("near", "far", "footprint")


@dataclass(frozen=True)
class ModelParameters:
    """A problem, and how it is cut up. Hardware and kernel characteristics are those of the specification.

    Times of a machine are fitted; the reached part of its peaks is derived. `block` None is the kernel's own choice;
    `specialized`, that all sizes are known to the program. The utilisations are outcomes, None until they are
    measured: nothing is predicted to be faster than a part of the peaks that was measured.
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
        """The bytes of the three inputs and the result, each element once."""
        elements = self.batch_size * self.num_heads * self.seq_len * self.head_dim
        return 4 * elements * self.dtype.storage.itemsize

    @property
    def least_seconds(self) -> float:
        """The time at the measured parts of the peaks; 0 where none were measured."""
        rate = self.peak_compute_tflops * 1e12 * (self.tensor_core_utilization or 0.0)
        bandwidth = self.memory_bandwidth_gbps * 1e9 * (self.memory_efficiency or 0.0)
        return max(self.flops / rate if rate else 0.0, self.memory_bytes / bandwidth if bandwidth else 0.0)


@dataclass(frozen=True)
class PerformancePrediction:
    """A prediction. Intervals have 95 % of such times in them. The three ratios add up to 1.

    Occupancy is measured, or the most that so many program instances can fill. The last two are parts of the peaks.
    """

    predicted_time_ms: float
    predicted_tflops: float
    predicted_memory_bw_gbps: float
    predicted_occupancy: float | None
    time_confidence_interval: tuple[float, float]
    tflops_confidence_interval: tuple[float, float]
    compute_bound_ratio: float
    memory_bound_ratio: float
    overhead_ratio: float
    compute_utilization: float
    bandwidth_utilization: float


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

    def program(self, params: ModelParameters) -> ModelledProgram:
        return program_of(params, self.times.machine)

    def predict_performance(self, params: ModelParameters) -> PerformancePrediction:
        program = self.program(params)
        found = self.times.predict(program)
        least = params.least_seconds
        seconds, low, high = (max(least, one) for one in (found.seconds, found.low, found.high))
        tera, whole = params.flops / 1e12, sum(found.parts.values())
        moved = params.memory_bytes / 1e9
        compute, memory = (sum(found.parts.get(name, 0.0) for name in names) for names in (_COMPUTE, _MEMORY))
        return PerformancePrediction(
            1e3 * seconds,
            tera / seconds,
            moved / seconds,
            _occupancy(params, program) if self.times.machine.is_gpu else params.occupancy_achieved,
            (1e3 * low, 1e3 * high),
            (tera / high, tera / low),
            compute / whole,
            memory / whole,
            1 - (compute + memory) / whole,
            tera / seconds / params.peak_compute_tflops,
            moved / seconds / params.memory_bandwidth_gbps,
        )


def _occupancy(params: ModelParameters, program: ModelledProgram) -> float:
    """The measured occupancy, or that of the program instances if each multiprocessor has its share at once."""
    if params.occupancy_achieved is not None:
        return params.occupancy_achieved
    each = -(-program.work.programs // params.num_sms)
    return min(1.0, each * program.threads / params.max_threads_per_sm)


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
def program_of(params: ModelParameters, machine: Machine) -> ModelledProgram:
    """Attention's program for a problem."""
    shape = params.batch_size, params.num_heads, params.seq_len, params.head_dim
    heads = stand_ins([contiguous(params.dtype, shape, CPU)] * 4)
    kernel = flash_attention
    if params.block is not None or params.warps is not None:
        kernel = kernel.with_schedule(Schedule(block=params.block, warps=params.warps))
    scale = params.head_dim**-0.5
    here = Situation(kernel, (*heads, scale), {"causal": params.is_causal}, machine, params.specialized)
    return here.program()
