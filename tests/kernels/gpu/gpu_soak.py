"""Two threads, each with a stream of its own, run the same kernels for a while; every result has to be right.

PYTHONPATH=tests/kernels python tests/kernels/gpu/gpu_soak.py [seconds]
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import library as lib
import numpy as np

import tessera as ts
from tessera import Schedule, knobs
from tessera.runtime.cuda import Stream


def cases(seed: int) -> list[tuple[Any, tuple[Any, ...], Any]]:
    """Kernels, their arguments on the host, and what the interpreter makes of them."""
    random = np.random.default_rng(seed)

    def new(*shape: int) -> ts.Tensor:
        return ts.asarray(random.standard_normal(shape).astype(np.float32)).to(ts.bf16)

    found: list[tuple[Any, tuple[Any, ...], Any]] = []
    for program, arguments in (
        (lib.softmax, (new(77, 130),)),
        (lib.rmsnorm, (new(64, 256), new(256))),
        (
            lib.window_attention.with_schedule(Schedule(block=(64, 32))),
            (new(2, 130, 64), new(2, 90, 64), new(2, 90, 64), 40),
        ),
        (lib.mlp, (new(70, 64), new(64, 100), new(100, 64))),
        (lib.logsumexp, (new(100, 300),)),
    ):
        with knobs.interpret.using(True):
            found.append((program, arguments, program(*arguments).numpy().astype(np.float64)))
    return found


def soak(seconds: float, threads: int = 2) -> int:
    """How many calls were right; an AssertionError at the first that was not."""
    counts, failures = [0] * threads, list[BaseException]()

    def work(number: int) -> None:
        try:
            with Stream():
                prepared = [
                    (program, [a.cuda() if isinstance(a, ts.Tensor) else a for a in arguments], expected)
                    for program, arguments, expected in cases(number)
                ]
                end = time.monotonic() + seconds
                while time.monotonic() < end and not failures:
                    results = [(program(*arguments), expected) for program, arguments, expected in prepared]
                    for found, expected in results:
                        off = np.abs(found.cpu().numpy().astype(np.float64) - expected).max()
                        assert off <= 2e-2 * max(1.0, np.abs(expected).max()), off
                        counts[number] += 1
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return sum(counts)


if __name__ == "__main__":
    duration = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    print(f"{soak(duration)} calls on two streams in {duration:.0f} s, all right")  # noqa: T201
