"""Pointwise regions that do alike work side by side become one: fewer launches, and what both read is read once."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.transforms.core.block_order import number_in_block
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.fusion.fusion_refusals import AS_KERNEL, FusionRefusals, Reason
from tessera.transforms.fusion.region_spaces import UnfitError, space_of

_MOST_ARGUMENTS, _MOST_RESULTS = 10, 4
_TOO_LARGE = Reason(
    f"kernels of work side by side have at most {_MOST_ARGUMENTS} arguments and {_MOST_RESULTS} results", AS_KERNEL
)


def fuse_siblings(block: Block, refusals: FusionRefusals) -> None:
    """Merges a region into an earlier one of the same shape that reads one of the same arrays."""
    earlier: list[schedule.RegionOp] = []
    for op in list(block.ops):
        if not isinstance(op, schedule.RegionOp) or op.kind.data != "pointwise":
            continue
        refused: list[tuple[schedule.RegionOp, Reason]] = []
        for index, found in enumerate(earlier):
            if _are_siblings(found, op, block):
                made = _merged(found, op, block)
                if not isinstance(made, Reason):
                    earlier[index] = made
                    break
                refused.append((found, made))
        else:
            earlier.append(op)
            for found, reason in refused:
                refusals.refuse([found, op], reason, op)


def _are_siblings(first: schedule.RegionOp, second: schedule.RegionOp, block: Block) -> bool:
    shapes = {graph_type(value).shape for value in (*first.results_, *second.results_)}
    if first.config.data != second.config.data or len(shapes) != 1:
        return False
    if not set(first.arguments) & set(second.arguments):
        return False
    position = number_in_block(first)
    return all(_is_before(value, position, block) for value in second.arguments)


def _is_before(value: SSAValue, position: int, block: Block) -> bool:
    """Whether a value is there when the op at a position of the block begins."""
    owner = value.owner
    around = block.find_ancestor_op_in_block(owner) if isinstance(owner, Operation) else None
    return around is None or number_in_block(around) < position


def _merged(first: schedule.RegionOp, second: schedule.RegionOp, block: Block) -> schedule.RegionOp | Reason:
    """One region with the work of two, where the first stood; or why that is not one kernel."""
    inputs = list(dict.fromkeys((*first.arguments, *second.arguments)))
    results = [*first.results_, *second.results_]
    if len(inputs) > _MOST_ARGUMENTS or len(results) > _MOST_RESULTS:
        return _TOO_LARGE
    made = schedule.RegionOp(first.kind.data, first.config.data, inputs, [value.type for value in results])
    body = made.body.block
    yielded: list[SSAValue] = []
    for region in (first, second):
        inside = region.body.block
        mapped: dict[SSAValue, SSAValue] = {
            argument: body.args[inputs.index(value)]
            for argument, value in zip(inside.args, region.arguments, strict=True)
        }
        for argument, value in zip(inside.args, region.arguments, strict=True):
            body.args[inputs.index(value)].name_hint = argument.name_hint
        for op in inside.ops:
            if isinstance(op, schedule.YieldOp):
                yielded += [mapped[value] for value in op.values]
            else:
                body.add_op(op.clone(value_mapper=mapped))
    work = list(body.ops)
    body.add_op(schedule.YieldOp(yielded))
    try:
        space_of(work, yielded)
    except UnfitError as unfit:
        made.erase()
        return Reason(unfit.message, unfit.hint)
    adopt_location([made], first)
    block.insert_op_before(made, first)
    for old, new in zip(results, made.results_, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for region in (second, first):
        region.detach()
        region.erase()
    return made
