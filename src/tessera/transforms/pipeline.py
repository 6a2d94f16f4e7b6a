"""The compile: an ordered mapping from stage name to pass, timed, checked, dumpable, overridable from files.

The module is verified at the end of each level, and after every pass when the knob `verify` is on, as in the tests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tessera import knobs
from tessera.errors import CompileError
from tessera.internal_errors import boundary, verified
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
from tessera.transforms.algebra.fast_math import FastMath
from tessera.transforms.algebra.lazy_rescale import LazyRescale
from tessera.transforms.algebra.merge_masks import MergeMasks
from tessera.transforms.algebra.sink_into_branches import SinkIntoBranches
from tessera.transforms.checks.check_indices import CheckIndices
from tessera.transforms.checks.instrument import Instrument
from tessera.transforms.core import legality
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.dead_code import DeadCode
from tessera.transforms.core.dumping import Shown
from tessera.transforms.core.facts import Facts
from tessera.transforms.facts.apply_facts import ApplyFacts
from tessera.transforms.facts.mark_readonly import MarkReadonly
from tessera.transforms.facts.specialize_kernels import SpecializeKernels
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.fusion.schedule_to_tile import ScheduleToTile
from tessera.transforms.loops.live_iterations import ClipRanges, SplitRanges
from tessera.transforms.pipelining.defer_epilogue_store import DeferEpilogueStore
from tessera.transforms.pipelining.early_exit_consumers import EarlyExitConsumers
from tessera.transforms.pipelining.insert_wgmma_waits import InsertWgmmaWaits
from tessera.transforms.pipelining.late_start_consumers import LateStartConsumers
from tessera.transforms.pipelining.make_async import MakeAsync
from tessera.transforms.pipelining.multicast_loads import MulticastLoads
from tessera.transforms.pipelining.partition_rows import PartitionRows
from tessera.transforms.pipelining.pingpong_consumers import PingpongConsumers
from tessera.transforms.pipelining.prefetch_epilogue import PrefetchEpilogue
from tessera.transforms.pipelining.promote_accumulators import PromoteAccumulators
from tessera.transforms.pipelining.release_early import ReleaseEarly
from tessera.transforms.pipelining.software_pipeline_dots import SoftwarePipelineDots
from tessera.transforms.pipelining.transpose_operands import TransposeOperands
from tessera.transforms.pipelining.warp_specialize import WarpSpecialize

TARGET_INDEPENDENT_PASSES: Mapping[str, type[ModulePass]] = {
    kind.name: kind
    for kind in (
        ApplyFacts,
        Canonicalize,
        CheckIndices,
        ClipRanges,
        CommonSubexpressions,
        DeadCode,
        PrefetchEpilogue,
        FastMath,
        SinkIntoBranches,
        GraphToSchedule,
        Instrument,
        DeferEpilogueStore,
        LazyRescale,
        MakeAsync,
        MarkReadonly,
        MergeMasks,
        PingpongConsumers,
        PartitionRows,
        InsertWgmmaWaits,
        PromoteAccumulators,
        ReleaseEarly,
        ScheduleToTile,
        MulticastLoads,
        SoftwarePipelineDots,
        LateStartConsumers,
        EarlyExitConsumers,
        SpecializeKernels,
        WarpSpecialize,
        SplitRanges,
        TransposeOperands,
    )
}
"""Passes by name. Their order here says nothing; `default_stages` has that of a compile."""


@dataclass(frozen=True)
class Stage:
    """One step of a compile, and the level the module is at afterwards."""

    run: ModulePass
    level: str


def default_stages() -> dict[str, Stage]:
    """From a graph to tile functions and launches. Reorder, drop or replace entries as you like."""
    return {
        "canonicalize": Stage(Canonicalize(), "graph"),
        "apply-facts": Stage(ApplyFacts(), "graph"),
        "specialize-kernels": Stage(SpecializeKernels(), "graph"),
        "cse": Stage(CommonSubexpressions(), "graph"),
        "dce": Stage(DeadCode(), "graph"),
        "graph-to-schedule": Stage(GraphToSchedule(), "schedule"),
        "schedule-to-tile": Stage(ScheduleToTile(), "tile"),
        "canonicalize-tile": Stage(Canonicalize(), "tile"),
        "cse-tile": Stage(CommonSubexpressions(), "tile"),
    }


@dataclass
class Compiled:
    """The module at the end, its text at the end of each level, and what every stage cost."""

    module: ModuleOp
    guards: Facts
    levels: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def hash(self) -> str:
        return structural_hash(self.module)


def compile_module(
    module: ModuleOp, *, stages: Mapping[str, Stage] | None = None, facts: Facts | None = None
) -> Compiled:
    """Runs the stages over a copy; the module given is not touched."""
    context = CompileContext.with_facts(facts)
    stages = default_stages() if stages is None else stages
    current = module.clone()
    result = Compiled(current, Facts())
    shown = Shown(module)
    steps = list(stages.items())
    for number, (name, stage) in enumerate(steps):
        start = time.perf_counter()
        replacement = _override(name)
        level_ends = number + 1 == len(steps) or steps[number + 1][1].level != stage.level
        with boundary("a module", f"the pass {name}", partial(text.write, module)):
            if replacement is not None:
                current = replacement
            else:
                stage.run.apply(context, current)
            if level_ends or knobs.verify.value:
                verify = partial(text.verify, current)
                if replacement is not None:
                    verify()  # an error here is the override's, not the pass's
                else:
                    verified(verify, "a module", f"the pass {name}", partial(text.write, module))
                legality.check(current, stage.level)
        result.seconds[name] = time.perf_counter() - start
        if level_ends:
            result.levels[stage.level] = text.write(current)
        shown.show(number, name, current)
    result.module = text.stamp(current)
    result.guards = context.recorder.guards
    return result


def _override(stage: str) -> ModuleOp | None:
    """A stage's output from a file, for experiments: override_dir/<stage>.mlir."""
    folder = knobs.override_dir.value
    if folder is None or not (path := Path(folder) / f"{stage}.mlir").is_file():
        return None
    try:
        return text.read(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"cannot read the override of stage {stage}: {error}", hint=f"check {path}") from error
