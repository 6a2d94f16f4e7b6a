"""The kernels that are measured, as a user would write them in the tile DSL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera.dtypes.types import bf16, f8e4m3, f8e5m2, f32
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True  # errors and IR point at the lines of this file

Function = Callable[[Any], Any]
Mask = Callable[[Any, Any], Any]


def identity(x: Any) -> Any:
    return x


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + tile.erf(x * 0.7071067811865476))


def causal(rows: Any, cols: Any) -> Any:
    return rows >= cols


def own_score(x: Any) -> Any:
    """A score function that nobody has a name for."""
    return 0.9 * x + 0.05 * tile.maximum(x, 0.0)


def soft_cap(x: Any) -> Any:
    return 30.0 * tile.tanh(x * (1 / 30))


def computed(x: Any) -> Any:
    """8-bit floats are stored, not computed with: bf16 holds each of them, and weights keep their digits."""
    return x.to(bf16) if x.dtype.base in (f8e4m3, f8e5m2) else x


@kernel
def attention(q: Any, k: Any, v: Any, *, score: Function = identity, mask: Mask | None = None):
    """softmax(score(q·kᵀ/√d), masked)·v."""
    here = tile.context()
    queries = computed(tile.load(q))
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = score(tile.dot(queries, computed(tile.load(k, block)).T) * here.d**-0.5)
        if mask is not None:
            scores = tile.where(mask(tile.row_index(), tile.col_index(block)), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = computed(tile.load(v, block))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def narrow_attention(q: Any, k: Any, v: Any, *, mask: Mask | None = None):
    """softmax(q·kᵀ/√d, masked)·v, multiplied in the type of its factors, which may have 8 bits; the result has 16."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5
        if mask is not None:
            scores = tile.where(mask(tile.row_index(), tile.col_index(block)), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, tile.load(v, block), block_top, block_total)
    return tile.cast(acc / total[:, None], bf16)


@kernel
def window_attention(q: Any, k: Any, v: Any, window: int):
    """Each query sees itself and the `window` − 1 keys before it."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        rows, cols = tile.row_index(), tile.col_index(block)
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5
        scores = tile.where((rows >= cols) & (rows - cols < window), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def prefix_attention(q: Any, k: Any, v: Any, prefix: int):
    """Causal, but the first `prefix` keys are seen by all."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        rows, cols = tile.row_index(), tile.col_index(block)
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5
        scores = tile.where((rows >= cols) | (cols < prefix), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def alibi_attention(q: Any, k: Any, v: Any, slopes: Any):
    """A bias that falls with the distance, by a slope for each head."""
    here = tile.context()
    queries, slope = tile.load(q), tile.load(slopes, at=(here.batch,), shape=(1,))
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        rows, cols = tile.row_index(), tile.col_index(block)
        distance = tile.cast(rows - cols, f32)
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5 - slope * tile.abs(distance)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype)


@kernel
def attention_lse(q: Any, k: Any, v: Any, *, mask: Mask | None = None):
    """Attention, and the logarithm of what each row of weights was divided by."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5
        if mask is not None:
            scores = tile.where(mask(tile.row_index(), tile.col_index(block)), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    return tile.cast(acc / total[:, None], q.dtype), top + tile.log(total)


@kernel
def bias_attention(q: Any, k: Any, v: Any, bias: Any):
    """A bias for each pair of a query and a key: [S, T] for all, or one for each of some leading axes."""
    here = tile.context()
    queries, biases = tile.load(q), here.matrix(bias)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        added = tile.load(biases, at=(here.row_start, block.start), shape=(here.m, here.n)).to(f32)
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5 + added
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
def mlp(x: Any, up: Any, down: Any):
    """gelu(x·up)·down, a block of hidden units at a time."""
    here = tile.context()
    rows, acc = tile.load(x), tile.zeros((here.m, here.d))
    for h in tile.range(0, up.shape[1], here.n):
        hidden = gelu(tile.dot(rows, tile.load(up, at=(0, h), shape=(here.d, here.n))))
        acc = tile.dot(tile.cast(hidden, x.dtype), tile.load(down, at=(h, 0), shape=(here.n, here.d)), acc)
    return tile.cast(acc, x.dtype)


@kernel
def gemm(a: Any, b: Any, c: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(k, col), shape=(here.k, here.n))
        acc = tile.dot(left, right, acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(row, col))


@kernel
def softmax(x: Any):
    rows = tile.load(x).to(f32)
    weights = tile.exp(rows - tile.max(rows, keepdims=True))
    return tile.cast(weights / tile.sum(weights, keepdims=True), x.dtype)


@kernel
def layernorm(x: Any, weight: Any, bias: Any):
    here = tile.context()
    scale, shift = (tile.load(vector, at=(0,), shape=(here.d,)) for vector in (weight, bias))
    rows = tile.load(x).to(f32)
    rows = rows - tile.sum(rows, keepdims=True) / here.d
    rows = rows * tile.rsqrt(tile.sum(rows * rows, keepdims=True) / here.d + 1e-5)
    return tile.cast(rows * scale + shift, x.dtype)


@kernel
def rmsnorm(x: Any, weight: Any):
    here = tile.context()
    rows = tile.load(x).to(f32)
    scale = tile.rsqrt(tile.sum(rows * rows) / here.d + 1e-6)
    return tile.cast(rows * scale[:, None] * tile.load(weight, at=(0,), shape=(here.d,)), x.dtype)


@kernel
def gelu_bias(x: Any, bias: Any):
    here = tile.context()
    return tile.cast(gelu(tile.load(x).to(f32) + tile.load(bias, at=(0,), shape=(here.d,))), x.dtype)


@kernel
def rope(x: Any, cos: Any, sin: Any, y: Any, *, width: int):
    """Turns the halves of every head of `width` columns against each other; the grid's first axis has the heads."""
    here = tile.context()
    half, row, head = width // 2, tile.program_id(1) * here.m, tile.program_id(0) * width
    turned = [tile.load(table, at=(row, 0), shape=(here.m, half)).to(f32) for table in (cos, sin)]
    first, second = (tile.load(x, at=(row, head + part), shape=(here.m, half)).to(f32) for part in (0, half))
    tile.store(y, tile.cast(first * turned[0] - second * turned[1], y.dtype), at=(row, head))
    tile.store(y, tile.cast(second * turned[0] + first * turned[1], y.dtype), at=(row, head + half))


@kernel
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.load(x, at=(row, col), shape=(here.m, here.n)).T, at=(col, row))


@kernel
def attention_into(q: Any, k: Any, v: Any, out: Any, *, mask: Mask | None = None):
    """Attention into an array that lies in memory as its owner likes."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * here.d**-0.5
        if mask is not None:
            scores = tile.where(mask(tile.row_index(), tile.col_index(block)), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    tile.store(out, tile.cast(acc / total[:, None], out.dtype))
