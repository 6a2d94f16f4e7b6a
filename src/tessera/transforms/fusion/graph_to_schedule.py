"""graph-to-schedule: decides which ops become one kernel, and how each kernel is cut up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import look_up
from tessera.ir.graph.kernel_calls import match_symbols, substitute
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.context import report_of
from tessera.transforms.core.rewriting import replace
from tessera.transforms.fusion.fuse_matmuls import fuse_matmuls
from tessera.transforms.fusion.fuse_online import fuse_online
from tessera.transforms.fusion.fuse_rows import fuse_rows
from tessera.transforms.fusion.fuse_siblings import fuse_siblings
from tessera.transforms.fusion.fusion_refusals import FusionRefusals
from tessera.transforms.fusion.regions import erase_unused

# Each takes what it knows how to make one kernel of; what it leaves is for those behind it. `fuse_rows` takes all.
FORMERS: tuple[Callable[[Block, GraphToSchedule, FusionRefusals], None], ...] = (
    lambda block, machine, refusals: fuse_online(block, machine.few, refusals),
    lambda block, machine, refusals: fuse_matmuls(block, machine.few, refusals),
    lambda block, machine, refusals: fuse_rows(block, refusals, machine.instances),
    lambda block, _, refusals: fuse_siblings(block, refusals),
)


@dataclass(frozen=True)
class GraphToSchedule(ModulePass):
    """Puts algebra into regions and schedules kernel calls, in every block of every graph function.

    Matmuls that are known to have at most `few` rows are made one kernel with what their operands are computed of. So
    many `instances` of a program keep the machine busy: long folds that would have fewer are divided. What is not made
    one kernel, though one reads what the other makes, goes into the report of the compile.
    """

    name = "graph-to-schedule"
    few: int = 0
    instances: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, graph.FuncOp):
                for block in list(function.walk_blocks()):
                    _lower(block, self, report_of(ctx))


def _lower(block: Block, machine: GraphToSchedule, report: CompileReport) -> None:
    refusals = FusionRefusals(report)
    for op in list(block.ops):
        if isinstance(op, graph.CallKernelOp):
            _launch(op)
    for form in FORMERS:
        form(block, machine, refusals)
    refusals.settle()
    for op in list(block.ops):
        if isinstance(op, graph.ConstantOp):
            erase_unused(op)


def _launch(op: graph.CallKernelOp) -> None:
    kernel = look_up(op, op.callee, tile.FuncOp)
    values = match_symbols(kernel, [value.type for value in (*op.arguments, *op.results_)])
    config = op.config.data if op.config is not None else Config()
    results = [graph_type(value) for value in op.results_]
    grid = substitute(kernel.grid.data, values)
    replace(op, [schedule.LaunchOp(op.callee.string_value(), grid, config, op.arguments, results)])
