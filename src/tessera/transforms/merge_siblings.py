"""Neighbouring pointwise regions of one shape that read the same arrays become one: a single kernel reads them once."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from tessera.dialects import schedule
from tessera.dialects.graph_types import graph_type
from tessera.shapes.expr import Shape


def merge_siblings(block: Block) -> None:
    """Merges each pointwise region with the next one like it, if nothing in between needs its results."""
    for op in list(block.ops):
        if isinstance(op, schedule.RegionOp) and op.parent is block:
            other = _sibling(op)
            if other is not None:
                _merge(op, other)


def _shape(region: schedule.RegionOp) -> Shape | None:
    """The one shape of all results of a pointwise region."""
    shapes = {graph_type(result).shape for result in region.results_}
    return shapes.pop() if region.kind.data == "pointwise" and len(shapes) == 1 else None


def _sibling(region: schedule.RegionOp) -> schedule.RegionOp | None:
    shape, used = _shape(region), set(region.results_)
    following: Operation | None = region.next_op
    while shape is not None and following is not None:
        if used & set(following.operands) or any(used & set(inner.operands) for inner in following.walk()):
            return None
        if isinstance(following, schedule.RegionOp) and _shape(following) == shape:
            alike = following.config == region.config and set(following.arguments) & set(region.arguments)
            return following if alike else None
        following = following.next_op
    return None


def _merge(first: schedule.RegionOp, second: schedule.RegionOp) -> None:
    """Both in the place of the second."""
    inputs = list(dict.fromkeys((*first.arguments, *second.arguments)))
    types = [result.type for result in (*first.results_, *second.results_)]
    merged = schedule.RegionOp("pointwise", first.config.data, inputs, types)
    merged.location = second.location
    body = merged.body.block
    given = dict(zip(inputs, body.args, strict=True))
    yielded: list[SSAValue] = []
    for region in (first, second):
        mapped: dict[SSAValue, SSAValue] = {
            argument: given[value] for argument, value in zip(region.body.block.args, region.arguments, strict=True)
        }
        for argument, value in zip(region.body.block.args, region.arguments, strict=True):
            given[value].name_hint = argument.name_hint
        for op in region.body.block.ops:
            if isinstance(op, schedule.YieldOp):
                yielded += [mapped[value] for value in op.values]
            else:
                body.add_op(op.clone(value_mapper=mapped))
    end = schedule.YieldOp(yielded)
    end.location = second.location
    body.add_op(end)
    block = second.parent
    assert block is not None
    block.insert_op_before(merged, second)
    for old, new in zip((*first.results_, *second.results_), merged.results_, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for region in (second, first):
        region.detach()
        region.erase()
