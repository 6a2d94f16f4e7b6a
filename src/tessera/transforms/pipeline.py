"""From a graph to tile functions: the stages, and what they make of a module.

The module is verified at the end of each level, and after every pass when the knob `verify` is on, as in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
from tessera.transforms.algebra.degenerate_matmuls import DegenerateMatmuls
from tessera.transforms.algebra.fast_math import FastMath
from tessera.transforms.algebra.implied_masks import DropImpliedMasks
from tessera.transforms.algebra.lazy_rescale import LazyRescale
from tessera.transforms.algebra.merge_masks import MergeMasks
from tessera.transforms.algebra.multiples import MarkMultiples
from tessera.transforms.algebra.scaled_differences import ScaledDifferences
from tessera.transforms.algebra.scaled_maxima import ScaleMaxima
from tessera.transforms.algebra.sink_into_branches import SinkIntoBranches
from tessera.transforms.algebra.wide_accumulation import WidenAccumulation
from tessera.transforms.axes.expand_scans import ExpandScans
from tessera.transforms.axes.expand_sorts import ExpandSorts
from tessera.transforms.axes.fold_leading_axes import FoldLeadingAxes
from tessera.transforms.axes.loop_leading_axes import LoopLeadingAxes
from tessera.transforms.axes.split_batched_dots import SplitBatchedDots, SplitCarriedDots
from tessera.transforms.checks.check_indices import CheckIndices
from tessera.transforms.checks.guard_parts import GuardParts
from tessera.transforms.checks.host_checks import TakeHostChecks
from tessera.transforms.checks.instrument import Instrument
from tessera.transforms.checks.record_prints import RecordPrints
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.common_subexpressions import CommonSubexpressions
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.dead_code import DeadCode
from tessera.transforms.core.facts import Facts
from tessera.transforms.core.stages import Files, Stage, StageRunner
from tessera.transforms.facts.apply_facts import ApplyFacts
from tessera.transforms.facts.fix_sizes import FixSizes
from tessera.transforms.facts.limit_sizes import LimitSizes
from tessera.transforms.facts.mark_readonly import MarkReadonly
from tessera.transforms.facts.specialize_kernels import SpecializeKernels
from tessera.transforms.fusion.fold_groups import FoldGroups
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.fusion.schedule_to_tile import ScheduleToTile
from tessera.transforms.fusion.split_depth import SplitDepth
from tessera.transforms.loops.live_iterations import ClipRanges, SplitRanges
from tessera.transforms.pipelining.defer_epilogue_store import DeferEpilogueStore
from tessera.transforms.pipelining.early_exit_consumers import EarlyExitConsumers
from tessera.transforms.pipelining.exchange_axes import ExchangeAxes
from tessera.transforms.pipelining.form_box_loads import FormBoxLoads
from tessera.transforms.pipelining.insert_wgmma_waits import InsertWgmmaWaits
from tessera.transforms.pipelining.late_start_consumers import LateStartConsumers
from tessera.transforms.pipelining.make_async import MakeAsync
from tessera.transforms.pipelining.multicast_loads import MulticastLoads
from tessera.transforms.pipelining.narrow_products import NarrowProducts
from tessera.transforms.pipelining.partition_rows import PartitionRows
from tessera.transforms.pipelining.pingpong_consumers import PingpongConsumers
from tessera.transforms.pipelining.prefetch_epilogue import PrefetchEpilogue
from tessera.transforms.pipelining.promote_accumulators import PromoteAccumulators
from tessera.transforms.pipelining.read_items_ahead import ReadItemsAhead
from tessera.transforms.pipelining.release_early import ReleaseEarly
from tessera.transforms.pipelining.software_pipeline_dots import SoftwarePipelineDots
from tessera.transforms.pipelining.transpose_operands import TransposeOperands
from tessera.transforms.pipelining.unroll_rings import UnrollRings
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
        ExpandScans,
        ExpandSorts,
        DegenerateMatmuls,
        MarkMultiples,
        ScaleMaxima,
        ScaledDifferences,
        WidenAccumulation,
        PrefetchEpilogue,
        FastMath,
        SinkIntoBranches,
        FoldGroups,
        GraphToSchedule,
        GuardParts,
        Instrument,
        DeferEpilogueStore,
        LazyRescale,
        FormBoxLoads,
        ReadItemsAhead,
        MakeAsync,
        MarkReadonly,
        MergeMasks,
        PingpongConsumers,
        PartitionRows,
        InsertWgmmaWaits,
        PromoteAccumulators,
        ReleaseEarly,
        RecordPrints,
        ScheduleToTile,
        MulticastLoads,
        NarrowProducts,
        SoftwarePipelineDots,
        LateStartConsumers,
        EarlyExitConsumers,
        ExchangeAxes,
        SpecializeKernels,
        SplitDepth,
        WarpSpecialize,
        SplitRanges,
        TransposeOperands,
        TakeHostChecks,
        FixSizes,
        LimitSizes,
        UnrollRings,
        FoldLeadingAxes,
        DropImpliedMasks,
        LoopLeadingAxes,
        SplitBatchedDots,
        SplitCarriedDots,
    )
}
"""Passes by name. Their order here says nothing; `default_stages` has that of a compile."""


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
    report: CompileReport = field(default_factory=CompileReport)
    """What was refused on the way."""

    @property
    def hash(self) -> str:
        return structural_hash(self.module)


def compile_module(
    module: ModuleOp, *, stages: Mapping[str, Stage] | None = None, facts: Facts | None = None
) -> Compiled:
    """Runs the stages over a copy; the module given is not touched."""
    context, result = CompileContext.with_facts(facts), Compiled(module.clone(), Facts())

    def note(level: str, reached: ModuleOp) -> None:
        result.levels[level] = text.write(reached)

    files, source = Files.of(module), partial(text.write, module)
    runner = StageRunner("a module", context, files, source, ends=note, seconds=result.seconds)
    result.module = text.stamp(runner.run(result.module, default_stages() if stages is None else stages))
    result.guards, result.report = context.recorder.guards, context.report
    return result
