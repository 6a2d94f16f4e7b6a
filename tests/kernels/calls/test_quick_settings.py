"""Settings as calls ask for them: whatever changes them is noticed at once, and nothing is worked out twice."""

from __future__ import annotations

import asyncio
import gc
import sys
from contextvars import copy_context
from threading import Barrier, Event, Thread

import pytest

from tessera import knobs
from tessera.errors import DeviceError
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.tile.calls import settings as kernel_settings
from tessera.tile.calls.settings import Settings, settings


def test_settings_follow_all_that_they_depend_on() -> None:
    first = settings()
    assert first is not None
    assert settings() is first
    with knobs.fast_math.using(True):
        fast = settings()
        assert fast is not first
        with knobs.interpret.using(True):
            assert settings() is None
            assert settings() is None
        assert settings() is fast
        with knobs.fast_math.using(False):
            assert settings() is first
    assert settings() is first
    knobs.optimization.set(1)
    try:
        assert settings() is not first
        with knobs.fast_math.using(True):
            inside = settings()
            assert inside is not None
            assert (inside.optimization, inside.fast_math) == (1, True)
            knobs.optimization.set(2)
            inside = settings()
            assert inside is not None
            assert (inside.optimization, inside.fast_math) == (2, True)
    finally:
        knobs.optimization.reset()
    assert settings() is first
    with checking(Checks(nonfinite=True)):
        assert settings() is None
        with knobs.fast_math.using(True):
            assert settings() is None
    with checking(Checks()):
        assert settings() is first
        knobs.optimization.set(1)
        assert settings() is not first
        knobs.optimization.reset()
    assert settings() is first


def test_unchanged_settings_are_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, asked = settings(), list[int]()
    choose = kernel_settings._chosen  # pyright: ignore[reportPrivateUsage]

    def counted() -> Settings | None:
        asked.append(1)
        return choose()

    monkeypatch.setattr(kernel_settings, "_chosen", counted)
    assert all(settings() is expected for _ in range(5))
    assert not asked
    knobs.cache_size.set(knobs.cache_size.value)  # counts as a change, once
    knobs.cache_size.reset()
    assert all(settings() is expected for _ in range(5))
    assert asked == [1]
    with knobs.interpret.using(True):
        assert all(settings() is None for _ in range(5))
    assert asked == [1, 1]


def test_errors_come_each_time() -> None:
    with knobs.backend.using("abacus"):
        for _ in range(2):
            with pytest.raises(DeviceError, match="expected a backend among auto, cpu, interpreter, got 'abacus'"):
                settings()
    assert settings() is not None


def test_a_context_keeps_its_knobs_and_follows_the_process() -> None:
    """A task that was started in a block goes on with its knobs when the block has ended."""
    with knobs.fast_math.using(True):
        context = copy_context()
        fast = context.run(settings)
    assert context.run(settings) is fast
    assert settings() is not fast
    knobs.optimization.set(1)
    try:
        found = context.run(settings)
        assert found is not None
        assert (found.optimization, found.fast_math) == (1, True)
    finally:
        knobs.optimization.reset()
    assert context.run(settings) is fast


def test_tasks_with_settings_of_their_own() -> None:
    async def work(fast: bool) -> set[bool]:
        found: set[bool] = set()
        with knobs.fast_math.using(fast):
            for _ in range(20):
                await asyncio.sleep(0)
                now = settings()
                assert now is not None
                found.add(now.fast_math)
        return found

    async def both() -> list[set[bool]]:
        return list(await asyncio.gather(work(True), work(False)))

    assert asyncio.run(both()) == [{True}, {False}]


def test_threads_with_settings_of_their_own() -> None:
    wrong = list[object]()

    def work(fast: bool) -> None:
        with knobs.fast_math.using(fast):
            expected = settings()
            wrong.extend(found for _ in range(2000) if (found := settings()) is not expected)

    before = sys.getrefcount(settings())
    threads = [Thread(target=work, args=(fast,)) for fast in (True, False)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
    gc.collect()
    assert abs(sys.getrefcount(settings()) - before) < 50


def test_a_thread_that_works_settings_out_while_another_sets_a_knob(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may return those of before; the next call has those of now."""
    choose, begun, changed = kernel_settings._chosen, Event(), Event()  # pyright: ignore[reportPrivateUsage]
    first, seen = settings(), list[Settings | None]()

    def slow() -> Settings | None:
        found = choose()
        begun.set()
        assert changed.wait(10)
        return found

    knobs.cache_size.reset()  # so they are worked out again
    monkeypatch.setattr(kernel_settings, "_chosen", slow)
    thread = Thread(target=lambda: seen.append(settings()))
    thread.start()
    assert begun.wait(10)
    monkeypatch.setattr(kernel_settings, "_chosen", choose)
    knobs.optimization.set(1)
    try:
        changed.set()
        thread.join()
        now = settings()
        assert seen == [first]
        assert now is not None
        assert now.optimization == 1
    finally:
        knobs.optimization.reset()


def test_threads_that_enter_scopes_while_others_set_knobs() -> None:
    faults, start = list[object](), Barrier(3)

    def enter() -> None:
        start.wait(10)
        for number in range(300):
            with knobs.optimization.using(number % 4):
                found = settings()
                if found is None or found.optimization != number % 4:
                    faults.append(found)

    def change() -> None:
        start.wait(10)
        for _ in range(300):
            knobs.cache_size.set(1 << 30)
        knobs.cache_size.reset()

    threads = [Thread(target=one) for one in (enter, enter, change)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not faults
