"""Slices of tile functions: the ops that some of their ops rest on, with the loops and branches around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile


class Slice:
    """The ops of a function that some of them rest on, and which of the values that loops and branches give.

    Of `blind` ops it is needed when they run, but none of their operands.
    """

    def __init__(self, roots: Iterable[Operation], blind: Iterable[Operation] = ()) -> None:
        self.ops: set[Operation] = set()
        self.indices: dict[Operation, set[int]] = {}
        self._blind = set(blind)
        pending: list[Operation | SSAValue] = list(roots)
        while pending:
            found = pending.pop()
            pending += self._behind(found) if isinstance(found, Operation) else self._origin(found)

    def _behind(self, op: Operation) -> Iterator[Operation | SSAValue]:
        """The ops and values that an op needs, and those that decide how often it runs."""
        if op in self.ops or isinstance(op, tile.FuncOp):
            return
        self.ops.add(op)
        around = op.parent_op()
        assert around is not None
        yield around
        if op not in self._blind:
            yield from op.operands[:3] if isinstance(op, scf.ForOp) else op.operands

    def _origin(self, value: SSAValue) -> Iterator[Operation | SSAValue]:
        owner = value.owner
        op = owner.parent_op() if isinstance(owner, Block) else owner
        assert op is not None
        if not isinstance(op, scf.ForOp | scf.IfOp):
            yield op
        elif isinstance(owner, Operation):
            yield from self._need(op, list(op.results).index(value))  # pyright: ignore[reportArgumentType]
        elif value is owner.args[0]:
            yield op
        else:
            yield from self._need(op, list(owner.args).index(value) - 1)  # pyright: ignore[reportArgumentType]

    def _need(self, op: scf.ForOp | scf.IfOp, index: int) -> Iterator[Operation | SSAValue]:
        known = self.indices.setdefault(op, set())
        if index in known:
            return
        known.add(index)
        yield op
        if isinstance(op, scf.ForOp):
            yield op.iter_args[index]
        for region in op.regions:
            yield end_of(region.block).operands[index]

    def indices_of(self, op: Operation) -> list[int]:
        return sorted(self.indices.get(op, ()))


def rests_on_memory(values: Iterable[SSAValue]) -> bool:
    """Whether some values are computed from items of memory, in this iteration of a loop or in another one."""
    pending, seen = list(values), set[SSAValue]()
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, tile.ItemOp):
            return True
        if value not in seen:
            seen.add(value)
            pending += _made_of(value)
    return False


def _made_of(value: SSAValue) -> Iterator[SSAValue]:
    """The values that a value is directly computed from."""
    owner = value.owner
    if isinstance(owner, Operation) and not owner.regions:
        yield from owner.operands
    elif isinstance(owner, Operation) and isinstance(owner, scf.ForOp | scf.IfOp):
        index = list(owner.results).index(value)  # pyright: ignore[reportArgumentType]
        yield from (end_of(region.block).operands[index] for region in owner.regions)
        if isinstance(owner, scf.ForOp):
            yield owner.iter_args[index]
    elif isinstance(owner, Block) and isinstance(loop := owner.parent_op(), scf.ForOp):
        index = list(owner.args).index(value) - 1  # pyright: ignore[reportArgumentType]
        yield from (loop.lb, loop.step) if index < 0 else (loop.iter_args[index], end_of(owner).operands[index])


def end_of(block: Block) -> Operation:
    """The terminator of a block."""
    end = block.last_op
    assert end is not None
    return end


def operand_source(value: SSAValue) -> Operation | Block:
    """The op or block that made an operand of a dot, before it was transposed."""
    owner = value.owner
    while isinstance(owner, tile.TransOp):
        owner = owner.operand.owner
    return owner
