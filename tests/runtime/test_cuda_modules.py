"""Modules that are loaded to be looked at, and run afterwards: code is assembled once."""

from __future__ import annotations

import pytest

from tessera.runtime.cuda import modules


class Loaded:
    """In the place of a module: counts how many there were."""

    made: list[bytes]

    def __init__(self, index: int, code: bytes, what: str) -> None:
        self.made.append(code)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    Loaded.made = []
    monkeypatch.setattr(modules, "Module", Loaded)
    monkeypatch.setattr(modules, "_looked_at", {})
    return Loaded.made


def test_who_runs_code_is_given_the_module_that_was_looked_at(made: list[bytes]) -> None:
    seen = modules.look_at(0, b"one", "@one")
    assert modules.loaded(0, b"one", "@one") is seen
    assert made == [b"one"]
    # It was handed over: another executable of the same code has a module of its own.
    assert modules.loaded(0, b"one", "@one") is not seen


def test_other_code_and_other_devices_are_loaded_anew(made: list[bytes]) -> None:
    seen = modules.look_at(0, b"one", "@one")
    assert modules.loaded(1, b"one", "@one") is not seen
    assert modules.loaded(0, b"two", "@two") is not seen
    assert made == [b"one", b"one", b"two"]


def test_only_the_last_is_kept(made: list[bytes]) -> None:
    first = modules.look_at(0, b"one", "@one")
    second = modules.look_at(0, b"two", "@two")
    assert modules.loaded(0, b"one", "@one") is not first
    assert modules.loaded(0, b"two", "@two") is second
    assert made == [b"one", b"two", b"one"]
