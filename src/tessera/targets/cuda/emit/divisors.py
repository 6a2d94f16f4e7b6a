"""Of what numbers a scalar is a multiple, and whether it can be negative, as far as the kernel's ops show."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import view_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.types import CHUNK
from tessera.transforms.pipelining.exchange_axes import row_axis_of

ALIGNED_ROWS = "row_aligned"
"""The attribute of a function that names arguments whose rows are whole pieces of 16 bytes, elements side by side."""


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
            known = _size_of(op.view, op.axis.value.data)
            whole = aligned_axis(op.view) == op.axis.value.data
            return known if known is not None else _per_line(op.view) if whole else 1
        case tile.StrideOp():
            return _stride_of(op.view, op.axis.value.data)
        case _:
            return 1


def _stride_of(view: SSAValue, axis: int) -> int:
    owner = view.owner
    if isinstance(owner, tile.ViewOp):
        return divisor_of(owner.strides[axis])
    return _per_line(view) if aligned_axis(view) not in (None, axis) else 1


def _per_line(view: SSAValue) -> int:
    """How many elements a piece of 16 bytes has."""
    return max(1, CHUNK // view_type(view).dtype.storage.itemsize)


def has_aligned_rows(view: SSAValue) -> bool:
    """Whether a view's rows are whole pieces of 16 bytes, their elements side by side."""
    return aligned_axis(view) == view_type(view).rank.data - 1


def aligned_axis(view: SSAValue) -> int | None:
    """The axis of a view along which rows are whole pieces of 16 bytes, their elements side by side; None for none.

    Of arguments the function's head says so; a view of such a view is another if its rows begin and end like that.
    """
    owner = view.owner
    if isinstance(owner, tile.ViewOp):
        return len(owner.strides) - 1 if aligned_axis(owner.base) is not None and _keeps_lines(owner) else None
    function = owner.parent_op() if isinstance(owner, Block) else None
    if not isinstance(function, nv.FuncOp) or not isinstance(view, BlockArgument):
        return None
    if (other := row_axis_of(view)) is not None:
        return other
    found = function.attributes.get(ALIGNED_ROWS)
    aligned = isinstance(found, DenseArrayBase) and view.index in set(found.iter_values())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
    return view_type(view).rank.data - 1 if aligned else None


def _keeps_lines(op: tile.ViewOp) -> bool:
    unit = _per_line(op.base)
    if not op.strides or divisor_of(op.offset) % unit or divisor_of(op.sizes[-1]) % unit:
        return False
    last = op.strides[-1].owner
    together = (isinstance(last, tile.StrideOp) and _is_along_rows(last)) or _is_one(last)
    return together and not any(divisor_of(stride) % unit for stride in op.strides[:-1])


def _is_along_rows(op: tile.StrideOp) -> bool:
    return aligned_axis(op.view) == op.axis.value.data


def _is_one(owner: object) -> bool:
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) and owner.value.value.data == 1


def _size_of(view: SSAValue, axis: int) -> int | None:
    """A size that is written down in the function's head."""
    if not isinstance(view, BlockArgument):
        return None
    function = view.block.parent_op()
    if not isinstance(function, nv.FuncOp):
        return None
    size = function.shapes.data[view.index].data[axis]
    return size if isinstance(size, int) else None


def _is_remainder(op: arith.SubiOp, holds: Callable[[SSAValue], bool]) -> bool:
    """Whether a difference is a - (a // b)·b, for natural a and b."""
    whole = op.rhs.owner
    if not isinstance(whole, arith.MuliOp):
        return False
    times, by = whole.lhs.owner, whole.rhs
    divided = isinstance(times, arith.FloorDivSIOp | arith.DivSIOp) and times.lhs is op.lhs and times.rhs is by
    return divided and holds(op.lhs) and holds(by)


def is_natural(value: SSAValue, given: Callable[[SSAValue], bool] = lambda value: False) -> bool:
    """Whether a scalar is never negative: program_id, counters of loops, sizes, what else is given, and their sums and
    products; and what a loop carries, if it begins so and each iteration keeps it so."""
    carried: set[SSAValue] = set()

    def holds(value: SSAValue) -> bool:
        if value in carried or given(value):
            return True
        op = value.owner
        if isinstance(op, Block):
            loop = op.parent_op()
            if not isinstance(loop, scf.ForOp) or not isinstance(value, BlockArgument):
                return False
            return keeps(loop, value.index - 1) if value.index else holds(loop.lb) and holds(loop.step)
        match op:
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
                return op.value.value.data >= 0
            case arith.MuliOp() | arith.AddiOp() | arith.MinSIOp() | arith.RemSIOp() | arith.DivSIOp():
                return holds(op.lhs) and holds(op.rhs)
            case arith.FloorDivSIOp() | arith.CeilDivSIOp():
                return holds(op.lhs) and holds(op.rhs)
            case arith.MaxSIOp():
                return holds(op.lhs) or holds(op.rhs)
            case arith.SelectOp():
                return holds(op.lhs) and holds(op.rhs)
            case arith.SubiOp():
                return _is_remainder(op, holds)
            case arith.IndexCastOp():
                return holds(op.input)
            case scf.ForOp() if isinstance(value, OpResult):
                return keeps(op, value.index)
            case scf.IfOp() if isinstance(value, OpResult):
                ends = [block.last_op for region in op.regions for block in region.blocks]
                return all(end is not None and holds(end.operands[value.index]) for end in ends)
            case tile.DimOp() | tile.ProgramIdOp():
                return True
            case _:
                return False

    def keeps(loop: scf.ForOp, number: int) -> bool:
        carried.add(loop.body.block.args[number + 1])
        end = loop.body.block.last_op
        return end is not None and holds(loop.iter_args[number]) and holds(end.operands[number])

    return holds(value)
