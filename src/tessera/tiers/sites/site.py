"""Protocols of sites: a runtime as its sites see it, and a site as its parts see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tessera.tiers.client import Call, Client, Level, Runner
from tessera.tiers.config import RuntimeConfig
from tessera.tiers.records import ExecutionTier, RecentRecords
from tessera.tiers.sites.ab_test import Contender
from tessera.tiers.sites.candidates import Times
from tessera.tiers.sites.counts import Counts
from tessera.tiers.sites.entries import SiteEntry
from tessera.tiers.sites.hotness import Clock, Heat
from tessera.tiers.sites.programs import Installed
from tessera.tiers.sites.request import Compiling, Request, RequestSite
from tessera.tiers.sites.stats_recorder import Clerk
from tessera.tile.language.schedule import Schedule


class ProgramManager(Protocol):
    """Keeps the programs of all sites within bounds, and what the next process starts with."""

    def admit(self, program: Installed) -> None: ...

    def released(self, program: Installed) -> None: ...

    def sweep(self) -> None: ...

    def remember(self, identity: str, levels: Sequence[Level]) -> None: ...

    def remembered(self, identity: str) -> list[Level]: ...


class StandardLevels(Protocol):
    """Names the programs of Tier 2 that are worth compiling for a call."""

    def levels(self, client: Client, call: Call, most: int) -> list[Level]: ...


class SpecializedLevels(Protocol):
    """Names the programs of Tier 3 that are worth compiling for a call of which so much is assumed."""

    def levels(
        self, client: Client, call: Call, words: tuple[str, ...], current: Schedule | None, times: Times, most: int
    ) -> list[Level]: ...


class CallWatch(Protocol):
    """Is told of every recorded call."""

    def recorded(self) -> None: ...


class SiteRuntime(Protocol):
    """A runtime as its sites see it: settings, clocks and counts, and the parts that all sites share."""

    config: RuntimeConfig
    clock: Clock
    counts: Counts
    clerk: Clerk
    compiling: Compiling

    @property
    def manager(self) -> ProgramManager: ...

    @property
    def watch(self) -> CallWatch | None: ...

    @property
    def standard_compiler(self) -> StandardLevels: ...

    @property
    def specialized_compiler(self) -> SpecializedLevels: ...

    def can_compile(self, call: Call, client: Client) -> bool:
        """Whether a faster program for a call can follow: then the first one need not be fast."""
        ...

    def climb_pays(self, region: TieredSite, entry: SiteEntry, tier: ExecutionTier, levels: int) -> bool:
        """Whether programs of a tier are worth trying, by the gains of earlier ones."""
        ...

    def learn(
        self,
        region: TieredSite,
        entry: SiteEntry,
        tier: ExecutionTier,
        times: Mapping[Contender, float | None],
        before: float | None,
        won: float | None,
    ) -> None:
        """Takes in how a contest ended: the time of each schedule, and the gain."""
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
    heat: Heat
    device_kind: str

    def is_coming(self, entry: SiteEntry) -> bool:
        """Whether programs of Tier 3 are being compiled for such arguments."""
        ...

    def runner(self, program: Installed, call: Call) -> Runner | None:
        """A program bound to a call's metas; None for one that fails at that, which is not tried again."""
        ...

    def install(self, program: Installed) -> Installed:
        """Takes a program among those that new entries choose from."""
        ...

    def take(self, program: Installed, replaced: Sequence[Installed] = ()) -> None:
        """Puts a program to use, also where others were that have been removed."""
        ...

    def remove(self, program: Installed) -> None:
        """Takes a program from those that new entries choose from."""
        ...
