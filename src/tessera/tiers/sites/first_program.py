"""The first program of a region: from the disk, or compiled so that there is a result soon."""

from __future__ import annotations

import sys

from tessera.errors import TesseraError
from tessera.tiers.client import Call, Compiled, Level
from tessera.tiers.logs import complain
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.site import TieredSite

_FULL = Level(ExecutionTier.TIER1_INTERPRETER)
_COMPILER = "xdsl.ir"
"""What a process has loaded that has compiled before. That takes a second."""


def first_program(region: TieredSite, call: Call) -> tuple[Compiled, Level]:
    """Tier 1 for a call. Without another process that makes it faster later, it is made fast at once."""
    client, config, compiling = region.client, region.config, region.runtime.compiling
    if (found := _found(region, call, _FULL)) is not None:
        return found, _FULL
    follows = region.climbs and config.enable_tier2_compilation and region.runtime.can_compile(call, client)
    if follows:
        compiling.prepare()
    level = Level(_FULL.tier, quick=follows and config.enable_tier1_fallback and client.starts_quickly(call))
    # Who has loaded a compiler has a program sooner than who has to load one first.
    if follows and _COMPILER not in sys.modules and compiling.made_at_once(client.request(call, [level])):
        made = _found(region, call, level)
        if made is not None:
            return made, level
    try:
        return client.compile(call, level), level
    except TesseraError:
        if not level.quick:
            raise
        return client.compile(call, _FULL), _FULL


def _found(region: TieredSite, call: Call, level: Level) -> Compiled | None:
    try:
        return region.client.find(call, level)
    except TesseraError as error:
        complain(f"{region.name}: looking for a compiled program failed: {error.message}")
        return None
