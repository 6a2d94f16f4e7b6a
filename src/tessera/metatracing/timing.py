"""How long runs take: by the host's clock, or by events of a GPU that are collected when it has got there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tessera.metatracing.client import Runner
from tessera.metatracing.heat import Clock
from tessera.runtime.device import Device

Reading = Callable[[], "int | None"]
"""The nanoseconds of a run; None while nobody knows."""


class Timer(Protocol):
    """Runs something and says how long it took."""

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, int | Reading]: ...


class HostTimer:
    """For what is done when it returns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, int]:
        began = self._clock()
        result = run(*values)
        return result, self._clock() - began


class CudaTimer:
    """For what is only queued when it returns: two events around it, looked at later, without waiting."""

    def __init__(self, place: Device) -> None:
        from tessera.runtime.cuda import streams

        self._place, self._streams = place, streams

    def timed(self, run: Runner, values: Sequence[Any]) -> tuple[Any, Reading]:
        stream = self._streams.current_stream(self._place)
        if stream.graph is not None:  # nothing runs now: the call becomes a node of a graph
            return run(*values), lambda: 0
        began, ended = (self._streams.Event(self._place, timing=True) for _ in range(2))
        stream.record(began)
        result = run(*values)
        stream.record(ended)

        def reading() -> int | None:
            return round(1e6 * began.milliseconds_until(ended)) if ended.is_done() else None

        return result, reading


def timer_for(place: Device | None, clock: Clock) -> Timer:
    """The timer of what runs on a device."""
    return HostTimer(clock) if place is None or place.kind != "cuda" else CudaTimer(place)
