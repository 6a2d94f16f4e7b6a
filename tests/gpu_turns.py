"""Whose turn it is on a GPU that several processes test: many at once, or one that fills its memory, or measures it."""

from __future__ import annotations

import fcntl
import getpass
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir


@contextmanager
def turn(alone: bool) -> Generator[None]:
    """Waits until it may use the GPU. Whoever waits to have it alone lets nobody else begin."""
    begun, used = (Path(gettempdir()) / f"tessera-gpu-{getpass.getuser()}-{name}" for name in ("begun", "used"))
    with used.open("w") as use:
        with begun.open("w") as begin:
            fcntl.flock(begin, fcntl.LOCK_EX)
            fcntl.flock(use, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
