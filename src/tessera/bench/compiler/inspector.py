"""Counts of kernels and jitted functions at each of the four levels: from the IR itself, and from their instructions.

Every level takes what `tessera.compile` makes, or a module, or its text. A figure that cannot be known is None, and
`unavailable` says why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.bench.compiler.summed import Figures, summed
from tessera.bench.results.definitions import BenchError
from tessera.compile import LevelIR, TargetIR, TileIR, to_graph_ir, to_schedule_ir, to_target_ir, to_tile_ir
from tessera.compile.sources import Compilable
from tessera.compiler.code_counts import FIGURES, CodeCounts
from tessera.compiler.target import target_named, target_names
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.values import DotOp, TransOp
from tessera.shapes.expr import Size, dim

_NO_SIZES = "the arrays' sizes are not in the IR: lower the kernel for arguments"
_NO_GRID = "regions get their grids and loops at the tile level"
_NO_TARGET = "it is known once there is code: give the target IR"
_NO_AUTODIFF = "there is no automatic differentiation: graphs have no ops of it"
_OF_TILES = (
    *("shared_memory_usage", "register_pressure", "tensor_core_utilization"),
    *("async_copy_patterns", "synchronization_overhead"),
)
"""The figures of code that stand at the tile level, for they say how tiles use the machine."""
_OF_CODE = tuple(name for name in FIGURES if name not in _OF_TILES)


class IRInspector:
    """Counts per level."""

    def inspect(
        self, source: Compilable, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """The four levels of a kernel or a jitted function, lowered for these arguments.

        `options` say what for, as those of `tessera.compile.to_graph_ir` do.
        """
        graph_ir = to_graph_ir(source, args, kwargs, options)
        schedule_ir = to_schedule_ir(graph_ir)
        tile_ir = to_tile_ir(schedule_ir)
        counts = _counts_of(to_target_ir(tile_ir))
        return {
            "graph_ir": self.inspect_graph_ir(graph_ir),
            "schedule_ir": self.inspect_schedule_ir(schedule_ir),
            "tile_ir": _of_tiles(tile_ir.module, counts.all),
            "target_ir": _of_code(counts),
        }

    def inspect_graph_ir(self, graph_ir: LevelIR | ModuleOp | str) -> dict[str, Any]:
        """Nodes are the ops of graph functions, without their ends."""
        module, sizes = _module_of(graph_ir), _sizes_of(graph_ir)
        functions = [op for op in module.walk() if isinstance(op, graph.FuncOp)]
        nodes = [op for function in functions for op in function.body.walk() if not isinstance(op, graph.ReturnOp)]
        tensors = [value for function in functions for value in _values_within(function)]
        footprint = _bytes_of(tensors, sizes)
        return {
            "node_count": len(nodes),
            "operation_types": _by_name(nodes),
            "kernel_operation_types": _by_name(_inside(module, tile.FuncOp)),
            "memory_footprint_estimate": footprint,
            "autodiff_complexity": None,
            "collective_operations": sum(isinstance(op, graph_effects.AllReduceOp) for op in module.walk()),
            "unavailable": {
                "autodiff_complexity": _NO_AUTODIFF,
                **({} if footprint is not None else {"memory_footprint_estimate": _NO_SIZES}),
            },
        }

    def inspect_schedule_ir(self, schedule_ir: LevelIR | ModuleOp | str) -> dict[str, Any]:
        """Launches, their grids and configurations, and the loops inside of what they launch."""
        module, sizes = _module_of(schedule_ir), _sizes_of(schedule_ir)
        launches = [op for op in module.walk() if isinstance(op, schedule.LaunchOp)]
        kernels = [op for op in module.walk() if isinstance(op, tile.FuncOp)]
        regions = {f"region {number}": op for number, op in enumerate(_regions(module))}
        strategy = [_parallel(launch, sizes) for launch in launches]
        unavailable = {"parallelization_strategy.programs": _NO_SIZES} if any(_is_open(one) for one in strategy) else {}
        if regions:
            unavailable |= dict.fromkeys(("parallelization_strategy.regions", "loop_structure.regions"), _NO_GRID)
        return {
            "loop_structure": {kernel.sym_name.data: _loops(kernel.body.block.ops) for kernel in kernels},
            "tiling_configuration": {
                **{launch.callee.string_value(): _configuration(launch) for launch in launches},
                **{name: {"kind": op.kind.data, **_configuration(op)} for name, op in regions.items()},
            },
            "fusion_opportunities": {
                "regions": len(regions),
                "launches": len(launches),
                "launches_that_feed_only_another": sum(map(_feeds_one_launch, launches)),
            },
            "memory_layout_optimizations": {
                "transposed_loads": sum(_is_transposed_load(op) for op in module.walk()),
                "swizzled": sum(launch.config.data.swizzle not in (None, "none") for launch in launches),
                "vectorised_by_schedule": sum(launch.config.data.vector is not None for launch in launches),
            },
            "parallelization_strategy": strategy,
            "unavailable": unavailable,
        }

    def inspect_tile_ir(self, tile_ir: LevelIR | ModuleOp | str, target_ir: TargetIR | None = None) -> dict[str, Any]:
        """How the Tile IR uses the machine. What only code shows is taken from the target IR, which is made where
        lowered tiles are given without one."""
        if target_ir is None and isinstance(tile_ir, TileIR):
            target_ir = to_target_ir(tile_ir)
        return _of_tiles(_module_of(tile_ir), None if target_ir is None else _counts_of(target_ir).all)

    def inspect_target_ir(self, target_ir: TargetIR | str) -> dict[str, Any]:
        """The instructions of all kernels, summed, and of each; a text is taken as assembly."""
        return _of_code(_counts_of_text(target_ir) if isinstance(target_ir, str) else _counts_of(target_ir))


class _Counted(NamedTuple):
    """The counts of each kernel, and of all together."""

    kernels: Mapping[str, CodeCounts]
    all: CodeCounts
    launches: Mapping[str, int]
    stages: Sequence[str]


def _counts_of(target_ir: TargetIR) -> _Counted:
    chosen = target_ir.chosen
    found: dict[str, CodeCounts] = {}
    launches: dict[str, int] = {}
    for one in target_ir.parts:
        options = chosen.options(warps=one.part.source.warps, stages=one.part.source.stages)
        name = one.name if one.name not in found else f"{one.name}, for rows that lie otherwise ({len(found)})"
        found[name] = chosen.compiler.counts(one.part.source, one.made, options)
        launches[name] = one.launches
    return _Counted(found, summed(found), launches, target_ir.applied_optimizations)


def _counts_of_text(assembly: str) -> _Counted:
    for name in target_names():
        found = target_named(name).counts_of_text(assembly)
        if found is not None:
            return _Counted(found, summed(found), {}, ())
    raise BenchError("expected assembly of one of the targets", hint=f"targets are {', '.join(target_names())}")


def _of_tiles(module: ModuleOp, counts: CodeCounts | None) -> dict[str, Any]:
    names = _by_name(_inside(module, tile.FuncOp))
    own: Mapping[str, Figures] = {
        "tensor_core_utilization": {"tile_dots": names.get(DotOp.name, 0)},
        "async_copy_patterns": {"loads": names.get(tile.LoadOp.name, 0)},
        "synchronization_overhead": {"atomics": names.get(tile.AtomicOp.name, 0)},
    }
    figures: dict[str, Any] = {name: getattr(counts, name, None) for name in _OF_TILES}
    reasons = dict.fromkeys(_OF_TILES, _NO_TARGET) if counts is None else _reasons(counts, _OF_TILES)
    for name, more in own.items():
        figures[name] = {**more, **(figures[name] or {})}
    return {"operation_types": names, **figures, "unavailable": reasons}


def _of_code(counts: _Counted) -> dict[str, Any]:
    kernels = {
        name: {
            **{figure: getattr(one, figure) for figure in FIGURES},
            "launches": counts.launches.get(name),
            "unavailable": dict(one.unavailable),
        }
        for name, one in counts.kernels.items()
    }
    return {
        **{name: getattr(counts.all, name) for name in _OF_CODE},
        "optimization_passes_applied": list(counts.stages),
        "kernels": kernels,
        "unavailable": _reasons(counts.all, _OF_CODE),
    }


def _reasons(counts: CodeCounts, names: Sequence[str]) -> dict[str, str]:
    return {name: why for name, why in counts.unavailable.items() if name.partition(".")[0] in names}


def _module_of(given: LevelIR | ModuleOp | str) -> ModuleOp:
    if isinstance(given, str):
        return text.read(given)
    return given.module if isinstance(given, LevelIR) else given


def _sizes_of(given: LevelIR | ModuleOp | str) -> Mapping[str, int]:
    """The values of symbols, where it was lowered for arguments."""
    return given.subject.sizes if isinstance(given, LevelIR) else {}


def _evaluated(sizes: Sequence[Size], values: Mapping[str, int]) -> list[int] | None:
    wanted = [dim(size) for size in sizes]
    known = all(one.symbols <= values.keys() for one in wanted)
    return [one.evaluate(values) for one in wanted] if known else None


def _by_name(ops: Sequence[Operation] | Iterator[Operation]) -> dict[str, int]:
    return dict(Counter(op.name for op in ops).most_common())


def _inside(module: ModuleOp, kind: type[tile.FuncOp]) -> Iterator[Operation]:
    """The ops in all functions of a kind."""
    for function in module.body.block.ops:
        if isinstance(function, kind):
            yield from function.body.walk()


def _values_within(function: graph.FuncOp) -> Iterator[SSAValue]:
    yield from function.arguments
    for op in function.body.walk():
        yield from op.results


def _bytes_of(values: Sequence[SSAValue], sizes: Mapping[str, int]) -> int | None:
    """Of all tensors together, as if none were freed; None where a size is not known."""
    total = 0
    for value in values:
        if isinstance(value.type, GraphTensorType):
            shape = _evaluated(value.type.shape, sizes)
            if shape is None:
                return None
            total += math.prod(shape) * value.type.dtype.storage.itemsize
    return total


def _loops(ops: Any) -> list[dict[str, Any]]:
    """The loops among these ops, each with those inside it. Bounds that are no constants are None."""
    found: list[dict[str, Any]] = []
    for op in ops:
        inner = [one for region in op.regions for block in region.blocks for one in _loops(block.ops)]
        if isinstance(op, scf.ForOp):
            bounds = {name: _constant(value) for name, value in (("from", op.lb), ("to", op.ub), ("step", op.step))}
            found.append({**bounds, "carried": len(op.iter_args), "loops": inner})
        else:
            found += inner
    return found


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _regions(module: ModuleOp) -> list[schedule.RegionOp]:
    return [op for op in module.walk() if isinstance(op, schedule.RegionOp)]


def _is_open(strategy: Mapping[str, Any]) -> bool:
    return strategy["programs"] is None


def _configuration(launch: schedule.LaunchOp | schedule.RegionOp) -> dict[str, Any]:
    """The fields of the schedule; those left to the compiler are left out."""
    return {name: value for name, value in asdict(launch.config.data).items() if value is not None}


def _parallel(launch: schedule.LaunchOp, sizes: Mapping[str, int]) -> dict[str, Any]:
    extents = _evaluated(launch.grid.data, sizes)
    return {
        "kernel": launch.callee.string_value(),
        "grid": [str(size) for size in launch.grid.data],
        "extents": extents,
        "programs": None if extents is None else math.prod(extents),
    }


def _feeds_one_launch(launch: schedule.LaunchOp) -> bool:
    """Whether all that it gives goes to one other launch: the two might be one."""
    users = {use.operation for result in launch.results for use in result.uses}
    return len(users) == 1 and isinstance(next(iter(users)), schedule.LaunchOp)


def _is_transposed_load(op: Operation) -> bool:
    return isinstance(op, TransOp) and isinstance(op.operands[0].owner, tile.LoadOp)
