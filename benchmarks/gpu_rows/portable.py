"""Rows of the portable path: kernels in the tile DSL with dots, by instructions that every GPU since sm_80 has."""

from __future__ import annotations

from functools import partial
from typing import Any

import tessera
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.instruments.libraries import library
from tessera.tile.language.schedule import Schedule

SIDE = 4096
ATTENTION = {64: Schedule(block=(128, 128), warps=4, stages=2), 128: Schedule(block=(256, 64), warps=8, stages=2)}
GEMMS = [Schedule(block=(256, 128, 64), warps=8, stages=3), Schedule(block=(256, 128, 64), warps=8, stages=4)]


def attention(width: int, causal: bool) -> Any:
    from tessera import stdlib

    masked = stdlib.causal if causal else None
    return partial(stdlib.attention.with_schedule(ATTENTION[width]), mask=masked)


def gemm(schedule: Schedule) -> Any:
    from tessera import stdlib

    assert schedule.block is not None
    return stdlib.gemm.with_schedule(schedule)[SIDE // schedule.block[0], SIDE // schedule.block[1]]


def declare_attention(batch: int, heads: int, length: int, width: int, causal: bool) -> None:
    shape = (batch * heads, length, width)
    called = f"portable attention {batch}×{heads}×{length}×{width} bf16{' causal' if causal else ''}"
    flops = 4.0 * batch * heads * length**2 * width * (0.5 if causal else 1.0)

    @kernel_text(called)
    def text() -> str:
        from tessera.bench.cuda.kernel_texts import text_for

        made = attention(width, causal)
        return text_for(made.func, *(tessera.empty(shape, tessera.bf16) for _ in range(3)), **made.keywords)

    @row(called, "bf16", flops=flops, bars={"flash": 0.9}, kernels=[called])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.kernel_texts import program_of
        from tessera.bench.cuda.occupancy import occupancy

        functional, ways = library("torch.nn.functional"), library("torch.nn.attention")
        q, k, v = (make.normal(*shape) for _ in range(3))
        heads_of = [x.view(batch, heads, length, width) for x in (q, k, v)]
        ours = [tessera.from_dlpack(x) for x in (q, k, v)]
        made = attention(width, causal)
        program = program_of(made.func, *ours, **made.keywords)

        def peer(way: Any) -> Any:
            with ways.sdpa_kernel(way):
                return functional.scaled_dot_product_attention(*heads_of, is_causal=causal)

        def truth() -> Any:
            # One head is enough to see whether numbers are right, and float64 is slow.
            torch = library("torch")
            scores = q[-1].double() @ k[-1].double().T / width**0.5
            if causal:
                above = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(above, float("-inf"))
            return torch.softmax(scores, -1) @ v[-1].double()

        return Contest(
            truth=truth,
            ours=partial(made, *ours),
            peers={
                "flash": partial(peer, ways.SDPBackend.FLASH_ATTENTION),
                "cudnn": partial(peer, ways.SDPBackend.CUDNN_ATTENTION),
            },
            part=lambda result: result.reshape(shape)[-1],
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


def declare_gemm(schedule: Schedule) -> None:
    assert schedule.block is not None
    shape = "×".join(map(str, schedule.block))
    called = f"portable gemm {SIDE}³ bf16, {shape}, {schedule.stages} stages"
    made = gemm(schedule)

    @kernel_text(called)
    def text() -> str:
        from tessera.bench.cuda.kernel_texts import text_for

        return text_for(made, *(tessera.empty((SIDE, SIDE), tessera.bf16) for _ in range(3)))

    @row(called, "bf16", flops=2.0 * SIDE**3, bars={"cublas": 0.6}, kernels=[called])
    def contest(make: Inputs) -> Contest:
        from tessera.bench.cuda.kernel_texts import program_of
        from tessera.bench.cuda.occupancy import occupancy

        torch = library("torch")
        a, b = make.normal(SIDE, SIDE), make.normal(SIDE, SIDE)
        c = torch.empty_like(a)
        ours = [tessera.from_dlpack(x) for x in (a, b, c)]
        program = program_of(made, *ours)

        def call() -> Any:
            made(*ours)
            return ours[2]

        return Contest(
            truth=lambda: a.double() @ b.double(),
            ours=call,
            peers={"cublas": lambda: torch.matmul(a, b)},
            ptx={called: program.ptx.decode()},
            occupancy=partial(occupancy, program),
        )


for _width in (64, 128):
    for _causal in (False, True):
        declare_attention(4, 16, 4096, _width, _causal)
for _schedule in GEMMS:
    declare_gemm(_schedule)
