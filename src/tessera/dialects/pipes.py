"""The pipe dialect as a whole: rings for one agent, and for many, programs by the draw, agents one by one."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.dialects import pipe, pipe_agents, pipe_draws, pipe_order

VERSION = pipe.VERSION
Pipe = Dialect(
    "pipe", [*pipe.OPS, *pipe_agents.OPS, *pipe_draws.OPS, *pipe_order.OPS], [pipe.RingType, *pipe_agents.TYPES]
)
