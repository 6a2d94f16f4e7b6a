"""Validation: the reference, what the framework notices, criteria by what was found, reports, and the command."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tessera as ts
from tessera.bench.configs import InputConfiguration
from tessera.bench.validation import benchmark_suite as benchmark_module
from tessera.bench.validation import framework as framework_module
from tessera.bench.validation import report as report_module
from tessera.bench.validation import robustness as robustness_module
from tessera.bench.validation import suite as suite_module
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
from tessera.bench.validation.opportunities import Planted
from tessera.bench.validation.report import PerformanceValidation, ValidationReport, earlier_samples, named, verdict
from tessera.bench.validation.robustness import RobustnessValidation, judge_stress
from tessera.bench.validation.suite import ValidationSuite, criteria_of, scope_for
from tessera.cli.main import cli
from tessera.errors import TesseraError
from tessera.metatracing import AttentionParams, MetaTracingRuntime
from tessera.metatracing.reference import ReferenceFlashAttention, heads_of

CONFIG = InputConfiguration(1, 2, 24, 16, "f32", True, "small")


def test_the_reference_is_attention() -> None:
    q, k, v = (ts.randn((1, 2, 5, 4), ts.bf16, seed=seed) for seed in range(3))
    o = ts.empty(q.shape, ts.bf16)
    ReferenceFlashAttention().execute(q, k, v, o, AttentionParams(is_causal=True, softmax_scale=0.3))
    x, y, z = (one.values()[0, 1].astype(np.float64) for one in (q, k, v))
    row = np.exp(0.3 * x[2] @ y[:3].T)
    assert np.allclose(o.values()[0, 1, 2], row @ z[:3] / row.sum(), rtol=1e-2)
    whole = ReferenceFlashAttention().compute(q, k, v, AttentionParams(is_causal=True))
    assert np.allclose(whole[1, 0], z[0])  # the first row sees itself alone
    assert ReferenceFlashAttention().compute(q, k, v, AttentionParams(), heads=1).shape == (1, 5, 4)
    assert heads_of(10, 3) == [0, 1, 9]
    assert heads_of(2, 3) == [0, 1]


# What the framework notices


class Wrong:
    """Runtimes whose tiers are off by so much."""

    def __init__(self, off: dict[int, float]) -> None:
        self._off = off

    def settled(self, problem: Any, config: Any, tier: int) -> Any:
        return tier

    def by(self, problem: Any) -> Callable[[int], Callable[[], None]]:
        def call(tier: int) -> Callable[[], None]:
            def run() -> None:
                q, k, v, o = problem.arrays
                ReferenceFlashAttention().execute(q, k, v, o, problem.params)
                o.numpy()[...] *= 1 + self._off.get(tier, 0.0)

            return run

        return call


def validated(monkeypatch: pytest.MonkeyPatch, off: dict[int, float], config: ValidationConfig | None = None) -> Any:
    wrong = Wrong(off)
    monkeypatch.setattr(framework_module, "settled", wrong.settled)

    def by(problem: Any, tier: Any) -> Callable[[], None]:
        return wrong.by(problem)(tier)

    monkeypatch.setattr(framework_module.Problem, "by", by)
    return ValidationFramework([CONFIG]).validate_implementation(MetaTracingRuntime(), config)


def test_what_is_right_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = validated(monkeypatch, {})
    assert found.numerical_correctness_passed
    assert found.cross_tier_consistency_passed
    assert 0 < found.max_absolute_error < 1e-6
    assert 0 < found.worst_of_bound < 1
    assert (found.comparisons, found.failed_comparisons) == (5, 0)
    (issue,) = found.issues
    assert issue.severity is ValidationIssue.Severity.WARNING


def test_a_tier_that_is_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = validated(monkeypatch, {3: 1e-3})
    assert not found.numerical_correctness_passed
    assert not found.cross_tier_consistency_passed
    critical = [one for one in found.issues if one.severity is Severity.CRITICAL]
    assert ["tier 3 is off" in one.description for one in critical] == [True, False]
    assert "tiers 3 and 1 differ" in critical[1].description
    assert all(one.problematic_config == CONFIG and one.suggested_fix for one in critical)
    assert found.max_relative_error == pytest.approx(1e-3, rel=0.01)
    alone = validated(monkeypatch, {1: 1e-3, 2: 1e-3, 3: 1e-3}, ValidationConfig(enable_reference_validation=False))
    assert alone.numerical_correctness_passed
    assert alone.cross_tier_consistency_passed
    assert validated(monkeypatch, {2: math.nan}).failed_comparisons == 2
    tight = validated(monkeypatch, {}, ValidationConfig(numerical_tolerance=1e-12))
    assert not tight.numerical_correctness_passed


def test_a_regression_is_told_from_noise() -> None:
    random = np.random.default_rng(0)
    before = {"a": {"tier3": list(1 + 0.02 * random.random(40))}}

    def found(factor: float, limit: float = 5.0) -> ValidationResult:
        now = {"a": {"tier3": list(factor * (1 + 0.02 * random.random(40)))}, "new": {"tier3": [1.0]}}
        config = ValidationConfig(max_acceptable_regression_percent=limit)
        return ValidationFramework([]).validate_implementation(MetaTracingRuntime(), config, now, before)

    slower = found(1.10)
    assert not slower.performance_regression_passed
    assert slower.performance_regression_percent == pytest.approx(10, abs=1)
    assert slower.issues[0].severity is Severity.ERROR
    assert found(1.10, limit=20).performance_regression_passed
    assert found(1.01).performance_regression_passed
    assert found(0.8).performance_regression_percent == pytest.approx(-20, abs=1)


# Criteria and reports


def result(speeds: tuple[float, float, float]) -> TierBenchmarkResult:
    metrics = TierMetrics(1.0, 0.1, 0.9, 1.1, 1.0, 2.0, 3.0, 10)
    ratios = {tier: (speed, speed - 0.01, speed + 0.01) for tier, speed in enumerate(speeds, 1)}
    samples = {name: [1.0, 1.1, 0.9] for name in ("baseline", "tier1", "tier2", "tier3")}
    history = [(1, 2.0)] * 5 + [(3, 1.0)] * 5
    compiled = {1: 0.0, 2: 900.0, 3: 2500.0}
    return TierBenchmarkResult(
        CONFIG,
        metrics,
        metrics,
        metrics,
        metrics,
        1.2,
        1.4,
        1.1,
        True,
        True,
        0.01,
        0.001,
        ratios,
        {},
        compiled,
        history,
        samples,
    )


def report(speeds: tuple[float, float, float] = (0.9, 1.22, 1.45), **changes: Any) -> ValidationReport:
    performance = PerformanceValidation(True, True, speeds[0], speeds[1] - 1, speeds[2] - 1, 1, 0.02, 0.001, 1.5)
    correctness = ValidationResult(issues=[ValidationIssue(Severity.WARNING, "nothing to compare", "keep it")])
    robustness = RobustnessValidation(True, True, True, True, 0, 0.5, 80.0, 1.0)
    robustness = replace(robustness, **changes)
    planted = (Planted("sizes", True, "33 facts"), Planted("scale", True, ""))
    results = (result(speeds),)
    criteria = tuple(criteria_of(performance, correctness, robustness, results, planted, (), (True, "two ranks")))
    success = all(one.holds for one in criteria if one.level == "must")
    about = {"processor": "made up", "date": "today", "commit": "0" * 40}
    return ValidationReport(
        success,
        performance,
        correctness,
        robustness,
        results,
        planted,
        criteria,
        about,
        "cpu",
        True,
        3.0,
        (),
        tuple(correctness.issues),
    )


def test_every_criterion_of_the_specification_is_there() -> None:
    found = report()
    counts = {level: sum(one.level == level for one in found.criteria) for level in report_module.LEVELS}
    assert counts == {"must": 5, "should": 5, "nice": 4, "metric": 8}
    assert {verdict(one) for one in found.criteria if one.level == "must"} == {"holds"}
    assert {one.name: verdict(one) for one in found.criteria if one.level == "nice"} == {
        "tier 3, best configuration": "MISSED",
        "faster with more traces": "holds",
        "several GPUs": "not tried",
        "faults are survived": "holds",
    }
    assert found.overall_success


@pytest.mark.parametrize(
    ("speeds", "changes", "missed"),
    [
        ((0.9, 1.1, 1.45), {}, {"tier 2, average"}),
        ((0.9, 1.22, 1.2), {}, {"tier 3, average"}),
        ((0.9, 1.22, 1.45), {"crash_count": 1}, {"stability"}),
        ((0.9, 1.22, 1.45), {"memory_leak_test_passed": False}, {"stability"}),
        ((0.9, 1.22, math.nan), {}, {"tier 3, average"}),
    ],
)
def test_what_must_hold_and_does_not_is_told(
    speeds: tuple[float, float, float], changes: dict[str, Any], missed: set[str]
) -> None:
    found = report(speeds, **changes)
    assert {one.name for one in found.criteria if one.level == "must" and not one.holds} == missed
    assert not found.overall_success
    assert "NOT all of what must hold holds" in found.markdown()


def test_a_report_is_written_and_read(tmp_path: Path) -> None:
    data, text = report().write(tmp_path / "deep" / "validation")
    said = json.loads(data.read_text())
    assert said["criteria"][0]["name"] == "numerical correctness"
    assert earlier_samples(data) == {named(CONFIG): result((1, 1, 1)).samples}
    shown = text.read_text()
    assert "| 1x2x24x16 f32 causal | 1000.0 µs | 0.900 | 1.220 | 1.450 |" in shown
    assert "warning: nothing to compare. keep it" in shown
    with pytest.raises(TesseraError, match="is not the JSON of a validation"):
        earlier_samples(text)


def test_the_command_prints_the_report_and_its_status_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for speeds, status in (((0.9, 1.22, 1.45), 0), ((0.9, 1.0, 1.0), 1)):
        made = report(speeds)

        def run(*_: Any, made: ValidationReport = made, **__: Any) -> ValidationReport:
            return made

        monkeypatch.setattr(suite_module.ValidationSuite, "run_full_validation", run)
        ran = CliRunner().invoke(cli, ["validate", "--quick", "--output", str(tmp_path / "found")])
        assert ran.exit_code == status
        assert "acceptance criteria" in ran.output
        assert json.loads((tmp_path / "found.json").read_text())["overall_success"] is (status == 0)
    refused = CliRunner().invoke(cli, ["validate", "--device", "cuda:9", "--output", str(tmp_path / "other")])
    assert refused.exit_code == 1
    assert isinstance(refused.exception, TesseraError)


def test_what_is_validated() -> None:
    assert len(scope_for("cpu", quick=True).speeds) == 3
    whole = scope_for("cuda:0", quick=False)
    assert all(isinstance(one, InputConfiguration) for one in whole.speeds)
    assert {one.dtype for one in whole.speeds} == {"f16", "bf16", "f8e4m3"}
    assert len({named(one) for one in whole.speeds}) == len(whole.speeds)
    assert set(map(named, scope_for("cuda:0", quick=True).speeds)) <= set(map(named, whole.speeds))


@pytest.mark.acceptance
def test_a_quick_validation_of_this_machine() -> None:
    with MetaTracingRuntime() as runtime:
        found = ValidationSuite(quick=True).run_full_validation(runtime)
    assert found.seconds < 900  # on two cores that are free it takes less than three minutes
    assert found.failures == ()
    rest = {one.name: one for one in found.criteria if one.level == "must"}
    # How fast tiers are depends on who else computes here; all else has to hold.
    for name in ("numerical correctness", "opportunities are identified", "stability"):
        assert rest[name].holds, rest[name]
    assert found.robustness.faults_passed


def test_a_benchmark_compares_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    speeds = {"baseline": 1.0, "tier1": 1.1, "tier2": 0.8, "tier3": 0.5}

    class Program:
        level = "made up"

    class Site:
        programs = (Program(),)

    class Runtime:
        config = None

        def sites(self) -> list[Site]:
            return [Site()]

        def get_runtime_stats(self) -> Any:
            return MetaTracingRuntime().get_runtime_stats()

        def get_performance_history(self) -> list[Any]:
            return []

    def made(problem: Any, calls: dict[str, Any], seconds: float, warmup: int) -> dict[str, list[float]]:
        assert (set(calls), warmup) == (set(speeds), 7)
        return {name: list(speed * (1 + 0.01 * random.random(30))) for name, speed in speeds.items()}

    def settled(*_: Any) -> Runtime:
        return Runtime()

    monkeypatch.setattr(benchmark_module, "settled", settled)
    monkeypatch.setattr(benchmark_module, "sampled", made)
    config = TierBenchmarkConfig(
        input_configs=(CONFIG,),
        warmup_iterations=7,
        benchmark_iterations=20,
        enable_statistical_analysis=True,
        confidence_interval=0.9,
    )
    told: list[TierBenchmarkResult] = []
    (found,) = BenchmarkSuite().run_benchmark_suite(MetaTracingRuntime(), config, told=told.append)
    assert told == [found]
    assert found.input_config == CONFIG
    assert found.tier2_vs_tier1_speedup == pytest.approx(1.1 / 0.8, rel=0.02)
    assert found.tier3_vs_tier1_speedup == pytest.approx(2.2, rel=0.02)
    assert found.tier3_vs_tier2_speedup == pytest.approx(1.6, rel=0.02)
    assert found.tier2_improvement_significant
    assert found.tier3_improvement_significant
    assert max(found.p_value_tier2, found.p_value_tier3) < 1e-3
    assert found.against_baseline[3][0] == pytest.approx(2.0, rel=0.02)
    assert found.tier1_metrics.mean_time_ms > found.tier2_metrics.mean_time_ms > found.tier3_metrics.mean_time_ms
    third = found.tier3_metrics
    assert isinstance(third, TierMetrics)
    assert third.min_time_ms <= third.median_time_ms <= third.max_time_ms
    assert 0 < third.std_dev_ms < 0.01
    assert third.successful_runs == 20
    assert third.tflops_achieved == pytest.approx(4 * 2 * 24 * 24 * 16 / 2 / third.median_time_ms / 1e9)
    assert third.memory_bandwidth_gbps == pytest.approx(4 * 2 * 24 * 16 * 4 / third.median_time_ms / 1e6)


def test_what_is_not_asked_for_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    off = {3: 1e-3}
    without = ValidationConfig(enable_cross_tier_validation=False, enable_performance_regression_detection=False)
    found = validated(monkeypatch, off, without)
    assert found.cross_tier_consistency_passed
    assert [one.severity for one in found.issues] == [Severity.CRITICAL]


def test_a_report_has_its_parts() -> None:
    found = report()
    assert isinstance(found.performance, PerformanceValidation)
    assert (found.performance.tier2_improvement_achieved, found.performance.tier3_improvement_achieved) == (True, True)
    assert found.performance.tier2_average_improvement == pytest.approx(0.22)
    assert found.performance.tier3_average_improvement == pytest.approx(0.45)
    assert (found.performance.configurations_tested, len(found.individual_results)) == (1, 1)
    assert found.robustness.crash_count == 0


def test_a_process_that_crashes_under_stress_is_counted() -> None:
    said: dict[str, Any] = {"errors": [], "wrong": 0, "growth_mb": 1.0, "used_mb": 90.0, "guard_accuracy": 1.0}

    def stressed(status: int, **changes: Any) -> RobustnessValidation:
        found = RobustnessValidation()
        judge_stress(status, json.dumps(said | changes) + "\n", "Segmentation fault", found)
        return found

    good = stressed(0)
    assert (good.stress_test_passed, good.memory_leak_test_passed, good.crash_count) == (True, True, 0)
    crashed = stressed(-11)
    assert (crashed.stress_test_passed, crashed.crash_count) == (False, 1)
    assert "Segmentation fault" in crashed.told[0]
    assert not stressed(0, growth_mb=9.0).memory_leak_test_passed
    assert not stressed(0, wrong=1).stress_test_passed
    assert stressed(0, errors=["ValueError: x", "ValueError: x"]).crash_count == 2


def test_edge_cases_are_compared_with_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    class Runtime:
        def __init__(self, off: float) -> None:
            self._off = off

        def execute_flash_attention(self, q: Any, k: Any, v: Any, o: Any, params: Any) -> None:
            ReferenceFlashAttention().execute(q, k, v, o, params)
            o.numpy()[...] *= 1 + self._off

    def edges(off: float) -> RobustnessValidation:
        def made(config: Any) -> Runtime:
            return Runtime(off)

        monkeypatch.setattr(robustness_module, "MetaTracingRuntime", made)
        found = RobustnessValidation()
        robustness_module.try_edge_cases("cpu", found)
        return found

    assert edges(0.0).edge_case_test_passed
    wrong = edges(1e-3)
    assert not wrong.edge_case_test_passed
    assert any(line.startswith("odd lengths: off by") for line in wrong.told)
