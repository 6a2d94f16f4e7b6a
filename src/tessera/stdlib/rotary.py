"""Rotary position embeddings."""

from __future__ import annotations

from typing import Any

from tessera.dtypes.types import f32
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True  # errors and IR point at the lines of this file


@kernel
def rope(x: Any, cos: Any, sin: Any, y: Any, *, width: int):
    """Rotates the two halves of every head of `width` columns by the angles of `cos` and `sin`; grid axis 0: heads."""
    here = tile.context()
    half, row, head = width // 2, tile.program_id(1) * here.m, tile.program_id(0) * width
    cosines, sines = (tile.load(table, at=(row, 0), shape=(here.m, half)).to(f32) for table in (cos, sin))
    first, second = (tile.load(x, at=(row, head + part), shape=(here.m, half)).to(f32) for part in (0, half))
    tile.store(y, tile.cast(first * cosines - second * sines, y.dtype), at=(row, head))
    tile.store(y, tile.cast(second * cosines + first * sines, y.dtype), at=(row, head + half))
