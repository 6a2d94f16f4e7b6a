"""Children of forks, for tests: what they do while a thread of their parent holds locks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any


def in_a_child(work: Callable[[], object], held: list[AbstractContextManager[Any]]) -> int:
    """The status of a child that does something, while another thread of its parent holds some locks."""
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in held:
                stack.enter_context(lock)
            ready.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert ready.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    done.set()
    holder.join()
    return status
