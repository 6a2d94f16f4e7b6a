"""The timeline of a runtime as plain figures: calls by site and shape, events and memory.

Pages and exported traces are drawn from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tessera.metatracing.live import Case, by_shape
from tessera.metatracing.ranks import CollectiveEvent, DistributedExecutionTracer
from tessera.tiers.records import Record
from tessera.tiers.reports import ReportingRuntime
from tessera.tiers.sites.counts import LoggedEvent

LINE = 160
"""Stretches of calls in the line of tiers of a case."""


@dataclass(frozen=True)
class TimelineSlice:
    """A recorded call: when it began and ended, at which tier, and how many calls it stands for."""

    began: int
    ended: int
    tier: int
    calls: int

    @property
    def nanoseconds(self) -> int:
        return self.ended - self.began


@dataclass(frozen=True)
class Lane(Case):
    """A site with certain arguments, and its recorded calls, oldest first."""

    slices: tuple[TimelineSlice, ...]


@dataclass(frozen=True)
class Timeline:
    """All that a runtime remembers. Times are nanoseconds by the runtime's clock."""

    lanes: tuple[Lane, ...]
    logged: tuple[LoggedEvent, ...]
    collectives: tuple[CollectiveEvent, ...]
    memory: tuple[tuple[int, int], ...]
    """When there were how many bytes of programs above Tier 1."""
    events: dict[str, int]
    refused: dict[str, int]
    calls: dict[int, int]
    programs: int
    nbytes: int
    compile_ms: float

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last moment of all."""
        begins = [one.slices[0].began for one in self.lanes]
        begins += [one.timestamp - one.duration for one in self.logged]
        begins += [one.timestamp - one.took for one in self.collectives]
        ends = [one.slices[-1].ended for one in self.lanes]
        ends += [one.timestamp for one in (*self.logged, *self.collectives)]
        return (min(begins), max(ends)) if begins else (0, 0)


class TimelineRuntime(ReportingRuntime, Protocol):
    """A runtime that may trace what its ranks exchange."""

    distributed: DistributedExecutionTracer | None


def timeline_of(runtime: TimelineRuntime) -> Timeline:
    """The timeline up to this moment."""
    lanes = [
        Lane.of(site.name, records, LINE, tuple(end_to_end(records)))
        for site in runtime.sites()
        for records in by_shape(site)
    ]
    stats = runtime.get_runtime_stats()
    happened = list(runtime.counts.event_log)
    return Timeline(
        tuple(sorted(lanes, key=lambda one: one.slices[0].began)),
        tuple(one for one in happened if one.kind != "memory"),
        () if runtime.distributed is None else tuple(runtime.distributed.events),
        tuple((one.timestamp, one.amount) for one in happened if one.kind == "memory"),
        stats.events,
        stats.guard_failures,
        {1: stats.tier1_executions, 2: stats.tier2_executions, 3: stats.tier3_executions},
        stats.active_specialized_kernels,
        stats.specialized_kernel_bytes,
        stats.total_compilation_time_ms + stats.total_specialization_time_ms,
    )


def end_to_end(records: Sequence[Record]) -> list[TimelineSlice]:
    """When recorded calls ran, as far as is known."""
    spans = end_to_end_spans([(one.timestamp, one.nanoseconds) for one in records])
    return [
        TimelineSlice(began, ended, int(record.tier), record.stands_for)
        for record, (began, ended) in zip(records, spans, strict=True)
    ]


def end_to_end_spans(known: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Begin and end of runs, from the time at which each duration was known and the duration; runs do not overlap.

    A GPU's durations may be known some calls later. So a run that would overlap the next is put before it.
    """
    found: list[tuple[int, int]] = []
    limit: int | None = None
    for timestamp, took in reversed(known):
        ended = timestamp if limit is None else min(timestamp, limit)
        limit = ended - max(0, took)
        found.append((limit, ended))
    return found[::-1]
