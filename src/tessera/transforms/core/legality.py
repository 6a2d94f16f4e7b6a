"""The ops that are legal at each level, checked after every lowering. docs/transforms.md explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, NoneAttr, TensorType
from xdsl.ir import Operation

from tessera.errors import CompileError
from tessera.interpreters.core.scalars import SCALAR_OPS
from tessera.ir.common.locations import span_of
from tessera.ir.graph import control as graph_control
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type

Kinds = frozenset[type[Operation]]

_TOP: Kinds = frozenset({graph.FuncOp, graph_effects.StateOp, tile.FuncOp})
# Done by the host between kernels, in program order: effects, calls, and data that is known already.
_HOST: Kinds = frozenset(
    {
        arith.ConstantOp,
        graph.CallOp,
        graph.ConstantOp,
        graph.ReturnOp,
        graph_effects.AllReduceOp,
        graph_effects.PrintOp,
        graph_effects.RandomOp,
        graph_effects.StateReadOp,
        graph_effects.StateWriteOp,
        graph_control.CondOp,
        graph_control.ScanOp,
        graph_control.WhileOp,
        graph_control.YieldOp,
    }
)
# Other arrangements of elements that exist: the host hands on the same memory with other sizes and strides.
VIEWS = (graph.BroadcastOp, graph.ReshapeOp, graph.SliceOp, graph.TransposeOp)
_ALGEBRA: Kinds = frozenset(graph.Graph.operations) - _TOP - _HOST - {graph.CallKernelOp}
TILE_OPS: Kinds = (frozenset(tile.Tile.operations) - _TOP) | SCALAR_OPS | {scf.WhileOp, scf.ConditionOp}


@dataclass(frozen=True)
class Level:
    """The ops that are legal at a level, by what they stand in: a function, a region or a kernel."""

    name: str
    meaning: str
    function: Kinds = frozenset()
    region: Kinds = frozenset()
    kernel: Kinds = TILE_OPS
    top: Kinds = _TOP
    has_layouts: bool = False
    """Whether tiles have layouts; above the level that assigns them no tile has one."""


LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        level.name: level
        for level in (
            Level(
                "graph",
                "algebra over tensors; tile functions only behind graph.call_kernel; nothing scheduled",
                function=_HOST | _ALGEBRA | {graph.CallKernelOp},
                region=frozenset(),
            ),
            Level(
                "schedule",
                "all algebra inside schedule.region, every tile function behind schedule.launch",
                function=_HOST | {*VIEWS, schedule.LaunchOp, schedule.RegionOp},
                region=_ALGEBRA | {graph.ConstantOp, schedule.YieldOp},
            ),
            Level(
                "tile",
                "all computation in tile functions; the host only launches them and orders effects",
                function=_HOST | {*VIEWS, schedule.LaunchOp},
                region=frozenset(),
            ),
        )
    }
)


def check(module: ModuleOp, level: Level | str) -> None:
    """Refuses a module that holds an op its level does not allow."""
    level = LEVELS[level] if isinstance(level, str) else level
    for op, parent, allowed in _ops_with_parents(module, level):
        if type(op) not in allowed:
            raise CompileError(
                f"{op.name} is not legal in a {parent} at the {level.name} level",
                span=span_of(op.location),
                story=[f"the {level.name} level: {level.meaning}"],
                hint="a lowering left it behind; see docs/transforms.md",
            )
        _check_layout(op, level)


def _check_layout(op: Operation, level: Level) -> None:
    """Layouts appear below the tile level, all at once; above it no tile has one."""
    for result in op.results:
        if not isinstance(result.type, TensorType):
            continue
        if (tile_type(result).encoding != NoneAttr()) is not level.has_layouts:
            has = "a layout" if not level.has_layouts else "no layout"
            raise CompileError(
                f"{op.name} gives a tile with {has} at the {level.name} level: {tile_type(result)}",
                span=span_of(op.location),
                hint="layouts are assigned below the tile level",
            )


def _ops_with_parents(module: ModuleOp, level: Level) -> Iterator[tuple[Operation, str, Kinds]]:
    for top in module.body.block.ops:
        yield top, "module", level.top
        if not isinstance(top, graph.FuncOp | graph_effects.StateOp):
            inside = "tile function" if isinstance(top, tile.FuncOp) else "kernel"
            for op in (inner for region in top.regions for inner in region.walk()):
                yield op, inside, level.kernel
        elif isinstance(top, graph.FuncOp):
            for op in top.body.walk():
                inside = isinstance(op.parent_op(), schedule.RegionOp)
                yield (op, "region", level.region) if inside else (op, "function", level.function)
