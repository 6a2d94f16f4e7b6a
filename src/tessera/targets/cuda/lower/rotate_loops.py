"""The first operands of a turn are read in the turn before: no turn begins with waiting.

A loop with one product to a turn (see `unroll-rings`) waits for its copies at the top, reads its first operands out of
shared memory and only then multiplies. Here the wait moves in front of the last products of the turn before, and the
reads with it: while operands come, the tensor cores are busy. Copies begin between products.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.tensor_cores import depth_step
from tessera.targets.cuda.lower.interleave_copies import part_of
from tessera.transforms.core.rewriting import adopt_location, insert_before, replace


@dataclass
class RotatedIteration:
    """One turn: its wait, its copies with their commit, its product and what that reads, and the rest."""

    wait: nv.WaitOp
    copies: list[Operation]
    product: nv.MmaOp
    left: nv.ReadOp
    right: nv.ReadOp
    others: list[Operation]

    def part(self, start: int, size: int) -> tuple[nv.ReadOp, nv.ReadOp]:
        return part_of(self.left, 1, start, size), part_of(self.right, 0, start, size)


def rotate_loops(function: nv.FuncOp) -> None:
    """Rewrites every loop of a function whose turns are such products, with slots that are numbers."""
    for loop in [op for op in function.walk() if isinstance(op, scf.ForOp)]:
        turns = _turns(loop.body.block)
        if turns is not None:
            _rotate(loop, turns)


def _turns(block: Block) -> list[RotatedIteration] | None:
    """The turns of a loop; None where one of them is not as it should be."""
    groups: list[list[Operation]] = []
    for op in block.ops:
        if isinstance(op, nv.WaitOp):
            groups.append([])
        elif op.regions or isinstance(op, nv.BarrierOp | nv.WriteOp):
            return None
        elif not groups:
            groups.append([])
        if groups:
            groups[-1].append(op)
    # What comes before the first wait belongs to the first turn.
    if len(groups) > 1 and not any(isinstance(op, nv.WaitOp) for op in groups[0]):
        groups[1] = [*groups[0], *groups[1]]
        del groups[0]
    turns = [_turn([op for op in group if op is not block.last_op]) for group in groups]
    found = [turn for turn in turns if turn is not None]
    return found if len(found) == len(turns) > 1 else None


def _turn(ops: list[Operation]) -> RotatedIteration | None:
    waits = [op for op in ops if isinstance(op, nv.WaitOp)]
    copies: list[Operation] = [op for op in ops if isinstance(op, nv.CopyAsyncOp | nv.CommitOp)]
    products = [op for op in ops if isinstance(op, nv.MmaOp)]
    if len(waits) != 1 or len(products) != 1 or sum(isinstance(op, nv.CommitOp) for op in copies) != 1:
        return None
    (product,) = products
    left, right = product.a.owner, product.b.owner
    if not isinstance(left, nv.ReadOp) or not isinstance(right, nv.ReadOp):
        return None
    depth, step = tile_type(product.a).get_shape()[1], depth_step(tile_dtype(product.a))
    alone = all(len(list(read.result.uses)) == 1 and _is_fixed(read.shared) for read in (left, right))
    if not alone or depth % step or depth < 3 * step:
        return None
    special = {waits[0], product, left, right, *copies}
    return RotatedIteration(waits[0], copies, product, left, right, [op for op in ops if op not in special])


def _is_fixed(shared: SSAValue) -> bool:
    """Whether shared memory is a slot whose number is written down."""
    slot = shared.owner
    return isinstance(slot, nv.SlotOp) and isinstance(slot.number.owner, arith.ConstantOp)


def _fixed_again(shared: SSAValue, made: list[Operation]) -> SSAValue:
    """The same slot, once more: where it is asked for may lie in front of the first."""
    slot = shared.owner
    assert isinstance(slot, nv.SlotOp)
    number = slot.number.owner
    assert isinstance(number, arith.ConstantOp)
    again = number.clone()
    made += [again, nv.SlotOp(slot.ring, again.result)]
    return made[-1].results[0]


def _rotate(loop: scf.ForOp, turns: list[RotatedIteration]) -> None:
    source = loop.body.block
    step = depth_step(tile_dtype(turns[0].product.a))
    ahead: list[Operation] = [turns[0].wait.clone()]
    first = _first(turns[0], step, ahead)
    adopt_location(ahead, loop)
    insert_before(loop, ahead)
    carried = [source.insert_arg(read.type, len(source.args)) for read in first]
    end = source.last_op
    assert end is not None
    operands: list[SSAValue] = list(carried)
    for place, turn in enumerate(turns):
        operands = _write(source, end, turn, turns[(place + 1) % len(turns)], operands, step)
    replace(end, [scf.YieldOp(*end.operands, *operands)], [])
    for turn in turns:
        for op in (turn.product, turn.left, turn.right, turn.wait):
            op.detach()
            op.erase()
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *first], _taken(loop))
    made.attributes.update(loop.attributes)
    replace(loop, [made], list(made.results[: len(loop.results)]))


def _taken(loop: scf.ForOp) -> Region:
    return loop.detach_region(0)


def _first(turn: RotatedIteration, step: int, made: list[Operation]) -> list[SSAValue]:
    """The operands of a turn's first products."""
    found: list[SSAValue] = []
    for read in turn.part(0, step):
        read.operands[0] = _fixed_again(read.shared, made)
        made.append(read)
        found.append(read.result)
    return found


def _write(
    block: Block,
    end: Operation,
    turn: RotatedIteration,
    following: RotatedIteration,
    operands: list[SSAValue],
    step: int,
) -> list[SSAValue]:
    """A turn at the end of the block; what it has read for the next one."""
    depth = tile_type(turn.product.a).get_shape()[1]
    made: list[Operation] = []
    for op in (*turn.others, *turn.copies):
        op.detach()
    made += turn.others
    total = turn.product.c
    made.append(nv.MmaOp(operands[0], operands[1], total))
    total = made[-1].results[0]
    made += turn.copies
    middle = turn.part(step, depth - 2 * step)
    made += [*middle, nv.MmaOp(middle[0].result, middle[1].result, total)]
    total = made[-1].results[0]
    last = turn.part(depth - step, step)
    made += [*last, following.wait.clone()]
    ready = _first(following, step, made)
    made.append(nv.MmaOp(last[0].result, last[1].result, total))
    turn.product.result.replace_all_uses_with(made[-1].results[0])
    adopt_location(made, turn.product)
    block.insert_ops_before(made, end)
    return ready
