"""An analysis: which scalars differ between consumers, because they are made of a consumer's index or of its tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tessera.ir.pipe.warp_groups import ConsumerIdOp
from tessera.transforms.core.slices import end_of


def differ_between_consumers(values: Sequence[SSAValue]) -> bool:
    """Whether values differ between consumers: they are made of a consumer's number, or of its tiles."""
    seen: set[SSAValue] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.type, TensorType) or isinstance(value.owner, ConsumerIdOp):
            return True
        todo += _made_of(value)
    return False


def _made_of(value: SSAValue) -> Sequence[SSAValue]:
    """The values that a value is, or is computed from."""
    owner = value.owner
    if not isinstance(value, BlockArgument):
        assert isinstance(owner, Operation)
        index = owner.results.index(value)
        match owner:
            case scf.ForOp():
                bounds = [owner.lb, owner.ub, owner.step]
                return [*bounds, owner.iter_args[index], end_of(owner.body.block).operands[index]]
            case scf.IfOp():
                return [owner.cond, *(end_of(region.block).operands[index] for region in owner.regions)]
            case scf.WhileOp():
                condition = end_of(owner.before_region.block)
                return [condition.operands[0], condition.operands[1 + index]]
            case _:
                return owner.operands
    assert isinstance(owner, Block)
    match around := owner.parent_op():
        case scf.ForOp() if value.index == 0:
            return [around.lb, around.ub, around.step]
        case scf.ForOp():
            return [around.iter_args[value.index - 1], end_of(owner).operands[value.index - 1]]
        case scf.WhileOp() if owner is around.before_region.block:
            return [around.arguments[value.index], end_of(around.after_region.block).operands[value.index]]
        case scf.WhileOp():
            return [end_of(around.before_region.block).operands[1 + value.index]]
        case _:
            return []
