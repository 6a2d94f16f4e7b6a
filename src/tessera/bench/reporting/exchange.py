"""Results as files: JSON that comes back exactly, CSV for spreadsheets, and a journal that survives a crash.

In JSON a number that is not finite is `{"$float": "nan"}`. Where anything may stand (sizes, environment, conditions),
a tuple is `{"$tuple": […]}`, and a mapping with other keys than plain strings is `{"$map": [[key, value], …]}`.
What JSON has no form for is kept as its text. The sequences of a configuration come back as tuples.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import enum
import errno
import functools
import io
import json
import math
import os
import stat
import sys
import time
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np

from tessera.bench.reporting.wording import reason, status
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, BenchmarkSuiteResult, Row, size_text
from tessera.errors import ResourceError

SCHEMA = "tessera.bench/1"
JOURNAL_SCHEMA = "tessera.bench.journal/1"

_KINDS: dict[str, type[Row]] = {"result": BenchmarkResult, "error": BenchmarkError}
_SUITE_FIELDS = ("suite_start_time", "suite_end_time", "environment", "ceilings", "interrupted")


# JSON


def write_json(suite: BenchmarkSuiteResult, path: str | os.PathLike[str]) -> None:
    write_atomically(path, _text(to_dict(suite), indent=1) + "\n")


def json_text(data: Mapping[str, Any]) -> str:
    """Any figures as JSON, infinities and NaN included."""
    return _text(_tagged(data), indent=1) + "\n"


def read_json(path: str | os.PathLike[str]) -> BenchmarkSuiteResult:
    return from_text(_read(path), os.fspath(path))


def to_dict(suite: BenchmarkSuiteResult) -> dict[str, Any]:
    """The suite as JSON's own kinds of values, as `schema.json` describes them."""
    return {"schema": SCHEMA, **_header(suite), "results": {key: _row(row) for key, row in suite.results.items()}}


def from_text(text: str, where: str) -> BenchmarkSuiteResult:
    """The suite that is written in a text; `where` names the file in errors."""
    data = _parsed(text, where)
    if not isinstance(data, dict):
        raise BenchError(
            f"{where}: expected results of a benchmark run, got no JSON object",
            hint="results are written by `tessera bench run … --json FILE`",
        )
    try:
        return from_dict(cast(dict[str, Any], data))
    except BenchError as error:
        raise BenchError(f"{where}: {error.message}", hint=error.hint) from None


def from_dict(data: Mapping[str, Any]) -> BenchmarkSuiteResult:
    """Fields that are missing take their defaults; what this version does not know is refused, not dropped."""
    try:
        return _from_dict(data)
    except RecursionError:
        raise BenchError("it is nested too deep to be results of a benchmark run", hint=_DAMAGED) from None


def _from_dict(data: Mapping[str, Any]) -> BenchmarkSuiteResult:
    schema = data.get("schema")
    if schema != SCHEMA:
        raise BenchError(
            f"expected results in the form {SCHEMA!r}, got {_cut(repr(schema))}",
            hint="read it with the version of Tessera that wrote it, or measure again",
        )
    rows = data.get("results", {})
    if not isinstance(rows, dict):
        raise _misfit("results", "an object", rows)
    suite = _suite({name: value for name, value in data.items() if name not in ("schema", "results")})
    for key, row in cast(dict[str, Any], rows).items():
        suite.results[key] = _row_from(row, key)
    return suite


def _header(suite: BenchmarkSuiteResult) -> dict[str, Any]:
    hints = _hints(BenchmarkSuiteResult)
    return {name: encoded(getattr(suite, name), hints[name]) for name in _SUITE_FIELDS}


def _suite(header: Any, where: str = "the suite") -> BenchmarkSuiteResult:
    if not isinstance(header, dict):
        raise _misfit(where, "an object", header)
    known = {name: hint for name, hint in _hints(BenchmarkSuiteResult).items() if name in _SUITE_FIELDS}
    # A start that was not written down is unknown; the default of a new suite would be now.
    fields: dict[str, Any] = {"suite_start_time": 0.0, **_fields(cast(dict[str, Any], header), known, where)}
    return BenchmarkSuiteResult(**fields)


def _row(row: Row) -> dict[str, Any]:
    kind = "result" if isinstance(row, BenchmarkResult) else "error"
    return {"kind": kind, **encoded(row, type(row))}


def _row_from(data: Any, where: str) -> Row:
    kind = cast(dict[str, Any], data).get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _misfit(where, "a row of the kind `result` or `error`", cast(object, data))
    fields = {name: value for name, value in cast(dict[str, Any], data).items() if name != "kind"}
    return decoded(fields, _KINDS[kind], where)


# The annotations of the data model say how each value is written and read.


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return {field.name: typing.get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}


def encoded(value: Any, hint: Any) -> Any:
    """A value of an annotated kind, such as a dataclass, as JSON's own kinds of values."""
    if value is None:
        return None
    if isinstance(value, enum.Enum):
        return value.value
    hint = _present(hint)
    if dataclasses.is_dataclass(hint):
        return {name: encoded(getattr(value, name), inner) for name, inner in _hints(cast(Any, hint)).items()}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return [encoded(item, hint) for item, hint in zip(value, _item_kinds(inner, value), strict=True)]
    if origin in (list, Sequence):
        return [encoded(item, inner[0]) for item in value]
    if origin is dict and all(_is_plain(key) for key in value):
        return {key: encoded(item, inner[1]) for key, item in value.items()}
    return _tagged(value)


def _item_kinds(inner: tuple[Any, ...], items: Any) -> tuple[Any, ...]:
    """The kinds of a tuple's items: of one of any length, the first as often as there are items."""
    if inner[1:] != (Ellipsis,) or not isinstance(items, list | tuple):
        return inner
    return inner[:1] * len(cast(list[Any], items))


def _tagged(value: Any) -> Any:
    """A value of any kind."""
    if isinstance(value, np.generic | np.ndarray):
        value = cast(Any, value).tolist()
    if value is None or isinstance(value, bool | int | str):
        return value if type(value) in (bool, int, str, type(None)) else _plain(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, tuple):
        return {"$tuple": [_tagged(item) for item in cast(tuple[Any, ...], value)]}
    if isinstance(value, list):
        return [_tagged(item) for item in cast(list[Any], value)]
    if isinstance(value, Mapping):
        mapping = cast(Mapping[Any, Any], value)
        if all(_is_plain(key) for key in mapping):
            return {key: _tagged(item) for key, item in mapping.items()}
        return {"$map": [[_tagged(key), _tagged(item)] for key, item in mapping.items()]}
    return str(value)


def _plain(value: Any) -> bool | int | str:
    """Of a subclass, such as an enum that is also a string, what it is underneath."""
    return str.__str__(value) if isinstance(value, str) else int(value)


def _is_plain(key: Any) -> bool:
    return type(key) is str and not key.startswith("$")


def decoded(value: Any, hint: Any, where: str) -> Any:
    """The inverse of `encoded`; `where` names the value in errors."""
    if hint is Any:
        return _untagged(value, where)
    if value is None and hint is not _present(hint):
        return None
    hint = _present(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        kinds = _item_kinds(inner, value)
        if not isinstance(value, list) or len(cast(list[Any], value)) != len(kinds):
            raise _misfit(where, f"a list of {len(kinds)}", value)
        return tuple(decoded(item, hint, where) for item, hint in zip(cast(list[Any], value), kinds, strict=True))
    if origin in (list, Sequence):
        if not isinstance(value, list):
            raise _misfit(where, "a list", value)
        items = [decoded(item, inner[0], where) for item in cast(list[Any], value)]
        return items if origin is list else tuple(items)
    if origin in (dict, Mapping):
        return _mapping(value, inner[1], where)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise _misfit(where, "an object", value)
        try:
            return cast(Callable[..., Any], hint)(
                **_fields(cast(dict[str, Any], value), _hints(cast(Any, hint)), where)
            )
        except TypeError as error:
            raise BenchError(f"{where}: {error}", hint=_DAMAGED) from None
    return _scalar(value, hint, where)


def _mapping(value: Any, inner: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _misfit(where, "an object", value)
    mapping = cast(dict[str, Any], value)
    if "$map" in mapping:
        return cast(dict[Any, Any], _untagged(mapping, where))
    return {key: decoded(item, inner, f"{where}.{key}") for key, item in mapping.items()}


_WORDS: dict[Any, str] = {float: "a number", int: "an integer", bool: "true or false"}


def _scalar(value: Any, hint: Any, where: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        with contextlib.suppress(ValueError):
            return hint(value)
        raise _misfit(where, f"one of {', '.join(str(member.value) for member in hint)}", value)
    value = _untagged(value, where)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float:
        fits = number
    elif hint is int:
        fits = number and isinstance(value, int)
    else:
        fits = isinstance(value, hint)
    if not fits:
        raise _misfit(where, _WORDS.get(hint, "a text"), value)
    return value


def _fields(data: Mapping[str, Any], hints: Mapping[str, Any], where: str) -> dict[str, Any]:
    if unknown := sorted(set(data) - set(hints)):
        raise BenchError(
            f"expected fields of {SCHEMA!r} in {where}, got {', '.join(map(_cut, unknown))} as well",
            hint="a newer Tessera wrote it: update this one",
        )
    return {name: decoded(value, hints[name], f"{where}: {name}") for name, value in data.items()}


def _untagged(value: Any, where: str) -> Any:
    if isinstance(value, list):
        return [_untagged(item, where) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        # Reports convert numbers to floats. JSON has none that are not finite, though Python reads some.
        if isinstance(value, int | float) and not abs(value) <= _LARGEST:
            raise _misfit(where, f"a number of at most {_LARGEST:.3g}, or `$float`", value)
        return value
    mapping = cast(dict[str, Any], value)
    if not any(key.startswith("$") for key in mapping):
        return {key: _untagged(item, where) for key, item in mapping.items()}
    try:
        ((tag, content),) = mapping.items()
        if tag == "$float":
            return float(content)
        if tag == "$tuple":
            return tuple(_untagged(item, where) for item in content)
        if tag == "$map":
            return {_untagged(key, where): _untagged(item, where) for key, item in content}
    except (TypeError, ValueError):
        pass
    raise _misfit(where, "`$float`, `$tuple` or `$map` with its content", mapping)


def _present(hint: Any) -> Any:
    """`float` of `float | None`."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return next(arm for arm in typing.get_args(hint) if arm is not type(None))
    return hint


_DAMAGED = "the file is damaged or was edited; measure again"
_LARGEST = sys.float_info.max
_MOST_DIGITS = 1000
_LONGEST_LOCATION = 300


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def _misfit(where: str, expected: str, value: Any) -> BenchError:
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # integers may be too long to be written, and lists nested too deep
        shown = f"a {type(value).__name__} that is too long to be shown"
    where = where if len(where) <= _LONGEST_LOCATION else f"{where[:_LONGEST_LOCATION]}…"
    return BenchError(
        f"{where}: expected {expected}, got {shown if len(shown) < 60 else shown[:57] + '…'}", hint=_DAMAGED
    )


def _text(data: Any, indent: int | None = None) -> str:
    # Plain ASCII: names may hold halves of surrogate pairs, which no encoding of the web can write.
    return json.dumps(data, indent=indent, allow_nan=False)


def _parsed(text: str, where: str) -> Any:
    """None for what is not JSON."""
    try:
        return json.loads(text, parse_int=_integer, object_pairs_hook=_object)
    except _TwiceError as error:
        raise BenchError(f"{where}: {_cut(str(error))!r} is there twice in one object", hint=_DAMAGED) from None
    except RecursionError:
        raise BenchError(f"{where}: it is nested too deep to be results", hint=_DAMAGED) from None
    except ValueError:
        return None


def _integer(digits: str) -> int | float:
    """An integer; infinity if it has more digits than Python reads, which the caller refuses as too large."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


class _TwiceError(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return made


# CSV


def write_csv(suite: BenchmarkSuiteResult, path: str | os.PathLike[str]) -> None:
    """One line per row in the form of RFC 4180: single values only, empty where there is none."""
    lines = [_csv_line(row) for row in suite.results.values()]
    sizes = list(dict.fromkeys(name for row in suite.results.values() for name in row.problem_size))
    columns = [*_CSV_FIRST, *(f"size.{name}" for name in sizes), *_csv_figures(), *_CSV_LAST]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(path, text.getvalue())


_CSV_FIRST = ("benchmark_name", "size", "precision", "implementation", "threads", "status")
_CSV_LAST = (
    *("latency_low_ms", "latency_high_ms", "speedup_low", "speedup_high"),
    *("error", "error_bound", "max_abs_error", "warnings", "reason"),
)


@functools.cache
def _csv_figures() -> tuple[str, ...]:
    """The fields of a result that hold one value, in their order."""
    single = (bool, int, float, str)
    return tuple(
        name for name, hint in _hints(BenchmarkResult).items() if _present(hint) in single and name not in _CSV_FIRST
    )


def _csv_line(row: Row) -> dict[str, object]:
    line: dict[str, object] = {
        "benchmark_name": row.benchmark_name,
        "size": size_text(row.problem_size),
        "precision": row.precision,
        "implementation": row.implementation,
        "threads": row.threads,
        "status": status(row),
        "reason": reason(row),
        **{f"size.{name}": value for name, value in row.problem_size.items()},
    }
    if isinstance(row, BenchmarkResult):
        line |= {name: getattr(row, name) for name in _csv_figures()}
        line["latency_low_ms"], line["latency_high_ms"] = row.confidence_interval_95 or (None, None)
        line["speedup_low"], line["speedup_high"] = row.speedup_interval or (None, None)
        compared = row.reference_comparison or {}
        line |= {
            "error": compared.get("error"),
            "error_bound": compared.get("bound"),
            "max_abs_error": compared.get("max_abs_error"),
            "warnings": "; ".join(row.warnings),
        }
    return line


# Files


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """The whole text or nothing: until all of it is on the disk, the old file stays.

    Pipes and devices, such as /dev/stdout, are written to as they are.
    """
    data = text.encode("utf-8", "backslashreplace")
    target = os.path.realpath(path)
    with _Explained("write", path):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as stream:
                stream.write(data)
            return
        folder = os.path.dirname(target)
        partial = os.path.join(folder, f".tessera-{os.getpid()}-{os.urandom(8).hex()}.partial")
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            try:
                if os.path.exists(target):
                    os.fchmod(file, stat.S_IMODE(os.stat(target).st_mode))
                _write_all(file, data)
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(partial, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
        _sync_folder(folder)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_folder(folder: str) -> None:
    """Makes the new name last; some file systems cannot, and the file is whole all the same."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(path: str | os.PathLike[str]) -> str:
    with _Explained("read", path), open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


_HINTS = {
    errno.ENOSPC: "the disk is full: free some space or name a file on another one",
    errno.EDQUOT: "your quota is used up: free some space or name a file elsewhere",
    errno.EFBIG: "the file would be larger than the limit of this shell (`ulimit -f`)",
    errno.ENOENT: "make the folder first, or check the name",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "name a file in it",
    errno.EROFS: "the file system is read-only: name a file elsewhere",
    errno.EACCES: "you may not: name a file elsewhere or change the permissions",
    errno.EPERM: "you may not: name a file elsewhere or change the permissions",
}


class _Explained:
    """Converts an error of the operating system to one that says which file it was about."""

    # A class: the frames of `contextlib` would be taken for the user's.
    def __init__(self, doing: str, path: str | os.PathLike[str]) -> None:
        self._doing = doing
        self._path = os.fspath(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise ResourceError(
                f"cannot {self._doing} {self._path}: {(error.strerror or str(error)).lower()}",
                hint=_HINTS.get(error.errno or 0, "name a file elsewhere"),
            ) from error


class Journal:
    """The rows of a run, one line each, on the disk as soon as they are known.

    A journal that exists is continued; what a crash left of its last line is cut off first.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with _Explained("write", self.path):
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            self._size = _whole_lines(self.path)
            os.ftruncate(self._file, self._size)

    def begin(self, suite: BenchmarkSuiteResult) -> None:
        """Notes what the run is made on. Noted again, the newer one counts."""
        self._append({"schema": JOURNAL_SCHEMA, "suite": _header(suite)})

    def append(self, row: Row) -> None:
        self._append({"schema": JOURNAL_SCHEMA, "time": time.time(), "row": _row(row)})

    def finish(self, suite: BenchmarkSuiteResult) -> None:
        """Notes that the run came to its end, interrupted or not."""
        self._append({"schema": JOURNAL_SCHEMA, "end": _header(suite)})

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, entry: dict[str, Any]) -> None:
        data = (_text(entry) + "\n").encode()
        with _Explained("write", self.path):
            try:
                _write_all(self._file, data)
            except BaseException:
                # Half a line in front of the next one would spoil both.
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._size)
                raise
        self._size += len(data)

    @staticmethod
    def recover(path: str | os.PathLike[str]) -> BenchmarkSuiteResult:
        """The suite as far as it got; interrupted, unless its end is in the journal. A torn last line is left out."""
        try:
            return Journal._recovered(path)
        except RecursionError:
            raise BenchError(f"{os.fspath(path)}: it is nested too deep to be a journal", hint=_DAMAGED) from None

    @staticmethod
    def _recovered(path: str | os.PathLike[str]) -> BenchmarkSuiteResult:
        suite = BenchmarkSuiteResult(suite_start_time=0.0)
        rows: list[Row] = []
        last, ended = 0.0, False
        lines = _read(path).split("\n")
        for number, line in enumerate(lines, 1):
            where = f"{os.fspath(path)}, line {number}"
            entry = _parsed(line, where)
            if not isinstance(entry, dict):
                if any(lines[number:]) or not _is_torn(line):
                    raise BenchError(f"{where}: expected an entry of a journal, got {line[:40]!r}", hint=_DAMAGED)
                break
            fields = cast(dict[str, Any], entry)
            if fields.get("schema") != JOURNAL_SCHEMA:
                found = _cut(repr(fields.get("schema")))
                raise BenchError(
                    f"{where}: expected an entry in the form {JOURNAL_SCHEMA!r}, got {found}",
                    hint="journals are written while `tessera bench run` runs; results are read by `read_json`",
                )
            if "row" in fields:
                rows.append(_row_from(fields["row"], where))
                last, ended = _scalar(fields.get("time", last), float, where), False
            else:
                ended = "end" in fields
                suite = _suite(fields["end"] if ended else fields.get("suite", {}), where)
        suite.extend(rows)
        if not ended:
            suite.interrupted = True
            suite.suite_end_time = last
        return suite


def _is_torn(line: str) -> bool:
    """Whether it is the beginning of an entry, or the zeros that a file system left instead."""
    start = f'{{"schema": "{JOURNAL_SCHEMA}"'
    return line.startswith(start) or start.startswith(line.rstrip("\0"))


def _whole_lines(path: str) -> int:
    """How many bytes of the file are whole lines."""
    with open(path, "rb") as file:
        return file.read().rfind(b"\n") + 1
