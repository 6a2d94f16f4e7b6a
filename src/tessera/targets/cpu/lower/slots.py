"""Slots: values that are written straight into a buffer of another, so that nothing is copied afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.lower.lowering import Lowering
from tessera.targets.cpu.lower.nests import Nest, shape_of


def slots_of(lowering: Lowering, run: Sequence[Operation], nests: Sequence[Nest]) -> dict[SSAValue, SSAValue]:
    """Values that go straight into a buffer of another: what a loop carries on, what the matrix unit adds to."""
    found = _carried(lowering, run, nests)
    made = {value for nest in nests for value in nest.phase_of}
    owner = {op: number for number, nest in enumerate(nests) for op in nest.ops}
    slots = {slot: argument for argument, slot in lowering.held.items() if isinstance(argument.owner, Block)}
    for nest in nests:
        dot = nest.phases[0].dot if nest.matrix else None
        if dot is None:
            continue
        if dot.result not in found:
            found[dot.result] = lowering.buffer(shape_of(dot.result), tile_dtype(dot.result))
        out = found[dot.result]
        if dot.c not in made or len(list(lowering.reads(dot.c))) != 1 or lowering.analysis.is_free(dot.c):
            continue
        before = out not in slots or all(
            user is dot or _is_before(lowering, slots[out], user, dot.c, nests, owner)
            for user, _ in lowering.reads(slots[out])
        )
        if before:
            found[dot.c] = out
    return found


def _carried(lowering: Lowering, run: Sequence[Operation], nests: Sequence[Nest]) -> dict[SSAValue, SSAValue]:
    """Of those, the values that a loop carries to its next iteration."""
    found: dict[SSAValue, SSAValue] = {}
    if not run or not nests:
        return found
    block = run[0].parent_block()
    loop = block.parent_op() if block is not None else None
    if not isinstance(loop, scf.ForOp) or block is None or block.last_op is None:
        return found
    made = {value for nest in nests for value in nest.phase_of}
    owner = {op: number for number, nest in enumerate(nests) for op in nest.ops}
    yielded = list(block.last_op.operands)
    for argument, value in zip(block.args[1:], yielded, strict=True):
        if value not in made or argument not in lowering.held or yielded.count(value) > 1:
            continue
        before = all(_is_before(lowering, argument, user, value, nests, owner) for user, _ in lowering.reads(argument))
        if before and shape_of(argument) == shape_of(value):
            found[value] = lowering.held[argument]
    return found


def _is_before(
    lowering: Lowering,
    argument: SSAValue,
    user: Operation,
    value: SSAValue,
    nests: Sequence[Nest],
    owner: Mapping[Operation, int],
) -> bool:
    """Whether an op has read of a carried value what it needs by the time that `value` is written over it."""
    number = next(number for number, nest in enumerate(nests) if value in nest.phase_of)
    if user not in owner or owner[user] != number:
        return user in owner and owner[user] < number
    nest, (at, is_row) = nests[number], nests[number].phase_of[value]
    if any(leaf is argument and not near for leaf, near in lowering.analysis.needs(user, nest.rows)):
        return False
    if is_row:
        return True
    for index, ops in enumerate(nest.between):
        if user in ops:
            return index <= at
    if any(user in phase.ops for phase in nest.phases[:at]):
        return True
    # Within a phase a step reads the columns that it writes, and a dot all of them.
    ops, maker = nest.phases[at].ops, value.owner
    assert isinstance(maker, Operation)
    reads_all = isinstance(user, tile.DotOp) and user.a is argument
    return user in ops and not reads_all and ops.index(user) <= ops.index(maker)
