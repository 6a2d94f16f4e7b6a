"""The analyzer: all matchers over some traces, and their findings."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean, median, pstdev
from typing import Any

from tessera.metatracing.analysis.hotspots import HotspotCandidate, HotspotDetector, Recommending
from tessera.metatracing.analysis.matchers import (
    ComputePatternMatcher,
    Finding,
    MemoryPatternMatcher,
    SequencePattern,
    SequencePatternMatcher,
    ShapePattern,
    ShapePatternMatcher,
)
from tessera.metatracing.analysis.specializations import RecommendationType, SpecializationRecommendation
from tessera.metatracing.analysis.trends import PerformanceTrend, analyze_performance_trends
from tessera.tiers.records import AttentionTrace, ExecutionPattern, InputProfile, OptimizationOpportunities, by_input

COMMON = 0.05
"""The part of all calls that makes a pattern a common one."""
FUSES = 0.2
"""The part of all time from which on sites that follow each other are worth joining."""


class OptimizationType(Enum):
    """Kinds of optimisation."""

    TILE_SIZE_OPTIMIZATION = "tile"
    SHAPE_SPECIALIZATION = "shape"
    DTYPE_SPECIALIZATION = "dtype"
    MEMORY_LAYOUT_OPTIMIZATION = "layout"
    INSTRUCTION_OPTIMIZATION = "instruction"
    FUSION_OPTIMIZATION = "fusion"


_TYPES = {kind: OptimizationType(kind.value) for kind in RecommendationType}


@dataclass(frozen=True)
class OptimizationCandidate:
    """Something that could be done for an input; for fusion, `params` are the names of sites that follow each other.

    `expected_improvement` of a fusion is None: it is not known before it is tried.
    """

    type: OptimizationType
    expected_improvement: float | None
    implementation_complexity: int
    description: str
    params: Any
    confidence: float
    input_pattern: InputProfile | None = None

    @staticmethod
    def of(made: SpecializationRecommendation, profile: InputProfile | None) -> OptimizationCandidate:
        return OptimizationCandidate(
            _TYPES[made.recommendation_type],
            made.expected_improvement,
            made.implementation_complexity,
            made.description,
            made.params,
            made.confidence,
            profile,
        )


@dataclass(frozen=True)
class CommonPattern:
    """An input that comes often, and how its runs usually go: their medians."""

    input_pattern: InputProfile
    pattern: ExecutionPattern
    share: float


@dataclass(frozen=True)
class PerformanceProfile:
    """Times over all calls, in milliseconds, how steady they are within inputs, and how they change."""

    total_time_ms: float
    calls: int
    mean_time_ms: float
    variation: float
    by_tier: dict[str, float]
    trends: dict[str, PerformanceTrend]


@dataclass(frozen=True)
class AnalysisResult:
    """The findings of traces. `pattern_confidence` is how predictable the next calls are, and how steady times are."""

    common_patterns: tuple[CommonPattern, ...]
    optimization_candidates: tuple[OptimizationCandidate, ...]
    performance_profile: PerformanceProfile
    pattern_confidence: float
    supporting_traces: int
    sequences: tuple[SequencePattern, ...] = ()
    shapes: dict[str, ShapePattern] = field(default_factory=dict[str, ShapePattern])
    memory: tuple[Finding, ...] = ()
    compute: tuple[Finding, ...] = ()
    hotspots: tuple[HotspotCandidate, ...] = ()

    def opportunities(self, trace: AttentionTrace) -> OptimizationOpportunities:
        """The candidates for the input of a trace, by kind."""
        kinds: dict[OptimizationType, list[OptimizationCandidate]] = defaultdict(list)
        for one in self.optimization_candidates:
            fused = one.type is OptimizationType.FUSION_OPTIMIZATION and trace.input_profile.site in one.params
            if fused or one.input_pattern == trace.input_profile:
                kinds[one.type].append(one)
        tile, layout, fusion = (
            tuple(kinds.pop(kind, ()))
            for kind in (
                OptimizationType.TILE_SIZE_OPTIMIZATION,
                OptimizationType.MEMORY_LAYOUT_OPTIMIZATION,
                OptimizationType.FUSION_OPTIMIZATION,
            )
        )
        return OptimizationOpportunities(tile, layout, fusion, tuple(one for rest in kinds.values() for one in rest))


class PatternAnalyzer:
    """Finds patterns in traces, and optimisations; for the latter it needs `recommending`."""

    def __init__(self, recommending: Recommending | None = None) -> None:
        self.sequences = SequencePatternMatcher()
        self.shapes = ShapePatternMatcher()
        self.memory = MemoryPatternMatcher()
        self.compute = ComputePatternMatcher()
        self.fusions = FusionOptimizer()
        self.hotspots = HotspotDetector(recommending)

    def analyze_traces(self, traces: Sequence[AttentionTrace]) -> AnalysisResult:
        sequences = tuple(self.sequences.find_sequence_patterns(traces))
        shapes = self.shapes.analyze_shape_patterns(traces)
        profile = performance_profile(traces)
        accuracy = fmean(one.prediction_accuracy for one in shapes.values()) if shapes else 0.0
        hot = tuple(self.hotspots.detect_hotspots(traces))
        return AnalysisResult(
            tuple(self.detect_common_patterns(traces)),
            (*_from(hot), *self.fusions.opportunities(traces)),
            profile,
            accuracy / (1 + profile.variation),
            len(traces),
            sequences,
            shapes,
            tuple(self.memory.find_memory_patterns(traces)),
            tuple(self.compute.find_compute_patterns(traces)),
            hot,
        )

    def detect_common_patterns(self, traces: Sequence[AttentionTrace]) -> list[CommonPattern]:
        """Inputs that make up a good part of the calls, those with most first."""
        calls = sum(one.execution_count for one in traces) or 1
        found = [
            CommonPattern(profile, _typical(group), sum(one.execution_count for one in group) / calls)
            for profile, group in by_input(traces).items()
        ]
        return sorted((one for one in found if one.share >= COMMON), key=lambda one: -one.share)

    def identify_optimization_opportunities(self, traces: Sequence[AttentionTrace]) -> list[OptimizationCandidate]:
        """Optimisations for hot inputs and for sites that follow each other."""
        return [*_from(self.hotspots.detect_hotspots(traces)), *self.fusions.opportunities(traces)]


def _from(hot: Sequence[HotspotCandidate]) -> list[OptimizationCandidate]:
    return [OptimizationCandidate.of(made, one.input_pattern) for one in hot for made in one.recommendations]


def _typical(group: Sequence[AttentionTrace]) -> ExecutionPattern:
    """The pattern of the run with the median time."""
    middle = median(one.execution_pattern.execution_time_ms for one in group)
    return min(group, key=lambda one: abs(one.execution_pattern.execution_time_ms - middle)).execution_pattern


def performance_profile(traces: Sequence[AttentionTrace]) -> PerformanceProfile:
    total = sum(one.total_ms for one in traces)
    calls = sum(one.execution_count for one in traces)
    by_tier: dict[str, float] = defaultdict(float)
    groups: dict[tuple[InputProfile, int], list[float]] = defaultdict(list)
    for trace in traces:
        by_tier[trace.tier.name] += trace.total_ms
        groups[trace.input_profile, int(trace.tier)].append(trace.execution_pattern.execution_time_ms)
    spreads = [pstdev(times) / fmean(times) for times in groups.values() if len(times) > 1 and fmean(times)]
    return PerformanceProfile(
        total,
        calls,
        total / calls if calls else 0.0,
        median(spreads) if spreads else 0.0,
        dict(by_tier),
        analyze_performance_trends(traces),
    )


class FusionOptimizer:
    """Finds sites that follow each other so often, and take so long, that one function should do both."""

    def opportunities(self, traces: Sequence[AttentionTrace]) -> list[OptimizationCandidate]:
        """Sites that one after the other take much of the time: joined into one function, they could be fused."""
        names = [one.input_profile.site for one in traces]
        spent: dict[str, float] = defaultdict(float)
        for trace in traces:
            spent[trace.input_profile.site] += trace.total_ms
        whole = sum(spent.values()) or 1.0
        pairs: Counter[tuple[str, str]] = Counter()
        firsts: Counter[str] = Counter(names[:-1])
        for pair in itertools.pairwise(names):
            if pair[0] != pair[1]:
                pairs[pair] += 1
        found: list[OptimizationCandidate] = []
        for (first, second), count in pairs.items():
            time = (spent[first] + spent[second]) / whole
            always = count / firsts[first]
            if count > 1 and always > 0.5 and time >= FUSES:
                words = f"{first} is followed by {second} {always:.0%} of the time: one function could do both"
                kind = OptimizationType.FUSION_OPTIMIZATION
                found.append(OptimizationCandidate(kind, None, 6, words, (first, second), always))
        return found
