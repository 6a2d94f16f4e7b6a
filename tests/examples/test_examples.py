"""The scripts under examples/ run, at small sizes, and show what they say."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_run_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [path.stem for path in FOLDER.glob("*.py") if f'example("{path.stem}")' not in text] == []


def test_basic_usage_reaches_the_last_tier(capsys: pytest.CaptureFixture[str]) -> None:
    stats = example("basic_usage").main(["--shape", "1", "2", "32", "16"])
    assert stats.total_executions == 100
    assert stats.tier1_executions > 0
    assert stats.events["contests"] > 0
    assert stats.tier3_executions > 0
    assert "call 100: tier" in capsys.readouterr().out


@pytest.mark.acceptance
def test_learning_tells_spirals_apart() -> None:
    before, after, share = example("learning").train(400)
    assert before > 0.5
    assert after < 0.01
    assert share > 0.98


@pytest.mark.acceptance
def test_custom_specialization_is_guarded(capsys: pytest.CaptureFixture[str]) -> None:
    told = ""
    # Which program is the fastest is measured, on a machine that may be busy.
    for _ in range(4):
        guards = example("custom_specialization").main()
        assert "arg4 = 0.25" in guards
        assert "arg0.size[2] = 32" in guards
        told += capsys.readouterr().out
        if "tier 3" in told:
            break
    assert "tier 3" in told


@pytest.mark.acceptance
def test_advanced_configuration_finds_what_is_hot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, trace = tmp_path / "timeline.html", tmp_path / "trace.json"
    runtime, hotspots = example("advanced_configuration").main(["--timeline", str(page), "--trace", str(trace)])
    assert runtime.get_runtime_stats().total_executions == 60
    assert hotspots
    assert page.stat().st_size > 1000
    assert trace.stat().st_size > 1000
    assert "guarded by" in capsys.readouterr().out


def test_pattern_analysis_finds_the_three_models(capsys: pytest.CaptureFixture[str]) -> None:
    found = example("pattern_analysis").main()
    assert found.supporting_traces == 50
    assert {one.input_pattern.seq_len for one in found.common_patterns} == {1024, 2048, 4096}
    assert found.sequences
    assert "3 runs of three shapes come again" in capsys.readouterr().out


@pytest.mark.acceptance
def test_benchmark_and_validation(tmp_path: Path) -> None:
    results, found = example("benchmark_and_validation").main(["--small", "--report", str(tmp_path / "report.md")])
    (result,) = results
    assert result.tier3_metrics.successful_runs >= 12
    assert found.numerical_correctness_passed
    assert found.cross_tier_consistency_passed
    assert "| Small: 1x2x32x16 |" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.acceptance
def test_integration() -> None:
    example("integration").main([])


@pytest.mark.acceptance
def test_integration_of_ranks() -> None:
    pytest.importorskip("mpi4py")
    command = [str(Path(sys.executable).with_name("mpiexec")), "-n", "2", sys.executable]
    ran = subprocess.run(
        [*command, str(FOLDER / "integration.py"), "--ranks"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "2 ranks, 3 calls each; 3 all_reduce" in ran.stdout
