"""The Python code that kernels are made of: which modules have it, and whether a file still has what runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType

from tessera.runtime.cache.build import is_unedited

# Their functions never see tiles, except those of this package, which build programs themselves.
_NOT_KERNEL_CODE = sys.stdlib_module_names - {"__main__"} | {"tessera", "numpy", "ml_dtypes"}


def is_kernel_module(name: object) -> bool:
    """Whether functions of a module may work on tiles. Of classes written in C the module may be no text at all."""
    if name is None:
        return True
    return isinstance(name, str) and name.partition(".")[0] not in _NOT_KERNEL_CODE


def is_as_written(code: CodeType) -> bool:
    """Whether the file of a function has what runs: tracing reads it.

    That is so where it was not edited since this process began, and bytecode is younger. Python takes bytecode of the
    same second for the file's. Otherwise the file is compiled, to see whether it has the function.
    """
    file = code.co_filename
    if is_unedited([file]) and not _has_old_bytecode(file):
        return True
    try:
        return code in _codes_in(file, os.stat(file).st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return False


def _has_old_bytecode(file: str) -> bool:
    """Whether Python may have run bytecode that was there before the file was as it is."""
    try:
        return os.stat(cache_from_source(file)).st_mtime_ns <= os.stat(file).st_mtime_ns
    except (OSError, NotImplementedError):  # there is no bytecode, or Python was told to keep none: it read the file
        return False


@lru_cache(maxsize=64)
def _codes_in(file: str, _changed: int) -> frozenset[CodeType]:
    return frozenset(_within(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)))


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _within(inner)
