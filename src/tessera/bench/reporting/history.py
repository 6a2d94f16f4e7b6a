"""The history of runs in one SQLite file, which several processes may write to at once."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

from tessera.bench.reporting.exchange import from_text, to_dict
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkResult, BenchmarkSuiteResult
from tessera.errors import ResourceError

VERSION = 1
_PATIENCE_SECONDS = 30.0
"""How long a writer waits for another one to finish."""

_TABLES = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    commit_name TEXT,
    measured INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    suite TEXT NOT NULL
);
CREATE TABLE figures (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    low REAL,
    high REAL,
    PRIMARY KEY (run, key, metric)
) WITHOUT ROWID;
CREATE INDEX figures_by_key ON figures (key, metric, run);
"""

_T = TypeVar("_T")


@dataclass(frozen=True)
class RecordedRun:
    """A run of the history; `time` is when it began."""

    id: int
    time: float
    commit: str | None
    measured: int
    failed: int


@dataclass(frozen=True)
class Point:
    """A figure of one run, with its interval where it has one."""

    run: int
    time: float
    commit: str | None
    value: float
    low: float | None = None
    high: float | None = None


class History:
    """Runs in the order they were added. The file is made when the first one is."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._connection: sqlite3.Connection | None = None

    def add(self, suite: BenchmarkSuiteResult, commit: str | None = None) -> int:
        """Adds a run, all of it or nothing, and gives its number. Without a commit, the environment's is taken."""
        named = commit if commit is not None else suite.environment.get("commit")
        figures = [figure for key, row in suite.get_successful_results().items() for figure in _figures(key, row)]
        text = json.dumps(to_dict(suite), allow_nan=False)

        def insert(connection: sqlite3.Connection) -> int:
            with _Transaction(connection):
                cursor = connection.execute(
                    "INSERT INTO runs (time, commit_name, measured, failed, suite) VALUES (?, ?, ?, ?, ?)",
                    (
                        float(suite.suite_start_time),
                        None if named is None else str(named),
                        len(suite.get_successful_results()),
                        len(suite.get_failed_results()),
                        text,
                    ),
                )
                run = cast(int, cursor.lastrowid)
                connection.executemany("INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?)", ((run, *f) for f in figures))
            return run

        return self._do(insert)

    def runs(self) -> list[RecordedRun]:
        kinds = (int, (int, float), (str, type(None)), int, int)
        rows = self._rows("SELECT id, time, commit_name, measured, failed FROM runs ORDER BY id", kinds)
        return [RecordedRun(*row) for row in rows]

    def suite(self, run: int) -> BenchmarkSuiteResult:
        """Everything that was measured in a run."""
        found = self._rows("SELECT suite FROM runs WHERE id = ?", (str,), run)
        if not found:
            known = ", ".join(str(known.id) for known in self.runs()) or "none"
            raise BenchError(f"expected a run of {self.path}, got {run}", hint=f"its runs are: {known}")
        return from_text(found[0][0], f"{self.path}, run {run}")

    def keys(self) -> list[str]:
        """The rows that some run has figures of."""
        return [key for (key,) in self._rows("SELECT key FROM figures GROUP BY key ORDER BY min(run), key", (str,))]

    def series(self, key: str, metric: str = "latency_ms") -> list[Point]:
        """A figure of a row over all runs that have it."""
        query = """SELECT run, time, commit_name, value, low, high FROM figures JOIN runs ON runs.id = run
                   WHERE key = ? AND metric = ? ORDER BY run"""
        number, none = (int, float), type(None)
        kinds = (int, number, (str, none), number, (*number, none), (*number, none))
        return [Point(*row) for row in self._rows(query, kinds, key, metric)]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, query: str, kinds: Sequence[Any], *values: str | int) -> list[Sequence[Any]]:
        """What a query finds, in columns of these kinds; nothing where there is no file yet."""
        if self._connection is None and not os.path.exists(self.path):
            return []
        return self._do(lambda connection: [self._checked(row, kinds) for row in connection.execute(query, values)])

    def _checked(self, row: Sequence[Any], kinds: Sequence[Any]) -> Sequence[Any]:
        """Whatever a column is said to hold, SQLite keeps what it is given."""
        for value, kind in zip(row, kinds, strict=True):
            if not isinstance(value, kind):
                raise BenchError(
                    f"{self.path}: expected figures of runs, got {type(value).__name__} where there is none",
                    hint="the file is damaged, or something else wrote to it; name another file",
                )
        return row

    def _do(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            if self._connection is None:
                self._connection = self._opened()
            return action(self._connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite quotes damaged text in its error
            self.close()
            raise _explained(self.path, error) from error

    def _opened(self) -> sqlite3.Connection:
        # No isolation level: transactions begin where they are written. Creating the file is left to SQLite.
        connection = sqlite3.connect(self.path, timeout=_PATIENCE_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")  # views and triggers of a foreign file call nothing
            if _version(connection) < VERSION:
                _create(connection)
            if (found := _version(connection)) != VERSION:
                raise BenchError(
                    f"{self.path}: expected a history of version {VERSION}, got version {found}",
                    hint="a newer Tessera wrote it: update this one, or name another file",
                )
        except BaseException:
            connection.close()
            raise
        return connection


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _create(connection: sqlite3.Connection) -> None:
    """Makes the tables, unless another process was faster."""
    with _Transaction(connection):
        if _version(connection) < VERSION:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise sqlite3.DatabaseError("file is a database of something else")
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")


class _Transaction:
    """Takes the lock at the start: a reader that becomes a writer half-way could not wait for others."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        else:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")


def _figures(key: str, row: BenchmarkResult) -> list[tuple[str, str, float, float | None, float | None]]:
    """Every figure of a row that is one finite number."""
    intervals = {"latency_ms": row.confidence_interval_95, "speedup": row.speedup_interval}
    found: list[tuple[str, str, float, float | None, float | None]] = []
    for name in _METRICS:
        value: Any = getattr(row, name)
        # SQLite has no NaN: it would be a NULL.
        if value is not None and not math.isnan(value):
            low, high = intervals.get(name) or (None, None)
            found.append((key, name, float(value), _as_float(low), _as_float(high)))
    return found


def _as_float(value: float | None) -> float | None:
    """Integers may be larger than SQLite's."""
    return None if value is None else float(value)


_METRICS = (
    *("latency_ms", "throughput_ops_per_sec", "memory_bandwidth_gbps", "compute_utilization_percent", "energy_joules"),
    *("peak_memory_mb", "occupancy_percent", "compilation_time_ms", "ir_optimization_time_ms", "autotuning_time_ms"),
    *("host_overhead_us", "launch_us", "kernel_ms", "numerical_accuracy", "speedup", "scaling_efficiency_percent"),
)


def _explained(path: str, error: sqlite3.Error | UnicodeDecodeError) -> ResourceError:
    text = str(error)
    if "locked" in text or "busy" in text:
        hint = f"another process has been writing to it for {_PATIENCE_SECONDS:.0f} s; try again"
    elif "full" in text:
        hint = "the disk is full: free some space; the runs so far are kept"
    elif "unable to open" in text:
        hint = "make the folder first, or check the name"
    elif "readonly" in text:
        hint = "you may not write there: name a file elsewhere or change the permissions"
    else:
        hint = (
            f"it was left as it is; move it away (`mv {path} {path}.damaged-{time.strftime('%Y%m%d')}`) to start anew"
        )
    return ResourceError(f"cannot use the history {path}: {text}", hint=hint)
