"""Runs tasks in fresh processes on shares of this machine's processors. A killed process is an outcome as well.

`Worker` is the side that asks; `main` is the loop of the process that works. They share a pipe.
"""

from __future__ import annotations

import faulthandler
import pickle
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Protocol, cast

from tessera import subprocesses
from tessera.bench.processes.children import Child, death_in_words, end_with_parent, kind_of_death
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkResult
from tessera.errors import TesseraError

LOST = "lost"
# Libraries make their threads when they are loaded, and threads inherit processors: both are set before any import.
_BOOT = (
    "import os; os.sched_setaffinity(0, map(int, sys.argv[2].split(','))); "
    "from tessera.bench.processes.device_process import main; main(int(sys.argv[1]))"
)
_THREADS = ("TESSERA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# A worker is no rank, even if the process that asks is one.
_OF_LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPI_LOCAL")


@dataclass(frozen=True)
class Task:
    """A function by its name, `module:qualname`, and its arguments. One that takes longer than `seconds` is ended.

    The arguments are pickled, so that only the process that works has to know what they are.
    """

    function: str
    arguments: bytes
    seconds: float

    @classmethod
    def of(cls, function: Callable[..., Any], arguments: Sequence[Any], seconds: float) -> Task:
        name = reference(function)
        try:
            return cls(name, pickle.dumps(tuple(arguments)), seconds)
        except Exception as error:
            raise BenchError(
                f"the arguments of {name} cannot be sent to another process: {error}", hint="give what can be pickled"
            ) from None


@dataclass(frozen=True)
class Outcome:
    """The result of the function, or the reason why there is none."""

    value: Any = None
    error: str | None = None
    kind: str = "exception"
    """As in `BenchmarkError.error_type`; `lost` for a rank that no longer answers."""
    trace: str | None = None


class Device(Protocol):
    """An executor of tasks: a worker here, or another rank, which has a worker of its own."""

    def give(self, task: Task) -> None: ...

    def poll(self) -> Outcome | None:
        """The outcome of the task, or None while there is none. Never waits."""
        ...

    def close(self) -> None: ...


def reference(function: Callable[..., Any]) -> str:
    """The name by which a fresh process finds a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    hint = "define it at the top of a module that can be imported; what it needs are its arguments"
    if not module or not name or module == "__main__" or "<" in name:
        raise BenchError(
            f"devices are processes of their own: they cannot find {name or repr(function)} of {module or 'no module'}",
            hint=hint,
        )
    made = f"{module}:{name}"
    try:
        found = resolve(made)
    except (ImportError, AttributeError) as error:
        raise BenchError(f"devices cannot import {made}: {error}", hint=hint) from None
    if found is not function:
        raise BenchError(f"{made} is another object than the function that was given", hint=hint)
    return made


def resolve(name: str) -> Any:
    """The function that a name of `reference` stands for."""
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), import_module(module))


def shares(processors: Sequence[int], count: int) -> list[list[int]]:
    """Equal shares of processors; what does not divide is left idle. More shares than processors: some meet."""
    each = max(1, len(processors) // count)
    return [[processors[(each * index + one) % len(processors)] for one in range(each)] for index in range(count)]


class Worker:
    """A process on some processors, started when it is first needed and again when it has died."""

    def __init__(self, processors: Sequence[int], threads: int) -> None:
        self.processors, self.threads = list(processors), threads
        self._child: Child | None = None
        self._task: Task | None = None
        self._began = 0.0
        self._refused: Outcome | None = None

    def give(self, task: Task) -> None:
        assert self._task is None, "one task at a time"
        if self._child is not None and self._child.process.poll() is not None:
            self.close()  # it died after its last task, for which no reply is awaited
        child = self._child = self._child or self._start()
        self._task, self._began = task, time.monotonic()
        try:
            child.connection.send(task)
        except OSError:
            self._refused = self._death(child)

    def poll(self) -> Outcome | None:
        if self._task is None:
            return None
        outcome = self._refused or self._answer(self._task)
        if outcome is not None:
            self._task = self._refused = None
        return outcome

    def _answer(self, task: Task) -> Outcome | None:
        child = self._child
        assert child is not None
        try:
            if child.connection.poll():
                return child.connection.recv()
        except (EOFError, OSError):
            return self._death(child)
        except Exception as error:  # a value that cannot be read here
            return failure(error)
        if time.monotonic() - self._began > task.seconds:
            child.kill()
            return self._death(child, f"no answer for {task.seconds:.0f} s; the process was ended")
        return None

    def _start(self) -> Child:
        around = subprocesses.environment(**dict.fromkeys(_THREADS, str(self.threads)))
        own = {name: value for name, value in around.items() if not name.startswith(_OF_LAUNCHERS)}
        return Child(_BOOT, ",".join(map(str, self.processors)), environment=own)

    def _death(self, child: Child, why: str | None = None) -> Outcome:
        status, trace = child.ended()
        self._child = None
        if why is not None:
            return Outcome(error=why, kind="hung", trace=trace or None)
        return Outcome(error=death_in_words(status), kind=kind_of_death(status), trace=trace or None)

    def close(self) -> None:
        """Ends the process, if there is one; a task that it is at is given up."""
        if self._child is None:
            return
        if self._task is not None:
            self._child.kill()
        self._child.close()
        self._child = self._task = self._refused = None


def failure(error: BaseException) -> Outcome:
    """An exception as an outcome."""
    message = error.message if isinstance(error, TesseraError) else f"{type(error).__name__}: {error}"
    kind = "out_of_memory" if isinstance(error, MemoryError) else "exception"
    return Outcome(error=message, kind=kind, trace="".join(traceback.format_exception(error)))


def run(task: Task) -> Outcome:
    """Does a task here."""
    try:
        return Outcome(resolve(task.function)(*pickle.loads(task.arguments)))
    except (Exception, SystemExit) as error:
        return failure(error)


def figures_of(function: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Calls a user's function, on its device; its figures as a mapping."""
    returned: Any = resolve(function)(*arguments)
    found: Mapping[str, Any] = {}
    if isinstance(returned, BenchmarkResult):
        found = {**vars(returned), "config": None}
    elif isinstance(returned, Mapping):
        found = cast("Mapping[str, Any]", returned)
    if not isinstance(found.get("latency_ms"), (int, float)):
        raise BenchError(
            f"{function} must return a mapping with latency_ms; got {returned!r}",
            hint="return {'latency_ms': …, 'throughput_ops_per_sec': …}",
        )
    return dict(found)


def main(descriptor: int) -> None:
    """The loop of the process that works: a task, its outcome, the next task."""
    faulthandler.enable()
    end_with_parent()  # launchers kill ranks, and what ranks have started must not live on
    connection: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            outcome = run(connection.recv())
            connection.send(outcome)
        except (EOFError, OSError):
            return
        except Exception as error:  # a value that cannot be sent
            connection.send(failure(error))
