"""Compiling beside the caller: in a process of its own, because a compiling thread would hold Python's lock.

Whatever happens to the process, callers learn of it by a line in the log and go on with what they have.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from tessera import knobs
from tessera.metatracing.client import Level
from tessera.metatracing.compiling_process import CompilingProcess
from tessera.metatracing.logs import complain, log

if TYPE_CHECKING:
    from tessera.metatracing.client import Compiled
    from tessera.metatracing.request import Request

MOST_DEATHS = 3
"""Processes that may die before no other is started."""
BUILD = "tessera.metatracing.building:build"
MOST_PROCESSES = 4
STARTED_EARLY = 2
"""Processes that are started when something will be compiled."""
TO_SPARE = 4
"""Processors for each process that is started before anything has to be compiled."""
READY = "tessera.metatracing.building:get_ready"


class Compiling(Protocol):
    """Who compiles requests."""

    def can_compile(self, packed: bytes | None) -> bool:
        """Whether a request of this form can be compiled; None for what cannot be sent."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether somebody has loaded a compiler and would begin at once."""
        ...

    def prepare(self) -> None:
        """Something is going to be compiled soon: whoever does that may get ready."""
        ...

    def made_at_once(self, packed: bytes | None) -> bool:
        """Has a request compiled while the caller waits, by somebody who has loaded a compiler; False without any."""
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

    @property
    def is_ready(self) -> bool:
        return True

    def prepare(self) -> None:
        return

    def made_at_once(self, packed: bytes | None) -> bool:
        return False

    def submit(self, request: Request) -> None:
        request.region.compiled(request, request.compiled())

    def wait(self, timeout: float) -> bool:
        return True

    def close(self) -> None:
        return


class Worker:
    """Compiles in other processes, one request after the other, the programs of one beside each other.

    There is a process for every two processors that there are, up to a few. Where processors are to spare they are
    started ahead, else when somebody will want them, at the latest by a request, and again when they have died. A
    thread sends requests, and loads what was compiled; it ends with the last request, and another one begins with the
    next. Programs are handed over one by one.
    """

    def __init__(self, timeout: float, build: str = BUILD) -> None:
        self._lock = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.deaths = 0
        count = max(1, min(MOST_PROCESSES, knobs.usable_processors() // 2))
        ready = READY if build == BUILD else None
        self._processes = [CompilingProcess(build, ready, timeout, self._died) for _ in range(count)]
        # A child of a fork has neither the thread nor the right to the pipes.
        self._owner = os.getpid()
        self._asking = threading.Lock()  # held by whoever asks processes
        if ready is not None and (ahead := min(count, knobs.usable_processors() // TO_SPARE)):
            # Starting them takes a few milliseconds each, which nobody has to wait for.
            threading.Thread(target=self._start, args=(ahead,), name="tessera compiling", daemon=True).start()

    def _died(self) -> None:
        with self._lock:
            self.deaths += 1

    @property
    def pid(self) -> int | None:
        """Of the first process; None where there is none."""
        return self._processes[0].pid

    @property
    def pids(self) -> list[int]:
        """Of all processes that there are."""
        return [process.pid for process in self._processes if process.pid is not None]

    @property
    def is_usable(self) -> bool:
        return self.deaths < MOST_DEATHS and not self._closed and os.getpid() == self._owner

    def can_compile(self, packed: bytes | None) -> bool:
        return packed is not None and self.is_usable

    @property
    def is_ready(self) -> bool:
        if not self._asking.acquire(blocking=False):  # it is at work
            return True
        try:
            return any(process.is_ready for process in self._processes)
        finally:
            self._asking.release()

    def prepare(self) -> None:
        if self.is_usable and self.deaths == 0:
            self._start(STARTED_EARLY)

    def _start(self, count: int) -> None:
        for process in self._processes[:count]:
            with suppress(OSError, EOFError):  # then the first request says so
                process.started()

    def made_at_once(self, packed: bytes | None) -> bool:
        if not self.can_compile(packed) or not self._asking.acquire(blocking=False):
            return False
        assert packed is not None
        try:
            process = next((one for one in self._processes if one.is_ready), None)
            return process is not None and self._made_by(process, packed)
        finally:
            self._asking.release()

    def _made_by(self, process: CompilingProcess, packed: bytes) -> bool:
        try:
            good, data = process.asked(packed)
        except (OSError, EOFError, TimeoutError) as error:
            status = process.end()
            self._died()
            complain(f"the process that compiles has ended, status {status}: {error}; it is compiled here")
            return False
        return good and json.loads(data) == [None]  # what is wrong with it, compiling it here says better

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
                with self._asking:
                    request.context.run(self._serve, request)
            except Exception as error:  # whatever it is, a call must not learn of it
                if not self._closed:
                    _fail(request, f"{type(error).__name__}: {error}")
            with self._lock:
                if self._waiting:
                    self._waiting.popleft()

    def _serve(self, request: Request) -> None:
        region = request.region
        if request.is_open:
            # To find levels takes a compiler, too: who has one leaves on the disk what it found.
            process = next((one for one in self._processes if one.is_ready), self._processes[0])
            packed = region.client.request(request.call, [])
            if packed is not None:
                self._made_by(process, packed)
            request.settle()
        idle: SimpleQueue[CompilingProcess] = SimpleQueue()
        for process in self._processes:
            idle.put(process)

        def one(level: Level) -> tuple[Level, Compiled] | None:
            if (found := request.known(level)) is None:
                process = idle.get()
                try:
                    found = self._compiled(request, level, process)
                finally:
                    idle.put(process)
            if found is None:
                return None
            region.arrived(request, level, found)
            return level, found

        beside = min(len(self._processes), len(request.levels))
        if beside == 1:
            outcome = [one(level) for level in request.levels]
        else:
            with ThreadPoolExecutor(beside, "tessera compiling") as pool:
                # Settings that hold around the request hold in all of its threads.
                running = [pool.submit(copy_context().run, one, level) for level in request.levels]
                outcome = [each.result() for each in running]
        if self._closed:
            return
        done = [each for each in outcome if each is not None]
        log("recompiles", f"{region.name}: {len(done)} programs were compiled by another process")
        region.compiled(request, done)

    def _compiled(self, request: Request, level: Level, process: CompilingProcess) -> Compiled | None:
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
            if not self._closed:
                region.aborted(level, "there is no process that compiles")
            return None
        try:
            good, data = process.asked(packed)
        except (OSError, EOFError, TimeoutError) as error:
            status = process.end()
            if not self._closed:
                self._died()
                said = str(error) or type(error).__name__
                region.aborted(level, f"the process that compiles has ended, status {status}: {said}")
            return None
        (wrong,) = json.loads(data) if good else (data.decode(errors="replace"),)
        if wrong is not None:
            region.aborted(level, wrong)
            return None
        return request.found(level)

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
        for process in self._processes:
            process.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, anything may be gone
            self.close()


def _fail(request: Request, why: str) -> None:
    for level in request.levels or [Level(request.tier)]:
        request.region.aborted(level, why)
    request.region.compiled(request, [])
