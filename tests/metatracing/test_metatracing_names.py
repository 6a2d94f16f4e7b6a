"""The names of the specification's three documents on meta-tracing: each is there and used, or has a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from name_tables import fault, rows_of
from tessera import metatracing
from tessera.bench import validation

ROWS = rows_of(Path(__file__).with_name("specified_names.tsv"))


def test_the_table_has_every_kind_of_name() -> None:
    names = {row[0] for row in ROWS}
    assert len(names) == len(ROWS) > 530
    assert {
        "AttentionTrace.ExecutionPattern.occupancy_achieved",
        "PatternAnalyzer.ShapePatternMatcher.ShapePattern.Type.MULTIPLE_OF_64",
        "MetaTracingRuntime.executeFlashAttention",
        "PoC_BenchmarkSuite.BenchmarkResult.p_value_tier3",
        "RiskMitigationFramework.PerformanceRisk.Type.RUNTIME_OVERHEAD",
        "DistributedExecutionTracer.DistributedTrace.loadImbalance",
        "TierPerformancePrediction.predictTierPerformance",
        "tessera.distributed.initialize_process_group",
    } <= names


def test_every_name_is_there_and_used_or_has_a_reason() -> None:
    assert [wrong for wrong in map(fault, ROWS) if wrong is not None] == []


def test_validation_is_found_with_the_tiers_too() -> None:
    for name in ("ValidationFramework", "ValidationIssue", "ValidationReport", "ValidationSuite"):
        assert getattr(metatracing, name) is getattr(validation, name)
    with pytest.raises(AttributeError, match="has no attribute 'Validation'"):
        _ = metatracing.Validation


def test_few_names_are_left_out() -> None:
    """Those that wait for autodiff, those that are examples' own, and those that have no meaning here."""
    left = {row[0] for row in ROWS if row[1] == "-"}
    assert len(left) <= 18
    assert not any(row[2].startswith("there as") for row in ROWS)


def test_the_check_of_tables_sees_planted_faults() -> None:
    here = "tests/metatracing/test_metatracing_names.py::test_the_table_has_every_kind_of_name"
    assert fault(("a", "-", "because")) is not None
    assert fault(("a", "-", "it is not needed as of now")) is None
    assert fault(("a", "tessera.metatracing.Nothing", here)) is not None
    assert fault(("a", "tessera.metatracing.RuntimeConfig.nothing", here)) is not None
    assert fault(("a", "tessera.metatracing.RuntimeConfig", "tests/metatracing/nowhere.py::test")) is not None
    assert "does not use" in (fault(("a", "tessera.metatracing.RuntimeConfig", here)) or "")
    # A name that is only written in a text, as this one is in the first test above, is not used.
    text = ("a", "tessera.metatracing.ExecutionPattern.occupancy_achieved", here)
    assert "does not use occupancy_achieved" in (fault(text) or "")
    # Nor is one whose test only says that it is nothing.
    nothing = "tests/metatracing/events/test_specified_events.py::test_a_monitor_tells_of_launches"
    for name in ("PerformanceMetrics.occupancy_achieved", "PerformanceMetrics.compute_utilization"):
        assert "only says that" in (fault(("a", f"tessera.metatracing.{name}", nothing)) or "")
    # And a test that uses Python's own has not used ours.
    own = "tests/metatracing/test_metatracing_names.py::test_few_names_are_left_out"
    assert "does not use any" in (fault(("a", "tessera.any", own)) or "")
    assert fault(("a", "tessera.metatracing.ExecutionPattern.startswith", own)) is not None
