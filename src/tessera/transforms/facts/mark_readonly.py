"""`mark-readonly`: marks the arguments of tile functions that no kernel writes while the graph function runs.

Arguments of a graph function are read-only while it runs: kernels write their results. So a kernel may read them before
the kernels in front of it have ended (programmatic dependent launch). Only large arguments of functions that multiply
single rows are marked: there, reading is all the work, and kernels are short.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.ir.common.attributes import integers
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.shapes.expr import element_count
from tessera.transforms.core.index_digits import PULL

READONLY = "readonly"
"""The attribute of a function that names arguments which no kernel of the graph function writes."""
LARGE = 4096
"""Elements of an array that is worth reading ahead."""


@dataclass(frozen=True)
class MarkReadonly(ModulePass):
    """Marks tile functions, for all launches of them in a module."""

    name = "mark-readonly"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        called = {inner.callee.string_value() for inner in op.walk() if isinstance(inner, graph.CallOp)}
        kernels = {one.sym_name.data: one for one in op.body.block.ops if isinstance(one, tile.FuncOp)}
        written = {
            _root(launch.arguments[index])
            for launch in op.walk()
            if isinstance(launch, schedule.LaunchOp)
            for index in _written(kernels[launch.callee.string_value()])
        }
        found: dict[str, set[int]] = {}
        for function in op.body.block.ops:
            if not isinstance(function, graph.FuncOp):
                continue
            # What a caller hands on may be anything.
            entry = None if function.sym_name.data in called else function.body.block
            for launch in function.walk():
                if isinstance(launch, schedule.LaunchOp):
                    given = enumerate(launch.arguments)
                    readonly = {index for index, one in given if _is_readonly(one, entry) and _root(one) not in written}
                    name = launch.callee.string_value()
                    found[name] = found.get(name, readonly) & readonly
        for name, indices in found.items():
            if indices and _multiplies_rows(kernels[name]):
                kernels[name].attributes[READONLY] = integers(sorted(indices))


def readonly_arguments(function: Operation) -> tuple[int, ...]:
    """The arguments of a tile function that no kernel of the graph function writes."""
    found = function.attributes.get(READONLY)
    return tuple(int(index) for index in found.iter_values()) if isinstance(found, DenseArrayBase) else ()


def _is_readonly(value: SSAValue, entry: Block | None) -> bool:
    if not isinstance(value.type, GraphTensorType):
        return False
    count = element_count(value.type.shape)
    if isinstance(count, int) and count < LARGE:
        return False
    root = _root(value)
    return isinstance(root, BlockArgument) and root.block is entry


def _root(value: SSAValue) -> SSAValue:
    """The array that an arrangement of elements is of."""
    while isinstance(op := value.owner, Operation) and type(op) in PULL:
        value = op.operands[0]
    return value


def _written(function: tile.FuncOp) -> list[int]:
    """The inputs of a function that it writes."""
    stores = [op for op in function.body.walk() if isinstance(op, tile.Writer)]
    indices = {function.arguments.index(tile.base_of(op.view)) for op in stores}
    return [index for index in indices if index < function.input_count]


def _multiplies_rows(function: tile.FuncOp) -> bool:
    dots = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
    return bool(dots) and all(tile_type(op.a).get_shape()[0] == 1 for op in dots)
