"""The devices of a run: how they prepare, measure alone and measure together."""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tessera.bench.processes.device_process import Device, Outcome, Task, Worker, shares
from tessera.bench.processes.mpi import Job, Member, job, processors_of
from tessera.bench.results.definitions import BenchError
from tessera.errors import TesseraError

_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Together:
    """Outcomes of a measurement on several devices, by their ranks."""

    alone: Outcome
    """The first device's while the others waited; of a single device, its only one."""
    outcomes: dict[int, Outcome]


class Team:
    """The devices of a run, as seen by the process that leads it."""

    def __init__(self, devices: Mapping[int, Device], beat: Callable[[], None]) -> None:
        self.devices, self._beat = devices, beat

    def run(self, tasks: Mapping[int, Task]) -> dict[int, Outcome]:
        """Gives all tasks at once, and waits until the last one is done."""
        for rank, task in tasks.items():
            self.devices[rank].give(task)
        found: dict[int, Outcome] = {}
        while len(found) < len(tasks):
            self._beat()
            for rank in tasks:
                if rank not in found and (outcome := self.devices[rank].poll()) is not None:
                    found[rank] = outcome
            time.sleep(_POLL_SECONDS)
        return found

    def measure(self, prepare: Task, task: Task, failed: Callable[[Outcome], bool]) -> Together:
        """All prepare, the first one measures alone, all measure together. Who fails once is left out."""
        outcomes = self.run(dict.fromkeys(self.devices, prepare))
        ready = [rank for rank, outcome in outcomes.items() if not failed(outcome)]
        if not ready:
            return Together(Outcome(error="no device could prepare"), outcomes)
        alone = self.run({min(ready): task})[min(ready)] if len(self.devices) > 1 else None
        outcomes.update(self.run(dict.fromkeys(ready, task)))
        return Together(alone or outcomes[min(ready)], dict(sorted(outcomes.items())))


@dataclass
class TeamRun:
    """One run of a team: here, or as one of the ranks of an MPI job. All ranks come through here."""

    count: int | None
    """None: all ranks."""
    engine: str
    threads: int | None
    patience: float

    def __enter__(self) -> Self:
        self._job: Job | None = job(self.patience) if self.engine == "mpi" else None
        self.ended = False
        if self._job is None:
            available = tuple(sorted(os.sched_getaffinity(0)))
            count = self.count or 1
            each = shares(available, count)
            self.members = {number: Member(number, platform.node(), tuple(each[number])) for number in range(count)}
        else:
            crew = self._job.begin()
            self.members = {
                rank: dataclasses.replace(member, processors=tuple(processors_of(crew, rank)))
                for rank, member in crew.items()
            }
        return self

    @property
    def leads(self) -> bool:
        return self._job is None or self._job.rank == 0

    @property
    def size(self) -> int:
        return len(self.members) if self._job is None else self._job.size

    @property
    def mpi_version(self) -> str | None:
        """The MPI, in its own words."""
        return None if self._job is None else self._job.version

    def threads_of(self, rank: int) -> int:
        return self.threads or len(self.members[rank].processors)

    def _worker(self, rank: int) -> Worker:
        return Worker(self.members[rank].processors, self.threads_of(rank))

    def team(self, ranks: Iterable[int]) -> Team:
        """The devices to measure on. Ranks that were lost before are among them: each of their outcomes says so."""
        made = self._job
        if made is None:
            self._devices: dict[int, Device] = {rank: self._worker(rank) for rank in ranks}
            return Team(self._devices, lambda: None)
        self._devices = {rank: made.remote(rank) if rank else self._worker(rank) for rank in ranks}
        return Team(self._devices, made.beat)

    def follow(self) -> Any:
        assert self._job is not None
        self.ended = True
        value = self._job.follow(self._worker(self._job.rank))
        if isinstance(value, TesseraError):
            raise value
        return value

    def end(self, value: Any) -> Any:
        """Tells the other ranks that it is over, and what they return."""
        self.ended = True
        if self._job is not None:
            self._job.end(value)
        return value

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        for device in getattr(self, "_devices", {}).values():
            device.close()
        if not self.ended:
            self.end(BenchError(f"rank 0 ended the run: {error}", hint="see what rank 0 printed"))
