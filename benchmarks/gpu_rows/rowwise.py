"""Rows of memory-bound kernels in the tile DSL: they read a matrix once and write one, as fast as a copy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tessera
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.frameworks import library
from tessera.kernels.schedule import Schedule

ROWS, COLUMNS = 16384, 4096
MOVED = 2 * ROWS * COLUMNS * 2
BARS = {"copy": 0.9, "inductor": 1.0}
BLOCK = Schedule(block=(1, 16))


def kernel(name: str) -> Any:
    from tessera.bench.operators import kernels

    return getattr(kernels, name).with_schedule(BLOCK)


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
