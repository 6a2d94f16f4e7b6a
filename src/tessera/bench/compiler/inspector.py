"""Counts of a kernel at each of the four levels: from the IR itself, and from the instructions it becomes.

Every level takes what `integration` makes, or a module, or its text. Where a count needs more than was given, it is
None, and `unavailable` says what is missing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.bench.compiler.levels import (
    IR,
    GraphIR,
    ScheduleIR,
    TargetIR,
    TileIR,
    to_graph_ir,
    to_schedule_ir,
    to_target_ir,
    to_tile_ir,
)
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.values import DotOp, TransOp
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import Size, dim
from tessera.targets.cpu import instructions
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, buffer_type, panels_type, rounded_up
from tessera.tile.calls.function import Kernel

_NO_SIZES = "the arrays' sizes are not in the IR: lower the kernel for arguments"
_NO_TARGET = "the registers are known once there is machine code: give the kernel's target IR"
_NO_OCCUPANCY = "occupancy is about warps that share a multiprocessor; a thread of a CPU has its registers to itself"
# Ops that other dialects would add, by the name of the dialect. None exists yet, so both counts are 0.
_AUTODIFF, _COLLECTIVE = "autodiff", "collective"
# Vector registers that a processor of x86-64 has, by the widest vectors of the code; those of AArch64 have 32.
_VECTOR_REGISTERS = {512: 32, 256: 16, 128: 16, 0: 0}
_ARM_VECTOR_REGISTERS = 32


class IRInspector:
    """Counts per level."""

    def inspect(self, kernel: Kernel, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The four levels of a kernel, lowered for these arguments."""
        graph_ir = to_graph_ir(kernel, args, kwargs)
        schedule_ir = to_schedule_ir(graph_ir)
        tile_ir = to_tile_ir(schedule_ir)
        target_ir = to_target_ir(tile_ir)
        return {
            "graph_ir": self.inspect_graph_ir(graph_ir),
            "schedule_ir": self.inspect_schedule_ir(schedule_ir),
            "tile_ir": self.inspect_tile_ir(tile_ir, target_ir),
            "target_ir": self.inspect_target_ir(target_ir),
        }

    def inspect_graph_ir(self, graph_ir: GraphIR | ModuleOp | str) -> dict[str, Any]:
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
            "autodiff_complexity": _of_dialect(module, _AUTODIFF),
            "collective_operations": _of_dialect(module, _COLLECTIVE),
            "unavailable": {} if footprint is not None else {"memory_footprint_estimate": _NO_SIZES},
        }

    def inspect_schedule_ir(self, schedule_ir: ScheduleIR | ModuleOp | str) -> dict[str, Any]:
        """Launches, their grids and configurations, and the loops inside of what they launch."""
        module, sizes = _module_of(schedule_ir), _sizes_of(schedule_ir)
        launches = [op for op in module.walk() if isinstance(op, schedule.LaunchOp)]
        kernels = [op for op in module.walk() if isinstance(op, tile.FuncOp)]
        strategy = [_parallel(launch, sizes) for launch in launches]
        unknown = any(one["programs"] is None for one in strategy)
        return {
            "loop_structure": {kernel.sym_name.data: _loops(kernel.body.block.ops) for kernel in kernels},
            "tiling_configuration": {launch.callee.string_value(): _configuration(launch) for launch in launches},
            "fusion_opportunities": {
                "regions": sum(isinstance(op, schedule.RegionOp) for op in module.walk()),
                "launches": len(launches),
                "launches_that_feed_only_another": sum(map(_feeds_one_launch, launches)),
            },
            "memory_layout_optimizations": {
                "transposed_loads": sum(_is_transposed_load(op) for op in module.walk()),
                "swizzled": sum(launch.config.data.swizzle not in (None, "none") for launch in launches),
                "vectorised_by_schedule": sum(launch.config.data.vector is not None for launch in launches),
            },
            "parallelization_strategy": strategy,
            "unavailable": {"parallelization_strategy.programs": _NO_SIZES} if unknown else {},
        }

    def inspect_tile_ir(self, tile_ir: TileIR | ModuleOp | str, target_ir: TargetIR | None = None) -> dict[str, Any]:
        """How the Tile IR uses the machine. What only the machine code shows is taken from the target IR, which is
        made where a lowered kernel is given without one."""
        module = _module_of(tile_ir)
        if target_ir is None and isinstance(tile_ir, TileIR):
            target_ir = to_target_ir(tile_ir)
        body = None if target_ir is None else _body_of(target_ir)
        ops = list(_inside(module, tile.FuncOp))
        names = _by_name(ops)
        missing = ("shared_memory_usage.workspace_bytes", "register_pressure")
        return {
            "operation_types": names,
            "shared_memory_usage": {
                "shared_bytes": 0,  # a CPU has none: program instances share data through its caches
                "workspace_bytes": None if target_ir is None else _workspace(target_ir.module),
                "panels": [] if target_ir is None else _panels(target_ir.module),
            },
            "register_pressure": None if body is None else _pressure(body),
            "tensor_core_utilization": {
                "tile_dots": names.get(DotOp.name, 0),
                "matrix_ops": _count(target_ir, cpu.MatmulOp),
                "vector_dots": _count(target_ir, cpu.DotOp),
                "matrix_instructions": None if body is None else _matrix_instructions(body),
            },
            "async_copy_patterns": {"async_copies": 0, "loads": names.get(tile.LoadOp.name, 0)},
            "synchronization_overhead": {
                "barriers": 0,  # program instances do not wait for each other: the dialect has no such op
                "atomics": names.get(tile.AtomicOp.name, 0),
                "locked_instructions": None if body is None else instructions.mix(body).get("atomic", 0),
            },
            "unavailable": {} if body is not None else dict.fromkeys(missing, _NO_TARGET),
        }

    def inspect_target_ir(self, target_ir: TargetIR | str) -> dict[str, Any]:
        """The instructions of the kernel, from its assembly; a text is taken as such. The function that computes a
        thread's scratch memory is counted in `functions` only."""
        found = instructions.functions_of(target_ir if isinstance(target_ir, str) else target_ir.assembly)
        name = _kernel_in(found) if isinstance(target_ir, str) else target_ir.instance.name
        body = found.get(name, [])
        return {
            "instruction_count": len(body),
            "instruction_mix": instructions.mix(body),
            "occupancy_estimate": None,
            "memory_access_patterns": instructions.memory_accesses(body),
            "registers": instructions.registers(body),
            "optimization_passes_applied": [] if isinstance(target_ir, str) else list(target_ir.applied_optimizations),
            "functions": {function: len(lines) for function, lines in found.items()},
            "unavailable": {"occupancy_estimate": _NO_OCCUPANCY},
        }


def _module_of(given: IR | ModuleOp | str) -> ModuleOp:
    if isinstance(given, str):
        return text.read(given)
    return given.module if isinstance(given, IR) else given


def _sizes_of(given: IR | ModuleOp | str) -> Mapping[str, int]:
    """The values of symbols, where the kernel was lowered for arguments."""
    if not isinstance(given, IR):
        return {}
    instance = given.origin.instance
    function = symbol_in(instance.module, instance.name, tile.FuncOp)
    found: dict[str, int] = {}
    for shape, value in zip(function.shapes, given.origin.values, strict=False):  # results have no values yet
        if isinstance(value, Tensor):
            found.update((str(symbol), size) for symbol, size in zip(shape.data, value.shape, strict=True))
    return found


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


def _of_dialect(module: ModuleOp, name: str) -> int:
    return sum(op.name.partition(".")[0] == name for op in module.walk())


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


def _configuration(launch: schedule.LaunchOp) -> dict[str, Any]:
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


def _workspace(module: ModuleOp) -> int:
    """Bytes of a thread's buffers, each rounded up as the emitter does; panels come on top."""
    sizes = [buffer_type(op.result).size for op in module.walk() if isinstance(op, cpu.BufferOp)]
    return sum(rounded_up(size + LINE, LINE) for size in sizes)


def _panels(module: ModuleOp) -> list[dict[str, Any]]:
    """Packed operands of dots: bytes of one, and how many a thread keeps, None where that depends on sizes."""
    reserved = [op for op in module.walk() if isinstance(op, cpu.ReserveOp)]
    return [{"bytes": panels_type(op.result).size, "count": _constant(op.count)} for op in reserved]


def _count(target_ir: TargetIR | None, kind: type[Operation]) -> int | None:
    return None if target_ir is None else sum(isinstance(op, kind) for op in target_ir.module.walk())


def _body_of(target_ir: TargetIR) -> list[instructions.Instruction]:
    return instructions.functions_of(target_ir.assembly)[target_ir.instance.name]


def _pressure(body: list[instructions.Instruction]) -> dict[str, Any]:
    """Registers that appear, of those there are, and what goes over the stack instead."""
    used, accesses = instructions.registers(body), instructions.memory_accesses(body)
    arm = any(one.arm for one in body)
    return {
        **used,
        "vector_registers_there_are": _ARM_VECTOR_REGISTERS if arm else _VECTOR_REGISTERS[used["vector_bits"]],
        **{
            name: accesses.get(name, 0)
            for name in ("stack_vector_loads", "stack_vector_stores", "stack_scalar_loads", "stack_scalar_stores")
        },
    }


def _matrix_instructions(body: list[instructions.Instruction]) -> int:
    return sum(one.name.startswith("tdp") for one in body)


def _kernel_in(functions: Mapping[str, Any]) -> str:
    """The function that is the kernel: the longest."""
    return max(functions, key=lambda name: len(functions[name]), default="")
