"""How long runs take: by the host's clock, or by events of a GPU that are collected when it has got there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tessera.metatracing.client import Runner
from tessera.metatracing.regions.heat import Clock
from tessera.runtime.device import Device

Reading = Callable[[], "int | None"]
"""The nanoseconds of a run; None while nobody knows."""


class Timer(Protocol):
    """Runs something and says how long it took; None where it did not run now, but became part of a graph."""

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, int | Reading | None]: ...


class HostTimer:
    """For what is done when it returns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, int]:
        began = self._clock()
        result = run(*values)
        return result, self._clock() - began


class CudaTimer:
    """For what is only queued when it returns: two events around it, looked at later, without waiting.

    Callers wait for all that is done here: so events are used again, and the driver is asked as little as possible.
    """

    def __init__(self, place: Device) -> None:
        from tessera.runtime.cuda import driver, streams
        from tessera.runtime.cuda.context import Context

        self._place, self._streams, self._driver = place, streams, driver
        self._context = Context.of(place.index)
        self._default = streams.default_stream(place)
        self._spare: list[tuple[Any, Any]] = []  # pairs of events

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, Reading | None]:
        stream = self._streams.current_streams().get(self._place.index) or self._default
        if stream.graph is not None:
            return run(*values), None
        try:
            events = self._spare.pop()
        except IndexError:
            events = tuple(self._streams.Event(self._place, timing=True) for _ in range(2))
        began, ended = events
        with self._context as context:
            record = context.calls.record_event
            status = record(began.handle, stream.handle)
            result = run(*values)
            status = status or record(ended.handle, stream.handle)
        self._driver.check_status(status, f"recording events on {self._place}")
        return result, lambda: self._read(events)

    def _read(self, events: tuple[Any, Any]) -> int | None:
        """The nanoseconds between two events; whoever has read them does not look again."""
        found = ctypes.c_float()
        with self._context as context:
            status = context.calls.elapsed_time(ctypes.addressof(found), events[0].handle, events[1].handle)
        if status == self._driver.PENDING:
            return None
        self._driver.check_status(status, "telling the time between two events")
        self._spare.append(events)
        return round(1e6 * found.value)


def timer_for(place: Device | None, clock: Clock) -> Timer:
    """The timer of what runs on a device."""
    return HostTimer(clock) if place is None or place.kind != "cuda" else CudaTimer(place)
