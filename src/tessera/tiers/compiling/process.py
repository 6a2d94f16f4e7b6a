"""A process that compiles, as its parent sees it: started when it is needed, asked, replaced once it has died."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tessera import compile_worker
from tessera.tiers.compiling.loader import Child, Loader
from tessera.tiers.logs import warn


class CompilingProcess:
    """A process that one thread at a time asks. `died` is called when it died, and says whether another may follow."""

    def __init__(self, build: str, loader: Loader, timeout: float, died: Callable[[int], bool]) -> None:
        self._build, self._loader, self._timeout, self._died = build, loader, timeout, died
        self._lock = threading.Lock()
        self._process: Child | None = None
        self._number = 0
        self._said_ready = False
        self._closed = self._is_last = False

    @property
    def pid(self) -> int | None:
        """The number of the process; None where there is none, or not yet."""
        process = self._process
        return None if process is None else process.pid

    @property
    def is_ready(self) -> bool:
        """Whether it has loaded all that compiling takes, and would begin at once. The thread that uses it may ask."""
        process = self._process
        with suppress(OSError):  # TimeoutError is one
            return process is not None and self._loader.loads and self._heard_ready(process, 0)
        return False

    def load(self) -> bool:
        """Starts it, and waits until it is ready; False if it never is: the next request fails with the reason."""
        if not self._loader.loads:
            return True
        with suppress(OSError, EOFError):
            return self._heard_ready(self.started(), self._timeout)
        return False

    def _heard_ready(self, process: Child, timeout: float) -> bool:
        if not self._loader.loads:
            return True
        if not self._said_ready:
            answer = process.answer(timeout)
            self._said_ready = answer is not None and answer[0] == compile_worker.READY
        return self._said_ready

    def asked(self, packed: bytes) -> tuple[bool, bytes]:
        """The answer of the process; one that has died since the last request is replaced once."""
        fresh = self._process is None
        while True:
            process = self.started()
            try:
                return self._answered(process, packed)
            except (ConnectionError, EOFError):
                if fresh or self._closed:
                    raise
                status = self.give_up()
                if self._is_last:
                    raise
                warn(f"the process that compiles had ended, status {status}; another one is started")
                fresh = True
            except BaseException as error:
                if not isinstance(error, Exception):  # an interrupt: half of an answer is of no use to the next request
                    self._let_go(is_closed=False)
                raise

    def _answered(self, process: Child, packed: bytes) -> tuple[bool, bytes]:
        self._number += 1
        try:
            if not self._heard_ready(process, self._timeout):
                raise EOFError("it gave no answer")
            until = time.monotonic() + self._timeout
            process.send(compile_worker.message(self._number, True, self._build, packed), self._timeout)
            answer = process.answer(until - time.monotonic())
        except TimeoutError:
            raise TimeoutError(f"compiling took more than {self._timeout:g} s") from None
        if answer is None or answer[0] != self._number:
            raise EOFError("it gave no answer")
        return answer[1], answer[3]

    def started(self) -> Child:
        with self._lock:
            if self._closed:
                raise EOFError("the runtime was closed")
            if self._process is None:
                self._process = self._loader.child()
            return self._process

    def give_up(self) -> int | None:
        """Ends the process, reports its death, and has another one started next time; returns its status."""
        with self._lock:
            process, self._process, self._said_ready = self._process, None, False
        if process is None:
            return None
        status = process.end()
        if process.is_missing:
            status = self._loader.give_up(process)
        # Several may have waited for the one that loads: it has died once.
        self._is_last = not self._died(process.pid or process.loader)
        return status

    def forked(self) -> None:
        """In the child of a fork: the process goes on to be its parent's."""
        self._lock, self._closed, self._process = threading.Lock(), True, None

    def close(self) -> None:
        """Ends it for good."""
        self._let_go(is_closed=True)

    def _let_go(self, *, is_closed: bool) -> None:
        with self._lock:
            process, self._process, self._said_ready = self._process, None, False
            self._closed |= is_closed
        if process is not None:
            process.stop()
