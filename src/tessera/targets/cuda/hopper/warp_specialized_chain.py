"""The stages for sm_90a: a prepared tile function becomes one producer and some consumers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.hopper.choose_warp_groups import (
    WarpGroupPlan,
    is_row_aligned,
    spare_registers,
    thread_registers,
)
from tessera.targets.cuda.hopper.deferred_row_reduce import DeferRowReductions
from tessera.targets.cuda.hopper.epilogue_subtiling import SubtileEpilogues
from tessera.targets.cuda.hopper.modelled_work import issues_most
from tessera.targets.cuda.hopper.pipeline_state import SharePipelineStates
from tessera.targets.cuda.hopper.prefetch_small_loads import PrefetchSmallLoads
from tessera.targets.cuda.hopper.preparer_subtiling import SubtilePreparers
from tessera.targets.cuda.hopper.sink_wgmma_operands import SinkWgmmaOperands
from tessera.targets.cuda.hopper.tma_boxes import is_mapped
from tessera.targets.cuda.hopper.warp_groups_to_nv import WarpGroupsToNv
from tessera.targets.cuda.hopper.warp_vote_max import VoteBeforeMax
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper import ExtentOp
from tessera.targets.cuda.lower.multiprocessor_model import MANY
from tessera.transforms.algebra.lazy_rescale import LazyRescale
from tessera.transforms.algebra.merge_masks import MergeMasks
from tessera.transforms.algebra.sink_into_branches import SinkIntoBranches
from tessera.transforms.core.function_pass import FunctionPass, function_pass
from tessera.transforms.core.stages import Stage
from tessera.transforms.loops.live_iterations import ClipRanges, split_ranges
from tessera.transforms.pipelining.defer_epilogue_store import defer_epilogue_stores
from tessera.transforms.pipelining.early_exit_consumers import EarlyExitConsumers
from tessera.transforms.pipelining.insert_wgmma_waits import InsertWgmmaWaits
from tessera.transforms.pipelining.late_start_consumers import LateStartConsumers
from tessera.transforms.pipelining.multicast_loads import MulticastLoads
from tessera.transforms.pipelining.narrow_products import NarrowProducts
from tessera.transforms.pipelining.pingpong_consumers import pingpong
from tessera.transforms.pipelining.prefetch_epilogue import prefetch_epilogues
from tessera.transforms.pipelining.prepared_operands import prepared_loads
from tessera.transforms.pipelining.promote_accumulators import PromoteAccumulators
from tessera.transforms.pipelining.read_items_ahead import ReadItemsAhead
from tessera.transforms.pipelining.release_early import ReleaseEarly
from tessera.transforms.pipelining.software_pipeline_dots import SoftwarePipelineDots
from tessera.transforms.pipelining.tile_order import crosses
from tessera.transforms.pipelining.transpose_operands import TransposeOperands
from tessera.transforms.pipelining.warp_specialize import WarpSpecialize


def warp_specialized_stages(
    function: tile.FuncOp, plan: WarpGroupPlan, row_aligned: Collection[int], *, fixed: bool
) -> dict[str, Stage]:
    """The stages of a prepared function under a plan; `fixed` says whether facts may have fixed its grid."""
    bands, spare, several = crosses(function), spare_registers(function, plan.consumers), plan.consumers > 1
    aligned, prepares = tuple(sorted(row_aligned)), bool(prepared_loads(function))
    tiles: list[ModulePass] = [
        ClipRanges(),
        LazyRescale(),
        SoftwarePipelineDots(),
        *([NarrowProducts()] if prepares else []),
    ]
    partitions: list[ModulePass] = [
        WarpSpecialize(plan.consumers, plan.depth, plan.ahead, bands, plan.cluster, demanded=True),
        TransposeOperands(),
        # Only where boxes are copied is there more than one number to be read before the first copy.
        *([ReadItemsAhead()] if any(isinstance(op, tile.LoadBoxesOp) for op in function.body.walk()) else []),
        MulticastLoads(),
        LateStartConsumers(),
        SplitBusyRanges(plan.consumers),
        MergeMasks(),
        PromoteAccumulators(),
        InsertWgmmaWaits(),
        SinkIntoBranches(),
        ReleaseEarly(),
        PrefetchIntoRegisters(spare),
        # Deferred stores are asynchronous copies, out of registers that are not needed otherwise.
        *([DeferMappedStores(spare, aligned)] if plan.walks else []),
        EarlyExitConsumers(),
        PingpongBusyConsumers(plan.consumers),
        SharePipelineStates(),
    ]
    machine: list[ModulePass] = [
        WarpGroupsToNv(aligned),
        *([SubtilePreparers(), PrefetchSmallLoads()] if prepares else []),
        VoteBeforeMax(),
        # A single consumer mostly waits for memory: measurements showed no gain for it.
        *([DeferRowReductions()] if several else []),
        SinkWgmmaOperands(),
        SubtileEpilogues(),
        *([FixExtents()] if fixed else []),
    ]
    levels = ("tile", tiles), ("pipe", partitions), ("nv", machine)
    return {one.name: Stage(one, level) for level, passes in levels for one in passes}


def _is_busy(loop: scf.ForOp, consumers: int) -> bool:
    """Whether consumers play ping-pong in a loop: while one multiplies, the other computes for one iteration.

    That pays if there is much of it.
    """
    return consumers > MANY or issues_most(loop)


@dataclass(frozen=True)
class SplitBusyRanges(FunctionPass):
    """Splits ranges; loops in which consumers play ping-pong have the iterations without masks of all of them."""

    name = "split-busy-ranges"
    consumers: int = 2

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        split_ranges(function, common=lambda loop: _is_busy(loop, self.consumers))


@dataclass(frozen=True)
class PingpongBusyConsumers(FunctionPass):
    """Puts ping-pong barriers into loops that compute much."""

    name = "pingpong-busy-consumers"
    consumers: int = 2

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        pingpong(function, lambda loop: _is_busy(loop, self.consumers))


@dataclass(frozen=True)
class PrefetchIntoRegisters(FunctionPass):
    """Prefetches rows of the epilogue that have room in a thread's registers beside accumulators."""

    name = "prefetch-into-registers"
    spare: int = 0

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        # Tiles of two axes are read in pieces, behind the wait.
        prefetch_epilogues(
            function, lambda load: len(load.offsets) == 1 and thread_registers(load.result) <= self.spare
        )


@dataclass(frozen=True)
class DeferMappedStores(FunctionPass):
    """Defers stores through tensor maps of tiles that have room in a thread's registers beside accumulators."""

    name = "defer-mapped-stores"
    spare: int = 0
    row_aligned: tuple[int, ...] = ()

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        def may_wait(store: tile.StoreOp) -> bool:
            return is_mapped(store) and is_row_aligned(store.view, self.row_aligned) and self._has_room(store.value)

        defer_epilogue_stores(function, may_wait)

    def _has_room(self, value: SSAValue) -> bool:
        return thread_registers(value) <= self.spare


def fix_extents(function: nv.FuncOp) -> None:
    """Replaces extents of the grid that facts have made constants."""
    for op in [op for op in function.walk() if isinstance(op, ExtentOp)]:
        extent = function.grid.data[op.axis.value.data]
        if isinstance(extent, int):
            Rewriter.replace_op(op, arith.ConstantOp(IntegerAttr(extent, i32)))


FixExtents = function_pass("fix-extents", fix_extents, nv.FuncOp)
