"""Kernels under sixteen Python threads that call, fail, compile and fork at once: no crash, no wrong answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ACTIONS = {"called", "failed", "compiled_anew", "forked", "resized"}


def soak(seconds: float, limit: float, step: int = 1) -> tuple[int, dict[str, int], str]:
    """Runs a process and all its children, none of which outlives this call. It takes one in `step` of the calls."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "kernel_soak.py", str(seconds), "16", str(step)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        said, complaint = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, complaint = process.communicate()
        complaint += f"\nstood still for {limit} s"
    return process.returncode, json.loads(said or "{}"), complaint


@pytest.mark.acceptance
@pytest.mark.parametrize("step", [5, 1])
def test_many_threads_and_forks_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The second process finds kernels on the disk: then threads load the compiler while others fork."""
    monkeypatch.setenv("TESSERA_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        status, counts, complaint = soak(1.5, 200, step)
        assert (status, complaint) == (0, "")
        assert counts["called"] > 10


@pytest.mark.acceptance
def test_many_threads_and_forks_for_two_minutes() -> None:
    # Half of it goes into compiling for all levels.
    status, counts, complaint = soak(120, 600)
    assert (status, complaint) == (0, "")
    assert set(counts) == ACTIONS
    assert counts["called"] > 1000
    assert counts["forked"] > 10
