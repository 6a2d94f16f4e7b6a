"""Libraries of peers, loaded by name when they are measured."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(name: str) -> Any:
    """A module of a peer, which may not be installed: callers have asked `Framework.missing` before."""
    return import_module(name)
