"""What a call of a cached jitted function with ten arrays costs: beside its bound program, and a bare launch on a GPU.

    python benchmarks/dispatch.py                   on the CPU
    python benchmarks/dispatch.py --device cuda     on a GPU

The bare launch is cuLaunchKernel of the same kernel with everything prepared, called from machine code (nothing but the
driver is in it), through ctypes, and through NVIDIA's bindings. All are interleaved, in one run.
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

from lengths import waiting

import tessera as ts
from tessera import jit

ARRAYS, ELEMENTS = 10, 64
CALLS, ROUNDS = 200, 60


def total(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    """One small kernel."""
    return a + b + c + d + e + f + g + h + i + j


def nested(tree: dict[str, Any], rest: tuple[Any, ...]) -> Any:
    """The same kernel, its arrays in a dictionary and a tuple."""
    found = tree["x"]
    for one in (*(tree[name] for name in ("y", "z")), *rest):
        found = found + one
    return found


def rounds_of(calls: dict[str, Callable[[], object]], wait: Callable[[], None]) -> dict[str, list[float]]:
    """Microseconds of a call in each round, all calls interleaved; nothing is queued when a round begins."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            wait()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            found[name].append(1e6 * (time.perf_counter() - start) / CALLS)
    return found


def bare_launches(function: Any, arrays: list[Any]) -> dict[str, Callable[[], object]]:
    """The launch of the program's one kernel, prepared: by machine code, by ctypes and by the bindings."""
    from tessera.programs.buffer_assignment import BufferSlice
    from tessera.programs.row_alignment import RowAlignment
    from tessera.runtime.cuda import driver
    from tessera.runtime.cuda.executable import Fresh
    from tessera.runtime.cuda.launching import Geometry, host_block
    from tessera.runtime.cuda.streams import current_stream
    from tessera.runtime.native import launch as host_launch

    program = function.lower(*arrays).program
    bound = program.bind(arrays)
    site, (run,) = bound.run.site, bound.buffers.acts
    kernel = site.executable(run.kernel, RowAlignment(bound.buffers, site.alignments).lines(run))
    geometry = [Geometry(one.shape, one.strides) if isinstance(one, BufferSlice) else None for one in run.operands]
    ready = kernel.ready(geometry, site.device)
    (buffer,) = bound.buffers.results
    result = Fresh(buffer.shape, buffer.dtype.storage, site.meta(buffer)).maker()(current_stream())
    values = [*(array.geometry for array in arrays), result]
    block = ready.params.filled(values, [], [])
    pointers = ctypes.c_void_p(ctypes.addressof(block))
    launch, address, stream = ready.params.device, ctypes.addressof(pointers), current_stream().handle
    made = host_block(ready.params, ready.function, ready.blocks)
    template = bytearray(made.template)
    template[-len(block) :] = bytes(block)  # it has no tensor maps, so the block is last
    (stream_word,) = [slot for kind, slot in made.arguments if kind == "i64"]
    prepared = host_launch.make(made.entry, bytes(template), [("i64", stream_word)], 0, 1, keep=(made, result, ready))
    cu = driver.bindings()
    handle, queue, calls = cu.CUfunction(ready.function.handle), cu.CUstream(stream), site.context.calls
    sizes = (ready.blocks, 1, 1, launch.threads, 1, 1, launch.shared)
    return {
        "bare, machine code": lambda: prepared(stream),
        "bare, ctypes": lambda: calls.launch(ready.function.handle, *sizes, stream, address, None),
        "bare, bindings": lambda keep=(block, pointers): cu.cuLaunchKernel(handle, *sizes, queue, address, 0),
    }


def main() -> None:
    """Prints one line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = parser.parse_args()
    arrays = [ts.randn((ELEMENTS,), seed=seed).to(chosen.device) for seed in range(ARRAYS)]
    flat, deep = jit(total), jit(nested)
    tree, rest = dict(zip("xyz", arrays, strict=False)), tuple(arrays[3:])
    run = flat.lower(*arrays).program.bind(arrays).run
    calls: dict[str, Callable[[], object]] = {
        "jitted, ten arguments": lambda: flat(*arrays),
        "jitted, a dictionary and a tuple": lambda: deep(tree, rest),
        "bound program": lambda: run(*arrays),
    }
    wait = waiting(chosen.device)
    if chosen.device == "cuda":
        calls |= bare_launches(flat, arrays)
    for call in calls.values():
        call()
    found = rounds_of(calls, wait)
    where = platform.processor() or platform.machine()
    print(f"{ARRAYS} arrays of {ELEMENTS} f32 on {chosen.device} ({where}), Python {platform.python_version()}")
    for name, times in found.items():
        print(f"{name}: {statistics.median(times):.2f} µs, best {min(times):.2f} µs")
    if chosen.device == "cuda":
        for name in ("jitted, ten arguments", "jitted, a dictionary and a tuple"):
            added = statistics.median(found[name]) - statistics.median(found["bare, machine code"])
            print(f"{name}: bare launch + {added:.2f} µs")


if __name__ == "__main__":
    main()
