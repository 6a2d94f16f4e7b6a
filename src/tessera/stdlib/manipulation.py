"""Kernels that move elements without computing."""

from __future__ import annotations

from typing import Any

from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True  # errors and IR point at the lines of this file


@kernel
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.load(x, at=(row, col), shape=(here.m, here.n)).T, at=(col, row))
