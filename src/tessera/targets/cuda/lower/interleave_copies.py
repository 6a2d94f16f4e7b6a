"""Issues copies for later iterations once dots of this iteration are in flight, and not in front of them.

Behind the barrier of an iteration, the tensor cores have nothing to do until operands have come from shared memory.
Working out the addresses of the next copies would make them wait longer. So the first step of the first dot is issued
first.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation

from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Digit, Layout
from tessera.targets.cuda.ir.tensor_cores import depth_step
from tessera.targets.cuda.ir.types import laid_out, layout_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.tile_ops import Ops


def interleave_copies(function: nv.FuncOp) -> None:
    """Moves copies of every loop behind the first step of the first dot."""
    for loop in [op for op in function.walk() if isinstance(op, scf.ForOp)]:
        found = _find(loop.body.block)
        if found is not None:
            _move(found)


InterleaveCopies = function_pass("interleave-copies", interleave_copies, nv.FuncOp)


class _Found(NamedTuple):
    copies: list[Operation]
    dot: nv.MmaOp
    left: nv.ReadOp
    right: nv.ReadOp
    step: int


def _find(block: Block) -> _Found | None:
    copies: list[Operation] = []
    committed = False
    for op in block.ops:
        begins = isinstance(op, nv.CopyAsyncOp) or (isinstance(op, scf.IfOp) and _copies(op))
        if begins and not committed:
            copies.append(op)
        elif isinstance(op, nv.CommitOp) and copies and not committed:
            copies.append(op)
            committed = True
        elif isinstance(op, nv.MmaOp) and committed:
            return _beside(op, copies)
        elif isinstance(op, nv.WaitOp | nv.BarrierOp) and committed:
            return None
    return None


def _copies(op: scf.IfOp) -> bool:
    return not op.results and any(isinstance(inner, nv.CopyAsyncOp) for inner in op.walk())


def _beside(op: nv.MmaOp, copies: list[Operation]) -> _Found | None:
    """A dot with which copies can be interleaved: both operands are read for it alone, and it takes several steps."""
    left, right = op.a.owner, op.b.owner
    step = depth_step(tile_dtype(op.a))
    if not isinstance(left, nv.ReadOp) or not isinstance(right, nv.ReadOp):
        return None
    alone = all(len(list(read.result.uses)) == 1 and read.parent_block() is op.parent_block() for read in (left, right))
    depth = tile_type(op.a).get_shape()[1]
    return _Found(copies, op, left, right, step) if alone and depth > step and depth % step == 0 else None


def _move(found: _Found) -> None:
    dot, depth = found.dot, tile_type(found.dot.a).get_shape()[1]
    made = Ops()
    total = dot.c
    for start, size in ((0, found.step), (found.step, depth - found.step)):
        left, right = part_of(found.left, 1, start, size), part_of(found.right, 0, start, size)
        total = made.add(nv.MmaOp(made.add(left), made.add(right), total))
        if start == 0:
            for op in found.copies:
                op.detach()
                made.ops.append(op)
    adopt_location(made.ops, dot)
    block = dot.parent_block()
    assert block is not None
    block.insert_ops_before(made.ops, dot)
    dot.result.replace_all_uses_with(total)
    for op in (dot, found.left, found.right):
        op.detach()
        op.erase()


def part_of(read: nv.ReadOp, axis: int, start: int, size: int) -> nv.ReadOp:
    """Some of the depth of an operand."""
    type_ = tile_type(read.result)
    shape = list(type_.get_shape())
    shape[axis] = size
    transposed = read.transposed is not None
    row, column = read.row.value.data, read.column.value.data
    if (axis == 0) != transposed:
        row += start
    else:
        column += start
    layout = shortened(layout_of(read.result), axis, size)
    part = laid_out(TensorType(type_.element_type, shape), layout)
    return nv.ReadOp(read.shared, part, row=row, column=column, transposed=transposed)


def shortened(layout: Layout, axis: int, size: int) -> Layout:
    """The layout of a tile of which only so much is left along an axis: threads as before, fewer registers."""
    registers = [
        Digit(min(digit.size, -(-size // digit.step)), axis, digit.step) if digit.axis == axis else digit
        for digit in layout.registers
    ]
    return Layout.of(layout.threads, registers)
