"""From a tile function to machine code, by the target that settings name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from tessera import knobs
from tessera.compiler.artifact import Artifact, LoweredKernel, Source
from tessera.internal_errors import boundary
from tessera.ir import text
from tessera.tile.calls.guarded_kernel import GuardedKernel, loaded
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.facts import Facts

NO_LINES: Mapping[int, int] = MappingProxyType({})


def source_of(instance: Instance) -> Source:
    """The tile function of an instance."""
    schedule = instance.schedule
    count = len(instance.paths), len(instance.outputs)
    return Source(instance.module, instance.name, *count, schedule.warps, schedule.stages)


def compiled(
    instance: Instance, chosen: Settings, facts: Facts, lines: Mapping[int, int] = NO_LINES
) -> tuple[GuardedKernel, bytes]:
    """The program of an instance, for arguments with these facts, loaded; and its machine code, to be kept.

    `lines` says of each array along which axis its rows are aligned for a GPU, counted from the end.
    """
    made = machined(source_of(instance), chosen, facts, lines)
    asked = lines if chosen.compiler.keeps_row_alignment else None
    program = loaded(made.plan, made.code, chosen.target)
    found = GuardedKernel.of(instance, program, made.guards, asked)
    found = replace(found, report=made.report, target=chosen.target)
    log_compile(instance.name, ", ".join(map(str, found.guards)), made.seconds)
    return found, made.code


def log_compile(name: str, guards: str, seconds: Mapping[str, float]) -> None:
    """Says what was compiled, for which arguments, and what it cost, where recompiles are logged."""
    if "recompiles" in knobs.logs.value:
        import logging

        laps = ", ".join(f"{stage} {1000 * spent:.0f} ms" for stage, spent in seconds.items())
        logging.getLogger("tessera.recompiles").warning("compiled %s for %s: %s", name, guards or "no guards", laps)


def machined(source: Source, chosen: Settings, facts: Facts, lines: Mapping[int, int] = NO_LINES) -> Artifact:
    """Machine code of a tile function, for arguments with these facts."""
    made = finished(lowered(source, chosen, facts, lines), source, chosen)
    made.report.tell(source.name)
    return made


def lowered(
    source: Source, chosen: Settings, facts: Facts, lines: Mapping[int, int] = NO_LINES, *, checks_spills: bool = True
) -> LoweredKernel:
    """A tile function in its target's own words, before machine code.

    Unless told not to, the device's own assembler is asked for spills, where there is one: it keeps what it makes.
    """
    target = chosen.compiler
    local = target.local_memory() if checks_spills else None
    options = chosen.options(warps=source.warps, stages=source.stages, follows=source.follows)
    with _boundary(source, chosen):
        return target.lower(source, options, facts, lines, local)


def finished(made: LoweredKernel, source: Source, chosen: Settings) -> Artifact:
    """Machine code of a lowered tile function."""
    with _boundary(source, chosen):
        return made.finish()


def _boundary(source: Source, chosen: Settings) -> boundary:
    return boundary(f"@{source.name}", f"machine code for {chosen.level}", partial(text.write, source.module))
