"""Timers of devices behind one interface: the processor's clock, and marks in a device's queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tessera.bench.instruments import clock


class Timer(Protocol):
    """Times work on a device: `start` and `stop` around it, the second gives milliseconds when the work is done."""

    method: str

    def start(self) -> None: ...

    def stop(self) -> float: ...


class WallClock:
    """The processor's clock: work is done when the call returns."""

    method = "wall_clock"

    def start(self) -> None:
        self._began = clock.now()

    def stop(self) -> float:
        return (clock.now() - self._began) / 1e6


class Event(Protocol):
    """A mark in a device's queue of work."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def milliseconds_until(self, end: Any) -> float: ...


class EventTimer:
    """A device's own clock, by two marks in its queue. The device waits for neither."""

    method = "device_events"

    def __init__(self, make_event: Callable[[], Event]) -> None:
        self._make = make_event

    def start(self) -> None:
        self._first = self._make()
        self._first.record()

    def stop(self) -> float:
        last = self._make()
        last.record()
        last.synchronize()
        return self._first.milliseconds_until(last)
