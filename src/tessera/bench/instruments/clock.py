"""The clock that everything is timed with, taken when this file is loaded, and whether it was replaced since."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

now: Callable[[], int] = time.perf_counter_ns
"""Nanoseconds; code that times binds this function before any implementation runs."""

busy: Callable[[], int] = time.process_time_ns
"""Nanoseconds that all threads of this process have worked."""
pause: Callable[[float], None] = time.sleep

# Names of the time module that an implementation might replace, as they were.
_ORIGINAL = {
    name: getattr(time, name)
    for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time")
}
_UPTIME = "/proc/uptime"
_RESOLUTION_NS = 20_000_000  # of the system's own account of its uptime, twice
_SHARE = 0.05


def touched() -> list[str]:
    """The clocks that are no longer what they were when this file was loaded."""
    changed = [f"time.{name}" for name, original in _ORIGINAL.items() if getattr(time, name) is not original]
    return changed if now is _ORIGINAL["perf_counter_ns"] else [*changed, "tessera.bench.instruments.clock.now"]


def _uptime(read: Callable[[int, int], bytes] = os.read, open_: Callable[[str, int], int] = os.open) -> int | None:
    """Nanoseconds since the system started, from the system's own files: no clock of this process is asked."""
    try:
        descriptor = open_(_UPTIME, os.O_RDONLY)
    except OSError:
        return None
    try:
        return round(float(read(descriptor, 64).split()[0]) * 1e9)
    finally:
        os.close(descriptor)


class Witness:
    """Compares the time that a clock counts with the system's, over a while."""

    def __init__(self, counted: Callable[[], int] = now) -> None:
        self._now, self._uptime = counted, _uptime
        before, self._began_outside, after = self._now(), self._uptime(), self._now()
        self._began = before, after

    def disagreement(self) -> str | None:
        """A sentence that says what is wrong with the clock, or None."""
        if changed := touched():
            return f"the implementation replaced {', '.join(changed)}"
        before, outside, after = self._now(), self._uptime(), self._now()
        if outside is None or self._began_outside is None:
            return None
        # This process may have stood still between the readings: either of them may agree.
        least, most = before - self._began[1], after - self._began[0]
        passed = outside - self._began_outside
        allowed = _RESOLUTION_NS + _SHARE * passed
        if least > passed + allowed or most < passed - allowed:
            return f"the clock counted {most / 1e9:.3f} s while {passed / 1e9:.3f} s passed"
        return None
