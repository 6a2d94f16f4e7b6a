"""Hotspots: the inputs that traces spent their time on, and recommendations for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tessera.field_checks import check_fields
from tessera.tiers.records import AttentionTrace, ExecutionTier, InputProfile, by_input

if TYPE_CHECKING:
    from tessera.metatracing.analysis.specializations import SpecializationRecommendation

Recommending = Callable[[Sequence[AttentionTrace]], "Sequence[SpecializationRecommendation]"]
"""Recommends specialisations for the traces of one input."""


@dataclass(frozen=True)
class HotspotCriteria:
    """The criteria of hot inputs: time in all their runs together, how often they came, and how much there is to gain.

    `performance_threshold`: inputs that run at more than this part of the best speed that was seen for them are done.
    """

    min_execution_time_ms: float = 1.0
    min_execution_count: int = 5
    performance_threshold: float = 0.8

    def __post_init__(self) -> None:
        check_fields(self, not_negative=("min_execution_time_ms", "min_execution_count", "performance_threshold"))


@dataclass(frozen=True)
class HotspotCandidate:
    """Inputs that are hot. Performance is the best time seen over the average one, potential what is left to 1.

    Where something is recommended, the potential is at least what that is expected to gain.
    """

    input_pattern: InputProfile
    total_execution_time_ms: float
    execution_count: int
    average_performance: float
    optimization_potential: float
    recommendations: tuple[SpecializationRecommendation, ...] = ()


class HotspotDetector:
    """Finds hot inputs in traces; with `recommending`, also recommendations for them."""

    def __init__(self, recommending: Recommending | None = None) -> None:
        self._recommending = recommending

    def detect_hotspots(
        self, traces: Iterable[AttentionTrace], criteria: HotspotCriteria | None = None
    ) -> list[HotspotCandidate]:
        """Those that took most time first. Inputs that already run at Tier 3 alone are not among them."""
        wanted = HotspotCriteria() if criteria is None else criteria
        found: list[HotspotCandidate] = []
        for profile, group in by_input(traces).items():
            count = sum(one.execution_count for one in group)
            total = sum(one.total_ms for one in group)
            best = min(one.execution_pattern.execution_time_ms for one in group)
            performance = best * count / total if total else 1.0
            specialized = all(one.tier is ExecutionTier.TIER3_SPECIALIZED for one in group)
            is_hot = total >= wanted.min_execution_time_ms and count >= wanted.min_execution_count
            steady = performance > wanted.performance_threshold
            if is_hot and not (specialized and steady):
                recommended = tuple(self._recommending(group)) if self._recommending is not None else ()
                expected = max((1 - 1 / (1 + one.expected_improvement) for one in recommended), default=0.0)
                potential = max(1 - performance, expected)
                found.append(HotspotCandidate(profile, total, count, performance, potential, recommended))
        return sorted(found, key=lambda one: -one.total_execution_time_ms)
