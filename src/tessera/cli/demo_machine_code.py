"""The part of `tessera demo` about speed: attention as machine code, timed beside torch's where there is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import tessera as ts
from tessera.compiler.target import target_named
from tessera.device_names import HOST
from tessera.runtime.native import pool
from tessera.stdlib import typed_attention
from tessera.tile import Schedule

SHAPE = (8, 512, 64)  # heads, rows, width
_BLOCK = Schedule(block=(64, 64))
_REPETITIONS, _PATIENCE = 30, 3.0
"""So many calls, or fewer where they take longer than so many seconds together."""


class Timed(NamedTuple):
    """A result, and the time of a call: of the first, and of the best one."""

    result: Any
    first: float
    best: float


def timed(call: Callable[[], Any]) -> Timed:
    laps: list[float] = []
    result: Any = None
    for _ in range(_REPETITIONS):
        began = time.perf_counter()
        result = call()
        laps.append(time.perf_counter() - began)
        if sum(laps) > _PATIENCE:
            break
    return Timed(result, laps[0], min(laps))


def inputs() -> tuple[ts.Tensor, ts.Tensor, ts.Tensor]:
    q, k, v = (ts.randn(SHAPE, ts.bf16, seed=seed) for seed in range(3))
    return q, k, v


def machine_code(q: ts.Tensor, k: ts.Tensor, v: ts.Tensor) -> Timed:
    """Causal attention as machine code for this processor."""
    call = typed_attention.with_schedule(_BLOCK)
    found = timed(lambda: call(q, k, v, causal=True)[0])
    return found._replace(result=found.result.numpy())


def report_lines(found: Timed, q: ts.Tensor, k: ts.Tensor, v: ts.Tensor) -> Iterator[str]:
    """The figures, in words."""
    threads = pool.threads()
    what = f"causal attention, bf16, {'×'.join(map(str, SHAPE))}"
    times = f"{1e3 * found.best:.2f} ms; the first call took {1e3 * found.first:.0f} ms"
    yield f"{what}, as machine code ({target_named(HOST).default_level()}, {threads} threads): {times}"
    if find_spec("torch") is None:
        yield "there is no torch here to compare with: pip install torch"
        return
    other = _torch(q, k, v, threads)
    ratio = f"{other / found.best:.1f} times as long"
    yield f"torch: {1e3 * other:.2f} ms, {ratio}; both are the best of up to {_REPETITIONS} calls"


def _torch(q: ts.Tensor, k: ts.Tensor, v: ts.Tensor, threads: int) -> float:
    torch: Any = import_module("torch")  # a peer: types are checked where it is not installed, too
    torch.set_num_threads(threads)
    given: list[Any] = [torch.from_dlpack(tensor)[None] for tensor in (q, k, v)]
    attend: Any = torch.nn.functional.scaled_dot_product_attention
    return timed(lambda: attend(*given, is_causal=True)).best
