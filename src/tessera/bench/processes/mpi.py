"""Ranks of an MPI job in step, without any call that could wait for ever: rank 0 leads, and the others follow.

A rank's MPI process only passes tasks on to a worker of its own, so what crashes there never takes MPI down, and the
process is free to give a sign of life every second. After joining nothing is collective: with a dead rank that hangs.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tessera.bench.processes.device_process import LOST, Outcome, Task, Worker, shares
from tessera.bench.results.definitions import BenchError

_VARIABLES = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
_BEAT_SECONDS = 1.0
_IDLE_SECONDS = 0.002
_BUSY_SECONDS = 0.05
"""Between looks at a worker that measures: seldom, so as not to disturb it."""
_TICK_SECONDS = 0.5
"""The most silence that one look counts: a rank that was stopped itself must not blame the others."""
_FIRST_TIMES = 10.0
"""The first word of a rank may take so many times longer: it may have had other work."""
_FIRST_TAG, _TAGS = 1, 30000
_LEAVING_TAG = 0


def mpi_rank() -> tuple[int, int] | None:
    """This process's rank and the number of ranks; None if no MPI launcher started it. Asks the environment only."""
    for rank, size in _VARIABLES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return None


@dataclass(frozen=True)
class Member:
    """A rank, and where it runs."""

    rank: int
    host: str
    processors: tuple[int, ...]


def processors_of(crew: Mapping[int, Member], rank: int) -> list[int]:
    """A rank's processors: an equal share of its host's, unless the launcher has bound ranks to some already."""
    mates = sorted(one for one, member in crew.items() if member.host == crew[rank].host)
    masks = {crew[one].processors for one in mates}
    if len(masks) > 1:
        return list(crew[rank].processors)
    return shares(crew[rank].processors, len(mates))[mates.index(rank)]


class Link:
    """Messages to and from one other rank, and how long nothing has come."""

    def __init__(self, communicator: Any, rank: int, tag: int) -> None:
        self.rank, self.heard, self.silence = rank, False, 0.0
        self._communicator, self._tag = communicator, tag
        self._coming: list[Any] = []
        self._going: list[Any] = []
        self._looked = self._beaten = time.monotonic()

    def send(self, *message: Any) -> None:
        self._going.append(self._communicator.isend(message, self.rank, self._tag))

    def beat(self) -> None:
        """A sign of life, when it is time for one."""
        if time.monotonic() - self._beaten > _BEAT_SECONDS:
            self._beaten = time.monotonic()
            self.send("alive")

    def received(self) -> list[tuple[Any, ...]]:
        """Messages that have come since the last look; signs of life only end the silence."""
        now = time.monotonic()
        self.silence += min(now - self._looked, _TICK_SECONDS)
        self._looked = now
        self.sent()
        while (probed := self._communicator.improbe(self.rank, self._tag)) is not None:
            self._coming.append(probed.irecv())
        messages: list[tuple[Any, ...]] = []
        while self._coming:
            done, message = self._coming[0].test()
            if not done:
                break
            self._coming.pop(0)
            messages.append(message)
        if messages:
            self.silence, self.heard = 0.0, True
        return [message for message in messages if message[0] != "alive"]

    def sent(self) -> bool:
        """Whether all is on its way; long messages need the other side, so this is asked again and again."""
        self._going = [request for request in self._going if not request.test()[0]]
        return not self._going

    def gone(self, patience: float) -> bool:
        return self.silence > patience * (1.0 if self.heard else _FIRST_TIMES)


class RemoteRank:
    """Another rank, as rank 0 sees it."""

    def __init__(self, job: Job, link: Link) -> None:
        self._job, self._link = job, link
        self._number, self._waiting = 0, False

    def give(self, task: Task) -> None:
        self._number, self._waiting = self._number + 1, True
        if self._link.rank not in self._job.lost:
            self._link.send("task", self._number, task)

    def poll(self) -> Outcome | None:
        if not self._waiting:
            return None
        outcome = None
        if self._link.rank not in self._job.lost:
            for _, number, found in self._link.received():
                outcome = found if number == self._number else outcome
            if outcome is None and self._link.gone(self._job.patience):
                self._job.lose(self._link.rank)
        if outcome is None and (why := self._job.lost.get(self._link.rank)) is not None:
            outcome = Outcome(error=why, kind=LOST)
        self._waiting = outcome is None
        return outcome

    def close(self) -> None:
        """Its worker is closed by the rank itself, when it is told that the run is over."""


class Job:
    """The MPI job, as one of its ranks sees it; one for the life of the process."""

    patience = 30.0
    """Seconds without a sign of life after which a rank counts as lost, for good."""

    def __init__(self, rank: int, size: int, version: str, communicator: Any, finalize: Callable[[], None]) -> None:
        self.rank, self.size, self.version = rank, size, version
        self.lost: dict[int, str] = {}
        self._communicator, self._finalize = communicator, finalize
        self._runs = 0
        self._links: dict[int, Link] = {}

    @property
    def _others(self) -> Sequence[int]:
        return range(1, self.size) if self.rank == 0 else (0,)

    def lose(self, rank: int) -> None:
        self.lost[rank] = f"no sign of life for {self._links[rank].silence:.0f} s: the rank's process died or hangs"

    def begin(self) -> dict[int, Member]:
        """Starts a run: who takes part, and where. All ranks call it, each as often as the others."""
        self._runs += 1
        tag = _FIRST_TAG + self._runs % _TAGS
        self._links = {rank: Link(self._communicator, rank, tag) for rank in self._others}
        me = Member(self.rank, platform.node(), tuple(sorted(os.sched_getaffinity(0))))
        if self.rank == 0:
            return self._gather(me)
        self._links[0].send("hello", me)
        while True:
            for _, crew in self._heard_from_first():
                return crew
            time.sleep(_IDLE_SECONDS)

    def _gather(self, me: Member) -> dict[int, Member]:
        crew, missing = {0: me}, set(self._links) - set(self.lost)
        while missing:
            self.beat()
            for rank in sorted(missing):
                for _, member in self._links[rank].received():
                    crew[rank] = member
                if rank not in crew and self._links[rank].gone(self.patience):
                    self.lose(rank)
                if rank in crew or rank in self.lost:
                    missing.remove(rank)
            time.sleep(_IDLE_SECONDS)
        for rank in crew:
            if rank != 0:
                self._links[rank].send("crew", crew)
        return crew

    def beat(self) -> None:
        for rank, link in self._links.items():
            if rank not in self.lost:
                link.beat()

    def remote(self, rank: int) -> RemoteRank:
        return RemoteRank(self, self._links[rank])

    def end(self, value: Any) -> None:
        """Rank 0: the run is over, and this is what the others return. Those that seemed lost are told too."""
        for link in self._links.values():
            link.send("end", value, dict(self.lost))
        self._flush()

    def _flush(self) -> None:
        waited, alive = 0.0, [link for rank, link in self._links.items() if rank not in self.lost]
        while not all(link.sent() for link in alive) and waited < self.patience:
            time.sleep(_IDLE_SECONDS)
            waited += _IDLE_SECONDS

    def _heard_from_first(self) -> list[tuple[Any, ...]]:
        self.beat()
        messages = self._links[0].received()
        if not messages and self._links[0].gone(self.patience):
            self.lost[0] = "rank 0 is gone"
            raise BenchError(
                f"rank {self.rank}: no sign of life of rank 0 for {self._links[0].silence:.0f} s",
                hint="rank 0 collects the results; see what it printed last",
            )
        return messages

    def follow(self, worker: Worker) -> Any:
        """The other ranks: does what rank 0 asks for until the run is over; what `end` was given."""
        number = None
        # Ctrl-C reaches all ranks; rank 0 says what follows from it.
        held = signal.signal(signal.SIGINT, signal.SIG_IGN) if _may_set_signals() else None
        try:
            while True:
                for message in self._heard_from_first():
                    if message[0] == "end":
                        self.lost.update(message[2])
                        return message[1]
                    _, number, task = message
                    worker.give(task)
                if number is not None and (outcome := worker.poll()) is not None:
                    self._links[0].send("outcome", number, outcome)
                    number = None
                time.sleep(_IDLE_SECONDS if number is None else _BUSY_SECONDS)
        finally:
            if held is not None:
                signal.signal(signal.SIGINT, held)
            worker.close()

    def leave(self) -> None:
        """When the process ends: together, or without MPI's own farewell, which would wait for the lost for ever."""
        links = {rank: Link(self._communicator, rank, _LEAVING_TAG) for rank in self._others}
        waiting = [link for rank, link in links.items() if rank not in self.lost]
        if self.rank != 0:
            links[0].send("leaving", {})
        while waiting and not (self.rank == 0 and self.lost):
            for link in tuple(waiting):
                for _, lost in link.received():
                    self.lost.update(lost)
                if not link.heard and link.gone(self.patience):
                    self.lost[link.rank] = "it did not leave with the others"
                if link.heard or link.rank in self.lost:
                    waiting.remove(link)
            time.sleep(_IDLE_SECONDS)
        if self.rank == 0:
            for link in links.values():
                link.send("leave", dict(self.lost))
                link.sent()
        if not self.lost:
            self._finalize()


_job: list[Job] = []


def job(patience: float | None = None) -> Job:
    """The job that this process is a rank of. Loads MPI when it is first asked for."""
    if not _job:
        _job.append(_joined(patience or Job.patience))
    if patience is not None:
        _job[0].patience = patience
    return _job[0]


def _may_set_signals() -> bool:
    return threading.current_thread() is threading.main_thread()


def _joined(patience: float) -> Job:
    expected = mpi_rank()
    assert expected is not None, "asked for outside of an MPI job"
    # Joining is MPI's own, and waits for every rank. One that never comes must not hold the others: they end.
    faulthandler.dump_traceback_later(patience * _FIRST_TIMES, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        import mpi4py

        mpi4py.rc(finalize=False)
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise BenchError(
            f"started by an MPI launcher, but MPI cannot be loaded: {error}", hint="pip install tessera-lang[dist]"
        ) from None
    world: Any = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    if (rank, size) != expected:
        raise BenchError(
            f"the launcher calls this rank {expected[0]} of {expected[1]}, MPI calls it {rank} of {size}",
            hint="mpirun and mpi4py belong to different MPIs; use the mpirun that was installed beside mpi4py",
        )
    if _may_set_signals() and signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
        # Hydra's way to say that a rank died, where it was told not to kill the others.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    version = " ".join(MPI.Get_library_version().split("\n")[0].replace("Version:", "").split())
    made = Job(rank, size, version, world.Dup(), MPI.Finalize)
    faulthandler.cancel_dump_traceback_later()
    atexit.register(made.leave)
    return made
