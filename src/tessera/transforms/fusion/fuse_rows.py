"""Forms pointwise and rows regions: everything that is no matmul, fused as far as one iteration space reaches.

Groups grow from what is used last to what it is made from. A producer joins if the group still has one iteration space
with it. If others use it as well, it becomes a second result, or is done again where that is cheap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.promotion import accumulator
from tessera.ir.common import elementwise, reductions
from tessera.ir.common.attributes import Name
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.shapes.expr import Size, element_count
from tessera.transforms.core.block_order import in_order, number_in_block
from tessera.transforms.core.index_maps import RULES, Var
from tessera.transforms.core.legality import LEVELS, VIEWS
from tessera.transforms.core.rewriting import replace
from tessera.transforms.fusion.emit_tile_steps import Step, index_work, steps_config, writes_part
from tessera.transforms.fusion.fusion_refusals import AS_KERNEL, NOT_AT_ONCE, FusionRefusals, Reason, first_user, named
from tessera.transforms.fusion.region_spaces import FOLDS, Space, UnfitError, folded_extents, space_of
from tessera.transforms.fusion.regions import enclosable, enclose, erase_unused, is_splat, results_of, untold
from tessera.transforms.fusion.row_blocks import choose_block, tile_axes

_MOST_OPS = 96
_MOST_INPUTS = 16
_MANY = 16
"""Program instances that are worth a kernel of their own."""
_CHEAP = 4
"""Simple steps that are sooner done again than written and read."""
_STEPS = (graph_indexing.CumulateOp, graph_indexing.ScatterOp)
_COMPUTED = (graph.EwOp, *FOLDS)
_LONG_FOLD = 1 << 21
"""Elements that are read in more time than a kernel takes to start."""
_TIMES_BUSY = 8
"""Times as many instances as keep the machine busy: each has few loads on their way at once."""
_FOLDED_COLUMNS = 64
"""Columns of a program instance that folds a leading axis."""
_LEAST_PART = {True: 2048, False: 128}
"""Elements of a part, of rows along which memory lies, and of columns."""

_MANY_OPS = Reason(f"a kernel has at most {_MOST_OPS} ops", AS_KERNEL, is_limit=True)
_MANY_INPUTS = Reason(f"a kernel reads at most {_MOST_INPUTS} arrays", AS_KERNEL, is_limit=True)
_NO_BOXES = Reason(
    "a reshape cuts across what program instances have tiles of", "reshape in front of both, or behind", is_limit=True
)
_AGAIN = Reason("what is reduced would be reduced again for each part of an axis that the reduction does not leave")
_ALONE = Reason("one program instance would compute all of it, for what is reduced is needed as a whole")
_PARTS = Reason("only some of it is read, at places that are looked up", "look up first, and compute it of those")
_COPIED = Reason("others need it, too, and it takes too long to be computed twice")
_UNUSED = Reason("nothing uses what they compute")


@dataclass
class _Grown:
    """The ops that become one kernel, those that are done again for it, and what was refused."""

    group: set[Operation]
    copied: set[Operation] = field(default_factory=set[Operation])
    refused: dict[Operation, Reason] = field(default_factory=dict[Operation, Reason])


def fuse_rows(block: Block, refusals: FusionRefusals, instances: int = 0) -> None:
    """Puts all algebra of a block that is in no region yet into regions; views that cost nothing stay."""
    divided = divide_reductions(block)
    if instances:
        divided |= divide_long_folds(block, instances)
    algebra = LEVELS["schedule"].region - {schedule.YieldOp, graph.ConstantOp}
    waiting = [op for op in block.ops if type(op) in algebra]
    left: set[Operation] = set()
    for op in reversed(waiting):
        if op.parent is not block or op in left:
            continue
        if isinstance(op, graph.IotaOp) and all(_takes_counts(use.operation) for use in op.result.uses):
            left.add(op)
            continue
        if isinstance(op, graph.ReshapeOp):
            # The host hands on what is before it under other sizes; nothing is gained by making it in them.
            left.add(op)
            continue
        grown = _grown(op)
        _refuse(grown, divided, refusals)
        group, copied = grown.group, grown.copied
        if all(isinstance(member, VIEWS) for member in group) and _is_free(op, group):
            left.add(op)
        else:
            _form(group, copied, instances)
    for op in list(block.ops):
        before = op.operand.owner if isinstance(op, graph.ReshapeOp) else None
        if before in left and isinstance(before, VIEWS) and not isinstance(before, graph.ReshapeOp):
            # Its elements do not lie one behind the other.
            both: set[Operation] = {op, before}
            _form(both if _obstacle(both, set()) is None else {before}, set(), instances)
        elif isinstance(op, graph.IotaOp) and op in left:
            erase_unused(op) if op.result.first_use is None else _form({op}, set(), instances)


def divide_reductions(block: Block) -> set[Operation]:
    """Makes two reductions of one that leaves little: one program instance could not read so much. Gives these."""
    divided = set[Operation]()
    for op in list(block.ops):
        if isinstance(op, graph.ReduceOp) and (axes := _first_axes(op)) is not None:
            dtype, result = graph_type(op.operand).dtype, graph_type(op.result)
            adds = reductions.TABLE[op.kind.data].combine in ("add", "mul")
            carried = accumulator(dtype).base if adds else dtype.base
            made: list[Operation] = []
            value = op.operand
            if dtype is not carried:
                made.append(graph.EwOp("cast", [value], to=carried))
                value = made[-1].results[0]
            made.append(graph.ReduceOp(op.kind.data, value, axes, keepdims=True))
            rest = [axis for axis in op.axes.iter_values() if axis not in axes]
            made.append(graph.ReduceOp(op.kind.data, made[-1].results[0], rest, keepdims=True))
            if dtype is not carried:
                made.append(graph.EwOp("cast", [made[-1].results[0]], to=dtype))
            if op.keepdims is None:
                made.append(graph.ReshapeOp(made[-1].results[0], result.shape))
            replace(op, made)
            divided.update(made)
    return divided


def _first_axes(op: graph.ReduceOp) -> list[int] | None:
    """The axes to fold first, where there are others, large ones too, and little is left of the whole."""
    shape, axes = graph_type(op.operand).shape, list(op.axes.iter_values())
    left = element_count([extent for axis, extent in enumerate(shape) if axis not in axes])
    large = [axis for axis in axes if not isinstance(extent := shape[axis], int) or extent >= _MANY]
    if len(large) < 2 or not isinstance(left, int) or left >= _MANY:
        return None
    return [axis for axis in axes if axis >= large[-1]]


def divide_long_folds(block: Block, instances: int) -> set[Operation]:
    """Makes two reductions of one that leaves fewer program instances than half of those that are wanted."""
    divided = set[Operation]()
    for op in list(block.ops):
        if isinstance(op, graph.ReduceOp) and (parts := _parts_of(op, instances)) is not None:
            made = list(_divided(op, parts))
            replace(op, made)
            divided.update(made)
    return divided


def _parts_of(op: graph.ReduceOp, instances: int) -> int | None:
    """How many parts its axis is divided into; None where it stays whole."""
    shape, axes = graph_type(op.operand).shape, list(op.axes.iter_values())
    total, length = element_count(shape), shape[axes[0]] if len(axes) == 1 else None
    if not isinstance(total, int) or not isinstance(length, int) or total < _LONG_FOLD:
        return None
    along = axes[0] == len(shape) - 1
    programs = max(1, total // length // (1 if along else _FOLDED_COLUMNS))
    if 2 * programs >= instances:
        return None
    wanted = -(-_TIMES_BUSY * instances // programs)
    possible = [
        parts for parts in _divisors(length) if 1 < parts <= 2 * wanted and length // parts >= _LEAST_PART[along]
    ]
    return min(possible, key=lambda parts: abs(parts - wanted), default=None)


def _divisors(number: int) -> Iterator[int]:
    root = int(number**0.5)
    for one in range(1, root + 1):
        if number % one == 0:
            yield from {one, number // one}


def _divided(op: graph.ReduceOp, parts: int) -> Iterator[Operation]:
    (axis,) = op.axes.iter_values()
    kind, dtype, shape = op.kind.data, graph_type(op.operand).dtype, graph_type(op.operand).shape
    carried = accumulator(dtype).base if reductions.TABLE[kind].combine in ("add", "mul") else dtype.base
    value = op.operand
    if dtype is not carried:
        yield (wide := graph.EwOp("cast", [value], to=carried))
        value = wide.result
    length = shape[axis]
    assert isinstance(length, int)
    sizes: list[Size] = [*shape[:axis], parts, length // parts, *shape[axis + 1 :]]
    yield (apart := graph.ReshapeOp(value, sizes))
    yield (first := graph.ReduceOp(kind, apart.result, [axis + 1]))
    yield (last := graph.ReduceOp(kind, first.result, [axis], keepdims=op.keepdims is not None))
    if dtype is not carried:
        yield graph.EwOp("cast", [last.result], to=dtype)


def _takes_counts(user: Operation) -> bool:
    """Whether an op is algebra, which makes counts by itself."""
    return type(user) in RULES or isinstance(user, (*FOLDS, schedule.RegionOp))


def is_step(op: Operation) -> bool:
    """Whether an op is a kernel of its own: it goes along an axis in order, or writes a part of what is kept.

    A part that is replaced is one unless all that reads the result is algebra, which looks at the part by itself.
    """
    return isinstance(op, _STEPS) or (writes_part(op) and not _is_read_by_algebra(op))


def _is_read_by_algebra(op: Operation) -> bool:
    """Whether all that reads the result of an op computes with it, through views or not."""
    users = [use.operation for use in op.results[0].uses]
    return all(
        (type(user) in RULES or isinstance(user, FOLDS))
        and not is_step(user)
        and (not isinstance(user, VIEWS) or _is_read_by_algebra(user))
        for user in users
    )


def _is_free(op: Operation, group: set[Operation]) -> bool:
    """Whether an arrangement of elements that exist can stay one: no op needs it in order."""
    if len(group) > 1:
        return False
    if isinstance(op, graph.ReshapeOp):
        return True
    return all(isinstance(use.operation, (schedule.RegionOp, *VIEWS)) for use in op.results[0].uses)


def _form(group: set[Operation], copied: set[Operation], instances: int) -> None:
    # A kernel that counts along an axis has to know how long it is; one that reads the numbers does.
    told = not _untold(group | copied, results_of(group, copied))
    alone = len(group) == 1 and is_step(next(iter(group)))
    region = enclose(group, "pointwise", Config(), copied=copied, counts=told)
    end = region.body.block.last_op
    assert isinstance(end, schedule.YieldOp)
    body = [op for op in region.body.block.ops if op is not end]
    if alone and isinstance(body[-1], Step):
        region.properties["kind"], region.properties["config"] = Name("rows"), ConfigAttr(steps_config(body[-1]))
        return
    if any(isinstance(op, FOLDS) for op in body):
        region.properties["kind"] = Name("rows")
    elif any(isinstance(op, graph.MatmulOp) for op in body):
        region.properties["kind"] = Name("matmul")
    try:
        space = space_of(body, list(end.values))
    except UnfitError:
        # The lowering to tiles reports what is missing.
        return
    region.properties["config"] = ConfigAttr(choose_block(space, list(end.values), instances))


def _refuse(grown: _Grown, divided: set[Operation], refusals: FusionRefusals) -> None:
    """Notes which ops that compute something are not in a group, though they make what it reads or read what it makes.

    Two reductions that were one of the user's are not meant to be one kernel.
    """
    inside = grown.group | grown.copied
    apart = [
        (owner, op)
        for op in grown.group
        for number, operand in enumerate(op.operands)
        if isinstance(owner := operand.owner, _STEPS if number or not isinstance(op, graph.GatherOp) else _COMPUTED)
        and owner not in inside
    ]
    for owner, op in sorted(apart, key=lambda pair: number_in_block(pair[1])):
        refusals.refuse([owner, op], _PARTS if isinstance(op, graph.GatherOp) else _in_order(owner), op)
    for op, reason in grown.refused.items():
        source = op.operands[0].owner if isinstance(op, VIEWS) else op
        if op in inside or not isinstance(source, _COMPUTED):
            continue
        found = (one.owner for one in op.operands)
        made = next((one for one in found if isinstance(one, Operation) and one in grown.group), None)
        # Either it makes what the group reads, or it reads what the group makes. Views alone compute nothing.
        first, user = (source, first_user(op, inside)) if made is None else (made, op)
        if user is not None and not (first in divided and user in divided):
            refusals.refuse([first, user], reason, user)


def _in_order(op: Operation) -> Reason:
    return Reason(f"{named(op)} goes along its axis in order, in a kernel of its own", AS_KERNEL, is_limit=True)


def _around(user: Operation, op: Operation) -> Operation | None:
    assert op.parent is not None
    return op.parent.find_ancestor_op_in_block(user)


def _grown(root: Operation, *, quick: bool = True) -> _Grown:
    """The ops that become one kernel with `root`, and those that are done again for it.

    A `quick` search believes of some ops that they change nothing about the iteration space. Where they did, the search
    is done again without that.
    """
    group: set[Operation] = {root}
    copied: set[Operation] = set()
    refused: dict[Operation, Reason] = {}
    if is_step(root):
        copied = index_work(root)
        return _Grown(group, copied, dict.fromkeys(_producers(group, set(), copied), _in_order(root)))
    if isinstance(_space(group, copied), Reason):
        return _Grown(group, copied, refused)
    waiting: set[Operation] = set()
    again = True
    while again:
        again = False
        for producer in _producers(group, copied, refused.keys() | waiting):
            joined = _joined(producer, group, copied, quick)
            if isinstance(joined, Reason):
                # What only counts the elements of an array waits until that array is read.
                if _counts_alone(producer):
                    waiting.add(producer)
                else:
                    refused[producer] = joined
            else:
                group, copied = joined
                waiting.clear()
                again = True
                break
        for consumer in [] if again else _consumers(group, refused):
            if (reason := _obstacle(group | {consumer}, copied)) is None:
                group.add(consumer)
                waiting.clear()
                again = True
                break
            refused[consumer] = reason
    if quick and len(group) > 1 and isinstance(_space(group, copied), Reason):
        return _grown(root, quick=False)
    if left := _of_others(root, group, refused):
        # What both need is done twice.
        again = copied | {op for op in group - left if _serves_some(op, left)}
        rest = group - left - again
        needed = {op for op in again if _needs_copy(op, rest, again)}
        if all(isinstance(op, VIEWS) or _takes_few_steps(op) for op in needed) and _obstacle(rest, needed) is None:
            group, copied = rest, needed
    return _Grown(group, copied, refused)


def _needs_copy(op: Operation, group: set[Operation], copied: set[Operation]) -> bool:
    """Whether a group reads what an op makes, perhaps by way of others that are done again."""
    users = {_around(use.operation, op) for result in op.results for use in result.uses}
    return any(user in group or (user in copied and _needs_copy(user, group, copied)) for user in users if user)


def _of_others(root: Operation, group: set[Operation], refused: Collection[Operation]) -> set[Operation]:
    """Ops that are sooner done with reductions that others make: element by element of their results, then folded here.

    What is handed on is one array then, and all that such reductions read can be one kernel.
    """
    made: dict[Operation, Size] = {
        op: element_count(graph_type(op.results[0]).shape)
        for op in refused
        if isinstance(op, FOLDS) and any(_around(use.operation, op) in group for use in op.results[0].uses)
    }
    found: set[Operation] = set()
    for op in sorted(group, key=number_in_block):
        sizes = {
            made[owner] for operand in op.operands if isinstance(owner := operand.owner, Operation) and owner in made
        }
        if not sizes or not isinstance(op, (graph.EwOp, *VIEWS)) or op is root:
            continue
        if len(sizes) > 1 or element_count(graph_type(op.results[0]).shape) not in sizes:
            return set()
        made[op] = sizes.pop()
        found.add(op)
    if not found:
        return set()
    # All that they make goes into folds of this kernel, which need it as a whole.
    handed = {use.operation for op in found for use in op.results[0].uses}.difference(found)
    if not handed or not all(isinstance(op, FOLDS) and op in group for op in handed):
        return set()
    while more := {op for op in group - found - {root} if _serves(op, found)}:
        found |= more
    return found


def _serves_some(op: Operation, ops: set[Operation]) -> bool:
    users = {_around(use.operation, op) for result in op.results for use in result.uses}
    return any(
        user in ops or (user is not None and not isinstance(user, FOLDS) and _serves_some(user, ops)) for user in users
    )


def _serves(op: Operation, ops: set[Operation]) -> bool:
    return all(_around(use.operation, op) in ops for result in op.results for use in result.uses)


def _counts_alone(op: Operation) -> bool:
    """Whether nothing that an op reads tells all sizes in it."""
    values = [*op.operands, *op.results]
    return bool(untold(values, [value for value in op.operands if not is_splat(value)]))


def _consumers(group: set[Operation], refused: Collection[Operation]) -> list[Operation]:
    """Elementwise work on what a group makes, the first of the block first: done with it, it need not be read again."""
    block = next(iter(group)).parent
    assert block is not None
    found = {
        use.operation
        for op in group
        for result in op.results
        for use in result.uses
        if isinstance(use.operation, graph.EwOp) and use.operation.parent is block
    }
    return in_order(found.difference(group, refused))


def _producers(group: set[Operation], copied: set[Operation], refused: Collection[Operation]) -> list[Operation]:
    """Ops that make what a group reads, the last of the block first."""
    inside = group | copied
    block = next(iter(group)).parent
    assert block is not None
    found: dict[Operation, None] = {}
    for op in inside:
        for number, operand in enumerate(op.operands):
            producer = operand.owner
            if not isinstance(producer, Operation) or producer in inside or producer in refused:
                continue
            if producer.parent is not block or not (type(producer) in RULES or isinstance(producer, FOLDS)):
                continue
            if is_step(producer):
                continue
            if isinstance(op, graph.GatherOp) and number == 0 and not isinstance(producer, VIEWS):
                # Only some of it is read.
                continue
            found[producer] = None
    return in_order(found)[::-1]


def _joined(
    producer: Operation, group: set[Operation], copied: set[Operation], quick: bool
) -> tuple[set[Operation], set[Operation]] | Reason:
    """A group with one more op, if that is one kernel and worth it; or why it is not."""
    inside = group | copied
    larger = group | {producer}
    alone = all(_around(use.operation, producer) in inside for use in producer.results[0].uses)
    if alone and not any(_around(use.operation, producer) in copied for use in producer.results[0].uses):
        # Elementwise work that only the group uses is done where its result is: the space stays what it was, unless it
        # reads what the group makes, perhaps at other places.
        apart = not any(operand.owner in inside for operand in producer.operands)
        same = quick and apart and isinstance(producer, graph.EwOp)
        return _obstacle(larger, copied, same=same) or (larger, copied)
    again = group, copied | {producer}
    if isinstance(producer, VIEWS):
        return _obstacle(*again) or again
    reason = None if alone else _obstacle(larger, copied)
    if not alone and reason is None:
        return larger, copied
    if _is_cheap(producer):
        return _obstacle(*again) or again
    return reason or _COPIED


def _is_cheap(op: Operation) -> bool:
    return _takes_few_steps(op) and sum(not is_splat(operand) for operand in op.operands) <= 1


def _takes_few_steps(op: Operation) -> bool:
    if not isinstance(op, graph.EwOp):
        return False
    cost = elementwise.TABLE[op.fn.data].cost
    return not cost.special and not cost.divide and cost.simple + cost.convert <= _CHEAP


def _obstacle(group: set[Operation], copied: set[Operation], *, same: bool = False) -> Reason | None:
    """Why ops are no one kernel, None where they can be; `same` says that they have an iteration space."""
    if len(group) + len(copied) > _MOST_OPS:
        return _MANY_OPS
    if not enclosable(group):
        return NOT_AT_ONCE
    inside = group | copied
    inputs = {
        operand
        for op in inside
        for operand in op.operands
        if operand.owner not in inside and not is_splat(operand) and not isinstance(operand.owner, graph.IotaOp)
    }
    if len(inputs) > _MOST_INPUTS and len(inputs) > max(len(op.operands) for op in inside):
        return _MANY_INPUTS
    found = None if same else _space(group, copied)
    return found if isinstance(found, Reason) else None


def _space(group: set[Operation], copied: set[Operation]) -> Space | Reason:
    inside = group | copied
    sources = {
        operand.owner
        for op in inside
        for operand in op.operands
        if isinstance(operand.owner, Operation) and (is_splat(operand) or isinstance(operand.owner, graph.IotaOp))
    }
    results = results_of(group, copied)
    if not results:
        return _UNUSED
    if sizes := _untold(inside, results):
        text = f"no array that the kernel would take says how large {', '.join(map(str, sizes))} is"
        return Reason(text, "pass an array that has this size", is_limit=True)
    try:
        space = space_of(inside | sources, results)
    except UnfitError as unfit:
        return Reason(unfit.message, unfit.hint, unfit.is_limit)
    if not _are_boxes(space, results):
        return _NO_BOXES
    return _not_worth(space, inside, results) or space


def _are_boxes(space: Space, results: list[SSAValue]) -> bool:
    """Whether tiles of all results are boxes of them: no quotients of what goes along a tile say where they lie."""
    indices = [index for value in results for index in space.coordinates[value]]
    if all(isinstance(atom, Var) for index in indices for atom, _ in index.terms):
        return True
    axes, _ = tile_axes(space, choose_block(space, results), results, None)
    return all(index.is_affine_in(axes) for index in indices)


def _untold(ops: set[Operation], results: list[SSAValue]) -> list[Size]:
    """The sizes in a kernel of these ops that its arguments do not tell."""
    values = {value for op in ops for value in (*op.operands, *op.results)}
    made = {value for value in values if value.owner in ops or is_splat(value) or isinstance(value.owner, graph.IotaOp)}
    return untold(values, (values - made) | set(results))


def _not_worth(space: Space, ops: set[Operation], results: list[SSAValue]) -> Reason | None:
    """Why one kernel would take longer: a reduction done again for blocks of a variable that its result is free of."""
    around = {var for var in space.variables if var not in space.rows and var.extent != 1}
    for op in ops:
        if isinstance(op, FOLDS) and folded_extents(op):
            used = {var for index in space.coordinates[op.results[0]] for var in index.variables()}
            if not around <= used:
                return _AGAIN
    # One program instance would do it all, again and again.
    return None if around or len(space.rows) < 2 or not _depends(space, results) else _ALONE


def _depends(space: Space, results: list[SSAValue]) -> bool:
    """Whether a result goes along what is folded."""
    found = (var for value in results for index in space.coordinates[value] for var in index.variables())
    return any(var in space.rows for var in found)
