"""The records of a site: times of calls in a ring, its hotness, how many calls there were, and how often to record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tessera.errors import TesseraError
from tessera.tiers.records import Described, ExecutionTier, LaunchFacts, RecentRecords, Record
from tessera.tiers.sites.ab_test import Round
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.hotness import Hotness
from tessera.tiers.sites.programs import InstalledProgram
from tessera.tiers.sites.site import TieredSite
from tessera.tiers.sites.timing import Reading

_PERIODS = ((20_000, 255), (100_000, 127), (1_000_000, 63), (10_000_000, 7))
"""Calls between two that are recorded, by the nanoseconds below which they take."""
_WARM = 8  # calls of an entry that are all recorded
_MOST_PENDING = 64


class SampledCall(NamedTuple):
    """A timed call that stands for `calls`, with the program that ran it and the round of an A/B test, if any."""

    entry: SiteEntry
    program: InstalledProgram
    test_round: Round | None
    calls: int
    described: Described


class Recording:
    """The records of a site. Changes need the site's lock."""

    def __init__(self, site: TieredSite, noted: Callable[[SiteEntry, Round | None, int], None]) -> None:
        """`noted` is called for each recorded call, with its round of an A/B test and its nanoseconds."""
        self.site = site
        self._noted = noted
        self.ring = RecentRecords(site.config.max_trace_history)
        self.hotness = Hotness(site.config.half_life)
        self.recorded = 0
        self.calls = 0
        self.overheads: tuple[int, int] = (0, 0)  # of the last recorded call: recording, and deciding what to do
        self.pending: deque[tuple[SampledCall, Reading]] = deque()

    def settle(self, entry: SiteEntry) -> None:
        """Counts the calls of an entry since its last recorded one."""
        self.count(entry.program, entry, entry.settle())

    def count(self, program: InstalledProgram, entry: SiteEntry, count: int) -> None:
        """Counts calls of an entry."""
        if count:
            self.calls += count
            self.site.counts.ran(program.tier, entry.failed, count)

    def ran(self, call: SampledCall, took: int | Reading) -> None:
        """Records a call that was made; its time may only be known later."""
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
        """Records the calls that a GPU has finished by now."""
        while self.pending:
            call, reading = self.pending[0]
            took = reading()
            if took is None:
                return
            self.pending.popleft()
            self._record(call, took)

    def _record(self, call: SampledCall, took: int) -> None:
        site, now = self.site, self.site.clock()
        entry, program, test_round, count, described = call
        program.note(now, took, count)
        site.counts.took(program.tier, took, count)
        self.hotness.add(now, took * count)
        entry.hotness.add(now, took * count)
        entry.recent.append(took)
        if site.config.enable_tracing:
            site.counts.add("traces")
            facts = self._facts(entry, program)
            self.ring.add(Record(now, program.tier, described, took, count, facts, *self.overheads))
        self.recorded += 1
        self._noted(entry, test_round, took)

    @staticmethod
    def _facts(entry: SiteEntry, program: InstalledProgram) -> LaunchFacts:
        """How a program is launched; kept for the entry's own program, not for contenders."""
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
        if entry.ab_test is not None or entry.awaited or not entry.is_native:
            return 0
        if self.site.config.sample_period is not None:
            return self.site.config.sample_period
        if entry.seen < _WARM:
            entry.seen += 1
            return 0
        return entry.pace

    @staticmethod
    def _pace(entry: SiteEntry) -> int:
        typical = entry.typical
        return next((period for below, period in _PERIODS if typical < below), 1)

    def hotness_now(self) -> float:
        """How hot the site is, calls that are not in its hotness yet among them."""
        return self.hotness.at(self.site.clock()) + self.uncounted

    @property
    def uncounted(self) -> float:
        """Nanoseconds of calls since the last recorded ones, if they took as long as those: not in the hotness yet.

        Nor are calls that a GPU has not finished.
        """
        pending = sum(call.calls * call.entry.typical for call, _ in self.pending)
        return pending + sum(entry.uncounted for entry in self.site.entries)

    def unrecorded(self, tier: ExecutionTier) -> int:
        """Calls at a tier since the last recorded ones: those that are not counted yet."""
        return sum(entry.unrecorded for entry in self.site.entries if entry.tier is tier)
