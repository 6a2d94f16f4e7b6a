"""Attributes that are computed once, also across forks and threads that ask at the same moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from tessera.cached_property import cached_property


class Slow:
    """Its attribute takes as long as a test wants."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.computed = 0

    @cached_property
    def value(self) -> list[int]:
        """A list."""
        self.computed += 1
        self.meanwhile()
        return [self.computed]


def test_an_attribute_is_computed_once() -> None:
    one, other = Slow(), Slow()
    assert one.value is one.value
    assert (one.computed, other.computed) == (1, 0)
    assert Slow.value.__doc__ == "A list."
    other.value = [7]
    assert (other.value, other.computed) == ([7], 0)


def test_threads_that_ask_at_once_get_the_same_object() -> None:
    both = threading.Barrier(2, timeout=60)
    slow = Slow(both.wait)
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slow.computed == 2
    assert found[0] is found[1] is slow.value


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    began, done = threading.Event(), threading.Event()

    def meanwhile() -> None:
        began.set()
        done.wait(60)

    busy = threading.Thread(target=lambda: Slow(meanwhile).value)
    busy.start()
    assert began.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # standing still is a failure
        os._exit(0 if Slow().value == [1] else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    busy.join()
    assert status == 0
