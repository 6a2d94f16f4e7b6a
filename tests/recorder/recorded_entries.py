"""Entries of the recorder: texts by aspect under a readable key, made independent of machines, checkouts and names.

The tree that is recorded moves and is renamed while the digests stay. So what is digested holds no name that belongs to
the compiler itself: symbols of kernels, names of fields and classes in encoded plans and source locations are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

DIGITS = 16
KNOWN_ASKS = ("size", "stride", "value")
"""Words of guards that are not up for renaming; the others are recorded by their indices and answers."""

_UNUSUAL = re.compile(r"[^\w×.,=-]+")
_PATH = re.compile(r"(?:/[^\s/:\"']+)+/([^\s/:\"']+)")
_LOCATION = re.compile(r"\b[\w.-]+\.(?:py|md|mlir|nv|cpu)(?::\d+){1,2}")


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:DIGITS]


def without_paths(text: str) -> str:
    """A text with every absolute path shortened to the name of the file."""
    return _PATH.sub(r"\1", text)


def without_locations(text: str) -> str:
    """A text without paths, nor the lines that it names: an import above them may take another number of lines."""
    return _LOCATION.sub("<place>", without_paths(text))


def code_text(code: str, name: str) -> str:
    """Assembly or PTX with the kernel's own symbol replaced: kernels of graphs are named for what they consist of."""
    return re.sub(rf"\b{re.escape(name)}(?=\b|_param)", "KERNEL", code)


def plain(value: Any) -> Any:
    """Encoded data as nested lists: fields by their order and not by their names, source locations left out."""
    if isinstance(value, Mapping):
        found = cast("Mapping[str, Any]", value)
        if found.get("is") == "span":
            return "<place>"
        # Host programs say of which class each part is. Classes are renamed; their fields tell them apart.
        return [plain(one) for name, one in found.items() if name not in ("is", "name")]
    if isinstance(value, list | tuple):
        several = cast("Sequence[Any]", value)
        return "<place>" if _is_span(several) else [plain(one) for one in several]
    if isinstance(value, str):
        return without_locations(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def _is_span(value: Sequence[Any]) -> bool:
    """Whether a list is a location in a source: a file, a line, a column, where it ends, and what called it."""
    called = len(value) == 6 and isinstance(value[5], list)
    return (len(value) == 5 or called) and isinstance(value[0], str) and all(type(one) is int for one in value[1:3])


def plain_text(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def guards_text(guards: Sequence[Any]) -> str:
    """The guards of a program: which argument, which axis, and the answer that it is right for."""
    lines = [
        f"argument {index} {what if what in KNOWN_ASKS else '*'} {axis} = {answer}"
        for (index, what, axis), answer in guards
    ]
    return "\n".join(sorted(lines))


@dataclass
class Recording:
    """Entries as they are made: for each key the texts of its aspects. With `keep`, texts are written there too."""

    keep: Path | None = None
    entries: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def add(self, key: str, **aspects: str) -> None:
        if key in self.entries:
            raise KeyError(f"{key!r} is recorded twice")
        self.entries[key] = {aspect: digest(text) for aspect, text in aspects.items()}
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            name = _UNUSUAL.sub("_", key)
            for aspect, text in aspects.items():
                (self.keep / f"{name}.{aspect}").write_text(text, encoding="utf-8")
