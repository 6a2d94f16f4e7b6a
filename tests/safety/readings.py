"""Who reads what: IR texts, cache entries, results, histories and notes, changed by a seed, given to their readers.

`python readings.py KIND:FIRST:COUNT,… FOLDER` does so in a process of its own; its last line of output is the outcome.
While anything is read, nothing may be run, started, connected to, or written outside of the folder.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "bench")]

from mutations import mutated_bytes, mutated_json, mutated_text  # noqa: E402

from tessera import Schedule, knobs  # noqa: E402
from tessera.bench.reporting import exchange  # noqa: E402
from tessera.errors import TesseraError  # noqa: E402
from tessera.runtime.cache import store as cache  # noqa: E402

made_up: Any = import_module("made_up")
SLOW_SECONDS = 2.0
"""Of this process's own time: others may keep it waiting."""
_LARGEST_TEXT = 8000
Reading = Callable[[random.Random], bool]
"""Reads something that was changed; whether it was still readable. Errors of ours say that it was not."""


def ir_texts(folder: Path) -> Reading:
    """Texts of every dialect; what can be read can be written, hashed, and read again."""
    from tessera.targets import text

    tests = HERE.parent
    files = [*(tests / "filecheck").rglob("*.mlir"), *(tests / "kernels" / "golden").glob("*.mlir")]
    files += (tests / "goldens").glob("*.nv")
    whole = [path.read_text(encoding="utf-8") for path in sorted(files)]
    parts = [part for one in whole for part in one.split("// -----")]
    seeds = [part for part in parts if len(part) <= _LARGEST_TEXT]
    for seed in seeds[:: len(seeds) // 40]:
        with contextlib.suppress(TesseraError):
            text.structural_hash(text.read(seed))

    def read(rng: random.Random) -> bool:
        module = text.read(mutated_text(rng.choice(seeds), rng, seeds))
        text.structural_hash(module)
        text.read(text.write(module, locations=True))
        return True

    return read


def cache_entries(folder: Path) -> Reading:
    """Files of the compile cache: the payload as it was written, or none; what is damaged is removed."""
    from tessera.runtime.cache.store import Store, key_of

    store = Store(folder / "entries", 1 << 30)
    key = key_of("entry")
    payloads = [cache.packed({"plan": [1, 2, 3]}, os.urandom(300)), b"", b"\x7fELF" + bytes(64)]
    path = store.root / key

    def read(rng: random.Random) -> bool:
        payload = rng.choice(payloads)
        store.put(key, payload)
        whole = path.read_bytes()
        changed = mutated_bytes(whole, rng)
        path.write_bytes(changed)
        found = store.get(key)
        assert found is None or (changed == whole and found == payload), "a damaged entry was believed"
        assert found is not None or not path.exists(), "a damaged entry is still there"
        return found is not None

    return read


def results(folder: Path) -> Reading:
    """Result files and journals: read, compared with a good run both ways, shown and written."""
    from rich.console import Console

    from tessera.bench.reporting import markdown, tables
    from tessera.cli import bench_session

    good = made_up.suite((256, 512), ("f32",), ("tessera", "torch_sdpa"))
    data, path, journal = exchange.to_dict(good), folder / "run.json", folder / "run.journal"
    with exchange.Journal(journal) as noted:
        noted.begin(good)
        for row in good.results.values():
            noted.append(row)
        noted.finish(good)
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]

    def read(rng: random.Random) -> bool:
        if rng.random() < 0.2:
            number = rng.randrange(len(lines))
            texts = [mutated_json(one, rng) if index == number else json.dumps(one) for index, one in enumerate(lines)]
            journal.write_bytes("\n".join(texts).encode("utf-8", "surrogatepass"))
            suite = exchange.Journal.recover(journal)
        else:
            path.write_bytes(mutated_json(data, rng).encode("utf-8", "surrogatepass"))
            suite = exchange.read_json(path)
        quiet = Console(file=io.StringIO())
        for before, after in ((good, suite), (suite, good)):
            with contextlib.suppress(TesseraError):
                found = bench_session.compared(before, after, None)
                tables.print_comparison(found, quiet)
                exchange.json_text(found.to_dict())
        tables.print_suite(suite, quiet)
        markdown.write_markdown(suite, folder / "run.md")
        exchange.write_csv(suite, folder / "run.csv")
        exchange.write_json(suite, folder / "again.json")
        return True

    return read


def pages(folder: Path) -> Reading:
    """Result files as pages: well formed, and with nothing in them that a name has brought along."""
    from tessera.bench.reporting.page import page
    from tessera.cli import bench_session

    good = made_up.suite((256, 512), ("f32",), ("tessera", "torch_sdpa"))
    data = exchange.to_dict(good)
    expected = _scripts(page(good))

    def read(rng: random.Random) -> bool:
        (folder / "page.json").write_bytes(mutated_json(data, rng).encode("utf-8", "surrogatepass"))
        suite = exchange.read_json(folder / "page.json")
        try:
            comparison = bench_session.compared(good, suite, None)
        except TesseraError:
            comparison = None
        made = page(suite, comparison=comparison)
        assert _scripts(made) == expected, "a name became a script"
        return True

    return read


class _Elements(HTMLParser):
    """Checks that what is opened is closed in its order, and lists what could run."""

    _EMPTY = ("meta", "link", "br", "hr", "img", "input", "col", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.runs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._EMPTY:
            self.open.append(tag)
        self.runs += [tag] if tag in ("script", "iframe", "object", "embed", "img", "base", "form") else []
        self.runs += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} ends and was not begun"
        assert self.open.pop() == tag


def _scripts(made: str) -> list[str]:
    seen = _Elements()
    seen.feed(made)
    seen.close()
    assert seen.open == []
    return seen.runs


def histories(folder: Path) -> Reading:
    """SQLite files: damaged as files, or with other values in their columns."""
    from tessera.bench.reporting.history import History

    good = made_up.suite((256,), ("f32",), ("tessera", "torch_sdpa"))
    path = folder / "history.sqlite"
    with History(path) as kept:
        kept.add(good, "abc")
    whole = path.read_bytes()
    columns = [("runs", name) for name in ("time", "commit_name", "measured", "failed", "suite")]
    columns += [("figures", name) for name in ("key", "metric", "value", "low", "high")]
    values = (None, "x", b"\xff\x00", 1 << 62, -1.5, "[" * 5000, "{}", 1e308, "")

    def read(rng: random.Random) -> bool:
        for left in folder.glob("history.sqlite*"):
            left.unlink()
        if rng.random() < 0.5:
            path.write_bytes(mutated_bytes(whole, rng))
        else:
            path.write_bytes(whole)
            table, name = rng.choice(columns)
            with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as damaged, damaged:
                damaged.execute(f"UPDATE {table} SET {name} = ?", (rng.choice(values),))
        with History(path) as kept:
            for run in kept.runs():
                kept.suite(run.id)
            for key in kept.keys():  # noqa: SIM118  (a history is no dictionary)
                kept.series(key)
            kept.add(good)
        return True

    return read


def notes(folder: Path) -> Reading:
    """What tiers, kernels and jitted functions keep beside code: whole, with a right checksum, of another form."""
    import numpy as np

    import tessera as ts
    from tessera import jit, kernel, tile
    from tessera.metatracing import ExecutionTier, TierLevel
    from tessera.metatracing.clients import advice
    from tessera.metatracing.models.kernel_times import KernelTimes
    from tessera.programs import store
    from tessera.tiers.manager import KernelManager
    from tessera.tile.calls.block_selection import Choice
    from tessera.tile.calls.guarded_kernel import GuardedKernel
    from tessera.tile.calls.program_cache import Kept

    knobs.cache_dir.set(folder / "cache")
    shared, manager = cache.shared(), object.__new__(KernelManager)
    # Real ones, by a real kernel and a real function.
    np.testing.assert_array_equal(_doubled(kernel, tile)(ts.ones(64)).numpy(), 2.0)
    np.testing.assert_array_equal(_added(jit)(ts.ones(64)).numpy(), 2.0)
    heads: list[Any] = []
    plain: list[Any] = []
    for entry in shared.entries():
        payload = shared.get(entry.name) or b""
        with contextlib.suppress(*cache.UNREADABLE):
            heads.append(cache.unpacked(payload)[0])
            continue
        with contextlib.suppress(ValueError):
            plain.append(json.loads(payload))
    level = TierLevel(ExecutionTier(3), ("x.size[0]",), Schedule(block=(32, 16), warps=4))
    manager.remember("region", [level])
    remembered = cache.key_of("tiers", "region")
    levels = json.loads(shared.get(remembered) or b"null")
    key = cache.key_of("note")
    choice = {"driver": "1", "candidates": [[[64, 64], 12.5]]}
    fits: Any = {
        "machine": ["cuda", 132, "H200"],
        "fits": {},
        "pairs": {"a > b": [0.1]},
        "facts": {},
        "copies": [1, 2, 3],
    }
    given = {"x": ts.ones(64)}
    assert heads
    assert plain

    def levels_of(rng: random.Random) -> Any:
        shared.put(remembered, _bytes(mutated_json(levels, rng)))
        return manager.remembered("region")

    def advised(rng: random.Random) -> Any:
        shared.put(key, _bytes(mutated_json({"block": [64, 32], "warps": 4}, rng)))
        return advice.kept(key)

    def chosen(rng: random.Random) -> Any:
        data = _bytes(mutated_json(choice, rng))
        found: Any = SimpleNamespace(find_behind=lambda given: (None, data))  # pyright: ignore[reportUnknownLambdaType]
        return Choice.found(found, given)

    def asked(rng: random.Random) -> Any:
        shared.put(key, _bytes(mutated_json(rng.choice([[[["x"], [[0, "size", 0]]]], rng.choice(plain)]), rng)))
        return Kept(key).find(given)

    def program(rng: random.Random) -> Any:
        head = _bytes(mutated_json(rng.choice(heads), rng))
        data = len(head).to_bytes(8, "little") + head  # no code behind it: none of it may be needed to say no
        shared.put(key, data)
        GuardedKernel.decoded(data)
        store_found = None
        with contextlib.suppress(*cache.UNREADABLE):
            store_found = store.host.Host.decoded(cache.unpacked(data)[0])
        return store_found

    def times(rng: random.Random) -> Any:
        try:
            return KernelTimes.read(mutated_json(fits, rng))
        except ValueError:
            return None

    ways = (levels_of, advised, chosen, asked, program, times)

    def read(rng: random.Random) -> bool:
        return rng.choice(ways)(rng) is not None

    return read


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _doubled(kernel: Any, tile: Any) -> Any:
    @kernel
    def doubled(x: Any) -> Any:
        return tile.load(x) * 2.0

    return doubled


def _added(jit: Any) -> Any:
    @jit
    def added(x: Any) -> Any:
        return x + x

    return added


KINDS: dict[str, Callable[[Path], Reading]] = {
    "ir": ir_texts,
    "cache": cache_entries,
    "results": results,
    "pages": pages,
    "histories": histories,
    "notes": notes,
}

_NEVER = (
    *("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn", "subprocess.Popen", "pty.spawn"),
    *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.Request", "webbrowser.open"),
    *("ctypes.dlopen", "ctypes.call_function", "pickle.find_class", "marshal.loads", "sqlite3.enable_load_extension"),
    *("code.__new__", "os.chmod", "os.chown", "os.kill", "os.putenv", "shutil.rmtree"),
)


class Watch:
    """Notes what is done while something is read, and may not be."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.on = os.path.realpath(folder), False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: Any) -> None:
        if not self.on:
            return
        if event == "os.chmod" and isinstance(arguments[0], int):  # of what it has opened
            return
        if event == "marshal.loads" and _is_import(inspect.currentframe()):
            return  # a module that is loaded late: whether it is a library's is seen when it is run
        if event in _NEVER:
            self.seen.append(f"{event} {arguments!r:.100}")
        elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
            if not os.path.realpath(os.fsdecode(arguments[0])).startswith(self.folder + os.sep):
                self.seen.append(f"open {arguments[0]!r:.100}")
        elif event == "exec" and not _is_library(arguments[0].co_filename):
            self.seen.append(f"exec {arguments[0].co_filename} {arguments[0].co_names!r:.100}")


def _is_import(frame: FrameType | None) -> bool:
    """Whether it is Python's own import that asks, in the frame around one."""
    asker = None if frame is None else frame.f_back
    return asker is not None and asker.f_code.co_filename.startswith("<frozen importlib")


def _is_library(file: str) -> bool:
    """A module that is loaded late, from where it is installed, or our own template of a page."""
    installed = any(path and file.startswith(path + os.sep) for path in sys.path)
    return installed or file.startswith(("<frozen ", "<template>"))


def tried(kind: str, first: int, count: int, folder: Path) -> dict[str, Any]:
    """What came of reading so many things. The number of the one that is being read is in a file, for who watches."""
    read, at = KINDS[kind](folder), folder / "at"
    watch = Watch(folder)
    refused, escaped, slow = 0, list[str](), list[str]()
    for seed in range(first, first + count):
        at.write_text(str(seed))
        rng = random.Random(f"{kind} {seed}")
        began = time.process_time()
        watch.on = True
        try:
            refused += not read(rng)
        except TesseraError as error:
            refused += 1
            try:
                str(error)
            except Exception as worse:
                escaped.append(f"{kind} {seed}: its error cannot be told: {type(worse).__name__}: {worse}")
        except Exception as error:
            escaped.append(f"{kind} {seed}: {type(error).__name__}: {str(error)[:200]}")
        watch.on = False
        if (took := time.process_time() - began) > SLOW_SECONDS:
            slow.append(f"{kind} {seed}: {took:.1f} s")
    return {"kind": kind, "count": count, "refused": refused, "escaped": escaped, "slow": slow, "done": watch.seen}


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # of numbers that are too large for plots
    asked = [one.split(":") for one in sys.argv[1].split(",")]
    outcomes = [tried(kind, int(first), int(count), Path(sys.argv[2])) for kind, first, count in asked]
    sys.stdout.write(json.dumps(outcomes) + "\n")
