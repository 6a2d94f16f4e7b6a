"""CUDA devices: streams, events, graphs, memory, and what a GPU tells about itself."""

from tessera.runtime.cuda.graphs import Graph
from tessera.runtime.cuda.streams import Event, Stream, current_stream, default_stream, synchronize

__all__ = ["Event", "Graph", "Stream", "current_stream", "default_stream", "synchronize"]


def __dir__() -> list[str]:
    return sorted(__all__)
