"""How long runs take: by the host's clock, or by events of a GPU that are read when it is done."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tessera.runtime.device.device import Device
from tessera.tiers.client import Runner
from tessera.tiers.sites.hotness import Clock

Reading = Callable[[], "int | None"]
"""The nanoseconds of a run; None while they are not known."""


class Timer(Protocol):
    """Runs something and says how long it took; None where it did not run now, but became part of a graph."""

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, int | Reading | None]: ...


class HostTimer:
    """The host's clock, for runs that are done when they return."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, int]:
        began = self._clock()
        result = run(*values)
        return result, self._clock() - began


class CudaTimer:
    """Two events around a run that is only queued when it returns; they are read later, without waiting.

    Callers wait for this: so events are reused, and the driver is called as little as possible.
    """

    def __init__(self, device: Device) -> None:
        from tessera.runtime.cuda import driver, streams
        from tessera.runtime.cuda.context import Context

        self._device, self._streams, self._driver = device, streams, driver
        self._current = streams.current_streams
        self._context = Context.of(device.index)
        self._record = self._context.calls.record_event
        self._default = streams.default_stream(device)
        self._spare: list[tuple[Any, Any, int, int]] = []  # pairs of events, and the driver's handles of them

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, Reading | None]:
        stream = self._current().get(self._device.index) or self._default
        if stream.graph is not None:
            return run(*values), None
        try:
            events = self._spare.pop()
        except IndexError:
            events = self._pair()
        _, _, began, ended = events
        # The context is current on threads that have launched something before; only after a failure it is made so.
        if self._record(began, stream.handle):
            self._record_within(began, stream.handle)
        result = run(*values)
        if self._record(ended, stream.handle):
            self._record_within(ended, stream.handle)
        return result, lambda: self._read(events)

    def _pair(self) -> tuple[Any, Any, int, int]:
        began, ended = (self._streams.Event(self._device, timing=True) for _ in range(2))
        return began, ended, began.handle, ended.handle

    def _record_within(self, event: int, stream: int) -> None:
        """The same where another context was current, or none."""
        with self._context:
            status = self._record(event, stream)
        self._driver.check_status(status, f"recording events on {self._device}")

    def _read(self, events: tuple[Any, Any, int, int]) -> int | None:
        """The nanoseconds between two events, which are free to be reused then."""
        found = ctypes.c_float()
        with self._context as context:
            status = context.calls.elapsed_time(ctypes.addressof(found), *events[2:])
        if status == self._driver.PENDING:
            return None
        self._driver.check_status(status, "telling the time between two events")
        self._spare.append(events)
        return round(1e6 * found.value)


def timer_for(device: Device | None, clock: Clock) -> Timer:
    """The timer of what runs on a device."""
    return HostTimer(clock) if device is None or not device.is_accelerator else CudaTimer(device)
