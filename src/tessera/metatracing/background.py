"""Compiling beside the caller: in a process of its own, because a compiling thread would hold Python's lock.

Whatever happens to the process, callers learn of it by a line in the log and go on with what they have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Protocol

from tessera import compile_worker
from tessera.metatracing.logs import complain, log

if TYPE_CHECKING:
    from tessera.metatracing.client import Compiled, Level
    from tessera.metatracing.request import Request

MOST_DEATHS = 3
"""Processes that may die before no other is started."""
BUILD = "tessera.metatracing.building:build"
READY = "tessera.metatracing.building:get_ready"


class Compiling(Protocol):
    """Who compiles requests."""

    def can_compile(self, packed: bytes | None) -> bool:
        """Whether a request of this form can be compiled; None for what cannot be sent."""
        ...

    def prepare(self) -> None:
        """Something is going to be compiled soon: whoever does that may get ready."""
        ...

    def submit(self, request: Request) -> None:
        """Compiles a request, now or later, and tells its region."""
        ...

    def wait(self, timeout: float) -> bool:
        """Waits until nothing is being compiled; False where that takes longer."""
        ...

    def close(self) -> None: ...


class Blocking:
    """Compiles while the caller waits."""

    def can_compile(self, packed: bytes | None) -> bool:
        return True

    def prepare(self) -> None:
        return

    def submit(self, request: Request) -> None:
        request.region.compiled(request, request.compiled())

    def wait(self, timeout: float) -> bool:
        return True

    def close(self) -> None:
        return


class Worker:
    """Compiles in another process, one request after the other. A thread sends them, and loads what was compiled.

    The process is started when somebody will want it, at the latest by the first request, and again when it has died.
    The thread ends with the last request, and another one begins with the next. Programs are handed over one by one, as
    they come.
    """

    def __init__(self, timeout: float, build: str = BUILD) -> None:
        self._timeout = timeout
        self._build = build
        self._lock = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._closed = False
        self.deaths = 0
        # A child of a fork has neither the thread nor the right to the pipes.
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        """Of the process; None where there is none."""
        process = self._process
        return None if process is None else process.pid

    @property
    def is_usable(self) -> bool:
        return self.deaths < MOST_DEATHS and not self._closed and os.getpid() == self._owner

    def can_compile(self, packed: bytes | None) -> bool:
        return packed is not None and self.is_usable

    def prepare(self) -> None:
        if self._process is None and self.is_usable and self.deaths == 0:
            with suppress(OSError, EOFError):  # then the first request says so
                self._started()

    def submit(self, request: Request) -> None:
        if not self.is_usable:
            _fail(request, "there is no process that compiles")
            return
        with self._lock:
            self._waiting.append(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tessera compiling", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._closed:
                    self._thread = None
                    self._lock.notify_all()
                    return
                request = self._waiting[0]
            try:
                request.context.run(self._serve, request)
            except Exception as error:  # whatever it is, a call must not learn of it
                if not self._closed:
                    _fail(request, f"{type(error).__name__}: {error}")
            with self._lock:
                if self._waiting:
                    self._waiting.popleft()

    def _serve(self, request: Request) -> None:
        region, waiting = request.region, list(request.levels)
        done: list[tuple[Level, Compiled]] = []
        try:
            while waiting and not self._closed:
                level = waiting[0]
                found = self._compiled(request, level)
                waiting.pop(0)
                if found is not None:
                    done.append((level, found))
                    region.arrived(request, level, found)
        except (OSError, EOFError, TimeoutError) as error:
            status = self._end()
            if self._closed:
                return
            self.deaths += 1
            said = str(error) or type(error).__name__
            for level in waiting:
                region.aborted(level, f"the process that compiles has ended, status {status}: {said}")
        log("recompiles", f"{region.name}: {len(done)} programs were compiled by another process")
        region.compiled(request, done)

    def _compiled(self, request: Request, level: Level) -> Compiled | None:
        """One program of a request, made there and loaded here; None where it is given up."""
        region = request.region
        packed = region.client.request(request.call, [level])
        if packed is None:
            if region.climbs:
                region.climbs = False  # nothing of it can ever be sent
                region.aborted(
                    level, "it cannot be sent to another process; background_compilation=False compiles it here"
                )
            return None
        if not self.is_usable:
            region.aborted(level, "there is no process that compiles")
            return None
        good, data = self._asked(packed)
        (wrong,) = json.loads(data) if good else (data.decode(errors="replace"),)
        if wrong is not None:
            region.aborted(level, wrong)
            return None
        return request.found(level)

    def _asked(self, packed: bytes) -> tuple[bool, bytes]:
        """What the process answers; one that has died since the last request is replaced once."""
        fresh = self._process is None
        while True:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            self._number += 1
            try:
                compile_worker.write(process.stdin, self._number, True, self._build, packed)
                with DefaultSelector() as selector:
                    selector.register(process.stdout, EVENT_READ)
                    if not selector.select(self._timeout):
                        raise TimeoutError(f"compiling took more than {self._timeout:g} s")
                answer = compile_worker.read(process.stdout)
                if answer is None or answer[0] != self._number:
                    raise EOFError("it gave no answer")
                return answer[1], answer[3]
            except (BrokenPipeError, EOFError):
                if fresh or self._closed:
                    raise
                complain(f"the process that compiles had ended, status {self._end()}; another one is started")
                self.deaths += 1
                fresh = True

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError("the runtime was closed")
            if self._process is None:
                environment = dict(os.environ)
                package = os.path.dirname(os.path.dirname(os.path.abspath(compile_worker.__file__)))
                environment["PYTHONPATH"] = os.pathsep.join([package, *(path for path in sys.path if path)])
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tessera.compile_worker", *([READY] if self._build == BUILD else [])],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                )
            return self._process

    def _end(self) -> int | None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        status = process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):
                assert stream is not None
                stream.close()
        return status

    def wait(self, timeout: float) -> bool:
        with self._lock:
            return self._lock.wait_for(lambda: not self._waiting, timeout)

    def close(self) -> None:
        """Ends the process; requests that wait are left."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            self._waiting.clear()
        self._end()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, anything may be gone
            self.close()


def _fail(request: Request, why: str) -> None:
    for level in request.levels:
        request.region.aborted(level, why)
    request.region.compiled(request, [])
