"""`make-async`: software pipelining of loads: those that feed dots in a loop become copies into rings of stages.

A load qualifies if its tile goes into dots only, or if a hint asks for it; if no op of the function writes its memory,
and if its position follows from the induction variable. With `depth` stages, or as many as a hint asks for, copies run
`depth − 1` iterations ahead: an iteration waits for its own copies, issues those of a later iteration into the stage
that the iteration before has used up, and computes. Behind the last iteration copies are issued all the same: a branch
would keep the machine from interleaving them with dots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.interpreters.core.scalars import DIVISIONS
from tessera.ir.common.checking import enclosing
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.hints import REGISTERS, SMEM
from tessera.ir.tile.types import tile_type
from tessera.transforms.core.function_pass import FunctionPass
from tessera.transforms.core.rewriting import insert_before, replace
from tessera.transforms.core.tile_ops import Ops

_index = IndexType()


@dataclass(frozen=True)
class MakeAsync(FunctionPass):
    """The pass, for every loop of every tile function."""

    name = "make-async"
    depth: int = 3

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        make_async(function, self.depth)


def feeds_dots(load: tile.BoxLoad) -> bool:
    """Whether a load's tile goes into dots only, with zeros where it leaves its view, and not by registers."""
    wants_registers = hints_of(load).memory == REGISTERS
    return not wants_registers and why_not_copied(load) is None and is_only_multiplied(load.result)


def why_not_copied(load: tile.BoxLoad) -> str | None:
    """Why no copy brings a load's tile to shared memory, or None."""
    if (axes := len(tile_type(load.result).get_shape())) != 2:
        return f"copies to shared memory are of tiles with two axes, and this one has {axes}"
    return None if load.pad_value == 0 else "copies to shared memory leave 0 where a tile leaves its array"


def goes_through_shared_memory(load: tile.LoadOp) -> bool:
    """Whether a load is a copy to shared memory: for dots, or because a hint asks for it."""
    return feeds_dots(load) or (hints_of(load).memory == SMEM and why_not_copied(load) is None)


def why_not_ahead(load: tile.LoadOp, written: AbstractSet[SSAValue]) -> str | None:
    """Why the copy of a load does not run ahead of a loop, or None."""
    loop = load.parent_op()
    if not isinstance(loop, scf.ForOp):
        return "it is in no loop that counts, so there is nothing to run ahead of"
    if (reason := why_not_copied(load)) is not None:
        return reason
    if tile.memory_of(load.view) in written:
        return "the kernel writes that array"
    if hints_of(load).memory == REGISTERS:
        return "it is to go to registers, and copies that run ahead wait in shared memory"
    if address_slice(load, loop.body.block) is None:
        return "where it reads follows from what the loop computes, and not from its counter alone"
    return None


def is_only_multiplied(value: SSAValue) -> bool:
    """Whether a tile is an operand of dots, as it is or transposed, and nothing else."""
    uses = list(value.uses)
    for use in tuple(uses):
        if isinstance(transposed := use.operation, tile.TransOp) and is_transposed(transposed):
            uses.remove(use)
            uses += transposed.result.uses
    operands = [isinstance(use.operation, tile.DotOp) and use.index < 2 for use in uses]
    return bool(operands) and all(operands)


def is_transposed(op: tile.TransOp) -> bool:
    """Whether rows become columns."""
    return tuple(op.permutation.iter_values()) == (1, 0)


def make_async(function: tile.FuncOp, depth: int) -> None:
    written = tile.written_memory(function)
    for op in list(function.body.walk()):
        if isinstance(op, scf.ForOp) and isinstance(op.lb.type, IndexType):
            loads = [load for load in op.body.block.ops if isinstance(load, tile.LoadOp) and _qualifies(load, written)]
            slices = {load: address_slice(load, op.body.block) for load in loads}
            ready = {load: found for load, found in slices.items() if found is not None}
            stages = stages_asked(ready) or depth
            if ready and stages > 1:
                _pipeline(op, ready, stages)


def stages_asked(loads: Iterable[tile.LoadOp]) -> int | None:
    """How many stages hints ask for, so that the copies of loads run ahead as far as they say; None: nothing is asked.

    Loads of one loop run ahead together, as far as the farthest is to.
    """
    return max((asked + 1 for load in loads if (asked := hints_of(load).prefetch) is not None), default=None)


def _qualifies(load: tile.LoadOp, written: AbstractSet[SSAValue]) -> bool:
    if tile.memory_of(load.view) in written:
        return False
    is_ahead = hints_of(load).prefetch is not None and why_not_ahead(load, written) is None
    return is_ahead or goes_through_shared_memory(load)


def address_slice(load: tile.LoadOp, body: Block) -> list[Operation] | None:
    """The ops of the body that compute where a load reads, in order; None if they need more than the counter."""
    wanted: set[Operation] = set()
    pending: list[SSAValue] = [load.view, *load.offsets]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, Block):
            if owner is body and value is not body.args[0]:
                return None
            continue
        if owner.parent_block() is not body:
            continue
        if not is_side_effect_free(owner) or owner.regions:
            return None
        if owner not in wanted:
            wanted.add(owner)
            pending += owner.operands
    return [op for op in body.ops if op in wanted]


def _copies(
    writer: Ops,
    loads: dict[tile.LoadOp, list[Operation]],
    rings: dict[tile.LoadOp, SSAValue],
    counter: tuple[SSAValue, SSAValue],
    stop: SSAValue | None,
    slot: SSAValue,
) -> None:
    """Begins the copies of the iteration whose counter is the second of `counter`; with `stop`, if there is one."""
    old, iteration = counter
    inside = Ops()
    values: dict[SSAValue, SSAValue] = {old: iteration}
    done: set[Operation] = set()
    for load, ops in loads.items():
        for op in ops:
            if op not in done:
                done.add(op)
                inside.ops.append(op.clone(values))
        view, *offsets = (values.get(value, value) for value in (load.view, *load.offsets))
        copy = pipe.CopyOp(view, offsets, rings[load], slot)
        copy.location = load.location
        inside.ops.append(copy)
    if stop is None:
        writer.ops += inside.ops
    else:
        inside.ops.append(scf.YieldOp())
        condition = writer.add(arith.CmpiOp(iteration, stop, "slt"))
        writer.ops.append(scf.IfOp(condition, [], Region(Block(inside.ops)), Region()))
    writer.ops.append(pipe.CommitOp())


def _pipeline(loop: scf.ForOp, loads: dict[tile.LoadOp, list[Operation]], depth: int) -> None:
    body = loop.body.block
    counter, stop, step = body.args[0], loop.ub, loop.step
    before = Ops()
    rings = {load: before.add(pipe.RingOp(depth, tile_type(load.result))) for load in loads}
    if enclosing(loop, scf.ForOp) is not None or enclosing(loop, scf.WhileOp) is not None:
        # The last iteration of a loop around this one may still read slots that are about to be written over.
        before.ops.append(pipe.WaitOp(0))
    for ahead in range(depth - 1):
        distance = before.add(arith.MuliOp(step, before.index(ahead)))
        iteration = before.add(arith.AddiOp(loop.lb, distance))
        _copies(before, loads, rings, (counter, iteration), stop, before.index(ahead))
    first = before.index(0)
    insert_before(loop, before.ops)
    # The slot of this iteration is carried; the copies of a later one go into the slot that was used last.
    slot = body.insert_arg(_index, len(body.args))
    top = Ops()
    top.ops.append(pipe.WaitOp(depth - 2))
    none, last = top.index(0), top.index(depth - 1)
    is_first = top.add(arith.CmpiOp(slot, none, "eq"))
    previous = top.add(arith.SubiOp(slot, top.index(1)))
    free = top.add(arith.SelectOp(is_first, last, previous))
    iteration = top.add(arith.AddiOp(counter, top.add(arith.MuliOp(step, last))))
    # A copy behind the last iteration is never read. It may be of anything inside the view, and is of zeros outside; a
    # view that is made for the iteration might be of memory that is not there, and a division might be one by zero.
    divides = any(_may_fail(op) for ops in loads.values() for op in ops)
    harmless = not divides and all(_is_outside(load.view, body) for load in loads)
    _copies(top, loads, rings, (counter, iteration), None if harmless else stop, free)
    first_op = body.first_op
    assert first_op is not None
    insert_before(first_op, top.ops)
    for load, ring in rings.items():
        replace(load, [pipe.GetOp(ring, slot)])
    end = body.last_op
    assert end is not None
    tail = Ops()
    is_last = tail.add(arith.CmpiOp(slot, tail.index(depth - 1), "eq"))
    following = tail.add(arith.AddiOp(slot, tail.index(1)))
    next_slot = tail.add(arith.SelectOp(is_last, tail.index(0), following))
    insert_before(end, tail.ops)
    _carry(loop, end, first, next_slot)


def _may_fail(op: Operation) -> bool:
    """Whether an op may divide by zero."""
    return isinstance(op, DIVISIONS) and not isinstance(op.operands[1].owner, arith.ConstantOp)


def _is_outside(view: SSAValue, body: Block) -> bool:
    """Whether a view is made in front of a loop."""
    owner = view.owner
    return isinstance(owner, Block) or owner.parent_block() is not body


def _carry(loop: scf.ForOp, end: Operation, first: SSAValue, following: SSAValue) -> None:
    """Replaces a loop by one that carries one number more."""
    replace(end, [scf.YieldOp(*end.operands, following)], [])
    region = loop.detach_region(0)
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, first], region)
    made.attributes.update(loop.attributes)
    results: Sequence[SSAValue] = made.results[: len(loop.results)]
    replace(loop, [made], results)
