"""`CompileOptions`: what a kernel is compiled for and with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class CompileOptions:
    """The target with its instruction set, what the user asked for, and what the call knows of the arguments."""

    target: str
    level: str
    """An instruction set of the target: avx512, sm_90a."""
    optimization: int = 3
    checks: frozenset[str] = frozenset()
    """Safety checks that are written into the code."""
    deterministic: bool = False
    """Whether program instances that add floats to memory do so one after the other."""
    warps: int | None = None
    stages: int | None = None
    row_aligned: tuple[int, ...] = ()
    """The arguments whose rows are contiguous and begin at multiples of 16 bytes."""
    exchanged: tuple[tuple[int, int], ...] = ()
    """Arguments whose rows are contiguous and begin so along another axis than the last, with that axis."""
    follows: bool = False
    """Whether the kernel is one of several that are launched one after the other."""

    @staticmethod
    def of(target: str, level: str, *, row_aligned: Iterable[int] = (), **others: Any) -> CompileOptions:
        """Options with any collection of arguments whose rows are aligned."""
        return CompileOptions(target, level, row_aligned=tuple(row_aligned), **others)

    def with_(self, **changes: Any) -> CompileOptions:
        return replace(self, **changes)
