"""Of what numbers a scalar is a multiple, and whether it can be negative, as far as the program's text shows."""

from __future__ import annotations

from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from tessera.dialects import tile
from tessera.targets.cuda import dialect as nv


def divisor_of(value: SSAValue) -> int:
    """A number that divides a scalar whatever it is; 0 where the scalar is 0."""
    op = value.owner
    if isinstance(op, Block):
        loop = op.parent_op()
        counts = isinstance(loop, scf.ForOp) and op.args[0] is value
        return gcd(divisor_of(loop.lb), divisor_of(loop.step)) if isinstance(loop, scf.ForOp) and counts else 1
    match op:
        case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
            return abs(op.value.value.data)
        case arith.MuliOp():
            return divisor_of(op.lhs) * divisor_of(op.rhs)
        case arith.AddiOp() | arith.SubiOp() | arith.MinSIOp() | arith.MaxSIOp():
            return gcd(divisor_of(op.lhs), divisor_of(op.rhs))
        case arith.SelectOp():
            return gcd(divisor_of(op.lhs), divisor_of(op.rhs))
        case arith.IndexCastOp():
            return divisor_of(op.input)
        case tile.DimOp():
            return _size_of(op.view, op.axis.value.data) or 1
        case _:
            return 1


def _size_of(view: SSAValue, axis: int) -> int | None:
    """A size that is written down in the function's head."""
    if not isinstance(view, BlockArgument):
        return None
    function = view.block.parent_op()
    if not isinstance(function, nv.FuncOp):
        return None
    size = function.shapes.data[view.index].data[axis]
    return size if isinstance(size, int) else None


def is_natural(value: SSAValue) -> bool:
    """Whether a scalar is never negative: numbers of programs, turns of loops, sizes, and their sums and products."""
    op = value.owner
    if isinstance(op, Block):
        loop = op.parent_op()
        return isinstance(loop, scf.ForOp) and op.args[0] is value and is_natural(loop.lb) and is_natural(loop.step)
    match op:
        case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
            return op.value.value.data >= 0
        case arith.MuliOp() | arith.AddiOp() | arith.MinSIOp() | arith.RemSIOp() | arith.DivSIOp():
            return is_natural(op.lhs) and is_natural(op.rhs)
        case arith.FloorDivSIOp() | arith.CeilDivSIOp():
            return is_natural(op.lhs) and is_natural(op.rhs)
        case arith.MaxSIOp():
            return is_natural(op.lhs) or is_natural(op.rhs)
        case arith.SelectOp():
            return is_natural(op.lhs) and is_natural(op.rhs)
        case arith.IndexCastOp():
            return is_natural(op.input)
        case tile.DimOp() | tile.ProgramIdOp():
            return True
        case _:
            return False
