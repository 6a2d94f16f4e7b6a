"""Programs on a GPU whose launches are replayed as graphs: one call of the driver for all that follow each other.

Nothing is captured: nodes are made of launch plans. A call takes a recording of its stream, with the arena in it, and
puts it back when all is in the queue of the stream, so threads that call at once have one each. Addresses that are not
as in the call before go to the driver node by node; see `runtime/cuda/recordings.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessera.compiler.launch_plan import WORD
from tessera.programs.call_codegen import Extra, Prepared, Source, Writer
from tessera.programs.device_site import DeviceSite
from tessera.runtime.cache.newest import shorten
from tessera.runtime.cuda.recordings import GRAPH_WORD, Recording, Score
from tessera.runtime.cuda.streams import Stream
from tessera.runtime.native import launch as host_launch

LEAST = 2
"""Launches that follow each other and are worth a graph."""
_MOST_STREAMS = 8
_STREAM = Extra("stream.handle", "i64")


def _follows(one: Prepared) -> bool:
    """Whether a launch waits by itself for those in front of it."""
    return one.plan.device is not None and one.plan.device.follows


class GraphSite(DeviceSite):
    """One GPU, for one bound program that is replayed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.score = Score(self.context)
        self.waiting: dict[Stream, list[Recording]] = {}

    @property
    def recorded(self) -> int:
        """How many launches are nodes of graphs."""
        return sum(map(len, self.score.graphs))

    def grouped(self, writer: Writer, prepared: Sequence[Prepared]) -> Sequence[Prepared]:
        super().grouped(writer, prepared)
        # In a loop addresses change with each iteration, and kernels that report are waited for one by one.
        if len(prepared) < LEAST or writer.looping or self._reports:
            return prepared
        blocks = [(one.template, one.params, _follows(one)) for one in prepared]
        steps, (entry, template, start) = self.score.graph(blocks)
        made: list[Prepared] = []
        for one, (step, words, at) in zip(prepared, steps, strict=True):
            fills: list[tuple[int, Source]] = [
                (offset, Extra("recording.state", "i64", at) if source == _STREAM else source)
                for offset, source in one.fills
            ]
            made.append(one._replace(entry=step, template=words, fills=tuple(fills)))
        last = prepared[-1]
        fills = [(WORD * GRAPH_WORD, Extra("recording.state", "i64", start))]
        fills.append((WORD * (host_launch.FIRST_SLOT + 2), _STREAM))
        made.append(Prepared(entry, template, tuple(fills), 0, 1, last.plan, None))
        return made

    def _counters(self, writer: Writer, nbytes: int) -> str:
        self.score.counters = max(self.score.counters, nbytes)
        return "recording.counters"

    def take_arena(self, writer: Writer) -> None:
        self.score.workspace = writer.memory.nbytes
        writer.line("try:")
        writer.line(f"    recording = {writer.helper('waiting', self.waiting)}[stream].pop()")
        writer.line("except (KeyError, IndexError):")
        writer.line(f"    recording = {writer.helper('record', self._record)}(stream)")
        writer.line("base = recording.base")

    def put_arena(self, writer: Writer) -> None:
        writer.line("waiting_here = waiting.get(stream)")
        writer.line("if waiting_here is not None:")  # else the stream had to make room for others meanwhile
        writer.line("    waiting_here.append(recording)")

    def _record(self, stream: Stream) -> Recording:
        self.waiting.setdefault(stream, [])
        shorten(self.waiting, _MOST_STREAMS)
        return self.score.recording(stream)

    def may_try_again(self, number: int) -> bool:
        """A graph that was refused has launched nothing, and telling the driver about its nodes again does no harm."""
        return True
