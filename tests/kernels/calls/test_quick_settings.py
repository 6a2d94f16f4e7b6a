"""Settings as machine code gives them to calls: the same as Python's, whatever changes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from threading import Thread
from typing import Any

import pytest

from tessera import knobs
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.runtime.native.standing_answers import StandingAnswer, is_possible
from tessera.runtime.program.executable import start_pool
from tessera.tile.calls import settings as kernel_settings
from tessera.tile.calls.settings import Settings, quick_settings, settings


@pytest.fixture(autouse=True)
def running() -> None:
    start_pool()


def test_settings_follow_all_that_they_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = quick_settings()
    assert ask is not settings
    first = settings()
    assert first is not None
    assert ask() is ask() is first
    with knobs.fast_math.using(True):
        assert ask() is settings() is not first
        with knobs.interpret.using(True):
            assert ask() is settings() is None
        assert ask() is settings() is not first
    assert ask() is first
    knobs.optimization.set(1)
    try:
        assert ask() is settings() is not first
    finally:
        knobs.optimization.reset()
    assert ask() is first
    monkeypatch.setenv("TESSERA_INTERPRET", "1")
    assert ask() is None
    monkeypatch.setenv("TESSERA_INTERPRET", "0")
    assert ask() is settings()
    monkeypatch.delenv("TESSERA_INTERPRET")
    assert ask() is first
    with checking(Checks(nonfinite=True)):
        assert ask() is settings() is None
    assert ask() is first


def test_what_has_not_changed_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ask, asked = quick_settings(), list[int]()
    expected = ask()

    def counted() -> Settings | None:
        asked.append(1)
        return settings()

    monkeypatch.setattr(kernel_settings, "settings", counted)
    assert all(ask() is expected for _ in range(5))
    assert not asked
    monkeypatch.setenv("SOMETHING", "else")  # counts as a change, once
    assert all(ask() is expected for _ in range(5))
    assert asked == [1]


def watched(anew: Callable[[], tuple[Any, bool]]) -> tuple[StandingAnswer, ContextVar[Any], list[Any], dict[Any, Any]]:
    variable: ContextVar[Any] = ContextVar("watched", default=None)
    listed: list[Any] = [0]
    mapping: dict[Any, Any] = {}
    assert is_possible(mapping)
    return StandingAnswer(anew, [variable], listed, mapping), variable, listed, mapping


def test_an_answer_that_does_not_last_is_worked_out_each_time() -> None:
    answers = [("first", True), ("second", False), ("third", False), ("fourth", True)]
    watch, variable, listed, mapping = watched(lambda: answers.pop(0))
    assert [watch.ask(), watch.ask()] == ["first", "first"]
    listed[0] = 1
    assert [watch.ask(), watch.ask()] == ["second", "third"]
    listed[0] = 0  # as it was
    assert watch.ask() == "first"
    mapping["one"] = 1
    context = copy_context()
    context.run(variable.set, "else")
    assert [context.run(watch.ask), context.run(watch.ask)] == ["fourth", "fourth"]


def test_errors_come_through() -> None:
    def refuse() -> tuple[Any, bool]:
        raise KeyError("no answer")

    watch, *_ = watched(refuse)
    with pytest.raises(KeyError, match="no answer"):
        watch.ask()
    with pytest.raises(TypeError):
        watch.ask(1)


def test_threads_with_settings_of_their_own() -> None:
    ask, wrong = quick_settings(), list[object]()

    def work(fast: bool) -> None:
        with knobs.fast_math.using(fast):
            expected = settings()
            wrong.extend(found for _ in range(2000) if (found := ask()) is not expected)

    before = sys.getrefcount(settings())
    threads = [Thread(target=work, args=(fast,)) for fast in (True, False)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
    gc.collect()
    assert abs(sys.getrefcount(settings()) - before) < 50
