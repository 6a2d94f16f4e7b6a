"""The lock of a GPU that several processes test: many share it, or one has it alone, to fill its memory or measure."""

from __future__ import annotations

import fcntl
import getpass
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir


@contextmanager
def gpu_lock(alone: bool) -> Generator[None]:
    """Waits until this process may use the GPU. While a process waits to have it alone, no other begins."""
    begun, used = (Path(gettempdir()) / f"tessera-gpu-{getpass.getuser()}-{name}" for name in ("begun", "used"))
    with used.open("w") as use:
        with begun.open("w") as begin:
            fcntl.flock(begin, fcntl.LOCK_EX)
            fcntl.flock(use, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
