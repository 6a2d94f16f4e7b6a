"""A process that compiles, as its parent sees it: started when it is needed, asked, replaced once it has died."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector

from tessera import compile_worker
from tessera.metatracing.compiling.loader import Child, Loader
from tessera.metatracing.logs import complain


class CompilingProcess:
    """One thread at a time asks it. `died` is called when it was found dead, and another one takes its place."""

    def __init__(self, build: str, loader: Loader, timeout: float, died: Callable[[], None]) -> None:
        self._build, self._loader, self._timeout, self._died = build, loader, timeout, died
        self._lock = threading.Lock()
        self._process: Child | None = None
        self._number = 0
        self._said_ready = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """None where there is none, or not yet."""
        process = self._process
        return None if process is None else process.pid

    @property
    def is_ready(self) -> bool:
        """Whether it has loaded all that compiling takes, and would begin at once. Whoever uses it may ask."""
        if self._process is not None:
            self._hear(self._process, 0)
        return self._said_ready

    def load(self) -> None:
        """Starts it, and waits until it is ready. If it never is, whoever asks it learns why."""
        if self._loader.loads:
            with suppress(OSError, EOFError, ValueError):
                self._hear(self.started(), self._timeout)

    def _hear(self, process: Child, timeout: float) -> None:
        if self._loader.loads and not self._said_ready:
            with suppress(TimeoutError):
                answer = self._answer(process, timeout)
                self._said_ready = answer is not None and answer[0] == compile_worker.READY

    def asked(self, packed: bytes) -> tuple[bool, bytes]:
        """What the process answers; one that has died since the last request is replaced once."""
        fresh = self._process is None
        while True:
            process = self.started()
            self._number += 1
            try:
                compile_worker.write(process.requests, self._number, True, self._build, packed)
                answer = self._answer(process, self._timeout)
                if answer is not None and answer[0] == compile_worker.READY:
                    self._said_ready = True
                    answer = self._answer(process, self._timeout)
                if answer is None or answer[0] != self._number:
                    raise EOFError("it gave no answer")
                return answer[1], answer[3]
            except (BrokenPipeError, EOFError):
                if fresh or self._closed:
                    raise
                complain(f"the process that compiles had ended, status {self.end()}; another one is started")
                self._died()
                fresh = True

    @staticmethod
    def _answer(process: Child, timeout: float) -> tuple[int, bool, str, bytes] | None:
        with DefaultSelector() as selector:
            selector.register(process.answers, EVENT_READ)
            if not selector.select(timeout):
                raise TimeoutError(f"compiling took more than {timeout:g} s")
        return compile_worker.read(process.answers)

    def started(self) -> Child:
        with self._lock:
            if self._closed:
                raise EOFError("the runtime was closed")
            if self._process is None:
                self._process = self._loader.child()
            return self._process

    def end(self) -> int | None:
        """Ends the process; its status."""
        with self._lock:
            process, self._process, self._said_ready = self._process, None, False
        return None if process is None else process.end()

    def forked(self, nowhere: int) -> None:
        """In the child of a fork: the process goes on to be its parent's."""
        self._lock, self._closed = threading.Lock(), True
        process, self._process = self._process, None
        if process is not None:
            process.forked(nowhere)

    def close(self) -> None:
        """Ends it for good."""
        self._closed = True
        self.end()
