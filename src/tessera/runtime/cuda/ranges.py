"""NVTX ranges: names for stretches of time that profilers show. Without the package nvtx they do nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

_DOMAIN = "tessera"


@cache
def library() -> Any:
    """The module `nvtx`, or None."""
    try:
        return import_module("nvtx")
    except ImportError:
        return None


def named_range(name: str) -> AbstractContextManager[Any]:
    """`with named_range("forward"):` shows in profilers as a bar of that name; as a decorator it names all calls."""
    found = library()
    return nullcontext() if found is None else found.annotate(name, domain=_DOMAIN)


def mark(name: str) -> None:
    """Shows in profilers as a point."""
    found = library()
    if found is not None:
        found.mark(name, domain=_DOMAIN)
