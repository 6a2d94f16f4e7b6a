"""What compiling begins with on every target: a function by itself that has records of prints, facts and checks."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import ModuleOp

from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.transforms.algebra.implied_masks import DropImpliedMasks
from tessera.transforms.checks.guard_parts import GuardParts
from tessera.transforms.checks.instrument import Instrument
from tessera.transforms.checks.record_prints import RecordPrints
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.facts import Facts
from tessera.transforms.core.stages import Stage
from tessera.transforms.facts.apply_facts import ApplyFacts


def isolated(module: ModuleOp, name: str) -> ModuleOp:
    """A module that holds a copy of one tile function and nothing else."""
    return ModuleOp([symbol_in(module, name, tile.FuncOp).clone()])


def first_stages(function: tile.FuncOp, facts: Facts, checks: Collection[str]) -> dict[str, Stage]:
    """The stages by which a function records its prints, knows the facts of the compile and has its safety checks."""
    name, stages = function.sym_name.data, dict[str, Stage]()
    if tile.prints_of(function):
        # In front of all that drops or repeats ops: a record has the number of its print.
        stages[RecordPrints.name] = Stage(RecordPrints(), "tile")
    if "bounds" in checks:
        # While offsets are still indices times strides.
        stages[GuardParts.name] = Stage(GuardParts(), "tile")
    if not checks and any(isinstance(op, tile.AtPlaces) and op.mask is not None for op in function.body.walk()):
        # While sizes are not numbers yet. Checks ask what a mask leaves out.
        stages[DropImpliedMasks.name] = Stage(DropImpliedMasks(), "tile")
    if facts:
        stages[ApplyFacts.name] = Stage(ApplyFacts(name), "tile")
        stages["canonicalize-facts"] = Stage(Canonicalize(), "tile")
        stages["cse-facts"] = Stage(CommonSubexpressions(), "tile")
    if checks:
        instrument = Instrument(bounds="bounds" in checks, nan="nan" in checks, everywhere=False)
        stages["instrument-checks"] = Stage(instrument, "tile")
    return stages
