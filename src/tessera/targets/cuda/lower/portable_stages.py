"""The stages for every GPU: a prepared tile function becomes a block of warps that all do the same."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.passes import ModulePass

from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.lower.choose_plan import BlockPlan
from tessera.targets.cuda.lower.interleave_copies import InterleaveCopies
from tessera.targets.cuda.lower.merge_conversions import MergeConversions
from tessera.targets.cuda.lower.order_memory import OrderMemory
from tessera.targets.cuda.lower.rotate_loops import RotateLoops
from tessera.targets.cuda.lower.tile_to_nv import TileToNv
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.stages import Stage
from tessera.transforms.loops.live_iterations import ClipRanges, SplitRanges
from tessera.transforms.pipelining.make_async import MakeAsync
from tessera.transforms.pipelining.partition_rows import spread_rows
from tessera.transforms.pipelining.unroll_rings import UnrollRings


@dataclass(frozen=True)
class SpreadRows(FunctionPass):
    """Gives rows of every tile function to more program instances, so many to each."""

    name = "spread-rows"
    rows: int = 1

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        spread_rows(function, self.rows)


def portable_stages(plan: BlockPlan, *, small: bool = False) -> dict[str, Stage]:
    """The stages under a plan; where code is to be small, no loop is written twice."""
    tiles: list[ModulePass] = [*([] if plan.rows is None else [SpreadRows(plan.rows)]), ClipRanges()]
    rings: list[ModulePass] = [MakeAsync(plan.depth), *([] if small else [SplitRanges()]), UnrollRings()]
    machine: list[ModulePass] = [TileToNv(plan.warps, small), MergeConversions()]
    machine += [] if small else [RotateLoops(), InterleaveCopies()]
    machine.append(OrderMemory())
    levels = ("tile", tiles), ("pipe", rings), ("nv", machine)
    return {one.name: Stage(one, level) for level, passes in levels for one in passes}
