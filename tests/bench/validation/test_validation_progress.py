"""Progress of a validation: a file that is whole whenever the run is stopped, and from which the next one goes on."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tessera as ts
from tessera import subprocesses
from tessera.bench.configs import InputConfiguration
from tessera.bench.reporting.exchange import decoded, encoded
from tessera.bench.validation import suite as suite_module
from tessera.bench.validation.benchmark_suite import TierBenchmarkResult, TierMetrics
from tessera.bench.validation.framework import Severity, ValidationIssue, ValidationResult
from tessera.bench.validation.opportunities import Planted
from tessera.bench.validation.progress import Progress, digest_of
from tessera.bench.validation.report import PerformanceValidation
from tessera.bench.validation.robustness import RobustnessValidation
from tessera.bench.validation.subjects import Problem, drawn
from tessera.bench.validation.suite import Scope, ValidationSuite
from tessera.metatracing import MetaTracingRuntime

CONFIGS = tuple(InputConfiguration(1, 2, length, 16, "f32", True, "small") for length in (16, 24, 32))
METRICS = TierMetrics(1.0, 0.1, 0.9, 1.1, 1.0, 2.0, math.nan, 10)


def result(which: InputConfiguration) -> TierBenchmarkResult:
    ratios: dict[int, tuple[float, float, float]] = {1: (1.5, 1.4, 1.6), 2: (1.2, 1.1, 1.3), 3: (1.7, 1.6, 1.8)}
    samples = {name: [1.0, 1.1] for name in ("baseline", "tier1", "tier2", "tier3")}
    figures = (
        1.2,
        1.4,
        1.1,
        True,
        True,
        0.01,
        0.001,
        ratios,
        {3: "tier 3"},
        {2: 5.0, 3: 9.0},
        [(1, 2.0), (3, 1.0)],
        samples,
    )
    return TierBenchmarkResult(which, METRICS, METRICS, METRICS, METRICS, *figures)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (RobustnessValidation, RobustnessValidation(True, False, True, True, 2, None, 80.0, 1.0, ["one"])),
        (tuple[Planted, ...], (Planted("sizes", True, "33 facts"),)),
        (ValidationIssue, ValidationIssue(Severity.ERROR, "it is off", "mend it", CONFIGS[0])),
        (PerformanceValidation, PerformanceValidation(True, False, 0.9, 0.2, 0.4, 3, None, 0.01, 1.5, "of it")),
        (tuple[list[str], dict[int, float]], (["wrong"], {2: 1.5, 3: 2.5})),
    ],
)
def test_parts_come_back_as_they_were(kind: Any, value: Any) -> None:
    assert decoded(json.loads(json.dumps(encoded(value, kind))), kind, "a part") == value


def test_a_result_comes_back_with_what_it_does_not_know() -> None:
    kept = json.loads(json.dumps(encoded(result(CONFIGS[0]), TierBenchmarkResult)))
    back: TierBenchmarkResult = decoded(kept, TierBenchmarkResult, "a part")
    assert math.isnan(back.tier1_metrics.memory_bandwidth_gbps)
    assert back.input_config == CONFIGS[0]
    assert back.against_baseline == result(CONFIGS[0]).against_baseline
    assert back.history == [(1, 2.0), (3, 1.0)]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deep" / "it.json"
    progress = Progress(file)
    assert progress.part("first", int, lambda: 1) == 1
    before = file.read_text()

    def stopped(source: str, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        progress.part("second", int, lambda: 2)
    assert [one.name for one in file.parent.iterdir()] == ["it.json"]
    assert file.read_text() == before


class Stopped(BaseException):
    """The machine was taken away."""


def made_up(monkeypatch: pytest.MonkeyPatch, last: int | None) -> list[str]:
    """A suite whose parts take no time, and which is stopped behind so many of them; what was done, in order."""
    done: list[str] = []

    def doing(what: str) -> None:
        if last is not None and len(done) >= last:
            raise Stopped
        done.append(what)

    class Suite:
        def run_benchmark_suite(self, runtime: Any, config: Any, *_: Any) -> list[TierBenchmarkResult]:
            (which,) = config.input_configs
            doing(f"speed {which.seq_len}")
            return [result(which)]

    class Framework:
        def __init__(self, configs: Any, device: str) -> None:
            self._configs = configs

        def validate_implementation(self, runtime: Any, wanted: Any, *_: Any) -> ValidationResult:
            for which in self._configs:
                doing(f"numerics {which.seq_len}")
            return ValidationResult(comparisons=5 * len(self._configs))

    def robust(device: str, *, quick: bool) -> RobustnessValidation:
        doing("robustness")
        return RobustnessValidation(True, True, True, True, 0, 0.5, 80.0, 1.0)

    def found(device: str) -> list[Planted]:
        doing("planted")
        return [Planted("sizes", True, "")]

    def performance(*_: Any) -> PerformanceValidation:
        doing("performance")
        return PerformanceValidation(True, True, 0.9, 0.2, 0.4, 3, 0.02, 0.001, 1.5)

    def no_ranks(*_: Any) -> tuple[None, str]:
        return None, "no MPI here"

    monkeypatch.setattr(suite_module, "BenchmarkSuite", Suite)
    monkeypatch.setattr(suite_module, "ValidationFramework", Framework)
    monkeypatch.setattr(suite_module, "run_robustness_tests", robust)
    monkeypatch.setattr(suite_module, "planted", found)
    monkeypatch.setattr(ValidationSuite, "_performance", performance)
    monkeypatch.setattr(ValidationSuite, "_ranks", no_ranks)
    return done


def test_a_validation_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, runtime = tmp_path / "it.partial.json", MetaTracingRuntime()

    def validated(*, resume: bool) -> Any:
        suite = ValidationSuite(quick=True)
        suite.scope = Scope(CONFIGS, CONFIGS[:2], 1.0)
        return suite.run_full_validation(runtime, saved=saved, resume=resume)

    first = made_up(monkeypatch, 4)
    with pytest.raises(Stopped):
        validated(resume=True)
    assert first == ["speed 16", "speed 24", "speed 32", "numerics 16"]
    assert len(json.loads(saved.read_text())["parts"]) == 4
    second = made_up(monkeypatch, None)
    report = validated(resume=True)
    assert second == ["numerics 24", "planted", "robustness", "performance"]
    assert [one.input_config for one in report.individual_results] == list(CONFIGS)
    assert report.correctness.comparisons == 10
    assert report.runs == 2
    assert ", in 2 runs." in report.markdown()
    again = made_up(monkeypatch, None)
    assert validated(resume=False).overall_success == report.overall_success
    assert len(again) == 8  # what was there is not measured again
    monkeypatch.setattr(suite_module, "digest_of", other_code)
    assert validated(resume=True).runs == 1
    assert len(again) == 16


def other_code(package: Path) -> str:
    return "another"


def test_code_is_told_from_other_code(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("1", encoding="utf-8")
    before = digest_of(tmp_path)
    assert digest_of(tmp_path) == before
    (tmp_path / "one.py").write_text("2", encoding="utf-8")
    assert digest_of(tmp_path) != before


def test_what_is_not_of_this_run_is_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    Progress(file, {"commit": "a"}).part("one", int, lambda: 1)
    assert "one" in Progress(file, {"commit": "a"}, resume=True)
    assert "one" not in Progress(file, {"commit": "b"}, resume=True)
    assert "one" not in Progress(file, {"commit": "a"})
    file.write_text('{"form": 1', encoding="utf-8")
    assert "one" not in Progress(file, {"commit": "a"}, resume=True)
    assert Progress().part("two", int, lambda: 2) == 2


def test_heads_come_again_where_no_stride_of_heads_does() -> None:
    made = drawn((2, 16, 3, 4), ts.f32, "cpu", 0).numpy().reshape(32, 3, 4)
    whole = drawn((2, 16, 3, 4), ts.f32, "cpu", 0).numpy().reshape(32, 3, 4)
    assert (made == whole).all()
    for apart in (1, 2, 4, 8, 16):
        assert not any((made[head] == made[head + apart]).all() for head in range(32 - apart))
    assert (made[31] == made[5]).all()
    alike = Problem.described(CONFIGS[0], "cpu").arrays
    assert [one.meta for one in alike] == [one.meta for one in Problem.of(CONFIGS[0], "cpu").arrays]


def test_ranks_are_started_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []

    def ran(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        seen.append(options["env"])
        return subprocess.CompletedProcess(command, 0, "traced\ntraced\n", "")

    monkeypatch.setattr(subprocess, "run", ran)

    def found(name: str) -> str:
        return name

    monkeypatch.setattr(suite_module, "find_spec", found)
    monkeypatch.setattr(subprocesses, "executable", found)
    assert ValidationSuite()._ranks() == (True, "two ranks traced on the CPU")  # pyright: ignore[reportPrivateUsage]
    (around,) = seen
    assert {around[f"OMPI_ALLOW_RUN_AS_ROOT{end}"] for end in ("", "_CONFIRM")} == {"1"}
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in os.environ  # only where we start MPI ourselves
