"""schedule-to-tile: converts regions to tile functions and launches, each by the writer of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.kernel_calls import match_symbols, substitute
from tessera.ir.graph.types import GraphTensorType, graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import give_hints
from tessera.ir.tile.hints import Hints
from tessera.transforms.core.context import report_of
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.symbol_names import fresh_name
from tessera.transforms.fusion.emit_tile_matmuls import emit_matmul
from tessera.transforms.fusion.emit_tile_online import emit_online
from tessera.transforms.fusion.emit_tile_parts import PartKernels, emit_online_parts
from tessera.transforms.fusion.emit_tile_rows import emit_rows

Writer = Callable[[str, schedule.RegionOp], tile.FuncOp]

WRITERS: Mapping[str, Writer] = MappingProxyType(
    {"pointwise": emit_rows, "rows": emit_rows, "matmul": emit_matmul, "online": emit_online}
)

SPLIT_WRITERS: Mapping[str, Callable[[str, schedule.RegionOp], PartKernels]] = MappingProxyType(
    {"online": emit_online_parts}
)
"""Writers of regions whose sums are split among program instances."""


@dataclass(frozen=True)
class ScheduleToTile(ModulePass):
    """Writes a tile function per region, two where it is split, and launches that replace the region."""

    name = "schedule-to-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.body.block.ops):
            if isinstance(function, graph.FuncOp):
                regions = [inner for inner in function.body.walk() if isinstance(inner, schedule.RegionOp)]
                for number, region in enumerate(regions):
                    name = fresh_name(op, f"{function.sym_name.data}_{number}")
                    if (split := _split(name, region)) is not None:
                        parts = _launch(function, split.parts, region.config.data, region.arguments, split.between)
                        given = [*parts.results, *(region.arguments[one] for one in split.takes)]
                        results = [graph_type(value) for value in region.results_]
                        replace(region, [parts, _launch(function, split.combine, Config(), given, results)])
                        said = f"the keys of @{name} are split in {parts.config.data.split} parts, combined behind"
                        report_of(ctx).choices.append(said)
                        continue
                    kernel, results = _written(name, region), [graph_type(value) for value in region.results_]
                    replace(region, [_launch(function, kernel, region.config.data, region.arguments, results)])


def _launch(
    function: graph.FuncOp,
    kernel: tile.FuncOp,
    config: Config,
    arguments: Sequence[SSAValue],
    results: Sequence[GraphTensorType],
) -> schedule.LaunchOp:
    """Puts a tile function of a region in front of the function that it is in, and gives a launch of it."""
    _give_hints(kernel, config)
    Rewriter.insert_op(kernel, InsertPoint.before(function))
    values = match_symbols(kernel, [*(value.type for value in arguments), *results])
    grid = substitute(kernel.grid.data, values)
    return schedule.LaunchOp(kernel.sym_name.data, grid, config, arguments, results)


def _split(name: str, region: schedule.RegionOp) -> PartKernels | None:
    """The two functions of a region whose config splits it; None of others."""
    split = region.config.data.split
    if split is None or split == 1:
        return None
    write = SPLIT_WRITERS.get(region.kind.data)
    if write is None:
        raise CompileError(
            f"a {region.kind.data} region is not split",
            span=span_of(region.location),
            hint=f"split regions of kind {', '.join(SPLIT_WRITERS)}",
        )
    return write(name, region)


def _give_hints(kernel: tile.FuncOp, config: Config) -> None:
    """Asks of a function what a config says of the way to memory, as a kernel's schedule does."""
    give_hints(kernel, Hints(swizzle=config.swizzle))
    for op in kernel.body.walk():
        if isinstance(op, tile.LoadOp | tile.StoreOp):
            give_hints(op, Hints(vector=config.vector))


def _written(name: str, region: schedule.RegionOp) -> tile.FuncOp:
    write = WRITERS.get(region.kind.data)
    if write is None:
        inner = region.body.block.first_op
        raise CompileError(
            f"{'a region' if inner is None else inner.name} of kind {region.kind.data} has no tile function yet",
            span=span_of(region.location if inner is None else inner.location),
            hint="write it as a tile kernel and call it with graph.call_kernel",
        )
    return write(name, region)
