"""Functions that background threads of the package call before each piece of work."""

from __future__ import annotations

from collections.abc import Callable

BEFORE_WORK: list[Callable[[], object]] = []
"""Devices add theirs when they are opened."""


def before_work() -> None:
    """Called by background threads before each piece of work: a device may have been opened since the last one."""
    for action in BEFORE_WORK:
        action()
