"""Patterns in traces: which inputs come how often, in what order, how times change, and what could be made faster.

python examples/pattern_analysis.py

The traces are made up, as in the specification's example A.3; those of a runtime are `runtime.get_traces()`.
"""

from __future__ import annotations

from collections import Counter

import tessera as ts
from tessera.metatracing import (
    AnalysisResult,
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    InputProfile,
    PatternAnalyzer,
    analyze_performance_trends,
)

MODELS = (
    (InputProfile(8, 16, 1024, 64, ts.f16, True, 0.125, "attention"), 2.5, 0.1),
    (InputProfile(16, 32, 2048, 64, ts.f16, True, 0.125, "attention"), 8.2, 0.3),
    (InputProfile(32, 40, 4096, 128, ts.bf16, True, 0.089, "attention"), 25.1, 0.8),
)


def sample_traces(count: int = 50) -> list[AttentionTrace]:
    """Three models that take turns."""
    traces: list[AttentionTrace] = []
    for place in range(count):
        profile, base, step = MODELS[place % len(MODELS)]
        pattern = ExecutionPattern(
            base + (place % 10) * step, 1200.0 + (place % 20) * 10.0, occupancy_achieved=0.85 + (place % 15) * 0.01
        )
        traces.append(AttentionTrace(profile, pattern, ExecutionTier.TIER2_STANDARD, place))
    return traces


def windows(traces: list[AttentionTrace], size: int = 3) -> dict[tuple[tuple[int, int], ...], int]:
    """A matcher of one's own: shapes that follow each other, by how often they do."""
    shapes = [(one.input_profile.seq_len, one.input_profile.head_dim) for one in traces]
    counted = Counter(tuple(shapes[place : place + size]) for place in range(len(shapes) - size + 1))
    return {run: count for run, count in counted.items() if count > 1}


def main() -> AnalysisResult:
    traces = sample_traces()
    found = PatternAnalyzer().analyze_traces(traces)
    print(f"{found.supporting_traces} traces, confidence {found.pattern_confidence:.2f}")
    for common in found.common_patterns:
        profile = common.input_pattern
        print(f"{common.share:.0%}: length {profile.seq_len}, width {profile.head_dim}, {profile.input_dtype}")
    for sequence in found.sequences:
        lengths = [one.seq_len for one in sequence.input_sequence]
        print(f"lengths {lengths} came {sequence.frequency:g} times")
    for name, shape in found.shapes.items():
        print(f"{name}: {shape.pattern_type.name}, the next is foretold {shape.prediction_accuracy:.0%} of the time")
    for candidate in found.optimization_candidates:
        print(f"{candidate.type.name}: {candidate.description}")
    for what, trend in analyze_performance_trends(traces).items():
        print(f"{what}: {trend.correlation_coefficient:+.2f}, {trend.trend_description}")
    for finding in (*found.memory, *found.compute):
        print(f"{finding.kind}: {finding.description}")
    print(f"{len(windows(traces))} runs of three shapes come again")
    return found


if __name__ == "__main__":
    main()
