"""Finds divisions of a kernel that can be narrowed: numbers that fit 31 bits and are not negative.

Dividing such numbers takes few instructions and registers. There are less than 2³¹ program instances, so their
numbers, and numbers made of them alone, are small. So are sizes of arguments: a launch checks them, and copies by
tensor maps count elements in 32 bits.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from tessera.ir.pipe import tile_scheduler, warp_groups
from tessera.ir.tile import dialect as tile
from tessera.transforms.checks.host_checks import CHECKED
from tessera.transforms.core.constants import integer_of

MOST = 2**31 - 1
Division = arith.DivSIOp | arith.RemSIOp | arith.FloorDivSIOp
_Shrinks = arith.DivSIOp | arith.RemSIOp | arith.FloorDivSIOp | arith.MinSIOp
_Counts = arith.MuliOp | arith.AddiOp | arith.SubiOp | arith.MaxSIOp
_Numbers = warp_groups.GridExtentOp | warp_groups.CtaIdOp | warp_groups.CtaCountOp | warp_groups.ConsumerIdOp
_Scheduled = tile_scheduler.SchedulerFetchOp | tile_scheduler.SchedulerReadOp
_Given = _Numbers | _Scheduled


def can_narrow_division(op: Division, mapped: AbstractSet[SSAValue]) -> bool:
    """Whether a division may be done in 32 bits: of small numbers, and certainly not by zero."""
    certain = CHECKED in op.attributes or integer_of(op.rhs) not in (None, 0) or is_of_instances(op.rhs)
    return certain and all(_is_small(value, mapped) for value in op.operands)


def _bounds(value: SSAValue, block: Block) -> tuple[SSAValue, ...]:
    """The bounds of a loop counter, or first and next values of a tile scheduler's loop; nothing for other values."""
    loop = block.parent_op()
    if isinstance(loop, scf.WhileOp) and block.args[0] is value and block is loop.after_region.block:
        first, test, end = loop.arguments[0], loop.before_region.block, block.last_op
        assert isinstance(test.last_op, scf.ConditionOp)
        assert end is not None
        return (first, end.operands[0]) if test.last_op.args[0] is test.args[0] else ()
    return (loop.lb, loop.ub) if isinstance(loop, scf.ForOp) and block.args[0] is value else ()


def _is_small(value: SSAValue, mapped: AbstractSet[SSAValue]) -> bool:
    if is_of_instances(value):
        return True
    owner = value.owner
    if isinstance(owner, Block):
        bounds = _bounds(value, owner)
        return bool(bounds) and all(_is_small(bound, mapped) for bound in bounds)
    if isinstance(owner, tile.DimOp):
        return owner.view in mapped
    if isinstance(owner, tile.ProgramIdOp):
        return True
    return isinstance(owner, _Shrinks) and all(_is_small(operand, mapped) for operand in owner.operands)


def is_of_instances(value: SSAValue) -> bool:
    """Whether a number is made of numbers of program instances and of extents of the grid, none of which is 0."""
    owner = value.owner
    if isinstance(owner, Block):
        bounds = _bounds(value, owner)
        return bool(bounds) and all(is_of_instances(bound) for bound in bounds)
    known = integer_of(value)
    if known is not None:
        return 0 < known <= MOST
    if isinstance(owner, arith.MinSIOp) and any(is_of_instances(operand) for operand in owner.operands):
        return all(is_of_instances(operand) or _is_positive(operand) for operand in owner.operands)
    if isinstance(owner, arith.SubiOp) and CHECKED not in owner.attributes:
        return False  # a kernel's own may be negative
    if isinstance(owner, _Shrinks | _Counts):
        return all(is_of_instances(operand) for operand in owner.operands)
    return isinstance(owner, _Given)


def _is_positive(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.MaxSIOp) and any((integer_of(operand) or 0) > 0 for operand in owner.operands)
