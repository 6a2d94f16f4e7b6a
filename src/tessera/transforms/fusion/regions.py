"""Regions: how ops of a block are put into one, and when that may be done."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tessera.errors import CompileError
from tessera.ir.common.effects import effects_within
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.shapes.expr import Size, dim
from tessera.transforms.core.block_order import in_order, moved, number_in_block
from tessera.transforms.core.index_maps import is_told

_SUBTRACT = ("matmul", "online")
"""Kinds of regions whose kernels tell a size by what is left of a sum."""


def is_splat(value: SSAValue) -> bool:
    """Whether a value is a constant of one number: every region that uses it makes it by itself."""
    owner = value.owner
    if not isinstance(owner, graph.ConstantOp):
        return False
    return len(owner.value.data) == graph_type(owner.result).dtype.storage.itemsize


def free_copies(ops: Collection[Operation]) -> list[Operation]:
    """The splats and counts that `ops` use: copying them in costs less than reading them, so no region takes them."""
    found: dict[Operation, None] = {}
    for op in ops:
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and (is_splat(operand) or isinstance(owner, graph.IotaOp)):
                found[owner] = None
    return [op for op in found if op not in ops]


def users_of(op: Operation, block: Block) -> Iterator[Operation]:
    """The ops of a block that use a result of one of them, themselves or in blocks they hold."""
    for result in op.results:
        for use in result.uses:
            user = block.find_ancestor_op_in_block(use.operation)
            if user is not None:
                yield user


def results_of(ops: Collection[Operation], copied: Collection[Operation]) -> list[SSAValue]:
    """The values of ops that others use. Copied ops that others use stay where they are, and use what they used."""
    members, copies = set(ops), set(copied)
    block, group = _in_order(members)
    staying: set[Operation] = set()
    waiting = True
    while waiting:
        waiting = False
        for op in copies - staying:
            owner = op.parent
            assert owner is not None
            users = {
                user
                for result in op.results
                for user in (owner.find_ancestor_op_in_block(use.operation) for use in result.uses)
            }
            if any(user not in members and (user not in copies or user in staying) for user in users):
                staying.add(op)
                waiting = True
    inside = members | (copies - staying)
    return [
        result
        for op in group
        for result in op.results
        if any(block.find_ancestor_op_in_block(use.operation) not in inside for use in result.uses)
    ]


def enclosable(ops: Collection[Operation]) -> bool:
    """Whether the ops of a block can run at one moment of it: nothing else stands between them that must."""
    block, group = _in_order(ops)
    return _insertion_point(block, group) is not None


def make_room(ops: Collection[Operation]) -> Operation:
    """The op in front of which something may replace ops of a block: all they need is there by then.

    Ops between them that use them are moved behind that point.
    """
    block, group = _in_order(ops)
    found = _insertion_point(block, group)
    if found is None:
        raise CompileError(
            "these ops are not one region: something between them uses one and is used by another, or has effects",
            hint="ask enclosable first, and take fewer ops",
        )
    anchor, displaced = found
    moved(displaced)
    for op in displaced:
        op.detach()
        block.insert_op_before(op, anchor)
    return displaced[0] if displaced else anchor


def enclose(
    ops: Collection[Operation], kind: str, config: Config, *, copied: Collection[Operation] = (), counts: bool = True
) -> schedule.RegionOp:
    """Moves ops of one block into a region that replaces them.

    Values from outside become its inputs and values used outside its results. Splats and, unless told otherwise,
    counts (`graph.iota`) are copied in, and so are the ops named by `copied`, which stay where they were as long as
    others use them. Where none of these inputs tells how large something inside is, an argument of a block around the
    region that does becomes one, too.
    """
    block, group = _in_order(ops)
    members = [*copied, *group]
    names = {*(op for op in free_copies(members) if counts or isinstance(op, graph.ConstantOp)), *copied}
    anchor = make_room(group)
    inside = {*names, *group}
    # Copies come first, in the order in which they stand; those of blocks around this one stand before all of it.
    copies = sorted(names, key=lambda op: (op.parent is block, _index(op)))
    body_ops = [op for op in copies if op.parent is not block]
    body_ops += in_order(op for op in inside if op.parent is block)
    inputs: dict[SSAValue, None] = {}
    for op in body_ops:
        inputs |= dict.fromkeys(v for v in op.operands if v.owner not in inside)
    results = results_of(group, names)
    values = {value for op in body_ops for value in (*op.operands, *op.results)}
    if untold(values, [*inputs, *results], sums=kind in _SUBTRACT):
        inputs |= dict.fromkeys(_arguments_telling(values, [*inputs, *results], block))
    region = schedule.RegionOp(kind, config, list(inputs), [result.type for result in results])
    region.location = group[-1].location
    body = region.body.block
    mapped: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
    for value, argument in zip(inputs, body.args, strict=True):
        argument.name_hint = value.name_hint
    for op in body_ops:
        body.add_op(op.clone(value_mapper=mapped))
    end = schedule.YieldOp([mapped[result] for result in results])
    end.location = group[-1].location
    body.add_op(end)
    block.insert_op_before(region, anchor)
    for old, new in zip(results, region.results_, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for op in reversed(group):
        op.detach()
        op.erase()
    for op in reversed(copies):
        erase_unused(op)
    return region


def untold(values: Collection[SSAValue], known: Collection[SSAValue], *, sums: bool = False) -> list[Size]:
    """The sizes of some values that those of others, which are known, do not tell.

    With `sums`, a symbol is told by a sum whose other symbols are, such as T by S + T and S.
    """
    sizes = {dim(extent) for value in known for extent in graph_type(value).shape}
    if sums:
        alone = {str(one) for one in sizes if str(one).isidentifier()}
        sizes |= {dim(rest) for one in sizes for rest in one.symbols if dim(one - rest).symbols <= alone - {rest}}
    asked = {extent for value in values for extent in graph_type(value).shape if not isinstance(extent, int)}
    return sorted((extent for extent in asked if not is_told(extent, sizes)), key=str)


def _arguments_telling(values: Collection[SSAValue], known: Sequence[SSAValue], block: Block) -> list[SSAValue]:
    """Arguments of a block, and of those around it, that tell the sizes which known values do not."""
    found: list[SSAValue] = []
    missing, around = untold(values, known), block
    while missing:
        for value in around.args:
            left = untold(values, [*known, *found, value])
            if len(left) < len(missing):
                found.append(value)
                missing = left
        op = around.parent_op()
        if op is None or op.parent is None:
            break
        around = op.parent
    return found


def erase_unused(op: Operation) -> None:
    """Removes a pure op that has no uses any more."""
    if all(result.first_use is None for result in op.results):
        op.detach()
        op.erase()


def _index(op: Operation) -> int:
    return 0 if op.parent is None else number_in_block(op)


def _in_order(ops: Collection[Operation]) -> tuple[Block, list[Operation]]:
    wanted = set(ops)
    block = next(iter(wanted)).parent
    assert block is not None, "ops of a region stand in a block"
    assert all(op.parent is block for op in wanted), "ops of a region stand in one block"
    return block, in_order(wanted)


def _insertion_point(block: Block, group: list[Operation]) -> tuple[Operation, list[Operation]] | None:
    """The op in front of which a region of the group may stand, and the ops that must come behind it.

    Those are pure ops between the group's that use what it makes. There is no insertion point where one of them is
    needed by the group itself, or has effects: those keep their order.
    """
    members = set(group)
    last = group[-1].next_op
    assert last is not None, "a block ends with a terminator, which no region takes"
    behind: dict[Operation, None] = {}
    op: Operation | None = group[0]
    while op is not None and op is not last:
        needs = {
            block.find_ancestor_op_in_block(owner)
            for inner in op.walk()
            for operand in inner.operands
            if isinstance(owner := operand.owner, Operation)
        }
        if op in members:
            if any(need in behind for need in needs):
                return None
        elif any(need in members or need in behind for need in needs):
            if effects_within([op]) != set():
                # It has to stay where it is: the region stands in front of it, if all it needs does.
                return _in_front(block, op, group)
            behind[op] = None
        op = op.next_op
    return last, list(behind)


def _in_front(block: Block, limit: Operation, group: list[Operation]) -> tuple[Operation, list[Operation]] | None:
    """The insertion point in front of the first user of a group, if everything the group needs stands before that."""
    members = set(group)
    first = next(op for op in block.ops if op not in members and any(op in users_of(m, block) for m in group))
    before = set[Operation]()
    for op in block.ops:
        if op is first:
            break
        before.add(op)
    for op in group:
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner.parent is block and owner not in before | members:
                return None
    return first, []
