"""The pipe dialect as a whole: rings for one agent, and for many, and what these share."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import pingpong as pipe_places
from tessera.ir.pipe import tile_scheduler as pipe_draws
from tessera.ir.pipe import transpose as pipe_turns
from tessera.ir.pipe import warp_groups as pipe_agents

VERSION = pipe.VERSION
Pipe = Dialect(
    "pipe",
    [*pipe.OPS, *pipe_agents.OPS, *pipe_draws.OPS, *pipe_places.OPS, *pipe_turns.OPS],
    [pipe.RingType, *pipe_agents.TYPES],
)
