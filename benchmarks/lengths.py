"""The transformer block called with a thousand random lengths: how often it is compiled, and which calls are late.

    python benchmarks/lengths.py                    on the CPU
    python benchmarks/lengths.py --device cuda      on a GPU

Each call is waited for. A call is late if it takes more than twice the median of calls of its length, taken afterwards.
Calls in which Python collects garbage are counted apart: all of it takes tens of milliseconds, whatever runs, that of
the middle generation one or two.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lang"))

import numpy as np
from transformer_block import arguments, transformer_block

import tessera as ts
from tessera import Tensor, jit

FIRST, AGAIN, LATE = 10, 5, 2.0
WIDTHS, LONGEST, PER_HEAD = {"cpu": 512, "cuda": 4096}, {"cpu": 512, "cuda": 2048}, 64


def waiting(where: str) -> Callable[[], None]:
    """What waits for a device."""
    if where == "cuda":
        from tessera.runtime.cuda import synchronize

        return synchronize
    return lambda: None


def main() -> None:
    """Prints counts, then the late calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(WIDTHS), default="cpu")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--width", type=int)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--shortest", type=int, default=1)
    chosen = parser.parse_args()
    where, longest = chosen.device, LONGEST[chosen.device]
    width = chosen.width or WIDTHS[where]
    heads = width // (2 * PER_HEAD if where == "cuda" else PER_HEAD)
    dtype = ts.bf16 if where == "cuda" else ts.f32
    x, params, cache = arguments(dtype, batch=chosen.batch, length=longest, past=0, width=width, heads=heads)
    x, cache = x.to(where), (cache[0].to(where), cache[1].to(where))
    params = {name: value.to(where) for name, value in params.items()}
    block = jit(transformer_block)
    wait = waiting(where)

    def seconds(given: Tensor) -> float:
        wait()
        start = time.perf_counter()
        block(given, params, cache, heads=heads)
        wait()
        return time.perf_counter() - start

    lengths: list[int] = np.random.default_rng(0).integers(chosen.shortest, longest + 1, chosen.calls).tolist()
    given = {length: x[:, :length].copy() for length in set(lengths)}
    collected: set[int] = set()
    times: list[float] = []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "stop" and about["generation"] >= 1:
            collected.add(len(times))

    gc.callbacks.append(note)
    for length in lengths:
        times.append(seconds(given[length]))  # noqa: PERF401  (notes say in which call they were made)
    gc.callbacks.remove(note)
    steady = {length: statistics.median(seconds(one) for _ in range(AGAIN)) for length, one in given.items()}
    ratios = [
        (took / steady[length], index, length) for index, (took, length) in enumerate(zip(times, lengths, strict=True))
    ]
    late = sorted((one for one in ratios[FIRST:] if one[0] > LATE), reverse=True)
    print(f"{where}, {dtype}, {chosen.batch}×({chosen.shortest} to {longest})×{width}: {chosen.calls} calls")
    pauses = sum(index in collected for _, index, _ in late)
    print(
        f"{block.explain().compilations} compilations; {len(late)} calls behind the first {FIRST} are late, "
        f"{pauses} of them while Python collected garbage"
    )
    firsts = {length: ratio for ratio, _, length in reversed(ratios[FIRST:])}.values()
    print(f"first call of a length: {statistics.median(firsts):.2f} of the steady median, at worst {max(firsts):.2f}")
    shortest = min(steady.values())
    print(f"steady medians from {1e3 * shortest:.3f} to {1e3 * max(steady.values()):.3f} ms")
    for ratio, index, length in late[:10]:
        why = "garbage" if index in collected else "first of its length" if length not in lengths[:index] else "again"
        print(f"  call {index}, length {length}: {ratio:.2f} times {1e3 * steady[length]:.3f} ms, {why}")


if __name__ == "__main__":
    main()
