"""The `tessera cache` command: what it shows, clears and finds damaged."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tessera import knobs
from tessera.cli.main import cli
from tessera.runtime.cache.store import Store, key_of, shared


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with knobs.cache_dir.using(tmp_path), knobs.cache_size.using("1MiB"):
        yield shared()


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cache", *arguments])


def lines(result: Result) -> list[list[str]]:
    return [line.split(maxsplit=1) for line in result.output.splitlines()]


def test_an_empty_cache_is_shown_and_not_made(store: Store) -> None:
    result = invoke()
    assert result.exit_code == 0
    assert lines(result) == [["folder", str(store.root)], ["entries", "0"], ["size", "0 B of 1 MiB"]]
    assert invoke("clear").output == f"0 entries removed from {store.root}\n"
    assert invoke("verify").output == "0 entries whole, 0 damaged and removed\n"
    assert not store.root.exists()


def test_entries_are_counted_and_cleared(store: Store) -> None:
    for number in range(3):
        store.put(key_of(number), bytes(1024 * 100 - 116))  # with its header, exactly 100 KiB
    shown = dict(lines(invoke()))
    assert shown["entries"] == "3"
    assert shown["size"] == "300 KiB of 1 MiB"
    assert " to " in shown["used"]
    assert invoke("clear").output == f"3 entries removed from {store.root}\n"
    assert store.entries() == []
    store.put(key_of(0), b"")
    assert invoke("clear").output == f"1 entry removed from {store.root}\n"


def test_damage_is_named_and_removed(store: Store) -> None:
    for number in range(3):
        store.put(key_of(number), b"payload")
    result = invoke("verify")
    assert (result.exit_code, result.output) == (0, "3 entries whole, 0 damaged and removed\n")
    (store.root / key_of(1)).write_bytes(b"garbage")
    result = invoke("verify")
    assert result.exit_code == 1
    assert result.output == f"damaged  {key_of(1)}\n2 entries whole, 1 damaged and removed\n"
    assert invoke("verify").exit_code == 0
    assert [store.get(key_of(number)) for number in range(3)] == [b"payload", None, b"payload"]
