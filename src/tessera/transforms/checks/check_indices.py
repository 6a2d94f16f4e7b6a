"""check-indices: writes into a graph that indices of gathers and scatters are inside, as kernels that assert it.

What tile functions check, the bounds of their loads and stores among it, is in `instrument.py`.

Kernels that gather read 0 for an index that is outside, and those that scatter leave such an update out: looking costs
time. Where checks are asked for, indices go through a kernel of their own first, which ends the launch with an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import i64
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import Size, ceil_div, dim, element_count, size
from tessera.transforms.checks.padding_marks import Builder
from tessera.transforms.core.rewriting import adopt_location

Looking = graph.GatherOp | graph_indexing.ScatterOp
_BLOCK = 256
_IO = "io"


@dataclass(frozen=True)
class CheckIndices(ModulePass):
    """Puts a kernel that asserts in front of the indices of each gather and scatter."""

    name = "check-indices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [
            (one, number)
            for one in op.walk()
            if isinstance(one, Looking)
            for number, indices in enumerate(one.indices)
            if not isinstance(indices.owner, graph.IotaOp)
        ]
        for count, (one, number) in enumerate(found):
            kernel = _kernel(f"check_indices_{count}", one, number)
            op.body.block.insert_op_before(kernel, op.body.block.first_op)  # pyright: ignore[reportArgumentType]  (there is one)
            _look_first(one, number, kernel)
        if found:
            for function in op.walk():
                if isinstance(function, graph.FuncOp):
                    declared = {effect.data for effect in function.effects_} | {_IO}
                    function.properties["effects"] = ArrayAttr([StringAttr(one) for one in sorted(declared)])


def _look_first(op: Looking, number: int, kernel: tile.FuncOp) -> None:
    """Indices as one row go through the kernel, and come back as they were."""
    indices = graph_type(op.indices[number])
    row = graph.ReshapeOp(op.indices[number], (element_count(indices.shape),))
    call = graph.CallKernelOp(kernel.sym_name.data, [op.operand, row.result], [graph_type(row.result)])
    back = graph.ReshapeOp(call.results_[0], indices.shape)
    made: list[Operation] = [row, call, back]
    adopt_location(made, op)
    Rewriter.insert_op(made, InsertPoint.before(op))
    before = len(op.operands) - len(op.indices)
    op.operands = [back.result if at == before + number else one for at, one in enumerate(op.operands)]


def _kernel(name: str, op: Looking, number: int) -> tile.FuncOp:
    """A copy of a row of indices, each of which has to lie along an axis of the first argument."""
    source, indices = graph_type(op.operand), graph_type(op.indices[number])
    axis = list(op.axes.iter_values())[number]
    count: Size = dim("n")
    shapes: list[list[Size]] = [[dim(f"d{number}") for number in range(len(source.shape))], [count], [count]]
    row = ViewType(1, indices.element)
    kernel = tile.FuncOp(
        name, [ViewType(len(source.shape), source.element), row, row], 1, shapes, [size(ceil_div(count, _BLOCK))]
    )
    build = Builder()
    start = build.add(arith.MuliOp(build.add(tile.ProgramIdOp(0)), build.add(_index(_BLOCK))))
    found = build.add(tile.LoadOp(kernel.arguments[1], [start], [_BLOCK]))
    wide = found if indices.dtype.base is i64 else build.add(tile.EwOp("cast", [found], to=i64))
    inside = build.ew("ge", wide, _everywhere(build, build.add(_index(0))))
    below = build.ew("lt", wide, _everywhere(build, build.add(tile.DimOp(kernel.arguments[0], axis))))
    position = build.add(tile.IotaOp(start, 0, tile_of((_BLOCK,), i64)))
    beyond = build.ew("ge", position, _everywhere(build, build.add(tile.DimOp(kernel.arguments[1], 0))))
    extent = source.shape[axis]
    where = f"axis {axis} of size {extent}" if isinstance(extent, int) else f"axis {axis}"
    fine = build.ew("or", build.ew("and", inside, below), beyond)
    check = tile.AssertOp(fine, f"{op.name.split('.')[-1]}: an index is out of range for {where}")
    check.attributes[tile.CHECK] = StringAttr("indices")
    build.ops += [check, tile.StoreOp(found, kernel.arguments[2], [start]), tile.ReturnOp()]
    adopt_location(build.ops, op)
    kernel.body.block.add_ops(build.ops)
    kernel.location = op.location
    return kernel


def _index(value: int) -> Operation:
    return arith.ConstantOp.from_int_and_width(value, IndexType())


def _everywhere(build: Builder, number: SSAValue) -> SSAValue:
    return build.add(tile.FullOp(build.add(arith.IndexCastOp(number, element_of(i64))), (_BLOCK,)))
