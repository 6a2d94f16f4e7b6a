"""Row sums that loops carry are reduced behind the loop: until then each thread adds up the elements it holds.

A loop carries s and yields s · f + (the sum of a row of this iteration), with f the same for the whole row. Threads
that share a row would have to exchange partial sums in every iteration. But partial sums may be scaled and added to
just as well, and only the readers behind the loop need the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from tessera.ir.common.elements import TileType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ir.types import laid_out, layout_of
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import adopt_location, insert_before

_BOUNDS = 3
"""Operands of a loop in front of what it carries."""


def defer_row_reductions(function: nv.FuncOp) -> None:
    """Rewrites the sums of a function that can be finished later."""
    for op in list(function.body.walk()):
        reduced = _reduced(op)
        if reduced is not None:
            web = _Web(op.results[0], reduced)
            if web.find():
                web.write()


DeferRowReductions = function_pass("defer-row-reductions", defer_row_reductions, nv.FuncOp)


def _reduced(op: Operation) -> tile.ReduceOp | None:
    """The sum of rows that an op adds to something else."""
    if not isinstance(op, tile.EwOp) or op.fn.data != "add":
        return None
    return next((found for found in map(_summed, op.operands_) if found is not None), None)


def _summed(value: SSAValue) -> tile.ReduceOp | None:
    """The reduction that a value is, if it sums up rows, and only one op needs it."""
    op = value.owner
    if not isinstance(op, tile.ReduceOp) or op.kind.data != "sum" or len(list(value.uses)) != 1:
        return None
    source = tile_type(op.operand)
    plain = source.get_num_dims() == 2 and op.axis.value.data == 1
    return op if plain and not layout_of(source).has_ghosts(source.get_shape()) else None


def _parts_type(op: tile.ReduceOp) -> TileType:
    return wgmma.partial_type(tile_type(op.operand), 1)


def _end(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


class _Web:
    """All values that one running sum has, through loops and branches."""

    def __init__(self, seed: SSAValue, reduced: tile.ReduceOp) -> None:
        self.seed = seed
        self.whole = seed.type
        self.parts = _parts_type(reduced)
        self.members: set[SSAValue] = set()
        self.loops: set[Operation] = set()
        """Those in which something is added."""

    def find(self) -> bool:
        """Whether loops carry it, and all of it can be written anew."""
        todo = [self.seed]
        while todo:
            value = todo.pop()
            if value in self.members or self._begins(value):
                continue
            if value.type != self.whole:
                return False
            self.members.add(value)
            before = self._before(value)
            if before is None:
                return False
            todo += [*before, *self._behind(value)]
        multiplied = [op for op in self._ops() if op.fn.data == "mul"]
        return (
            bool(self.loops)
            and all(sum(map(self._is_sum, op.operands_)) == 1 for op in multiplied)
            and not any(self._is_inside(use) for _, use in self._exits())
        )

    def _is_sum(self, value: SSAValue) -> bool:
        return value in self.members or self._begins(value)

    def _begins(self, value: SSAValue) -> bool:
        """Whether a value is nothing, or the sum of one tile."""
        summed = _summed(value)
        return constant_of(value) == 0 if summed is None else _parts_type(summed) == self.parts

    def _ops(self) -> list[tile.EwOp]:
        return [value.owner for value in self.members if isinstance(value.owner, tile.EwOp)]

    def _before(self, value: SSAValue) -> list[SSAValue] | None:
        """The values that a value comes from; None where its parts are not known."""
        owner = value.owner
        loop = owner.parent_op() if isinstance(owner, Block) else owner
        if isinstance(loop, scf.ForOp):
            index = loop.body.block.args.index(value) - 1 if isinstance(owner, Block) else loop.results.index(value)
            return [loop.iter_args[index], loop.body.block.args[1 + index], _end(loop.body.block).operands[index]]
        if isinstance(owner, scf.IfOp):
            return [_end(region.block).operands[owner.results.index(value)] for region in owner.regions]
        if not isinstance(owner, tile.EwOp) or owner.policy is not None:
            return None
        reduced = _reduced(owner)
        if reduced is not None and _parts_type(reduced) == self.parts:
            around = owner.parent_op()
            if isinstance(around, scf.ForOp):
                self.loops.add(around)
            return list(owner.operands_)
        # Which operand of a multiplication is the sum is known when all other members are.
        return [] if owner.fn.data == "mul" else None

    def _behind(self, value: SSAValue) -> Iterator[SSAValue]:
        """The values that a value becomes where loops and branches yield it."""
        for use in value.uses:
            op = use.operation
            if isinstance(op, scf.ForOp) and use.index >= _BOUNDS:
                yield op.results[use.index - _BOUNDS]
            elif isinstance(op, scf.YieldOp) and isinstance(around := op.parent_op(), scf.ForOp | scf.IfOp):
                yield around.results[use.index]

    def _exits(self) -> Iterator[tuple[SSAValue, Use]]:
        """Uses that need the whole sum."""
        for value in self.members:
            for use in value.uses:
                op = use.operation
                handed = isinstance(op, scf.ForOp | scf.YieldOp)
                if not handed and not (isinstance(op, tile.EwOp) and op.result in self.members):
                    yield value, use

    def _is_inside(self, use: Use) -> bool:
        op: Operation | None = use.operation
        while op is not None and op not in self.loops:
            op = op.parent_op()
        return op is not None

    # Writing

    def write(self) -> None:
        exits = list(self._exits())
        for op in self._ops():
            self._write(op)
        for value in self.members:
            self._clear(value)
        renewed = {value: Rewriter.replace_value_with_new_type(value, self.parts) for value in self.members}
        whole: dict[SSAValue, SSAValue] = {}
        for value, use in exits:
            if value not in whole:
                whole[value] = self._finished(renewed[value])
            use.operation.operands[use.index] = whole[value]

    def _write(self, op: tile.EwOp) -> None:
        """Adds parts, and repeats factors for all threads of a row."""
        for index, operand in enumerate(op.operands_):
            if self._begins(operand):
                self._begin(op, index)
            elif operand not in self.members:
                column = tile.ExpandOp(operand, 1)
                rows = self.parts.get_shape()[0]
                _lay(column, laid_out(tile_type(column.result), layout_of(self.parts).narrowed((rows, 1))))
                factors = tile.BroadcastOp(column.result, self.parts.get_shape())
                _lay(factors, self.parts)
                adopt_location([column, factors], op)
                insert_before(op, [column, factors])
                op.operands[index] = factors.result

    def _clear(self, value: SSAValue) -> None:
        """Rewrites the initial values of loops, and the values that branches yield."""
        owner = value.owner
        if isinstance(owner, scf.ForOp):
            self._begin(owner, _BOUNDS + owner.results.index(value))
            self._begin(_end(owner.body.block), owner.results.index(value))
        elif isinstance(owner, scf.IfOp):
            for region in owner.regions:
                self._begin(_end(region.block), owner.results.index(value))

    def _begin(self, op: Operation, index: int) -> None:
        """Replaces an operand of an op by parts: zeros, or those of one tile."""
        operand = op.operands[index]
        if operand in self.members or not self._begins(operand):
            return
        summed = _summed(operand)
        made: tile.FullOp | wgmma.PartialOp
        if summed is None:
            assert isinstance(operand.owner, tile.FullOp)
            made = tile.FullOp(operand.owner.value, self.parts.get_shape())
            _lay(made, self.parts)
        else:
            made = wgmma.PartialOp("sum", summed.operand, 1)
        adopt_location([made], op)
        insert_before(op if summed is None else summed, [made])
        op.operands[index] = made.result
        if summed is not None:
            summed.detach()
            summed.erase()

    def _finished(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        assert isinstance(owner, Operation)
        made = tile.ReduceOp("sum", value, 1)
        Rewriter.replace_value_with_new_type(made.result, self.whole)
        adopt_location([made], owner)
        block = owner.parent_block()
        assert block is not None
        block.insert_op_after(made, owner)
        return made.result


def _lay(op: Operation, type_: TileType) -> None:
    """Gives the result of an op a layout."""
    Rewriter.replace_value_with_new_type(op.results[0], type_)
