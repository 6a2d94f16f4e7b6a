"""The passes for sm_90a: a prepared tile function becomes one producer and some consumers."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.hopper.choose_warp_groups import (
    WarpGroupPlan,
    is_row_aligned,
    spare_registers,
    thread_registers,
)
from tessera.targets.cuda.hopper.modelled_work import issues_most
from tessera.targets.cuda.hopper.tma_boxes import is_mapped
from tessera.targets.cuda.hopper.warp_groups_to_nv import lower_warp_groups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.budget import shared_bytes
from tessera.targets.cuda.lower.choose_plan import SHARED
from tessera.targets.cuda.lower.multiprocessor_model import MANY
from tessera.targets.cuda.lower.tile_to_nv import crosses
from tessera.transforms.algebra.lazy_rescale import rescale_lazily
from tessera.transforms.algebra.merge_masks import merge_masks
from tessera.transforms.algebra.sink_into_branches import sink_into_branches
from tessera.transforms.loops.live_iterations import clip_ranges, split_ranges
from tessera.transforms.pipelining.defer_epilogue_store import defer_epilogue_stores
from tessera.transforms.pipelining.early_exit_consumers import exit_early
from tessera.transforms.pipelining.insert_wgmma_waits import insert_waits
from tessera.transforms.pipelining.late_start_consumers import start_late
from tessera.transforms.pipelining.multicast_loads import multicast_loads
from tessera.transforms.pipelining.pingpong_consumers import pingpong
from tessera.transforms.pipelining.prefetch_epilogue import prefetch_epilogues
from tessera.transforms.pipelining.promote_accumulators import promote_accumulators
from tessera.transforms.pipelining.release_early import release_early
from tessera.transforms.pipelining.software_pipeline_dots import pipeline_dots
from tessera.transforms.pipelining.transpose_operands import transpose_operands
from tessera.transforms.pipelining.warp_specialize import warp_specialize


def warp_specialized(
    module: ModuleOp, name: str, plans: Iterable[WarpGroupPlan], row_aligned: Collection[int]
) -> ModuleOp | None:
    """The module under the first plan that fits; None where there is none, and the portable path is taken."""
    for plan in plans:
        made = module.clone()
        try:
            if not _lower(made, name, plan, row_aligned):
                return None
        except CompileError:
            # Warps cannot be specialized; the portable path reports what it does not support either.
            return None
        if shared_bytes(symbol_in(made, name, nv.FuncOp)) <= SHARED["sm_90a"]:
            return made
    return None


def _lower(module: ModuleOp, name: str, plan: WarpGroupPlan, row_aligned: Collection[int]) -> bool:
    function = symbol_in(module, name, tile.FuncOp)
    bands, spare = crosses(function), spare_registers(function, plan.consumers)

    def ordered(loop: scf.ForOp) -> bool:
        # While one of two consumers multiplies, the other computes for one iteration: that pays if there is much of it.
        return plan.consumers > MANY or issues_most(loop)

    clip_ranges(function)
    rescale_lazily(function)
    pipeline_dots(function)
    if not warp_specialize(
        function, consumers=plan.consumers, depth=plan.depth, ahead=plan.ahead, bands=bands, cluster=plan.cluster
    ):
        return False
    transpose_operands(function)
    multicast_loads(function)
    start_late(function)
    split_ranges(function, common=ordered)
    merge_masks(function)
    promote_accumulators(function)
    insert_waits(function)
    sink_into_branches(function)
    release_early(function)
    # Tiles of two axes are read in pieces, behind the wait.
    prefetch_epilogues(function, lambda load: len(load.offsets) == 1 and thread_registers(load.result) <= spare)
    if plan.walks:
        # Deferred stores are asynchronous copies, out of registers that are not needed otherwise.
        defer_epilogue_stores(
            function,
            lambda store: (
                is_mapped(store) and is_row_aligned(store.view, row_aligned) and thread_registers(store.value) <= spare
            ),
        )
    exit_early(function)
    pingpong(function, ordered)
    lower_warp_groups(module, name, row_aligned=row_aligned)
    return True
