"""What a call of a bound kernel costs beside the bare cuLaunchKernel of the bindings. Run it on a machine with a GPU.

python tests/runtime/cuda/cuda_call_cost.py
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from cuda_kernels import COPY, SCALE, TALLY, TILE_COPY, ptx

import tessera as ts
from tessera.runtime.cuda import driver, synchronize
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.runtime.cuda.launching import has_entry

_CALLS, _ROUNDS = 200, 40
_ALLOWED_MICROSECONDS = 3.0


def microseconds(call: Callable[[], object]) -> tuple[float, float]:
    """The best and the median of many rounds; the queue of the GPU is empty when each begins."""
    rounds: list[float] = []
    for _ in range(_ROUNDS):
        synchronize()
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        rounds.append(1e6 * (time.perf_counter() - start) / _CALLS)
    return min(rounds), statistics.median(rounds)


def bare(program: CudaExecutable, values: list[Any]) -> Callable[[], object]:
    """The same launch through the bindings, with everything prepared."""
    from tessera.runtime.cuda.streams import current_stream

    bound = program.bound(values)
    results = [make(current_stream()) for make in bound.fresh]
    extra = [0] * len(bound.params.extra)
    block = bound.params.filled([*values, *results], extra, bound.maps_of([*values, *results]))
    pointers = ctypes.c_void_p(ctypes.addressof(block))
    cu, launch = driver.bindings(), bound.params.device
    function, stream = cu.CUfunction(bound.function.handle), cu.CUstream(1)
    address = ctypes.addressof(pointers)

    def call(keep: object = (block, pointers, results, bound)) -> Any:
        return cu.cuLaunchKernel(function, bound.blocks, 1, 1, launch.threads, 1, 1, launch.shared, stream, address, 0)

    assert int(call()[0]) == 0
    return call


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    bound_to: list[tuple[str, CudaExecutable, list[Any]]] = []
    x = ts.ones(1000, device="cuda")
    bound_to.append(("one array, a number, a result", CudaExecutable(SCALE, ptx()), [x.geometry, 2.0]))
    y = ts.ones((64, 64), ts.bf16, device="cuda")
    bound_to.append(("a tensor map, a result", CudaExecutable(COPY, TILE_COPY.encode()), [y.geometry]))
    worst = 0.0
    say(f"machine-code entry: {has_entry()}")
    for name, program, values in bound_to:
        run = program.bind(values)
        run(*values)
        floor = microseconds(bare(program, values))
        ours = microseconds(lambda run=run, values=values: run(*values))
        say(f"{name}: bindings best {floor[0]:.2f}, median {floor[1]:.2f} µs; ours {ours[0]:.2f}, {ours[1]:.2f} µs")
        worst = max(worst, ours[1] - floor[1])
    tiles = ts.zeros(4, ts.i64, device="cuda")
    run = CudaExecutable(TALLY, ptx()).bind([tiles.geometry])
    best, median = microseconds(lambda: run(tiles.geometry))
    say(f"with counters: ours {best:.2f} µs (median {median:.2f})")
    best, median = microseconds(lambda: ts.empty(1000, device="cuda"))
    say(f"ts.empty: {best:.2f} µs (median {median:.2f})")
    say(f"worst difference of medians: {worst:+.2f} µs, allowed {_ALLOWED_MICROSECONDS} µs")
    return int(worst > _ALLOWED_MICROSECONDS)


if __name__ == "__main__":
    sys.exit(main())
