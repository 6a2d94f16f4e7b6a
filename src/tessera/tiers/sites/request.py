"""Requests: programs that a site wants to be compiled, and the protocol of their compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol

from tessera.errors import TesseraError
from tessera.tiers.client import Call, Compiled, Level
from tessera.tiers.logs import log, told
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.entries import EntrySite, SiteEntry
from tessera.tiers.sites.programs import Installed

_MOST_AHEAD = 4  # entries that a new program is bound to ahead


class RequestSite(EntrySite, Protocol):
    """A specialization site as its compiler sees it."""

    programs: list[Installed]
    entries: list[SiteEntry]
    climbs: bool

    def compiled(self, request: Request, found: Sequence[tuple[Level, Compiled]]) -> None:
        """All that comes of a request is there."""
        ...

    def arrived(self, request: Request, level: Level, compiled: Compiled) -> None:
        """One of the programs of a request is there."""
        ...

    def aborted(self, level: Level, why: str) -> None:
        """Something could not be compiled: calls go on as they are."""
        ...


class Request:
    """Something to compile for a region: levels of a tier, for such a call; and why.

    Levels that take a while to be found are a function: the compiler has them found, and no call waits for it. With
    `recalls` nothing is compiled: it asks for what was compiled for such a call before.
    """

    def __init__(
        self,
        region: RequestSite,
        call: Call,
        tier: ExecutionTier,
        levels: Sequence[Level] | Callable[[], Sequence[Level]],
        *,
        is_bridge: bool,
        recalls: bool = False,
    ) -> None:
        self.region = region
        self.call = call
        self.tier = tier
        self.recalls = recalls
        self.levels: list[Level] = []
        self._later: Callable[[], Sequence[Level]] | None = None
        if callable(levels):
            self._later = levels
        else:
            self._set(levels)
        self.is_bridge = is_bridge
        self.taken: Installed | None = None
        """The one that came first: it is in use, or competes, before the others have come."""
        self._installed: dict[int, Installed] = {}
        self._known: list[Compiled] = []
        self.done: Callable[[], object] = lambda: None
        # Settings that hold around the call, such as the folder of the cache, hold for what is done for it elsewhere.
        self.context = copy_context()

    def _set(self, levels: Sequence[Level]) -> None:
        self.levels = list(levels)
        if not self.recalls:
            for level in levels:
                log("tiers", f"{self.region.name}: hot, compiling {level}")

    @property
    def is_open(self) -> bool:
        """Whether its levels are yet to be found."""
        return self._later is not None

    def settle(self) -> None:
        """Finds the levels, where that was left for later."""
        if self._later is not None:
            later, self._later = self._later, None
            self._set(later())

    def installed(self, level: Level, compiled: Compiled) -> Installed:
        """A program that has come, bound to the arguments that it was asked for: so no call has to do that."""
        program = self._installed.get(id(compiled))
        if program is None:
            program = Installed(self.region, level, compiled, is_bridge=self.is_bridge)
            self._installed[id(compiled)] = program
            with suppress(TesseraError, MemoryError):  # then the call that wants to run it learns of it
                program.bind(self.call)
        return program

    def bound_ahead(self, program: Installed) -> Iterator[SiteEntry]:
        """Binds a program to what is called most, too, step by step: a call that tries it there need not do that."""
        entries = sorted(self.region.entries, key=lambda one: -one.heat.total)[:_MOST_AHEAD]
        for entry in entries:
            if not program.is_bound(entry.call) and program.broken_guard(entry.call.values) is None:
                with suppress(TesseraError, MemoryError):  # as above
                    program.bind(entry.call)
                yield entry

    def compiled(self) -> list[tuple[Level, Compiled]]:
        """Compiles here and now; what fails is left out, and said."""
        self.settle()
        found: list[tuple[Level, Compiled]] = []
        for level in self.levels:
            try:
                if self.recalls:
                    found += [(level, one) for one in [self.region.client.find(self.call, level)] if one is not None]
                else:
                    found.append((level, self.region.client.compile(self.call, level)))
            except Exception as error:
                self.region.aborted(level, told(error))
        return found

    def known(self, level: Level) -> Compiled | None:
        """What need not be compiled: Tier 1, where it was compiled fully, is the first program of Tier 2."""
        if self.recalls:
            return self.region.client.find(self.call, level)
        made = [one.level for one in self.region.programs if one.tier is ExecutionTier.TIER1_INTERPRETER]
        if level.assumed or not any(not one.quick and one.schedule == level.schedule for one in made):
            return None
        try:
            found = self.region.client.find(self.call, level)
        except TesseraError:  # then it is compiled
            return None
        if found is not None:
            self._known.append(found)
        return found

    def is_known(self, compiled: Compiled) -> bool:
        """Whether a program is the one of Tier 1 by another name: there is nothing to compare."""
        return any(one is compiled for one in self._known)

    def found(self, level: Level) -> Compiled | None:
        """What another process has compiled; None for what is not there after all, which is said."""
        try:
            program = self.region.client.find(self.call, level)
        except Exception as error:
            self.region.aborted(level, told(error))
            return None
        if program is None:
            self.region.aborted(level, "it was compiled, and is not in the compile cache")
        return program


class Compiling(Protocol):
    """A compiler of requests: in other processes, or while the caller waits."""

    def can_compile(self, packed: bytes | None) -> bool:
        """Whether a request of this form can be compiled; None for what cannot be sent."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether a process has loaded a compiler and would begin at once, or is at work."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether programs that are not wanted yet may be compiled, too: several are compiled beside each other."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether every request has been begun with."""
        ...

    def prepare(self) -> None:
        """Gets ready: a request is going to come soon."""
        ...

    def made_at_once(self, packed: bytes | None) -> bool:
        """Has a request compiled while the caller waits, by a process that has loaded a compiler; False without one."""
        ...

    def submit(self, *requests: Request) -> None:
        """Compiles requests, now or later, and tells their regions."""
        ...

    def wait(self, timeout: float) -> bool:
        """Waits until nothing is being compiled; False where that takes longer."""
        ...

    def close(self) -> None: ...
