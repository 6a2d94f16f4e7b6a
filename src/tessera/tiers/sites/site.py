"""The runtime as specialization sites see it: what they ask of the runtime that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tessera.tiers.client import Call, Client, Level
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import Contender
from tessera.tiers.sites.candidates import Times
from tessera.tiers.sites.hotness import Clock
from tessera.tiers.sites.programs import Counts, Entry, Installed
from tessera.tiers.sites.request import Request
from tessera.tiers.sites.stats_recorder import Clerk
from tessera.tile.language.schedule import Schedule

if TYPE_CHECKING:
    from tessera.tiers.compiling.background import Compiling
    from tessera.tiers.config import RuntimeConfig
    from tessera.tiers.sites.specialization_site import Region


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

    def climb_pays(self, region: Region, entry: Entry, tier: ExecutionTier, levels: int) -> bool:
        """Whether programs of a tier are worth trying, by the gains of earlier ones."""
        ...

    def learn(
        self,
        region: Region,
        entry: Entry,
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
