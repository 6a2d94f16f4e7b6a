"""Checks the pool's protocol: every interleaving of a model; the real thing under delays, forks and many callers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pool_programs
import pytest
from pool_model import Model, explore

from tessera.runtime.native import pool


@pytest.mark.parametrize(
    ("leaders", "calls", "workers", "resizers"), [(1, 3, 1, 0), (1, 2, 2, 0), (2, 2, 1, 0), (1, 2, 1, 1), (2, 1, 1, 1)]
)
def test_no_interleaving_goes_wrong(leaders: int, calls: int, workers: int, resizers: int) -> None:
    states, faults = explore(Model(leaders, calls, workers, resizers))
    assert faults == set()
    assert states > 300


@pytest.mark.acceptance
@pytest.mark.parametrize(("leaders", "calls", "workers", "resizers"), [(2, 1, 2, 0), (1, 2, 2, 1), (3, 1, 1, 1)])
def test_no_interleaving_goes_wrong_at_length(leaders: int, calls: int, workers: int, resizers: int) -> None:
    states, faults = explore(Model(leaders, calls, workers, resizers))
    assert faults == set()
    assert states > 40_000


@pytest.mark.parametrize(
    ("without", "fault"),
    [
        ("waiting", "a worker runs a job that has returned"),
        ("looking at the ticket", "a worker runs a job that has returned"),
        ("order of publishing", "a worker runs a job that has returned"),
        ("telling to sleep", "a caller can hang"),
        ("handing in", "a caller can hang"),
        ("comparing before sleep", "a worker sleeps through a long kernel that has a ticket for it"),
        ("counting sleepers", "a worker sleeps through a long kernel that has a ticket for it"),
    ],
)
def test_every_part_of_the_protocol_is_needed(without: str, fault: str) -> None:
    assert fault in explore(Model(1, 2, 1, 1, without=without))[1]


def soak(text: str, folder: Path, seconds: float, limit: float) -> tuple[int, dict[str, int], str]:
    image = folder / "runtime.image"
    image.write_bytes(pool_programs.image_of(text))
    done = pool_programs.run_process(["pool_soak.py", str(image), str(seconds), "16"], limit)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.quick(text=[pool_programs.delayed_runtime_text])
@pytest.mark.parametrize("text", [pool.runtime_text, pool_programs.delayed_runtime_text])
def test_many_callers_forks_and_sizes_at_once(text: Callable[[], str], tmp_path: Path) -> None:
    status, counts, complaint = soak(text(), tmp_path, 2, 120)
    assert (status, complaint) == (0, "")
    assert set(counts) == {"filled", "summed", "failed", "witnessed", "forked", "resized"}


@pytest.mark.acceptance
@pytest.mark.parametrize("text", [pool.runtime_text, pool_programs.delayed_runtime_text])
def test_many_callers_forks_and_sizes_for_a_minute(text: Callable[[], str], tmp_path: Path) -> None:
    status, counts, complaint = soak(text(), tmp_path, 60, 300)
    assert (status, complaint) == (0, "")
    assert min(counts.values()) > 100


OPEN = "  %opened = atomicrmw xchg ptr @job, i32 %helpers seq_cst\n"
WRITE = "  store i32 %threads, ptr %threads_at, align 4\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"br i1 %none_claimed, label %return, label %settle": "br label %return"},
        {OPEN: "", WRITE: f"{OPEN}  call void @delay()\n{WRITE}"},
    ],
    ids=["the leader does not wait", "the job is open before it is written"],
)
def test_faults_planted_in_the_code_are_found(changes: dict[str, str], tmp_path: Path) -> None:
    text = pool_programs.delayed_runtime_text()
    for right, wrong in changes.items():
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    status, _, complaint = soak(text, tmp_path, 30, 40)
    assert status != 0
    # Whichever check fails first. Another thread may end the process while a crash is reported: its first words do.
    assert any(word in complaint for word in ("AssertionError", "Fatal Python error"))
