"""Whatever is read from outside, damaged or made up: a result, a miss or an error of ours, soon, and nothing is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

READINGS = Path(__file__).with_name("readings.py")
QUICK = {"ir": 25, "cache": 200, "results": 10, "histories": 15, "notes": 80}
FULL = {"ir": 30_000, "cache": 35_000, "results": 14_500, "pages": 500, "histories": 5_000, "notes": 15_000}
PIECE = {"ir": 2_000, "pages": 50}
"""How many a process reads; others read 5,000."""
_LONGEST_PIECE = 900.0


def outcomes(asked: list[tuple[str, int, int]], folder: Path) -> list[dict[str, Any]]:
    """What a process of its own says of so many readings; one that dies or hangs says what it was at."""
    folder.mkdir()
    words = ",".join(f"{kind}:{first}:{count}" for kind, first, count in asked)
    command = [sys.executable, str(READINGS), words, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_PIECE, check=False)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{words} hangs at {(folder / 'at').read_text()}")
    at = (folder / "at").read_text() if (folder / "at").exists() else "its start"
    assert done.returncode == 0, f"{words} ended with {done.returncode} at {at}: {done.stderr[-2000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def check(found: dict[str, Any]) -> None:
    assert found["escaped"] == []
    assert found["slow"] == []
    assert found["done"] == []
    assert found["refused"] > 0, "nothing was changed enough to be refused"


def test_whatever_was_changed_is_read_or_refused(tmp_path: Path) -> None:
    for found in outcomes([(kind, 0, count) for kind, count in QUICK.items()], tmp_path / "all"):
        check(found)


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", FULL)
def test_100_000_changed_texts_entries_results_and_notes(kind: str, tmp_path: Path) -> None:
    assert sum(FULL.values()) == 100_000
    piece = PIECE.get(kind, 5_000)
    for first in range(0, FULL[kind], piece):
        for found in outcomes([(kind, first, min(piece, FULL[kind] - first))], tmp_path / f"{kind}-{first}"):
            check(found)


def test_the_watch_sees_what_is_run(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(READINGS.parent)!r})\n"
        "import os, subprocess, pathlib, readings\n"
        f"watch = readings.Watch(pathlib.Path({str(tmp_path / 'inside')!r})); watch.on = True\n"
        "exec(compile('1', '<text>', 'exec')); eval('1 + 1')\n"
        "subprocess.run(['true']); os.system('true'); __import__('pickle').loads(b'cos\\nsystem\\n.')\n"
        f"open({str(tmp_path / 'outside')!r}, 'w').close()\n"
        "watch.on = False; print(*sorted({one.split(' ')[0] for one in watch.seen}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    seen = said.stdout.split()
    assert {"exec", "open", "os.system", "pickle.find_class", "subprocess.Popen"} <= set(seen)
