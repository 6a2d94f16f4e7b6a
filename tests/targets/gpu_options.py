"""Compile options of GPUs, as tests write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tessera.compiler.options import CompileOptions


def gpu(
    arch: str = "sm_90a", *, row_aligned: Iterable[int] = (), checks: Iterable[str] = (), **options: Any
) -> CompileOptions:
    """Options for an architecture, with any collections of arguments and checks."""
    return CompileOptions("cuda", arch, row_aligned=tuple(row_aligned), checks=frozenset(checks), **options)
