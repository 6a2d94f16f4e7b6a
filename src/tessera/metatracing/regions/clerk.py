"""Who keeps the books of recorded calls: the caller at once, or a thread a moment later, while nobody waits.

What a recorded call leads to, records, contests, decisions, entries and files, takes longer than many calls do. Where
programs are compiled beside the caller, all of it is done beside the caller, too.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Protocol

from tessera.metatracing.logs import complain
from tessera.runtime.threads import before_work

Job = Callable[[], object]
_LATER = 0.002
"""Seconds after which the thread looks again for something to do: waking it would take the caller too long."""
_IDLE = 2.0
"""Seconds after which a thread that has nothing to do ends; the next job begins another one."""
_MOST = 64
"""Jobs that may wait; who brings more does them."""
_PATIENCE = 10.0


class Clerk(Protocol):
    """Does what need not be done during a call."""

    @property
    def is_at_once(self) -> bool:
        """Whether a job is done when `do` returns."""
        ...

    def do(self, job: Job) -> None: ...

    def settle(self) -> None:
        """Waits until all is done that was given so far."""
        ...

    def forked(self) -> None:
        """In the child of a fork."""
        ...


class AtOnce:
    """The caller: for clocks that stand still, and for callers who wait for the compiler anyhow."""

    is_at_once = True

    def do(self, job: Job) -> None:
        job()

    def settle(self) -> None:
        return

    def forked(self) -> None:
        return


class Behind:
    """A thread, in the order in which jobs came. Whatever fails is a line in the log."""

    is_at_once = False

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        self._jobs: deque[Job] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def do(self, job: Job) -> None:
        if len(self._jobs) >= _MOST:
            _done(job)
            return
        context = copy_context()  # settings that hold around the call hold for what it leads to
        self._add(lambda: context.run(job))

    def _add(self, job: Job) -> None:
        with self._lock:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tessera clerk", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        idle = 0.0
        while True:
            time.sleep(_LATER)
            idle = 0.0 if self._jobs else idle + _LATER
            while self._jobs:
                before_work()
                _done(self._jobs.popleft())
            if idle > _IDLE:
                with self._lock:
                    if not self._jobs:
                        self._thread = None
                        return

    def settle(self) -> None:
        thread = self._thread
        if thread is None or thread is threading.current_thread() or not thread.is_alive():
            return
        over = threading.Event()
        self._add(over.set)
        over.wait(_PATIENCE)


def _done(job: Job) -> None:
    try:
        job()
    except Exception as error:  # whatever it is, a call must not learn of it
        complain(f"what a recorded call led to failed: {type(error).__name__}: {error}")
