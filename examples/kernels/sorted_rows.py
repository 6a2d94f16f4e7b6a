"""Rows in order, and the k largest elements of each with their indices."""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def sort_rows(x: Any, out: Any, *, width: int):
    row = tile.program_id(0)
    tile.store(out, tile.sort(tile.load(x, at=(row, 0), shape=(1, width), pad=tile.INF)), at=(row, 0))


@kernel
def top_of_rows(x: Any, values: Any, indices: Any, *, k: int, width: int):
    row = tile.program_id(0)
    best, at = tile.topk(tile.load(x, at=(row, 0), shape=(1, width), pad=-tile.INF), k)
    tile.store(values, best, at=(row, 0))
    tile.store(indices, tile.cast(at, indices.dtype), at=(row, 0))


def sort(x: Any, out: Any) -> None:
    """Fills `out` with the rows of `x` in ascending order."""
    sort_rows[x.shape[0]](x, out, width=1 << (x.shape[1] - 1).bit_length())


def top(x: Any, values: Any, indices: Any) -> None:
    """Fills `values` and `indices`; of equal elements the first one comes first."""
    top_of_rows[x.shape[0]](x, values, indices, k=values.shape[1], width=1 << (x.shape[1] - 1).bit_length())
