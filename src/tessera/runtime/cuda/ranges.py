"""NVTX ranges: names for stretches of time that profilers show. Without the package nvtx they do nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

_DOMAIN = "tessera"


@cache
def _library() -> Any:
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


def named_range(name: str) -> AbstractContextManager[Any]:
    """`with named_range("forward"):` shows in profilers as a bar of that name; as a decorator it names all calls."""
    library = _library()
    return nullcontext() if library is None else library.annotate(name, domain=_DOMAIN)


def mark(name: str) -> None:
    """Shows in profilers as a point."""
    library = _library()
    if library is not None:
        library.mark(name, domain=_DOMAIN)
