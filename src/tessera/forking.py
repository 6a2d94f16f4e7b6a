"""What a fork waits for: its child has none of the other threads, and what they held would stay shut for ever."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from typing import Any

_waited: list[tuple[int, AbstractContextManager[Any]]] = []
_forking = threading.local()  # several threads may fork at once: each lets go of what it holds itself


def fork_waits_for(lock: AbstractContextManager[Any], rank: int) -> None:
    """Has forks hold a lock. Of several, those of lower ranks are taken first, as everybody else takes them."""
    _waited.append((rank, lock))
    _waited.sort(key=lambda one: one[0])


def _before() -> None:
    _forking.held = [lock for _, lock in _waited]
    for lock in _forking.held:
        lock.__enter__()


def _after() -> None:
    for lock in reversed(_forking.held):
        lock.__exit__(None, None, None)


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
