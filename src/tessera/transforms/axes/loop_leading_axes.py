"""loop-leading-axes: what is done with tiles of three axes or more is done in loops, with tiles of one axis less.

Each store, and what leads to it, becomes a loop along the first axis of what it stores; so do reductions along a first
axis. A value on the way whose whole is needed, as memory that the kernel writes was read at one time, stays a tile of
many axes, of which an iteration takes a part.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import get_effects

from tessera.ir.common import reductions
from tessera.ir.common.effects import observable
from tessera.ir.tile import dialect as tile
from tessera.transforms.axes.parts import (
    FoldingOps,
    Numbers,
    Parts,
    is_batched,
    operands_of,
    rank_of,
    rule_of,
    shape_of,
    sink_part,
    tiles_of_sink,
)
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location

_MANY = 3
"""Axes from which on a tile is gone through in a loop."""
_Sink = tile.Writer | tile.AssertOp
_FREE = (tile.FullOp, tile.IotaOp, tile.ExpandOp, tile.BroadcastOp, tile.TransOp, tile.LoadOp)
"""Ops that cost nothing, or little, to be done again in another block."""


def loop_leading_axes(function: tile.FuncOp) -> None:
    """Rewrites a function whose tiles have three axes or more; others are left as they are."""
    if any(rank_of(value) >= _MANY for op in function.body.walk() for value in (*op.results, *op.operands)):
        _Looping(function).block(function.body.block)
        sweep(function.body.block)


class _Looping:
    """The loops of one function."""

    def __init__(self, function: tile.FuncOp) -> None:
        self._written = tile.written_memory(function)
        self._index = Numbers(function)

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)
        for group in self._groups(block):
            self._store(group)
        sweep(block)
        for op in list(block.ops):
            if isinstance(op, tile.ReduceOp) and self._is_long(op):
                self._reduce(op)
        sweep(block)

    def _groups(self, block: Block) -> list[list[_Sink]]:
        """Stores that are done in one loop: next to each other, to different memory, of as many parts."""
        groups: list[list[_Sink]] = []
        group: list[_Sink] = []
        for op in list(block.ops):
            if isinstance(op, _Sink) and self._has_many_axes(op):
                if not group or not self._go_together(group, op):
                    group = []
                    groups.append(group)
                group.append(op)
            elif self._is_ordered(op):
                group = []
        return groups

    def _is_ordered(self, op: Operation) -> bool:
        """Whether a store must not move behind an op."""
        effects = get_effects(op)
        reads = isinstance(op, tile.Reader) and tile.memory_of(op.view) in self._written
        return reads or bool(op.regions) or effects is None or any(map(observable, effects))

    def _has_many_axes(self, op: _Sink) -> bool:
        """Whether parts of what an op takes are made of tiles of many axes."""
        tiles = list(tiles_of_sink(op))
        if not tiles or not rank_of(tiles[0]) or shape_of(tiles[0])[0] == 0:
            return False
        made = dict[tuple[Operation, int], None]()
        for one in tiles:
            self._note(one, 0, op, made)
        # A product of which a part would be some rows is done as a whole.
        if any(is_batched(owner) and rule_of(owner, axis) is None for owner, axis in made):
            return False
        return rank_of(tiles[0]) >= _MANY or any(rank_of(owner.results[0]) >= _MANY for owner, _ in made)

    def _note(self, value: SSAValue, axis: int, sink: Operation, made: dict[tuple[Operation, int], None]) -> None:
        """Notes the ops that are done again for a part of a tile, with the axes along which their tiles are cut."""
        owner = value.owner
        if not isinstance(owner, Operation) or not self._is_followed(owner, sink) or (owner, axis) in made:
            return
        if rule_of(owner, axis) is None and not is_batched(owner):
            return
        made[owner, axis] = None
        if rule_of(owner, axis) is not None:
            for one, along in operands_of(owner, axis):
                self._note(one, along, sink, made)

    def _go_together(self, group: Sequence[_Sink], op: _Sink) -> bool:
        if isinstance(op, tile.AssertOp) or any(isinstance(one, tile.AssertOp) for one in group):
            return False
        same = shape_of(group[0].operands[0])[0] == shape_of(op.operands[0])[0]
        memory = {tile.memory_of(one.view) for one in group if not isinstance(one, tile.AssertOp)}
        return same and tile.memory_of(op.view) not in memory

    def _is_followed(self, owner: Operation, sink: Operation) -> bool:
        """Whether a part of a tile is made by itself: what is read must not change, nor work be repeated for it."""
        if isinstance(owner, tile.LoadOp | tile.ReadOp) and tile.memory_of(owner.view) in self._written:
            return False
        if owner.parent_block() is not sink.parent_block():
            return isinstance(owner, _FREE)
        many = rank_of(owner.results[0]) >= _MANY or any(rank_of(operand) >= _MANY for operand in owner.operands)
        return many or isinstance(owner, (*_FREE, tile.EwOp, tile.TakeOp, tile.ReadOp))

    def _parts(self, ops: FoldingOps, sink: Operation) -> Parts:
        return Parts(lambda _: ops, lambda owner: self._is_followed(owner, sink))

    def _store(self, group: Sequence[_Sink]) -> None:
        last = group[-1]
        body = Block(arg_types=[IndexType()])
        ops = FoldingOps(InsertPoint.at_end(body), last)
        parts = self._parts(ops, last)
        for op in group:
            sink_part(parts, FoldingOps(InsertPoint.at_end(body), op), op, body.args[0])
        self._loop(FoldingOps(InsertPoint.before(last), last), 0, shape_of(last.operands[0])[0], [], body, [], last)
        for op in group:
            op.detach()
            op.erase()

    def _is_long(self, op: tile.ReduceOp) -> bool:
        return rank_of(op.operand) >= _MANY and op.axis.value.data == 0 and shape_of(op.operand)[0] > 0

    def _reduce(self, op: tile.ReduceOp) -> None:
        """The first part, and a loop that combines the others with it."""
        before = FoldingOps(InsertPoint.before(op), op)
        first = self._parts(before, op).part(op.operand, 0, self._index(0))
        body = Block(arg_types=[IndexType(), first.type])
        ops = FoldingOps(InsertPoint.at_end(body), op)
        part = self._parts(ops, op).part(op.operand, 0, body.args[0])
        total = ops.add(tile.EwOp(reductions.TABLE[op.kind.data].combine, [body.args[1], part]))
        loop = self._loop(before, 1, shape_of(op.operand)[0], [first], body, [total], op)
        op.result.replace_all_uses_with(loop.results[0])
        op.detach()
        op.erase()

    def _loop(
        self,
        before: FoldingOps,
        start: int,
        stop: int,
        carried: Sequence[SSAValue],
        body: Block,
        yielded: Sequence[SSAValue],
        source: Operation,
    ) -> scf.ForOp:
        """The loop with a body, whose own tiles may still have many axes."""
        end = scf.YieldOp(*yielded)
        body.add_op(end)
        adopt_location([end], source)
        first, last, step = (self._index(number) for number in (start, stop, 1))
        loop = scf.ForOp(first, last, step, carried, Region(body))
        before.effect(loop)
        self.block(body)
        return loop


LoopLeadingAxes = function_pass("loop-leading-axes", loop_leading_axes)
