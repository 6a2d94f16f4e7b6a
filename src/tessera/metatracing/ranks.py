"""Tracing of collectives: how long they took, the waiting of ranks, and the bytes that were sent.

`tessera.distributed` calls listeners for each collective; a tracer listens and finds patterns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

_MOST_KEPT = 4096


class CollectiveEvent(NamedTuple):
    """One collective as one rank saw it. Times are nanoseconds.

    `waited` passed until the last rank had come, `took` is everything, waiting included. `work` is the time of each
    rank, in order, between its last collective and this one: so no clocks have to agree. `sent` counts the bytes that
    left this rank.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    sent: int
    timestamp: int
    waited: int
    took: int
    rank: int
    world_size: int
    work: tuple[int, ...]


Listener = Callable[[CollectiveEvent], None]
LISTENERS: list[Listener] = []
"""Functions that are called for every collective of this process."""


@dataclass(frozen=True)
class CollectivePattern:
    """Collectives of one kind over tensors of one shape: how often they came, and what they cost this rank."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    nbytes: int
    total_ms: float
    waited_ms: float


@dataclass(frozen=True)
class LoadImbalanceEvent:
    """Ranks that came to a collective with different amounts of work behind them.

    `imbalance` is how much longer the slowest worked than all on average: 0 where all are alike.
    """

    kind: str
    timestamp: int
    work_ms: tuple[float, ...]
    imbalance: float
    slowest_rank: int
    waited_ms: float


@dataclass(frozen=True)
class NetworkUtilization:
    """The bytes that left this rank in collectives of one kind, and their rate once all ranks were there."""

    kind: str
    bytes_sent: int
    gigabytes_per_second: float | None


@dataclass(frozen=True)
class DistributedTrace:
    """The collectives of a stretch of the user's code, on one rank."""

    rank: int
    world_size: int
    all_reduce_patterns: tuple[CollectivePattern, ...]
    all_gather_patterns: tuple[CollectivePattern, ...]
    other_patterns: tuple[CollectivePattern, ...]
    load_imbalance: tuple[LoadImbalanceEvent, ...]
    network_stats: tuple[NetworkUtilization, ...]
    collective_ms: float
    result: Any = None
    """The result of the traced function."""


class DistributedExecutionTracer:
    """Listens to this process's collectives: from `start` to `stop`, or as long as a `with` is around.

    Events with an imbalance of at least `threshold` are listed as such. The last few thousand events are kept.
    """

    def __init__(self, rank: int = 0, world_size: int = 1, *, threshold: float = 0.1) -> None:
        self.rank, self.world_size, self.threshold = rank, world_size, threshold
        self.events: deque[CollectiveEvent] = deque(maxlen=_MOST_KEPT)
        self._listener: Listener = self.events.append

    @property
    def is_listening(self) -> bool:
        return any(one is self._listener for one in LISTENERS)

    def start(self) -> Self:
        if not self.is_listening:
            LISTENERS.append(self._listener)
        return self

    def stop(self) -> None:
        LISTENERS[:] = [one for one in LISTENERS if one is not self._listener]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def trace_distributed_execution(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> DistributedTrace:
        """Runs a function, and traces the collectives in it."""
        before, was_listening = len(self.events), self.is_listening
        kept = list(self.events)
        self.start()
        try:
            result = function(*args, **kwargs)
        finally:
            if not was_listening:
                self.stop()
        events = list(self.events)
        # A full ring has lost its oldest events meanwhile.
        added = events[before:] if len(events) > before else [one for one in events if one not in kept]
        return self._trace_of(added, result)

    def trace(self) -> DistributedTrace:
        """The trace of all events so far."""
        return self._trace_of(list(self.events), None)

    def _trace_of(self, events: list[CollectiveEvent], result: Any) -> DistributedTrace:
        patterns = _patterns(events)
        named = ("all_reduce", "all_gather")
        rank, size = (events[-1].rank, events[-1].world_size) if events else (self.rank, self.world_size)
        return DistributedTrace(
            rank,
            size,
            tuple(one for one in patterns if one.kind == "all_reduce"),
            tuple(one for one in patterns if one.kind == "all_gather"),
            tuple(one for one in patterns if one.kind not in named),
            tuple(one for one in map(imbalance_of, events) if one.imbalance >= self.threshold),
            tuple(_network(events)),
            sum(one.took for one in events) / 1e6,
            result,
        )


def enable_distributed_tracing(*, threshold: float = 0.1) -> DistributedExecutionTracer:
    """A tracer that listens to this process's collectives from now on."""
    return DistributedExecutionTracer(threshold=threshold).start()


def imbalance_of(event: CollectiveEvent) -> LoadImbalanceEvent:
    """How unevenly the work before a collective was spread."""
    work = [one / 1e6 for one in event.work]
    mean = sum(work) / len(work) if work else 0.0
    most = max(work, default=0.0)
    slowest = work.index(most) if work else 0
    return LoadImbalanceEvent(
        event.kind, event.timestamp, tuple(work), most / mean - 1 if mean > 0 else 0.0, slowest, event.waited / 1e6
    )


def _patterns(events: Iterable[CollectiveEvent]) -> list[CollectivePattern]:
    groups: dict[tuple[str, str, tuple[int, ...]], list[CollectiveEvent]] = {}
    for event in events:
        groups.setdefault((event.kind, event.dtype, event.shape), []).append(event)
    return [
        CollectivePattern(
            *key,
            len(group),
            group[0].nbytes,
            sum(one.took for one in group) / 1e6,
            sum(one.waited for one in group) / 1e6,
        )
        for key, group in groups.items()
    ]


def _network(events: Iterable[CollectiveEvent]) -> list[NetworkUtilization]:
    groups: dict[str, list[CollectiveEvent]] = {}
    for event in events:
        groups.setdefault(event.kind, []).append(event)
    found: list[NetworkUtilization] = []
    for kind, group in groups.items():
        sent, moving = sum(one.sent for one in group), sum(one.took - one.waited for one in group)
        found.append(NetworkUtilization(kind, sent, sent / moving if sent and moving > 0 else None))
    return found
