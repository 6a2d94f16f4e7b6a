"""`tessera bench` as a program: its files, its exit status, and what is left when something goes wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tessera.bench.reporting.exchange import Journal, read_json, write_json
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, BenchmarkSuiteResult
from tessera.cli.main import cli
from tessera.errors import TesseraError

CHEATS = Path(__file__).with_name("cheats.py")
# What a shell starts in the background ignores Ctrl-C, and so do its children: these hear it.
_HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
COMMAND = (sys.executable, "-c", f"{_HEARING}from tessera.cli.main import main; main()", "bench")
BRIEF = ("--seconds", "0.3", "--samples", "12", "--threads", "1", "--precision", "f32", "--measure", "latency")
TINY = ("--size", "rows=64,cols=64")


def bench(*words: str | Path, check: int | None = 0) -> Any:
    found = CliRunner().invoke(cli, ["bench", *map(str, words)])
    if check is not None:
        assert found.exit_code == check, found.output
    return found


def started(*words: str | Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        **options,
    )


# Running


def test_run_writes_every_kind_of_file(tmp_path: Path) -> None:
    names = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "md", "html")}
    files = [word for kind, path in names.items() for word in (f"--{kind}", path)]
    found = bench(
        "run", "softmax", *TINY, *BRIEF, "--implementations", "tessera,numpy", *files, "--history", tmp_path / "h.db"
    )
    assert "tessera" in found.output
    suite = read_json(names["json"])
    assert {row.implementation for row in suite.get_successful_results().values()} == {"tessera", "numpy"}
    assert suite.environment["processor"]
    assert "seed" in suite.environment
    assert names["csv"].read_text().count("\n") == 3
    assert "| tessera" in names["md"].read_text()
    assert "<svg" in names["html"].read_text()
    assert bench("history", tmp_path / "h.db").output.strip()
    assert "softmax" in bench("history", tmp_path / "h.db", "--key", "softmax").output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.db", "out.csv", "out.html", "out.json", "out.md"]


def test_list_names_benchmarks_and_what_is_missing() -> None:
    found = bench("list").output
    assert "flash_attention" in found
    assert "torch_sdpa_cudnn" in found


def test_report_reads_a_result_file(tmp_path: Path) -> None:
    write_json(made(latency=[1.0, 1.1, 0.9]), tmp_path / "a.json")
    bench("report", tmp_path / "a.json", "--md", tmp_path / "a.md")
    assert (tmp_path / "a.md").is_file()


def test_workflow_prints_a_workflow() -> None:
    assert "tessera bench check" in bench("workflow").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "sofmax"), "unknown benchmark"),
        (("run", "softmax", "--size", "rows"), "cannot read the size"),
        (("run", "softmax", "--size", "rows=x,cols=1"), "cannot read 'x'"),
        (("run", "softmax", "--set", "small"), "has no set"),
        (("run", "softmax", "--precision", "f31"), "unknown precision"),
        (("run", "softmax", "--file", "absent.py"), "cannot read"),
        (("run", "softmax", "--size", "rows=0,cols=4"), "at least 1"),
        (("run", "softmax", "--implementations", "tessra"), "no implementation tessra"),
        (("run", "flash_attention", "--set", "small", "--precision", "f64"), "nothing to run"),
        (("compare", "absent.json", "absent.json"), "absent.json"),
        (("history", "absent.db"), "no history"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], said: str) -> None:
    found = bench(*words, check=1)
    assert isinstance(found.exception, TesseraError | SystemExit)
    assert said in f"{found.output}{found.exception}"


def test_a_mistake_is_a_message_and_not_a_traceback() -> None:
    process = started("run", "sofmax")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "unknown benchmark" in output
    assert "Traceback" not in output


# Exit status


@pytest.mark.acceptance
def test_a_failed_implementation_is_status_3_and_its_row_is_written(tmp_path: Path) -> None:
    brief = ("--seconds", "20", "--samples", "30", "--threads", "1", "--precision", "f32", "--measure", "latency")
    words = ("--size", "rows=256,cols=256", *brief, "--implementations", "honest,raises,crashes")
    bench("run", "more_product_failing", "--file", _copy(tmp_path), *words, "--json", tmp_path / "a.json", check=3)
    suite = read_json(tmp_path / "a.json")
    failed = {row.implementation: row for row in suite.results.values() if isinstance(row, BenchmarkError)}
    assert {name: row.error_type for name, row in failed.items()} == {"raises": "exception", "crashes": "crash"}
    assert len(suite.get_successful_results()) == 1


def _copy(folder: Path) -> Path:
    """The benchmarks under names of their own: those of the file itself are registered in this process already."""
    path = folder / "more_cheats.py"
    path.write_text(CHEATS.read_text().replace('name = "product_', 'name = "more_product_'))
    return path


def made(
    latency: list[float], throughput: float | None = None, implementation: str = "tessera"
) -> BenchmarkSuiteResult:
    suite = BenchmarkSuiteResult(environment={"processor": "test"})
    suite.add(
        BenchmarkResult(
            "softmax",
            {"rows": 64, "cols": 64},
            implementation=implementation,
            latency_ms=sorted(latency)[len(latency) // 2] if latency else None,
            samples_ms=latency,
            measurements_count=len(latency),
            throughput_ops_per_sec=throughput,
        )
    )
    return suite


def steady(middle: float) -> list[float]:
    return [middle * (1 + 0.002 * ((7 * index) % 5 - 2)) for index in range(60)]


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (made(steady(1.0)), made(steady(1.3)), 4),
        (made(steady(1.3)), made(steady(1.0)), 0),
        (made(steady(1.0)), made(steady(1.0)), 0),
        (made([], 1e9), made([], 1.3e9), 0),
        (made([], 1.3e9), made([], 1e9), 4),
    ],
)
def test_compare_knows_which_direction_is_worse(
    before: BenchmarkSuiteResult, after: BenchmarkSuiteResult, status: int, tmp_path: Path
) -> None:
    write_json(before, tmp_path / "a.json")
    write_json(after, tmp_path / "b.json")
    bench("compare", tmp_path / "a.json", tmp_path / "b.json", "--json", tmp_path / "c.json", check=status)
    verdicts = {change["verdict"] for change in json.loads((tmp_path / "c.json").read_text())["changes"]}
    assert ("regression" in verdicts) == (status == 4)


def test_a_row_that_fails_now_is_a_regression(tmp_path: Path) -> None:
    write_json(made(steady(1.0)), tmp_path / "a.json")
    broken = BenchmarkSuiteResult(environment={"processor": "test"})
    (row,) = made(steady(1.0)).results.values()
    gone = BenchmarkError("gone", "crash", benchmark_name=row.benchmark_name, problem_size=row.problem_size)
    gone.precision, gone.implementation = row.precision, row.implementation
    broken.add(gone)
    write_json(broken, tmp_path / "b.json")
    bench("compare", tmp_path / "a.json", tmp_path / "b.json", check=4)


@pytest.mark.acceptance
@pytest.mark.parametrize(("factor", "status"), [(0.3, 4), (3.0, 0)])
def test_check_runs_what_the_baseline_ran(factor: float, status: int, tmp_path: Path) -> None:
    brief = ("--seconds", "0.9", "--samples", "60", "--threads", "1", "--measure", "latency")
    words = ("run", "softmax", "--size", "rows=256,cols=256", *brief, "--precision", "f32")
    bench(*words, "--implementations", "tessera", "--json", tmp_path / "a.json")
    suite = read_json(tmp_path / "a.json")
    (row,) = suite.get_successful_results().values()
    row.samples_ms = [factor * sample for sample in row.samples_ms]
    row.latency_ms = factor * (row.latency_ms or 0.0)
    # Single figures of the compile repeat badly on a busy machine; only the latency is what this is about.
    row.compilation_time_ms = row.ir_optimization_time_ms = row.host_overhead_us = row.peak_memory_mb = None
    write_json(suite, tmp_path / "a.json")
    bench("check", "--baseline", tmp_path / "a.json", *brief, "--json", tmp_path / "b.json", check=status)
    assert read_json(tmp_path / "b.json").get_successful_results().keys() == {row.key}


# What is left


@pytest.mark.acceptance
def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    words = ("--seconds", "1.0", "--samples", "100", "--threads", "1", "--precision", "f32", "--measure", "latency")
    process = started("run", "product_slow", "--file", CHEATS, *words, "--json", target, start_new_session=True)
    journal, deadline = target.with_name("a.json.journal"), time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count('"row"') >= 2):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    suite = read_json(target)
    assert suite.interrupted
    assert len(suite.get_successful_results()) >= 2
    assert not journal.exists()


@pytest.mark.acceptance
def test_ctrl_c_while_the_worker_starts_leaves_a_file_and_no_traceback(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    process = started("run", "softmax", *TINY, *BRIEF, "--json", target, start_new_session=True)
    journal, deadline = target.with_name("a.json.journal"), time.monotonic() + 60
    while time.monotonic() < deadline and not journal.exists():
        time.sleep(0.01)
    time.sleep(0.3)  # the worker is loading now
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert read_json(target).interrupted


@pytest.mark.acceptance
def test_a_run_that_was_stopped_and_continued_is_no_cheat(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    words = ("--seconds", "1.0", "--samples", "100", "--threads", "1", "--precision", "f32", "--measure", "latency")
    process = started("run", "product_slow", "--file", CHEATS, *words, "--json", target)
    journal, deadline = target.with_name("a.json.journal"), time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count('"row"') >= 2):
        time.sleep(0.02)
    process.send_signal(signal.SIGSTOP)  # in the second of three cases
    time.sleep(4.0)
    assert journal.read_text().count('"row"') == 2
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


@pytest.mark.acceptance
def test_the_journal_of_a_killed_run_is_kept_by_the_next(tmp_path: Path) -> None:
    journal = tmp_path / "a.json.journal"
    with Journal(journal) as left:
        left.begin(BenchmarkSuiteResult())
    words = ("run", "softmax", *TINY, *BRIEF, "--implementations", "tessera", "--json", tmp_path / "a.json")
    bench(*words)
    assert journal.with_name("a.json.journal.old").is_file()
    assert not journal.exists()


def test_nothing_to_compare_is_no_success(tmp_path: Path) -> None:
    write_json(made(steady(1.0)), tmp_path / "a.json")
    write_json(made(steady(1.0), implementation="other"), tmp_path / "b.json")
    write_json(BenchmarkSuiteResult(), tmp_path / "empty.json")
    bench("compare", tmp_path / "a.json", tmp_path / "b.json", check=3)
    bench("compare", tmp_path / "empty.json", tmp_path / "empty.json", check=3)


def test_the_order_of_a_size_does_not_matter(tmp_path: Path) -> None:
    first, second = made(steady(1.0)), BenchmarkSuiteResult(environment={"processor": "test"})
    for row in first.results.values():
        assert isinstance(row, BenchmarkResult)
        second.add(dataclasses.replace(row, problem_size=dict(reversed(row.problem_size.items()))))
    assert first.results.keys() == second.results.keys()


@pytest.mark.acceptance
def test_a_killed_run_leaves_a_journal(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    words = ("--seconds", "1.0", "--samples", "100", "--threads", "1", "--precision", "f32", "--measure", "latency")
    process = started("run", "product_slow", "--file", CHEATS, *words, "--json", target)
    journal, deadline = target.with_name("a.json.journal"), time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count('"row"') >= 2):
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=60)
    assert not target.exists()
    suite = Journal.recover(journal)
    assert suite.interrupted
    assert len(suite.get_successful_results()) >= 2
    assert "honest" in bench("report", journal).output


@pytest.mark.acceptance
def test_a_full_disk_loses_neither_the_results_on_the_screen_nor_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text("what was there before\n")

    def limit() -> None:
        # Files may not grow beyond this: what a full disk does, for this process alone.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    words = ("run", "softmax", *TINY, *BRIEF, "--implementations", "tessera", "--in-process")
    process = subprocess.run(
        [*COMMAND, *words, "--json", str(target), "--csv", "/dev/full"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=120,
        check=False,
    )
    assert process.returncode == 5, process.stdout
    assert "tessera" in process.stdout
    assert "cannot write" in process.stdout
    assert target.read_text() == "what was there before\n"
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".partial"]


@pytest.mark.acceptance
def test_a_folder_that_does_not_exist_is_told_before_anything_is_lost(tmp_path: Path) -> None:
    found = bench(
        "run", "softmax", *TINY, *BRIEF, "--implementations", "tessera", "--json", tmp_path / "no" / "a.json", check=5
    )
    assert "tessera" in found.output
