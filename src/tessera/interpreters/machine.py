"""The world an interpreted program acts on: random stream, state slots, ranks of a mesh, output."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from tessera.errors import EffectError

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")


class Communicator(Protocol):
    """One rank's end of a mesh axis."""

    def exchange(self, what: str, value: Array) -> list[Array]:
        """Gives every rank's value, in rank order; all ranks must ask for the same `what`."""
        ...


@dataclass
class Machine:
    """Everything effects touch. `seed` and `position` are the random stream; slots outlive calls."""

    seed: int = 0
    position: int = 0
    slots: dict[str, Array] = field(default_factory=dict[str, Array])
    axes: Mapping[str, Communicator] = field(default_factory=dict[str, Communicator])
    write: Callable[[str], object] = sys.stdout.write

    def exchange(self, axis: str, what: str, value: Array) -> list[Array]:
        if axis not in self.axes:
            raise EffectError(
                f"collective over mesh axis {axis!r}, which this machine does not have",
                hint=f"known axes: {', '.join(self.axes) or 'none'}; give the machine a communicator for it",
            )
        return self.axes[axis].exchange(what, value)


class _Meeting:
    """Where threads that play ranks exchange values."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.requests: list[tuple[str, Array] | None] = [None] * size

    def exchange(self, rank: int, what: str, value: Array) -> list[Array]:
        self.requests[rank] = (what, value)
        try:
            self.barrier.wait()
            requests = [request for request in self.requests if request is not None]
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise EffectError(
                f"rank {rank} waits in {what} for a rank that has stopped",
                hint="every rank must reach the same collectives in the same order",
            ) from None
        if len({request for request, _ in requests}) > 1:
            raise EffectError(
                f"ranks meet in different collectives: {', '.join(request for request, _ in requests)}",
                hint="every rank must reach the same collectives in the same order",
            )
        return [value for _, value in requests]


@dataclass(frozen=True)
class _Rank:
    meeting: _Meeting
    rank: int

    def exchange(self, what: str, value: Array) -> list[Array]:
        return self.meeting.exchange(self.rank, what, value)


def run_ranks(size: int, axis: str, body: Callable[[int, Machine], T]) -> list[T]:
    """Runs `body(rank, machine)` on `size` threads that are the ranks of one mesh axis; gives their results."""
    meeting = _Meeting(size)
    results: dict[int, T] = {}
    failures: dict[int, BaseException] = {}

    def play(rank: int) -> None:
        try:
            results[rank] = body(rank, Machine(seed=rank, axes={axis: _Rank(meeting, rank)}))
        except BaseException as error:
            failures[rank] = error
        finally:
            if rank in failures:
                meeting.barrier.abort()

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        # The first cause rather than a rank that only lost its partner.
        causes = [e for e in failures.values() if "has stopped" not in str(e)]
        raise (causes or list(failures.values()))[0]
    return [results[rank] for rank in range(size)]
