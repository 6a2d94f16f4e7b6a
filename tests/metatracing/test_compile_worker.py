"""Compiling in another process: requests, answers, and that nothing that happens to it reaches a call."""

from __future__ import annotations

import gc
import io
import json
import logging
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import made_up_client
import pytest
from made_up_client import Made

from tessera import Schedule, compile_worker, knobs
from tessera.metatracing.client import Call, Level
from tessera.metatracing.compiling.background import MOST_DEATHS, Worker
from tessera.metatracing.compiling.loader import Child, Loader


class Background:
    """A made-up client whose programs are compiled, as far as anybody can tell, by a process."""

    def __init__(self, timeout: float = 20.0) -> None:
        self.worker = Worker(timeout, "made_up_client:build")
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

    def request(call: Call, levels: Sequence[Level]) -> bytes | None:
        asked.append(f"{len(levels)} levels")
        return send(call, levels)

    client.schedules, client.request = schedules, request
    background.made.call(4, 8, times=50)
    background.settled(4, 8)
    # Who compiles is asked first, without levels; then they are there, and are found beside the caller.
    first = asked.index("0 levels")
    assert asked[first + 1] == "tessera compiling"
    assert asked[first + 2] == "1 levels"
    assert "MainThread" not in asked[: first + 2]
    background.settled(4, 8)
    assert background.settled(4, 8)[-1] == 3
    assert background.made["aborts"] == 0


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
    seconds = 0.0

    def __init__(self) -> None:
        self.loaded, self.compiled = threading.Event(), threading.Event()
        self.begun: list[str] = []
        self.made: list[str] = []

    def started(self) -> None:
        return

    def load(self) -> None:
        self.loaded.wait(10)

    def asked(self, packed: bytes) -> tuple[bool, bytes]:
        self.begun += pickle.loads(packed)
        self.compiled.wait(10)
        time.sleep(self.seconds)
        self.made += pickle.loads(packed)
        return True, b"[null]"

    def close(self) -> None:
        self.loaded.set()
        self.compiled.set()


def slow_processes(monkeypatch: pytest.MonkeyPatch) -> tuple[Background, list[Slow]]:
    """Four processes that do not come to an end, and calls whose first program need not be compiled."""
    monkeypatch.setattr(knobs, "usable_processors", lambda: 8)
    background, slow = Background(), [Slow() for _ in range(4)]
    worker, made = background.worker, background.made
    worker._processes[:], worker._idle[:] = slow, slow  # pyright: ignore[reportPrivateUsage, reportArgumentType, reportCallIssue]
    made.client.starts_quickly = lambda call: False  # pyright: ignore[reportAttributeAccessIssue]
    made.client.options = [None, Schedule(block=(16,)), Schedule(block=(32,))]
    return background, slow


def test_half_of_the_processes_are_there_for_what_calls_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    background, slow = slow_processes(monkeypatch)
    until = time.monotonic() + 10
    for one in slow:
        one.loaded.set()

    def begun(count: int) -> list[str]:
        while sum(len(one.begun) for one in slow) < count:
            assert time.monotonic() < until
            time.sleep(0.002)
        return [name for one in slow for name in one.begun]

    background.made.call(4, 8, times=40)
    # Other schedules of Tier 2 were asked for before, and wait a little.
    (first,) = begun(1)
    assert first.startswith("tier 3")
    assert begun(3).count(first) == 1
    time.sleep(0.05)  # further ones wait for these two
    assert len(begun(3)) == 3
    background.made.call(5, 8, times=40)  # those for other arguments do not
    assert begun(4).count(first) == 2
    for one in slow:
        one.compiled.set()
    assert background.worker.wait(10)
    assert len(begun(7)) == 7
    background.worker.close()


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_programs_that_wait_are_not_forgotten(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The first of them is there before the others may begin, and nobody asks for anything else."""
    background, slow = slow_processes(monkeypatch)
    for one in slow:
        one.seconds = seconds
        one.loaded.set()
        one.compiled.set()
    del background.made.client.starts_quickly
    background.made.call(4, 8, times=5)
    assert background.worker.wait(10)
    assert sum(name.startswith("tier 2") for one in slow for name in one.made) == 3
    background.worker.close()


def test_what_is_known_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    background, slow = slow_processes(monkeypatch)
    worker, made = background.worker, background.made
    made.call(4, 8, times=5)
    until, (region,) = time.monotonic() + 10, made.runtime.regions()
    while not any(program.tier == 2 for program in region.programs):  # the one that there is, by another name
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


def test_whoever_has_loaded_first_makes_what_is_wanted_most(monkeypatch: pytest.MonkeyPatch) -> None:
    background, slow = slow_processes(monkeypatch)
    loading: list[Slow] = []

    def load(one: Slow) -> None:
        loading.append(one)
        one.loaded.wait(10)

    monkeypatch.setattr(Slow, "load", load)
    background.made.call(4, 8, times=40)
    until = time.monotonic() + 10

    def once(come: Callable[[], bool]) -> None:
        while not come():
            assert time.monotonic() < until
            time.sleep(0.002)

    once(lambda: len(loading) == 3)  # for Tier 3, and for other schedules of Tier 2 that have waited a little
    last = loading[-1]
    last.loaded.set()
    once(lambda: bool(last.begun))
    assert last.begun[0].startswith("tier 3")
    for one in slow:
        one.close()
    assert background.worker.wait(10)
    assert sorted(name[:6] for one in slow for name in one.made) == ["tier 2"] * 2 + ["tier 3"] * 4
    background.worker.close()


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
    compile_worker.write(child.requests, 1, True, name, b"")
    answer = compile_worker.read(child.answers)
    assert answer is not None
    return answer[3]


def test_a_compiler_is_loaded_once_for_all_processes() -> None:
    loader = Loader(["made_up_client:noted"])
    children = [loader.child() for _ in range(3)]
    for child in children:
        assert compile_worker.read(child.answers) == (compile_worker.READY, True, "", b"")
    loaded = [json.loads(asked(child, "made_up_client:loaded_by")) for child in children]
    assert loaded[0] == loaded[1] == loaded[2]
    ((by,),) = {tuple(one) for one in loaded}
    assert len({by, os.getpid(), *(child.pid for child in children)}) == 5
    assert [child.end() for child in children] == [-signal.SIGKILL] * 3
    loader.close()


def test_a_process_ends_with_its_requests_and_says_how_it_ended() -> None:
    loader = Loader(())
    idle, dying = loader.child(), loader.child()
    idle.requests.close()
    assert compile_worker.read(idle.answers) is None
    assert idle.end() in (0, -signal.SIGKILL)  # it was just about to
    compile_worker.write(dying.requests, 1, True, "nowhere:nothing", b"")
    assert compile_worker.read(dying.answers) is not None  # nothing that goes wrong ends it
    pid = dying.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    assert compile_worker.read(dying.answers) is None
    assert dying.end() == -signal.SIGTERM
    loader.close()


def test_a_loader_that_has_died_is_replaced() -> None:
    loader = Loader(["made_up_client:noted"])
    old = loader.child()
    first = json.loads(asked_when_ready(old))
    os.kill(first[0], signal.SIGKILL)
    inside = loader._process  # pyright: ignore[reportPrivateUsage]
    assert inside is not None
    inside.wait(10)
    new = loader.child()
    assert json.loads(asked_when_ready(new)) != first
    assert json.loads(asked(old, "made_up_client:loaded_by")) == first  # others go on
    assert old.end() is None  # nobody is there to say
    assert new.end() == -signal.SIGKILL
    loader.close()


def asked_when_ready(child: Child) -> bytes:
    assert compile_worker.read(child.answers) == (compile_worker.READY, True, "", b"")
    return asked(child, "made_up_client:loaded_by")


def test_a_loader_that_cannot_load_is_a_line_in_the_log(
    background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    background.worker._loader._ready = ["made_up_client:nothing_of_that_name"]  # pyright: ignore[reportPrivateUsage]
    with caplog.at_level(logging.WARNING):
        for width in range(8, 14):
            background.made.call(4, width, times=30)
            assert set(background.settled(4, width)) == {1}
    assert background.worker.deaths >= MOST_DEATHS
    assert "the process that compiles has ended, status None: it gave no answer" in caplog.text
    assert "there is no process that compiles" in caplog.text


def test_processes_that_cannot_be_forked_are_missed_by_whoever_asked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fork() -> int:
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(os, "fork", fork)
    ours, theirs = socket.socketpair()
    requests, answers, news = (os.pipe() for _ in range(3))
    socket.send_fds(ours, [b"1"], [requests[0], answers[1], news[1]])
    for one in (requests[0], answers[1], news[1]):
        os.close(one)
    ours.close()
    compile_worker.Parent(theirs, []).serve()
    assert "no process can be forked to compile: too many processes" in capfd.readouterr().err
    child = Child(requests[1], answers[0], news[0])
    assert compile_worker.read(child.answers) is None
    assert (child.pid, child.end()) == (None, None)


def test_a_runtime_that_is_closed_at_once_leaves_nobody_behind() -> None:
    began = time.monotonic()
    worker = Worker(20.0)
    worker.prepare()
    inside = worker._loader._process  # pyright: ignore[reportPrivateUsage]
    assert inside is not None
    worker.close()
    assert inside.poll() is not None
    assert time.monotonic() - began < 5


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
    background = Background(0.2)
    with caplog.at_level(logging.WARNING):
        background.made.call(4, 8, times=50)
        assert set(background.settled(4, 8)) == {1}
    assert "compiling took more than 0.2 s" in caplog.text
    background.worker.close()


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
    made.client.on_disk = lambda level: False  # nor does anybody find it
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
        first.client.named = "a region"
        assert first.call(4, 8, times=200)[-1] == 3
        second = Made(persist=True)
        second.client.named, second.client.on_disk = "a region", lambda level: level.tier > 1
        assert second.call(4, 8, times=10) == [3] * 10
        assert second["loads"] == 2
        assert second["compiles"] == 0
        assert second.call(5, 8) == [2]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"form": 1}', b'{"form": 1, "levels": [{"tier": 9}]}'])
def test_damaged_notes_are_no_notes(tmp_path: Path, damage: bytes) -> None:
    from tessera.runtime import cache

    with knobs.cache_dir.using(tmp_path):
        cache.shared().put(cache.key_of("tiers", "a region"), damage)
        made = Made(persist=True)
        made.client.named = "a region"
        assert made.call(4, 8) == [1]
        for file in (tmp_path / "compiled").iterdir():
            file.write_bytes(b"nonsense")
        assert made.runtime.manager.remembered("a region") == []


def test_notes_are_json(tmp_path: Path) -> None:
    with knobs.cache_dir.using(tmp_path):
        made = Made(persist=True)
        made.client.named = "a region"
        made.call(4, 8, times=200)
        from tessera.runtime import cache

        data = cache.shared().get(cache.key_of("tiers", "a region"))
        assert data is not None
        assert [level["tier"] for level in json.loads(data)["levels"]] == [3, 2]


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with knobs.cache_dir.using(tmp_path):
        made = Made(persist=True)
        made.client.named = "a region"
        made.call(4, 8)
        monkeypatch.setattr(os, "write", full)
        assert made.call(4, 8, times=200)[-1] == 3
