"""Epilogues: work that may be computed with a matmul, elementwise ops on its result, and what those read.

All of it happens while a block of the result is still in registers. An analysis: it looks at a block of graph ops and
says which of them a region around a matmul, or around a chain of two, may take. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Shape, Size
from tessera.transforms.core.index_digits import PULL, PUSH, Map, plain, pull, push
from tessera.transforms.fusion.region_tiles import is_count, refusal
from tessera.transforms.fusion.regions import is_splat, users_of

Extents = dict[int, Size]
"""The sizes of the axes of an iteration along which a program instance has blocks."""

# What a kernel over rows computes by itself from the value it reads: no reason to store it beforehand.
_READ_LATER = (graph.EwOp, graph.ReduceOp, graph.BroadcastOp)
_MOST_RESULTS = 3
_TILE_AXES = 2


def is_whole(where: Map, blocks: Extents) -> bool:
    """Whether no block of coordinates comes apart: then a program instance finds its tile with any block."""
    digits = [digit for index in where for digit, _ in index.terms if digit.axis in blocks]
    return all(digit.divisor == 1 and digit.size == blocks[digit.axis] for digit in digits)


def is_box(where: Map, shape: Shape, blocks: Extents) -> bool:
    """Whether a tile is a box of an array: an axis of the array for each of the tile's, the last among them.

    Tensor maps copy boxes, and vectors are loaded along the last axis.
    """
    if not is_whole(where, blocks):
        return False
    seen: list[int] = []
    for index, extent in zip(where, shape, strict=True):
        found = [(digit, factor) for digit, factor in index.terms if digit.axis in blocks]
        if len(found) > 1:
            return False
        for digit, factor in found:
            alone = len(index.terms) == 1 and index.constant == 0 and digit.size == extent
            if factor != 1 or not (alone or isinstance(digit.size, int)):
                return False
            seen.append(digit.axis)
    return len(seen) == len(set(seen)) and (not shape or bool(where[-1].axes & set(blocks)) or shape[-1] == 1)


@dataclass
class EpilogueWork:
    """Ops that a region takes: those on the way from its matmul, and those beside it, some of them as copies."""

    blocks: Extents
    ops: list[Operation] = field(default_factory=list[Operation])
    copied: dict[Operation, None] = field(default_factory=dict[Operation, None])
    positions: dict[SSAValue, Map] = field(default_factory=dict[SSAValue, Map])

    def prefix(self, count: int, copied: dict[Operation, None]) -> EpilogueWork:
        return EpilogueWork(self.blocks, self.ops[:count], dict(copied), dict(self.positions))


def side_ops(value: SSAValue, where: Map, blocks: Extents, block: Block) -> list[Operation] | None:
    """The ops that have to be computed anew for a value from elsewhere, operands first; None where it cannot be had.

    Index maps, counts and splats cost nothing. Elementwise work is taken along if it has no other use, or if it is on
    less than what a program instance has a block of.
    """
    owner = value.owner
    taken: list[Operation] | None = None
    if isinstance(owner, Operation) and owner.parent is block:
        if isinstance(owner, graph.IotaOp) or is_splat(value):
            return [owner]
        if is_count(owner):
            return [*(op for op in (owner.operands[0].owner,) if isinstance(op, Operation)), owner]
        if type(owner) in PULL:
            inner = pull(owner, where)
            if inner is not None:
                taken = side_ops(owner.operands[0], inner, blocks, block)
        elif isinstance(owner, graph.EwOp) and refusal(owner) is None and _is_cheap(owner, where, blocks):
            found = [side_ops(operand, where, blocks, block) for operand in owner.operands_]
            if all(one is not None for one in found):
                taken = [op for one in found if one is not None for op in one]
        if taken is not None and not _goes_backwards(owner, where, taken, blocks):
            return [*dict.fromkeys(taken), owner]
    return [] if is_whole(where, blocks) else None


def _goes_backwards(owner: Operation, where: Map, taken: list[Operation], blocks: Extents) -> bool:
    """Whether reading behind an index map is worse than reading what it made, which the host has for nothing."""
    if taken or not isinstance(owner, graph.ReshapeOp) or not is_whole(where, blocks):
        return False
    inner = pull(owner, where)
    outer_shape, inner_shape = graph_type(owner.result).shape, graph_type(owner.operand).shape
    return is_box(where, outer_shape, blocks) and (inner is None or not is_box(inner, inner_shape, blocks))


def _is_cheap(op: graph.EwOp, where: Map, blocks: Extents) -> bool:
    found = {axis for index in where for axis in index.axes} & set(blocks)
    return len(found) < _TILE_AXES or len(list(op.result.uses)) == 1 or not _reads(op.result)


def _reads(value: SSAValue) -> bool:
    """Whether a value takes more than counting: something is read for it."""
    op = value.owner
    if isinstance(op, graph.IotaOp) or is_splat(value) or (isinstance(op, Operation) and is_count(op)):
        return False
    if isinstance(op, Operation) and (isinstance(op, graph.EwOp) or type(op) in PULL):
        return any(_reads(operand) for operand in op.operands)
    return True


def depends_on(value: SSAValue, members: Collection[Operation], block: Block, first: Operation) -> bool:
    """Whether a value is made, by way of others, of what some ops give; `first` is the earliest of them."""
    start = block.get_operation_index(first)
    seen: set[Operation] = set()
    queue = [value]
    while queue:
        owner = queue.pop().owner
        op: Operation | None = block.find_ancestor_op_in_block(owner) if isinstance(owner, Operation) else None
        if op is None or op in seen:
            continue
        if op in members:
            return True
        seen.add(op)
        if block.get_operation_index(op) > start:
            queue += [operand for inner in op.walk() for operand in inner.operands]
    return False


def follow(work: EpilogueWork, block: Block, *, maps: bool) -> Iterator[EpilogueWork]:
    """Ever more of what is computed of a work's values: a longer one after each op that could be taken.

    With `maps`, index maps that keep all elements are taken, too: results are stored where they say.
    """
    first = work.ops[0]
    following = first.next_op
    while following is not None:
        op, following = following, following.next_op
        mains = [operand for operand in op.operands if operand in work.positions]
        if not mains or op in work.ops or len(op.results) != 1:
            continue
        where = work.positions[mains[0]]
        if isinstance(op, graph.EwOp):
            found = _beside(op, work, where, block) if refusal(op) is None else None
            if found is None:
                continue
            after: Map | None = where
        elif maps and type(op) in PUSH:
            found, after = _Beside(), push(op, where)
            if after is None or not is_box(after, graph_type(op.results[0]).shape, work.blocks):
                continue
        else:
            continue
        work.copied |= found.copied
        work.ops += [*found.members, op]
        work.positions[op.results[0]] = after
        yield work.prefix(len(work.ops), work.copied)


@dataclass
class _Beside:
    """The other operands of an op on the way: ops to copy, and ops on numbers of rows to take along."""

    copied: dict[Operation, None] = field(default_factory=dict[Operation, None])
    members: dict[Operation, None] = field(default_factory=dict[Operation, None])


def _beside(op: graph.EwOp, work: EpilogueWork, where: Map, block: Block) -> _Beside | None:
    found = _Beside()
    taken = all(_reach(operand, where, work, block, found) for operand in op.operands_)
    return found if taken else None


def _reach(value: SSAValue, where: Map, work: EpilogueWork, block: Block, found: _Beside) -> bool:
    """Whether a value can be had at a position: from memory, or from what the work has already."""
    if value in work.positions:
        return plain(work.positions[value]) == plain(where)
    op = value.owner
    if not isinstance(op, Operation) or not depends_on(value, work.ops, block, work.ops[0]):
        sides = side_ops(value, where, work.blocks, block)
        found.copied |= dict.fromkeys(sides or ())
        return sides is not None
    taken = False
    if type(op) in PULL and op.parent is block:
        inner = pull(op, where)
        taken = inner is not None and _reach(op.operands[0], inner, work, block, found)
    elif isinstance(op, graph.EwOp) and refusal(op) is None and op.parent is block:
        taken = all(_reach(operand, where, work, block, found) for operand in op.operands_)
    if taken:
        found.members[op] = None
    return taken


def results_of(ops: Collection[Operation], block: Block) -> list[SSAValue]:
    """The values of some ops that others use."""
    members = set(ops)
    return [
        result
        for op in ops
        for result in op.results
        if any(block.find_ancestor_op_in_block(use.operation) not in members for use in result.uses)
    ]


def pays(work: EpilogueWork, block: Block) -> bool:
    """Whether it is worth stopping here: one result, or more if each is needed in memory anyhow."""
    results = results_of(work.ops, block)
    if not all(value in work.positions for value in results):
        return False
    if len(results) == 1:
        return True
    return len(results) <= _MOST_RESULTS and all(_is_stored(value, work, block) for value in results)


def _is_stored(value: SSAValue, work: EpilogueWork, block: Block) -> bool:
    owner = value.owner
    assert isinstance(owner, Operation)
    outside = [user for user in users_of(owner, block) if user not in work.ops]
    return any(not isinstance(user, _READ_LATER) for user in outside)


def longest(
    steps: Iterator[EpilogueWork], start: EpilogueWork, block: Block, allowed: Callable[[EpilogueWork], bool]
) -> EpilogueWork:
    """The most that is worth taking."""
    best = start
    for work in steps:
        if pays(work, block) and allowed(work):
            best = work
    return best
