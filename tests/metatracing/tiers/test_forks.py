"""Forks and interrupts: a child waits for no thread, and the process that compiles is its parent's alone."""

from __future__ import annotations

import os
import pickle
import threading
from typing import Any

import pytest
from forked_children import in_a_child
from made_up_client import Made

import tessera as ts
from tessera import knobs
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.runtime.tensor.meta import Meta
from tessera.tiers.compiling.background import BackgroundCompiler


def test_a_child_does_not_wait_for_threads_that_it_has_not_got(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "usable_processors", lambda: 2)  # no process is started before it is needed
    runtime = MetaTracingRuntime(RuntimeConfig(persist=False))

    @ts.jit(tiers=runtime)
    def doubled(x: Any) -> Any:
        return x * 2.0

    @ts.jit
    def halved(x: Any) -> Any:
        return x * 0.5

    with knobs.interpret.using(True):
        doubled(ts.ones((4, 8)))
        halved(ts.ones((4, 8)))
        inside: Any = (doubled, halved)
        tiers = inside[0]._tiered
        (tiered,) = tiers.structures.values()
        owners: list[Any] = [
            *inside,
            tiers,
            tiered.client,
            runtime.tier_up_model,
            runtime.schedule_history,
            runtime.compiling,
        ]
        held = [one._lock for one in owners]

        def work() -> None:
            for rows in range(5, 9):
                assert float(doubled(ts.ones((rows, 8))).numpy().sum()) == 16.0 * rows
                assert float(halved(ts.ones((rows, 8, 1))).numpy().sum()) == 4.0 * rows
            runtime.schedule_history.behind("any", ())
            assert runtime.tier_up_model.hoped("cpu", runtime.sites()[0].programs[0].tier) is None
            assert runtime.wait_for_compilation(10)

        assert in_a_child(work, held) == 0
    runtime.close()


def test_a_fork_waits_until_a_meta_is_there() -> None:
    taken, shape = threading.Event(), (3, 1, 4)
    inside: Any = Meta

    def hold() -> None:
        with inside._lock:
            taken.set()
            threading.Event().wait(0.05)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(30)
    assert in_a_child(lambda: ts.ones(shape).meta, []) == 0
    holder.join()


def test_the_process_that_compiles_is_its_parents_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "usable_processors", lambda: 2)
    worker = BackgroundCompiler(20.0, "made_up_client:build")
    (process,) = worker._processes  # pyright: ignore[reportPrivateUsage]
    started = process.started()
    # Who interrupts this process from a terminal interrupts its group.
    assert process.asked(pickle.dumps(["tier 2"])) == (True, b"[null]")
    pid = started.pid
    assert pid is not None
    assert os.getpgid(pid) != os.getpgrp()
    requests = worker._loader._fork_requests  # pyright: ignore[reportPrivateUsage]
    assert requests is not None
    inside = (started._talk, started._news, requests)  # pyright: ignore[reportPrivateUsage]
    sockets = {os.fstat(one.fileno()).st_ino for one in inside}

    def work() -> None:
        kept = [int(name) for name in os.listdir("/proc/self/fd")]
        for one in kept:
            try:
                assert os.fstat(one).st_ino not in sockets
            except OSError:
                continue
        assert not worker.can_compile(b"")
        worker.close()

    # A child that kept one of them would keep the process, too, when its parent has ended.
    assert in_a_child(work, []) == 0
    assert process.asked(pickle.dumps(["tier 2"])) == (True, b"[null]")
    worker.close()


def test_an_interrupt_that_comes_with_a_lock_does_not_keep_it() -> None:
    made = Made()
    made.call(4, 8)
    (site,) = made.runtime.sites()

    class Interrupted:
        """A lock that was just taken when the interrupt came."""

        def __init__(self) -> None:
            self.lock = threading.RLock()

        def acquire(self, *given: bool) -> bool:
            self.lock.acquire(*given)
            raise KeyboardInterrupt

        def release(self) -> None:
            self.lock.release()

    lock: Any = Interrupted()
    site.lock = lock
    with pytest.raises(KeyboardInterrupt):
        made.call(4, 8)
    taken: list[bool] = []
    other = threading.Thread(target=lambda: taken.append(lock.lock.acquire(blocking=False)))
    other.start()
    other.join()
    assert taken == [True]
