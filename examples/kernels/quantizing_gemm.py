"""A product whose result is stored in 8 bits: each row of a block has a scale, by which its largest number is 448.

a is [M, K], b [K, N], out [M, N] of f8e4m3, scales [M, N / 128] of f32.
"""

from __future__ import annotations

from typing import Any

from tessera import Schedule, kernel, tile

COLUMNS, LARGEST = 128, 448.0


@kernel(schedule=Schedule(block=(128, COLUMNS, 64)))
def quantizing_gemm(a: Any, b: Any, out: Any, scales: Any):
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, column), shape=(here.k, here.n)), acc)
    scale = tile.maximum(tile.max(tile.abs(acc), axis=1, keepdims=True), 1e-30) / LARGEST
    tile.store(out, tile.cast(acc / scale, out.dtype), at=(row, column))
    tile.store(scales, scale, at=(row, tile.program_id(1)))


def by_blocks(out: Any, block: Any) -> Any:
    return tile.cdiv(out.shape[0], block.m), tile.cdiv(out.shape[1], block.n)


def multiply(a: Any, b: Any, out: Any, scales: Any) -> None:
    """Fills `out` and `scales`."""
    quantizing_gemm.grid(by_blocks)(a, b, out, scales)
