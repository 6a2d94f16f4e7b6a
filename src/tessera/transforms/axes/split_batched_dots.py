"""split-batched-dots: a dot with leading axes becomes as many dots of two axes, of parts of its operands.

What is made of the products part by part, and what loops carry of it, is written for each part as well, so that no tile
is joined and cut again on the way. Where the whole is needed, the parts are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import i64
from tessera.ir.common import reductions
from tessera.ir.common.elements import tile_of
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
)
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location

_ROWS = 2
"""Axes from which on a tile may have those of a product."""


def split_batched_dots(function: tile.FuncOp) -> None:
    """Writes each dot that has leading axes as dots of two axes, one for each product."""
    while any(map(is_batched, function.body.walk())):
        _split(function, lambda _: True)


def split_carried_dots(function: tile.FuncOp) -> None:
    """The same for dots in loops that carry tiles: those are not to be done again for each part of a tile."""
    while any(is_batched(op) and _is_carried(op) for op in function.body.walk()):
        _split(function, _is_carried)


def _split(function: tile.FuncOp, chosen: Callable[[Operation], bool]) -> None:
    _Splitting(function, chosen).block(function.body.block)
    sweep(function.body.block)


def _is_carried(op: Operation) -> bool:
    """Whether a loop around an op carries tiles."""
    around = op.parent_op()
    while around is not None and not isinstance(around, tile.FuncOp):
        if any(isinstance(result.type, TensorType) for result in around.results):
            return True
        around = around.parent_op()
    return False


class _Splitting:
    """The dots of one function, split along their first axis."""

    def __init__(self, function: tile.FuncOp, chosen: Callable[[Operation], bool]) -> None:
        self._function, self._is_chosen = function, chosen
        self._index = Numbers(function)
        self._parts = Parts(_behind, lambda _: True)

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            split = [operand for operand in op.operands if operand in self._parts.split]
            if isinstance(op, scf.ForOp):
                self._loop(op)
            elif op.regions:
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)
            elif is_batched(op) and self._is_chosen(op):
                assert isinstance(op, tile.DotOp)
                self._dot(op)
            elif split and isinstance(op, tile.Writer | tile.AssertOp):
                ops = FoldingOps(InsertPoint.before(op), op)
                for number in range(shape_of(split[0])[0]):
                    sink_part(self._parts, ops, op, self._index(number))
                op.detach()
                op.erase()
            elif split and isinstance(op, tile.ReduceOp) and op.axis.value.data == 0:
                self._fold(op)
            elif split and self._goes_by_part(op):
                self._parts.split[op.results[0]] = self._all(op.results[0])

    def _goes_by_part(self, op: Operation) -> bool:
        """Whether parts of an op's tile are made of those that are there."""
        if len(op.results) != 1 or not rank_of(op.results[0]) or rule_of(op, 0) is None:
            return False
        return any(axis == 0 and value in self._parts.split for value, axis in operands_of(op, 0))

    def _all(self, value: SSAValue) -> list[SSAValue]:
        # Each is written right behind what makes the whole: the last one first, so that they stand in order.
        numbers = reversed(range(shape_of(value)[0]))
        return [self._parts.part(value, 0, self._index(number)) for number in numbers][::-1]

    def _dot(self, op: tile.DotOp) -> None:
        behind = _behind(op.result)
        found = self._all(op.result)
        whole = self._joined(behind, found) if found else op.c
        self._replace(op.result, whole, found)
        op.detach()
        op.erase()

    def _replace(self, value: SSAValue, whole: SSAValue, parts: Sequence[SSAValue]) -> None:
        """Puts a tile that was joined in place of another."""
        value.replace_all_uses_with(whole)
        if parts:
            self._parts.split[whole] = parts

    def _fold(self, op: tile.ReduceOp) -> None:
        ops, combine = FoldingOps(InsertPoint.before(op), op), reductions.TABLE[op.kind.data].combine
        total, *others = self._all(op.operand)
        for part in others:
            total = ops.add(tile.EwOp(combine, [total, part]))
        op.result.replace_all_uses_with(total)
        op.detach()
        op.erase()

    def _joined(self, ops: FoldingOps, parts: Sequence[SSAValue]) -> SSAValue:
        """The tile that has parts along its first axis."""
        shape = (len(parts), *shape_of(parts[0]))
        ahead = ops.add(tile.IotaOp(self._index(0), 0, tile_of(shape, i64)))
        whole: SSAValue | None = None
        for number, part in enumerate(parts):
            spread = ops.add(tile.BroadcastOp(ops.add(tile.ExpandOp(part, 0)), shape))
            if whole is None:
                whole = spread
                continue
            before = ops.add(tile.EwOp("lt", [ahead, ops.full(self._index(number), shape)]))
            whole = ops.add(tile.EwOp("select", [before, whole, spread]))
        assert whole is not None
        return whole

    def _loop(self, op: scf.ForOp) -> None:
        """A loop carries parts of what its dots add to."""
        counts = {shape_of(dot.results[0])[0] for dot in op.walk() if is_batched(dot) and self._is_chosen(dot)}
        body = op.body.block
        chosen = [
            index
            for index, value in enumerate(op.iter_args)
            if isinstance(value.type, TensorType) and rank_of(value) >= _ROWS and shape_of(value)[0] in counts - {0}
        ]
        initial = [self._all(op.iter_args[index]) for index in chosen]
        start = FoldingOps(InsertPoint.before(first) if (first := body.first_op) else InsertPoint.at_end(body), op)
        for index, parts in zip(chosen, initial, strict=True):
            inner = [body.insert_arg(part.type, len(body.args)) for part in parts]
            self._replace(body.args[1 + index], self._joined(start, inner), inner)
        self.block(body)
        end = body.last_op
        assert end is not None
        yielded = [self._all(end.operands[index]) for index in chosen]
        kept = [index for index in range(len(op.iter_args)) if index not in chosen]
        end.operands = [*(end.operands[index] for index in kept), *(part for parts in yielded for part in parts)]
        sweep(body)
        for index in reversed(chosen):
            body.erase_arg(body.args[1 + index])
        iter_args = [*(op.iter_args[index] for index in kept), *(part for parts in initial for part in parts)]
        made = scf.ForOp(op.lb, op.ub, op.step, iter_args, op.detach_region(op.body))
        made.attributes.update(op.attributes)
        behind = _behind(op.results[0]) if op.results else None
        Rewriter.insert_op(made, InsertPoint.before(op))
        adopt_location([made], op)
        for index, result in zip(kept, made.results, strict=False):
            result.name_hint = op.results[index].name_hint
            op.results[index].replace_all_uses_with(result)
        results = list(made.results[len(kept) :])
        for index, parts in zip(chosen, initial, strict=True):
            several, results = results[: len(parts)], results[len(parts) :]
            assert behind is not None
            self._replace(op.results[index], self._joined(behind, several), several)
        op.detach()
        op.erase()


def _behind(value: SSAValue) -> FoldingOps:
    """The place behind what makes a value."""
    owner = value.owner
    if isinstance(owner, Block):
        function = owner.parent_op()
        first = owner.first_op
        assert function is not None
        assert first is not None
        return FoldingOps(InsertPoint.before(first), function)
    following = owner.next_op
    block = owner.parent_block()
    assert block is not None
    return FoldingOps(InsertPoint.at_end(block) if following is None else InsertPoint.before(following), owner)


SplitBatchedDots = function_pass("split-batched-dots", split_batched_dots)
SplitCarriedDots = function_pass("split-carried-dots", split_carried_dots)
