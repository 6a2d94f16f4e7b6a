"""Where processes that compile come from: one process loads a compiler, and they fork from it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from select import select
from typing import IO

from tessera import compile_worker

_LONGEST_END = 5.0
"""Seconds in which a killed process has ended, and its status is known."""
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Libraries would start threads that nobody needs, and that turn round for a while."""


class Child:
    """A process, by its pipes. It comes to be once the loader has loaded: until then it has no number."""

    def __init__(self, requests: int, answers: int, news: int) -> None:
        self.requests: IO[bytes] = os.fdopen(requests, "wb")
        self.answers: IO[bytes] = os.fdopen(answers, "rb", buffering=0)  # what is in a buffer, nobody can wait for
        self._news = news
        self._heard: list[int] = []
        """Its number, and its status."""
        self._lock = threading.Lock()
        self._ends = False

    @property
    def pid(self) -> int | None:
        with self._lock:
            if not self._ends:
                self._hear(0)
        return self._heard[0] if self._heard else None

    def _hear(self, timeout: float) -> None:
        while len(self._heard) < 2 and select([self._news], [], [], timeout)[0]:
            told = os.read(self._news, compile_worker.NEWS.size)
            if not told:
                return
            self._heard += compile_worker.NEWS.unpack(told)

    def end(self) -> int | None:
        """Ends it; its status, where that is known. One that has not come to be finds its requests at their end."""
        with self._lock:
            self._ends = True
        self._hear(0)
        if len(self._heard) == 1:
            with suppress(ProcessLookupError):
                os.kill(self._heard[0], signal.SIGKILL)
            self._hear(_LONGEST_END)
        for stream in (self.requests, self.answers):
            with suppress(OSError, ValueError):
                stream.close()
        os.close(self._news)
        return self._heard[1] if len(self._heard) == 2 else None

    def forked(self, nowhere: int) -> None:
        """In the child of a fork: the process goes on to be its parent's, and has to learn when that ends."""
        self._lock, self._ends = threading.Lock(), True
        # What other threads have left in buffers is written when these go: nowhere.
        with suppress(OSError, ValueError):  # one of them was just being ended
            for one in (self.requests.fileno(), self.answers.fileno(), self._news):
                os.dup2(nowhere, one)


class Loader:
    """Loads a compiler in a process of its own, and has others fork from it; started when one is wanted."""

    def __init__(self, ready: Sequence[str]) -> None:
        self._ready = ready
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._wishes: socket.socket | None = None

    @property
    def loads(self) -> bool:
        """Whether there is something to load, so that processes say when they are ready."""
        return bool(self._ready)

    def child(self) -> Child:
        """Another process; it is there as soon as the compiler is."""
        with self._lock:
            asked, requests = os.pipe()
            answers, given = os.pipe()
            news, told = os.pipe()
            try:
                self._wish([asked, given, told])
            except OSError:
                for end in (requests, answers, news):
                    os.close(end)
                raise
            finally:
                for end in (asked, given, told):
                    os.close(end)
            return Child(requests, answers, news)

    def _wish(self, ends: Sequence[int]) -> None:
        if self._wishes is not None:
            with suppress(BrokenPipeError, ConnectionError):  # it has died: there is another one
                socket.send_fds(self._wishes, [b"1"], ends)
                return
            self._end()
        socket.send_fds(self._started(), [b"1"], ends)

    def _started(self) -> socket.socket:
        environment = dict(os.environ) | _ONE_THREAD
        package = os.path.dirname(os.path.dirname(os.path.abspath(compile_worker.__file__)))
        environment["PYTHONPATH"] = os.pathsep.join([package, *(path for path in sys.path if path)])
        self._wishes, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tessera.compile_worker", *self._ready],
                stdin=theirs.fileno(),
                env=environment,
                process_group=0,  # who interrupts this process from a terminal does not mean the other one
            )
        return self._wishes

    def _end(self) -> None:
        process, self._process = self._process, None
        wishes, self._wishes = self._wishes, None
        if wishes is not None:
            wishes.close()
        if process is not None:
            process.kill()
            process.wait()

    def close(self) -> None:
        with self._lock:
            self._end()

    def forked(self, nowhere: int) -> None:
        """In the child of a fork."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._process.returncode = 0  # nobody is to wait for it here
        if self._wishes is not None:
            os.dup2(nowhere, self._wishes.fileno())
        self._process = None
