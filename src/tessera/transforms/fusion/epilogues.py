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
from tessera.transforms.core.block_order import number_in_block
from tessera.transforms.core.index_digits import PULL, PUSH, Map, plain, pull, push
from tessera.transforms.fusion.fusion_refusals import AS_KERNEL, NOT_AT_ONCE, FusionRefusals, Reason, named
from tessera.transforms.fusion.region_tiles import is_count, refusal
from tessera.transforms.fusion.regions import enclosable, is_splat, users_of

Extents = dict[int, Size]
"""The sizes of the axes of an iteration along which a program instance has blocks."""

# What a kernel over rows computes by itself from the value it reads: no reason to store it beforehand.
_READ_LATER = (graph.EwOp, graph.ReduceOp, graph.BroadcastOp)
_MOST_RESULTS = 3
_TILE_AXES = 2

_MAPPED = Reason(
    "an arrangement of elements stands between, which takes blocks of the result apart",
    "compute first, and arrange the elements then",
    is_limit=True,
)
_TWO_PLACES = Reason("it needs the result at two places, and a program instance has one of them")
_NOT_WHOLE = Reason(
    "an operand is read at places that are no whole blocks", "arrange its elements beforehand", is_limit=True
)
_ROWS = Reason("a reduction needs elements of the result that other program instances have")
_ELSEWHERE = Reason("what is computed on the way is needed elsewhere, too")
_MANY_RESULTS = Reason(f"the kernel would have more than {_MOST_RESULTS} results", AS_KERNEL, is_limit=True)
_READ_AGAIN = Reason("others compute with what is in between, which is not kept in memory for them")


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
    start = number_in_block(first)
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
        if number_in_block(op) > start:
            queue += [operand for inner in op.walk() for operand in inner.operands]
    return False


def follow(work: EpilogueWork, block: Block, refused: dict[Operation, Reason], *, maps: bool) -> Iterator[EpilogueWork]:
    """Ever more of what is computed of a work's values: a longer one after each op that could be taken.

    With `maps`, index maps that keep all elements are taken, too: results are stored where they say. What cannot be
    taken is `refused`.
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
            found = _unfit(op) or _beside(op, work, where, block)
            if isinstance(found, Reason):
                refused[op] = found
                continue
            after: Map | None = where
        elif type(op) in PUSH:
            found, after = _Beside(), push(op, where) if maps else None
            if after is None or not is_box(after, graph_type(op.results[0]).shape, work.blocks):
                refused |= {user: _MAPPED for user in users_of(op, block) if isinstance(user, graph.EwOp)}
                continue
        else:
            if isinstance(op, graph.ReduceOp):
                refused[op] = _ROWS
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


def _unfit(op: graph.EwOp) -> Reason | None:
    error = refusal(op)
    return None if error is None else Reason(error.message, error.hint, is_limit=True)


def _beside(op: graph.EwOp, work: EpilogueWork, where: Map, block: Block) -> _Beside | Reason:
    found = _Beside()
    return _reach_all(op, where, work, block, found) or found


def _reach_all(op: graph.EwOp, where: Map, work: EpilogueWork, block: Block, found: _Beside) -> Reason | None:
    reasons = (_reach(operand, where, work, block, found) for operand in op.operands_)
    return next((reason for reason in reasons if reason is not None), None)


def _reach(value: SSAValue, where: Map, work: EpilogueWork, block: Block, found: _Beside) -> Reason | None:
    """Why a value cannot be had at a position, neither from memory nor from what the work has; None where it can."""
    if value in work.positions:
        return None if plain(work.positions[value]) == plain(where) else _TWO_PLACES
    op = value.owner
    if not isinstance(op, Operation) or not depends_on(value, work.ops, block, work.ops[0]):
        sides = side_ops(value, where, work.blocks, block)
        found.copied |= dict.fromkeys(sides or ())
        return None if sides is not None else _NOT_WHOLE
    if type(op) in PULL and op.parent is block:
        inner = pull(op, where)
        reason = _NOT_WHOLE if inner is None else _reach(op.operands[0], inner, work, block, found)
    elif isinstance(op, graph.EwOp) and op.parent is block:
        reason = _unfit(op) or _reach_all(op, where, work, block, found)
    else:
        reason = Reason(f"another operand needs all of the result, by way of {named(op)}")
    if reason is None:
        found.members[op] = None
    return reason


def results_of(ops: Collection[Operation], block: Block) -> list[SSAValue]:
    """The values of some ops that others use."""
    members = set(ops)
    return [
        result
        for op in ops
        for result in op.results
        if any(block.find_ancestor_op_in_block(use.operation) not in members for use in result.uses)
    ]


def _not_paying(work: EpilogueWork, block: Block) -> Reason | None:
    """Why not to stop here. It is worth it with one result, or with more if each is needed in memory anyhow."""
    results = results_of(work.ops, block)
    if not all(value in work.positions for value in results):
        return _ELSEWHERE
    if len(results) == 1:
        return None
    if len(results) > _MOST_RESULTS:
        return _MANY_RESULTS
    return None if all(_is_stored(value, work, block) for value in results) else _READ_AGAIN


def _is_stored(value: SSAValue, work: EpilogueWork, block: Block) -> bool:
    owner = value.owner
    assert isinstance(owner, Operation)
    outside = [user for user in users_of(owner, block) if user not in work.ops]
    return any(not isinstance(user, _READ_LATER) for user in outside)


def at_once(work: EpilogueWork) -> Reason | None:
    """Why the ops of a work are no one kernel by where they stand."""
    return None if enclosable(work.ops) else NOT_AT_ONCE


def longest(
    start: EpilogueWork,
    block: Block,
    refusals: FusionRefusals,
    *,
    maps: bool = True,
    obstacle: Callable[[EpilogueWork], Reason | None] = at_once,
) -> EpilogueWork:
    """The most that is worth taking behind the last op of a work, which is left as it is."""
    best, dot = start, next(op for op in reversed(start.ops) if isinstance(op, graph.MatmulOp))
    unpaid: dict[Operation, Reason] = {}
    refused: dict[Operation, Reason] = {}
    for work in follow(start.prefix(len(start.ops), start.copied), block, refused, maps=maps):
        reason = _not_paying(work, block) or obstacle(work)
        if reason is None:
            best = work
            unpaid.clear()
        elif isinstance(work.ops[-1], graph.EwOp) and not unpaid:
            unpaid[work.ops[-1]] = reason
    refusals.take(best.ops)
    for op, reason in (refused | unpaid).items():
        if op not in best.ops:
            refusals.refuse_epilogue([dot, op], reason, op)
    return best
