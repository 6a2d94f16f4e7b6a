"""A product with weights of four bits, two to a byte, and a scale for each group of 32 along the depth.

Weights are numbers from -8 to 7; byte j of a column holds elements 2j, in its low half, and 2j + 1. packed is
[K / 2, N] of u8, scales [K / 32, N].
"""

from __future__ import annotations

from typing import Any

from tessera import f32, i4, kernel, tile


@kernel
def int4_gemm(x: Any, packed: Any, scales: Any, out: Any, *, m: int, n: int):
    row, column = tile.program_id(0) * m, tile.program_id(1) * n
    acc = tile.zeros((m, n))
    for group in tile.range(0, scales.shape[0]):
        weights = tile.unpack(tile.load(packed, at=(group * 16, column), shape=(16, n)), i4, axis=0)
        part = tile.dot(tile.load(x, at=(row, group * 32), shape=(m, 32)), tile.cast(weights, x.dtype))
        acc = acc + part * tile.load(scales, at=(group, column), shape=(1, n)).to(f32)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


def multiply(x: Any, packed: Any, scales: Any, out: Any, m: int = 32, n: int = 64) -> None:
    """Fills `out`."""
    int4_gemm[-(-x.shape[0] // m), -(-packed.shape[1] // n)](x, packed, scales, out, m=m, n=n)
