"""A process that compiles, as its parent sees it: started when it is needed, asked, replaced once it has died."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector

from tessera import compile_worker
from tessera.metatracing.logs import complain


class CompilingProcess:
    """One thread at a time asks it. `died` is called when it was found dead, and another one takes its place."""

    def __init__(self, build: str, ready: Sequence[str], timeout: float, died: Callable[[], None]) -> None:
        self._build, self._ready, self._timeout, self._died = build, ready, timeout, died
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._said_ready = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """None where there is none."""
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
        if self._ready:
            with suppress(OSError, EOFError, ValueError):
                self._hear(self.started(), self._timeout)

    def _hear(self, process: subprocess.Popen[bytes], timeout: float) -> None:
        if self._ready and not self._said_ready:
            with suppress(TimeoutError):
                answer = self._answer(process, timeout)
                self._said_ready = answer is not None and answer[0] == compile_worker.READY

    def asked(self, packed: bytes) -> tuple[bool, bytes]:
        """What the process answers; one that has died since the last request is replaced once."""
        fresh = self._process is None
        while True:
            process = self.started()
            assert process.stdin is not None
            self._number += 1
            try:
                compile_worker.write(process.stdin, self._number, True, self._build, packed)
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
    def _answer(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, bool, str, bytes] | None:
        assert process.stdout is not None
        with DefaultSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            if not selector.select(timeout):
                raise TimeoutError(f"compiling took more than {timeout:g} s")
        # Without a buffer: what is in one, nobody can wait for.
        with open(process.stdout.fileno(), "rb", buffering=0, closefd=False) as answers:
            return compile_worker.read(answers)

    def started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError("the runtime was closed")
            if self._process is None:
                environment = dict(os.environ)
                package = os.path.dirname(os.path.dirname(os.path.abspath(compile_worker.__file__)))
                environment["PYTHONPATH"] = os.pathsep.join([package, *(path for path in sys.path if path)])
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tessera.compile_worker", *self._ready],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                    process_group=0,  # who interrupts this process from a terminal does not mean the other one
                )
            return self._process

    def end(self) -> int | None:
        """Ends the process; its status."""
        with self._lock:
            process, self._process, self._said_ready = self._process, None, False
        if process is None:
            return None
        process.kill()
        status = process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):
                assert stream is not None
                stream.close()
        return status

    def forked(self) -> None:
        """In the child of a fork: the process goes on to be its parent's, and has to learn when that ends."""
        self._lock, self._closed = threading.Lock(), True
        process, self._process = self._process, None
        if process is None:
            return
        process.returncode = 0  # nobody is to wait for it here
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (process.stdin, process.stdout):
            # What the other threads have left in buffers is written when these go: nowhere.
            with suppress(OSError, ValueError):
                assert stream is not None
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

    def close(self) -> None:
        """Ends it for good."""
        self._closed = True
        self.end()
