"""Attention in one pass over the keys (flash attention), and its variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tessera.dtypes.types import bf16, f8e4m3, f8e5m2, f32
from tessera.shapes.annotations import KTile, Out
from tessera.stdlib.elementwise import identity
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile
from tessera.tile.language.schedule import Schedule

__written_like_a_user__ = True  # errors and IR point at the lines of this file

Function = Callable[[Any], Any]
Mask = Callable[[Any, Any], Any]


def causal(rows: Any, cols: Any) -> Any:
    return rows >= cols


def own_score(x: Any) -> Any:
    """An unusual score function, as a user may write one: a leaky linear function."""
    return 0.9 * x + 0.05 * tile.maximum(x, 0.0)


def soft_cap(x: Any) -> Any:
    return 30.0 * tile.tanh(x * (1 / 30))


def computed(x: Any) -> Any:
    """8-bit floats as bf16, which holds each of them: dots then keep the digits of the weights."""
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
def flash_attention(q: Any, k: Any, v: Any, o: Out, scale: float, *, causal: bool = False):
    """o = softmax(scale·q·kᵀ, masked)·v."""
    here = tile.context()
    queries = tile.load(q)
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        scores = tile.dot(queries, tile.load(k, block).T) * scale
        if causal:
            scores = tile.where(tile.row_index() >= tile.col_index(block), scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, block)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    filled: Any = o
    tile.store(filled, tile.cast(acc / total[:, None], filled.dtype))


@kernel
def attention_into(q: Any, k: Any, v: Any, out: Any, *, mask: Mask | None = None):
    """Attention that stores into `out`, an array of any strides."""
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


@kernel
def attention_lse(q: Any, k: Any, v: Any, *, mask: Mask | None = None):
    """Attention, and the log-sum-exp of each row of scores."""
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


if TYPE_CHECKING:
    Queries = Keys = Any
else:
    Queries, Keys = KTile["H", "S", "D", bf16], KTile["H", "T", "D", bf16]


@kernel.schedule(Schedule(block=(32, 48), warps=4, stages=2))
def typed_attention(q: Queries, k: Keys, v: Keys, *, causal: bool) -> Any:
    """softmax(q·kᵀ/√D)·v and the log-sum-exp of each row, for annotated arrays of bf16, with a schedule of its own."""
    here = tile.context()
    rows = tile.load(q, rows=here.m, cols=here.d)
    total, top, share = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        keys, values = tile.load(k, block), tile.load(v, block)
        scores = tile.dot(rows, tile.transpose(keys)) * tile.rsqrt(float(here.d))
        if causal:
            scores = tile.mask_causal(scores, tile.row_index(), tile.col_index(block))
        weights, high, part = tile.softmax_online(scores)
        total, top, share = tile.softmax_accumulate(total, top, share, weights, values, high, part)
    return tile.cast(total / share[:, None], bf16), top + tile.log(tile.cast(share, f32))


@kernel
def narrow_attention(q: Any, k: Any, v: Any, *, mask: Mask | None = None):
    """softmax(q·kᵀ/√d, masked)·v; dots in the type of their operands, which may have 8 bits; the result has 16."""
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
    """Attention in which each query sees itself and the `window` − 1 keys before it."""
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
    """Causal attention in which every query sees the first `prefix` keys."""
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
    """Attention with a bias that falls with the distance of query and key, by a slope for each head (ALiBi)."""
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
def bias_attention(q: Any, k: Any, v: Any, bias: Any):
    """softmax(q·kᵀ/√d + bias)·v, a bias for each pair of query and key: [S, T], or with leading axes."""
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
    """sigmoid(q·kᵀ/√d + bias)·v."""
    here = tile.context()
    queries, acc = tile.load(q), tile.zeros((here.m, here.d))
    for block in tile.range_n(k.shape, here.n):
        weights = tile.sigmoid(tile.dot(queries, tile.load(k, block).T) * here.d**-0.5 + bias)
        acc = tile.dot(tile.cast(weights, v.dtype), tile.load(v, block), acc)
    return tile.cast(acc, q.dtype)
