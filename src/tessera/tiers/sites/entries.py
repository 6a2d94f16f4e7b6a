"""Entries of sites: for calls with certain metas, a bound program and a countdown to the next recorded call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Protocol

from tessera.tiers.client import Call, Runner, RuntimeGuard
from tessera.tiers.records import Described, ExecutionTier, LaunchFacts
from tessera.tiers.sites.ab_test import ABTest, Contender
from tessera.tiers.sites.hotness import Hotness
from tessera.tiers.sites.programs import InstalledProgram, ProgramSite

_RECENT = 5
Values = tuple[Any, ...]
"""The arguments of a call, in the order of its client's paths."""
Outcome = tuple[Any, ExecutionTier]
"""The result of a call, and the tier that it ran at."""


class EntrySite(ProgramSite, Protocol):
    """A specialization site as calls see it that have found an entry."""

    unchanged: Callable[[], bool]

    def entry_for(self, call: Call, kept: Call | None = None) -> SiteEntry:
        """The entry for calls with such metas."""
        ...

    def sampled(self, entry: SiteEntry, values: Values, given: Values) -> Outcome:
        """Makes a call that is timed and recorded; returns its result and tier."""
        ...

    def given(self, values: Values) -> Values:
        """Arguments as compiled programs take them."""
        ...

    def recover(self, entry: SiteEntry, contender: Contender | None, error: Exception, values: Values) -> Outcome:
        """Serves a call whose program could not begin by the next tier down."""
        ...


class _EveryCall:
    """The attributes that every call reads, together in front: caches are full of arrays then."""

    __slots__ = ("holds", "left", "run", "tier", "unchanged")

    def __init__(self, program: InstalledProgram, run: Runner, unchanged: Callable[[], bool]) -> None:
        self.run = run
        self.holds = program.holds
        self.unchanged = unchanged
        self.tier: ExecutionTier = program.tier
        self.left = 0


class SiteEntry(_EveryCall):
    """The target of calls with certain metas: a program bound to them, its guard on numbers, and the entry behind it.

    `left` counts down the calls to the next recorded one, of `period` that are not; `pace` is the period for calls of
    such a duration. `failed` is the guard because of which this is not a program of the highest tier. `awaited`: new
    programs wait for calls of this entry to be tested on.
    """

    __slots__ = (
        "ab_test",
        "awaited",
        "call",
        "calls",
        "facts",
        "failed",
        "hotness",
        "is_native",
        "is_stale",
        "other",
        "pace",
        "period",
        "program",
        "recent",
        "rival",
        "seen",
        "site",
    )

    def __init__(self, site: EntrySite, program: InstalledProgram, run: Runner, call: Call, half_life: float) -> None:
        super().__init__(program, run, site.unchanged)
        self.site = site
        self.program = program
        self.is_native = program.compiled.is_native
        self.call = call
        self.other: SiteEntry | None = None
        self.failed: RuntimeGuard | None = None
        self.ab_test: ABTest | None = None
        self.rival: tuple[InstalledProgram, float] | None = None
        self.facts: LaunchFacts | None = None
        self.awaited = False
        self.is_stale = False  # it is not found any more; a call that has it may still run it
        self.hotness = Hotness(half_life)
        self.recent: deque[int] = deque(maxlen=_RECENT)
        self.period = 0
        self.pace = 0
        self.calls = 0
        self.seen = 0

    @property
    def described(self) -> Described:
        return self.call.described

    def follow(self, before: SiteEntry) -> None:
        """Takes over the counts of an entry for the same metas, and how often its calls are recorded."""
        self.hotness, self.calls, self.seen, self.pace = before.hotness, before.calls, before.seen, before.pace

    def for_numbers(self, numbers: Sequence[Any]) -> SiteEntry:
        """This entry, or the one behind it that serves these numbers; the last of them serves all."""
        entry = self
        while entry.holds is not None and entry.other is not None and not entry.holds(*numbers):
            entry = entry.other
        return entry

    def has(self, program: InstalledProgram) -> bool:
        """Whether calls by this entry may run a program."""
        entry: SiteEntry | None = self
        while entry is not None:
            if entry.program is program:
                return True
            entry = entry.other
        return False

    @property
    def unrecorded(self) -> int:
        """Calls since the last recorded one; some are missed where another thread counts down at the same moment."""
        return max(0, self.period - max(self.left, 0))

    @property
    def uncounted(self) -> float:
        """Nanoseconds of these, if they took as long as those that were recorded: not in the hotness yet."""
        return self.unrecorded * self.typical

    @property
    def typical(self) -> float:
        """Nanoseconds of a call, by the last recorded ones."""
        return median(self.recent) if self.recent else 0.0

    def hurry(self, calls: int = 0) -> None:
        """Lets no more than so many calls pass before the next recorded one."""
        if calls < self.left:
            self.period, self.left = self.unrecorded + calls, calls

    def skip(self) -> None:
        """This call is not recorded after all; the next one may be."""
        self.period, self.left = self.unrecorded + 1, 0

    def settle(self) -> int:
        """How many calls there were since the last recorded one; the caller counts them."""
        count = self.unrecorded
        self.period = self.left = 0
        self.calls += count
        return count

    def restart(self, period: int) -> int:
        """Begins to count down anew, behind a recorded call; how many there were since the last one."""
        count = self.unrecorded
        self.period = self.left = period
        self.calls += count + 1
        return count
