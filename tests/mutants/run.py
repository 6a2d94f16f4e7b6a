"""Applies each mutation of `mutants.json` and runs the test that kills it: `python tests/mutants/run.py [--only N]`.

A mutation is written into a copy of the sources that comes first on the path, so that processes started by tests have
it, too. Its test must pass without it and fail with it; a mutation that no test kills is run against tests that reach
it, and must survive. The exit status says whether every verdict is the one in the file.

`--relocate` brings the file up to date after modules and functions were moved or renamed: it finds them by their shape.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from mutant_sites import (
    SOURCE,
    MutantError,
    Site,
    fingerprint,
    function_named,
    functions,
    lines_around,
    path_of,
    replaced,
    sites,
)

ROOT = SOURCE.parent
MUTANTS = Path(__file__).with_name("mutants.json")
LIMIT_S = 120.0
"""How long tests may take with a mutation; one that makes them hang is killed."""
MOST_BYTES = 8 << 30
"""How much memory they may take: some mutations make loops endless."""

RUNNABLE = "not gpu and not peers"  # a test that is named may be one of acceptance
"""Which tests are run of those that a name stands for: as many as `make test` takes of them."""

_LIMITED = (
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


@dataclass(frozen=True)
class Mutant:
    """A mutation, where it is, and what tests make of it."""

    number: int
    """Its index among all that were drawn."""
    module: str
    function: str
    kind: str
    index: int
    """The number of its site among those of its kind in the function."""
    fingerprint: str
    """The function's shape without names: where it differs, the function is another one."""
    original: str
    mutated: str
    killed_by: str | None = None
    """The test that fails with it; None where all tests pass."""
    survives_because: str | None = None
    survives: tuple[str, ...] = ()
    """Tests that come near it and pass, as those do that are not named."""

    @property
    def tests(self) -> tuple[str, ...]:
        return self.survives if self.killed_by is None else (self.killed_by,)

    @property
    def verdict(self) -> str:
        return "survives" if self.killed_by is None else "killed"


@dataclass(frozen=True)
class Outcome:
    """How tests ended: `passed`, `failed` or `hung`, and the end of what they wrote."""

    word: str
    text: str


def read(path: Path = MUTANTS) -> list[Mutant]:
    """The mutations of a file, in the order in which they were drawn."""
    found = [Mutant(**one) for one in json.loads(path.read_text(encoding="utf-8"))["mutants"]]
    return [replace(one, survives=tuple(one.survives)) for one in found]


def site_of(mutant: Mutant, source: Path = SOURCE) -> Site:
    """The site of a mutation, if its function still has the shape that it had."""
    where = f"mutation {mutant.number} ({mutant.module}, {mutant.function})"
    try:
        tree = ast.parse(path_of(mutant.module, source).read_text(encoding="utf-8"))
        function = function_named(tree, mutant.function)
    except MutantError as error:
        raise MutantError(f"{where}: {error}; `run.py --relocate` looks for it elsewhere") from error
    if fingerprint(function) != mutant.fingerprint:
        raise MutantError(f"{where}: the function has changed; say by hand which site it is now, and its fingerprint")
    found = sites(function, mutant.kind)
    if mutant.index >= len(found):
        raise MutantError(f"{where}: there is no site {mutant.index} of the kind {mutant.kind}")
    return found[mutant.index]


class Copy:
    """A copy of the sources, one of whose modules is a mutated one for a while."""

    def __init__(self, folder: Path, source: Path = SOURCE) -> None:
        self.folder = folder
        self._changes = 0
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))

    @contextmanager
    def with_mutant(self, mutant: Mutant) -> Generator[None]:
        path = path_of(mutant.module, self.folder)
        text = path.read_text(encoding="utf-8")
        self._write(path, replaced(text, site_of(mutant, self.folder)))
        try:
            yield
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """Writes a module with a time that it never had: bytecode is kept by time and size."""
        path.write_text(text, encoding="utf-8")
        self._changes += 1
        os.utime(path, (self._changes, self._changes))


def run_tests(copy: Copy, tests: Sequence[str], *, root: Path = ROOT, limit_s: float = LIMIT_S) -> Outcome:
    """Runs tests in a process of its own with the sources of a copy; the first that fails ends it."""
    with TemporaryDirectory(prefix="tessera-mutants-", ignore_cleanup_errors=True) as cache:
        environment = {**os.environ, "PYTHONPATH": str(copy.folder), "TESSERA_CACHE_DIR": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment.pop("PYTEST_ADDOPTS", None)
        command = [sys.executable, "-c", _LIMITED, str(MOST_BYTES)]
        command += ["-m", "pytest", "-m", RUNNABLE, "-x", "--tb=line", "-p", "no:cacheprovider", *tests]
        # A session of its own: what a test has started ends with it.
        with subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                text, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return Outcome("hung", f"no end after {limit_s:.0f} s")
    passed = process.returncode == 0 and re.search(r"\b\d+ passed\b", text) is not None
    return Outcome("passed" if passed else "failed", text[-2000:])


def verdict(copy: Copy, mutant: Mutant, *, root: Path = ROOT, limit_s: float = LIMIT_S) -> str:
    """`killed` or `survives`: what the mutation's tests say with it, which pass without it."""
    with copy.with_mutant(mutant):
        return "survives" if run_tests(copy, mutant.tests, root=root, limit_s=limit_s).word == "passed" else "killed"


def failing(copy: Copy, tests: Collection[str], *, root: Path = ROOT, limit_s: float = LIMIT_S) -> dict[str, str]:
    """Those of the tests that fail without any mutation, and what they say: they show nothing."""
    # All of them at once, and one by one only where that fails.
    if run_tests(copy, sorted(tests), root=root, limit_s=limit_s * max(1, len(tests))).word == "passed":
        return {}
    outcomes = {test: run_tests(copy, [test], root=root, limit_s=limit_s) for test in sorted(tests)}
    return {test: outcome.text for test, outcome in outcomes.items() if outcome.word != "passed"}


def relocated(mutants: Sequence[Mutant], source: Path = SOURCE) -> list[Mutant]:
    """The mutations where their functions are now, with the lines as they are now."""
    by_fingerprint: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            by_fingerprint[fingerprint(function)].append((module, name))
    result: list[Mutant] = []
    for mutant in mutants:
        found = by_fingerprint[mutant.fingerprint]
        if (mutant.module, mutant.function) in found:
            moved = mutant
        elif len(found) == 1:
            moved = replace(mutant, module=found[0][0], function=found[0][1])
        else:
            raise MutantError(
                f"mutation {mutant.number} ({mutant.module}, {mutant.function}): {len(found)} functions have its shape"
            )
        text = path_of(moved.module, source).read_text(encoding="utf-8")
        original, mutated = lines_around(text, site_of(moved, source))
        result.append(replace(moved, original=original, mutated=mutated))
    return result


def write(mutants: Sequence[Mutant], path: Path = MUTANTS) -> None:
    """Puts mutations into the file instead of those that it has; what else it says stays."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    whole["mutants"] = [
        {name: value for name, value in asdict(one).items() if value not in (None, ())} for one in mutants
    ]
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def check(mutants: Sequence[Mutant], jobs: int = 1) -> int:
    """Runs all of them, prints a row for each, and gives the number of those whose verdict is not that of the file."""
    with TemporaryDirectory(prefix="tessera-mutants-", ignore_cleanup_errors=True) as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            copies.put(Copy(Path(folder) / str(number)))

        def judge(mutant: Mutant) -> tuple[str, float]:
            start, copy = time.monotonic(), copies.get()
            try:
                return verdict(copy, mutant), time.monotonic() - start
            finally:
                copies.put(copy)

        first = copies.get()
        broken = failing(first, {test for mutant in mutants for test in mutant.tests})
        copies.put(first)
        for test, text in broken.items():
            _say(f"fails without any mutation: {test}\n{text}")
        wrong = 0
        with ThreadPoolExecutor(jobs) as threads:
            for mutant, (found, seconds) in zip(mutants, threads.map(judge, mutants), strict=True):
                shown = "shows nothing" if broken.keys() & set(mutant.tests) else found
                wrong += shown != mutant.verdict
                mark = "" if shown == mutant.verdict else f"   expected: {mutant.verdict}"
                where = f"{mutant.module.removeprefix('tessera.')}.{mutant.function}"
                _say(f"{mutant.number:3} {where:62} {mutant.kind:18} {shown:9} {seconds:6.1f} s{mark}")
    killed = sum(mutant.killed_by is not None for mutant in mutants)
    _say(f"{len(mutants)} mutations, {killed} to be killed; {wrong} with another verdict than the file's")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs mutations of passes against the tests that kill them.")
    parser.add_argument("--only", type=int, action="append", help="the number of a mutation; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="how many run side by side")
    parser.add_argument("--relocate", action="store_true", help="follow functions that were moved, and run nothing")
    asked = parser.parse_args()
    mutants = read()
    if asked.relocate:
        write(relocated(mutants))
        return 0
    return min(1, check([one for one in mutants if asked.only is None or one.number in asked.only], asked.jobs))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
