"""Tests that result files from anywhere are read or refused by file and field, and that names in them are text."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import made_up
import pytest
from click.testing import CliRunner

from tessera.bench.reporting.exchange import Journal, read_json, to_dict, write_json
from tessera.bench.reporting.history import History
from tessera.bench.reporting.wording import moment
from tessera.bench.results.comparison import compare_runs
from tessera.bench.results.definitions import BenchError
from tessera.cli.bench import bench
from tessera.errors import ResourceError, TesseraError


def small() -> dict[str, Any]:
    return to_dict(made_up.suite((256,), ("f32",), ("tessera", "torch_sdpa"), trouble=False))


def written(folder: Path, field: str, raw: str) -> Path:
    """A result file with other text instead of a field of its first row, or of its own."""
    data = small()
    row = next(iter(data["results"].values()))
    holder = row if field in row else data
    holder[field] = "instead of this"
    path = folder / "run.json"
    path.write_text(json.dumps(data).replace('"instead of this"', raw), encoding="utf-8")
    return path


BAD = {
    "NaN": "at most 1.8e",
    "Infinity": "at most 1.8e",
    "-Infinity": "at most 1.8e",
    "1e999": "at most 1.8e",
    "-1e999": "at most 1.8e",
    "9" * 400: "at most 1.8e",
    "9" * 5000: "at most 1.8e",
    "true": "a number",
    '"1.0"': "a number",
    "[1.0]": "a number",
    "{}": "a number",
    '{"$float": "many"}': "with its content",
    '{"$float": []}': "with its content",
    '{"$tuple": [1]}': "a number",
}


@pytest.mark.parametrize("raw", BAD, ids=lambda raw: raw[:12])
@pytest.mark.parametrize("field", ["latency_ms", "flops", "suite_start_time"])
def test_what_is_no_number_is_refused_by_file_and_field(field: str, raw: str, tmp_path: Path) -> None:
    path = written(tmp_path, field, raw)
    with pytest.raises(BenchError) as caught:
        read_json(path)
    assert str(path) in caught.value.message
    assert field in caught.value.message
    assert BAD[raw] in caught.value.message
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize(
    ("field", "raw"),
    [
        ("samples_ms", "[1.0, 1e999]"),
        ("samples_ms", "[1.0, null]"),
        ("samples_ms", "7"),
        ("threads", "1.5"),
        ("threads", "9" * 5000),
        ("confidence_interval_95", "[1.0]"),
        ("confidence_interval_95", "[NaN, 1.0]"),
        ("stages_ms", '{"a": 1e999}'),
        ("environment", '{"cores": ' + "9" * 400 + "}"),
        ("environment", '{"load": NaN}'),
        ("problem_size", '{"n": -1e999}'),
        ("ceilings", '{"$map": [[[], 1]]}'),
        ("results", "[]"),
        ("conditions", "[" * 400 + "]" * 400),
        ("latency_ms", '1.0, "latency_ms": 2.0'),
        ("config", '{"seed": "x"}'),
    ],
)
def test_parts_of_results_that_are_none_are_refused(field: str, raw: str, tmp_path: Path) -> None:
    path = written(tmp_path, field, raw)
    with pytest.raises(BenchError) as caught:
        read_json(path)
    assert str(path) in caught.value.message
    # What is nested too deep or there twice is noticed before anybody knows of fields.
    assert field in caught.value.message or "too deep" in caught.value.message or "twice" in caught.value.message


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[" * 9000, b"null", b"{", b'{"schema": "tessera.bench/9"}', b"\0"]
)
@pytest.mark.parametrize("command", ["compare", "report"])
def test_files_that_hold_no_results_end_commands_without_a_traceback(
    command: str, content: bytes, tmp_path: Path
) -> None:
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_bytes(content)
    good.write_text(json.dumps(small()))
    arguments = [str(bad), str(good)] if command == "compare" else [str(bad), "--html", str(tmp_path / "page.html")]
    done = CliRunner().invoke(bench, [command, *arguments])
    assert isinstance(done.exception, TesseraError)  # `main` prints these, and ends with status 1
    assert str(bad) in done.exception.message
    assert not (tmp_path / "page.html").exists()


HUGE: dict[str, Callable[[Any], object]] = {
    "largest": lambda row: row.update(latency_ms=1e308, samples_ms=[1e308] * 9, flops=1e308, speedup=1e308),
    "integers": lambda row: row.update(latency_ms=10**300, samples_ms=[10**300] * 9, standard_deviation=10**300),
    "smallest": lambda row: row.update(latency_ms=5e-324, samples_ms=[5e-324] * 9, bytes_moved=5e-324),
    "negative": lambda row: row.update(latency_ms=-1.0, samples_ms=[-1.0, -2.0], speedup=-1.0, flops=-1.0),
    "nothing": lambda row: row.update(latency_ms=0.0, samples_ms=[], yardstick_ms=[], flops=0.0, speedup=0.0),
    "no numbers": lambda row: row.update(
        latency_ms={"$float": "nan"}, speedup={"$float": "inf"}, flops={"$float": "-inf"}
    ),
    "odd marks": lambda row: row.update(yardstick_ms=[10**300] * 40, samples_ms=[1.0] * 40),
    "no interval": lambda row: row.update(confidence_interval_95=[{"$float": "inf"}, {"$float": "-inf"}]),
}


@pytest.mark.parametrize("name", HUGE)
def test_numbers_of_any_size_are_shown_or_refused(name: str, tmp_path: Path) -> None:
    data = small()
    for row in data["results"].values():
        HUGE[name](row)
    data |= {"suite_start_time": 10**300, "suite_end_time": -1e300}
    (tmp_path / "run.json").write_text(json.dumps(data))
    suite = read_json(tmp_path / "run.json")
    for before, after in ((made_up.suite(), suite), (suite, made_up.suite())):
        with suppress(BenchError):
            compare_runs(before, after).to_dict()
    shown = ["--md", str(tmp_path / "md"), "--csv", str(tmp_path / "csv")]
    done = CliRunner().invoke(bench, ["report", str(tmp_path / "run.json"), *shown])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    with History(tmp_path / "history") as kept:
        kept.add(suite)
        assert kept.suite(1).results.keys() == suite.results.keys()


def test_a_moment_that_no_calendar_has_is_unknown() -> None:
    assert [moment(when) for when in (1e308, -1e308, math.nan, math.inf, 10**300, 0.0)] == ["unknown"] * 6
    assert moment(1e9).startswith("2001-09-09")


NAMES = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}",
    "$\\frac{$",
    "]]>",
    "a\0b\ud800",
    "&lt;",
]


@pytest.mark.quick(name=NAMES[:2])
@pytest.mark.parametrize("name", NAMES)
def test_names_in_pages_are_text(name: str, tmp_path: Path) -> None:
    from tessera.bench.reporting.page import page

    suite = made_up.suite((256,), ("f32",), ("tessera", "torch_sdpa"))
    for row in suite.results.values():
        row.benchmark_name, row.precision, row.implementation = name, name, f"{row.implementation}{name}"
        row.problem_size = {name: name}
    suite.environment |= {name: name, "processor": name, "python": name, "commit": name}
    suite.results = {f"{key}{name}": row for key, row in suite.results.items()}
    write_json(suite, tmp_path / "run.json")
    made = page(read_json(tmp_path / "run.json"))
    assert "<script>alert" not in made
    assert "<img" not in made
    assert name != "{{ 7 * 7 }}" or name in made


def test_columns_of_a_history_hold_what_they_should(tmp_path: Path) -> None:
    path = tmp_path / "history"
    for table, column, value in (
        ("runs", "time", "soon"),
        ("runs", "suite", b"\xff"),
        ("runs", "suite", "[" * 9000),
        ("runs", "commit_name", b"x"),
        ("figures", "value", "much"),
        ("figures", "low", b"x"),
    ):
        path.unlink(missing_ok=True)
        with History(path) as kept:
            kept.add(made_up.suite((256,), ("f32",)))
        with closing(sqlite3.connect(path)) as damaged, damaged:
            damaged.execute(f"UPDATE {table} SET {column} = ?", (value,))
        with pytest.raises((BenchError, ResourceError), match="history"):
            look_through(path)


@pytest.mark.parametrize("damage", [b"fig\xffres", b"fig\x00res", b"(((((((", b"figures"])
def test_a_schema_of_a_history_that_is_no_text_is_an_error_of_ours(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history"
    with History(path) as kept:
        kept.add(made_up.suite((256,), ("f32",)))
    path.write_bytes(path.read_bytes().replace(b"figures", damage))
    if damage == b"figures":
        look_through(path)
        return
    with pytest.raises(ResourceError, match="history"):
        look_through(path)


def look_through(path: Path) -> None:
    with History(path) as kept:
        assert kept.runs() != []
        kept.suite(1)
        for key in kept.keys():  # noqa: SIM118  (a history is no dictionary)
            kept.series(key)


def test_journals_are_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    suite = made_up.suite((256,), ("f32",), ("tessera",), trouble=False)
    for raw in ("1e999", "NaN", "9" * 5000, "[" * 900 + "]" * 900):
        path.unlink(missing_ok=True)
        with Journal(path) as journal:
            journal.begin(suite)
            for row in suite.results.values():
                journal.append(row)
        lines = path.read_text().splitlines()
        row = json.loads(lines[1])
        row["row"]["latency_ms"] = "instead of this"
        lines[1] = json.dumps(row).replace('"instead of this"', raw)
        path.write_text("\n".join([*lines, lines[0], ""]))
        with pytest.raises(BenchError, match=r"run\.journal"):
            Journal.recover(path)


@pytest.mark.parametrize("header", [7, 1.5, None, [], [None], "suite", {"novel": 1}, {"environment": 7}])
@pytest.mark.parametrize("kind", ["suite", "end"])
def test_the_head_of_a_journal_is_an_object(kind: str, header: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    path.write_text(json.dumps({"schema": "tessera.bench.journal/1", kind: header}) + "\n")
    with pytest.raises(BenchError, match=r"run\.journal, line 1"):
        Journal.recover(path)
