"""The passes of GPUs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.passes import ModulePass

from tessera.targets.cuda.hopper.deferred_row_reduce import DeferRowReductions
from tessera.targets.cuda.hopper.epilogue_subtiling import SubtileEpilogues
from tessera.targets.cuda.hopper.pipeline_state import SharePipelineStates
from tessera.targets.cuda.hopper.prefetch_small_loads import PrefetchSmallLoads
from tessera.targets.cuda.hopper.preparer_subtiling import SubtilePreparers
from tessera.targets.cuda.hopper.sink_wgmma_operands import SinkWgmmaOperands
from tessera.targets.cuda.hopper.warp_groups_to_nv import WarpGroupsToNv
from tessera.targets.cuda.hopper.warp_specialized_chain import (
    DeferMappedStores,
    FixExtents,
    PingpongBusyConsumers,
    PrefetchIntoRegisters,
    SplitBusyRanges,
)
from tessera.targets.cuda.hopper.warp_vote_max import VoteBeforeMax
from tessera.targets.cuda.lower.hoist_loads import HoistLoads
from tessera.targets.cuda.lower.interleave_copies import InterleaveCopies
from tessera.targets.cuda.lower.legalize import (
    GatherFactors,
    PlainDots,
    ReduceEarly,
    ShareReciprocals,
    UsePowersOfTwo,
    UseShortForms,
)
from tessera.targets.cuda.lower.mark_row_aligned import MarkRowAligned
from tessera.targets.cuda.lower.merge_conversions import MergeConversions
from tessera.targets.cuda.lower.order_memory import OrderMemory
from tessera.targets.cuda.lower.ordered_atomics import OrderAtomics
from tessera.targets.cuda.lower.portable_stages import SpreadRows
from tessera.targets.cuda.lower.reduce_late import ReduceLate
from tessera.targets.cuda.lower.rotate_loops import RotateLoops
from tessera.targets.cuda.lower.tile_to_nv import TileToNv
from tessera.targets.llvm.round_multiples import RoundMultiples

PASSES: Mapping[str, type[ModulePass]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            PlainDots,
            UseShortForms,
            GatherFactors,
            RoundMultiples,
            ShareReciprocals,
            UsePowersOfTwo,
            ReduceEarly,
            ReduceLate,
            SplitBusyRanges,
            PrefetchIntoRegisters,
            DeferMappedStores,
            PingpongBusyConsumers,
            SharePipelineStates,
            WarpGroupsToNv,
            VoteBeforeMax,
            DeferRowReductions,
            SinkWgmmaOperands,
            SubtileEpilogues,
            SubtilePreparers,
            PrefetchSmallLoads,
            FixExtents,
            SpreadRows,
            TileToNv,
            MergeConversions,
            RotateLoops,
            InterleaveCopies,
            OrderMemory,
            OrderAtomics,
            MarkRowAligned,
            HoistLoads,
        )
    }
)
