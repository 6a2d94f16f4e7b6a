"""Hardware counters of this process, through perf_event_open: instructions, cycles, misses.

Only what the process does in user space is counted, in all its threads that are there when counting starts, and in
those that they start. Many virtual machines have no such counters; then `unavailable` says so, for each event.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tessera.targets.cpu.features import PERF_EVENT_OPEN

_HARDWARE, _SOFTWARE = 0, 1
# What the kernel calls events by, on every processor. The last is counted by the kernel itself, so it is always there.
EVENTS: Mapping[str, tuple[int, int]] = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache_misses": (_HARDWARE, 3),
    "branch_misses": (_HARDWARE, 5),
    "cpu_nanoseconds": (_SOFTWARE, 1),
}

_ATTRIBUTES = struct.Struct("<IIQQQQQIIQ")  # perf_event_attr, its first version
_TIMES = 0x1 | 0x2  # how long the event was wanted, and how long it had a counter
_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_ENABLE, _DISABLE = 0x2400, 0x2401
_CLOSE_ON_EXEC = 8
_READING = struct.Struct("<QQQ")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


class Counters:
    """Counts between `start` and `stop`, or within a `with` statement, which puts the figures into `found`."""

    def __init__(self, events: Iterable[str] = EVENTS) -> None:
        self.events = tuple(events)
        self.found: dict[str, Any] = {}
        self._open: dict[str, list[int]] = {}
        self._unavailable: dict[str, str] = {}

    def start(self) -> None:
        """Opens a counter for each event and thread, and lets them run."""
        self._unavailable = {}
        threads = [int(name) for name in os.listdir("/proc/self/task")]
        for event in self.events:
            opened: list[int] = []
            try:
                for thread in threads:
                    opened += _opened(event, thread)
            except OSError as error:
                _close(opened)
                self._unavailable[event] = _reason(error)
            else:
                self._open[event] = opened
        for descriptors in self._open.values():
            for descriptor in descriptors:
                _control(descriptor, _ENABLE)

    def stop(self) -> dict[str, Any]:
        """The counts by event, and `unavailable`."""
        for descriptors in self._open.values():
            for descriptor in descriptors:
                _control(descriptor, _DISABLE)
        found: dict[str, Any] = {}
        for event, descriptors in self._open.items():
            try:
                found[event] = sum(_read(descriptor) for descriptor in descriptors)
            except ValueError as error:
                self._unavailable[event] = str(error)
            _close(descriptors)
        self._open = {}
        self.found = {**found, "unavailable": dict(self._unavailable)}
        return dict(self.found)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _opened(event: str, thread: int) -> list[int]:
    """The counter of one thread; none where it has ended since."""
    number = PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"no perf_event_open is known for {platform.machine()}")
    flags = _DISABLED | _INHERIT | _NO_KERNEL | _NO_HYPERVISOR
    kind, which = EVENTS[event]
    attributes = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, which, 0, 0, _TIMES, flags, 0, 0, 0)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    word = ctypes.c_long
    given = ctypes.create_string_buffer(attributes, _ATTRIBUTES.size)
    descriptor = call(word(number), given, word(thread), word(-1), word(-1), word(_CLOSE_ON_EXEC))
    if descriptor < 0:
        code = ctypes.get_errno()
        if code == errno.ESRCH:
            return []
        raise OSError(code, os.strerror(code))
    return [descriptor]


def _control(descriptor: int, request: int) -> None:
    import fcntl

    fcntl.ioctl(descriptor, request, 0)


def _read(descriptor: int) -> int:
    """The count; where the counter was shared with other events, for as much of the time as it ran."""
    count, wanted, ran = _READING.unpack(os.read(descriptor, _READING.size))
    if ran == wanted:
        return count
    if ran == 0:
        raise ValueError("all counters of the processor were taken: the event never ran")
    return round(count * wanted / ran)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    code = error.errno or 0
    name = errno.errorcode.get(code, str(code))
    if code in (errno.EACCES, errno.EPERM):
        try:
            paranoid = _PARANOID.read_text(encoding="ascii").strip()
        except OSError:
            paranoid = "not readable"
        return f"not permitted ({name}): perf_event_paranoid is {paranoid}, and counting oneself needs 2 or less"
    if code in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return f"the processor shows no such counter here ({name}), as in most virtual machines"
    if code == errno.ENOSYS:
        return f"the kernel has no perf_event_open, or hides it ({name})"
    return f"perf_event_open failed: {error.strerror} ({name})"
