"""The world that effects act on: random stream, state slots, ranks of a mesh, output."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from tessera.dtypes import philox
from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, f32, f64
from tessera.errors import EffectError
from tessera.interpreters.core.printing import PrintRecord, show, write_out
from tessera.ir.common import reductions

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")
_STREAM = threading.Lock()


class Communicator(Protocol):
    """One rank's end of a mesh axis."""

    def exchange(self, what: str, value: Array) -> list[Array]:
        """Gives every rank's value, in rank order; all ranks must ask for the same `what`."""
        ...


@dataclass
class Machine:
    """Everything effects touch. `seed` and `position` are the random stream; slots outlive calls.

    So many `workers` run a function for persistent CTAs, if it has as many program instances. With `chance`, the order
    in which warp groups go on is drawn; a right kernel gives the same results in every order.
    """

    seed: int = 0
    position: int = 0
    slots: dict[str, Array] = field(default_factory=dict[str, Array])
    axes: Mapping[str, Communicator] = field(default_factory=dict[str, Communicator])
    write: Callable[[str], object] = write_out
    ctas: int = 3
    chance: np.random.Generator | None = None
    _records: list[PrintRecord] = field(default_factory=list[PrintRecord], repr=False)

    def draw(self, distribution: str, dtype: DType, shape: Sequence[int]) -> Array:
        """The next numbers of the stream: uniform on [0, 1) or standard normal."""
        count = math.prod(shape)
        start = self._take(count)
        if distribution == "uniform":
            drawn, source = philox.uniform_in(dtype, philox.random_bits(self.seed, start, count)), f64
        else:
            drawn, source = philox.normal(self.seed, start, count), f32
        return cast(drawn, source, dtype, seed=self.seed, offset=start).reshape(tuple(shape))

    def _take(self, count: int) -> int:
        """Reserves positions of the random stream; several threads may call it."""
        with _STREAM:
            start, self.position = self.position, self.position + count
        return start

    def combine(self, kind: str, axis: str, dtype: DType, value: Array) -> Array:
        """The values of all ranks of an axis, folded."""
        found = self.exchange(axis, f"all_reduce<{kind}> of {value.shape} {dtype}", value)
        return reductions.apply(kind, np.stack(found), dtype, [0])

    def show(self, label: str, value: Array) -> None:
        """Shows a labelled array to people."""
        self.write(f"{label} {value}\n")

    def record(self, one: PrintRecord) -> None:
        """Keeps a print until the end of `recording`."""
        self._records.append(one)

    @contextmanager
    def recording(self) -> Generator[None]:
        """In the body of the `with` statement prints may be recorded, which are shown behind it."""
        try:
            yield
        finally:
            records, self._records = self._records, []
            show(records, self.write)

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
        self.size = size
        self.changed = threading.Condition()
        self.requests: dict[int, tuple[str, Array]] = {}
        self.stopped: set[int] = set()

    def exchange(self, rank: int, what: str, value: Array) -> list[Array]:
        with self.changed:
            # Who waits keeps the requests of this round, so that the next one may start at once.
            requests = self.requests
            requests[rank] = (what, value)
            if len(requests) == self.size:
                self.requests = {}
                self.changed.notify_all()
            self.changed.wait_for(lambda: len(requests) == self.size or self.stopped)
            if len(requests) < self.size:
                raise EffectError(
                    f"rank {rank} waits in {what} for rank {min(self.stopped)}, which has stopped",
                    hint="every rank must reach the same collectives in the same order",
                )
        asked = [requests[each][0] for each in range(self.size)]
        if len(set(asked)) > 1:
            raise EffectError(
                f"ranks meet in different collectives: {', '.join(asked)}",
                hint="every rank must reach the same collectives in the same order",
            )
        return [requests[each][1] for each in range(self.size)]

    def leave(self, rank: int) -> None:
        """Ends waits for this rank: it has stopped."""
        with self.changed:
            self.stopped.add(rank)
            self.changed.notify_all()


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
            meeting.leave(rank)

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        # The first in time: a rank that only lost its partner comes after the one it lost.
        raise next(iter(failures.values()))
    return [results[rank] for rank in range(size)]
