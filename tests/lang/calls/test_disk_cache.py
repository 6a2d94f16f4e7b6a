"""Jitted functions on the disk: another process neither traces nor compiles, unless something is another."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tessera as ts
from tessera import jit, knobs
from tessera.lang.calls.disk_cache import VariantStore
from tessera.runtime.cache.store import Store
from tessera.tile.calls.settings import settings

SCRIPT = Path(__file__).with_name("kept_process.py")


def said(folder: Path, *arguments: str, **more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "TESSERA_CACHE_DIR": str(folder), **more},
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "log": done.stderr}


@pytest.fixture(name="first", scope="module")
def _first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("kept")
    return folder, said(folder, "2.0")


def test_another_process_neither_traces_nor_compiles(first: tuple[Path, dict[str, Any]]) -> None:
    folder, made = first
    assert (made["heavy"], made["found"], made["programs"]) == (["llvmlite", "xdsl"], 0, 2)
    again = said(folder, "2.0")
    assert (again["heavy"], again["found"], again["programs"]) == ([], 2, 2)
    assert all(again[name] == made[name] for name in ("3", "5", "7", "eager"))
    assert again["3"][1:] == [3, "sum"]


def test_another_captured_number_is_another_program(first: tuple[Path, dict[str, Any]]) -> None:
    folder, made = first
    other = said(folder, "3.0", "more")
    assert (other["found"], other["programs"]) == (0, 2)
    assert other["3"] != made["3"]
    assert (other["captured"], other["found captured"], other["text"]) == ([2.0] * 4, 0, True)
    again = said(folder, "3.0", "more")
    assert (again["captured"], again["found captured"]) == ([2.0] * 4, 1)


def test_damaged_entries_are_a_line_in_the_log(first: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, made = first
    whole, damaged = Store(folder / "compiled", 1 << 30), Store(tmp_path / "compiled", 1 << 30)
    for entry in whole.entries():
        data = whole.get(entry.name)
        assert data is not None
        if data.startswith(b"[{"):  # a list of variants, whole as far as the cache can tell
            data = data.replace(b'"types"', b'"typos"')
        damaged.put(entry.name, data)
    again = said(tmp_path, "2.0", TESSERA_LOGS="cache")
    assert again["found"] == 0
    assert again["3"] == made["3"]
    assert "a variant of a function is not read: KeyError" in again["log"]


def test_dumping_stages_compiles(tmp_path: Path) -> None:
    f = jit(inspect.unwrap(ts.tanh))
    x = ts.ones((3,))
    call = f.parameters.call(f.parameters.bind((x,), {}))

    def has_shelf() -> bool:
        found = VariantStore.of(f.name, f.identity, f.parameters, call, x.device, settings(), False)
        return isinstance(found, VariantStore)

    assert has_shelf()
    with knobs.dump_dir.using(tmp_path):
        assert not has_shelf()
    with knobs.override_dir.using(tmp_path):
        assert not has_shelf()
