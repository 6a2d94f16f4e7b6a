"""Stats recorders process recorded calls: at once, in the caller, or a moment later in a thread.

Records, A/B tests, decisions, entries and files take longer than many calls do. Where programs are compiled in the
background, all of this is done in the background, too.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeAlias

from tessera.runtime.device.threads import before_work
from tessera.tiers.logs import warn

Job: TypeAlias = "tuple[Context, Callable[..., object], tuple[Any, ...]]"
"""A function with its arguments, and the settings that hold for it."""
_LATER = 0.002
"""Seconds after which the thread looks again for something to do: waking it would take the caller too long."""
_IDLE = 2.0
"""Seconds after which a thread that has nothing to do ends; the next job begins another one."""
_MOST = 64
"""Jobs that may wait; the caller does those beyond."""
_PATIENCE = 10.0


class StatsRecorder:
    """Does the work that need not be done during a call in the caller all the same.

    That is for clocks that stand still, and for callers who wait for the compiler anyhow.
    """

    is_immediate = True
    """Whether a job is done when `do` returns."""

    def do(self, job: Callable[..., object], *given: Any) -> None:
        job(*given)

    def settle(self) -> None:
        """Waits until all is done that was given so far."""

    def forked(self) -> None:
        """In the child of a fork."""


class BackgroundRecorder(StatsRecorder):
    """Does jobs in a thread, in their order. Failures are lines in the log."""

    is_immediate = False

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        self._jobs: deque[Job] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def do(self, job: Callable[..., object], *given: Any) -> None:
        context = copy_context()  # settings that hold around the call hold for its jobs
        if len(self._jobs) >= _MOST:
            _do((context, job, given))
            return
        self._add((context, job, given))

    def _add(self, waiting: Job) -> None:
        self._jobs.append(waiting)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="tessera stats recorder", daemon=True)
                    self._thread.start()

    def _work(self) -> None:
        idle = 0.0
        while True:
            time.sleep(_LATER)
            idle = 0.0 if self._jobs else idle + _LATER
            while self._jobs:
                before_work()
                _do(self._jobs.popleft())
            if idle > _IDLE and self._is_over():
                return

    def _is_over(self) -> bool:
        """Whether this thread may end. Callers add a job, then look for a thread; so this one looks for jobs again."""
        with self._lock:
            thread, self._thread = self._thread, None
            if self._jobs:
                self._thread = thread
            return self._thread is None

    def settle(self) -> None:
        with self._lock:
            thread = self._thread
        if thread is None or thread is threading.current_thread() or not thread.is_alive():
            return
        over = threading.Event()
        self._add((copy_context(), over.set, ()))
        over.wait(_PATIENCE)


def _do(waiting: Job) -> None:
    context, job, given = waiting
    try:
        context.run(job, *given)
    except Exception as error:  # a call must not fail because of it
        warn(f"processing a recorded call failed: {type(error).__name__}: {error}")
