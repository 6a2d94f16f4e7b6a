"""Whether an implementation is right: against the reference, tiers against each other, and against an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from tessera.bench.configs import InputConfiguration
from tessera.bench.results import statistics
from tessera.bench.validation.subjects import BOUNDS, TIERS, Problem, settled
from tessera.errors import TesseraError
from tessera.field_checks import check_fields
from tessera.metatracing import MetaTracingRuntime
from tessera.metatracing.reference import ReferenceFlashAttention, picked

_HEADS = 2
"""Of each problem that are compared with the reference."""
_BETWEEN_TIERS = 2.0
"""Two results that are each within the bound may differ by so many times it."""


class Severity(Enum):
    """How bad an issue is."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True)
class ValidationIssue:
    """Something that is not as it should be."""

    Severity = Severity

    severity: Severity
    description: str
    suggested_fix: str
    problematic_config: InputConfiguration | None = None


@dataclass(frozen=True)
class ValidationConfig:
    """The scope of checks. The tolerance is absolute, for f32; narrower types have the bounds of their precision."""

    numerical_tolerance: float = 1e-4
    enable_cross_tier_validation: bool = True
    enable_reference_validation: bool = True
    enable_performance_regression_detection: bool = True
    max_acceptable_regression_percent: float = 5.0

    def __post_init__(self) -> None:
        check_fields(self, not_negative=("numerical_tolerance", "max_acceptable_regression_percent"))


@dataclass
class ValidationResult:
    """The outcome. Errors are the largest of all; the regression is that of the worst case, None without one."""

    numerical_correctness_passed: bool = True
    performance_regression_passed: bool = True
    cross_tier_consistency_passed: bool = True
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    worst_of_bound: float = 0.0
    """The largest relative error as a part of what its type may have."""
    failed_comparisons: int = 0
    comparisons: int = 0
    performance_regression_percent: float | None = None
    issues: list[ValidationIssue] = field(default_factory=list)

    def fail(self, passed: str, message: str, fix: str, config: InputConfiguration) -> None:
        """Notes a comparison that failed: `passed` names the field that says so."""
        setattr(self, passed, False)
        self.failed_comparisons += 1
        self.issues.append(ValidationIssue(Severity.CRITICAL, message, fix, config))

    @staticmethod
    def together(found: Sequence[ValidationResult]) -> ValidationResult:
        """Several as one: all have to have passed, and the worst counts."""
        slower = [one.performance_regression_percent for one in found if one.performance_regression_percent is not None]
        return ValidationResult(
            all(one.numerical_correctness_passed for one in found),
            all(one.performance_regression_passed for one in found),
            all(one.cross_tier_consistency_passed for one in found),
            max((one.max_absolute_error for one in found), default=0.0),
            max((one.max_relative_error for one in found), default=0.0),
            max((one.worst_of_bound for one in found), default=0.0),
            sum(one.failed_comparisons for one in found),
            sum(one.comparisons for one in found),
            max(slower, default=None),
            [issue for one in found for issue in one.issues],
        )


class ValidationFramework:
    """Checks attention under a runtime's settings."""

    def __init__(self, configs: Sequence[InputConfiguration], device: str = "cpu") -> None:
        self._configs, self._device = tuple(configs), device
        self._reference = ReferenceFlashAttention()

    def validate_implementation(
        self,
        runtime: MetaTracingRuntime,
        config: ValidationConfig | None = None,
        samples: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
        before: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    ) -> ValidationResult:
        """All that the configuration asks for.

        `samples` and `before` are milliseconds of this run and of an earlier one: by configuration, then by tier.
        """
        wanted = config or ValidationConfig()
        result = ValidationResult()
        for one in self._configs:
            try:
                self._numerics(runtime, one, wanted, result)
            except TesseraError as error:
                fix = error.hint or "run it alone, with TESSERA_LOGS=tiers"
                result.fail("numerical_correctness_passed", error.message, fix, one)
        if wanted.enable_performance_regression_detection:
            self._regression(samples or {}, before, wanted, result)
        return result

    def _numerics(
        self, runtime: MetaTracingRuntime, one: InputConfiguration, wanted: ValidationConfig, result: ValidationResult
    ) -> None:
        problem = Problem.of(one, self._device)
        exact = self._reference.compute(*problem.arrays[:3], problem.params, _HEADS)
        bound = BOUNDS[one.dtype]
        found: dict[int, Any] = {}
        for tier in TIERS:
            made = settled(problem, runtime.config, tier)
            problem.clear()
            problem.by(made)()
            found[tier] = picked(problem.arrays[3], _HEADS)
        if wanted.enable_reference_validation:
            for tier, values in found.items():
                self._compare(values, exact, bound, wanted, result, one, tier)
        if wanted.enable_cross_tier_validation:
            for tier in TIERS[1:]:
                away = relative(found[tier], found[1])
                result.comparisons += 1
                if not away <= _BETWEEN_TIERS * bound:
                    message = f"tiers {tier} and 1 differ by {away:.1e}, {_BETWEEN_TIERS * bound:.1e} is allowed"
                    fix = "compare both with the reference, and their Tile IR with TESSERA_DUMP_DIR"
                    result.fail("cross_tier_consistency_passed", message, fix, one)

    def _compare(
        self,
        values: Any,
        exact: Any,
        bound: float,
        wanted: ValidationConfig,
        result: ValidationResult,
        one: InputConfiguration,
        tier: int,
    ) -> None:
        absolute, away = float(np.abs(values - exact).max()), relative(values, exact)
        result.comparisons += 1
        if one.dtype == "f32":
            result.max_absolute_error = max(result.max_absolute_error, absolute)
        result.max_relative_error = max(result.max_relative_error, away)
        result.worst_of_bound = max(result.worst_of_bound, away / bound)
        too_far = one.dtype == "f32" and not absolute <= wanted.numerical_tolerance
        if too_far or not away <= bound:
            message = f"tier {tier} is off by {absolute:.1e}, {away:.1e} in norm; {bound:.0e} is allowed"
            fix = "run it under TESSERA_INTERPRET=1: where that is right, a lowering is wrong"
            result.fail("numerical_correctness_passed", message, fix, one)

    def _regression(
        self,
        samples: Mapping[str, Mapping[str, Sequence[float]]],
        before: Mapping[str, Mapping[str, Sequence[float]]] | None,
        wanted: ValidationConfig,
        result: ValidationResult,
    ) -> None:
        if not before:
            message = "no earlier report to compare speeds with"
            fix = "keep this report, and give it to the next run: --against FILE"
            result.issues.append(ValidationIssue(Severity.WARNING, message, fix))
            return
        worst: float | None = None
        for name, tiers in samples.items():
            for tier, now in tiers.items():
                earlier = before.get(name, {}).get(tier)
                if not earlier:
                    continue
                found = statistics.ratio_unpaired(earlier, now)
                percent = 100 * (found.estimate - 1)
                worst = percent if worst is None else max(worst, percent)
                # The whole interval has to be above: noise is no regression.
                if 100 * (found.interval.low - 1) > wanted.max_acceptable_regression_percent:
                    result.performance_regression_passed = False
                    message = (
                        f"{name}, {tier}: {percent:.1f} % slower than in the earlier report (p = {found.p_value:.1e})"
                    )
                    fix = "run both again on an idle machine; `tessera bench compare` finds which commit it was"
                    result.issues.append(ValidationIssue(Severity.ERROR, message, fix))
        result.performance_regression_percent = worst


def relative(values: Any, exact: Any) -> float:
    """The error in norm; not a number counts as far away."""
    return float(np.linalg.norm(values - exact) / (np.linalg.norm(exact) or 1.0))
