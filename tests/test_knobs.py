"""Checks the knobs: defaults, variables, what wins over what, isolation between threads and tasks, errors."""

from __future__ import annotations

import asyncio
import os
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tessera import knobs as package_knobs
from tessera.errors import TesseraError
from tessera.tile.calls.settings import settings


def imported(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Any:
    """The module `knobs` as it is when the package is imported under these TESSERA_* variables, and no others."""
    for name in [name for name in os.environ if name.startswith("TESSERA_")]:
        monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    spec = spec_from_file_location("tessera.knobs_imported_again", package_knobs.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="knobs")
def _knobs(monkeypatch: pytest.MonkeyPatch) -> Any:
    return imported(monkeypatch)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    knobs = imported(monkeypatch)
    assert knobs.cache_dir.value == Path("/home/someone/.cache/tessera")
    assert knobs.cache_size.value == 2 << 30
    assert knobs.logs.value == frozenset()
    assert knobs.dump_dir.value is None
    assert knobs.override_dir.value is None
    assert knobs.verify.value is False
    assert knobs.interpret.value is False
    assert knobs.deterministic.value is True
    assert knobs.backend.value is None
    assert knobs.num_threads.value == len(os.sched_getaffinity(0))
    assert knobs.cpu_level.value is None
    assert {row.source for row in knobs.describe()} == {"default"}


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    assert imported(monkeypatch, XDG_CACHE_HOME="/var/cache").cache_dir.value == Path("/var/cache/tessera")
    assert imported(monkeypatch, XDG_CACHE_HOME="relative").cache_dir.value == Path.home() / ".cache/tessera"


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("2GiB", 2 << 30), ("500 MB", 500_000_000), ("1.5kib", 1536), ("1TiB", 1 << 40)],
)
def test_sizes_have_units(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    assert imported(monkeypatch, TESSERA_CACHE_SIZE=text).cache_size.value == size


def test_variables_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "LOGS": "ir, recompiles,",
        "VERIFY": "Yes",
        "DETERMINISTIC": "off",
        "DUMP_DIR": "~/dumps",
        "BACKEND": "cpu",
    }
    knobs = imported(monkeypatch, **{f"TESSERA_{name}": text for name, text in given.items()})
    monkeypatch.setenv("TESSERA_VERIFY", "no")
    monkeypatch.delenv("TESSERA_BACKEND")
    monkeypatch.setenv("TESSERA_INTERPRET", "1")
    for _ in range(2):
        assert knobs.logs.value == {"ir", "recompiles"}
        assert knobs.verify.value is True
        assert knobs.deterministic.value is False
        assert knobs.dump_dir.value == Path.home() / "dumps"
        assert knobs.backend.value == "cpu"
        assert knobs.interpret.value is False
    assert knobs.unknown_variables() == []
    assert imported(monkeypatch, TESSERA_BACKEND="").backend.value is None


def test_a_change_of_the_environment_is_no_change_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings()
    monkeypatch.setenv("TESSERA_OPTIMIZATION", "1")
    monkeypatch.setenv("TESSERA_CHECKS", "wrong")
    with package_knobs.eager_elements.using(1):
        assert settings() is before
    assert settings() is before


@pytest.mark.parametrize(
    ("name", "text", "accepted"),
    [
        ("cache_size", "2GiBs", "a number of bytes, such as 2GiB or 500MB"),
        ("cache_size", "-1", "a number of bytes"),
        ("logs", "ir,everything", "names among recompiles, guards, autotune, ir"),
        ("verify", "maybe", "1, true, yes, on, 0, false, no or off"),
        ("num_threads", "0", "a number from 1 to 4096"),
        ("num_threads", "4097", "a number from 1 to 4096"),
        ("num_threads", "2.5", "a number from 1 to 4096"),
        ("cpu_level", "avx", "amx, avx512, avx2 or base, on AArch64 neon"),
    ],
)
def test_bad_variables_are_errors_when_read(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, accepted: str
) -> None:
    variable = f"TESSERA_{name.upper()}"
    knobs = imported(monkeypatch, **{variable: text})
    with pytest.raises(TesseraError) as caught:
        _ = getattr(knobs, name).value
    message = caught.value.message
    assert variable in message
    assert repr(text) in message
    assert accepted in message
    assert caught.value.hint
    (row,) = (row for row in knobs.describe() if row.name == name)
    assert row.value == repr(text)
    assert row.source == "environment, not understood"


def test_bad_values_are_refused_and_change_nothing(knobs: Any) -> None:
    with pytest.raises(TesseraError, match="the knob cache_size expects a number of bytes"):
        knobs.cache_size.set("much")
    with pytest.raises(TesseraError, match="the knob logs") as caught:
        knobs.logs.using(frozenset({"bogus"}))
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert knobs.cache_size.value == 2 << 30
    assert knobs.logs.value == frozenset()


def test_context_wins_over_process_over_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = imported(monkeypatch, TESSERA_BACKEND="from_environment")
    assert (knobs.backend.value, knobs.backend.source) == ("from_environment", "environment")
    knobs.backend.set("from_process")
    try:
        assert (knobs.backend.value, knobs.backend.source) == ("from_process", "process")
        with knobs.backend.using("outer") as held:
            assert held == "outer"
            with knobs.backend.using(None):
                assert (knobs.backend.value, knobs.backend.source) == (None, "context")
            assert knobs.backend.value == "outer"
        assert knobs.backend.value == "from_process"
    finally:
        knobs.backend.reset()
    assert knobs.backend.value == "from_environment"


def test_using_ends_when_the_body_raises(knobs: Any) -> None:
    def fail() -> None:
        with knobs.verify.using(True):
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert knobs.verify.value is False


def test_threads_do_not_see_each_others_overrides(knobs: Any) -> None:
    seen: list[int] = []
    both_inside = threading.Barrier(2)

    def work(size: int) -> None:
        with knobs.cache_size.using(size):
            both_inside.wait(timeout=10)
            seen.append(knobs.cache_size.value)
            both_inside.wait(timeout=10)

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [1, 2]
    assert knobs.cache_size.value == 2 << 30


def test_tasks_do_not_see_each_others_overrides(knobs: Any) -> None:
    async def work(size: int) -> int:
        with knobs.cache_size.using(size):
            await asyncio.sleep(0)
            return knobs.cache_size.value

    async def both() -> list[int]:
        return list(await asyncio.gather(work(1), work(2)))

    assert asyncio.run(both()) == [1, 2]


def test_describe_has_a_full_row_for_every_knob(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = imported(monkeypatch, TESSERA_LOGS="ir,guards")
    rows = {row.name: row for row in knobs.describe()}
    defined = {name for name in dir(knobs) if isinstance(getattr(knobs, name), knobs.Knob)}
    assert set(rows) == defined
    assert all(all(row) for row in rows.values())
    assert rows["logs"].value == "guards,ir"
    assert rows["logs"].source == "environment"
    assert rows["dump_dir"].value == "none"


def test_unknown_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = imported(monkeypatch, TESSERA_CACHE_SIZES="1", TESSERA_CACHE_SIZE="1")
    assert knobs.unknown_variables() == ["TESSERA_CACHE_SIZES"]
