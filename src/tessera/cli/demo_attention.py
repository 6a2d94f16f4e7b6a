"""The kernel of `tessera demo`: attention, written in tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.dtypes.types import bf16, f32
from tessera.shapes.annotations import KTile
from tessera.tile import Schedule, kernel
from tessera.tile.language import intrinsics as tile

__written_like_a_user__ = True  # errors and IR point at the lines of this file

if TYPE_CHECKING:
    Queries = Keys = Any
else:
    Queries, Keys = KTile["H", "S", "D", bf16], KTile["H", "T", "D", bf16]


@kernel.schedule(Schedule(block=(32, 48), warps=4, stages=2))
def attention(q: Queries, k: Keys, v: Keys, *, causal: bool) -> Any:
    """Softmax(q·kᵀ/√D)·v, one block of rows per program, one block of keys at a time."""
    here = tile.context()
    rows = tile.load(q, rows=here.m, cols=here.d)
    total, top, share = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        keys, values = tile.load(k, block), tile.load(v, block)
        scores = tile.dot(rows, tile.transpose(keys)) * tile.rsqrt(float(here.d))
        if causal:
            scores = tile.mask_causal(scores, tile.row_index(), tile.col_index(block))
        weights, high, part = tile.softmax_online(scores)
        total, top, share = tile.softmax_accumulate(total, top, share, weights, values, high, part)
    return tile.cast(total / share[:, None], bf16), top + tile.log(tile.cast(share, f32))
