"""Loads kernels and jitted functions from Python texts and files."""

from __future__ import annotations

import hashlib
import linecache
from pathlib import Path
from typing import Any, TypeAlias

import tessera
from tessera.errors import CompileError
from tessera.lang.jit import Jitted
from tessera.tile.calls.function import Kernel

Compilable: TypeAlias = Kernel | Jitted
"""What is compiled: a function with `@kernel` or `@jit`."""


def load(source: Compilable | str | Path, name: str | None = None) -> Compilable:
    """The kernel or jitted function in a Python text or file: the one of that name, or the only one.

    The text may use `tessera`, `ts`, `kernel`, `jit` and `tile` without importing them. Errors show its lines.
    """
    if isinstance(source, Kernel | Jitted):
        return source
    if not isinstance(source, str | Path):
        raise CompileError(
            f"expected a kernel, a jitted function or Python text, got {type(source).__name__}",
            hint="decorate it with @kernel or @jit",
        )
    if isinstance(source, Path) or (source.endswith(".py") and "\n" not in source):
        try:
            file, written = str(source), Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise CompileError(
                f"cannot read {source}: {error.strerror}", hint="give a Python file or its text"
            ) from None
    else:
        file, written = f"<kernel {hashlib.sha256(source.encode()).hexdigest()[:12]}>", source
        linecache.cache[file] = (len(written), None, written.splitlines(keepends=True), file)
    names: dict[str, Any] = {
        "__name__": "__tessera_kernel__",
        "tessera": tessera,
        "ts": tessera,
        "kernel": tessera.kernel,
        "jit": tessera.jit,
        "tile": tessera.tile,
    }
    exec(compile(written, file, "exec"), names)
    found: dict[str, Kernel | Jitted] = {
        key: value for key, value in names.items() if isinstance(value, Kernel | Jitted)
    }
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        asked = "one kernel or jitted function" if name is None else f"a kernel or jitted function {name}"
        listed = ", ".join(found) or "none"
        raise CompileError(
            f"expected {asked} in {file}, got {listed}", hint="decorate it with @kernel or @jit, and name it"
        )
    return found[name]


def name_of(source: Compilable) -> str:
    """The name of its function."""
    return source.__name__ if isinstance(source, Kernel) else source.name
