"""Rows of products that end in more than a store, and of experts: `beside amax`, `beside loss`, `beside experts`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tessera as ts
from tessera.bench.cuda.declarations import Contest, Inputs, Yardstick, kernel_text, row
from tessera.bench.cuda.kernel_texts import text_for, text_of, ways_of
from tessera.bench.instruments.libraries import library
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.language.schedule import Schedule

sys.path += [str(Path(__file__).parents[2] / "examples" / "kernels"), str(Path(__file__).parent)]
import grouped_gemm
import linear_cross_entropy
import quantizing_gemm

LOOKED_AT = 512


# Rows scaled into 8 bits

GROUP = quantizing_gemm.COLUMNS
"""Columns that have a scale in common."""


def declare_amax(m: int, n: int, k: int) -> None:
    kernel = quantizing_gemm.quantizing_gemm.grid(quantizing_gemm.by_blocks)

    called = f"beside amax {m}×{n}×{k} f8e4m3 of bf16"

    @kernel_text(called)
    def text() -> str:
        given = ts.empty((m, k), ts.bf16), ts.empty((k, n), ts.bf16)
        return text_for(kernel, *given, ts.empty((m, n), ts.f8e4m3), ts.empty((m, n // GROUP), ts.f32))

    @row(called, "bf16", flops=2.0 * m * n * k, bars={"best": 1.05}, kernels=[called], bound=0.04)
    def contest(make: Inputs) -> Contest:
        torch, triton = library("torch"), library("triton_peers.products")
        a, b = make.normal(m, k), make.normal(k, n, scale=k**-0.5)

        def empty() -> tuple[Any, Any]:
            return (
                torch.empty((m, n), dtype=torch.float8_e4m3fn, device=make.device),
                torch.empty((m, n // GROUP), device=make.device),
            )

        made = {name: empty() for name in ("tessera", "triton")}
        found = ts.from_dlpack(made["tessera"][0].view(torch.uint8))
        out = Tensor.wrap(found.geometry.view(ts.f8e4m3.storage), ts.f8e4m3, found.device, found.buffer)
        ours = [ts.from_dlpack(a), ts.from_dlpack(b), out, ts.from_dlpack(made["tessera"][1])]
        step = m // LOOKED_AT

        def plain(a: Any, b: Any) -> Any:
            wide = (a @ b).float().unflatten(1, (-1, GROUP))
            scale = wide.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 448
            return (wide / scale).to(torch.float8_e4m3fn).flatten(1), scale.squeeze(-1)

        torch.compiler.reset()
        compiled = torch.compile(plain, dynamic=False, mode="max-autotune-no-cudagraphs")
        held: dict[Any, Any] = {}

        def known(numbers: Any, scales: Any) -> Any:
            """The numbers, from which their scales are found again."""
            held[numbers.data_ptr()] = scales
            return numbers

        def call() -> Any:
            kernel(*ours)
            return known(*made["tessera"])

        def of_triton() -> Any:
            triton.quantizing_gemm(a, b, *made["triton"])
            return known(*made["triton"])

        def part(numbers: Any) -> Any:
            scales = held[numbers.data_ptr()][::step, :, None]
            return (numbers[::step].double().unflatten(1, (-1, GROUP)) * scales.double()).flatten(1)

        return Contest(
            truth=lambda: a[::step].double() @ b.double(),
            ours=call,
            peers={"triton": of_triton, "inductor": lambda: known(*compiled(a, b))},
            part=part,
            ptx={called: partial(text_of, kernel, *ours)},
            ways=lambda: ways_of(kernel, *ours),
        )


declare_amax(4096, 4096, 4096)
declare_amax(8192, 14336, 4096)


# Losses of a last layer

TOKENS, WIDTH, WORDS = 49152, 1024, 32000
"""So many tokens are whole waves of program instances with any of the blocks."""
BLOCKS: list[tuple[int, int] | None] = [None, *[(m, n) for m in (64, 128, 192) for n in (128, 256)]]


def declare_loss(block: tuple[int, int] | None) -> None:
    kernel = linear_cross_entropy.linear_cross_entropy
    if block is not None:
        kernel = kernel.with_schedule(Schedule(block=(*block, 64)))
    said = "default block" if block is None else f"block {block[0]}×{block[1]}"
    flops = 2.0 * TOKENS * WIDTH * WORDS
    bars = {"best": 1.1} if block is None else {"default": 1 / 1.6}

    default_text = f"beside loss {TOKENS}×{WIDTH}×{WORDS} default block bf16"
    called = f"beside loss {TOKENS}×{WIDTH}×{WORDS} {said} bf16"

    @kernel_text(called)
    def text() -> str:
        given = ts.empty((TOKENS, WIDTH), ts.bf16), ts.empty((WORDS, WIDTH), ts.bf16)
        return text_for(kernel, *given, ts.empty((TOKENS,), ts.i32), ts.empty((TOKENS,), ts.f32))

    used = list(dict.fromkeys([called, default_text]))

    # Torch rounds logits to bf16; ours and Triton's are 1e-7 away from the truth.
    @row(called, "f32", flops=flops, bars=bars, kernels=used, bound=1e-3)
    def contest(make: Inputs) -> Contest:
        torch, triton = library("torch"), library("triton_peers.products")
        x, weights = (
            make.normal(TOKENS, WIDTH, dtype="bf16"),
            make.normal(WORDS, WIDTH, dtype="bf16", scale=WIDTH**-0.5),
        )
        targets = make.integers(0, WORDS, TOKENS, dtype="i32")
        losses = torch.empty(TOKENS, device=make.device)
        ours = [ts.from_dlpack(one) for one in (x, weights, targets, losses)]
        step = TOKENS // 4096

        def expected() -> Any:
            logits = x[::step].double() @ weights.double().T
            return logits.logsumexp(-1) - logits.gather(1, targets[::step, None].long())[:, 0]

        def call() -> Any:
            kernel(*ours)
            return losses

        def plain(x: Any, weights: Any, targets: Any) -> Any:
            functional = torch.nn.functional
            return functional.cross_entropy((x @ weights.T).float(), targets.long(), reduction="none")

        peers: dict[str, Any] = {}
        if block is None:
            torch.compiler.reset()
            peers["inductor"] = partial(torch.compile(plain, dynamic=False), x, weights, targets)
            peers["triton"] = partial(triton.LinearCrossEntropy(x, weights), x, weights, targets)

        def default() -> Any:
            linear_cross_entropy.linear_cross_entropy(*ours)
            return losses

        return Contest(
            truth=expected,
            ours=call,
            peers=peers,
            yardsticks={} if block is None else {"default": Yardstick(default, flops)},
            ptx={
                called: partial(text_of, kernel, *ours),
                default_text: partial(text_of, linear_cross_entropy.linear_cross_entropy, *ours),
            },
            part=lambda result: result[::step],
            ways=lambda: ways_of(kernel, *ours),
        )


for _block in BLOCKS:
    declare_loss(_block)


# Experts

EXPERT_TOKENS, DEPTH, COLUMNS = 16384, 4096, 4096


def shares_of(experts: int) -> list[int]:
    """Uneven: the busiest expert has several times as many tokens as the idlest; multiples of 16, as torch demands."""
    shares = np.random.default_rng(experts).gamma(1.5, size=experts) + 0.1
    ends = np.round(np.cumsum(shares) / shares.sum() * (EXPERT_TOKENS // 16)).astype(int) * 16
    return [int(end) for end in ends]


def declare_experts(experts: int) -> None:
    flops = 2.0 * EXPERT_TOKENS * DEPTH * COLUMNS
    ends = shares_of(experts)

    called = f"beside experts {experts} of {EXPERT_TOKENS}×{COLUMNS}×{DEPTH} bf16"
    block = {"m": 128, "n": 256, "k": 64}
    most = int(np.diff(ends, prepend=0).max())
    kernel = grouped_gemm.grouped_gemm[experts, -(-most // block["m"]), -(-COLUMNS // block["n"])]

    @kernel_text(called)
    def text() -> str:
        x, weights, out = (
            ts.empty(shape, ts.bf16)
            for shape in ((EXPERT_TOKENS, DEPTH), (experts, DEPTH, COLUMNS), (EXPERT_TOKENS, COLUMNS))
        )
        return text_for(kernel, x, weights, ts.empty((experts + 1,), ts.i32), out, **block)

    @row(called, "bf16", flops=flops, bars={"torch": 1.0}, kernels=[called])
    def contest(make: Inputs) -> Contest:
        torch = library("torch")
        x = make.normal(EXPERT_TOKENS, DEPTH)
        weights = make.normal(experts, DEPTH, COLUMNS, scale=DEPTH**-0.5)
        starts = torch.tensor([0, *ends], dtype=torch.int32, device=make.device)
        out = torch.empty((EXPERT_TOKENS, COLUMNS), dtype=x.dtype, device=make.device)
        ours = [ts.from_dlpack(one) for one in (x, weights, starts, out)]
        step = EXPERT_TOKENS // LOOKED_AT
        rows = torch.arange(0, EXPERT_TOKENS, step, device=make.device)
        experts_of = torch.searchsorted(starts[1:], rows, right=True)

        def expected() -> Any:
            found = torch.empty((len(rows), COLUMNS), dtype=torch.float64, device=make.device)
            for expert in range(experts):
                chosen = experts_of == expert
                found[chosen] = x[rows[chosen]].double() @ weights[expert].double()
            return found

        def call() -> Any:
            kernel(*ours, **block)
            return out

        grouped = torch._grouped_mm  # noqa: SLF001  (it has no other name)
        lying = make.derived(weights.mT.contiguous)
        return Contest(
            truth=expected,
            ours=call,
            peers={
                "torch": lambda: grouped(x, weights, offs=starts[1:]),
                "torch [N, K]": lambda: grouped(x, lying.mT, offs=starts[1:]),
            },
            part=lambda result: result[::step],
            ptx={called: partial(text_of, kernel, *ours, **block)},
            ways=lambda: ways_of(kernel, *ours, **block),
        )


for _experts in (8, 64):
    declare_experts(_experts)
