"""Checks the compile cache: what is put is got, what is damaged is missed, and neither kills nor crowds break it."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from typing import Any, cast

import cache_process
import numpy as np
import pytest
from cache_process import KEYS, payload_of
from hypothesis import given
from hypothesis import strategies as st

from tessera import knobs
from tessera.errors import TesseraError
from tessera.runtime.cache import store as cache
from tessera.runtime.cache.store import Store, key_of, shared

LARGE = 1 << 30
PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=12,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", LARGE)


def temporaries(store: Store) -> list[str]:
    return [name for name in os.listdir(store.root) if name.startswith(".")]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tessera.cache"]


# Keys


class Three(IntEnum):
    THREE = 3


def distinct(value: Any) -> Any:
    """Python calls 1, 1.0 and True equal, and 0.0 and -0.0; keys must not."""
    if isinstance(value, tuple):
        return tuple(distinct(one) for one in cast("tuple[object, ...]", value))
    return (type(value).__name__, repr(value))


@given(PARTS, PARTS)
def test_keys_differ_exactly_where_values_or_types_do(one: object, other: object) -> None:
    assert (key_of(one) == key_of(other)) == (distinct(one) == distinct(other))
    assert key_of(one) == key_of(one)
    assert key_of(one, other) == key_of(one, other)


def test_keys_of_values_that_look_alike_differ() -> None:
    alike: list[tuple[object, ...]] = [
        (1,),
        (1.0,),
        (True,),
        ("1",),
        (b"1",),
        (None,),
        (),
        ((),),
        (((),),),
        ("",),
        (b"",),
        (0,),
        (0.0,),
        (-0.0,),
        (False,),
        (-1,),
        ("a", "b"),
        ("ab",),
        (("a", "b"),),
        (("a",), "b"),
        ("a", ("b",)),
        ("N",),
        (10**40,),
        (float("inf"),),
        ("1,2",),
        (1, 2),
        ((1, 2),),
        (12,),
        (1, (2,)),
    ]
    assert len({key_of(*parts) for parts in alike}) == len(alike)


def test_keys_are_equal_in_other_processes() -> None:
    keyed = "key_of('é\\ud800', (1, 2.5, None, True), b'x', -(10**30))"
    code = f"from tessera.runtime.cache.store import key_of; print({keyed})"
    here = key_of("é\ud800", (1, 2.5, None, True), b"x", -(10**30))
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        assert done.stdout.strip() == here
    assert here == "84fb7fb034e8146d193184c5c7907874f9f36e1b601b601165cad807bfe2a2eb"  # and in other versions


@pytest.mark.parametrize(
    "part", [[1], {1}, {}, np.float64(1.0), np.int64(1), Three.THREE, object(), 1j, bytearray(b"x")]
)
def test_other_values_make_no_key(part: object) -> None:
    with pytest.raises(TesseraError, match="a key is made of tuples"):
        key_of("a", (part,))


@pytest.mark.parametrize("key", ["", "short", "../../etc/passwd", "A" * 64, "0" * 200, f"{'0' * 64}\n", "0" * 32 + "/"])
def test_what_is_no_key_is_refused(key: str, store: Store) -> None:
    with pytest.raises(TesseraError, match="hexadecimal digest"):
        store.get(key)
    with pytest.raises(TesseraError, match="hexadecimal digest"):
        store.put(key, b"")


# Getting and putting


@pytest.mark.parametrize("size", [0, 1, 100, 4095, 1_000_000])
def test_what_is_put_is_got(size: int, store: Store) -> None:
    payload = random.Random(size).randbytes(size)
    assert store.get(key_of(size)) is None
    store.put(key_of(size), payload)
    assert store.get(key_of(size)) == payload
    assert Store(store.root, LARGE).get(key_of(size)) == payload
    store.put(key_of(size), b"newer")
    assert store.get(key_of(size)) == b"newer"
    assert temporaries(store) == []


def test_files_are_private(store: Store) -> None:
    mask = os.umask(0)
    try:
        store.put(key_of(1), b"payload")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.root / key_of(1)).stat().st_mode) == 0o600


def test_the_folder_stays_the_same_when_the_process_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(Path("here"), LARGE)
    monkeypatch.chdir("/")
    store.put(key_of(1), b"payload")
    assert store.get(key_of(1)) == b"payload"
    assert (tmp_path / "here" / key_of(1)).exists()


def test_a_folder_that_is_removed_comes_back(store: Store) -> None:
    store.put(key_of(1), b"one")
    store.clear()
    store.root.rmdir()
    assert store.get(key_of(1)) is None
    store.put(key_of(2), b"two")
    assert store.get(key_of(2)) == b"two"


def test_the_settings_choose_the_store(tmp_path: Path) -> None:
    with knobs.cache_dir.using(tmp_path), knobs.cache_size.using("1MB"):
        assert shared().root == tmp_path / "compiled"
        assert shared().size_cap == 1_000_000
        assert shared() is shared()


def test_getting_takes_less_than_a_millisecond(store: Store) -> None:
    payload = random.Random(0).randbytes(100_000)
    store.put(key_of(1), payload)
    taken: list[float] = []
    for _ in range(50):
        start = time.process_time()
        assert store.get(key_of(1)) == payload
        taken.append(time.process_time() - start)
    assert min(taken) < 0.001


# The cap


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    payload = bytes(10_000)
    store = Store(tmp_path / "cache", 45_000)
    for name in "abcd":
        store.put(key_of(name), payload)
    assert store.get(key_of("a")) == payload
    store.put(key_of("e"), payload)  # the fifth is too many
    assert [name for name in "abcde" if store.get(key_of(name)) is not None] == ["a", "c", "d", "e"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30_000)), min_size=1, max_size=30))
def test_the_cap_holds_after_every_put(tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[int, int]]) -> None:
    store = Store(tmp_path_factory.mktemp("cap") / "cache", 100_000)
    for name, size in puts:
        store.put(key_of(name), bytes(size))
        assert sum(entry.size for entry in store.entries()) <= 100_000
        assert store.get(key_of(name)) == bytes(size)  # the newest never goes


def test_what_is_larger_than_the_cap_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", 1000)
    store.put(key_of("small"), bytes(100))
    store.put(key_of("large"), bytes(2000))
    assert store.get(key_of("large")) is None
    assert store.get(key_of("small")) == bytes(100)
    nothing = Store(tmp_path / "nothing", 0)
    nothing.put(key_of("any"), b"")
    assert nothing.get(key_of("any")) is None


def test_entries_of_other_processes_count(tmp_path: Path) -> None:
    one, other = Store(tmp_path / "cache", 1_000_000), Store(tmp_path / "cache", 1_000_000)
    for number in range(100):
        one.put(key_of("one", number), bytes(20_000))
        other.put(key_of("other", number), bytes(20_000))
        # Each may be behind by a sixteenth of the cap.
        assert sum(entry.size for entry in one.entries()) <= 1_000_000 * 17 // 16 + 25_000


def test_what_killed_writers_left_goes_after_a_while(store: Store) -> None:
    store.put(key_of(1), b"payload")
    old, new, foreign = (store.root / name for name in (".writing-1-a", ".writing-2-b", "notes.txt"))
    for path in (old, new, foreign):
        path.write_bytes(b"half an entry")
    os.utime(old, (time.time() - 700, time.time() - 700))
    os.utime(foreign, (0, 0))
    assert len(store.entries()) == 1
    assert (old.exists(), new.exists(), foreign.exists()) == (False, True, True)
    assert store.clear() == 1
    assert (new.exists(), foreign.exists()) == (False, True)


# Damage


def bit_flip(path: Path, numbers: random.Random, _: Path) -> None:
    data = bytearray(path.read_bytes())
    # Half of the flips hit the header, which is a small part of the file.
    at = numbers.randrange(200 if numbers.random() < 0.5 else len(data))
    data[at] ^= 1 << numbers.randrange(8)
    path.write_bytes(data)


def truncation(path: Path, numbers: random.Random, _: Path) -> None:
    os.truncate(path, numbers.randrange(path.stat().st_size))


def garbage(path: Path, numbers: random.Random, _: Path) -> None:
    path.write_bytes(numbers.randbytes(numbers.randrange(1, 5000)))


def zeroed_block(path: Path, numbers: random.Random, _: Path) -> None:
    data = bytearray(path.read_bytes())
    at = numbers.randrange(len(data) - 64)
    data[at : at + 64] = bytes(64)
    path.write_bytes(data)


def swapped(path: Path, _: random.Random, other: Path) -> None:
    mine, its = path.read_bytes(), other.read_bytes()
    path.write_bytes(its)
    other.write_bytes(mine)


def emptied(path: Path, _: random.Random, __: Path) -> None:
    path.write_bytes(b"")


def lengthened(path: Path, numbers: random.Random, _: Path) -> None:
    path.write_bytes(path.read_bytes() + numbers.randbytes(numbers.randrange(1, 100)))


def mixed(path: Path, numbers: random.Random, other: Path) -> None:
    """The start of one entry and the end of another, of the same length: what a torn write might leave."""
    mine, its = path.read_bytes(), other.read_bytes()
    at = numbers.randrange(150, min(len(mine), len(its)))
    path.write_bytes(mine[:at] + its[at:] + bytes(max(0, len(mine) - len(its))))


DAMAGES = [bit_flip, bit_flip, bit_flip, truncation, garbage, zeroed_block, swapped, emptied, lengthened, mixed]


def test_two_hundred_damages_are_all_found(store: Store) -> None:
    numbers = random.Random(2024)
    for number in range(200):
        key, other = key_of("entry", number), key_of("other", number)
        payload, its = numbers.randbytes(numbers.randrange(200, 5000)), numbers.randbytes(numbers.randrange(200, 5000))
        store.put(key, payload)
        store.put(other, its)
        damage = DAMAGES[number % len(DAMAGES)]
        damage(store.root / key, numbers, store.root / other)
        expected = None if damage is swapped else its
        if number % 2:
            assert set(store.verify()) == ({key, other} if damage is swapped else {key})
        assert store.get(key) is None, damage.__name__
        assert store.get(other) == expected
        assert not (store.root / key).exists()
        store.put(key, payload)
        assert store.get(key) == payload
        store.clear()


def test_every_byte_and_every_length_count(store: Store) -> None:
    store.put(key_of(1), b"payload")
    path = store.root / key_of(1)
    whole = path.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :] for at in range(len(whole))]
    for data in [*flipped, *(whole[:length] for length in range(len(whole))), whole + b"\0"]:
        store.put(key_of(1), b"")  # a file with the right rights
        path.write_bytes(data)
        assert store.get(key_of(1)) is None
    store.put(key_of(1), b"")
    path.write_bytes(whole)
    assert store.get(key_of(1)) == b"payload"


def test_links_folders_and_files_that_others_may_write_are_not_read(store: Store, tmp_path: Path) -> None:
    store.put(key_of(1), b"payload")
    whole = (store.root / key_of(1)).read_bytes()
    (tmp_path / "elsewhere").write_bytes(whole)
    (tmp_path / "elsewhere").chmod(0o600)
    path = store.root / key_of(1)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert store.get(key_of(1)) is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert store.get(key_of(1)) is None
    store.put(key_of(1), b"payload")
    path.chmod(0o666)
    assert store.get(key_of(1)) is None
    path.mkdir()
    assert store.get(key_of(1)) is None
    assert store.entries() == []
    assert (tmp_path / "elsewhere").read_bytes() == whole


def test_damage_is_logged_when_asked_for(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    for wanted in ("", "cache"):
        store.put(key_of(1), b"payload")
        (store.root / key_of(1)).write_bytes(b"garbage")
        with knobs.logs.using(wanted):
            assert store.get(key_of(1)) is None
    assert told(caplog) == [f"{key_of(1)} is removed from {store.root}: 7 bytes are no entry"]


# Folders that cannot be used


def is_off(store: Store) -> bool:
    for _ in range(3):
        store.put(key_of(1), b"payload")
    return store.get(key_of(1)) is None


def test_a_folder_that_others_may_write_is_not_used(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.put(key_of(1), b"payload")
    for mode in (0o777, 0o720, 0o702):
        store.root.chmod(mode)
        assert is_off(Store(store.root, LARGE))
    assert len(told(caplog)) == 3
    assert all("others may write to" in line for line in told(caplog))
    store.root.chmod(0o755)
    assert Store(store.root, LARGE).get(key_of(1)) == b"payload"


def test_a_folder_of_another_user_is_not_used(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(key_of(1), b"payload")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert is_off(Store(store.root, LARGE))
    assert told(caplog) == [f"the compile cache is off: {store.root} belongs to another user ({mine})"]
    assert store.get(key_of(1)) is None  # nor is a file


def test_a_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    for root in (tmp_path / "file", tmp_path / "file" / "cache"):
        assert is_off(Store(root, LARGE))
    assert len(told(caplog)) == 2
    assert all(line.startswith("the compile cache is off: ") for line in told(caplog))
    assert Store(tmp_path / "nowhere", LARGE).entries() == []
    assert Store(tmp_path / "nowhere", LARGE).clear() == 0
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_full_disk_ends_the_writing(
    code: int, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(key_of("before"), b"payload")

    def full(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "write", full)
        for number in range(3):
            store.put(key_of(number), b"payload")
    assert told(caplog) == [f"nothing more is written to the compile cache in {store.root}: {os.strerror(code)}"]
    assert temporaries(store) == []
    assert store.get(key_of(0)) is None
    assert store.get(key_of("before")) == b"payload"  # what is there can still be read


def test_a_write_that_the_system_cuts_off(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    # A real limit, not a pretended one: files of this process may not grow beyond 10 kB.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        store.put(key_of("small"), bytes(5000))
        store.put(key_of("large"), bytes(50_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.get(key_of("small")) == bytes(5000)
    assert store.get(key_of("large")) is None
    assert temporaries(store) == []
    assert told(caplog) == [f"nothing more is written to the compile cache in {store.root}: File too large"]


def test_trouble_is_one_line_on_the_terminal(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from tessera.runtime.cache.store import Store
store = Store(Path({str(tmp_path / "file" / "cache")!r}), 1000)
(Path({str(tmp_path)!r}) / "file").write_text("")
for _ in range(3):
    store.put("0" * 64, b"")
    assert store.get("0" * 64) is None
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [f"the compile cache is off: {tmp_path / 'file' / 'cache'}: Not a directory"]


# Other processes


def kill_writers(root: Path, kills: int) -> int:
    """Starts a writer and kills it at a random moment, many times; the cache is right after each. Counts torn files.

    Every other one is killed as soon as it is seen to write, however long that takes where others compute.
    """
    numbers = random.Random(kills)
    store = Store(root, LARGE)
    for kill in range(kills):
        command = [sys.executable, cache_process.__file__, "write", str(root), str(kill)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            time.sleep(numbers.random() * 0.03)
            until, torn = time.monotonic() + 10, len(temporaries(store))
            while kill % 2 and len(temporaries(store)) == torn and time.monotonic() < until:
                pass
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        assert writer.returncode == -signal.SIGKILL
        assert store.verify() == []  # a half-written file never has the name of an entry
        found = [store.get(key_of(number)) for number in range(KEYS)]
        assert any(payload is not None for payload in found)
        for number, payload in enumerate(found):
            assert payload is None or payload == payload_of(key_of(number), 1_500_000)
    torn = len(temporaries(store))
    store.clear()
    assert os.listdir(root) == []
    return torn


@pytest.mark.acceptance
def test_killing_writers_leaves_no_lies(tmp_path: Path) -> None:
    kill_writers(tmp_path / "cache", 5)


@pytest.mark.acceptance
def test_killing_a_hundred_writers_leaves_no_lies(tmp_path: Path) -> None:
    assert kill_writers(tmp_path / "cache", 100) > 0  # some were killed in the middle of a file


def crowd(root: Path, processes: int, rounds: int) -> None:
    commands = [
        [sys.executable, cache_process.__file__, "mix", str(root), str(seed), str(rounds)] for seed in range(processes)
    ]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands
    ]
    seen = [process.communicate() for process in running]
    assert [(process.returncode, errors) for process, (_, errors) in zip(running, seen, strict=True)] == [
        (0, "") for _ in running
    ]
    for printed, _ in seen:
        hits, misses = map(int, printed.split())
        assert hits > 0
        assert misses > 0
    store = Store(root, 1_000_000)
    assert temporaries(store) == []
    assert store.verify() == []
    # All together may be over by what each has not yet told the others.
    assert sum(entry.size for entry in store.entries()) <= 1_000_000 * (16 + processes) // 16
    store.put(key_of("last"), b"")
    assert sum(entry.size for entry in store.entries()) <= 1_000_000


def test_many_processes_use_the_same_keys_at_once(tmp_path: Path) -> None:
    crowd(tmp_path / "cache", processes=6, rounds=600)


@pytest.mark.acceptance
def test_very_many_processes_use_the_same_keys_at_once(tmp_path: Path) -> None:
    crowd(tmp_path / "cache", processes=16, rounds=5000)


@pytest.mark.acceptance
def test_many_threads_use_the_same_keys_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", 1_000_000)

    def use(seed: int) -> None:
        numbers = random.Random(seed)
        for _ in range(200):
            key = key_of(numbers.randrange(KEYS))
            found = store.get(key)
            assert found is None or found == payload_of(key, 100_000)
            store.put(key, payload_of(key, 100_000))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert store.verify() == []
    store.put(key_of("last"), b"")
    assert sum(entry.size for entry in store.entries()) <= 1_000_000


def test_importing_the_cache_imports_no_compiler() -> None:
    code = "import sys, tessera.runtime.cache.store; print(*{'llvmlite', 'xdsl', 'click', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"
