"""A product whose result is stored in 8 bits: each row of a block has a scale, by which its largest number is 448.

a is [M, K], b [K, N], out [M, N] of f8e4m3, scales [M, N / n] of f32, n being the columns of a block.
"""

from __future__ import annotations

from typing import Any

from tessera import Out, kernel, tile

LARGEST = 448.0


@kernel
def quantizing_gemm(a: Any, b: Any, out: Out, scales: Any):
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, column), shape=(here.k, here.n)), acc)
    scale = tile.maximum(tile.max(tile.abs(acc), axis=1, keepdims=True), 1e-30) / LARGEST
    tile.store(out, tile.cast(acc / scale, out.dtype), at=(row, column))
    tile.store(scales, scale, at=(row, tile.program_id(1)))
