"""The `Machine` that effects of programs act on: its random stream, states that outlive calls, and output."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from tessera.interpreters.core.machine import Machine

_current: ContextVar[Machine | None] = ContextVar("current_machine", default=None)


@cache
def _first() -> Machine:
    return Machine()


def current_machine() -> Machine:
    """The machine that programs run on, here and now."""
    return _current.get() or _first()


@contextmanager
def seed(number: int) -> Generator[None]:
    """Meanwhile draws from the random stream begin at its start, under this seed: equal programs draw equal numbers."""
    around = current_machine()
    inside = Machine(seed=number, slots=around.slots, axes=around.axes, write=around.write)
    token = _current.set(inside)
    try:
        yield
    finally:
        _current.reset(token)
