"""The compile cache on disk: bytes under keys, shared by all processes of a user, and never believed without a check.

An entry is one file, named by its key: a header (magic, version, key, length, checksum), then the payload. It is
written to a temporary file and renamed, so a reader sees a whole entry or none. Nothing is synced to the disk: what a
power cut tears, the checksum finds, and it is compiled again. Whatever goes wrong here is a miss and a log line, not an
error. There are no locks, neither between processes nor between threads, so a fork can leave none behind: the counts of
bytes may be a little off until the folder is looked at again.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import time
import zlib
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, cast

from tessera import knobs
from tessera.errors import TesseraError

_MAGIC = b"TesCache"
_VERSION = 1
_HEADER = struct.Struct("<8sHHQ32s")  # magic, version, length of the key, length of the payload, checksum
_KEY = re.compile(r"[0-9a-f]{16,128}")
_TEMPORARY = ".writing-"
_ABANDONED_SECONDS = 600  # no writer takes that long; one that is still there was killed
_SLACK = 16  # processes learn of each other's entries after writing this part of the cap themselves


def key_of(*parts: object) -> str:
    """A digest of values: equal across processes, different for 1, 1.0, True and "1".

    Parts are tuples, str, bytes, int, float, bool and None, nested at will.
    """
    digest = blake2b(digest_size=32)
    _feed(digest.update, parts)
    return digest.hexdigest()


def _feed(update: Callable[[bytes], None], part: object) -> None:
    kind = type(part)
    if kind is tuple:
        parts = cast("tuple[object, ...]", part)
        update(b"(%d:" % len(parts))
        for one in parts:
            _feed(update, one)
    elif kind in _ENCODINGS:
        update(_ENCODINGS[kind](part))
    else:
        raise TesseraError(
            f"a key is made of tuples, str, bytes, int, float, bool and None, got {kind.__name__}: {part!r}"
        )


def _counted(tag: bytes, text: bytes) -> bytes:
    return b"%b%d:%b" % (tag, len(text), text)


# By exact type: a subclass may mean more than its value says.
_ENCODINGS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"N",
    bool: lambda value: b"T" if value else b"F",
    int: lambda value: b"i%x;" % value,
    float: lambda value: b"f" + struct.pack("<d", value),
    str: lambda value: _counted(b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: _counted(b"b", value),
}


_LENGTH = struct.Struct("<Q")
UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError),
    *(struct.error, zlib.error, TesseraError),
)
"""Raised where a payload is whole but not what this version writes: its reader takes that for a miss."""


def packed(head: object, body: bytes) -> bytes:
    """A payload of two parts: the length of a JSON, that JSON, and bytes behind it."""
    text = json.dumps(head).encode()
    return _LENGTH.pack(len(text)) + text + body


def unpacked(data: bytes) -> tuple[Any, bytes]:
    """The parts of such a payload; ValueError where it is none."""
    if len(data) < _LENGTH.size:
        raise ValueError(f"{len(data)} bytes are too few")
    start = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    return json.loads(data[_LENGTH.size : start]), data[start:]


class CacheEntry(NamedTuple):
    """A file of the cache: its name, its size in bytes, and when it was last used."""

    name: str
    size: int
    used_ns: int


class Store:
    """A folder of entries that holds at most about `size_cap` bytes; the least recently used go first."""

    def __init__(self, root: Path, size_cap: int) -> None:
        self.root = root.absolute()  # a process may change its directory
        self.size_cap = size_cap
        self._usable: bool | None = None  # unknown until the folder is first looked at
        self._writable = True
        self._size: int | None = None  # as far as this process knows
        self._written = 0  # by this process, since it last looked

    def get(self, key: str) -> bytes | None:
        """The payload, or None where there is none that can be trusted."""
        path = self._path(key)
        if not self._is_usable():
            return None
        try:
            data, wrong = _read(path, key, touch=True)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log(f"{path} cannot be read: {error.strerror}")
            return None
        if wrong is not None:
            self._discard(key, wrong)
            return None
        return data[_HEADER.size + len(key) :]

    def put(self, key: str, payload: bytes) -> None:
        """Keeps a payload, if it can."""
        path = self._path(key)
        if not self._is_usable() or not self._writable:
            return
        data = _entry(key, payload)
        if len(data) > self.size_cap:
            _log(f"{key} is not kept: {len(data)} bytes, and the cache may hold {self.size_cap}")
            return
        try:
            try:
                self._write(path, data)
            except FileNotFoundError:  # someone removed the folder
                self._usable = None
                if self._is_usable():
                    self._write(path, data)
            self._account(len(data))
        except OSError as error:
            self._writable = False
            _warn(f"nothing more is written to the compile cache in {self.root}: {error.strerror}")

    def entries(self) -> list[CacheEntry]:
        """All entries, least recently used first."""
        return sorted(self._scan(), key=lambda entry: (entry.used_ns, entry.name))

    def clear(self) -> int:
        """Removes everything; says how many entries there were."""
        return sum(self._remove(entry.name) for entry in self._scan(abandoned_after=0))

    def verify(self) -> list[str]:
        """Checks every entry and removes those that are damaged; says which."""
        damaged: list[str] = []
        for entry in self.entries():
            try:
                _, wrong = _read(self._path(entry.name), entry.name, touch=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                wrong = error.strerror
            if wrong is not None:
                self._discard(entry.name, wrong)
                damaged.append(entry.name)
        return damaged

    def _path(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise TesseraError(f"a key is a hexadecimal digest, got {key!r}", hint="key_of makes one of any values")
        return os.path.join(self.root, key)

    def _is_usable(self) -> bool:
        """Whether code from this folder may be run: it is ours, and no other user may write there."""
        if self._usable is None:
            wrong = self._unsafe()
            self._usable = wrong is None
            if wrong is not None:
                _warn(f"the compile cache is off: {wrong}")
        return self._usable

    def _unsafe(self) -> str | None:
        try:
            os.makedirs(self.root, mode=0o700, exist_ok=True)
            found = os.stat(self.root)
        except OSError as error:
            return f"{self.root}: {error.strerror}"
        if found.st_uid != os.geteuid():
            return f"{self.root} belongs to another user ({found.st_uid})"
        if found.st_mode & 0o022:
            return f"others may write to {self.root}; `chmod go-w` makes it safe"
        return None

    def _write(self, path: str, data: bytes) -> None:
        temporary = os.path.join(self.root, f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(file, rest) :]
                _touch(file)
            finally:
                os.close(file)
            os.replace(temporary, path)
        except BaseException:
            self._remove(os.path.basename(temporary))
            raise

    def _account(self, added: int) -> None:
        """Evicts when the cap is passed. Other processes' entries count from the next look at the folder on."""
        self._written += added
        known = self._size is not None and self._size + self._written <= self.size_cap
        if known and self._written <= self.size_cap // _SLACK:
            return
        found = self.entries()
        total = sum(entry.size for entry in found)
        if total > self.size_cap:
            # A tenth more than needed, so that the next entries do not have to evict again.
            for entry in found:
                if total <= self.size_cap * 9 // 10:
                    break
                self._remove(entry.name)
                total -= entry.size
        self._size, self._written = total, 0

    def _scan(self, abandoned_after: float = _ABANDONED_SECONDS) -> list[CacheEntry]:
        """Lists the entries of the folder; removes what killed writers left. Other files are left alone."""
        found: list[CacheEntry] = []
        limit = time.time_ns() - int(abandoned_after * 1e9)
        try:
            with os.scandir(self.root) as files:
                for file in files:
                    if not _KEY.fullmatch(file.name) and not file.name.startswith(_TEMPORARY):
                        continue
                    try:
                        facts = file.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if stat.S_ISDIR(facts.st_mode):
                        continue
                    if _KEY.fullmatch(file.name):
                        found.append(CacheEntry(file.name, facts.st_size, facts.st_mtime_ns))
                    elif facts.st_mtime_ns <= limit:
                        self._remove(file.name)
        except OSError:  # there is no folder, or it cannot be listed
            return []
        return found

    def _discard(self, name: str, wrong: str) -> None:
        _log(f"{name} is removed from {self.root}: {wrong}")
        self._remove(name)

    def _remove(self, name: str) -> bool:
        try:
            os.unlink(os.path.join(self.root, name))
        except OSError:  # another process was faster, or may not
            return False
        return True


def shared() -> Store:
    """The store that the settings `cache_dir` and `cache_size` ask for."""
    return _store(knobs.cache_dir.value / "compiled", knobs.cache_size.value)


@lru_cache(maxsize=16)
def _store(root: Path, size_cap: int) -> Store:
    return Store(root, size_cap)


def _entry(key: str, payload: bytes) -> bytes:
    head = _HEADER.pack(_MAGIC, _VERSION, len(key), len(payload), _checksum(key, payload))
    return b"".join([head, key.encode(), payload])


def _checksum(key: str, payload: bytes | memoryview) -> bytes:
    digest = blake2b(b"%d:%b:%d:" % (_VERSION, key.encode(), len(payload)), digest_size=32)
    digest.update(payload)
    return digest.digest()


def _fault(key: str, data: bytes) -> str | None:
    """A sentence about what is wrong with a file that should hold the entry of a key; None where nothing is."""
    if len(data) < _HEADER.size:
        return f"{len(data)} bytes are no entry"
    magic, version, key_length, length, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        return "it is no entry, or one of another version"
    start = _HEADER.size + key_length
    if data[_HEADER.size : start] != key.encode():
        return "it is the entry of another key"
    if len(data) != start + length:
        return f"expected {start + length} bytes, got {len(data)}"
    if _checksum(key, memoryview(data)[start:]) != checksum:
        return "its checksum is wrong"
    return None


def _read(path: str, key: str, *, touch: bool) -> tuple[bytes, str | None]:
    """The bytes of a file, and what is wrong with them as the entry of a key."""
    with open(path, "rb", buffering=0, opener=_open) as file:
        wrong = _ownership_fault(os.fstat(file.fileno()))
        if wrong is not None:
            return b"", wrong
        data = file.read()
        wrong = _fault(key, data)
        if touch and wrong is None:
            _touch(file.fileno())
    return data, wrong


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _ownership_fault(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "it is no file"
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return "others may write it"
    return None


def _touch(file: int) -> None:
    """Marks an entry as used; the clock of the file system would be too coarse to order uses."""
    now = time.time_ns()
    try:
        os.utime(file, ns=(now, now))
    except OSError:  # a read-only file system: nothing is evicted there either
        return


def _log(message: str) -> None:
    if "cache" in knobs.logs.value:
        _warn(message)


def _warn(message: str) -> None:
    import logging

    logging.getLogger("tessera.cache").warning(message)
