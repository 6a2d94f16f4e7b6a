"""Time and energy on a GPU: events, an L2 cache written over, graphs of ours and of torch's, copies' bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tessera.bench.instruments import clock
from tessera.bench.instruments.libraries import library
from tessera.bench.instruments.timers import EventTimer
from tessera.bench.results.definitions import BenchError
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.streams import Event, current_stream, synchronize
from tessera.runtime.device.device import Device, device

_CACHE_MULTIPLE = 2
"""The size of the memory that is written over, as a multiple of the L2 cache."""
_COPY_BYTES = 1 << 30
_COPY_REPEATS = 12
_STILL_BUSY_NS = 25_000
"""The longest wait for an idle GPU: a longer wait means that it was at work."""
_TICK_SECONDS = 3.0
"""NVML's counter moves several times in a second. If it does not move for so long, it is none."""
_ENERGY_SECONDS = 1.0
_HELD = 1.5
"""How long a GPU is kept busy, in units of what the host took."""
_CYCLES_PER_NS = 2.0
"""At least as fast as any GPU's clock."""


def make_event() -> Event:
    """An event that tells the time."""
    return Event(timing=True)


def event_timer() -> EventTimer:
    """Times what is between its start and stop on the current stream."""
    return EventTimer(make_event)


class Flush:
    """Writes over the L2 cache, on the current stream, without waiting for it."""

    def __init__(self, on: str | Device = "cuda:0") -> None:
        self._device = device(on)
        self._backend: Any = self._device.backend
        self._buffer = self._backend.allocate(_CACHE_MULTIPLE * Context.of(self._device.index).properties.l2_cache)

    def __call__(self) -> None:
        self._backend.fill_zeros(self._buffer.pointer, self._buffer.nbytes)


class OurGraph:
    """Calls of our kernels, built into a graph from their launch plans. Results live as long as it does."""

    def __init__(self, calls: Iterable[Callable[[], Any]]) -> None:
        from tessera.runtime.cuda.graphs import Graph

        self._graph = Graph()
        with self._graph:
            self.results: Sequence[Any] = [call() for call in calls]

    def hold(self) -> None:
        """A graph is one launch: the GPU need not wait for the host."""

    def replay(self) -> None:
        self._graph.replay()


class Queued:
    """Calls that no graph can hold, such as those of programs: queued behind a GPU that is kept busy meanwhile.

    The GPU then finds one launch behind the other, and the time between events is its own, as with a graph.
    """

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self._calls = calls
        self._cycles = 0
        self.results: Sequence[Any] = [call() for call in calls]
        synchronize()
        began = clock.now()
        self.replay()
        late = clock.now() - began
        synchronize()
        self._cycles = round(_HELD * late * _CYCLES_PER_NS)

    def hold(self) -> None:
        """Keeps the GPU busy, on the current stream, for longer than the host takes to start the calls."""
        library("torch").cuda._sleep(self._cycles)  # noqa: SLF001  (it has no other name)

    def replay(self) -> None:
        self.results = [call() for call in self._calls]


class TorchGraph:
    """Calls of torch, or of whatever launches on torch's current stream, captured into a graph."""

    def __init__(self, calls: Iterable[Callable[[], Any]]) -> None:
        torch = library("torch")
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # What other threads ask of the driver meanwhile is no part of it, and no reason to give up. A capture that
        # fails would leave torch on the stream that it was captured from, and replays on it would not be timed.
        with (
            torch.cuda.stream(torch.cuda.current_stream()),
            torch.cuda.graph(self._graph, capture_error_mode="thread_local"),
        ):
            self.results: Sequence[Any] = [call() for call in calls]

    def hold(self) -> None:
        """A graph is one launch: the GPU need not wait for the host."""

    def replay(self) -> None:
        self._graph.replay()


def timed(call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> tuple[float, int, list[Any]]:
    """Calls on the current stream: milliseconds by the GPU's clock, nanoseconds of starting them, and all results.

    What the GPU still does after the last event, on streams that the events do not see, is added to the time.
    """
    first, last = make_event(), make_event()
    now = clock.now
    first.record()
    began = now()
    results = [call(*one) for one in arguments]
    started = now()
    last.record()
    last.synchronize()
    marked = now()
    synchronize()
    late = now() - marked
    beyond = late / 1e6 if late > _STILL_BUSY_NS else 0.0
    return first.milliseconds_until(last) + beyond, started - began, results


def graph_milliseconds(
    replay: Callable[[], None], calls: int, samples: int, flush: Callable[[], None] | None
) -> list[float]:
    """Times of one call, of a graph of several."""
    marks: list[tuple[Event, Event]] = []
    for _ in range(samples):
        if flush is not None:
            flush()
        first, last = make_event(), make_event()
        first.record()
        replay()
        last.record()
        marks.append((first, last))
    synchronize()
    return [first.milliseconds_until(last) / calls for first, last in marks]


def copy_bandwidth(on: str | Device = "cuda:0") -> float:
    """Bytes per second of a large copy within the GPU's memory, read and written: the best of several."""
    where = device(on)
    backend: Any = where.backend
    source, target = (backend.allocate(_COPY_BYTES) for _ in range(2))
    backend.fill_zeros(source.pointer, _COPY_BYTES)
    times: list[float] = []
    for _ in range(_COPY_REPEATS):
        first, last = make_event(), make_event()
        first.record(current_stream(where))
        backend.copy_from_device(target.pointer, where, source.pointer, _COPY_BYTES)
        last.record(current_stream(where))
        last.synchronize()
        times.append(first.milliseconds_until(last))
    return 2 * _COPY_BYTES / min(times) * 1e3


def joules_per_call(
    work: Callable[[], int],
    read_millijoules: Callable[[], int],
    seconds: float = _ENERGY_SECONDS,
    now: Callable[[], int] = clock.now,
) -> float:
    """The energy of one call, of many: `work` does some, waits for them, and says how many they were.

    The counter moves in steps, so it is read from one step to another, with the GPU at work all the time.
    """
    before = _next_step(work, read_millijoules, now)[0]
    began, calls = now(), 0
    while True:
        after, done = _next_step(work, read_millijoules, now)
        calls += done
        if now() - began >= seconds * 1e9:
            return (after - before) / 1e3 / calls


def _next_step(work: Callable[[], int], read_millijoules: Callable[[], int], now: Callable[[], int]) -> tuple[int, int]:
    """Works until the counter moves: what it shows then, and how many calls that were."""
    shown, calls, deadline = read_millijoules(), 0, now() + round(_TICK_SECONDS * 1e9)
    while (found := read_millijoules()) == shown:
        if now() > deadline:
            raise BenchError(f"the GPU's energy counter did not move in {_TICK_SECONDS:g} s of work")
        calls += work()
    return found, calls


def median(samples: Sequence[float]) -> float:
    return float(np.median(samples))
