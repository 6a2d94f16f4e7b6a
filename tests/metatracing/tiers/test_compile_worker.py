"""Compiling in another process: requests, answers, and that nothing that happens to it reaches a call."""

from __future__ import annotations

import errno
import gc
import io
import json
import logging
import math
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import made_up_client
import pytest
from forked_children import in_a_child
from made_up_client import Made

from tessera import Schedule, compile_worker, knobs
from tessera.tiers.client import Call, TierLevel
from tessera.tiers.compiling.background import MOST_DEATHS, BackgroundCompiler
from tessera.tiers.compiling.loader import Child, Loader


class Background:
    """A made-up client whose programs are compiled, as far as can be seen, by a process."""

    def __init__(self, timeout: float = 20.0) -> None:
        self.worker = BackgroundCompiler(timeout, "made_up_client:build")
        self.made = Made(compiling=self.worker)
        self.made.client.on_disk = lambda level: level.tier > 1

    def settled(self, *shape: int) -> list[int]:
        """The tiers of calls that begin when everything asked for so far has been compiled."""
        assert self.worker.wait(30)
        return self.made.call(*shape, times=60)


@pytest.fixture(name="background")
def _background(monkeypatch: pytest.MonkeyPatch) -> Iterator[Background]:
    """With one process, as machines of two processors have it: several may die at the same time."""
    monkeypatch.setattr(knobs, "usable_processors", lambda: 2)
    found = Background()
    yield found
    found.worker.close()


def test_requests_and_answers() -> None:
    stream = io.BytesIO()
    compile_worker.write(stream, 7, True, "json:loads", b"[1]")
    stream.seek(0)
    assert compile_worker.read(stream) == (7, True, "json:loads", b"[1]")
    assert compile_worker.read(stream) is None
    assert compile_worker.answered("nowhere:nothing", b"") == (False, b"ModuleNotFoundError: No module named 'nowhere'")
    half = io.BytesIO(stream.getvalue()[:-1])
    assert compile_worker.read(half) is None
    requests, answers = io.BytesIO(), io.BytesIO()
    compile_worker.write(requests, 1, True, "made_up_client:build", b"nonsense")
    compile_worker.write(requests, 2, True, "json:loads", b"{")
    requests.seek(0)
    compile_worker.serve(requests, answers)
    answers.seek(0)
    assert [compile_worker.read(answers)[:2] for _ in range(2)] == [(1, False), (2, False)]  # pyright: ignore[reportOptionalSubscript]


def test_programs_come_from_the_process(background: Background) -> None:
    made = background.made
    assert set(made.call(4, 8, times=50)) <= {1, 2}
    background.settled(4, 8)
    background.settled(4, 8)
    assert background.settled(4, 8)[-1] == 3
    assert background.worker.pid is not None
    assert made["aborts"] == 0


def test_the_process_finds_out_what_to_compile_and_no_call_waits_for_it(background: Background) -> None:
    client, asked = background.made.client, list[str]()
    client.looks_first = True
    find, send = client.schedules, client.request

    def schedules(call: Call) -> Sequence[Schedule | None]:
        asked.append(threading.current_thread().name)
        return find(call)

    def request(call: Call, levels: Sequence[TierLevel]) -> bytes | None:
        asked.append(f"{len(levels)} levels")
        return send(call, levels)

    client.schedules, client.request = schedules, request
    background.made.call(4, 8, times=50)
    background.settled(4, 8)
    # The process is asked first, without levels; then they are there, and are found beside the caller.
    first = asked.index("0 levels")
    assert asked[first + 1] == "tessera compiling"
    assert asked[first + 2] == "1 levels"
    assert "MainThread" not in asked[: first + 2]
    background.settled(4, 8)
    assert background.settled(4, 8)[-1] == 3
    assert background.made["aborts"] == 0


@pytest.mark.quick(1)
@pytest.mark.parametrize("wish", ["", "raise"])
def test_programs_of_a_request_are_compiled_beside_each_other(monkeypatch: pytest.MonkeyPatch, wish: str) -> None:
    monkeypatch.setattr(knobs, "usable_processors", lambda: 4)
    monkeypatch.setenv("TESSERA_TEST_WISH", wish)
    background = Background()
    made = background.made
    made.client.options = [None, Schedule(block=(16,)), Schedule(block=(32,))]
    *_, last = [background.settled(4, 8) for _ in range(4)]
    if wish:
        assert set(last) == {1}
        assert made["aborts"] >= 3
    else:
        assert last[-1] == 3
        # One more where the program without facts was nearly as fast as the best: it competes at Tier 3, too.
        assert made["compiles"] in (7, 8)
        assert (made["contests"], made["aborts"]) == (2, 0)
    background.worker.close()


class Slow:
    """A process that loads a compiler, or compiles, until a test says so; what it was asked for."""

    pid = None
    is_ready = False  # so no call waits for it
    can_load = True
    seconds = 0.0

    def __init__(self) -> None:
        self.loaded, self.compiled = threading.Event(), threading.Event()
        self.begun: list[str] = []
        self.made: list[str] = []

    def started(self) -> None:
        return

    def load(self) -> bool:
        return self.loaded.wait(10)

    def asked(self, packed: bytes) -> tuple[bool, bytes]:
        self.begun += pickle.loads(packed)
        if not self.can_load:
            self.can_load = True
            raise EOFError("it gave no answer")
        self.compiled.wait(10)
        time.sleep(self.seconds)
        self.made += pickle.loads(packed)
        return True, b"[null]"

    def give_up(self) -> int | None:
        return None

    def close(self) -> None:
        self.loaded.set()
        self.compiled.set()


@pytest.fixture(name="slowly")
def _slowly(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Background, list[Slow]]]:
    """Four processes that do not come to an end, and calls whose first program need not be compiled."""
    monkeypatch.setattr(knobs, "usable_processors", lambda: 8)
    background, slow = Background(), [Slow() for _ in range(4)]
    worker, made = background.worker, background.made
    worker._processes[:], worker._idle[:] = slow, slow  # pyright: ignore[reportPrivateUsage, reportArgumentType, reportCallIssue]
    made.client.starts_quickly = lambda call: False  # pyright: ignore[reportAttributeAccessIssue]
    made.client.options = [None, Schedule(block=(16,)), Schedule(block=(32,))]
    yield background, slow
    worker.close()


Slowly = tuple[Background, list[Slow]]


def call_until(made: Made, *shape: int, come: Callable[[], bool]) -> None:
    """Calls until something has come: how many calls that takes depends on when threads have their turn."""
    until = time.monotonic() + 20
    while not come():
        assert time.monotonic() < until
        made.call(*shape, times=10)
        time.sleep(0.002)


def test_half_of_the_processes_are_there_for_what_calls_wait_for(
    monkeypatch: pytest.MonkeyPatch, slowly: Slowly
) -> None:
    background, slow = slowly
    firsts: list[str] = []  # of requests for Tier 3, in whatever order processes come to them
    find_next = background.worker._next  # pyright: ignore[reportPrivateUsage]

    def noted() -> Any:
        step = find_next()
        if step is not None and not step.is_another and str(step.level).startswith("tier 3"):
            firsts.append(str(step.level))
        return step

    def begun() -> int:
        return sum(len(one.begun) for one in slow)

    monkeypatch.setattr(background.worker, "_next", noted)
    for one in slow:
        one.loaded.set()
    call_until(background.made, 4, 8, come=lambda: begun() == 3)
    time.sleep(0.05)  # further ones wait for these: two are not the first of their requests
    assert begun() == 3
    assert len(firsts) == 1
    call_until(background.made, 5, 8, come=lambda: begun() == 4)  # those for other arguments do not
    assert len(firsts) == 2
    for one in slow:
        one.compiled.set()
    assert background.worker.wait(10)
    assert begun() == 7


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_programs_that_wait_are_not_forgotten(slowly: Slowly, seconds: float) -> None:
    """The first of them is there before the others may begin, and there are no other requests."""
    background, slow = slowly
    for one in slow:
        one.seconds = seconds
        one.loaded.set()
        one.compiled.set()
    del background.made.client.starts_quickly
    background.made.call(4, 8, times=5)
    assert background.worker.wait(10)
    assert sum(name.startswith("tier 2") for one in slow for name in one.made) == 3


def test_what_is_known_needs_no_process(slowly: Slowly) -> None:
    background, slow = slowly
    worker, made = background.worker, background.made
    made.call(4, 8, times=5)
    until, (site,) = time.monotonic() + 10, made.runtime.sites()
    while not any(program.tier == 2 for program in site.programs):  # the one that there is, by another name
        assert time.monotonic() < until
        time.sleep(0.002)
    assert worker.is_free
    made.call(4, 8, times=30)
    assert not worker.wait(0)
    assert not any(one.made for one in slow)
    for one in slow:
        one.loaded.set()
        one.compiled.set()
    while sum(len(one.made) for one in slow) < 6:
        assert time.monotonic() < until
        time.sleep(0.002)
    assert sorted(name[:6] for one in slow for name in one.made) == ["tier 2"] * 2 + ["tier 3"] * 4
    worker.close()


@pytest.mark.parametrize("can_load", [True, False])
def test_the_first_process_that_is_ready_takes_the_most_urgent_program(
    monkeypatch: pytest.MonkeyPatch, slowly: Slowly, can_load: bool
) -> None:
    """One that cannot load fails the program that it has begun with, and takes none from others."""
    background, slow = slowly
    begun_with: dict[Any, str] = {}
    claim_step = background.worker._claim_step  # pyright: ignore[reportPrivateUsage]

    def noted(step: Any, packed: bytes, process: Any) -> Any:
        begun_with[process] = str(step.level)
        return claim_step(step, packed, process)

    monkeypatch.setattr(background.worker, "_claim_step", noted)
    loading: list[Slow] = []

    def load(one: Slow) -> bool:
        loading.append(one)
        return one.loaded.wait(10) and one.can_load

    monkeypatch.setattr(Slow, "load", load)
    until = time.monotonic() + 20

    def once(come: Callable[[], bool]) -> None:
        while not come():
            assert time.monotonic() < until
            time.sleep(0.002)

    # For Tier 3, and for other schedules of Tier 2 that have waited a little, as processes come.
    both = {"tier 2", "tier 3"}
    call_until(background.made, 4, 8, come=lambda: {begun_with[one][:6] for one in loading} == both)
    first = next(one for one in loading if begun_with[one].startswith("tier 2"))
    first.can_load = can_load
    first.loaded.set()
    once(lambda: bool(first.begun))
    assert first.begun[0].startswith("tier 3" if can_load else "tier 2")
    once(lambda: can_load or background.made["aborts"] == 1)
    for one in slow:
        one.close()
    assert background.worker.wait(10)
    made = sorted(name[:6] for one in slow for name in one.made)
    assert made == ["tier 2"] * (1 + can_load) + ["tier 3"] * 4


def test_waiting_ends_when_a_runtime_is_closed(slowly: Slowly) -> None:
    background, _ = slowly
    background.made.call(4, 8, times=40)
    closing = threading.Timer(0.1, background.worker.close)
    closing.start()
    began = time.monotonic()
    assert background.worker.wait(30)
    assert time.monotonic() - began < 5
    closing.join()


@pytest.mark.parametrize("asked", [True, False])
def test_a_process_that_is_asked_loads_no_more_than_it_has_to(asked: bool) -> None:
    """What it would have needed for others is loaded by their requests."""
    reading, writing = os.pipe()
    answers = io.BytesIO()
    with open(reading, "rb") as requests, open(writing, "wb") as sent:
        if asked:
            compile_worker.write(sent, 1, True, "json:loads", b"[]")
        compile_worker.get_ready(["made_up_client:noted"], requests, answers)
    gc.unfreeze()
    assert len(made_up_client.LOADED) == (0 if asked else 1)
    made_up_client.LOADED.clear()
    answers.seek(0)
    assert compile_worker.read(answers) == (compile_worker.READY, True, "", b"")


def asked(child: Child, name: str) -> bytes:
    child.send(compile_worker.message(1, True, name, b""), 10)
    answer = child.answer(20)
    assert answer is not None
    assert answer[0] == 1
    return answer[3]


def ready(child: Child) -> Child:
    assert child.answer(20) == (compile_worker.READY, True, "", b"")
    return child


def loaded_by(child: Child) -> list[int]:
    return json.loads(asked(child, "made_up_client:loaded_by"))


@pytest.fixture(name="loader")
def _loader() -> Iterator[Loader]:
    found = Loader(["made_up_client:noted"])
    yield found
    found.close()


ENDED = {0, -signal.SIGKILL}  # by itself, when there were no more requests, or before it came to that


def is_there(pid: int) -> bool:
    """Whether a process runs: one that has ended and was not waited for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return False


def gone(pids: Iterable[int], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while any(is_there(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(is_there(pid) for pid in pids)


def test_a_compiler_is_loaded_once_for_all_processes(loader: Loader) -> None:
    children = [ready(child) for child in [loader.child() for _ in range(3)]]
    loaded = [loaded_by(child) for child in children]
    assert loaded[0] == loaded[1] == loaded[2] == [children[0].loader]
    assert len({os.getpid(), *loaded[0], *(child.pid for child in children)}) == 5
    # Libraries' threads would spin for a while, and be copied by no fork.
    assert "\nThreads:\t1\n" in Path(f"/proc/{children[0].loader}/status").read_text("utf-8")
    assert {child.end() for child in children} <= ENDED


def test_a_process_says_how_it_ended(loader: Loader) -> None:
    child = ready(loader.child())
    assert b"ModuleNotFoundError" in asked(child, "nowhere:nothing")  # nothing that goes wrong ends it
    pid = child.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    assert child.answer(20) is None
    assert child.end() == -signal.SIGTERM
    assert not is_there(pid)


def test_a_loader_that_has_died_is_replaced(loader: Loader, caplog: pytest.LogCaptureFixture) -> None:
    old, other = (ready(loader.child()) for _ in range(2))
    os.kill(old.loader, signal.SIGKILL)
    gone([old.loader])
    new = ready(loader.child())
    assert "the process that loads a compiler had ended, status -9; another one is started" in caplog.text
    assert loaded_by(new) == [new.loader]
    assert loaded_by(old) == [old.loader]  # others go on
    pids = [one.pid for one in (old, other) if one.pid is not None]
    began = time.monotonic()
    assert old.end() is other.end() is None  # no process is there to say
    assert time.monotonic() - began < 2
    assert len(pids) == 2
    assert gone(pids)  # no process is there to end them: they do so by themselves
    assert new.end() in ENDED


def test_all_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """One of them compiles for a long time, the user's process is killed, and a child of it lives on."""
    script = tmp_path / "wishes.py"
    script.write_text(
        "import os, time\n"
        "from tessera import compile_worker\n"
        "from tessera.tiers.compiling.background import BackgroundCompiler\n"
        "worker = BackgroundCompiler(20.0, 'made_up_client:build')\n"
        "first, second = (worker._loader.child() for _ in range(2))\n"
        "first.send(compile_worker.message(1, True, 'made_up_client:build', __import__('pickle').dumps([])), 10)\n"
        "while None in (first.pid, second.pid): time.sleep(0.01)\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "print(first.pid, second.pid, first.loader, child, flush=True)\n"
        "time.sleep(60)\n"
    )
    folder = str(Path(made_up_client.__file__).parent)
    environment = os.environ | {"PYTHONPATH": folder, "TESSERA_TEST_WISH": "sleep"}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment) as user:
        assert user.stdout is not None
        *pids, child = [int(word) for word in user.stdout.readline().split()]
        user.kill()
    assert is_there(child)
    os.kill(child, signal.SIGKILL)
    assert len(pids) == 3
    assert gone(pids)


@pytest.fixture(name="opened")
def _opened() -> set[int]:
    """The descriptors that there are before a test makes any: other tests may have left theirs to the collector."""
    return {int(name) for name in os.listdir("/proc/self/fd")}


@pytest.mark.acceptance
def test_a_child_of_a_fork_keeps_nothing_that_others_are_asked_by(opened: set[int], loader: Loader) -> None:
    """Forks come while processes are made, asked, and given up, too."""
    stop, failed = threading.Event(), list[BaseException]()

    def make() -> None:
        try:
            while not stop.is_set():
                ready(loader.child()).end()
        except BaseException as error:
            failed.append(error)

    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(20):
            assert in_a_child(lambda: descriptors_closed(loader, opened), []) == 0
    finally:
        stop.set()
        maker.join()
    assert not failed


def descriptors_closed(loader: Loader, opened: set[int]) -> None:
    loader.forked()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found = os.readlink(f"/proc/self/fd/{name}")
            assert not found.startswith("socket:") or int(name) in opened


@pytest.mark.parametrize("most", [1100, 0])
def test_descriptors_may_be_many_or_none(loader: Loader, most: int) -> None:
    ready(loader.child()).end()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(os.listdir("/proc/self/fd"))
    held: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(most + 100, before), hard))
        while len(held) < most:
            held.append(os.open(os.devnull, os.O_RDONLY))
        if most:
            assert ready(loader.child()).end() in ENDED
        else:
            for _ in range(3):
                with suppress(OSError):
                    while True:
                        held.append(os.open(os.devnull, os.O_RDONLY))
                os.close(held.pop())
                with pytest.raises(OSError, match="Too many open files"):
                    loader.child()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in held:
            os.close(one)
    assert ready(loader.child()).end() in ENDED
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.acceptance
def test_a_loader_that_cannot_load_is_a_line_in_the_log(
    background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    background.worker._loader._ready = ["made_up_client:nothing_of_that_name"]  # pyright: ignore[reportPrivateUsage]
    with caplog.at_level(logging.WARNING):
        for width in range(8, 14):
            background.made.call(4, width, times=30)
            assert set(background.settled(4, width)) == {1}
    assert background.worker.deaths == MOST_DEATHS
    assert "the process that compiles has ended, status 1: it gave no answer" in caplog.text
    assert "there is no process that compiles" in caplog.text


@pytest.mark.acceptance
def test_a_loader_that_dies_while_several_wait_has_died_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "usable_processors", lambda: 8)
    background = Background()
    worker = background.worker
    worker._loader._ready = ["made_up_client:slept"]  # pyright: ignore[reportPrivateUsage]
    background.made.client.options = [Schedule(block=(width,)) for width in (16, 32, 64, 128)]
    background.made.call(4, 8, times=30)
    until = time.monotonic() + 10
    while len(worker._waiting) < 2:  # pyright: ignore[reportPrivateUsage]
        assert time.monotonic() < until
        time.sleep(0.002)
    process = worker._loader._process  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    process.kill()
    background.settled(4, 8)
    assert worker.deaths == 1
    assert background.settled(4, 8)[-1] >= 2
    worker.close()


def test_processes_that_cannot_be_forked_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, "too many processes")

    monkeypatch.setattr(os, "fork", fork)
    ours, theirs = socket.socketpair()
    (talk, talks), (news, tells) = socket.socketpair(), socket.socketpair()
    with talks, tells:
        socket.send_fds(ours, [b"1"], [talks.fileno(), tells.fileno()])
    ours.close()
    compile_worker.Parent(theirs, []).serve()
    child = Child(1, talk, news)
    assert child.answer(0) is None
    assert (child.pid, child.is_missing, child.end()) == (None, False, None)


@pytest.mark.parametrize("large", [False, True])
def test_a_runtime_that_is_closed_during_a_request_leaves_no_process_behind(large: bool) -> None:
    """Neither processes nor threads; with a request that is not taken, too."""
    began = time.monotonic()
    worker = BackgroundCompiler(60.0, "made_up_client:build")
    worker._loader._ready = ["made_up_client:slept"]  # pyright: ignore[reportPrivateUsage]
    process = worker._processes[0]  # pyright: ignore[reportPrivateUsage]
    failed: list[str] = []

    def ask() -> None:
        try:
            process.asked(bytes(1 << 20 if large else 10))
        except (OSError, EOFError) as error:
            failed.append(type(error).__name__)

    thread = threading.Thread(target=ask)
    thread.start()
    child = process.started()
    time.sleep(0.05)
    worker.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(failed) == 1
    assert gone([child.loader], 1)
    assert time.monotonic() - began < 10


USERS = {
    "closes": "os.close(1); os.close(2)",
    "has a path that is none": "import pathlib; sys.path.append(pathlib.Path('nowhere'))",
    "is killed by pipes": "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)",
}


@pytest.mark.parametrize("user", USERS)
def test_whatever_a_users_process_has_done_processes_compile(tmp_path: Path, user: str) -> None:
    script = tmp_path / "closed.py"
    script.write_text(
        "import os, sys, time\n"
        f"{USERS[user]}\n"
        "from tessera import compile_worker\n"
        "from tessera.tiers.compiling.loader import Loader\n"
        "loader = Loader(())\n"
        "child = loader.child()\n"
        "child.send(compile_worker.message(1, True, 'os:fstat', b''), 10)\n"
        "assert child.answer(20)[0] == 1\n"
        "os.kill(child.pid, 9)\n"
        "assert child.answer(20) is None\n"
        "try: child.send(bytes(10), 10)\n"
        "except BrokenPipeError: pass\n"
        "os.kill(child.loader, 9)\n"
        "loader._process.wait()\n"
        "assert loader.child().loader != child.loader\n"
        "loader.close()\n"
    )
    assert subprocess.run([sys.executable, script], check=False, timeout=60).returncode == 0


def test_a_busy_process_without_an_owner_ends_with_its_loader(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_TEST_WISH", "sleep")
    child = ready(loader.child())
    child.send(compile_worker.message(1, True, "made_up_client:build", pickle.dumps([])), 10)
    pid = child.pid
    assert pid is not None
    time.sleep(0.05)
    del child
    loader.close()
    assert not is_there(pid)


@pytest.mark.acceptance
def test_an_interrupted_request_does_not_leave_an_answer_to_others(background: Background) -> None:
    process = background.worker._processes[0]  # pyright: ignore[reportPrivateUsage]
    real = Child.answer

    def interrupted(child: Child, timeout: float) -> None:
        real(child, timeout)
        raise KeyboardInterrupt

    for _ in range(MOST_DEATHS + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Child, "answer", interrupted)
            with pytest.raises(KeyboardInterrupt):
                process.asked(pickle.dumps(["tier 2"]))
        assert process.asked(pickle.dumps(["tier 2"])) == (True, b"[null]")
    assert background.worker.deaths == 0


def test_a_timeout_may_be_as_long_as_one_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "usable_processors", lambda: 2)
    background = Background(math.inf)
    background.made.call(4, 8, times=50)
    assert background.settled(4, 8)[-1] >= 2
    background.worker.close()


def test_without_a_python_nothing_is_compiled(
    background: Background, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", None)
    background.worker.prepare()
    background.made.call(4, 8, times=50)
    assert set(background.settled(4, 8)) == {1}
    assert "there is no Python to compile with" in caplog.text


def test_a_killed_process_is_a_line_in_the_log(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    made = background.made
    made.call(4, 8, times=50)
    assert background.worker.wait(30)
    pid = background.worker.pid
    assert pid is not None
    with caplog.at_level(logging.WARNING):
        os.kill(pid, signal.SIGKILL)
        background.settled(4, 8)
        background.settled(4, 8)
        assert background.settled(4, 8)[-1] == 3  # another process made it
    assert "the process that compiles had ended, status -9; another one is started" in caplog.text
    assert background.worker.deaths == 1


@pytest.mark.acceptance
def test_a_process_that_dies_of_a_request_is_not_asked_again(
    background: Background, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TESSERA_TEST_WISH", "die")
    made = background.made
    with caplog.at_level(logging.WARNING):
        for width in range(8, 14):
            made.call(4, width, times=30)
            assert set(background.settled(4, width)) == {1}
    assert background.worker.deaths == MOST_DEATHS
    assert "status 7: it gave no answer" in caplog.text
    assert "there is no process that compiles" in caplog.text


def test_a_process_without_memory_says_so(
    background: Background, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TESSERA_TEST_WISH", "raise")
    with caplog.at_level(logging.WARNING):
        background.made.call(4, 8, times=50)
        assert set(background.settled(4, 8)) == {1}
    assert "scaled: tier 2 is given up: MemoryError: no memory left to compile" in caplog.text
    assert background.worker.deaths == 0


def test_a_process_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TESSERA_TEST_WISH", "sleep")
    monkeypatch.setattr(knobs, "usable_processors", lambda: 2)
    background = Background(0.2)
    worker, until = background.worker, time.monotonic() + 10
    worker.prepare()
    while (pid := worker.pid) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    with caplog.at_level(logging.WARNING):
        background.made.call(4, 8, times=50)
        assert set(background.settled(4, 8)) == {1}
    assert "compiling took more than 0.2 s" in caplog.text
    assert gone([pid], 2)
    worker.close()


def test_what_is_not_in_the_cache_after_all_is_given_up(
    background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    background.made.client.on_disk = lambda level: False  # the disk was full, say
    with caplog.at_level(logging.WARNING):
        background.made.call(4, 8, times=50)
        assert set(background.settled(4, 8)) == {1}
    assert "scaled: tier 2 is given up: it was compiled, and is not in the compile cache" in caplog.text


def test_what_cannot_be_sent_stays_at_its_tier(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    made = background.made
    made.client.sendable = False
    made.client.on_disk = lambda level: False  # nor is it found
    with caplog.at_level(logging.WARNING):
        made.call(4, 8, times=50)
        assert set(background.settled(4, 8)) == {1}
    assert not made.client.ran[-1].quick  # nothing faster can follow: so the first program is compiled fully
    assert made["aborts"] == 1
    assert background.worker.pid is None


def test_a_call_does_not_wait_for_the_process(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_TEST_WISH", "sleep")
    began = time.perf_counter()
    background.made.call(4, 8, times=100)
    assert time.perf_counter() - began < 5


def test_the_next_process_starts_at_the_best_tier(tmp_path: Path) -> None:
    with knobs.cache_dir.using(tmp_path):
        first = Made(persist=True)
        first.client.named = "a site"
        assert first.call(4, 8, times=200)[-1] == 3
        second = Made(persist=True)
        second.client.named, second.client.on_disk = "a site", lambda level: level.tier > 1
        assert second.call(4, 8, times=10) == [3] * 10
        assert second["loads"] == 2
        assert second["compiles"] == 0
        assert second.call(5, 8) == [2]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"form": 1}', b'{"form": 1, "levels": [{"tier": 9}]}'])
def test_damaged_notes_are_no_notes(tmp_path: Path, damage: bytes) -> None:
    from tessera.runtime.cache import store as cache

    with knobs.cache_dir.using(tmp_path):
        cache.shared().put(cache.key_of("tiers", "a site"), damage)
        made = Made(persist=True)
        made.client.named = "a site"
        assert made.call(4, 8) == [1]
        for file in (tmp_path / "compiled").iterdir():
            file.write_bytes(b"nonsense")
        assert made.runtime.manager.remembered("a site") == []


def test_notes_are_json(tmp_path: Path) -> None:
    with knobs.cache_dir.using(tmp_path):
        made = Made(persist=True)
        made.client.named = "a site"
        made.call(4, 8, times=200)
        from tessera.runtime.cache import store as cache

        data = cache.shared().get(cache.key_of("tiers", "a site"))
        assert data is not None
        assert [level["tier"] for level in json.loads(data)["levels"]] == [3, 2]


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with knobs.cache_dir.using(tmp_path):
        made = Made(persist=True)
        made.client.named = "a site"
        made.call(4, 8)
        monkeypatch.setattr(os, "write", full)
        assert made.call(4, 8, times=200)[-1] == 3
