"""Background compilation in processes of their own, because a compiling thread would hold Python's lock.

Whatever happens to them is a line in the log, and calls go on with the programs that there are.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from tessera import knobs
from tessera.forking import tell_in_child
from tessera.runtime.device.threads import before_work
from tessera.tiers.client import Compiled, TierLevel
from tessera.tiers.compiling.loader import Loader
from tessera.tiers.compiling.process import CompilingProcess
from tessera.tiers.logs import log, warn
from tessera.tiers.sites.request import Request, RequestCompiler

_T = TypeVar("_T")
MOST_DEATHS = 3
"""Processes that may die before no other is started."""
MOST_PROCESSES = 4
TO_SPARE = 4
"""Processors for each process that is started before anything has to be compiled."""
_PATIENCE = 0.2
"""Seconds that other programs of a request wait for new requests: a hot site is soon hot for the next tier and other
arguments, whose first programs come before."""
_PAUSE = 0.001
"""Seconds between the steps of taking a program in: each of them holds Python's lock, and callers run in between."""


class _Job:
    """A request that is being compiled: its programs that are not started, and those that are done."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.left: deque[TierLevel | None] = deque([None] if request.is_open else request.levels)
        """None stands for finding out which levels there are."""
        self.under_way = 0
        self.done: list[tuple[TierLevel, Compiled]] = []
        self.since = time.monotonic()

    @property
    def has_begun(self) -> bool:
        """Whether the first of its programs is started or done."""
        return len(self.left) < len(self.request.levels)

    def patience(self) -> float:
        """Seconds that other programs wait for requests that are about to come."""
        return max(0.0, self.since + _PATIENCE - time.monotonic()) if self.has_begun else 0.0


class _Step(NamedTuple):
    """A program of a request that is started; no level stands for finding out which there are."""

    job: _Job
    level: TierLevel | None
    is_another: bool
    """Whether it is not the first program of its request."""


class BackgroundCompiler(RequestCompiler):
    """Compiles in other processes, programs beside each other: the first of each request, then the second.

    Half of the processes at most make programs that are not the first of their requests: so the first ones, which calls
    wait for, soon find one. Where there is room, other programs wait a little, too.

    There is a process for every two processors that there are, up to a few; one loads a compiler, and they fork from
    it. Where processors are to spare they are started ahead, else when they will be wanted, at the latest by a
    request, and again when they have died. Each has a thread that asks it, and loads what was compiled; threads end
    when nothing is left to do, and others begin with the next request. Programs are handed over one by one.
    """

    def __init__(self, timeout: float, build: str, ready: Sequence[str] = ()) -> None:
        """`build` names the function that compiles there, and `ready` those that load what it needs."""
        self._lock = threading.Condition()
        self._jobs: list[_Job] = []
        self._closed = False
        self._others = 0  # programs under way that are not the first of their requests
        self._waiting: list[tuple[_Step, bytes]] = []  # for processes that load; there is a thread for each
        self._timer: threading.Timer | None = None
        self._dead: set[int] = set()
        count = max(1, min(MOST_PROCESSES, knobs.usable_processors() // 2))
        self._loader = Loader(ready)
        self._processes = [CompilingProcess(build, self._loader, timeout, self._died) for _ in range(count)]
        self._idle = list(self._processes)  # those that no thread asks
        # A child of a fork has neither the threads nor the right to the sockets.
        self._owner = os.getpid()
        tell_in_child(self)
        if self._loader.loads and (ahead := min(count, knobs.usable_processors() // TO_SPARE)):
            # Starting them takes a few milliseconds, which no caller waits for.
            with suppress(RuntimeError):  # there are too many threads: they are started later
                threading.Thread(target=self._start, args=(ahead,), name="tessera compiling", daemon=True).start()

    def forked(self) -> None:
        """In the child of a fork: it has neither the threads nor the right to the sockets, and compiles nothing."""
        self._lock, self._jobs, self._waiting, self._timer = threading.Condition(), [], [], None
        self._loader.forked()
        for process in self._processes:
            process.forked()

    def _died(self, process: int) -> bool:
        """Counts a process that has died; whether another one may follow."""
        with self._lock:
            if not self._closed:
                self._dead.add(process)
        return self.is_usable

    @property
    def deaths(self) -> int:
        """How many processes have died."""
        return len(self._dead)

    @property
    def pid(self) -> int | None:
        """The number of the first process; None where there is none."""
        return self._processes[0].pid

    @property
    def pids(self) -> list[int]:
        """The numbers of all processes."""
        return [pid for process in self._processes if (pid := process.pid) is not None]

    @property
    def is_usable(self) -> bool:
        return self.deaths < MOST_DEATHS and not self._closed and os.getpid() == self._owner

    def can_compile(self, packed: bytes | None) -> bool:
        return packed is not None and self.is_usable

    @property
    def is_ready(self) -> bool:
        with self._lock:
            if len(self._idle) < len(self._processes):  # it is at work
                return True
            return any(process.is_ready for process in self._idle)

    @property
    def has_room(self) -> bool:
        return len(self._processes) >= MOST_PROCESSES

    @property
    def is_free(self) -> bool:
        with self._lock:
            return not any(job.left and not job.has_begun for job in self._jobs)

    def prepare(self) -> None:
        if self.is_usable and self.deaths == 0:
            self._start(len(self._processes))

    def _start(self, count: int) -> None:
        for process in self._processes[:count]:
            with suppress(Exception):  # then the first request says so
                process.started()

    def compile_now(self, packed: bytes | None) -> bool:
        if not self.can_compile(packed):
            return False
        assert packed is not None
        with self._lock:
            process = next((one for one in self._idle if one.is_ready), None)
            if process is None:
                return False
            self._idle.remove(process)
        try:
            return self._compiled_by(process, packed)
        finally:
            with self._lock:
                self._idle.append(process)
                self._start_threads()

    def _compiled_by(self, process: CompilingProcess, packed: bytes) -> bool:
        try:
            good, data = process.asked(packed)
        except Exception as error:  # the caller goes on without it
            status = process.give_up()
            if not self._closed:
                warn(f"the process that compiles has ended, status {status}: {error}; it is compiled here")
            return False
        return good and json.loads(data) == [None]  # compiling it here gives the error

    def submit(self, *requests: Request) -> None:
        jobs: list[_Job] = []
        for request in requests:
            if not self.is_usable and not request.recalls:
                _fail(request, "there is no process that compiles")
            elif not self.is_usable or not (request.levels or request.is_open):
                request.site.compiled(request, [])
            else:
                jobs.append(_Job(request))
        with self._lock:
            if not self._closed:
                self._jobs += jobs
                self._start_threads()

    def _start_threads(self) -> None:
        """Starts threads for programs that are not started. The caller holds the lock."""
        self._set_timer()
        for _ in range(sum(len(job.left) for job in self._jobs if not self._wait(job))):
            if not self._idle or self._closed:
                return
            process = max(self._idle, key=lambda one: (one.is_ready, one.pid is not None))
            self._idle.remove(process)
            try:
                threading.Thread(target=self._work, args=(process,), name="tessera compiling", daemon=True).start()
            except RuntimeError:  # there are too many threads: the next request tries again
                self._idle.append(process)
                return

    def _set_timer(self) -> None:
        """Sets a timer for programs that wait. The caller holds the lock."""
        later = [wait for job in self._jobs if job.left and (wait := self._wait(job)) > 0]
        if later and self._timer is None:
            timer = threading.Timer(min(later), self._wake)
            timer.daemon = True
            with suppress(RuntimeError):  # as in `_start_threads`
                timer.start()
                self._timer = timer

    def _wait(self, job: _Job) -> float:
        return job.patience() if self.has_room else 0.0

    def _wake(self) -> None:
        with self._lock:
            self._timer = None
            self._start_threads()

    def _next(self) -> _Step | None:
        """Starts with a program: the first of each request before the second of any. The caller holds the lock."""
        ready = [one for one in self._jobs if one.left and not self._wait(one)]
        if self._others >= max(1, len(self._processes) // 2):
            ready = [one for one in ready if not one.has_begun]
        if self._closed or not ready:
            return None
        job = min(ready, key=lambda one: len(one.request.levels) - len(one.left))
        is_another = job.has_begun
        self._others += is_another
        job.under_way += 1
        return _Step(job, job.left.popleft(), is_another)

    def _work(self, process: CompilingProcess) -> None:
        """Has a process make programs as long as there are any to make."""
        while True:
            with self._lock:
                step = self._next()
                if step is None:
                    self._idle.append(process)
                    if not self._closed:
                        self._set_timer()
                    return
            before_work()
            packed = self._run(step, self._packed_request)
            if packed is not None:
                step, packed = self._claim_step(step, packed, process)
                before_work()
                self._run(step, self._make, packed, process)
            self._end(step)

    def _run(self, step: _Step, work: Callable[..., _T], *given: object) -> _T | None:
        """Does something for a step; a call must not fail because of it."""
        try:
            # Settings that hold around the request hold here; a context is for one thread at a time.
            return step.job.request.context.copy().run(work, step, *given)
        except Exception as error:
            if not self._closed:
                request = step.job.request
                request.site.aborted(step.level or TierLevel(request.tier), f"{type(error).__name__}: {error}")
            return None

    def _packed_request(self, step: _Step) -> bytes | None:
        """The packed request for a process; None where nothing is left to do."""
        request, level = step.job.request, step.level
        site = request.site
        if level is not None and (found := request.known(level)) is not None:
            self._take_in(step.job, level, found)
            return None
        if request.recalls:
            return None
        packed = site.client.request(request.call, [] if level is None else [level])
        if packed is None and level is None:
            request.settle()
        elif packed is None and site.can_tier_up:
            site.can_tier_up = False  # nothing of it can ever be sent
            why = "it cannot be sent to another process; background_compilation=False compiles it here"
            site.aborted(level or TierLevel(request.tier), why)
        return packed

    def _claim_step(self, step: _Step, packed: bytes, process: CompilingProcess) -> tuple[_Step, bytes]:
        """The step for a process that has loaded a compiler: the first that is ready takes the most urgent."""
        own = step, packed
        with self._lock:
            self._waiting.append(own)
        is_ready = False
        with suppress(Exception):  # then the request fails with the reason
            is_ready = self.is_usable and process.load()
        with self._lock:
            wanted = min(self._waiting, key=lambda one: one[0].is_another)
            if not is_ready:  # its request fails in any case
                wanted = own if own in self._waiting else self._waiting[-1]
            self._waiting.remove(wanted)
        return wanted

    def _make(self, step: _Step, packed: bytes, process: CompilingProcess) -> None:
        job, level, _ = step
        if level is None:
            # To find levels takes a compiler, too: the process that has one stores them on the disk.
            if self.is_usable:
                self._compiled_by(process, packed)
            job.request.settle()
        elif (found := self._compiled(job.request, level, packed, process)) is not None:
            self._take_in(job, level, found)

    def _end(self, step: _Step) -> None:
        job = step.job
        with self._lock:
            job.under_way -= 1
            self._others -= step.is_another
            if step.level is None:
                job.left.extend(job.request.levels)
                self._start_threads()
            over = not job.left and not job.under_way
        if over:
            job.request.context.copy().run(self._hand_over, job)

    def _take_in(self, job: _Job, level: TierLevel, found: Compiled) -> None:
        request = job.request
        if not self._closed:
            time.sleep(_PAUSE)
            program = request.installed(level, found)
            time.sleep(_PAUSE)
            for _ in request.bound_ahead(program):
                time.sleep(_PAUSE)
            request.site.arrived(request, level, found)
        job.done.append((level, found))

    def _hand_over(self, job: _Job) -> None:
        site = job.request.site
        try:
            if not self._closed:
                log("recompiles", f"{site.name}: {len(job.done)} programs were compiled by another process")
                job.done.sort(key=lambda one: job.request.levels.index(one[0]))
                site.compiled(job.request, job.done)
        except Exception as error:  # as above
            warn(f"{site.name}: what was compiled cannot be used: {type(error).__name__}: {error}")
        finally:
            with self._lock:
                if job in self._jobs:
                    self._jobs.remove(job)
                self._lock.notify_all()

    def _compiled(
        self, request: Request, level: TierLevel, packed: bytes, process: CompilingProcess
    ) -> Compiled | None:
        """One program of a request, made there and loaded here; None where it is given up."""
        site = request.site
        if not self.is_usable:
            if not self._closed:
                site.aborted(level, "there is no process that compiles")
            return None
        try:
            good, data = process.asked(packed)
        except (OSError, EOFError) as error:
            status = process.give_up()
            if not self._closed:
                said = str(error) or type(error).__name__
                site.aborted(level, f"the process that compiles has ended, status {status}: {said}")
            return None
        (wrong,) = json.loads(data) if good else (data.decode(errors="replace"),)
        if wrong is not None:
            site.aborted(level, wrong)
            return None
        return request.found(level)

    def wait(self, timeout: float) -> bool:
        with self._lock:
            return self._lock.wait_for(lambda: not self._jobs, timeout)

    def close(self) -> None:
        """Ends the processes; requests that wait are left."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            self._jobs.clear()
            self._lock.notify_all()
            if self._timer is not None:
                self._timer.cancel()
        for process in self._processes:
            process.close()
        self._loader.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, anything may be gone
            self.close()


def _fail(request: Request, why: str) -> None:
    for level in request.levels or [TierLevel(request.tier)]:
        request.site.aborted(level, why)
    request.site.compiled(request, [])
