"""`sink-into-branches`: moves ops on the tiles of an `scf.if` into its branches, so that no tile leaves it.

Asynchronous dots need to know every reader of their accumulators: one that comes from either branch of an `scf.if` has
readers that no branch sees. Ops behind the `scf.if` that rest on its tiles move into both branches.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from tessera.ir.pipe.warp_groups import ConsumerReleaseOp
from tessera.ir.tile import dialect as tile
from tessera.transforms.core.rewriting import insert_before


@dataclass(frozen=True)
class SinkIntoBranches(ModulePass):
    """The pass, for every tile function."""

    name = "sink-into-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, tile.FuncOp)]:
            sink_into_branches(function)


def sink_into_branches(function: tile.FuncOp) -> None:
    """Moves what rests on the tiles of branches into them, wherever nothing else needs it."""
    for op in [inner for inner in function.body.walk() if isinstance(inner, scf.IfOp)]:
        found = _rest(op)
        if found is not None:
            rest, front = found
            for other in front:
                other.detach()
                Rewriter.insert_op(other, InsertPoint.before(op))
            _move(op, rest)


def _rest(op: scf.IfOp) -> tuple[list[Operation], list[Operation]] | None:
    """The ops behind an `scf.if` that go into its branches, and those that go in front of it; in order.

    Its tiles reach the former, or they read memory for such; the latter are what those need besides. None where there
    are none, or they cannot move: because they end the block, would overtake what touches memory, or others need them.
    """
    reached: set[SSAValue] = {result for result in op.results if isinstance(result.type, TensorType)}
    rest: list[Operation] = []
    passed: list[Operation] = []
    behind = op.next_op
    while behind is not None:
        if not reached.isdisjoint(value for inner in behind.walk() for value in inner.operands):
            if behind.next_op is None or behind.regions:
                return None
            rest.append(behind)
            reached.update(behind.results)
        else:
            passed.append(behind)
        behind = behind.next_op
    if not rest:
        return None
    wanted = _wanted(rest, [one for one in passed if one.is_before_in_block(rest[-1])])
    if wanted is None:
        return None
    held, inside, front = set(op.results), list[Operation](), list[Operation]()
    for one in wanted:
        # What is read is read as late as before; and what is made of numbers from the branches cannot be in front.
        if isinstance(one, tile.LoadOp) or not held.isdisjoint(one.operands):
            inside.append(one)
            held.update(one.results)
        else:
            front.append(one)
    moved = {*rest, *inside}
    if any(use.operation not in moved for one in inside for result in one.results for use in result.uses):
        return None
    block = op.parent_block()
    assert block is not None
    return [one for one in block.ops if one in moved], front


def _wanted(rest: list[Operation], passed: list[Operation]) -> list[Operation] | None:
    """The ops among `passed` that `rest` needs, which move with it; None where memory forbids it."""
    needed = {value for one in rest for value in one.operands}
    wanted: list[Operation] = []
    for other in reversed(passed):
        is_plain = is_side_effect_free(other) and not other.regions
        if (is_plain or isinstance(other, tile.LoadOp)) and not needed.isdisjoint(other.results):
            needed.update(other.operands)
            wanted.insert(0, other)
        elif not is_plain and not isinstance(other, ConsumerReleaseOp):
            return None
    return wanted


def _move(op: scf.IfOp, rest: list[Operation]) -> None:
    """Writes the `scf.if` anew, with its rest in both branches and without results that are tiles."""
    kept = [index for index, result in enumerate(op.results) if not isinstance(result.type, TensorType)]
    for region in op.regions:
        block = region.block
        end = block.last_op
        assert isinstance(end, scf.YieldOp)
        values: dict[SSAValue, SSAValue] = dict(zip(op.results, end.operands, strict=True))
        made = [inner.clone(values) for inner in rest]
        yields = scf.YieldOp(*(end.operands[index] for index in kept))
        block.insert_ops_before([*made, yields], end)
        end.detach()
        end.erase()
    for inner in reversed(rest):
        inner.detach()
        inner.erase()
    branches = [op.detach_region(region) for region in tuple(op.regions)]
    made_if = scf.IfOp(op.cond, [op.results[index].type for index in kept], branches[0], branches[1])
    made_if.attributes.update(op.attributes)
    insert_before(op, [made_if])
    for index, result in zip(kept, made_if.results, strict=True):
        result.name_hint = op.results[index].name_hint
        op.results[index].replace_all_uses_with(result)
    op.detach()
    op.erase()
