"""Products with weights of 8 or 4 bits, which have a scale for each group of 128 along the depth.

x is [M, K], scales are [K / 128, N]. Weights of 8 bits are [K, N] of i8. Of 4 bits they are [K / 2, N] of u8: byte j of
a column holds elements 2j, in its low half, and 2j + 1, numbers from -8 to 7.
"""

from __future__ import annotations

from typing import Any

from tessera import f32, i4, kernel, tile

GROUP = 128


@kernel
def int8_gemm(x: Any, weights: Any, scales: Any, out: Any):
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for group in tile.range(0, scales.shape[0]):
        held = tile.load(weights, at=(group * GROUP, column), shape=(GROUP, here.n)).to(f32)
        scale = tile.load(scales, at=(group, column), shape=(1, here.n)).to(f32)
        left = tile.load(x, at=(row, group * GROUP), shape=(here.m, GROUP))
        acc = tile.dot(left, tile.cast(held * scale, x.dtype), acc)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


@kernel
def int4_gemm(x: Any, packed: Any, scales: Any, out: Any):
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for group in tile.range(0, scales.shape[0]):
        halves = tile.load(packed, at=(group * (GROUP // 2), column), shape=(GROUP // 2, here.n))
        scale = tile.load(scales, at=(group, column), shape=(1, here.n)).to(f32)
        weights = tile.cast(tile.unpack(halves, i4, axis=0).to(f32) * scale, x.dtype)
        left = tile.load(x, at=(row, group * GROUP), shape=(here.m, GROUP))
        acc = tile.dot(left, weights, acc)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


def by_blocks(out: Any, block: Any) -> Any:
    return tile.cdiv(out.shape[0], block.m), tile.cdiv(out.shape[1], block.n)


def multiply(x: Any, weights: Any, scales: Any, out: Any) -> None:
    """Fills `out`; weights of half as many rows as x has columns are packed."""
    kernel = int4_gemm if weights.shape[0] * 2 == x.shape[1] else int8_gemm
    kernel.grid(by_blocks)(x, weights, scales, out)
