"""Staging: pinned host memory that copies between host and GPU pass through, so that the GPU never waits for pages.

A copy to the GPU returns when the host memory has been read; the GPU may still be at it. A copy to the host returns
when it is complete. Pieces overlap: while the GPU moves one, the host moves the next.
"""

from __future__ import annotations

import ctypes
from collections import deque
from threading import Lock
from typing import ClassVar, NamedTuple

from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.streams import Event, Stream

PIECE = 4 << 20
_PIECES = 4
_PORTABLE = 1  # for all contexts of the process


class _Slot(NamedTuple):
    address: int
    event: Event


class Staging:
    """The pinned memory of one GPU's copies: some pieces, used round robin. It is never freed."""

    _made: ClassVar[dict[int, Staging]] = {}

    def __init__(self, context: Context) -> None:
        self.context = context
        self._slots: deque[_Slot] = deque()
        self._lock = Lock()

    @staticmethod
    def of(context: Context) -> Staging:
        return Staging._made.get(context.index) or Staging._made.setdefault(context.index, Staging(context))

    def to_device(self, target: int, source: int, nbytes: int, stream: Stream) -> None:
        """From host memory, which may change on return, in the order of a stream."""
        with self._lock:
            for offset in range(0, nbytes, PIECE):
                size = min(PIECE, nbytes - offset)
                slot = self._next(stream)
                ctypes.memmove(slot.address, source + offset, size)
                with self.context as context:
                    status = context.calls.to_device(target + offset, slot.address, size, stream.handle)
                driver.check_status(status, f"copying {nbytes:,} bytes to {stream.device}")
                slot.event.record(stream)

    def to_host(self, target: int, source: int, nbytes: int, stream: Stream) -> None:
        """To host memory, complete on return, after what came before on a stream."""
        waiting: deque[tuple[_Slot, int, int]] = deque()

        def finish() -> None:
            slot, offset, size = waiting.popleft()
            slot.event.synchronize()
            ctypes.memmove(target + offset, slot.address, size)

        with self._lock:
            for offset in range(0, nbytes, PIECE):
                size = min(PIECE, nbytes - offset)
                slot = self._next(stream, busy=len(waiting))
                with self.context as context:
                    status = context.calls.to_host(slot.address, source + offset, size, stream.handle)
                driver.check_status(status, f"copying {nbytes:,} bytes from {stream.device}")
                slot.event.record(stream)
                waiting.append((slot, offset, size))
                if len(waiting) == _PIECES // 2:
                    finish()
            while waiting:
                finish()

    def _next(self, stream: Stream, *, busy: int = 0) -> _Slot:
        """The least recently used piece, once no copy uses it, or a new one while there are few.

        The last `busy` ones hold what the host has not taken yet.
        """
        if len(self._slots) > busy and (len(self._slots) == _PIECES or self._slots[0].event.is_done()):
            slot = self._slots.popleft()
            slot.event.synchronize()
        else:
            slot = _Slot(pinned(self.context, PIECE), Event(stream.device))
        self._slots.append(slot)
        return slot


def pinned(context: Context, nbytes: int) -> int:
    """The address of pinned host memory, which the GPU may use, too; it lives as long as the process."""
    found = ctypes.c_void_p()
    with context:
        status = context.calls.allocate_host(ctypes.addressof(found), nbytes, _PORTABLE)
    driver.check_status(status, f"pinning {nbytes:,} bytes of host memory")
    return found.value or 0
