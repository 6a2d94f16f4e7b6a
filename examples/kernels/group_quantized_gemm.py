"""Products with weights of 8 or 4 bits, which have a scale for each group of 128 along the depth.

x is [M, K], scales are [K / 128, N]. Weights of 8 bits are [K, N] of i8. Of 4 bits they are [K / 2, N] of u8: byte j of
a column holds elements 2j, in its low half, and 2j + 1, numbers from -8 to 7.
"""

from __future__ import annotations

from typing import Any

from tessera import Schedule, f32, i4, kernel, tile

GROUP = 128


@kernel
def int8_gemm(x: Any, weights: Any, scales: Any, out: Any):
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        held = tile.load(weights, at=(k, column), shape=(here.k, here.n)).to(f32)
        scale = tile.load(scales, at=(k // GROUP, column), shape=(1, here.n)).to(f32)
        left = tile.load(x, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.cast(held * scale, x.dtype), acc)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


@kernel
def int4_gemm(x: Any, packed: Any, scales: Any, out: Any):
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        halves = tile.load(packed, at=(k // 2, column), shape=(here.k // 2, here.n))
        scale = tile.load(scales, at=(k // GROUP, column), shape=(1, here.n)).to(f32)
        left = tile.load(x, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.cast(tile.unpack(halves, i4, axis=0).to(f32) * scale, x.dtype), acc)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


def by_blocks(out: Any, block: Any) -> Any:
    return tile.cdiv(out.shape[0], block.m), tile.cdiv(out.shape[1], block.n)


def multiply(x: Any, weights: Any, scales: Any, out: Any, block: tuple[int, int, int] = (64, 64, 128)) -> None:
    """Fills `out`; weights of half as many rows as x has columns are packed. The depth of a block is in one group."""
    kernel = int4_gemm if weights.shape[0] * 2 == x.shape[1] else int8_gemm
    kernel.with_schedule(Schedule(block=block)).grid(by_blocks)(x, weights, scales, out)
