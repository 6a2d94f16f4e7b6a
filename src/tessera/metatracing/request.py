"""Requests: what a region wants to be compiled, by whoever compiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING

from tessera.errors import TesseraError
from tessera.metatracing.client import Call, Compiled, Level
from tessera.metatracing.logs import log, told
from tessera.metatracing.records import ExecutionTier

if TYPE_CHECKING:
    from tessera.metatracing.region import Region


class Request:
    """Something to compile for a region: levels of a tier, for such a call; and why.

    Levels that take a while to be found are a function: whoever compiles has them found, and no call waits for it.
    """

    def __init__(
        self,
        region: Region,
        call: Call,
        tier: ExecutionTier,
        levels: Sequence[Level] | Callable[[], Sequence[Level]],
        *,
        is_bridge: bool,
    ) -> None:
        self.region = region
        self.call = call
        self.tier = tier
        self.levels: list[Level] = []
        self._later: Callable[[], Sequence[Level]] | None = None
        if callable(levels):
            self._later = levels
        else:
            self._set(levels)
        self.is_bridge = is_bridge
        self.taken: Compiled | None = None
        """The one that came first: it is in use, or competes, before the others have come."""
        self.done: Callable[[], object] = lambda: None
        # Settings that hold around the call, such as the folder of the cache, hold for what is done for it elsewhere.
        self.context = copy_context()

    def _set(self, levels: Sequence[Level]) -> None:
        self.levels = list(levels)
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

    def compiled(self) -> list[tuple[Level, Compiled]]:
        """Compiles here and now; what fails is left out, and said."""
        self.settle()
        found: list[tuple[Level, Compiled]] = []
        for level in self.levels:
            try:
                found.append((level, self.region.client.compile(self.call, level)))
            except Exception as error:
                self.region.aborted(level, told(error))
        return found

    def known(self, level: Level) -> Compiled | None:
        """What need not be compiled: Tier 1, where it was compiled fully, is the first program of Tier 2."""
        made = [one.level for one in self.region.programs if one.tier is ExecutionTier.TIER1_INTERPRETER]
        if level.assumed or not any(not one.quick and one.schedule == level.schedule for one in made):
            return None
        try:
            return self.region.client.find(self.call, level)
        except TesseraError:  # then it is compiled
            return None

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
