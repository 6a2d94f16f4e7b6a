"""Reports of a runtime: its stats, and the protocol by which analyses and views read a runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tessera.tiers.records import AttentionTrace, PerformanceSample
from tessera.tiers.sites.counts import Counts
from tessera.tiers.sites.hotness import Clock
from tessera.tiers.sites.specialization_site import SpecializationSite


@dataclass(frozen=True)
class RuntimeStats:
    """The work of a runtime so far. Times are averages of recorded calls, None where there were none.

    `events`: how many traces, compiles, bridges, generalisations, deopts, aborts, A/B tests, switches back, evictions,
    invalidations and programs loaded from other processes there were.
    """

    total_executions: int
    tier1_executions: int
    tier2_executions: int
    tier3_executions: int
    average_tier1_time_ms: float | None
    average_tier2_time_ms: float | None
    average_tier3_time_ms: float | None
    active_specialized_kernels: int
    specialized_kernel_bytes: int
    total_compilation_time_ms: float
    total_specialization_time_ms: float
    events: dict[str, int] = field(default_factory=dict)
    guard_failures: dict[str, int] = field(default_factory=dict)


class ReportingRuntime(Protocol):
    """A runtime as analyses and views read it."""

    clock: Clock
    counts: Counts

    def sites(self) -> Sequence[SpecializationSite]:
        """All sites, with everything in their records that calls so far have led to."""
        ...

    def get_runtime_stats(self) -> RuntimeStats: ...

    def get_traces(self) -> list[AttentionTrace]:
        """The recorded calls of all sites, oldest first."""
        ...

    def get_performance_history(self) -> list[PerformanceSample]:
        """How fast the recorded calls were, oldest first."""
        ...
