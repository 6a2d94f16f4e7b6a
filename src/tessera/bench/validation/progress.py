"""Progress of a validation: what it found so far, in a file that is whole at any moment, and from which it goes on."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
FORM = 1


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
            return cast("T", restored(kind, self._parts[name]))
        made = make()
        self._parts[name] = plain(made)
        self._save()
        return made

    def _save(self) -> None:
        if self.path is not None:
            data = {"form": FORM, "about": self._about, "seconds": self.seconds, "runs": self.runs}
            data["parts"] = self._parts
            write_whole(self.path, json.dumps(data) + "\n")


def digest_of(package: Path) -> str:
    """Of all sources of a package: parts that other code has found are not taken."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write_whole(path: Path, text: str) -> None:
    """Writes a file atomically: readers find all of the text, or the file as it was before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


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


def restored(kind: Any, value: Any) -> Any:
    """The inverse of `plain`: a value of this type."""
    origin, inside = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{one.name: restored(hints[one.name], value[one.name]) for one in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if origin in (Union, UnionType):
        return None if value is None else restored(next(one for one in inside if one is not type(None)), value)
    if origin is dict:
        return {restored(inside[0], name): restored(inside[1], one) for name, one in value.items()}
    if origin is list:
        return [restored(inside[0], one) for one in value]
    if origin is tuple:
        kinds = [inside[0]] * len(value) if inside[1:] == (Ellipsis,) else inside
        return tuple(restored(one, part) for one, part in zip(kinds, value, strict=True))
    if kind is float:
        return math.nan if value is None else float(value)
    return int(value) if kind is int else value
