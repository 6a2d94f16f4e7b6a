"""Arenas of the host: memory for what programs make and need no longer, taken for a call and put back after it.

Calls one after the other use the same arena, whatever their programs; calls at once have one each, so there are as many
as ever were needed at once, each as large as the largest of what it served. Taking and putting back are single
operations on a list, so there is no lock, and nothing that a fork could leave locked.
"""

from __future__ import annotations

import numpy as np

from tessera.runtime.device.memory import Array, aligned_empty

_BYTE = np.dtype(np.uint8)
ALIGNMENT = 256

FREE: list[Array] = []
NOTHING: Array = np.empty(0, np.uint8)


def larger(nbytes: int) -> Array:
    """An arena of so many bytes, to replace one that is too small."""
    found = aligned_empty((nbytes + ALIGNMENT,), _BYTE)
    return found[-found.ctypes.data % ALIGNMENT :]


def held() -> int:
    """The bytes that wait for the next call."""
    return sum(arena.nbytes for arena in FREE)


def trim() -> None:
    """Gives all that waits back to the system."""
    FREE.clear()
