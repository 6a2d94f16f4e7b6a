"""The pipe dialect as a whole: rings of one CTA, warp specialization, ping-pong, tile scheduler, prepared operands."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import pingpong, prepare, tile_scheduler, transpose, warp_groups

VERSION = pipe.VERSION
Pipe = Dialect(
    "pipe",
    [*pipe.OPS, *warp_groups.OPS, *tile_scheduler.OPS, *pingpong.OPS, *transpose.OPS, *prepare.OPS],
    [pipe.RingType, *warp_groups.TYPES],
)
