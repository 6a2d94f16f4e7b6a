"""Joins pointwise regions that stand beside each other: same results' sizes, an input in common, neither needs the other.

What both read is read once, and one kernel is launched where there were two.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from tessera.dialects import schedule
from tessera.dialects.graph_types import graph_type

_MOST_INPUTS = 16


def join_regions(block: Block) -> None:
    """Joins each pointwise region of a block with those behind it that may as well run in its place."""
    op = block.first_op
    while op is not None:
        if isinstance(op, schedule.RegionOp) and op.kind.data == "pointwise":
            other = next((later for later in _behind(op) if _are_one(op, later)), None)
            if other is not None:
                op = _joined(op, other)
                continue
        op = op.next_op


def _behind(region: schedule.RegionOp) -> list[schedule.RegionOp]:
    found: list[schedule.RegionOp] = []
    op = region.next_op
    while op is not None:
        if isinstance(op, schedule.RegionOp) and op.kind.data == "pointwise":
            found.append(op)
        op = op.next_op
    return found


def _are_one(region: schedule.RegionOp, other: schedule.RegionOp) -> bool:
    """Whether two regions cut up the same sizes in the same way, and the second could run where the first does."""
    if region.config != other.config or not set(region.arguments) & set(other.arguments):
        return False
    if len({*region.arguments, *other.arguments}) > _MOST_INPUTS:
        return False
    if len({graph_type(value).shape for value in (*region.results_, *other.results_)}) != 1:
        return False
    return all(_is_there(value, region) for value in other.arguments)


def _is_there(value: SSAValue, op: Operation) -> bool:
    """Whether a value exists in front of an op of the same block."""
    owner, block = value.owner, op.parent
    assert block is not None
    if not isinstance(owner, Operation) or owner.parent is not block:
        return True
    return block.get_operation_index(owner) < block.get_operation_index(op)


def _joined(region: schedule.RegionOp, other: schedule.RegionOp) -> schedule.RegionOp:
    block = region.parent
    assert block is not None
    inputs = list(dict.fromkeys((*region.arguments, *other.arguments)))
    results = [*region.results_, *other.results_]
    made = schedule.RegionOp("pointwise", region.config.data, inputs, [value.type for value in results])
    made.location = region.location
    body = made.body.block
    of_inputs = dict(zip(inputs, body.args, strict=True))
    for value, argument in of_inputs.items():
        argument.name_hint = value.name_hint
    yielded: list[SSAValue] = []
    for part in (region, other):
        mapped: dict[SSAValue, SSAValue] = {
            inner: of_inputs[outer] for inner, outer in zip(part.body.block.args, part.arguments, strict=True)
        }
        for op in part.body.block.ops:
            if isinstance(op, schedule.YieldOp):
                yielded += [mapped[value] for value in op.values]
            else:
                body.add_op(op.clone(value_mapper=mapped))
    end = schedule.YieldOp(yielded)
    end.location = region.location
    body.add_op(end)
    block.insert_op_before(made, region)
    for old, new in zip(results, made.results_, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for part in (other, region):
        part.detach()
        part.erase()
    return made
