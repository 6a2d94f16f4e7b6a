"""Requests: programs that a site wants to be compiled, and their compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol

from tessera.errors import TesseraError
from tessera.tiers.client import Call, Compiled, TierLevel
from tessera.tiers.logs import log, summary_of
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.entries import EntrySite, SiteEntry
from tessera.tiers.sites.programs import InstalledProgram

_MOST_AHEAD = 4  # entries that a new program is bound to ahead


class RequestSite(EntrySite, Protocol):
    """A specialization site as its compiler sees it."""

    programs: list[InstalledProgram]
    entries: list[SiteEntry]
    can_tier_up: bool

    def compiled(self, request: Request, found: Sequence[tuple[TierLevel, Compiled]]) -> None:
        """Takes in all programs of a request."""
        ...

    def arrived(self, request: Request, level: TierLevel, compiled: Compiled) -> None:
        """Takes in one program of a request as it comes."""
        ...

    def aborted(self, level: TierLevel, why: str) -> None:
        """Logs that a program could not be compiled: calls go on as they are."""
        ...


class Request:
    """Levels of a tier to compile for a site and a call.

    Levels that take a while to be found are a function, which the compiler calls, so that no call waits for it. With
    `recalls` nothing is compiled: it asks for programs that were compiled for such a call before.
    """

    def __init__(
        self,
        site: RequestSite,
        call: Call,
        tier: ExecutionTier,
        levels: Sequence[TierLevel] | Callable[[], Sequence[TierLevel]],
        *,
        is_bridge: bool,
        recalls: bool = False,
    ) -> None:
        self.site = site
        self.call = call
        self.tier = tier
        self.recalls = recalls
        self.levels: list[TierLevel] = []
        self._later: Callable[[], Sequence[TierLevel]] | None = None
        if callable(levels):
            self._later = levels
        else:
            self._set(levels)
        self.is_bridge = is_bridge
        self.taken: InstalledProgram | None = None
        """The program that was ready first: it is in use, or tested, before the others are ready."""
        self._installed: dict[int, InstalledProgram] = {}
        self._known: list[Compiled] = []
        self.done: Callable[[], object] = lambda: None
        # Settings that hold around the call, such as the folder of the cache, hold for its compilation, too.
        self.context = copy_context()

    def _set(self, levels: Sequence[TierLevel]) -> None:
        self.levels = list(levels)
        if not self.recalls:
            for level in levels:
                log("tiers", f"{self.site.name}: hot, compiling {level}")

    @property
    def is_open(self) -> bool:
        """Whether its levels are yet to be found."""
        return self._later is not None

    def settle(self) -> None:
        """Finds the levels, where that was left for later."""
        if self._later is not None:
            later, self._later = self._later, None
            self._set(later())

    def installed(self, level: TierLevel, compiled: Compiled) -> InstalledProgram:
        """A compiled program, bound to the arguments of its request: so no call has to do that."""
        program = self._installed.get(id(compiled))
        if program is None:
            program = InstalledProgram(self.site, level, compiled, is_bridge=self.is_bridge)
            self._installed[id(compiled)] = program
            with suppress(TesseraError, MemoryError):  # then the call that runs it fails in the same way, and recovers
                program.bind(self.call)
        return program

    def bound_ahead(self, program: InstalledProgram) -> Iterator[SiteEntry]:
        """Binds a program to the hottest entries, one by one: calls that test it there need not do that."""
        entries = sorted(self.site.entries, key=lambda one: -one.hotness.total)[:_MOST_AHEAD]
        for entry in entries:
            if not program.is_bound(entry.call) and program.broken_guard(entry.call.values) is None:
                with suppress(TesseraError, MemoryError):  # as above
                    program.bind(entry.call)
                yield entry

    def compiled(self) -> list[tuple[TierLevel, Compiled]]:
        """Compiles in this thread; levels that fail are left out, and logged."""
        self.settle()
        found: list[tuple[TierLevel, Compiled]] = []
        for level in self.levels:
            try:
                if self.recalls:
                    found += [(level, one) for one in [self.site.client.find(self.call, level)] if one is not None]
                else:
                    found.append((level, self.site.client.compile(self.call, level)))
            except Exception as error:
                self.site.aborted(level, summary_of(error))
        return found

    def known(self, level: TierLevel) -> Compiled | None:
        """A program that need not be compiled: Tier 1, where it was optimized, is the first program of Tier 2."""
        if self.recalls:
            return self.site.client.find(self.call, level)
        made = [one.level for one in self.site.programs if one.tier is ExecutionTier.TIER1_INTERPRETER]
        if level.assumed or not any(not one.quick and one.schedule == level.schedule for one in made):
            return None
        try:
            found = self.site.client.find(self.call, level)
        except TesseraError:  # then it is compiled
            return None
        if found is not None:
            self._known.append(found)
        return found

    def is_known(self, compiled: Compiled) -> bool:
        """Whether a program is that of Tier 1: there is nothing to compare."""
        return any(one is compiled for one in self._known)

    def found(self, level: TierLevel) -> Compiled | None:
        """The program that another process has compiled; None, and a log line, where it is not there."""
        try:
            program = self.site.client.find(self.call, level)
        except Exception as error:
            self.site.aborted(level, summary_of(error))
            return None
        if program is None:
            self.site.aborted(level, "it was compiled, and is not in the compile cache")
        return program


class RequestCompiler:
    """A compiler of requests: this one compiles while the caller waits, others do in other processes."""

    def can_compile(self, packed: bytes | None) -> bool:
        """Whether a packed request can be compiled; None stands for one that cannot be sent."""
        return True

    @property
    def is_ready(self) -> bool:
        """Whether a process has loaded a compiler and would begin at once, or is at work."""
        return True

    @property
    def has_room(self) -> bool:
        """Whether programs may be compiled before they are wanted: several are compiled in parallel."""
        return False

    @property
    def is_free(self) -> bool:
        """Whether every request has been started."""
        return True

    def prepare(self) -> None:
        """Gets ready for a request that will come soon."""

    def compile_now(self, packed: bytes | None) -> bool:
        """Has a request compiled while the caller waits, by a process that has loaded a compiler; False without one."""
        return False

    def submit(self, *requests: Request) -> None:
        """Compiles requests, now or later, and notifies their sites."""
        for request in requests:
            request.site.compiled(request, request.compiled())

    def wait(self, timeout: float) -> bool:
        """Waits until nothing is being compiled; False where that takes longer."""
        return True

    def close(self) -> None:
        """Ends what compiles; requests that wait are left."""
