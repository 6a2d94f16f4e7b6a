"""Which compiler this is: a digest of the package's own files and of the libraries that compile for it.

Compiled programs are kept under it, so that a changed compiler never finds what another one made. Nothing is imported
for it; files are told apart by their names, sizes and times.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec

from tessera.runtime.cache.store import key_of

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SUFFIXES = (".py", ".ll")
_LIBRARIES = ("llvmlite", "xdsl", "numpy", "ml_dtypes")
_LOADED_NS = time.time_ns()

_File = tuple[str, int, int]


@cache
def build() -> str | None:
    """The digest, or None where the package was changed after this process had begun to load it."""
    files = _files()
    # What is loaded may be older than what is on the disk, and it cannot be told which: then nothing may be kept.
    if any(changed > _LOADED_NS for _, _, changed in files):
        return None
    libraries = tuple(_library(name) for name in _LIBRARIES)
    return key_of(sys.implementation.cache_tag, sys.version, libraries, str(sorted(files)))


def _files(folder: str = _PACKAGE) -> list[_File]:
    found: list[_File] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                facts = entry.stat()
                found.append((entry.path, facts.st_size, facts.st_mtime_ns))
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                found += _files(entry.path)
    return found


def _library(name: str) -> _File | None:
    """One file of a library stands for all: installing another version writes it anew."""
    for origin in _origins(name):
        try:
            facts = os.stat(origin)
        except OSError:
            continue
        return origin, facts.st_size, facts.st_mtime_ns
    return None


def _origins(name: str) -> Iterator[str]:
    """Where a library may be. Python reads whole folders to find one: those of the path are asked for it first."""
    if (loaded := sys.modules.get(name)) is not None:
        yield str(loaded.__file__)
        return
    for folder in sys.path:
        yield os.path.join(folder, name, "__init__.py")
    if (found := find_spec(name)) is not None and found.origin is not None:
        yield found.origin


def is_unedited(files: Iterable[str]) -> bool:
    """Whether source files are as they were when this process began; what is no file cannot be edited."""
    for file in files:
        try:
            if os.stat(file).st_mtime_ns > _LOADED_NS:
                return False
        except OSError:
            continue
    return True
