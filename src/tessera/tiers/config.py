"""The settings of a runtime: which tiers there are, when to move to the next, and how much is kept."""

from __future__ import annotations

from dataclasses import dataclass

from tessera.errors import TesseraError
from tessera.field_checks import check_fields

MOST_BRIDGES = 4
"""Programs of a site for arguments that its first specialisation refused; after that it is generalised."""
_POSITIVE = (
    *("max_specialized_kernels", "max_compilation_memory_mb", "half_life_s", "contest_rounds"),
    *("candidates", "max_trace_history", "compile_timeout_s", "shown_calls"),
)
_NOT_NEGATIVE = (
    *("tier2_compilation_threshold_ms", "tier3_specialization_threshold_ms"),
    *("most_bridges", "bridge_calls", "sample_period"),
)


@dataclass(frozen=True)
class RuntimeConfig:
    """The settings of a runtime. Thresholds are time that a site has spent lately, in all its calls together.

    `enable_tier1_fallback`: off, the first call of a new kernel waits for a program that is compiled fully.
    `half_life_s`: of that time; time spent long ago counts little. `background_compilation`: off, a call that
    makes its site hot waits until the next tier is built. `sample_period`: calls between two that are recorded;
    None chooses it by how long they take. `contest_rounds`: counted runs of each program when several are compared,
    in doubt up to four times as many.
    `candidates`: schedules that are tried at a time. `invariance`: the part of the time for which something must
    have been the same to be assumed. `shown_calls`: the calls that must have shown it to be the same, however long
    they took; one is enough where the third tier's threshold is zero, which asks for it at once. `most_bridges`:
    see MOST_BRIDGES. `bridge_calls`: calls that a guard refuses before a bridge is considered. `max_trace_history`:
    records that a site keeps. `enable_distributed_tracing`: the runtime listens to the collectives of
    `tessera.distributed`; rank and world size are what its events say of themselves. `mitigate_risks`: the runtime
    watches what it costs, and changes these settings where that is too much.
    """

    enable_tier1_fallback: bool = True
    enable_tier2_compilation: bool = True
    enable_tier3_specialization: bool = True
    tier2_compilation_threshold_ms: float = 10.0
    tier3_specialization_threshold_ms: float = 100.0
    max_specialized_kernels: int = 16
    max_compilation_memory_mb: int = 512
    background_compilation: bool = True
    enable_tracing: bool = True
    persist: bool = True
    half_life_s: float = 60.0
    sample_period: int | None = None
    contest_rounds: int = 5
    candidates: int = 3
    invariance: float = 0.95
    shown_calls: int = 8
    most_bridges: int = MOST_BRIDGES
    bridge_calls: int = 8
    max_trace_history: int = 1000
    compile_timeout_s: float = 120.0
    mitigate_risks: bool = False
    enable_distributed_tracing: bool = False
    distributed_rank: int = 0
    distributed_world_size: int = 1

    def __post_init__(self) -> None:
        check_fields(self, positive=_POSITIVE, not_negative=_NOT_NEGATIVE)
        if not 0 <= self.distributed_rank < self.distributed_world_size:
            raise TesseraError(
                f"RuntimeConfig.distributed_rank must be among {self.distributed_world_size} ranks, counted from 0, "
                f"got {self.distributed_rank!r}"
            )
        if not 0.5 < self.invariance <= 1:
            raise TesseraError(
                f"RuntimeConfig.invariance is a part of the time, above 0.5 and up to 1, got {self.invariance!r}"
            )

    @property
    def half_life(self) -> float:
        """In nanoseconds."""
        return self.half_life_s * 1e9

    @property
    def tier2_threshold(self) -> float:
        return self.tier2_compilation_threshold_ms * 1e6

    @property
    def tier3_threshold(self) -> float:
        return self.tier3_specialization_threshold_ms * 1e6

    @property
    def least_shown(self) -> int:
        """Calls that must have shown what is assumed."""
        return self.shown_calls if self.tier3_specialization_threshold_ms else 1
