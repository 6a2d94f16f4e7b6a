"""Validation of what runs in tiers: speed, numerics, agreement of tiers, robustness, and the acceptance criteria."""

from __future__ import annotations

from tessera.bench.validation.benchmark_suite import (
    BenchmarkSuite,
    TierBenchmarkConfig,
    TierBenchmarkResult,
    TierMetrics,
)
from tessera.bench.validation.framework import (
    Severity,
    ValidationConfig,
    ValidationFramework,
    ValidationIssue,
    ValidationResult,
)
from tessera.bench.validation.report import Criterion, ValidationReport
from tessera.bench.validation.suite import ValidationSuite

__all__ = [
    "BenchmarkSuite",
    "Criterion",
    "Severity",
    "TierBenchmarkConfig",
    "TierBenchmarkResult",
    "TierMetrics",
    "ValidationConfig",
    "ValidationFramework",
    "ValidationIssue",
    "ValidationReport",
    "ValidationResult",
    "ValidationSuite",
]
