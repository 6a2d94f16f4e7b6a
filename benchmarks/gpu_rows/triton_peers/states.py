"""Linear attention in chunks, with a state that fades: retention, and gates for each row of the state."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from triton_peers.tuning import tuned

CONFIGS = [
    triton.Config({"C": chunk, "BV": width}, num_warps=warps, num_stages=stages)
    for chunk, width, warps in (
        *((64, 32, 4), (64, 32, 8), (64, 64, 4), (64, 64, 8), (64, 128, 4), (64, 128, 8)),
        *((128, 32, 4), (128, 64, 8)),
    )
    for stages in (1, 2)
]
"""Shorter chunks are no whole operands of a warpgroup's matrix instructions."""


@tuned(CONFIGS, key=["S", "D"])
@triton.jit
def _retention(q, k, v, gammas, out, S, D: tl.constexpr, C: tl.constexpr, BV: tl.constexpr):
    h = tl.program_id(1).to(tl.int64)
    fade = tl.log2(tl.load(gammas + h))
    row, d, e = tl.arange(0, C), tl.arange(0, D), tl.program_id(0) * BV + tl.arange(0, BV)
    fades = (row + 1).to(tl.float32) * fade
    whole = fade * C
    away = fades[:, None] - fades[None, :]
    within = tl.where(row[:, None] >= row[None, :], tl.exp2(away), 0.0)
    state = tl.zeros((D, BV), tl.float32)
    for at in range(0, S, C):
        base = (h * S + at + row)[:, None] * D
        queries, keys, values = tl.load(q + base + d), tl.load(k + base + d), tl.load(v + base + e)
        left = (queries.to(tl.float32) * tl.exp2(fades)[:, None]).to(queries.dtype)
        scores = tl.dot(queries, tl.trans(keys)) * within
        seen = tl.dot(left, state.to(left.dtype))
        seen = tl.dot(scores.to(values.dtype), values, seen)
        tl.store(out + base + e, seen.to(out.dtype.element_ty))
        kept = (keys.to(tl.float32) * tl.exp2(whole - fades)[:, None]).to(keys.dtype)
        state = tl.dot(tl.trans(kept), values, state * tl.exp2(whole))


@tuned(CONFIGS, key=["S", "D"])
@triton.jit
def _gated(q, k, v, gates, out, S, D: tl.constexpr, C: tl.constexpr, BV: tl.constexpr):
    h = tl.program_id(1).to(tl.int64)
    row, d, e = tl.arange(0, C), tl.arange(0, D), tl.program_id(0) * BV + tl.arange(0, BV)
    state = tl.zeros((D, BV), tl.float32)
    for at in range(0, S, C):
        base = (h * S + at + row)[:, None] * D
        queries, keys, values = tl.load(q + base + d), tl.load(k + base + d), tl.load(v + base + e)
        gate = tl.load(gates + base + d)
        fades, whole = tl.cumsum(gate, 0), tl.sum(gate, 0)
        left = (queries.to(tl.float32) * tl.exp2(fades)).to(queries.dtype)
        right = (keys.to(tl.float32) * tl.exp2(-fades)).to(keys.dtype)
        scores = tl.where(row[:, None] >= row[None, :], tl.dot(left, tl.trans(right)), 0.0)
        seen = tl.dot(left, state.to(left.dtype))
        seen = tl.dot(scores.to(values.dtype), values, seen)
        tl.store(out + base + e, seen.to(out.dtype.element_ty))
        kept = (keys.to(tl.float32) * tl.exp2(whole[None, :] - fades)).to(keys.dtype)
        state = tl.dot(tl.trans(kept), values, state * tl.exp2(whole)[:, None])


def _run(kernel: Any, q: Any, k: Any, v: Any, fades: Any) -> Any:
    heads, length, width = q.shape
    out = torch.empty_like(v)
    kernel[lambda one: (width // one["BV"], heads)](q, k, v, fades, out, length, D=width)
    return out


def retention(q: Any, k: Any, v: Any, gammas: Any) -> Any:
    return _run(_retention, q, k, v, gammas)


def gated(q: Any, k: Any, v: Any, gates: Any) -> Any:
    return _run(_gated, q, k, v, gates)
