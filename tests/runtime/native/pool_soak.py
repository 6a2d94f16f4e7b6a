"""A process that uses the pool hard: many Python threads, children by fork, changing sizes; run by the tests.

    python pool_soak.py IMAGE SECONDS THREADS

It prints what it did as JSON. Anything wrong ends it with another status than 0; so does standing still.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pool_programs
from pool_programs import Block, block

from tessera.runtime.native import launch, pool


class Soak:
    """What one thread does, again and again; every action checks its own result."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.counts: Counter[str] = Counter()
        kernels = pool_programs.kernels()
        self.dispatch = pool.start().dispatch
        self.witness = kernels.address("witness")
        self.board = np.zeros(8, np.int64)
        self.calls = 0
        self.out = np.zeros(600, np.float32)
        self.values = np.arange(16 * 64, dtype=np.int64)
        fill, total, fail = kernels.address("fill"), kernels.address("sum"), kernels.address("fail")
        template = block(0, 0, 0)
        self.fill = launch.make(fill, template, [("array", 8), ("i64", 9), ("f32", 10)], 0, 8, keep=kernels)
        self.sums = [
            launch.make(total, template, [("array", 8), ("i64", 9), ("array", 10)], scratch, 8, keep=kernels)
            for scratch in (128, 100_000, 3_000_000)
        ]
        self.fail = launch.make(fail, block(0), [("i64", 8)], 0, 8, keep=kernels)

    def act(self, action: Callable[[Soak], None]) -> None:
        action(self)
        self.counts[action.__name__] += 1


def filled(soak: Soak) -> None:
    count, value = soak.random.randrange(500), float(soak.random.randrange(1000))
    soak.out[:] = -1
    assert soak.fill(soak.out, count, value) == 0
    assert (soak.out[:count] == value).all()
    assert (soak.out[count:] == -1).all()


def summed(soak: Soak) -> None:
    pieces, total = soak.random.randrange(65), np.zeros(1, np.int64)
    assert soak.random.choice(soak.sums)(soak.values, pieces, total) == 0
    assert total[0] == soak.values[: 16 * pieces].sum()


def failed(soak: Soak) -> None:
    code = soak.random.randrange(1, 1 << 40)
    assert soak.fail(code) == (code, 20, 30, -40, 50, 60, (1 << 63) - 1)


def witnessed(soak: Soak) -> None:
    """Directly, with an args block that is poisoned at once: whoever comes late would crash or be counted."""
    for _ in range(50):
        soak.calls += 1
        soak.board[1] = soak.calls
        args = Block(soak.board.ctypes.data, soak.calls, soak.random.randrange(40))
        assert soak.dispatch(soak.witness, args.address, soak.random.randrange(2, 9), soak.random.choice((0, 256))) == 0
        inside, mistakes = soak.board[0], soak.board[2]
        args.poison()
        assert inside == 0, f"{inside} threads are still inside"
        assert mistakes == 0, f"{mistakes} threads had arguments of another call"


def forked(soak: Soak) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(40)  # standing still is a failure, too
        try:
            for action in (filled, summed, witnessed, failed, summed):
                action(soak)
            helper = threading.Thread(target=summed, args=(Soak(1),))
            helper.start()
            filled(soak)
            helper.join()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "a child failed"


def resized(soak: Soak) -> None:
    pool.set_threads(soak.random.randrange(1, 7))


MIX = [filled, summed, failed, witnessed] * 6 + [forked, resized]


def run(soak: Soak, until: float) -> None:
    try:
        while time.monotonic() < until:
            soak.act(soak.random.choice(MIX))
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        os._exit(3)


def main() -> None:
    image, seconds, threads = Path(sys.argv[1]).read_bytes(), float(sys.argv[2]), int(sys.argv[3])
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds + 60, exit=True)
    pool.set_threads(4)
    pool.start(image)
    until = time.monotonic() + seconds
    soaks = [Soak(seed) for seed in range(threads)]
    others = [threading.Thread(target=run, args=(soak, until)) for soak in soaks[1:]]
    for other in others:
        other.start()
    run(soaks[0], until)
    for other in others:
        other.join()
    sys.stdout.write(json.dumps(sum((soak.counts for soak in soaks), Counter[str]())))


if __name__ == "__main__":
    main()
