"""What the analysis of traces tells, by the specification's names for it, on the traces of its example A.3."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tessera as ts
from tessera.metatracing import (
    AnalysisResult,
    AttentionTrace,
    ExecutionPattern,
    ExecutionTier,
    InputProfile,
    PatternAnalyzer,
    SequencePattern,
    SequencePatternMatcher,
    ShapePattern,
    ShapePatternMatcher,
    ShapeType,
)

MODELS = (
    (InputProfile(8, 16, 1024, 64, ts.f16, True, 0.125, "attention"), 2.5),
    (InputProfile(16, 32, 2048, 64, ts.f16, True, 0.125, "attention"), 8.2),
    (InputProfile(32, 40, 4096, 128, ts.bf16, True, 0.089, "attention"), 25.1),
)


def interleaved(count: int = 48) -> list[AttentionTrace]:
    traces: list[AttentionTrace] = []
    for index in range(count):
        profile, base = MODELS[index % 3]
        pattern = ExecutionPattern(base + 0.01 * (index % 5), 1200.0, occupancy_achieved=0.85)
        traces.append(AttentionTrace(profile, pattern, ExecutionTier.TIER2_STANDARD, index))
    return traces


def test_all_of_it() -> None:
    traces = interleaved()
    analyzer = PatternAnalyzer()
    found = analyzer.analyze_traces(traces)
    assert isinstance(found, AnalysisResult)
    assert found.supporting_traces == 48
    assert 0.9 < found.pattern_confidence <= 1
    assert {one.input_pattern.seq_len for one in found.common_patterns} == {1024, 2048, 4096}
    assert list(found.common_patterns) == analyzer.detect_common_patterns(traces)
    assert list(found.optimization_candidates) == analyzer.identify_optimization_opportunities(traces)
    profile = found.performance_profile
    assert profile.calls == 48
    assert profile.total_time_ms == pytest.approx(sum(one.execution_pattern.execution_time_ms for one in traces))


def test_sequences_that_come_again() -> None:
    found = SequencePatternMatcher().find_sequence_patterns(interleaved())
    assert all(isinstance(one, SequencePattern) for one in found)
    three = [one for one in found if [part.seq_len for part in one.input_sequence] == [1024, 2048, 4096]]
    assert len(three) == 1
    assert three[0].frequency >= 10
    assert three[0].performance_impact > 0
    assert SequencePatternMatcher().find_sequence_patterns(interleaved(2)) == []


@pytest.mark.parametrize(
    ("lengths", "kind"),
    [
        ([256, 512, 1024, 512], ShapeType.POWER_OF_TWO),
        ([192, 320, 448, 192], ShapeType.MULTIPLE_OF_64),
        ([10, 30, 90, 270], ShapeType.FIXED_RATIO),
        ([17, 100, 33, 51], ShapeType.VARIABLE),
    ],
)
def test_shapes_are_classified(lengths: list[int], kind: ShapeType) -> None:
    first = interleaved(1)[0]
    traces = [
        replace(first, input_profile=replace(first.input_profile, seq_len=length), timestamp=index)
        for index, length in enumerate(lengths)
    ]
    found = ShapePatternMatcher().analyze_shape_patterns(traces)["seq_len"]
    assert isinstance(found, ShapePattern)
    assert found.pattern_type is kind
    assert set(found.common_values) <= set(lengths)
    assert 0 <= found.prediction_accuracy <= 1
