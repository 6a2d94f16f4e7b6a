"""Progress of a validation: what it found so far, in a file that is whole at any moment, and from which it goes on."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast

from tessera.bench.reporting.exchange import decoded, encoded, write_atomically

T = TypeVar("T")
FORM = 2


class Progress:
    """The parts of a validation by name. Without a path, they are kept nowhere.

    `about` is what parts depend on: of a file with another one, nothing is taken. `resume` takes what there is.
    """

    def __init__(self, path: Path | None = None, about: Mapping[str, Any] | None = None, *, resume: bool = False):
        self.path = path
        self._about = json.loads(json.dumps(dict(about or {}), default=str))
        self._parts: dict[str, Any] = {}
        self._before = 0.0
        self.runs = 1
        """Of which this is the last, that have found these parts."""
        self._began = time.perf_counter()
        if resume and path is not None:
            self._take(path)

    def _take(self, path: Path) -> None:
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            if (found["form"], found["about"]) == (FORM, self._about):
                self._parts, self._before = found["parts"], float(found["seconds"])
                self.runs = int(found["runs"]) + 1
        except (
            OSError,
            ArithmeticError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):  # there is none, or it is none
            return

    @property
    def seconds(self) -> float:
        """That all runs of this validation have taken together."""
        return self._before + time.perf_counter() - self._began

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def part(self, name: str, kind: Any, make: Callable[[], T]) -> T:
        """A part as it was found before, or made now, and kept at once. `kind` is its type."""
        if name in self._parts:
            return cast("T", decoded(self._parts[name], kind, name))
        made = make()
        self._parts[name] = encoded(made, kind)
        self._save()
        return made

    def _save(self) -> None:
        if self.path is not None:
            data = {"form": FORM, "about": self._about, "seconds": self.seconds, "runs": self.runs}
            data["parts"] = self._parts
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps(data) + "\n")


def digest_of(package: Path) -> str:
    """Of all sources of a package: parts that other code has found are not taken."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def plain(value: Any) -> Any:
    """As JSON has it; None for numbers that it has no words for."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
