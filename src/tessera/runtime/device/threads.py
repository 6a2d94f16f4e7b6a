"""Threads of ours, which no caller runs on: what devices want to be done there before anything else."""

from __future__ import annotations

from collections.abc import Callable

BEFORE_WORK: list[Callable[[], object]] = []
"""Devices add to it when they are opened."""


def before_work() -> None:
    """For threads of ours, before each piece of work: a device may have been opened since the last one."""
    for action in BEFORE_WORK:
        action()
