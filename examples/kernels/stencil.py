"""A step of diffusion in two dimensions: each point and its four neighbours; beyond the edge is 0."""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def stencil(x: Any, out: Any, rate: float, *, rows: int, columns: int):
    row, column = tile.program_id(0) * rows, tile.program_id(1) * columns
    here = tile.load(x, at=(row, column), shape=(rows, columns))
    down, right = tile.iota((rows, 1), 0, row), tile.iota((1, columns), 1, column)
    around = -4.0 * here
    for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        at, beside = tile.broadcast(down + i, (rows, columns)), tile.broadcast(right + j, (rows, columns))
        inside = (at >= 0) & (at < x.shape[0]) & (beside >= 0) & (beside < x.shape[1])
        around = around + tile.gather(x, (at, beside), mask=inside)
    tile.store(out, here + rate * around, at=(row, column))


def step(x: Any, out: Any, rate: float = 0.1, rows: int = 16, columns: int = 64) -> None:
    """Fills `out` with what `x` is a moment later."""
    stencil[-(-x.shape[0] // rows), -(-x.shape[1] // columns)](x, out, rate, rows=rows, columns=columns)
