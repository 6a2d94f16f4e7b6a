"""Cases in a process of their own: a crash, a hang or a lack of memory there becomes a row, and the run goes on.

`Isolated` is the side that asks; a process that runs `main` is the side that works. They share a pipe for cases
and rows, and a page of memory in which the worker notes who is at work, so that a crash has a name.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import mmap
import os
import resource
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from tessera import knobs, subprocesses
from tessera.bench import registry
from tessera.bench.instruments import clock
from tessera.bench.instruments.hardware import available_memory_bytes
from tessera.bench.measuring import figures
from tessera.bench.measuring.cases import Interrupted, implementations_of, run_case
from tessera.bench.measuring.definition import Setting
from tessera.bench.measuring.frameworks import has_gpu
from tessera.bench.measuring.precision import precision
from tessera.bench.operator import OperatorBenchmark
from tessera.bench.processes.children import Child, death_in_words, end_with_parent, kind_of_death
from tessera.bench.results.definitions import BenchError, BenchmarkConfig, BenchmarkMode
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, Row
from tessera.errors import TesseraError

_GRACE_SECONDS = 20.0
"""Seconds for a worker to finish its sample when a run is interrupted."""
_POLL_SECONDS = 0.05
_ASLEEP_SECONDS = 0.3
"""Between two looks, when this process itself was not running."""
_START_SECONDS = 120.0
"""Seconds for a worker to load everything."""
REGRESSION_PROCESSES = 3
"""A regression run takes its samples in this many processes: memory lies elsewhere in each."""


@dataclasses.dataclass(frozen=True)
class Job:
    """One case, as the worker gets it."""

    benchmark: str
    size: dict[str, Any]
    precision: str
    config: BenchmarkConfig
    ceilings: dict[str, Any]
    only: list[str]


class _Page:
    """The shared page: whether to stop, how many implementations were entered, and the last one's name."""

    _SIZE = 4096

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, self._SIZE)

    @classmethod
    def make(cls) -> _Page:
        descriptor = os.memfd_create("tessera-bench")
        os.ftruncate(descriptor, cls._SIZE)
        return cls(descriptor)

    def close(self) -> None:
        self._memory.close()
        os.close(self.descriptor)

    def stop(self) -> None:
        self._memory[0] = 1

    def stopping(self) -> bool:
        return self._memory[0] == 1

    def entering(self, implementation: str) -> None:
        name = implementation.encode()[:255]
        self._memory[1] = 0
        self._memory[16 : 16 + len(name)] = name
        self._memory[1] = len(name)
        self._memory[8:16] = (self.entered + 1).to_bytes(8, "little")

    @property
    def entered(self) -> int:
        return int.from_bytes(self._memory[8:16], "little")

    @property
    def at_work(self) -> str:
        return self._memory[16 : 16 + self._memory[1]].decode()


class _GoneError(Exception):
    """The worker died or was ended: what kind of failure, in words, and its last words."""

    def __init__(self, kind: str, message: str, culprit: str, trace: str) -> None:
        super().__init__(message)
        self.kind, self.culprit, self.trace = kind, culprit, trace


class Isolated:
    """Runs cases in a worker; benchmarks are found there by name, after running the same files."""

    def __init__(self, files: Sequence[Path] = (), *, hang_seconds: float = 300.0) -> None:
        self._files, self._hang_seconds = list(files), hang_seconds
        self._child: Child | None = None
        self._page: _Page | None = None
        self._ready, self._threads = False, 0
        # When this process last looked for an answer, and how long it stood still instead since it asked.
        self._looked = self._stalled = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run_case(self, setting: Setting) -> list[Row]:
        benchmark, size, config = setting.benchmark, setting.size, setting.config
        benchmark.check(size)
        names = [one.name for one in implementations_of(benchmark, config, None)]
        job = Job(benchmark.name, dict(size), setting.precision.name, config, dict(setting.ceilings), names)
        if config.mode is not BenchmarkMode.REGRESSION:
            try:
                return self._with_config(self._run(job), config)
            except Interrupted as interrupt:
                raise Interrupted(self._with_config(interrupt.rows, config)) from None
        shorter = dataclasses.replace(
            config,
            seconds_per_case=config.seconds_per_case / REGRESSION_PROCESSES,
            timing_iterations=-(-config.timing_iterations // REGRESSION_PROCESSES),
        )
        found: list[list[Row]] = []
        for _ in range(REGRESSION_PROCESSES):
            self.close()
            try:
                found.append(self._run(dataclasses.replace(job, config=shorter)))
            except Interrupted as interrupt:
                whole = [*found, interrupt.rows] if interrupt.rows else found
                raise Interrupted(self._with_config(figures.merged(whole, config), config)) from None
        return self._with_config(figures.merged(found, config), config)

    @staticmethod
    def _with_config(rows: Sequence[Row], config: BenchmarkConfig) -> list[Row]:
        """Rows come back from the worker without the configuration that it was sent."""
        return [dataclasses.replace(row, config=config) if isinstance(row, BenchmarkResult) else row for row in rows]

    def _run(self, job: Job) -> list[Row]:
        """Runs a case, again without the implementation that killed the worker; once more if none was entered."""
        failed: list[Row] = []
        left, unexplained = list(job.only), 0
        while left:
            try:
                rows = [*failed, *self._ask(dataclasses.replace(job, only=left))]
                return sorted(rows, key=lambda row: _index_of(job.only, row.implementation))
            except _GoneError as gone:
                culprit = next((name for name in left if _is_named(gone.culprit, name)), None)
                if culprit is not None:
                    left.remove(culprit)
                    failed.append(_failure(job, culprit, gone))
                    continue
                unexplained += 1
                if unexplained == 2:
                    return [*failed, *[_failure(job, name, gone) for name in left]]
        return failed

    def _ask(self, job: Job) -> list[Row]:
        page, child = self._started(job.config)
        connection = child.connection
        try:
            if not self._ready:
                self._looked = clock.now()
                self._reply(page, child)
                self._ready = True
            began, self._stalled = clock.now(), 0
            self._looked = began
            connection.send(job)
            kind, content, counted = self._reply(page, child)
        except (EOFError, OSError):
            raise self._gone(child) from None
        except KeyboardInterrupt:
            page.stop()
            rows = self._last_rows(connection) if self._ready else []
            self.close()
            raise Interrupted(rows) from None
        if kind == "error":
            raise content
        passed = (clock.now() - began - self._stalled) / 1e9
        # The worker's clock against ours, which nothing in the worker can reach.
        if counted > passed + 0.1 + self._stalled / 1e9 or counted < 0.9 * passed - 0.5:
            self.close()
            message = f"the worker's clock counted {counted:.2f} s while {passed:.2f} s passed: no time of it counts"
            return [_failure(job, row.implementation, _GoneError("refused", message, "", "")) for row in content]
        return content

    def _started(self, config: BenchmarkConfig) -> tuple[_Page, Child]:
        threads = config.threads or knobs.num_threads.value
        if self._page is not None and self._child is not None:
            if threads == self._threads:
                return self._page, self._child
            self.close()
        self._threads = threads
        page = self._page = _Page.make()
        # BLAS libraries make their threads when they are loaded. OpenBLAS's would spin for an eighth of a second
        # after each call; half a millisecond is enough where calls follow each other.
        environment = {"OPENBLAS_THREAD_TIMEOUT": "20"} | subprocesses.environment(
            OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads)
        )
        self._child = Child(
            "from tessera.bench.processes.worker import main; main(sys.argv[1:])",
            str(page.descriptor),
            *map(str, self._files),
            environment=environment,
            descriptors=[page.descriptor],
        )
        return page, self._child

    def _reply(self, page: _Page, child: Child) -> Any:
        """The worker's answer; a worker that enters no implementation for long hangs. Time asleep is not counted."""
        entered, since = page.entered, clock.now()
        limit = max(_START_SECONDS, self._hang_seconds) if not self._ready else self._hang_seconds
        answered = False
        while not answered:
            answered = child.connection.poll(_POLL_SECONDS)
            if not answered and child.process.poll() is not None:
                answered = child.connection.poll(0)
                if not answered:  # it is dead, though a child of its own may hold the pipe
                    raise EOFError
            gap, self._looked = clock.now() - self._looked, clock.now()
            if gap > _ASLEEP_SECONDS * 1e9:  # stopped, or the machine was suspended
                self._stalled, since = self._stalled + gap, since + gap
            if page.entered != entered:
                entered, since = page.entered, clock.now()
            if not answered and clock.now() - since > limit * 1e9:
                child.kill()
                raise self._gone(child, f"no answer for {limit:.0f} s", "hung")
        return child.connection.recv()

    def _last_rows(self, connection: Connection[Any, Any]) -> list[Row]:
        try:
            if connection.poll(_GRACE_SECONDS):
                kind, content, _ = connection.recv()
                return content if kind == "rows" else []
        except (EOFError, OSError, KeyboardInterrupt):
            pass
        return []

    def _gone(self, child: Child, why: str | None = None, kind: str = "crash") -> _GoneError:
        assert self._page is not None
        status, trace = child.ended()
        culprit, self._child = self._page.at_work, None
        self.close()
        if why is None:
            why, kind = death_in_words(status), kind_of_death(status)
        return _GoneError(kind, why, culprit, trace)

    def close(self) -> None:
        """Ends the worker, if there is one."""
        if self._child is not None:
            self._child.close()
        if self._page is not None:
            self._page.close()
        self._child = self._page = None
        self._ready = False


def _is_named(implementation: str, name: str) -> bool:
    """Ours may have an optimisation level behind its name."""
    return implementation == name or implementation.startswith(f"{name} O")


def _index_of(names: Sequence[str], implementation: str) -> int:
    return next((index for index, name in enumerate(names) if _is_named(implementation, name)), len(names))


def _failure(job: Job, implementation: str, gone: _GoneError) -> BenchmarkError:
    return BenchmarkError(
        str(gone),
        gone.kind,
        gone.trace or None,
        benchmark_name=job.benchmark,
        problem_size=job.size,
        precision=job.precision,
        implementation=implementation,
        threads=job.config.threads or knobs.num_threads.value,
    )


def serve(connection: Connection[Any, Any], page: _Page) -> None:
    """The worker's loop: a case, its rows, the next case."""
    connection.send("ready")
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        began = clock.now()
        try:
            reply = "rows", _rows_of(job, page)
        except Exception as error:  # of a benchmark, not of an implementation: it belongs to the caller
            reply = "error", _carried(error)
        connection.send((*reply, (clock.now() - began) / 1e9))


def _rows_of(job: Job, page: _Page) -> list[Row]:
    benchmark = registry.get(job.benchmark)
    assert isinstance(benchmark, OperatorBenchmark)
    benchmark.setup(job.config)
    try:
        rows = run_case(
            benchmark, job.size, precision(job.precision), job.config, only=job.only, ceilings=job.ceilings, watch=page
        )
    except Interrupted as interrupt:
        rows = interrupt.rows
    # The configuration is what was sent: it need not travel back.
    return [dataclasses.replace(row, config=None) if isinstance(row, BenchmarkResult) else row for row in rows]


def _carried(error: Exception) -> Exception:
    """The error as one that can travel to another process."""
    if isinstance(error, TesseraError | MemoryError):
        return error
    return BenchError(f"{type(error).__name__}: {error}", hint="run with --in-process to see where")


def main(arguments: Sequence[str]) -> None:
    faulthandler.enable()
    end_with_parent()
    connection: Connection[Any, Any] = Connection(int(arguments[0]))
    page = _Page(int(arguments[1]))
    if not has_gpu():  # drivers of GPUs map far more than there is
        limit = available_memory_bytes()
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    for path in arguments[2:]:
        registry.load(Path(path))
    serve(connection, page)
