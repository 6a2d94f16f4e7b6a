"""Running sums of a long array: each block by itself, then each block again with the sum of all before it."""

from __future__ import annotations

from typing import Any

import tessera as ts
from tessera import f32, kernel, tile


@kernel
def block_sums(x: Any, out: Any, totals: Any, *, block: int):
    i = tile.program_id(0)
    values = tile.load(x, at=(i * block,), shape=(block,)).to(f32)
    tile.store(out, tile.cumsum(values), at=(i * block,))
    tile.store(totals, tile.sum(values)[None], at=(i,))


@kernel
def add_sums_before(out: Any, totals: Any, *, block: int):
    i = tile.program_id(0)
    before = tile.zeros((block,))
    for at in tile.range(0, i, block):
        before = before + tile.where(tile.iota(block) + at < i, tile.load(totals, at=(at,), shape=(block,)), 0.0)
    values = tile.load(out, at=(i * block,), shape=(block,))
    tile.store(out, values + tile.sum(before), at=(i * block,))


def running_sums(x: Any, out: Any, block: int = 1024) -> None:
    """Fills `out`, of f32; the order of sums is always the same."""
    blocks = -(-x.shape[0] // block)
    totals = ts.zeros(blocks, f32, device=getattr(x, "device", "cpu"))
    block_sums[blocks](x, out, totals, block=block)
    add_sums_before[blocks](out, totals, block=block)
