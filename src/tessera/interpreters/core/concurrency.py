"""Cooperative threads: the warp groups of a program instance, which run one at a time and wait for each other.

Which one goes on is drawn by chance, or round robin; a right kernel gives the same results in every order. If all that
are left wait, it is a deadlock, and the error says what each waits for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tessera.errors import RaceError


class _StoppedError(Exception):
    """Ends a thread because another one failed."""


@dataclass
class CooperativeThread:
    """A thread: what it runs, and what it waits for, as a predicate and in words."""

    name: str
    work: Callable[[], None]
    ready: Callable[[], bool] = field(default=lambda: True)
    waits_for: str = "its start"
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: bool = False
    error: BaseException | None = None


class CooperativeThreads:
    """Runs threads until all are done; `hint` is that of the error for a deadlock."""

    def __init__(self, chance: np.random.Generator | None, *, hint: str) -> None:
        self._chance = chance
        self._hint = hint
        self._members: list[CooperativeThread] = []
        self._back = threading.Semaphore(0)
        self._current: CooperativeThread | None = None
        self._stopping = False
        self._steps = 0

    def add(self, name: str, work: Callable[[], None]) -> None:
        self._members.append(CooperativeThread(name, work))

    def wait(self, ready: Callable[[], bool], waits_for: str) -> None:
        """Called by the thread that runs: it goes on when `ready` says so, and by chance not even then at once."""
        member = self._current
        assert member is not None
        if ready() and (self._chance is None or self._chance.integers(2)):
            return
        member.ready, member.waits_for = ready, waits_for
        self._back.release()
        member.go.acquire()
        if self._stopping:
            raise _StoppedError

    def run(self) -> None:
        threads = [threading.Thread(target=self._life, args=(member,), daemon=True) for member in self._members]
        for thread in threads:
            thread.start()
        try:
            while any(not member.done for member in self._members):
                self._step()
        finally:
            self._stopping = True
            for member in self._members:
                member.go.release()
            for thread in threads:
                thread.join()

    def _step(self) -> None:
        able = [member for member in self._members if not member.done and member.ready()]
        if not able:
            stuck = [f"{member.name} waits for {member.waits_for}" for member in self._members if not member.done]
            raise RaceError(f"deadlock: {'; '.join(stuck)}", hint=self._hint)
        self._steps += 1
        index = self._steps % len(able) if self._chance is None else int(self._chance.integers(len(able)))
        member = self._current = able[index]
        member.go.release()
        self._back.acquire()
        if member.error is not None:
            raise member.error

    def _life(self, member: CooperativeThread) -> None:
        member.go.acquire()
        try:
            if not self._stopping:
                member.work()
        except _StoppedError:
            pass
        except BaseException as error:
            member.error = error
        member.done = True
        self._back.release()
