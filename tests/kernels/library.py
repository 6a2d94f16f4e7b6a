"""Kernels as users write them: the tile DSL's own test set. Each is short; the attention variants share helpers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera import Schedule, f32, i32, kernel, tile

Function = Callable[[Any], Any]
Mask = Callable[[Any, Any], Any]


def identity(x: Any) -> Any:
    return x


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + tile.erf(x / 2**0.5))


def everything(rows: Any, cols: Any) -> Any:
    return (rows >= 0) & (cols >= 0)


def causal(rows: Any, cols: Any) -> Any:
    return rows >= cols


@kernel
def saxpy(x: Any, y: Any, a: float):
    return tile.cast(a * tile.load(x).to(f32) + tile.load(y).to(f32), x.dtype)


@kernel
def softmax(x: Any):
    rows = tile.load(x).to(f32)
    weights = tile.exp(rows - tile.max(rows, keepdims=True))
    return tile.cast(weights / tile.sum(weights, keepdims=True), x.dtype)


@kernel
def layernorm(x: Any, weight: Any, bias: Any, *, eps: float = 1e-5):
    here = tile.context()
    scale, shift = (tile.load(vector, at=(0,), shape=(here.d,)) for vector in (weight, bias))
    rows = tile.load(x).to(f32)
    rows = rows - tile.sum(rows, keepdims=True) / here.d
    rows = rows * tile.rsqrt(tile.sum(rows * rows, keepdims=True) / here.d + eps)
    return tile.cast(rows * scale + shift, x.dtype)


@kernel
def rmsnorm(x: Any, weight: Any, eps: float = 1e-6):
    here = tile.context()
    rows = tile.load(x).to(f32)
    scale = tile.rsqrt(tile.sum(rows * rows) / here.d + eps)
    return tile.cast(rows * scale[:, None] * tile.load(weight, at=(0,), shape=(here.d,)), x.dtype)


@kernel.schedule(Schedule(block=(32, 32, 32)))
def gemm(a: Any, b: Any, bias: Any, c: Any, *, epilogue: Function = identity):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(k, col), shape=(here.k, here.n))
        acc = tile.dot(left, right, acc)
    acc = epilogue(acc + tile.load(bias, at=(col,), shape=(here.n,)))
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.load(x, at=(row, col), shape=(here.m, here.n)).T, at=(col, row))


def attend(q: Any, k: Any, v: Any, *, score: Function = identity, mask: Mask = everything) -> Any:
    """softmax(score(q·kᵀ/√d) where mask)·v; both are given as functions, `mask` of row and column numbers."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = score(tile.dot(queries, tile.load(k, block).T) * here.d**-0.5)
        scores = tile.where(mask(tile.row_index(), tile.col_index(block)), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def attention(q: Any, k: Any, v: Any, *, score: Function = identity, mask: Mask = everything):
    return attend(q, k, v, score=score, mask=mask)


@kernel
def window_attention(q: Any, k: Any, v: Any, window: int):
    return attend(q, k, v, mask=lambda rows, cols: causal(rows, cols) & (rows - cols < window))


@kernel
def softcap_attention(q: Any, k: Any, v: Any, *, cap: float):
    return attend(q, k, v, score=lambda scores: cap * tile.tanh(scores / cap), mask=causal)


@kernel
def alibi_attention(q: Any, k: Any, v: Any, slopes: Any):
    here = tile.context()
    queries, slope = tile.load(q), tile.load(slopes, at=(here.batch,), shape=(1,))
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        rows, cols = tile.row_index(), tile.col_index(block)
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5 - slope * tile.cast(rows - cols, f32)
        tile.mask_causal(scores, rows, cols)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def sigmoid_attention(q: Any, k: Any, v: Any, bias: float):
    here = tile.context()
    queries, acc = tile.load(q), tile.zeros((here.m, here.d))
    for block in tile.range_n(k.shape, here.n):
        weights = tile.sigmoid(tile.dot(queries, tile.load(k, block).T) * here.d**-0.5 + bias)
        acc = tile.dot(tile.cast(weights, v.dtype), tile.load(v, block), acc)
    return tile.cast(acc, q.dtype)


@kernel
def mlp(x: Any, up: Any, down: Any, *, activation: Function = gelu):
    """activation(x·up)·down, a block of hidden units at a time: dot, gelu, dot in one loop."""
    here = tile.context()
    rows, acc = tile.load(x), tile.zeros((here.m, here.d))
    for h in tile.range(0, up.shape[1], here.n):
        hidden = activation(tile.dot(rows, tile.load(up, at=(0, h), shape=(here.d, here.n))))
        acc = tile.dot(tile.cast(hidden, x.dtype), tile.load(down, at=(h, 0), shape=(here.n, here.d)), acc)
    return tile.cast(acc, x.dtype)


@kernel
def histogram(x: Any, counts: Any, *, bins: int):
    here = tile.context()
    matches = tile.load(x, pad=-1)[:, None] == tile.iota((1, bins), 1, dtype=i32)
    hits = tile.where(matches, tile.ones((here.m, bins), i32), 0)
    tile.atomic_add(counts, tile.sum(hits, 0), at=(0,))


@kernel
def logsumexp(x: Any):
    here = tile.context()
    top, total = tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for col in tile.range(0, x.shape[1], here.n):
        block = tile.load(x, at=(here.row_start, col), shape=(here.m, here.n), pad=-tile.INF).to(f32)
        higher = tile.maximum(top, tile.max(block))
        safe = tile.where(higher == -tile.INF, 0.0, higher)
        total = total * tile.exp(top - safe) + tile.sum(tile.exp(block - safe[:, None]))
        top = higher
    return top + tile.log(total)


@kernel
def rope(x: Any, y: Any, *, base: float = 10000.0):
    here = tile.context()
    half = here.d // 2
    at = (here.row_start, 0), (here.row_start, half)
    first, second = (tile.load(here.matrix(x), at=place, shape=(here.m, half)).to(f32) for place in at)
    angle = tile.row_index().to(f32) * tile.exp2(-tile.log2(base) / half * tile.iota((1, half), 1, dtype=f32))
    rotated = first * tile.cos(angle) - second * tile.sin(angle), second * tile.cos(angle) + first * tile.sin(angle)
    for place, part in zip(at, rotated, strict=True):
        tile.store(here.matrix(y), tile.cast(part, y.dtype), at=place)
