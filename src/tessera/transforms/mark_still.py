"""mark-still: says of tile functions which of their arguments stand still while a program runs.

Arguments of a graph function are written by nobody while it runs: kernels write what they make. So a kernel may read
them before the kernels in front of it have ended. It is said of what is large, to functions that multiply single rows:
for them, reading is all the work, and they are short.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.dialects import graph, schedule, tile
from tessera.dialects.attributes import integers
from tessera.dialects.graph_types import GraphTensorType
from tessera.dialects.tile_types import tile_type
from tessera.shapes.expr import element_count
from tessera.transforms.digits import PULL

STILL = "still"
"""The attribute of a function that names arguments which no kernel of its program writes."""
LARGE = 4096
"""Elements of an array that is worth reading ahead."""


@dataclass(frozen=True)
class MarkStill(ModulePass):
    """Marks tile functions, for all launches of them in a module."""

    name = "mark-still"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        called = {inner.callee.string_value() for inner in op.walk() if isinstance(inner, graph.CallOp)}
        found: dict[str, set[int]] = {}
        for function in op.body.block.ops:
            if not isinstance(function, graph.FuncOp):
                continue
            # What a caller hands on may be anything.
            entry = None if function.sym_name.data in called else function.body.block
            for launch in function.walk():
                if isinstance(launch, schedule.LaunchOp):
                    still = {place for place, one in enumerate(launch.arguments) if _is_still(one, entry)}
                    name = launch.callee.string_value()
                    found[name] = found.get(name, still) & still
        for function in op.body.block.ops:
            if isinstance(function, tile.FuncOp) and _multiplies_rows(function):
                places = found.get(function.sym_name.data)
                if places:
                    function.attributes[STILL] = integers(sorted(places))


def still_places(function: Operation) -> tuple[int, ...]:
    """The arguments of a function that no kernel of its program writes."""
    found = function.attributes.get(STILL)
    return tuple(int(place) for place in found.iter_values()) if isinstance(found, DenseArrayBase) else ()


def _is_still(value: SSAValue, entry: Block | None) -> bool:
    if not isinstance(value.type, GraphTensorType):
        return False
    count = element_count(value.type.shape)
    if isinstance(count, int) and count < LARGE:
        return False
    while isinstance(op := value.owner, Operation) and type(op) in PULL:
        value = op.operands[0]
    return isinstance(value, BlockArgument) and value.block is entry


def _multiplies_rows(function: tile.FuncOp) -> bool:
    products = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
    return bool(products) and all(tile_type(op.a).get_shape()[0] == 1 for op in products)
