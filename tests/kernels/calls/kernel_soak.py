"""A process that calls kernels hard: many Python threads, all levels, children by fork; run by the tests.

    python kernel_soak.py SECONDS THREADS STEP

Of the calls it takes one in STEP; with 5, all kernels, types and sizes are among them.
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
from collections.abc import Callable, Iterator
from itertools import islice, product
from random import Random
from typing import Any

import library as lib
import numpy as np
from odd_arrays import MACHINES, Array, Odd, as_array, bounds, expect_close, interpreted

from tessera import CompileError, DType, Schedule, bf16, f32, kernel, knobs, tile
from tessera.runtime.native import pool


@kernel
def limited(x: Any, *, limit: float):
    rows = tile.load(x)
    tile.assert_(rows < limit, "all are below the limit")  # noqa: PT009  (a kernel's)
    return rows


def filled(program: Any, *arguments: Any) -> Any:
    program(*arguments)
    return arguments[-1]


def heads(new: Odd, s: int, t: int) -> tuple[Array, Array, Array]:
    return new(2, s, 24), new(2, t, 24), new(2, t, 24, summed=True)


small = Schedule(block=(32, 32, 32))
# Each calls a kernel with new arrays of two sizes.
CALLS: dict[str, Callable[[Odd, int, int], Any]] = {
    "saxpy": lambda new, s, t: lib.saxpy(new(s * t, summed=True), new(s * t, summed=True), 1.5),
    "softmax": lambda new, s, t: lib.softmax(new(s, 24)),
    "layernorm": lambda new, s, t: lib.layernorm(new(2, s, 24), new(24, summed=True), new(24, summed=True)),
    "gemm": lambda new, s, t: filled(
        lib.gemm[8, 8], new(s, t, summed=True), new(t, s, summed=True), new(s, summed=True), new.target(s, s)
    ),
    "attention": lambda new, s, t: lib.attention.with_schedule(small)(*heads(new, s, t), mask=lib.causal),
    "window_attention": lambda new, s, t: lib.window_attention(*heads(new, s, t), 20),
    "mlp": lambda new, s, t: lib.mlp.with_schedule(small)(
        new(s, 24, summed=True), new(24, t, summed=True), new(t, 24, summed=True)
    ),
}


class Job:
    """One call with its right answer; machine code of one level always gives the same bits of it."""

    def __init__(self, name: str, dtype: DType, s: int, t: int) -> None:
        self.name = name
        self.arrays = Odd(dtype, "normal", "normal", 0, ("plain", "sparse"), s)
        self.sizes = s, t
        self.expected = interpreted(self.call, self.arrays)
        self.allowed = bounds(dtype, interpreted(self.call, self.arrays.positive()), self.expected, products=True)
        self.seen: dict[str, bytes] = {}

    def call(self, new: Odd) -> Any:
        return CALLS[self.name](new, *self.sizes)

    def run(self, level: str) -> None:
        with knobs.backend.using("cpu"), knobs.cpu_level.using(level):
            found = as_array(self.call(self.arrays.again()))
        bits = found.tobytes()
        if bits != self.seen.setdefault(level, bits):
            raise AssertionError(f"{self.name} gave other bits than before")
        expect_close(found, self.expected, self.allowed)


class Soak:
    """What one thread does, again and again; every action checks its own result."""

    def __init__(self, jobs: list[Job], seed: int) -> None:
        self.jobs, self.random = jobs, Random(seed)
        self.counts: Counter[str] = Counter()
        self.x = np.arange(1000, dtype=np.float32)

    def act(self, action: Callable[[Soak], None]) -> None:
        action(self)
        self.counts[action.__name__] += 1


def called(soak: Soak) -> None:
    soak.random.choice(soak.jobs).run(soak.random.choice(MACHINES))


def failed(soak: Soak) -> None:
    message = ""
    try:
        limited(soak.x, limit=999.0)
    except CompileError as error:
        message = error.message
    assert "all are below the limit" in message


def compiled_anew(soak: Soak) -> None:
    factor = soak.random.random()

    @kernel
    def scaled(x: Any):
        return tile.load(x) * factor

    assert np.array_equal(scaled(soak.x).numpy(), soak.x * np.float32(factor))


def forked(soak: Soak) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(60)  # standing still is a failure, too
        try:
            helper = threading.Thread(target=called, args=(Soak(soak.jobs, soak.random.randrange(1000)),))
            helper.start()
            for action in (called, failed, compiled_anew, called):
                action(soak)
            helper.join()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "a child failed"


def resized(soak: Soak) -> None:
    pool.set_threads(soak.random.randrange(1, 7))


MIX = [called] * 60 + [failed] * 4 + [compiled_anew, forked, resized]


def run(soak: Soak, until: float) -> None:
    try:
        while time.monotonic() < until:
            soak.act(soak.random.choice(MIX))
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        os._exit(3)


def jobs(step: int) -> Iterator[Job]:
    """One in `step` of all calls: what is right for one takes the interpreter longer than the soak may last."""
    for name, dtype, (s, t) in islice(product(CALLS, (f32, bf16), ((1, 1), (37, 101), (130, 64))), 0, None, step):
        yield Job(name, dtype, s, t)


def main() -> None:
    seconds, threads = float(sys.argv[1]), int(sys.argv[2])
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)
    faulthandler.dump_traceback_later(seconds + 200, exit=True)
    pool.set_threads(4)
    made = list(jobs(int(sys.argv[3])))
    until = time.monotonic() + seconds
    soaks = [Soak(made, seed) for seed in range(threads)]
    others = [threading.Thread(target=run, args=(soak, until)) for soak in soaks[1:]]
    for other in others:
        other.start()
    run(soaks[0], until)
    for other in others:
        other.join()
    sys.stdout.write(json.dumps(sum((soak.counts for soak in soaks), Counter[str]())))


if __name__ == "__main__":
    main()
