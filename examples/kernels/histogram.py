"""How often each number occurs: every program instance adds its own counts."""

from __future__ import annotations

from typing import Any

from tessera import i32, kernel, tile


@kernel
def histogram(x: Any, counts: Any, *, block: int):
    at = tile.program_id(0) * block
    there = tile.iota(block) + at < x.shape[0]
    tile.scatter_add(counts, tile.load(x, at=(at,), shape=(block,)), tile.ones((block,), i32), mask=there)


def count(x: Any, counts: Any, block: int = 1024) -> None:
    """Adds to `counts`, of i32, how often each of its indices is in `x`."""
    histogram[-(-x.shape[0] // block)](x, counts, block=block)
