"""Child processes: they end with their parent, and the way they ended is put into words."""

from __future__ import annotations

import ctypes
import signal

LAST_WORDS = 4000
"""How many characters of what a process printed are kept when it dies."""
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """Has this process killed when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def death_in_words(status: int) -> str:
    """How a process ended, from its return code."""
    if status >= 0:
        return f"the process ended with status {status}"
    name = signal.Signals(-status).name
    often = ", most likely by the system because memory ran out" if -status == signal.SIGKILL else ""
    return f"the process was killed by {name}{often}"


def kind_of_death(status: int) -> str:
    """As in `BenchmarkError.error_type`."""
    return "out_of_memory" if status == -signal.SIGKILL else "crash"
