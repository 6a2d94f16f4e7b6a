"""The pipe dialect as a whole: rings for one agent, and for many, and what these share."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.dialects import pipe, pipe_agents, pipe_draws, pipe_places, pipe_turns

VERSION = pipe.VERSION
Pipe = Dialect(
    "pipe",
    [*pipe.OPS, *pipe_agents.OPS, *pipe_draws.OPS, *pipe_places.OPS, *pipe_turns.OPS],
    [pipe.RingType, *pipe_agents.TYPES],
)
