"""Rows of operators along rows: running sums, orders and largest ones. Names begin with `beside rows`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tessera as ts
from tessera.bench.cuda.declarations import Contest, Inputs, row
from tessera.bench.instruments.libraries import library

sys.path.append(str(Path(__file__).parent))


def ways_of(operator: Any) -> list[str]:
    """How the last of an operator's programs was compiled."""
    program = operator.eager.explain().variants[-1].program
    return [f"{len(program.kernels)} kernels", *program.explain()]


def declare(
    name: str, shape: tuple[int, int], dtype: str, written: float, ours: Callable[..., Any], eager: Any, plain: Any,
    tuned: Callable[[Any, Any], Callable[[], Any]], truth: Callable[[Any], Any], picks: bool = False,
) -> None:  # fmt: skip
    """`picks`: the results are indices, and what lies there is compared with the truth."""
    size = {"f32": 4, "bf16": 2}[dtype]
    moves = size * float(shape[0] * shape[1]) + written

    @row(f"beside rows {name} {shape[0]}×{shape[1]} {dtype}", dtype, moves=moves, bars={"best": 0.9},
         bound=1e-5 if dtype == "f32" else None)  # fmt: skip
    def contest(make: Inputs) -> Contest:
        torch, triton = library("torch"), library("triton_peers.rows")
        x = make.normal(*shape)
        torch.compiler.reset()

        def part(result: Any) -> Any:
            if not picks:
                return result
            # What was not written is no index.
            found = result.reshape(shape[0], -1).long().clamp(0, shape[1] - 1)
            return x.gather(1, found)

        return Contest(
            truth=lambda: truth(x),
            ours=partial(ours, ts.from_dlpack(x)),
            peers={
                "torch": partial(plain, x),
                "inductor": partial(torch.compile(plain, dynamic=False), x),
                "triton": tuned(triton, x),
            },
            part=part,
            ways=lambda: ways_of(eager),
        )


def running(x: Any) -> Any:
    return x.cumsum(-1)


def whole(triton: Any, x: Any) -> Callable[[], Any]:
    return partial(triton.cumsum, x)


def long(triton: Any, x: Any) -> Callable[[], Any]:
    return partial(triton.LongCumsum(x), x)


for _shape, _tuned in (((16384, 4096), whole), ((64, 1 << 20), long)):
    declare(
        "cumsum", _shape, "f32", 4.0 * _shape[0] * _shape[1], partial(ts.cumulative_sum, axis=-1), ts.cumulative_sum,
        running, _tuned, lambda x: x.double().cumsum(-1),
    )  # fmt: skip


def declare_topk(count: int) -> None:
    def ours(x: Any) -> Any:
        return ts.topk(x, count)[1]

    def plain(x: Any) -> Any:
        return library("torch").topk(x, count).indices

    declare(
        f"topk {count}", (16384, 4096), "f32", 12.0 * 16384 * count, ours, ts.topk, plain,
        lambda triton, x: partial(triton.topk, x, count), lambda x: x.double().topk(count).values, picks=True,
    )  # fmt: skip


for _count in (8, 50):
    declare_topk(_count)


def sorted_rows(x: Any) -> Any:
    return x.sort(-1).values


def largest(x: Any) -> Any:
    return x.argmax(-1)


declare(
    "sort", (4096, 4096), "f32", 4.0 * 4096 * 4096, ts.sort, ts.sort, sorted_rows,
    lambda triton, x: partial(triton.sort, x), lambda x: x.double().sort(-1).values,
)  # fmt: skip
declare(
    "argmax", (4096, 32000), "bf16", 8.0 * 4096, partial(ts.argmax, axis=-1), ts.argmax, largest,
    lambda triton, x: partial(triton.argmax, x), lambda x: x.double().amax(-1, keepdim=True), picks=True,
)  # fmt: skip
