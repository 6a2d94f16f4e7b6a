"""Tests results as files: exact round trips, a schema that holds, CSV, and files that are whole or not there."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import resource
import stat
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import made_up
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from rich.console import Console

from tessera.bench.reporting import exchange, tables
from tessera.bench.reporting.exchange import Journal, from_dict, read_json, to_dict, write_atomically, write_json
from tessera.bench.results.definitions import (
    BenchError,
    BenchmarkConfig,
    BenchmarkMode,
    HardwareConfig,
    MeasurementType,
)
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, BenchmarkSuiteResult
from tessera.errors import ResourceError


def schema() -> Any:
    return json.loads(resources.files("tessera.bench.reporting").joinpath("schema.json").read_text("utf-8"))


def validated(suite: BenchmarkSuiteResult) -> dict[str, Any]:
    """The suite as a strict reader of JSON sees it."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    data = json.loads(json.dumps(to_dict(suite)), parse_constant=refuse)
    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(data)
    return data


def one_row(**figures: Any) -> BenchmarkSuiteResult:
    suite = BenchmarkSuiteResult(suite_start_time=1.0)
    suite.add(BenchmarkResult("b", {"n": 1}, **figures))
    return suite


def test_a_suite_comes_back_exactly(tmp_path: Path) -> None:
    suite = made_up.suite()
    write_json(suite, tmp_path / "run.json")
    back = read_json(tmp_path / "run.json")
    assert back == suite
    assert list(back.results) == list(suite.results)
    first = next(iter(back.get_successful_results().values()))
    assert isinstance(first.confidence_interval_95, tuple)
    assert list(first.stages_ms) == list(made_up.STAGES)
    validated(suite)


def test_every_part_of_a_configuration_comes_back() -> None:
    config = BenchmarkConfig(
        name="c<&>",
        mode=BenchmarkMode.PROFILING,
        measurements=[MeasurementType.ENERGY],
        hardware=HardwareConfig("x86-64", memory_bandwidth_gbps=None),
        sizes=[{"n": 1, "shape": (2, 3)}],
        implementations=("tessera",),
        threads=2,
        seed=5,
    )
    data = validated(one_row(config=config))
    (row,) = from_dict(data).get_successful_results().values()
    assert row.config == replace(config, measurements=(MeasurementType.ENERGY,), sizes=({"n": 1, "shape": (2, 3)},))


def test_numbers_that_are_not_finite_come_back_as_valid_json() -> None:
    suite = one_row(latency_ms=math.inf, samples_ms=[math.nan, -math.inf, 1e-300], counters={"cycles": math.nan})
    suite.environment = {"load": math.nan, "nested": [(-math.inf,)]}
    data = validated(suite)
    (row,) = from_dict(data).get_successful_results().values()
    assert row.latency_ms == math.inf
    assert math.isnan(row.samples_ms[0])
    assert row.samples_ms[1:] == [-math.inf, 1e-300]
    assert from_dict(data).environment["nested"] == [(-math.inf,)]
    assert to_dict(from_dict(data)) == data


class Level(StrEnum):
    HIGH = "high"


def test_values_of_numpy_and_odd_keys_are_kept() -> None:
    suite = one_row(latency_ms=np.float32(0.5), samples_ms=list(np.array([1.0, 2.0])), threads=np.int64(2))
    suite.environment = {
        "cores": np.int64(2),
        "by core": {0: 1.5, (1, 2): "x"},
        "$price": {"$tuple": 1},
        "level": Level.HIGH,
    }
    suite.ceilings = {"rates": np.array([1.0, 2.0]), "folder": Path("/somewhere")}
    back = from_dict(validated(suite))
    (row,) = back.get_successful_results().values()
    assert (row.latency_ms, row.samples_ms, row.threads) == (0.5, [1.0, 2.0], 2)
    assert back.environment == {"cores": 2, "by core": {0: 1.5, (1, 2): "x"}, "$price": {"$tuple": 1}, "level": "high"}
    assert back.ceilings == {"rates": [1.0, 2.0], "folder": "/somewhere"}


anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.lists(inner, max_size=3).map(tuple)
        | some.dictionaries(some.text() | some.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    size=some.dictionaries(some.text(), anything, max_size=3),
    samples=some.lists(some.floats(allow_nan=False), max_size=4),
    interval=some.none() | some.tuples(some.floats(allow_nan=False), some.floats(allow_nan=False)),
    name=some.text(some.characters(codec=None)),
)
def test_any_row_comes_back_exactly(
    size: dict[str, Any], samples: list[float], interval: tuple[float, float] | None, name: str
) -> None:
    suite = BenchmarkSuiteResult(environment=size, suite_start_time=2.5)
    suite.add(BenchmarkResult(name, size, samples_ms=samples, confidence_interval_95=interval, conditions=size))
    suite.add(BenchmarkError(name, "crash", "trace", 1.5, name, size))
    assert from_dict(validated(suite)) == suite


def test_the_schema_lists_the_fields_of_the_data_model() -> None:
    definitions = schema()["$defs"]
    for name, kind in {
        "result": BenchmarkResult,
        "error": BenchmarkError,
        "config": BenchmarkConfig,
        "hardware": HardwareConfig,
    }.items():
        assert set(definitions[name]["properties"]) - {"kind"} == {field.name for field in fields(kind)}, name
    assert definitions["config"]["properties"]["mode"]["enum"] == [mode.value for mode in BenchmarkMode]


def test_old_files_without_newer_fields_are_read() -> None:
    data: dict[str, Any] = {
        "schema": exchange.SCHEMA,
        "results": {"k": {"kind": "result", "benchmark_name": "b", "problem_size": {}}},
    }
    assert from_dict(data).results == {"k": BenchmarkResult("b", {})}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"schema": "tessera.bench/2"}, "expected results in the form 'tessera.bench/1', got 'tessera.bench/2'"),
        ({"schema": None}, "got None"),
        ({"novel": 1}, "novel as well"),
        ({"results": []}, "results: expected an object"),
        ({"interrupted": "no"}, "interrupted: expected true or false, got 'no'"),
        ({"environment": {"x": {"$odd": 1}}}, "expected `$float`, `$tuple` or `$map`"),
        ({"environment": {"x": {"$float": "1", "$tuple": []}}}, "expected `$float`, `$tuple` or `$map`"),
        ({"environment": {"x": {"$map": [1]}}}, "expected `$float`, `$tuple` or `$map`"),
        ({"results": {"k": 3}}, "k: expected a row of the kind `result` or `error`, got 3"),
        ({"results": {"k": {"kind": "result"}}}, "benchmark_name"),
        ({"row": {"latency_ms": "fast"}}, "latency_ms: expected a number, got 'fast'"),
        ({"row": {"threads": 1.5}}, "threads: expected an integer, got 1.5"),
        ({"row": {"threads": True}}, "threads: expected an integer, got True"),
        ({"row": {"confidence_interval_95": [1]}}, "expected a list of 2"),
        ({"row": {"samples_ms": {}}}, "samples_ms: expected a list"),
        ({"row": {"unavailable": []}}, "unavailable: expected an object"),
        ({"row": {"config": {"mode": "fast"}}}, "mode: expected one of single_gpu"),
        ({"row": {"config": 3}}, "config: expected an object"),
        ({"row": {"benchmark_name": 3}}, "benchmark_name: expected a text, got 3"),
    ],
)
def test_files_of_another_kind_are_refused(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    data = to_dict(one_row())
    row = change.pop("row", {})
    data |= change
    if row:
        next(iter(data["results"].values())).update(row)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BenchError) as raised:
        read_json(path)
    assert expected in raised.value.message
    assert str(path) in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("content", [b"", b"hello", b"[1]", b"\xff\xfe\x00", b"[" * 100_000, b'{"schema": "tessera.b'])
def test_garbage_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "garbage.json"
    path.write_bytes(content)
    with pytest.raises(BenchError, match=r"garbage\.json") as raised:
        read_json(path)
    assert raised.value.hint


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"cannot read .*none\.json: no such file") as raised:
        read_json(tmp_path / "none.json")
    assert raised.value.span is not None
    assert raised.value.span.file == __file__


def test_csv_has_a_line_per_row_with_single_values(tmp_path: Path) -> None:
    suite = made_up.suite()
    suite.add(BenchmarkError('said "no",\nthen left', "crash", None, 1.0, "b", {"shape": (1, 2)}, "f32", "a,b"))
    exchange.write_csv(suite, tmp_path / "run.csv")
    data = (tmp_path / "run.csv").read_bytes().decode()
    assert data.count("\r\n") == len(suite.results) + 1
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    assert len(rows) == len(suite.results)
    for line, row in zip(rows, suite.results.values(), strict=True):
        assert line["implementation"] == row.implementation
        if isinstance(row, BenchmarkResult):
            assert row.latency_ms is not None
            assert row.confidence_interval_95 is not None
            assert float(line["latency_ms"]) == row.latency_ms
            assert float(line["latency_high_ms"]) == row.confidence_interval_95[1]
            assert line["energy_joules"] == ""
            assert line["size.length"] == str(row.problem_size["length"])
    assert [line["status"] for line in rows if line["status"] != "ok"] == ["failed", "skipped", "failed"]
    assert rows[-1]["reason"] == 'crash: said "no",\nthen left'
    assert rows[-1]["size.shape"] == "(1, 2)"


def test_csv_of_no_rows_has_a_heading(tmp_path: Path) -> None:
    exchange.write_csv(BenchmarkSuiteResult(), tmp_path / "run.csv")
    assert (tmp_path / "run.csv").read_text().startswith("benchmark_name,size,precision,")


# Whole or not there


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    write_atomically(link, "new\r\n\ud800")
    assert path.read_bytes() == b"new\r\n\\ud800"
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert left_in(tmp_path) == ["link.txt", "out.txt"]


def test_a_new_file_has_the_mode_of_the_user(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "out.txt", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("failing", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_when_writing_fails_the_old_file_stays(
    failing: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, fail)
        with pytest.raises(ResourceError) as raised:
            write_json(made_up.suite(), path)
    assert str(path) in raised.value.message
    assert os.strerror(code).lower() in raised.value.message
    assert raised.value.hint
    assert path.read_text() == "old"
    assert left_in(tmp_path) == ["out.json"]


def test_an_interrupt_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "out.json", "text")
    assert left_in(tmp_path) == []


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow beyond 4096 bytes, by the system's own limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_the_systems_own_refusal_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    with pytest.raises(ResourceError, match=r"out\.json: file too large"):
        write_json(made_up.suite(), path)
    assert path.read_text() == "old"
    assert left_in(tmp_path) == ["out.json"]


def test_a_full_device_says_so() -> None:
    with pytest.raises(ResourceError, match=r"cannot write /dev/full: no space left") as raised:
        write_json(BenchmarkSuiteResult(), "/dev/full")
    assert "disk is full" in str(raised.value.hint)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_pipe_is_written_to_as_it_is() -> None:
    reader, writer = os.pipe()
    write_atomically(f"/dev/fd/{writer}", "text")
    os.close(writer)
    with open(reader, encoding="utf-8") as stream:
        assert stream.read() == "text"


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="it is a folder"):
        write_atomically(tmp_path, "text")
    with pytest.raises(ResourceError, match="no such file") as raised:
        write_atomically(tmp_path / "none" / "out.json", "text")
    assert "make the folder" in str(raised.value.hint)


# The journal


def written(path: Path, suite: BenchmarkSuiteResult) -> None:
    with Journal(path) as journal:
        journal.begin(suite)
        for row in suite.results.values():
            journal.append(row)


def test_a_journal_gives_the_suite_back(tmp_path: Path) -> None:
    suite, path = made_up.suite(), tmp_path / "run.jsonl"
    with Journal(path) as journal:
        journal.begin(suite)
        for count, row in enumerate(suite.results.values(), 1):
            journal.append(row)
            # What is appended is in the file at once: another process would read it now.
            assert len(Journal.recover(path).results) == count
        journal.finish(suite)
    assert Journal.recover(path) == suite


def test_without_an_end_the_run_was_interrupted(tmp_path: Path) -> None:
    suite, path = made_up.suite(), tmp_path / "run.jsonl"
    written(path, suite)
    back = Journal.recover(path)
    assert back.interrupted
    assert back.results == suite.results
    assert back.environment == suite.environment
    assert back.suite_end_time > 0


@pytest.mark.acceptance
def test_a_journal_torn_at_any_byte_of_its_last_line_is_recovered(tmp_path: Path) -> None:
    suite, path = made_up.suite((64,), ("f32",), ("numpy",)), tmp_path / "run.jsonl"
    written(path, suite)
    whole = path.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert len(Journal.recover(path).results) == len(suite.results) - 1
    path.write_bytes(whole[:start] + bytes(100))
    assert len(Journal.recover(path).results) == len(suite.results) - 1


def test_a_torn_journal_is_continued_on_a_line_of_its_own(tmp_path: Path) -> None:
    suite, path = made_up.suite((64,), ("f32",), ("numpy", "tessera")), tmp_path / "run.jsonl"
    written(path, suite)
    path.write_bytes(path.read_bytes()[:-20])
    with Journal(path) as journal:
        journal.append(list(suite.results.values())[-1])
        journal.finish(suite)
    assert Journal.recover(path) == suite


def test_half_a_line_on_a_full_disk_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, path = made_up.suite((64,), ("f32",), ("numpy",)), tmp_path / "run.jsonl"
    rows = list(suite.results.values())
    write = os.write

    def half(file: int, data: Any) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, bytes(data)[: len(data) // 2])

    with Journal(path) as journal:
        journal.append(rows[0])
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", half)
            with pytest.raises(ResourceError, match="no space left"):
                journal.append(rows[1])
        journal.append(rows[2])
    assert list(Journal.recover(path).results) == [rows[0].key, rows[2].key]


def test_damage_in_the_middle_of_a_journal_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path, made_up.suite((64,), ("f32",), ("numpy",)))
    lines = path.read_text().split("\n")
    lines[1] = lines[1][:30]
    path.write_text("\n".join(lines))
    with pytest.raises(BenchError, match=r"run\.jsonl, line 2"):
        Journal.recover(path)


@pytest.mark.parametrize("content", ["hello\n", "hello", '{"schema": "tessera.bench/1"}\n', "[]\n"])
def test_other_files_are_no_journals(content: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(BenchError, match="line 1"):
        Journal.recover(path)


def test_an_empty_journal_is_an_interrupted_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Journal(path).close()
    assert Journal.recover(path).interrupted
    with pytest.raises(ResourceError, match="cannot write"):
        Journal(tmp_path / "none" / "run.jsonl")


# The terminal


def printed(suite: BenchmarkSuiteResult, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    tables.print_suite(suite, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_tables_show_every_case_and_every_reason() -> None:
    suite = made_up.suite()
    suite.environment["unavailable"] = {"governor": "no [cpufreq]"}
    next(iter(suite.get_successful_results().values())).add_warning("noisy: known to 8 %")
    suite.ceilings["warnings"] = ["f32: the machine was busy"]
    suite.interrupted = True
    text = printed(suite, 140)
    assert text.count("implementation ") == 6
    assert "flash_attention  batch=1 heads=8 length=1024 bf16" in text
    assert "inductor failed: crash: expected rc 0, got signal 11" in text
    assert "triton skipped: triton is not installed" in text
    assert "1.25× 1.21–1.29" in text
    assert "3.0e-07 ≤ 2e-06" in text
    assert "governor (no [cpufreq]); energy_joules (no RAPL domain at /sys/class/powercap)" in text
    assert "\n  tessera: noisy: known to 8 %\n" in text
    assert "note: ceilings: f32: the machine was busy" in text
    assert "note: the run was interrupted" in text
    assert "23 measured, 1 failed, 1 skipped" in text


@pytest.mark.parametrize("width", [80, 118, 200])
def test_figures_are_not_cut_off(width: int) -> None:
    text = printed(made_up.suite(), width)
    assert "…" not in text
    assert max(len(line) for line in text.split("\n")) <= width


def test_tables_of_nothing_and_of_a_row_without_figures() -> None:
    assert printed(BenchmarkSuiteResult(), 80).startswith("no rows")
    assert "[b]" in printed(one_row(implementation="[b]"), 80)


def test_progress_away_from_a_terminal_is_a_line_per_row() -> None:
    suite = made_up.suite((64,), ("f32",), ("numpy",))
    console = Console(file=io.StringIO(), width=80)
    with tables.Progress(console, len(suite.results)) as progress:
        for row in suite.results.values():
            progress.begin("a case")
            progress.detail("3 samples")
            progress.finish(row)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("[1/3] flash_attention batch=1 heads=8 length=64 f32 numpy: ")
    assert lines[0].endswith("40 samples")
    assert lines[2].endswith("triton: skipped: triton is not installed")


def test_progress_in_a_terminal_shows_the_case() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with tables.Progress(console, 2) as progress:
        progress.begin("a [case]")
        progress.detail("3 samples")
        progress.finish(next(iter(made_up.suite().results.values())))
    assert isinstance(console.file, io.StringIO)
    assert "a [case]" in console.file.getvalue()
    assert "1/2" in console.file.getvalue()
