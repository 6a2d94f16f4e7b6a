"""What a region has seen: times of calls in a ring, how hot it is, how many calls there were, and how often to look."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tessera.errors import TesseraError
from tessera.tiers.records import Described, ExecutionTier, LaunchFacts, RecentRecords, Record
from tessera.tiers.sites.ab_test import Turn
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.hotness import Heat
from tessera.tiers.sites.programs import Installed
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.sites.timing import Reading

_PERIODS = ((20_000, 255), (100_000, 127), (1_000_000, 63), (10_000_000, 7))
"""Calls between two that are recorded, by the nanoseconds below which they take."""
_WARM = 8  # calls of an entry that are all recorded
_MOST_PENDING = 64


class Sampled(NamedTuple):
    """A call that is timed and stands for so many, with what ran it: whose turn it was where programs compete."""

    entry: SiteEntry
    program: Installed
    turn: Turn | None
    calls: int
    described: Described


class Recording:
    """The records of a region. Whoever changes them holds the region's lock."""

    def __init__(self, region: TieredSite, noted: Callable[[SiteEntry, Turn | None, int], None]) -> None:
        """`noted` is told of each recorded call: whose turn it was, and its nanoseconds."""
        self.region = region
        self._noted = noted
        self.ring = RecentRecords(region.config.max_trace_history)
        self.heat = Heat(region.config.half_life)
        self.recorded = 0
        self.calls = 0
        self.overheads: tuple[int, int] = (0, 0)  # of the last recorded call: recording, and deciding what to do
        self.pending: deque[tuple[Sampled, Reading]] = deque()

    def settle(self, entry: SiteEntry) -> None:
        """Counts the calls of an entry since its last recorded one."""
        self.count(entry.program, entry, entry.settle())

    def count(self, program: Installed, entry: SiteEntry, count: int) -> None:
        """Counts calls of an entry."""
        if count:
            self.calls += count
            self.region.counts.ran(program.tier, entry.failed, count)

    def ran(self, call: Sampled, took: int | Reading) -> None:
        """A call was made that is to be recorded; its time may only be known later."""
        entry = call.entry
        self.count(entry.program, entry, call.calls - 1)
        self.count(call.program, entry, 1)
        if isinstance(took, int):
            self._record(call, took)
        else:
            if len(self.pending) >= _MOST_PENDING:
                self.pending.popleft()
            self.pending.append((call, took))
            self.collect()
        entry.pace = self._pace(entry)

    def collect(self) -> None:
        """Takes in what a GPU has done by now."""
        while self.pending:
            call, reading = self.pending[0]
            took = reading()
            if took is None:
                return
            self.pending.popleft()
            self._record(call, took)

    def _record(self, call: Sampled, took: int) -> None:
        region, now = self.region, self.region.clock()
        entry, program, turn, count, described = call
        program.note(now, took, count)
        region.counts.took(program.tier, took, count)
        self.heat.add(now, took * count)
        entry.heat.add(now, took * count)
        entry.recent.append(took)
        if region.config.enable_tracing:
            region.counts.add("traces")
            facts = self._facts(entry, program)
            self.ring.add(Record(now, program.tier, described, took, count, facts, *self.overheads))
        self.recorded += 1
        self._noted(entry, turn, took)

    @staticmethod
    def _facts(entry: SiteEntry, program: Installed) -> LaunchFacts:
        """How a program is launched; of those that compete, nobody need remember that."""
        if program is entry.program and entry.facts is not None:
            return entry.facts
        try:
            facts = program.compiled.launch_facts(entry.call)
        except TesseraError:
            facts = LaunchFacts()
        if program is entry.program:
            entry.facts = facts
        return facts

    def period(self, entry: SiteEntry) -> int:
        """How many calls to let pass unrecorded: so many that recording takes a small part of the time."""
        if entry.contest is not None or entry.awaited or not entry.is_native:
            return 0
        if self.region.config.sample_period is not None:
            return self.region.config.sample_period
        if entry.seen < _WARM:
            entry.seen += 1
            return 0
        return entry.pace

    @staticmethod
    def _pace(entry: SiteEntry) -> int:
        typical = entry.typical
        return next((period for below, period in _PERIODS if typical < below), 1)

    def heat_now(self) -> float:
        """How hot the region is, calls that are not in its heat yet among them."""
        return self.heat.at(self.region.clock()) + self.uncounted

    @property
    def uncounted(self) -> float:
        """Nanoseconds of calls since the last recorded ones, if they took as long as those: not in the heat yet.

        Nor is what a GPU has not told of.
        """
        untold = sum(call.calls * call.entry.typical for call, _ in self.pending)
        return untold + sum(entry.uncounted for entry in self.region.entries)

    def unrecorded(self, tier: ExecutionTier) -> int:
        """Calls at a tier since the last recorded ones: those that nobody has counted yet."""
        return sum(entry.unrecorded for entry in self.region.entries if entry.tier is tier)
