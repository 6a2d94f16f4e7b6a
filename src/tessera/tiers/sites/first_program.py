"""The first program of a site: from the disk, or compiled fast."""

from __future__ import annotations

import sys

from tessera.errors import TesseraError
from tessera.tiers.client import Call, Compiled, TierLevel
from tessera.tiers.logs import warn
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.site import TieredSite

_FULL = TierLevel(ExecutionTier.TIER1_INTERPRETER)
_COMPILER = "xdsl.ir"
"""A module that a process has loaded if it has compiled before. Loading takes a second."""


def first_program(site: TieredSite, call: Call) -> tuple[Compiled, TierLevel]:
    """Tier 1 for a call. Without another process that makes it faster later, it is optimized at once."""
    client, config, compiling = site.client, site.config, site.runtime.compiling
    if (found := _found(site, call, _FULL)) is not None:
        return found, _FULL
    follows = site.can_tier_up and config.enable_tier2_compilation and site.runtime.can_compile(call, client)
    if follows:
        compiling.prepare()
    level = TierLevel(_FULL.tier, quick=follows and config.enable_tier1_fallback and client.starts_quickly(call))
    # A process that has loaded a compiler has a program sooner than this one, which would have to load it.
    if follows and _COMPILER not in sys.modules and compiling.compile_now(client.request(call, [level])):
        made = _found(site, call, level)
        if made is not None:
            return made, level
    try:
        return client.compile(call, level), level
    except TesseraError:
        if not level.quick:
            raise
        return client.compile(call, _FULL), _FULL


def _found(site: TieredSite, call: Call, level: TierLevel) -> Compiled | None:
    try:
        return site.client.find(call, level)
    except TesseraError as error:
        warn(f"{site.name}: looking for a compiled program failed: {error.message}")
        return None
