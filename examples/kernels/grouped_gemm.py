"""Products of experts: rows starts[e] to starts[e + 1] of x meet the weights of expert e, however many there are.

x is [T, K], weights [E, K, N].
"""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def grouped_gemm(x: Any, weights: Any, starts: Any, out: Any, *, m: int, n: int, k: int):
    expert, column = tile.program_id(0), tile.program_id(2) * n
    row, end = tile.item(starts, expert) + tile.program_id(1) * m, tile.item(starts, expert + 1)
    if row < end:
        acc = tile.zeros((m, n), f32)
        for at in tile.range(0, x.shape[1], k):
            left = tile.load(x, at=(row, at), shape=(m, k))
            acc = tile.dot(left, tile.load(weights[expert], at=(at, column), shape=(k, n)), acc)
        there = tile.iota((m, 1), 0, row) < end
        tile.store(out, tile.cast(acc, out.dtype), at=(row, column), mask=there)


def multiply(x: Any, weights: Any, starts: Any, out: Any, most: int, m: int = 64, n: int = 64, k: int = 32) -> None:
    """Fills `out`; `most` is at least the number of rows of any expert."""
    experts, _, width = weights.shape
    grouped_gemm[experts, -(-most // m), -(-width // n)](x, weights, starts, out, m=m, n=n, k=k)
