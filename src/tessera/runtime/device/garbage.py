"""Python's garbage, collected where that takes little time beside compiling."""

from __future__ import annotations

import gc
import sys
from typing import Final

_LONG_SECONDS: Final = 0.3  # of compiling
_SECONDS_FOR_A_BLOCK: Final = 1.5e-7  # of a collection, for each block of memory that Python holds
_MORE: Final = 1.1  # times as many blocks as there were after the last time
_kept = 0


def collect_after(seconds: float) -> None:
    """Collects all garbage, where that takes little beside the time that a compiler has taken.

    Much of what compilers make and load lives on, so that a full collection is due in one of the next calls. It takes
    tens of milliseconds: much beside such a call.

    Blocks of memory are counted, not objects: a list of all objects has tuples that other threads are still filling,
    and Python refuses to go on with a tuple that another thread holds.
    """
    global _kept  # noqa: PLW0603  (there is one collector in a process)
    if seconds < _LONG_SECONDS or not gc.isenabled():
        return
    count = sys.getallocatedblocks()
    if count > _MORE * _kept and _SECONDS_FOR_A_BLOCK * count < seconds / 10:
        gc.collect()
        _kept = sys.getallocatedblocks()
