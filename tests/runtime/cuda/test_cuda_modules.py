"""Modules that are loaded to be looked at, and run afterwards: code is assembled once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tessera import knobs
from tessera.runtime.cuda import context, driver, modules
from tessera.targets.cuda.ptx.tools import BRIEFLY


class Loaded:
    """Replaces a module: counts how many there were."""

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


@pytest.mark.parametrize("runs_kernels", [True, False])
def test_code_that_is_needed_soon_is_not_assembled_twice(runs_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where kernels run, the driver assembles it, which shows what it takes; elsewhere ptxas does."""
    asked: list[str] = []

    def function(_: str) -> Any:
        return SimpleNamespace(attributes=SimpleNamespace(local=48))

    def look_at(*_: Any) -> Any:
        asked.append("driver")
        return SimpleNamespace(function=function)

    def stack_of(*_: Any) -> int:
        asked.append("ptxas")
        return 0

    def of(_: int) -> Any:
        return SimpleNamespace(is_open=runs_kernels)

    monkeypatch.setattr(driver, "device_count", lambda: 1)
    monkeypatch.setattr(context.Context, "of", of)
    monkeypatch.setattr(modules, "look_at", look_at)
    monkeypatch.setattr(modules, "stack_of", stack_of)
    assert modules.local_memory_of("k", f"{BRIEFLY}\n".encode()) == (48 if runs_kernels else 0)
    assert modules.local_memory_of("k", b".version 8.4") == 0
    assert asked == [("driver" if runs_kernels else "ptxas"), "ptxas"]


class _Context:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    properties = SimpleNamespace(architecture="sm_90")

    def at_end(self, action: Any) -> None: ...


def test_what_is_needed_soon_is_loaded_with_little_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    seen: list[tuple[bytes, Any]] = []
    option = SimpleNamespace(CU_JIT_OPTIMIZATION_LEVEL="level")

    def load(code: bytes, *options: Any) -> tuple[int, int]:
        seen.append((code, options))
        return 0, 7

    def of(_: int) -> Any:
        return _Context()

    def assembled(*_: Any) -> bytes:
        return b"\x7fELF of ptxas"

    monkeypatch.setattr(
        driver,
        "bindings",
        lambda: SimpleNamespace(CUjit_option=option, cuModuleLoadData=load, cuModuleLoadDataEx=load, cuModuleUnload=id),
    )
    monkeypatch.setattr(driver, "driver_version", lambda: 1)
    monkeypatch.setattr(modules.Context, "of", of)
    monkeypatch.setattr(modules, "assembled", assembled)
    brief = f"{BRIEFLY}\n.target sm_90\n".encode()
    with knobs.cache_dir.using(tmp_path):
        modules.Module(0, brief, "@k")
        modules.Module(0, b".target sm_90\n", "@k")
        # A process that compiles had it assembled: so it is there.
        modules.cache.shared().put(modules._key_of("cubin", brief, modules.Context.of(0)), b"\x7fELF")  # pyright: ignore[reportPrivateUsage]
        modules.Module(0, brief, "@k")
    assert seen == [(brief + b"\0", (1, ["level"], [1])), (b"\x7fELF of ptxas", ()), (b"\x7fELF", ())]
