"""Sums of segments that lie one behind the other: out[s] is the sum of x[starts[s]:starts[s + 1]]."""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def segmented_sum(x: Any, starts: Any, out: Any, *, block: int):
    segment = tile.program_id(0)
    end, total = tile.item(starts, segment + 1), tile.zeros((block,))
    for at in tile.range(tile.item(starts, segment), end, block):
        part = tile.load(x, at=(at,), shape=(block,)).to(f32)
        total = total + tile.where(tile.iota(block) + at < end, part, 0.0)
    tile.store(out, tile.cast(tile.sum(total)[None], out.dtype), at=(segment,))


def add_up(x: Any, starts: Any, out: Any, block: int = 256) -> None:
    """Fills `out`; empty segments are 0."""
    segmented_sum[out.shape[0]](x, starts, out, block=block)
