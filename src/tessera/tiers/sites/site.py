"""Protocols of sites: a runtime as its sites see it, and a site as its parts see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tessera.tiers.client import Call, Client, Runner, TierLevel
from tessera.tiers.config import RuntimeConfig
from tessera.tiers.records import ExecutionTier, RecentRecords
from tessera.tiers.sites.ab_test import Contender
from tessera.tiers.sites.counts import Counts
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.hotness import Clock, Hotness
from tessera.tiers.sites.programs import InstalledProgram
from tessera.tiers.sites.request import Request, RequestCompiler, RequestSite
from tessera.tiers.sites.schedule_history import ScheduleHistory
from tessera.tiers.sites.stats_recorder import StatsRecorder


class ProgramManager(Protocol):
    """Keeps the programs of all sites within bounds, and the levels that the next process starts with."""

    def admit(self, program: InstalledProgram) -> None: ...

    def released(self, program: InstalledProgram) -> None: ...

    def sweep(self) -> None: ...

    def remember(self, identity: str, levels: Sequence[TierLevel]) -> None: ...

    def remembered(self, identity: str) -> list[TierLevel]: ...


class CallWatch(Protocol):
    """Is notified of every recorded call."""

    def recorded(self) -> None: ...


class SiteRuntime(Protocol):
    """A runtime as its sites see it: settings, clocks and counts, and the parts that all sites share."""

    config: RuntimeConfig
    clock: Clock
    counts: Counts
    stats_recorder: StatsRecorder
    compiling: RequestCompiler
    schedule_history: ScheduleHistory

    @property
    def manager(self) -> ProgramManager: ...

    @property
    def watch(self) -> CallWatch | None: ...

    def can_compile(self, call: Call, client: Client) -> bool:
        """Whether a faster program for a call can follow: then the first one need not be fast."""
        ...

    def tier_up_pays(self, site: TieredSite, entry: SiteEntry, tier: ExecutionTier, levels: int) -> bool:
        """Whether programs of a tier are worth trying, by the gains of earlier ones."""
        ...

    def learn(
        self,
        site: TieredSite,
        entry: SiteEntry,
        tier: ExecutionTier,
        times: Mapping[Contender, float | None],
        before: float | None,
        won: float | None,
    ) -> None:
        """Takes in the result of an A/B test: the time of each schedule, and the gain."""
        ...

    def compile(self, *requests: Request) -> None:
        """Has requests compiled."""
        ...


class TieredSite(RequestSite, Protocol):
    """A specialization site as its recording, its trials and its tier policy see it."""

    runtime: SiteRuntime
    config: RuntimeConfig
    counts: Counts
    clock: Clock
    ring: RecentRecords
    hotness: Hotness
    device_kind: str

    def is_coming(self, entry: SiteEntry) -> bool:
        """Whether programs of Tier 3 are being compiled for such arguments."""
        ...

    def runner(self, program: InstalledProgram, call: Call) -> Runner | None:
        """A program bound to a call's metas; None for one that fails to bind, which is not tried again."""
        ...

    def install(self, program: InstalledProgram) -> InstalledProgram:
        """Adds a program to those that new entries choose from."""
        ...

    def take(self, program: InstalledProgram, replaced: Sequence[InstalledProgram] = ()) -> None:
        """Puts a program to use, also for entries that had one of the replaced programs."""
        ...

    def remove(self, program: InstalledProgram) -> None:
        """Removes a program from those that new entries choose from."""
        ...
