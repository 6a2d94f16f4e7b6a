"""The pipe dialect as a whole: rings for one agent, and for many."""

from __future__ import annotations

from xdsl.ir import Dialect

from tessera.dialects import pipe, pipe_agents

VERSION = pipe.VERSION
Pipe = Dialect("pipe", [*pipe.OPS, *pipe_agents.OPS], [pipe.RingType, *pipe_agents.TYPES])
