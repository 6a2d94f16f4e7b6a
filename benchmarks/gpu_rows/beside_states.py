"""Rows of linear attention in chunks: retention, and with a gate for each row of the state. Names: `beside states`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import tessera as ts
from tessera.bench.cuda.declarations import Contest, Inputs, kernel_text, row
from tessera.bench.cuda.kernel_texts import text_for, text_of, ways_of
from tessera.bench.instruments.libraries import library

sys.path += [str(Path(__file__).parents[2] / "examples" / "kernels"), str(Path(__file__).parent)]
import linear_attention_chunks

BATCH, HEADS, LENGTH, WIDTH = 8, 16, 4096, 128
SHAPE = (BATCH * HEADS, LENGTH, WIDTH)
CHUNK = 64
MOVES = 4 * 2.0 * BATCH * HEADS * LENGTH * WIDTH
FLOPS = 4.0 * BATCH * HEADS * LENGTH * WIDTH * (CHUNK + WIDTH)
BOUND = 8e-3
"""States and weights are rounded to bf16 in every chunk."""


def truth(q: Any, k: Any, v: Any, gates: Any) -> Any:
    """In float64, in chunks short enough for any gate: each row of the state fades by 2^gate."""
    torch = library("torch")
    chunk = 16
    state = torch.zeros((q.shape[0], WIDTH, v.shape[2]), dtype=torch.float64, device=q.device)
    found = torch.empty(v.shape, dtype=torch.float64, device=q.device)
    for at in range(0, q.shape[1], chunk):
        queries, keys, values, gate = (x[:, at : at + chunk].double() for x in (q, k, v, gates))
        fades = gate.cumsum(1)
        left, right = queries * torch.exp2(fades), keys * torch.exp2(-fades)
        found[:, at : at + chunk] = (left @ right.mT).tril() @ values + left @ state
        whole = fades[:, -1:]
        state = state * torch.exp2(whole).mT + (keys * torch.exp2(whole - fades)).mT @ values
    return found


def declare(name: str) -> None:
    gated = name == "gated"
    moves = MOVES + (2 * MOVES / 4 if gated else 0.0)

    called = f"beside states {name} {BATCH}×{HEADS}×{LENGTH}×{WIDTH} bf16"
    kernel = (linear_attention_chunks.gated if gated else linear_attention_chunks.retention)[SHAPE[0]]
    static = {"chunk": CHUNK, "d": WIDTH}

    @kernel_text(called)
    def text() -> str:
        given = [ts.empty(SHAPE, ts.bf16) for _ in range(3)]
        fades = ts.empty(SHAPE if gated else SHAPE[:1], ts.f32)
        return text_for(kernel, *given, fades, ts.empty(SHAPE, ts.bf16), **static)

    @row(called, "bf16", moves=moves, flops=FLOPS, bars={"triton": 1.1}, kernels=[called], bound=BOUND)
    def contest(make: Inputs) -> Contest:
        torch, triton = library("torch"), library("triton_peers.states")
        q, v = make.normal(*SHAPE), make.normal(*SHAPE)
        k = make.normal(*SHAPE, scale=WIDTH**-0.5)
        if gated:
            raw = make.normal(*SHAPE, dtype="f32")
            # As models have them: logarithms of sigmoids, divided by 16.
            fades = make.derived(lambda: torch.nn.functional.logsigmoid(raw) * (1.4426950408889634 / 16))
        else:
            fades = 1 - torch.exp2(-5.0 - torch.arange(HEADS, device=make.device) / 4).repeat(BATCH)
        out = torch.empty_like(q)
        ours = [ts.from_dlpack(x) for x in (q, k, v, fades, out)]

        def call() -> Any:
            kernel(*ours, **static)
            return out

        def gates() -> Any:
            return fades if gated else fades.log2()[:, None, None].expand(SHAPE)

        return Contest(
            truth=lambda: truth(q, k, v, gates()),
            ours=call,
            peers={"triton": lambda: getattr(triton, name)(q, k, v, fades)},
            ptx={called: partial(text_of, kernel, *ours, **static)},
            ways=lambda: ways_of(kernel, *ours, **static),
        )


for _name in ("retention", "gated"):
    declare(_name)
