"""Kernels with tiles of three axes and more, and what NumPy says of them: for tests on CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tessera import kernel, tile

Array = np.ndarray[Any, np.dtype[Any]]
SHAPE = (4, 8, 16)
"""The tile of every case; arrays may have less."""


@kernel
def changed(x: Any, out: Any, *, shape: Any, how: Any, pad: float = 0.0):
    found: Any = how(tile.load(x, at=(0,) * len(shape), shape=shape, pad=pad))
    tile.store(out, tile.cast(found, out.dtype), at=(0,) * found.ndim)


@kernel
def changed_in_place(x: Any, *, shape: Any, how: Any, to: int = 0):
    found: Any = how(tile.load(x, at=(0,) * len(shape), shape=shape))
    tile.store(x, tile.cast(found, x.dtype), at=(to, *(0,) * (len(shape) - 1)))


@kernel
def decayed(x: Any, out: Any, *, shape: Any, turns: int):
    total: Any = tile.zeros(shape)
    for at in tile.range(turns):
        total = total * 0.5 + tile.load(x, at=(at, 0, 0), shape=shape)
    tile.store(out, total, at=(0, 0, 0))


@kernel
def products(x: Any, w: Any, out: Any, *, batch: int, m: int, k: int, n: int):
    """A product for each point of the first axis, block by block along the inner one."""
    i = tile.program_id(0) * batch
    total: Any = tile.zeros((batch, m, n), out.dtype)
    for at in tile.range(0, x.shape[2], k):
        left = tile.load(x, at=(i, 0, at), shape=(batch, m, k))
        total = tile.dot(left, tile.load(w, at=(i, at, 0), shape=(batch, k, n)), total)
    tile.store(out, total, at=(i, 0, 0))


@kernel
def product(x: Any, w: Any, out: Any, *, left: Any, right: Any):
    """One product of whole tiles, whatever axes they have in front."""
    a = tile.load(x, at=(0,) * len(left), shape=left)
    found = tile.dot(a, tile.load(w, at=(0,) * len(right), shape=right), out=out.dtype)
    tile.store(out, found, at=(0,) * found.ndim)


@kernel
def heads(q: Any, k: Any, v: Any, out: Any, *, h: int, m: int, n: int, d: int):
    """Attention of several heads at once: products, maxima and sums of each in tiles of three axes."""
    queries, keys = tile.load(q, at=(0, 0, 0), shape=(h, m, d)), k.shape[1]
    total: Any = tile.zeros((h, m, d))
    largest: Any = tile.full((h, m), -1e30)
    sums: Any = tile.zeros((h, m))
    for at in tile.range(0, keys, n):
        scores = tile.dot(queries, tile.transpose(tile.load(k, at=(0, at, 0), shape=(h, n, d))))
        scores = tile.where((tile.iota(n) + at < keys)[None, None, :], scores, -1e30)
        new = tile.maximum(largest, tile.max(scores, axis=2))
        weights, decay = tile.exp(scores - new[:, :, None]), tile.exp(largest - new)
        sums = sums * decay + tile.sum(weights, axis=2)
        values = tile.load(v, at=(0, at, 0), shape=(h, n, d))
        total = tile.dot(tile.cast(weights, v.dtype), values, total * decay[:, :, None])
        largest = new
    tile.store(out, total / sums[:, :, None], at=(0, 0, 0))


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    return weights / weights.sum(2, keepdims=True) @ v.astype(np.float64)


def _swapped(v: Any) -> Any:
    """With the last two axes exchanged."""
    return v.swapaxes(1, 2) if hasattr(v, "swapaxes") else tile.transpose(v)


CASES: Mapping[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "elementwise": (lambda v: tile.where(v > 0, v * 2, v - 1), lambda x: np.where(x > 0, x * 2, x - 1)),
    "sum 0": (lambda v: tile.sum(v, 0), lambda x: x.sum(0)),
    "sum 1": (lambda v: tile.sum(v, 1), lambda x: x.sum(1)),
    "sum 2": (lambda v: tile.sum(v, 2), lambda x: x.sum(2)),
    "all sums": (lambda v: tile.sum(tile.sum(tile.sum(v, 1), 1), 0)[None], lambda x: x.sum()[None]),
    "max beside": (lambda v: v - tile.max(v, 0, keepdims=True), lambda x: x - x.max(0, keepdims=True)),
    "min beside": (lambda v: v - tile.min(v, 1, keepdims=True), lambda x: x - x.min(1, keepdims=True)),
    "argmax": (lambda v: tile.argmax(v, 1), lambda x: x.argmax(1)),
    "two sums": (
        lambda v: v * tile.sum(v, 0)[None] + tile.sum(v, 1)[:, None],
        lambda x: x * x.sum(0)[None] + x.sum(1)[:, None],
    ),
    "rows": (lambda v: tile.reshape(v, (8, -1)), lambda x: x.reshape(8, -1)),
    "other axes": (lambda v: tile.reshape(v, (2, 8, 32)), lambda x: x.reshape(2, 8, 32)),
    "flat": (lambda v: tile.reshape(v, -1), lambda x: x.reshape(-1)),
    "out of rows": (lambda v: tile.reshape(tile.sum(v, 0), (2, 4, 16)), lambda x: x.sum(0).reshape(2, 4, 16)),
    "part": (lambda v: v[1:3, ::2, 3:], lambda x: x[1:3, ::2, 3:]),
    "back": (lambda v: tile.flip(v, 0), lambda x: x[::-1]),
    "joined 0": (lambda v: tile.concat((v, v * 2), 0), lambda x: np.concatenate((x, x * 2), 0)),
    "joined 1": (lambda v: tile.concat((v, v[:, :3]), 1), lambda x: np.concatenate((x, x[:, :3]), 1)),
    "joined 2": (lambda v: tile.concat((v, v), 2), lambda x: np.concatenate((x, x), 2)),
    "turned 102": (lambda v: tile.transpose(v, 1, 0, 2), lambda x: x.transpose(1, 0, 2)),
    "turned 021": (_swapped, _swapped),
    "turned 120": (lambda v: tile.transpose(v, 1, 2, 0), lambda x: x.transpose(1, 2, 0)),
    "turned 210": (lambda v: tile.transpose(v, 2, 1, 0), lambda x: x.transpose(2, 1, 0)),
    "running 0": (lambda v: tile.cumsum(v, 0), lambda x: x.cumsum(0, dtype=x.dtype)),
    "running 1": (lambda v: tile.cumsum(v, 1), lambda x: x.cumsum(1, dtype=x.dtype)),
    "running 2": (lambda v: tile.cumsum(v, 2), lambda x: x.cumsum(2, dtype=x.dtype)),
    "sorted": (lambda v: tile.sort(v, 2), lambda x: np.sort(x, 2)),
    "taken": (
        lambda v: tile.take(v, tile.iota((4, 8, 5), 2) * 4 - 1 + tile.iota((4, 8, 5), 0), 2),
        lambda x: np.pad(x, ((0, 0), (0, 0), (1, 9)))[
            np.arange(4)[:, None, None], np.arange(8)[None, :, None], np.arange(5) * 4 + np.arange(4)[:, None, None]
        ],
    ),
    "positions": (
        lambda v: v + tile.cast(tile.iota(v.shape, 0) * 50 + tile.iota(v.shape, 1) * 7, v.dtype),
        lambda x: x + (np.arange(4)[:, None, None] * 50 + np.arange(8)[:, None] * 7).astype(x.dtype),
    ),
    "products": (lambda v: tile.dot(v, _swapped(v), out=v.dtype), lambda x: x @ _swapped(x)),
    "one right operand": (
        lambda v: tile.dot(v, tile.transpose(tile.sum(v, 0)), out=v.dtype),
        lambda x: x @ x.sum(0).swapaxes(0, 1),
    ),
    "one left operand": (
        lambda v: tile.dot(tile.max(v, 0), _swapped(v), out=v.dtype),
        lambda x: x.max(0) @ _swapped(x),
    ),
    "product of products": (
        lambda v: tile.dot(tile.dot(v, _swapped(v), out=v.dtype), v, out=v.dtype),
        lambda x: x @ _swapped(x) @ x,
    ),
    "sum of products": (
        lambda v: tile.sum(tile.dot(v, _swapped(v), out=v.dtype), 0),
        lambda x: (x @ _swapped(x)).sum(0),
    ),
    "rows of products": (
        lambda v: tile.max(tile.dot(v, _swapped(v), out=v.dtype), 2),
        lambda x: (x @ _swapped(x)).max(2),
    ),
    "one row": (lambda v: tile.dot(v[:, :1], _swapped(v), out=v.dtype), lambda x: x[:, :1] @ _swapped(x)),
    "one column": (lambda v: tile.dot(v, tile.sum(v, 1)[:, :, None], out=v.dtype), lambda x: x @ x.sum(1)[:, :, None]),
    "one step": (
        lambda v: tile.dot(tile.sum(v, 2, keepdims=True), tile.sum(v, 1, keepdims=True), out=v.dtype),
        lambda x: x.sum(2, keepdims=True) @ x.sum(1, keepdims=True),
    ),
}
"""What a kernel does with a tile [4, 8, 16], and the same in NumPy. Small whole numbers stay exact."""
FOUR: Mapping[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "four axes": (lambda v: v[:, None] * v[:, :3][:, :, None], lambda x: x[:, None] * x[:, :3][:, :, None]),
    "sum of four": (
        lambda v: tile.sum(v[:, None] * v[:, :3][:, :, None], 1),
        lambda x: (x[:, None] * x[:, :3][:, :, None]).sum(1),
    ),
    "products of four": (
        lambda v: tile.dot(v[None], _swapped(v)[:, None], out=v.dtype),
        lambda x: x[None] @ _swapped(x)[:, None],
    ),
}
"""The same with tiles of four axes, which GPUs do not have."""
