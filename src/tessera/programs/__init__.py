"""Programs: compiled graph functions that run on CPUs and GPUs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessera.programs.program import BoundProgram, Memory, Program
from tessera.programs.store import find, keep

if TYPE_CHECKING:
    from tessera.programs.compile import compile_graph

__all__ = ["BoundProgram", "Memory", "Program", "compile_graph", "find", "keep"]


def __getattr__(name: str) -> Any:
    # Compiling takes the IR, which a process that only runs what it finds on the disk does without.
    if name != "compile_graph":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("tessera.programs.compile").compile_graph
