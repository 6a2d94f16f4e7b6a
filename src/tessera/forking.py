"""Forks: a child has none of the other threads, and locks that they held would stay locked for ever.

A fork waits for locks whose data must not be copied half changed; other objects are reset in the child.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import AbstractContextManager
from typing import Any, Protocol
from weakref import WeakSet

# It has hooks of its own around forks. Loaded by one thread while another one forks, only half of them would run.
_LOADED = logging.__name__

_waited: list[tuple[int, AbstractContextManager[Any]]] = []


class Forked(Protocol):
    """An object with locks, threads or pipes of its own."""

    def forked(self) -> None:
        """Called in the child of a fork, where the threads that held locks do not exist."""
        ...


_told: WeakSet[Forked] = WeakSet()
_forking = threading.local()  # several threads may fork at once: each lets go of what it holds itself


def fork_waits_for(lock: AbstractContextManager[Any], rank: int) -> None:
    """Has forks hold a lock. Of several, those of lower ranks are taken first, as all other code takes them."""
    _waited.append((rank, lock))
    _waited.sort(key=lambda one: one[0])


def tell_in_child(one: Forked) -> None:
    """Has `one.forked()` called in the child of a fork, as long as there is one."""
    _told.add(one)


def _before() -> None:
    _forking.held = [lock for _, lock in _waited]
    for lock in _forking.held:
        lock.__enter__()


def _after() -> None:
    for lock in reversed(_forking.held):
        lock.__exit__(None, None, None)


def _in_child() -> None:
    _after()
    for one in list(_told):
        one.forked()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
