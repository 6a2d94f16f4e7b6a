"""Pipeline states that move in step: equal ones become one, and one that is always the next is derived.

Every ring has a pipeline state (stage and phase), carried by all loops: two registers each. Most of them move in step.
The analysis assumes so for all that start in step, and takes back the assumptions that an iteration of the loop does
not bear out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace


def share_pipeline_states(function: tile.FuncOp) -> None:
    """Removes the pipeline states of loops and branches that follow from others."""
    found = _Steps()
    found.walk(function.body.block)
    for op, groups in found.groups.items():
        followers = {
            member.position: (group[0].position, member.ahead)
            for group in groups
            for member in group[1:]
            if member.ahead < 2
        }
        if followers and isinstance(op, scf.ForOp):
            _thin_loop(op, followers)
        elif followers and isinstance(op, scf.WhileOp):
            _thin_while(op, followers)
        elif followers and isinstance(op, scf.IfOp):
            _thin_branch(op, followers)
    _count_once(function.body.block, {})


SharePipelineStates = function_pass("share-pipeline-states", share_pipeline_states)


class _Distance(NamedTuple):
    """A pipeline state as so many advances behind another one."""

    base: Hashable
    offset: int


class _Member(NamedTuple):
    """A value that a loop or a branch carries, and its advances ahead of the first of its group."""

    position: int
    ahead: int


_Group = tuple[_Member, ...]


class _Steps:
    """The distances between pipeline states."""

    def __init__(self) -> None:
        self.distances: dict[SSAValue, _Distance] = {}
        self.groups: dict[Operation, list[_Group]] = {}
        """The states of loops and branches that move in step; inner ones first."""
        self._fresh = count()

    def walk(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case warp_groups.PipelineStateOp():
                    self.distances[op.result] = _Distance("start", 0)
                case warp_groups.AdvanceOp():
                    base, offset = self.distances[op.state]
                    self.distances[op.result] = _Distance(base, offset + 1)
                case scf.ForOp():
                    self._loop(op, op.iter_args, op.body.block, op.body.block.args[1:])
                case scf.WhileOp() if _hands_all_on(op):
                    self._loop(op, op.arguments, op.after_region.block, op.after_region.block.args)
                case scf.IfOp():
                    self._branch(op)
                case _:
                    for inner in (inner for region in op.regions for inner in region.blocks):
                        self._bind(inner.args, _single(inner.args))
                        self.walk(inner)
                    self._bind(op.results, _single(op.results))

    def _bind(self, values: Sequence[SSAValue], groups: Sequence[_Group]) -> None:
        for group in groups:
            base = next(self._fresh)
            for position, ahead in group:
                self.distances[values[position]] = _Distance(base, ahead)

    def _loop(self, op: Operation, initial: Sequence[SSAValue], inner: Block, arguments: Sequence[SSAValue]) -> None:
        groups = self._grouped([initial])
        while True:
            self._bind(arguments, groups)
            self.walk(inner)
            finer = [part for group in groups for part in self._borne_out(group, _ends(inner))]
            if len(finer) == len(groups):
                break
            groups = finer
        self._note(op, groups)

    def _borne_out(self, group: _Group, ends: Sequence[SSAValue]) -> Iterator[_Group]:
        """The members of a group that are still as far from each other at the end of an iteration."""
        parts: dict[Hashable, list[_Member]] = {}
        for member in group:
            base, offset = self.distances[ends[member.position]]
            parts.setdefault((base, offset - member.ahead), []).append(member)
        return map(_from_first, parts.values())

    def _branch(self, op: scf.IfOp) -> None:
        blocks = [inner for region in op.regions for inner in region.blocks]
        for inner in blocks:
            self.walk(inner)
        if op.results:
            self._note(op, self._grouped([_ends(inner) for inner in blocks]))

    def _grouped(self, ways: Sequence[Sequence[SSAValue]]) -> list[_Group]:
        """Groups of states whose distances are the same whichever branch is taken."""
        found: dict[Hashable, list[_Member]] = {}
        for position, values in enumerate(zip(*ways, strict=True)):
            type_ = values[0].type
            if isinstance(type_, warp_groups.PipelineStateType):
                distances = [self.distances[value] for value in values]
                apart = tuple((base, offset - distances[0].offset) for base, offset in distances)
                found.setdefault((type_.depth, apart), []).append(_Member(position, distances[0].offset))
        return [_from_first(group) for group in found.values()]

    def _note(self, op: Operation, groups: list[_Group]) -> None:
        self._bind(op.results, groups)
        # An inner loop is looked at again for each guess about the outer one: the last look counts.
        self.groups.pop(op, None)
        self.groups[op] = groups


def _hands_all_on(op: scf.WhileOp) -> bool:
    """Whether the test of a loop passes all its arguments to the body, and does nothing else with pipeline states."""
    test = op.before_region.block
    alone = all(
        argument.has_one_use() for argument in test.args if isinstance(argument.type, warp_groups.PipelineStateType)
    )
    return alone and tuple(_ends(test)[1:]) == tuple(test.args)


def _ends(block: Block) -> Sequence[SSAValue]:
    assert block.last_op is not None
    return block.last_op.operands


def _from_first(group: Sequence[_Member]) -> _Group:
    ordered = sorted(group, key=lambda member: member.ahead)
    return tuple(_Member(position, ahead - ordered[0].ahead) for position, ahead in ordered)


def _single(values: Sequence[SSAValue]) -> list[_Group]:
    """Every pipeline state in a group of its own."""
    return [
        (_Member(position, 0),)
        for position, value in enumerate(values)
        if isinstance(value.type, warp_groups.PipelineStateType)
    ]


# Writing

_Followers = dict[int, tuple[int, int]]
"""By position: the position that a pipeline state follows, and its advances ahead of it."""


def _followed(leader: SSAValue, ahead: int, made: list[Operation]) -> SSAValue:
    if not ahead:
        return leader
    made.append(warp_groups.AdvanceOp(leader))
    return made[-1].results[0]


def _results(op: Operation, new: Operation, followers: _Followers) -> None:
    """Replaces an op by one that gives fewer pipeline states."""
    kept = iter(new.results)
    by_position: dict[int, SSAValue] = {
        position: next(kept) for position in range(len(op.results)) if position not in followers
    }
    made: list[Operation] = [new]
    for position, (leader, ahead) in followers.items():
        by_position[position] = _followed(by_position[leader], ahead, made)
    replace(op, made, [by_position[position] for position in range(len(op.results))])


def _without(values: Sequence[SSAValue], followers: _Followers) -> list[SSAValue]:
    return [value for position, value in enumerate(values) if position not in followers]


def _shorten(block: Block, followers: _Followers) -> None:
    """Removes followers from the values that a block yields."""
    end = block.last_op
    assert end is not None
    replace(end, [scf.YieldOp(*_without(end.operands, followers))], [])


def _thin_body(body: Block, arguments: Sequence[BlockArgument], followers: _Followers) -> None:
    """Removes followers from the arguments and the yielded values of a loop's body."""
    made: list[Operation] = []
    for position, (leader, ahead) in followers.items():
        arguments[position].replace_all_uses_with(_followed(arguments[leader], ahead, made))
    first = body.first_op
    assert first is not None
    body.insert_ops_before(made, first)
    _shorten(body, followers)
    for position in followers:
        body.erase_arg(arguments[position])


def _thin_loop(op: scf.ForOp, followers: _Followers) -> None:
    _thin_body(op.body.block, op.body.block.args[1:], followers)
    new = scf.ForOp(op.lb, op.ub, op.step, _without(op.iter_args, followers), op.detach_region(0))
    new.attributes.update(op.attributes)
    _results(op, new, followers)


def _thin_while(op: scf.WhileOp, followers: _Followers) -> None:
    test, body = op.before_region.block, op.after_region.block
    _thin_body(body, body.args, followers)
    end, arguments = test.last_op, list(test.args)
    assert isinstance(end, scf.ConditionOp)
    replace(end, [scf.ConditionOp(end.condition, *_without(arguments, followers))], [])
    for position in followers:
        test.erase_arg(arguments[position])
    types = [argument.type for argument in body.args]
    regions = [op.detach_region(region) for region in list(op.regions)]
    _results(op, scf.WhileOp(_without(op.arguments, followers), types, *regions), followers)


def _thin_branch(op: scf.IfOp, followers: _Followers) -> None:
    regions: list[Region] = [op.detach_region(region) for region in list(op.regions)]
    for region in regions:
        _shorten(region.block, followers)
    types = [result.type for position, result in enumerate(op.results) if position not in followers]
    _results(op, scf.IfOp(op.cond, types, regions[0], regions[1]), followers)


def _count_once(block: Block, known: dict[SSAValue, SSAValue]) -> None:
    """Removes a `pipe.advance` that repeats an earlier one."""
    for op in list(block.ops):
        if isinstance(op, warp_groups.AdvanceOp):
            if op.state in known:
                replace(op, [], [known[op.state]])
            else:
                known[op.state] = op.result
            continue
        for inner in (inner for region in op.regions for inner in region.blocks):
            _count_once(inner, dict(known))
