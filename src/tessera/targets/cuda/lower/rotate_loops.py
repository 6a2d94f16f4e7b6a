"""Rotates loops around dots: the first operands of an iteration are read in the iteration before.

A loop with one dot to an iteration (see `unroll-rings`) waits for its copies at the top, reads its first operands out
of shared memory and only then multiplies. Here the wait moves in front of the last dots of the iteration before, and
the reads with it: while operands come, the tensor cores are busy. Copies begin between dots.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.tensor_cores import depth_step
from tessera.targets.cuda.lower.interleave_copies import part_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location, insert_before, replace


@dataclass
class RotatedIteration:
    """One iteration: its wait, its copies with their commit, its dot and the reads of its operands, and the rest."""

    wait: nv.WaitOp
    copies: list[Operation]
    dot: nv.MmaOp
    left: nv.ReadOp
    right: nv.ReadOp
    others: list[Operation]

    def part(self, start: int, size: int) -> tuple[nv.ReadOp, nv.ReadOp]:
        return part_of(self.left, 1, start, size), part_of(self.right, 0, start, size)


def rotate_loops(function: nv.FuncOp) -> None:
    """Rewrites every loop of a function whose iterations are such dots, with slots that are constants."""
    for loop in [op for op in function.walk() if isinstance(op, scf.ForOp)]:
        iterations = _iterations(loop.body.block)
        if iterations is not None:
            _rotate(loop, iterations)


RotateLoops = function_pass("rotate-loops", rotate_loops, nv.FuncOp)


def _iterations(block: Block) -> list[RotatedIteration] | None:
    """The unrolled iterations of a loop; None where one of them has another form."""
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
    # Ops in front of the first wait belong to the first iteration.
    if len(groups) > 1 and not any(isinstance(op, nv.WaitOp) for op in groups[0]):
        groups[1] = [*groups[0], *groups[1]]
        del groups[0]
    iterations = [_iteration([op for op in group if op is not block.last_op]) for group in groups]
    found = [iteration for iteration in iterations if iteration is not None]
    return found if len(found) == len(iterations) > 1 else None


def _iteration(ops: list[Operation]) -> RotatedIteration | None:
    waits = [op for op in ops if isinstance(op, nv.WaitOp)]
    copies: list[Operation] = [op for op in ops if isinstance(op, nv.CopyAsyncOp | nv.CommitOp)]
    dots = [op for op in ops if isinstance(op, nv.MmaOp)]
    if len(waits) != 1 or len(dots) != 1 or sum(isinstance(op, nv.CommitOp) for op in copies) != 1:
        return None
    (dot,) = dots
    left, right = dot.a.owner, dot.b.owner
    if not isinstance(left, nv.ReadOp) or not isinstance(right, nv.ReadOp):
        return None
    depth, step = tile_type(dot.a).get_shape()[1], depth_step(tile_dtype(dot.a))
    alone = all(len(list(read.result.uses)) == 1 and _is_fixed(read.shared) for read in (left, right))
    if not alone or depth % step or depth < 3 * step:
        return None
    special = {waits[0], dot, left, right, *copies}
    others = [op for op in ops if op not in special]
    # All others come in front of the dot: none may need it.
    if any(use.operation in others for use in dot.result.uses):
        return None
    return RotatedIteration(waits[0], copies, dot, left, right, others)


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


def _rotate(loop: scf.ForOp, iterations: list[RotatedIteration]) -> None:
    source = loop.body.block
    step = depth_step(tile_dtype(iterations[0].dot.a))
    ahead: list[Operation] = [iterations[0].wait.clone()]
    first = _first(iterations[0], step, ahead)
    adopt_location(ahead, loop)
    insert_before(loop, ahead)
    carried = [source.insert_arg(read.type, len(source.args)) for read in first]
    end = source.last_op
    assert end is not None
    operands: list[SSAValue] = list(carried)
    for number, iteration in enumerate(iterations):
        operands = _write(source, end, iteration, iterations[(number + 1) % len(iterations)], operands, step)
    replace(end, [scf.YieldOp(*end.operands, *operands)], [])
    for iteration in iterations:
        for op in (iteration.dot, iteration.left, iteration.right, iteration.wait):
            op.detach()
            op.erase()
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *first], _taken(loop))
    made.attributes.update(loop.attributes)
    replace(loop, [made], list(made.results[: len(loop.results)]))


def _taken(loop: scf.ForOp) -> Region:
    return loop.detach_region(0)


def _first(iteration: RotatedIteration, step: int, made: list[Operation]) -> list[SSAValue]:
    """The operands of an iteration's first dot."""
    found: list[SSAValue] = []
    for read in iteration.part(0, step):
        read.operands[0] = _fixed_again(read.shared, made)
        made.append(read)
        found.append(read.result)
    return found


def _write(
    block: Block,
    end: Operation,
    iteration: RotatedIteration,
    following: RotatedIteration,
    operands: list[SSAValue],
    step: int,
) -> list[SSAValue]:
    """Writes an iteration at the end of the block; returns the operands that it has read for the next one."""
    depth = tile_type(iteration.dot.a).get_shape()[1]
    made: list[Operation] = []
    for op in (*iteration.others, *iteration.copies):
        op.detach()
    made += iteration.others
    total = iteration.dot.c
    made.append(nv.MmaOp(operands[0], operands[1], total))
    total = made[-1].results[0]
    made += iteration.copies
    middle = iteration.part(step, depth - 2 * step)
    made += [*middle, nv.MmaOp(middle[0].result, middle[1].result, total)]
    total = made[-1].results[0]
    last = iteration.part(depth - step, step)
    made += [*last, following.wait.clone()]
    ready = _first(following, step, made)
    made.append(nv.MmaOp(last[0].result, last[1].result, total))
    iteration.dot.result.replace_all_uses_with(made[-1].results[0])
    adopt_location(made, iteration.dot)
    block.insert_ops_before(made, end)
    return ready
