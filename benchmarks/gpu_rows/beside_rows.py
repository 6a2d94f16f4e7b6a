"""Rows of operators along rows: running sums, orders and largest ones. Names begin with `beside rows`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tessera as ts
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.cuda.kernel_texts import program_text_for, text_of_program, ways_of
from tessera.bench.instruments.libraries import library

sys.path.append(str(Path(__file__).parent))


def identity(x: Any) -> Any:
    return x


@dataclass(frozen=True)
class Operator:
    """An operator along rows, and the same in torch and Triton."""

    name: str
    shape: tuple[int, int]
    ours: Any
    plain: Callable[[Any], Any]
    tuned: Callable[[Any, Any], Callable[[], Any]]
    """Of the module of Triton's kernels and the input."""
    truth: Callable[[Any], Any]
    written: float
    """Bytes."""
    given: tuple[Any, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict[str, Any])
    chosen: Callable[[Any], Any] = identity
    """The part of the result that is looked at."""
    dtype: str = "f32"
    gives_indices: bool = False
    """Then what lies there is compared with the truth."""


def declare(one: Operator) -> None:
    rows, columns = one.shape
    called = f"beside rows {one.name} {rows}×{columns} {one.dtype}"
    moves = {"f32": 4.0, "bf16": 2.0}[one.dtype] * rows * columns + one.written
    # Sums of a million numbers, one after the other, have errors of 1.5e-5.
    bound = 5e-5 if one.dtype == "f32" else None

    @kernel_text(called)
    def text() -> str:
        x = ts.empty(one.shape, getattr(ts, one.dtype))
        return program_text_for(one.ours.eager, (x, *one.given), **one.static)

    @row(called, one.dtype, moves=moves, bars={"best": 0.9}, kernels=[called], bound=bound)
    def contest(make: Inputs) -> Contest:
        torch, triton = library("torch"), library("triton_peers.rows")
        x = make.normal(*one.shape)
        ours = ts.from_dlpack(x), *one.given
        torch.compiler.reset()

        def call() -> Any:
            return one.chosen(one.ours(*ours, **one.static))

        def part(result: Any) -> Any:
            if not one.gives_indices:
                return result
            # What was not written is no index.
            return x.gather(1, result.reshape(rows, -1).long().clamp(0, columns - 1))

        return Contest(
            truth=lambda: one.truth(x),
            ours=call,
            peers={
                "torch": partial(one.plain, x),
                "inductor": partial(torch.compile(one.plain, dynamic=False), x),
                "triton": one.tuned(triton, x),
            },
            part=part,
            ptx={called: lambda: text_of_program(one.ours.eager, *ours, **one.static)},
            ways=lambda: ways_of(one.ours.eager, *ours, **one.static),
        )


def running(x: Any) -> Any:
    return x.cumsum(-1)


def sorted_rows(x: Any) -> Any:
    return x.sort(-1).values


def largest(x: Any) -> Any:
    return x.argmax(-1)


def indices_of_largest(count: int, x: Any) -> Any:
    return library("torch").topk(x, count).indices


def operators() -> Iterator[Operator]:
    for shape, tuned in (
        ((16384, 4096), lambda triton, x: partial(triton.cumsum, x)),
        ((64, 1 << 20), lambda triton, x: partial(triton.LongCumsum(x), x)),
    ):
        yield Operator(
            "cumsum",
            shape,
            ts.cumulative_sum,
            running,
            tuned,
            truth=lambda x: x.double().cumsum(-1),
            written=4.0 * shape[0] * shape[1],
            static={"axis": -1},
        )
    for count in (8, 50):
        yield Operator(
            f"topk {count}",
            (16384, 4096),
            ts.topk,
            partial(indices_of_largest, count),
            lambda triton, x, count=count: partial(triton.topk, x, count),
            truth=lambda x, count=count: x.double().topk(count).values,
            written=12.0 * 16384 * count,
            given=(count,),
            chosen=lambda found: found[1],
            gives_indices=True,
        )
    yield Operator(
        "sort",
        (4096, 4096),
        ts.sort,
        sorted_rows,
        lambda triton, x: partial(triton.sort, x),
        truth=lambda x: x.double().sort(-1).values,
        written=4.0 * 4096 * 4096,
    )
    yield Operator(
        "argmax",
        (4096, 32000),
        ts.argmax,
        largest,
        lambda triton, x: partial(triton.argmax, x),
        truth=lambda x: x.double().amax(-1, keepdim=True),
        written=8.0 * 4096,
        static={"axis": -1},
        dtype="bf16",
        gives_indices=True,
    )


for _operator in operators():
    declare(_operator)
