"""Garbage is collected in calls that have waited for a compiler, not in one of those that follow."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from tessera.runtime.device import garbage


@pytest.fixture(name="full")
def _full(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Generations of the collections that there are."""
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            found.append(info["generation"])

    monkeypatch.setattr(garbage, "_kept", 0)
    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def test_a_call_that_took_long_collects_once(full: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    garbage.collect_after(0.1)
    assert 2 not in full
    garbage.collect_after(1000.0)
    assert full.count(2) == 1
    garbage.collect_after(1000.0)  # there is little more than before
    assert full.count(2) == 1
    kept = [[number] for number in range(sys.getallocatedblocks() // 5)]
    with monkeypatch.context() as slow:
        slow.setattr(garbage, "_SECONDS_FOR_A_BLOCK", 1.0)
        garbage.collect_after(1000.0)  # it would take a larger part of that
    assert full.count(2) == 1
    garbage.collect_after(1000.0)
    assert full.count(2) == 2
    assert kept


def test_a_collector_that_is_off_stays_off(full: list[int]) -> None:
    gc.disable()
    try:
        garbage.collect_after(1000.0)
    finally:
        gc.enable()
    assert full == []


def test_other_threads_fill_tuples_meanwhile(full: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    switches, done, failures = sys.getswitchinterval(), threading.Event(), list[BaseException]()

    def fill() -> None:
        try:
            while not done.is_set():
                tuple(number for number in range(50))
        except SystemError as error:
            failures.append(error)

    threads = [threading.Thread(target=fill) for _ in range(3)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for _ in range(10):
            monkeypatch.setattr(garbage, "_kept", 0)
            garbage.collect_after(1000.0)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(switches)
    assert failures == []
    assert full.count(2) == 10
