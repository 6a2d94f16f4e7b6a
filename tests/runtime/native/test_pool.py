"""Checks the pool: who works, scratch memory, sizes, forks, signals, nesting, and the end of the process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pool_programs
import pytest
from pool_programs import Block, block, kernels, run_process, workers

from tessera.errors import DeviceError
from tessera.runtime.native import launch, pool
from tessera.targets.cpu import features

PATIENCE = 50_000_000  # turns; a thread that was promised may have to wait for a processor


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not holds() and time.monotonic() < until:
        time.sleep(0.001)
    return holds()


def dispatch(name: str, args: Block, threads: int, scratch: int = 0) -> int:
    return pool.start().dispatch(kernels().address(name), args.address, threads, scratch)


def numbers(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.zeros(count, np.int64)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads_does_all_the_work(threads: int) -> None:
    out = np.zeros(1000, np.float32)
    fill = launch.make(
        kernels().address("fill"), block(0, 0, 0), [("array", 8), ("i64", 9), ("f32", 10)], 0, threads, keep=kernels()
    )
    with pool_programs.threads(7):
        for count in [0, 1, 2, 63, 999] * 20:
            out[:] = -1
            assert fill(out, count, 2.5) == 0
            assert (out == np.where(np.arange(1000) < count, 2.5, -1)).all()


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_run_at_the_same_time_under_numbers_of_their_own(threads: int) -> None:
    board = numbers(16)
    with pool_programs.threads(threads):
        assert dispatch("meet", Block(board.ctypes.data, PATIENCE), threads) == 0
    assert board.tolist() == [threads, threads, *[1] * threads, *[0] * (14 - threads)]


def test_no_more_threads_than_the_pool_has() -> None:
    board = numbers(16)
    with pool_programs.threads(2):
        assert dispatch("meet", Block(board.ctypes.data, PATIENCE), 9) == 0
    assert board[:5].tolist() == [2, 2, 1, 1, 0]


def test_whoever_finds_the_pool_led_works_alone() -> None:
    board, held = numbers(16), numbers(2)
    with pool_programs.threads(4):
        leader = threading.Thread(target=dispatch, args=("hold", Block(held.ctypes.data), 4))
        leader.start()
        assert eventually(lambda: held[0] > 0)
        dispatch("meet", Block(board.ctypes.data, PATIENCE), 4)
        held[1] = 1
        leader.join()
    assert board[:4].tolist() == [1, 1, 1, 0]


def test_a_kernel_that_launches_another_keeps_its_scratch() -> None:
    runtime, board, inner_board = pool.start(), numbers(2), numbers(2)
    for inner_scratch in (64, 1 << 21):
        inner = Block(inner_board.ctypes.data, 64)
        outer = Block(
            board.ctypes.data,
            runtime.image.address("dispatch"),
            kernels().address("scribble"),
            inner.address,
            inner_scratch,
        )
        board[1] = -1
        with pool_programs.threads(3):
            assert dispatch("nest", outer, 3, 64) == 0
    assert board.tolist() == [0, 0]
    assert inner_board.tolist() == [0, 0]


@pytest.mark.parametrize("scratch", [8, 64, 4096, 70_000, 1 << 20, (5 << 20) + 8])
def test_scratch_belongs_to_one_thread(scratch: int) -> None:
    board = numbers(2)
    with pool_programs.threads(4):
        for _ in range(5):
            assert dispatch("scribble", Block(board.ctypes.data, scratch), 4, scratch) == 0
    assert board.tolist() == [0, 0]


def mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")


def test_scratch_goes_with_its_thread() -> None:
    scratch, seen = 2 << 30, list[int]()

    def use() -> None:
        assert dispatch("empty", Block(0), 1, scratch) == 0
        seen.append(mapped_bytes())

    before = mapped_bytes()
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen[0] - before > scratch // 2
    assert eventually(lambda: mapped_bytes() - before < scratch // 2)


def test_scratch_that_cannot_be_had_is_an_error_and_nothing_runs() -> None:
    out, kernel = np.zeros(1, np.float32), kernels().address("fill")
    for scratch in (1 << 47, (1 << 63) - 1):
        fill = launch.make(kernel, block(0, 1, 0), [("array", 8), ("f32", 10)], scratch, 2, keep=kernels())
        with pytest.raises(MemoryError):
            fill(out, 1.0)
        assert out[0] == 0
    assert dispatch("empty", Block(0), 2, 4096) == 0


def test_rounding_does_not_depend_on_the_caller() -> None:
    set_rounding = ctypes.CFUNCTYPE(None, ctypes.c_int64)(kernels().address("set_rounding"))
    get_rounding = ctypes.CFUNCTYPE(ctypes.c_int64)(kernels().address("get_rounding"))
    # MXCSR, in which the exceptions that were raised do not count, or FPCR.
    standard, flushing, towards_zero, raised = {
        "x86_64": (0x1F80, 0x8040, 0x6000, 0x3F),
        "aarch64": (0, 1 << 24, 3 << 22, 0),
    }[features.family()]
    flushing_to_zero = standard | flushing | towards_zero
    for mode in (standard, flushing_to_zero):
        board = numbers(8)
        set_rounding(mode)
        try:
            with pool_programs.threads(3):
                dispatch("rounding", Block(board.ctypes.data), 3)
            after = get_rounding() & ~raised
        finally:
            set_rounding(standard)
        assert board[0] & ~raised == standard
        assert {mode & ~raised for mode in board[1:].tolist()} <= {0, standard}
        assert after == mode


def test_workers_come_when_needed_and_leave_when_not() -> None:
    before = pool.threads()
    try:
        for count in (5, 2, 4, 1):
            pool.set_threads(count)
            assert pool.threads() == count
            dispatch("meet", Block(numbers(16).ctypes.data, 1), 1)
            board = numbers(16)
            dispatch("meet", Block(board.ctypes.data, PATIENCE), count)
            assert board[1] == count
            assert eventually(lambda wanted=count: len(workers()) <= wanted - 1)
    finally:
        pool.set_threads(before)


@pytest.mark.parametrize("count", [0, -1, 4097])
def test_sizes_that_make_no_sense_are_refused(count: int) -> None:
    before = pool.threads()
    with pytest.raises(DeviceError, match=f"from 1 to 4096, got {count}") as caught:
        pool.set_threads(count)
    assert caught.value.hint
    assert pool.threads() == before


def test_the_knob_says_how_many() -> None:
    code = """
import pool_programs
from tessera.runtime.native import pool
first = pool.threads()
pool_programs.kernels()
second = pool.threads()
pool.set_threads(2)
print(first, second, pool.threads())
"""
    assert run_process(["-c", code], TESSERA_NUM_THREADS="3").stdout == "3 3 2\n"
    usable = len(os.sched_getaffinity(0))
    assert run_process(["-c", code], TESSERA_NUM_THREADS="").stdout == f"{usable} {usable} 2\n"


def test_a_system_that_refuses_threads_is_made_do_with() -> None:
    code = """
import resource, pool_programs
import numpy as np
from pathlib import Path
from pool_programs import Block
from tessera.runtime.native import pool
pool.set_threads(4)
kernel, dispatch = pool_programs.kernels().address("empty"), pool.start().dispatch
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (4 << 20), resource.RLIM_INFINITY))
args, board = Block(0), np.zeros(16, np.int64)
print(dispatch(kernel, args.address, 4, 0), pool.threads(), len(pool_programs.workers()))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
pool.set_threads(4)
meeting = Block(board.ctypes.data, 50_000_000)
print(dispatch(pool_programs.kernels().address("meet"), meeting.address, 4, 0), pool.threads(), board[1])
"""
    done = run_process(["-c", code])
    assert (done.stdout, done.stderr) == ("0 1 0\n0 4 4\n", "")


def test_workers_take_no_signals_but_their_own_faults() -> None:
    with pool_programs.threads(2):
        dispatch("meet", Block(numbers(16).ctypes.data, PATIENCE), 2)
        status = Path(f"/proc/self/task/{workers()[0]}/status").read_text()
    blocked = int(status.split("SigBlk:")[1].split()[0], 16)
    faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT}
    never = {signal.SIGKILL, signal.SIGSTOP}
    for number in signal.valid_signals() - never:
        assert bool(blocked >> (number - 1) & 1) == (number not in faults), number


def test_a_signal_during_a_kernel_is_handled_after_it() -> None:
    handled: list[int] = []

    def handler(*_: object) -> None:
        handled.append(held[1].item())
        raise KeyboardInterrupt

    def interrupt(caller: int) -> None:
        assert eventually(lambda: held[0] > 0)
        signal.pthread_kill(caller, signal.SIGUSR1)
        time.sleep(0.02)
        held[1] = 1

    hold = launch.make(kernels().address("hold"), block(0), [("array", 8)], 0, 2, keep=kernels())
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for _ in range(5):
            held = numbers(2)
            interrupter = threading.Thread(target=interrupt, args=(threading.get_ident(),))
            interrupter.start()
            with pytest.raises(KeyboardInterrupt):
                hold(held)
            interrupter.join()
            assert hold(held) == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handled == [1] * 5


FORKS = """
import json, os, threading, time
import numpy as np
import pool_programs
from pool_programs import Block, workers
from tessera.runtime.native import pool

def meet():
    board = np.zeros(16, np.int64)
    args = Block(board.ctypes.data, 50_000_000)
    pool.start().dispatch(pool_programs.kernels().address("meet"), args.address, 3, 64)
    return board[1].item()

pool.set_threads(3)
found = [meet(), len(workers())]
held = np.zeros(2, np.int64)
args = Block(held.ctypes.data)
leading = threading.Thread(target=pool.start().dispatch,
                           args=(pool_programs.kernels().address("hold"), args.address, 3, 0))
leading.start()
while held[0] == 0:
    time.sleep(0.001)
reader, writer = os.pipe()
if os.fork() == 0:
    try:
        os.write(writer, json.dumps([len(workers()), meet(), len(workers())]).encode())
    finally:
        os._exit(0)
os.close(writer)
with open(reader) as pipe:
    in_child = json.load(pipe)
os.wait()
held[1] = 1
leading.join()
print(json.dumps([found, in_child, [meet(), len(workers())]]))
"""


def test_a_child_has_a_pool_of_its_own() -> None:
    """Even when the fork happened while another thread led the parent's."""
    done = run_process(["-c", FORKS])
    assert done.stderr == ""
    assert json.loads(done.stdout) == [[3, 2], [0, 3, 2], [3, 2]]


START = """
import atexit, os, sys, threading, time
from itertools import repeat
import numpy as np
import pool_programs
from pool_programs import Block, block
from tessera.runtime.native import launch, pool
pool.set_threads(3)
kernels = pool_programs.kernels()
board = np.zeros(16, np.int64)
meet = launch.make(kernels.address("meet"), block(0, 1000), [("array", 8)], 4096, 3, keep=kernels)
sleep = launch.make(kernels.address("sleep"), block(0), [("i64", 8)], 0, 3, keep=kernels)
"""


@pytest.mark.parametrize(
    "end",
    [
        "meet(board)",
        "meet(board); os._exit(0)",
        "meet(board); atexit.register(lambda: [meet(board) for _ in range(1000)])",
        "threading.Thread(target=sleep, args=(300_000,)).start(); time.sleep(0.05)",
        # The interpreter is gone when these come back.
        "threading.Thread(target=sleep, args=(300_000,), daemon=True).start(); time.sleep(0.05)",
        "for _ in range(4): threading.Thread(target=lambda: [*map(meet, repeat(board))], daemon=True).start()",
        "meet(board); del pool_programs, launch, pool, meet, sleep, kernels; sys.modules.clear()",
    ],
)
def test_the_process_ends_while_workers_spin(end: str) -> None:
    done = run_process(["-X", "faulthandler", "-c", START + end])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stored_image_is_started_without_a_compiler(tmp_path: Path) -> None:
    (tmp_path / "runtime").write_bytes(pool.compile_runtime())
    (tmp_path / "kernels").write_bytes(pool_programs.image_of(pool_programs.kernels_text()))
    code = """
import sys
from pathlib import Path
import numpy as np
from tessera.runtime.native import launch, pool
from tessera.targets.llvm.image import load
folder = Path(sys.argv[1])
runtime = pool.start((folder / "runtime").read_bytes())
assert pool.start() is runtime
kernels = load((folder / "kernels").read_bytes())
fill = launch.make(kernels.address("fill"), bytes(64 + 24), [("array", 8), ("i64", 9), ("f32", 10)], 0, 2, keep=kernels)
out = np.zeros(5, np.float32)
print(fill(out, 4, 1.5), out.tolist(), {"llvmlite", "xdsl"} & set(sys.modules))
"""
    done = run_process(["-c", code, str(tmp_path)])
    assert (done.stdout, done.stderr) == ("0 [1.5, 1.5, 1.5, 1.5, 0.0] set()\n", "")


def test_threads_that_start_the_pool_together_get_the_same_one() -> None:
    code = """
import threading
from tessera.runtime.native import pool
image, found = pool.compile_runtime(), []
threads = [threading.Thread(target=lambda: found.append(pool.start(image))) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(map(id, found))))
"""
    assert run_process(["-c", code]).stdout == "8 1\n"
