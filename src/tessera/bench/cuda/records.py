"""Result files of GPU benchmarks: figures with the hash of the PTX they are of; and which of them are out of date."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tessera.bench.cuda.declarations import Mean
from tessera.bench.results.definitions import BenchError
from tessera.errors import TesseraError

VERSION = 1
_HASH = re.compile(r"[0-9a-f]{64}")


def hash_of(ptx: str) -> str:
    """The digest of a kernel's PTX, as results keep it."""
    return hashlib.sha256(ptx.encode()).hexdigest()


def record(
    rows: Sequence[Mapping[str, Any]], kernels: Mapping[str, str], environment: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """A result file's content: `kernels` are the PTX texts that ran, by name."""
    hashes = {name: hash_of(text) for name, text in sorted(kernels.items())}
    return {"version": VERSION, "environment": dict(environment), "kernels": hashes, **more, "rows": list(rows)}


def means(rows: Sequence[Mapping[str, Any]], declared: Iterable[Mean]) -> list[dict[str, Any]]:
    """The geometric means of ratios, of those whose rows were all measured; a row without a ratio leaves none."""
    measured = {row["name"]: row for row in rows}
    found: list[dict[str, Any]] = []
    for one in declared:
        if not all(name in measured for name in one.rows):
            continue
        ratios = [measured[name].get("ratios", {}).get(one.peer, {}).get("ratio") for name in one.rows]
        whole = None if None in ratios else statistics.geometric_mean(ratios)
        held = whole is not None and whole >= one.bar
        found.append({"name": one.name, "peer": one.peer, "bar": one.bar, "ratio": whole, "held": held})
    return found


def read(path: Path) -> dict[str, Any]:
    """A result file of this module's."""
    read: Any = json.loads(path.read_text(encoding="utf-8"))
    found = cast(dict[str, Any], read) if isinstance(read, dict) else {}
    if found.get("version") != VERSION:
        raise BenchError(f"{path}: expected results of version {VERSION}", hint="measure anew under another name")
    return found


def merged(
    earlier: Mapping[str, Any], record: Mapping[str, Any], declared: Mapping[str, Any], of: Iterable[Mean]
) -> dict[str, Any]:
    """A record with the rows of an earlier one that it does not have, as long as they are declared.

    Rows of earlier runs carry the date and the commit of those; what else is said of the environment is of the last.
    A row is left out if one of its kernels has become another since, as a row of this record shows that shares it.
    """
    measured = {row["name"] for row in record["rows"]}
    changed = {name for name, digest in record["kernels"].items() if earlier["kernels"].get(name, digest) != digest}
    when = {name: earlier["environment"].get(name) for name in ("date", "commit")}
    kept: list[Mapping[str, Any]] = [
        {"measured": when, **row}
        for row in earlier["rows"]
        if row["name"] in declared and row["name"] not in measured and changed.isdisjoint(row.get("kernels", ()))
    ]
    order = {name: number for number, name in enumerate(declared)}
    rows = sorted([*kept, *record["rows"]], key=lambda row: order.get(row["name"], len(order)))
    used = {name for row in rows for name in row.get("kernels", ())}
    kernels = {**earlier["kernels"], **record["kernels"]}
    return {
        **record,
        "kernels": {name: kernels[name] for name in sorted(kernels) if name in used or name in record["kernels"]},
        "means": means(rows, of),
        "rows": rows,
    }


def write(path: Path, content: Mapping[str, Any]) -> None:
    """All or nothing: an older file stays as it is until the new one is complete."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    beside.replace(path)


def kernels_of(path: Path) -> dict[str, str] | None:
    """The hashes that a result file carries; None where it has none, as results of CPUs do. Refuses other files."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise BenchError(f"{path.name} cannot be read: {error}", hint="measure again, or take the file out") from None
    if not isinstance(content, dict):
        raise BenchError(f"{path.name} is no result file: expected an object, got {type(content).__name__}")
    found = cast(dict[str, Any], content)
    if "kernels" not in found:
        return None
    kernels: Any = found["kernels"]
    if not isinstance(kernels, dict) or not all(
        isinstance(value, str) and _HASH.fullmatch(value) for value in cast(dict[str, Any], kernels).values()
    ):
        raise BenchError(f"{path.name}: `kernels` must hold the SHA-256 of each PTX text by its name")
    if not isinstance(found.get("environment"), dict):
        raise BenchError(f"{path.name} does not say what it was measured on: `environment` is missing")
    return cast(dict[str, str], kernels)


@dataclass(frozen=True)
class Stale:
    """A figure that is older than the code: a file, the kernel that changed, and how."""

    file: str
    kernel: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.kernel}: {self.reason}"


def stale(folder: Path, kernels: Mapping[str, Callable[[], str]]) -> tuple[list[Stale], int]:
    """Results in a folder whose kernels compile to something else by now, and how many were compared.

    Every file must be readable, whatever it holds. A kernel is compiled once, and only if a result names it.
    """
    now: dict[str, str | None] = {}
    why: dict[str, str] = {}
    found: list[Stale] = []
    compared = 0
    for path in sorted(folder.glob("*.json")):
        for name, measured in (kernels_of(path) or {}).items():
            compared += 1
            if name not in now:
                now[name], why[name] = _hash_now(name, kernels)
            if now[name] != measured:
                found.append(
                    Stale(path.name, name, why[name] or f"measured {measured[:12]}, now {str(now[name])[:12]}")
                )
    return found, compared


def _hash_now(name: str, kernels: Mapping[str, Callable[[], str]]) -> tuple[str | None, str]:
    """The hash of a kernel as it is compiled now; or why there is none."""
    if name not in kernels:
        return None, "it is not declared any more"
    try:
        return hash_of(kernels[name]()), ""
    except Exception as error:
        said = error.message if isinstance(error, TesseraError) else f"{type(error).__name__}: {error}"
        return None, f"it no longer compiles: {said}"
