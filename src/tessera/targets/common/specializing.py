"""What compiling begins with on every target: a copy of the module with facts applied and checks written in."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import ModuleOp

from tessera.targets.common.stage_times import StageTimes
from tessera.transforms.checks.instrument import Instrument
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Facts
from tessera.transforms.facts.apply_facts import specialize


def specialized(
    module: ModuleOp, name: str, facts: Facts | None, checks: Collection[str], seconds: StageTimes
) -> tuple[ModuleOp, CompileContext]:
    """The copy, in which one function knows these facts; and the context, which notes those that were asked."""
    made, context = module.clone(), CompileContext.with_facts(facts)
    if facts:
        specialize(made, context, name)
        seconds.lap("apply-facts")
    if checks:
        Instrument(bounds="bounds" in checks, nan="nan" in checks, everywhere=False).apply(context, made)
        seconds.lap("instrument-checks")
    return made, context
