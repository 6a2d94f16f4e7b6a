"""Kernels that are matmuls: GEMM, and an MLP of two."""

from __future__ import annotations

from typing import Any

from tessera.dtypes.types import f32
from tessera.stdlib.elementwise import gelu
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True  # errors and IR point at the lines of this file


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
def mlp(x: Any, up: Any, down: Any):
    """gelu(x·up)·down, a block of hidden units at a time."""
    here = tile.context()
    rows, acc = tile.load(x), tile.zeros((here.m, here.d))
    for h in tile.range(0, up.shape[1], here.n):
        hidden = gelu(tile.dot(rows, tile.load(up, at=(0, h), shape=(here.d, here.n))))
        acc = tile.dot(tile.cast(hidden, x.dtype), tile.load(down, at=(h, 0), shape=(here.n, here.d)), acc)
    return tile.cast(acc, x.dtype)
