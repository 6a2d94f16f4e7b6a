"""Tests the history: runs and series come back, writers do not lose each other's runs, damaged files are kept."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import made_up
import pytest

from tessera.bench.reporting import history
from tessera.bench.reporting.history import History
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkResult, BenchmarkSuiteResult
from tessera.errors import ResourceError


def test_runs_and_series_come_back_in_order(tmp_path: Path) -> None:
    suites = [made_up.suite(seed=seed, speed=1 + seed / 10) for seed in (1, 2, 3)]
    with History(tmp_path / "runs.db") as runs:
        assert [runs.add(suite, f"c{number}") for number, suite in enumerate(suites)] == [1, 2, 3]
    with History(tmp_path / "runs.db") as runs:
        assert [(run.id, run.commit, run.measured, run.failed) for run in runs.runs()] == [
            (1, "c0", 23, 1),
            (2, "c1", 23, 1),
            (3, "c2", 23, 1),
        ]
        assert [run.time for run in runs.runs()] == [suite.suite_start_time for suite in suites]
        key = runs.keys()[0]
        points = runs.series(key)
        rows = [suite.get_successful_results()[key] for suite in suites]
        assert [point.value for point in points] == [row.latency_ms for row in rows]
        assert [(point.low, point.high) for point in points] == [row.confidence_interval_95 for row in rows]
        assert [point.commit for point in points] == ["c0", "c1", "c2"]
        assert [point.value for point in runs.series(key, "speedup")] == [row.speedup for row in rows]
        assert runs.series(key, "energy_joules") == []
        assert runs.series("no such row") == []
        assert runs.suite(2) == suites[1]
        assert len(runs.keys()) == 23


def test_the_commit_of_the_environment_is_taken(tmp_path: Path) -> None:
    with History(tmp_path / "runs.db") as runs:
        runs.add(BenchmarkSuiteResult(environment={"commit": "abc"}))
        runs.add(BenchmarkSuiteResult(environment={"commit": "abc"}), "given")
        runs.add(BenchmarkSuiteResult())
        assert [run.commit for run in runs.runs()] == ["abc", "given", None]


def test_figures_that_are_not_numbers_are_left_out_of_series(tmp_path: Path) -> None:
    suite = BenchmarkSuiteResult()
    suite.add(BenchmarkResult("b", {"n": 1}, latency_ms=math.nan, speedup=math.inf))
    (key,) = suite.results
    with History(tmp_path / "runs.db") as runs:
        runs.add(suite)
        assert runs.series(key) == []
        assert runs.series(key, "speedup")[0].value == math.inf


def test_looking_makes_no_file(tmp_path: Path) -> None:
    runs = History(tmp_path / "runs.db")
    assert (runs.runs(), runs.keys(), runs.series("k")) == ([], [], [])
    with pytest.raises(BenchError, match=r"expected a run of .*runs\.db, got 7"):
        runs.suite(7)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_run_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with History(tmp_path / "runs.db") as runs:
        runs.add(made_up.suite((64,)))
        with pytest.raises(BenchError) as raised:
            runs.suite(7)
    assert raised.value.hint == "its runs are: 1"


WRITER = """
import sys
from tessera.bench.reporting.history import History
from tessera.bench.results.results import BenchmarkResult, BenchmarkSuiteResult
for number in range(15):
    suite = BenchmarkSuiteResult()
    suite.add(BenchmarkResult("b", {"n": 1}, latency_ms=1.0 + number))
    with History(sys.argv[1]) as runs:
        runs.add(suite, sys.argv[2])
"""


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    with History(path) as runs:
        found = runs.runs()
        assert sorted(str(run.commit) for run in found) == ["a"] * 15 + ["b"] * 15
        points = runs.series(runs.keys()[0])
    for name in ("a", "b"):
        assert [point.value for point in points if point.commit == name] == [1.0 + number for number in range(15)]


def test_a_lock_that_is_never_released_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    with History(path) as runs:
        runs.add(made_up.suite((64,)))
    monkeypatch.setattr(history, "_PATIENCE_SECONDS", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with History(path) as runs, pytest.raises(ResourceError, match="locked") as raised:
        runs.add(made_up.suite((64,)))
    assert "another process" in str(raised.value.hint)
    other.execute("ROLLBACK")
    other.close()
    with History(path) as runs:
        assert len(runs.runs()) == 1


def test_a_run_is_added_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with History(path) as runs:
        runs.add(made_up.suite((64,)))
    spoiled = sqlite3.connect(path)
    spoiled.execute(
        "CREATE TRIGGER full BEFORE INSERT ON figures BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
    )
    spoiled.close()
    with History(path) as runs:
        with pytest.raises(ResourceError, match="full") as raised:
            runs.add(made_up.suite((64,)))
        assert "free some space" in str(raised.value.hint)
        assert [run.id for run in runs.runs()] == [1]


def test_newer_histories_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with History(path) as runs:
        runs.add(made_up.suite((64,)))
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 2")
    newer.close()
    before = path.read_bytes()
    with History(path) as runs:
        with pytest.raises(BenchError, match="expected a history of version 1, got version 2"):
            runs.runs()
        with pytest.raises(BenchError, match="version 2"):
            runs.add(made_up.suite((64,)))
    assert path.read_bytes() == before


def damaged(path: Path, kind: str) -> None:
    if kind == "garbage":
        path.write_bytes(b"this is no database " * 100)
        return
    if kind == "of something else":
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.close()
        return
    with History(path) as runs:
        for seed in range(3):
            runs.add(made_up.suite(seed=seed))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if kind == "cut off" else whole[:4096] + bytes(len(whole) - 4096))


@pytest.mark.parametrize("kind", ["garbage", "of something else", "cut off", "zeroed"])
def test_damaged_files_are_refused_and_kept(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    damaged(path, kind)
    before = path.read_bytes()
    with History(path) as runs:
        with pytest.raises(ResourceError, match=r"cannot use the history .*runs\.db") as raised:
            runs.add(made_up.suite())
        assert "mv " in str(raised.value.hint)
    assert path.read_bytes() == before


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="unable to open") as raised:
        History(tmp_path / "none" / "runs.db").add(BenchmarkSuiteResult())
    assert "make the folder" in str(raised.value.hint)
