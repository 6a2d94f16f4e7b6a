"""Parts of views: those at an index of each of some axes, as `x[i]` is one of `x`.

A part is a view whose offset is a sum of indices times strides. A guarded one (`PART`) sees no elements where one of
its indices is out of range: loads from it give their pad, and stores to it are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tessera.ir.tile import dialect as tile

PART = "tile.part"
"""Marks a guarded part: its sizes are 0 where an index is out of range."""
BELOW = 6
"""The predicate of `arith.cmpi` on numbers without a sign: one comparison tests both ends of a range."""


def indices_of(offset: SSAValue, base: SSAValue) -> dict[int, SSAValue | int] | None:
    """The indices in a sum of indices times strides of a view, by the axes of the strides; None for any other sum."""
    owner = offset.owner
    if isinstance(owner, arith.AddiOp):
        one, other = (indices_of(operand, base) for operand in owner.operands)
        return None if one is None or other is None or one.keys() & other.keys() else one | other
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) and owner.value.value.data == 0:
        return {}
    if isinstance(owner, tile.StrideOp) and owner.view is base:
        return {owner.axis.value.data: 1}
    if isinstance(owner, arith.MuliOp):
        for index, stride in (owner.operands, reversed(owner.operands)):
            if isinstance(by := stride.owner, tile.StrideOp) and by.view is base:
                return {by.axis.value.data: index}
    return None


def conditions_of(op: tile.ViewOp) -> list[arith.CmpiOp]:
    """The comparisons of indices with sizes that a guarded part rests on, those of its own."""
    choice = op.sizes[0].owner
    return list(comparisons(choice.cond)) if PART in op.attributes and isinstance(choice, arith.SelectOp) else []


def comparisons(condition: SSAValue) -> Iterator[arith.CmpiOp]:
    """The tests for an index in range that hold where a condition does."""
    owner = condition.owner
    if isinstance(owner, arith.AndIOp):
        for operand in owner.operands:
            yield from comparisons(operand)
    elif isinstance(owner, arith.CmpiOp) and owner.predicate.value.data == BELOW:
        yield owner


def rests_on_memory(index: SSAValue | int) -> bool:
    """Whether what memory holds decides a number, by what it is made of or by how often a loop runs."""
    seen: set[SSAValue] = set()
    asked = [index] if isinstance(index, SSAValue) else []
    while asked:
        value = asked.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, tile.Reader):
            return True
        asked.extend(_sources(owner, value))
    return False


def _sources(owner: Operation | Block, value: SSAValue) -> Sequence[SSAValue]:
    """The values that one rests on, next to it."""
    if isinstance(owner, Block):
        around, carried = owner.parent_op(), value.index - 1 if isinstance(value, BlockArgument) else -1
        if isinstance(around, scf.ForOp):
            return around.operands[:3] if carried < 0 else _carried(around, carried)
        return [] if around is None or isinstance(around, tile.FuncOp) else _sources(around, value)
    if isinstance(owner, scf.ForOp) and isinstance(value, OpResult):
        return _carried(owner, value.index)
    ends = [block.last_op for region in owner.regions for block in region.blocks]
    if isinstance(owner, scf.IfOp) and isinstance(value, OpResult):
        return [owner.cond, *(end.operands[value.index] for end in ends if end is not None)]
    return [*owner.operands, *(operand for end in ends if end is not None for operand in end.operands)]


def _carried(loop: scf.ForOp, number: int) -> Sequence[SSAValue]:
    """What a value that a loop carries rests on: its beginning, what each iteration makes of it, and how many do."""
    end = loop.body.block.last_op
    return [*loop.operands[:3], loop.iter_args[number], *([] if end is None else [end.operands[number]])]
