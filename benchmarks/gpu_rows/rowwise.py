"""Rows of memory-bound kernels in the tile DSL: they read a matrix once and write one, as fast as a copy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tessera
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.instruments.libraries import library
from tessera.tile.language.schedule import Schedule

ROWS, COLUMNS = 16384, 4096
MOVED = 2 * ROWS * COLUMNS * 2
BARS = {"copy": 0.9, "inductor": 1.0}
SCHEDULES = {
    "softmax": Schedule(block=(1, 16), warps=4),
    "layernorm": Schedule(block=(2, 16), warps=8),
    "rmsnorm": Schedule(block=(1, 16), warps=8),
    "gelu_bias": Schedule(block=(1, 16), warps=8),
}
WIDTH = 128
"""Columns of a head."""


def kernel(name: str) -> Any:
    from tessera import stdlib

    return getattr(stdlib, name).with_schedule(SCHEDULES[name])


def declare(name: str, vectors: int, peer: Callable[..., Any]) -> None:
    """A kernel of a matrix and some vectors, against torch's function of the same, plain and compiled."""
    called = f"{name} {ROWS}×{COLUMNS} bf16"
    shapes: Sequence[tuple[int, ...]] = [(ROWS, COLUMNS), *[(COLUMNS,)] * vectors]

    @kernel_text(called)
    def text() -> str:
        from tessera.bench.cuda.kernel_texts import text_for

        return text_for(kernel(name), *(tessera.empty(shape, tessera.bf16) for shape in shapes))

    @row(called, "bf16", moves=MOVED, bars=BARS, kernels=[called])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.kernel_texts import program_of
        from tessera.bench.cuda.occupancy import occupancy

        given = [make.normal(*shape) for shape in shapes]
        ours = [tessera.from_dlpack(tensor) for tensor in given]
        call = partial(kernel(name), *ours)
        program = program_of(call.func, *ours)
        compiled = library("torch").compile(peer, dynamic=False)
        return Contest(
            truth=lambda: peer(*(tensor.double() for tensor in given)),
            ours=call,
            peers={"torch": partial(peer, *given), "inductor": partial(compiled, *given)},
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


def softmax(x: Any) -> Any:
    return library("torch").softmax(x, -1)


def layernorm(x: Any, weight: Any, bias: Any) -> Any:
    return library("torch.nn.functional").layer_norm(x, (COLUMNS,), weight, bias, 1e-5)


def rmsnorm(x: Any, weight: Any) -> Any:
    return library("torch.nn.functional").rms_norm(x, (COLUMNS,), weight, 1e-6)


def gelu(x: Any, bias: Any) -> Any:
    return library("torch.nn.functional").gelu(x + bias)


declare("softmax", 0, softmax)
declare("layernorm", 2, layernorm)
declare("rmsnorm", 1, rmsnorm)
declare("gelu_bias", 1, gelu)


def rope_kernel() -> Any:
    from tessera import stdlib

    return stdlib.rope.with_schedule(Schedule(block=(16, 16), warps=4))[COLUMNS // WIDTH, ROWS // 16]


def transpose_kernel() -> Any:
    from tessera import stdlib

    return stdlib.transpose.with_schedule(Schedule(block=(64, 64), warps=4))[ROWS // 64, COLUMNS // 64]


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    """The same as the kernel of that name, in torch."""
    torch = library("torch")
    first, second = x.view(ROWS, -1, 2, WIDTH // 2).unbind(2)
    cos, sin = cos[:, None], sin[:, None]
    return torch.stack([first * cos - second * sin, second * cos + first * sin], 2).view(ROWS, COLUMNS)


def declare_filling(
    name: str, made: Callable[[], Any], peer: Callable[..., Any], tables: int, moves: int, static: dict[str, Any]
) -> None:
    """A kernel that fills an array it is given: of a matrix and some tables with half a head to a row."""
    called = f"{name} {ROWS}×{COLUMNS} bf16"
    shapes: Sequence[tuple[int, ...]] = [(ROWS, COLUMNS), *[(ROWS, WIDTH // 2)] * tables]
    result = (COLUMNS, ROWS) if name == "transpose" else (ROWS, COLUMNS)

    @kernel_text(called)
    def text() -> str:
        from tessera.bench.cuda.kernel_texts import text_for

        return text_for(made(), *(tessera.empty(shape, tessera.bf16) for shape in (*shapes, result)), **static)

    @row(called, "bf16", moves=moves, bars=BARS, kernels=[called])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.kernel_texts import program_of
        from tessera.bench.cuda.occupancy import occupancy

        torch = library("torch")
        given = [make.normal(*shape) for shape in shapes]
        filled = torch.empty(result, dtype=torch.bfloat16, device="cuda")
        ours = [tessera.from_dlpack(tensor) for tensor in (*given, filled)]
        program, kernel_ = program_of(made(), *ours, **static), made()
        compiled = torch.compile(peer, dynamic=False)

        def call() -> Any:
            kernel_(*ours, **static)
            return ours[-1]

        return Contest(
            truth=lambda: peer(*(tensor.double() for tensor in given)),
            ours=call,
            peers={"torch": partial(peer, *given), "inductor": partial(compiled, *given)},
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


TABLES = 2 * ROWS * (WIDTH // 2) * 2
declare_filling("rope", rope_kernel, rotated, 2, MOVED + TABLES, {"width": WIDTH})
declare_filling("transpose", transpose_kernel, lambda x: x.t().contiguous(), 0, MOVED, {})
