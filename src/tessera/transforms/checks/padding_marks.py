"""Marks on values that come from beyond an array, computed by the kernel itself, for checks that skip those.

A mark is a tile of i1 in the shape of its value. The rules are those of the interpreter
(`interpreters/sanitizers/padding.py`): a load makes up what lies outside of its view; elementwise work on it is made
up, too; a sum or product is, where made-up values count in it or where there are no others. Values that are never made
up have no mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import f32, i64
from tessera.ir.common import reductions
from tessera.ir.common.elements import element_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.folding import literal, materialize, signature_size
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.tile_ops import TileOps

_TRUTH = IntegerType(1)
_Control = scf.ForOp | scf.IfOp | scf.WhileOp
_MOVES = (tile.ExpandOp, tile.BroadcastOp, tile.TransOp)
_HALVES = (tile.UnpackOp, tile.PackOp)
_SPREADS = (tile.EwOp, tile.ReduceOp, tile.ScanOp, tile.SortOp, tile.DotOp, tile.TakeOp, tile.ReadOp, *_HALVES, *_MOVES)


Visit = Callable[[Operation, Operation], None]
"""The rule of an op; the second argument is where its marks end."""


class Builder(TileOps):
    """Ops of checks."""

    def compare(self, a: SSAValue, predicate: int, b: SSAValue) -> SSAValue:
        return self.add(arith.CmpiOp(a, b, predicate))

    def is_nan(self, value: SSAValue) -> SSAValue:
        return self.ew("isnan", value)

    def full(self, value: Any, type_: Attribute, shape: Sequence[int]) -> SSAValue:
        return self.add(tile.FullOp(self.add(materialize(value, type_)), shape))

    def any(self, truths: Sequence[SSAValue]) -> SSAValue:
        """Whether one of them is true, element by element."""
        total = truths[0]
        for truth in truths[1:]:
            total = self.ew("or", total, truth)
        return total

    def check(self, truth: SSAValue, message: str) -> None:
        self.ops.append(tile.AssertOp(truth, message))

    def insert(self, op: Operation, *, before: bool = False, behind: Operation | None = None) -> None:
        """Puts what was built beside an op, or behind another, at the op's source location."""
        adopt_location(self.ops, op)
        Rewriter.insert_op(self.ops, InsertPoint.before(op) if before else InsertPoint.after(behind or op))


class Marks:
    """The marks of one function's values; or `none`, as if all of them were inside of arrays."""

    def __init__(self, function: tile.FuncOp, *, none: bool = False) -> None:
        self._found: dict[SSAValue, SSAValue] = {}
        # The values that have marks: decided before any is made, since loops carry them.
        self._marked: set[SSAValue] = set()
        count = 0 if none else -1
        while count != len(self._marked):
            count = len(self._marked)
            self._decide(function.body.block)

    def of(self, value: SSAValue) -> SSAValue | None:
        return self._found.get(value)

    def write(self, block: Block, visit: Visit) -> None:
        """Puts marks into a block and all within, and visits each op when its marks are there."""
        for op in list(block.ops):
            if isinstance(op, scf.ForOp):
                self._write_loop(op, visit)
            elif isinstance(op, scf.WhileOp):
                self._write_while(op, visit)
            elif isinstance(op, scf.IfOp):
                self._write_branch(op, visit)
            else:
                build = Builder()
                if len(op.results) == 1 and op.results[0] in self._marked:
                    self._found[op.results[0]] = self._mark(build, op)
                    build.insert(op)
                visit(op, build.ops[-1] if build.ops else op)

    def _decide(self, block: Block) -> None:
        def note(values: Iterable[SSAValue], *reasons: Iterable[SSAValue]) -> None:
            for value, *why in zip(values, *reasons, strict=True):
                if isinstance(value.type, TensorType) and any(one in self._marked for one in why):
                    self._marked.add(value)

        for op in block.ops:
            if isinstance(op, scf.ForOp):
                body = op.body.block
                note(body.args[1:], op.iter_args, _yielded(body))
                self._decide(body)
                note(op.results, op.iter_args, _yielded(body))
            elif isinstance(op, scf.WhileOp):
                test, body = op.before_region.block, op.after_region.block
                note(test.args, op.arguments, _yielded(body))
                self._decide(test)
                note(body.args, _yielded(test)[1:])
                self._decide(body)
                note(op.results, _yielded(test)[1:])
            elif isinstance(op, scf.IfOp):
                for region in op.regions:
                    if region.blocks:
                        self._decide(region.block)
                        note(op.results, _yielded(region.block))
            elif (isinstance(op, tile.LoadOp) and _open_axes(op)) or (
                isinstance(op, _SPREADS) and any(operand in self._marked for operand in op.operands)
            ):
                self._marked.add(op.results[0])

    def _mark(self, build: Builder, op: Operation) -> SSAValue:
        match op:
            case tile.LoadOp():
                return _of_load(build, op)
            case tile.EwOp() if op.fn.data == "select":
                condition, first, second = op.operands
                return build.ew("select", condition, self._or_none(build, first), self._or_none(build, second))
            case tile.ReduceOp():
                return _of_reduce(build, op, self._found[op.operand])
            case tile.ScanOp():
                return build.add(tile.ScanOp("or", self._found[op.operand], op.axis.value.data))
            case tile.SortOp():
                # Where marked elements go is not known here: all of their row may be one.
                mark = build.folded("or", self._found[op.operand], op.axis.value.data)
                return build.spread(mark, tile_type(op.result).get_shape())
            case tile.DotOp():
                return self._of_dot(build, op)
            case tile.TakeOp():
                moved = self._found.get(op.operand)
                marks = [] if moved is None else [build.add(tile.TakeOp(moved, op.indices))]
                return build.any([*marks, *(self._found[index] for index in op.indices if index in self._found)])
            case tile.UnpackOp() | tile.PackOp():
                return _of_halves(build, op, self._found[op.operand])
            case tile.ExpandOp() | tile.BroadcastOp() | tile.TransOp():
                return build.add(_moved(op, self._found[op.operand]))
            case _:
                return build.any([self._found[operand] for operand in op.operands if operand in self._found])

    def _or_none(self, build: Builder, value: SSAValue) -> SSAValue:
        """The mark of a value, false all over where it has none."""
        found = self._found.get(value)
        return build.full(0, _TRUTH, tile_type(value).get_shape()) if found is None else found

    def _of_dot(self, build: Builder, op: tile.DotOp) -> SSAValue:
        """A product of two elements is made up if one of them is, and does not count if one is zero."""
        shape = tile_type(op.result).get_shape()
        left, right, start = (self._found.get(operand) for operand in (op.a, op.b, op.c))
        parts = [] if start is None else [start]
        for mark, folded in ((left, len(shape) - 1), (right, len(shape) - 2)):
            if mark is not None:
                alone = build.add(tile.ExpandOp(build.add(tile.ReduceOp("and", mark, folded)), folded))
                parts.append(build.add(tile.BroadcastOp(alone, shape)))
        used_a, used_b = (_counts(build, operand, 0) for operand in (op.a, op.b))
        meetings = build.full(0, element_of(f32), shape)
        for a, b in ((_both(build, used_a, left), used_b), (used_a, _both(build, used_b, right))):
            if a is not None and b is not None:
                left_ones, right_ones = (build.add(tile.EwOp("cast", [operand], to=f32)) for operand in (a, b))
                meetings = build.add(tile.DotOp(left_ones, right_ones, meetings))
        parts.append(build.ew("gt", meetings, build.full(0, element_of(f32), shape)))
        return build.any(parts)

    def _write_loop(self, op: scf.ForOp, visit: Visit) -> None:
        body, build = op.body.block, Builder()
        indices = [index for index, argument in enumerate(body.args[1:]) if argument in self._marked]
        initial = [self._or_none(build, op.iter_args[index]) for index in indices]
        build.insert(op, before=True)
        for index, mark in zip(indices, initial, strict=True):
            self._found[body.args[1 + index]] = body.insert_arg(mark.type, len(body.args))
        self.write(body, visit)
        self._yield_marks(body, indices)
        made = scf.ForOp(op.lb, op.ub, op.step, [*op.iter_args, *initial], op.detach_region(op.body))
        self._replace(op, made, indices)

    def _write_while(self, op: scf.WhileOp, visit: Visit) -> None:
        test, body, build = op.before_region.block, op.after_region.block, Builder()
        carried = [index for index, argument in enumerate(test.args) if argument in self._marked]
        handed = [index for index, argument in enumerate(body.args) if argument in self._marked]
        initial = [self._or_none(build, op.arguments[index]) for index in carried]
        build.insert(op, before=True)
        for index, mark in zip(carried, initial, strict=True):
            self._found[test.args[index]] = test.insert_arg(mark.type, len(test.args))
        self.write(test, visit)
        for index in handed:
            type_ = TensorType(_TRUTH, tile_type(body.args[index]).get_shape())
            self._found[body.args[index]] = body.insert_arg(type_, len(body.args))
        self._yield_marks(test, [1 + index for index in handed])
        self.write(body, visit)
        self._yield_marks(body, carried)
        types = [argument.type for argument in body.args]
        first, second = (op.detach_region(region) for region in list(op.regions))
        self._replace(op, scf.WhileOp([*op.arguments, *initial], types, first, second), handed)

    def _write_branch(self, op: scf.IfOp, visit: Visit) -> None:
        indices = [index for index, result in enumerate(op.results) if result in self._marked]
        for region in op.regions:
            if region.blocks:
                self.write(region.block, visit)
                self._yield_marks(region.block, indices)
        types = [TensorType(_TRUTH, tile_type(op.results[index]).get_shape()) for index in indices]
        first, second = (op.detach_region(region) for region in list(op.regions))
        made = scf.IfOp(op.cond, [*(result.type for result in op.results), *types], first, second)
        self._replace(op, made, indices)

    def _yield_marks(self, block: Block, indices: Sequence[int]) -> None:
        end, build = block.last_op, Builder()
        assert isinstance(end, scf.YieldOp | scf.ConditionOp)
        marks = [self._or_none(build, end.operands[index]) for index in indices]
        build.insert(end, before=True)
        end.operands = [*end.operands, *marks]

    def _replace(self, op: _Control, made: _Control, indices: Sequence[int]) -> None:
        made.attributes |= op.attributes
        adopt_location([made], op)
        count = len(op.results)
        for old, new in zip(op.results, made.results, strict=False):
            new.name_hint = old.name_hint
        for index, mark in zip(indices, made.results[count:], strict=True):
            self._found[made.results[index]] = mark
        Rewriter.replace_op(op, made, made.results[:count])


def _yielded(block: Block) -> Sequence[SSAValue]:
    end = block.last_op
    assert end is not None
    return end.operands


def _open_axes(op: tile.LoadOp) -> list[int]:
    """The axes along which a load might leave its view."""
    found: list[int] = []
    for axis, (offset, count) in enumerate(zip(op.offsets, tile_type(op.result).get_shape(), strict=True)):
        start, size = literal(offset), _known_size(op.view, axis)
        if start is None or size is None or start < 0 or start + count > size:
            found.append(axis)
    return found


def _known_size(view: SSAValue, axis: int) -> int | None:
    if isinstance(owner := view.owner, tile.ViewOp):
        return literal(owner.sizes[axis])
    size = signature_size(view, axis)
    return size if isinstance(size, int) else None


def _of_load(build: Builder, op: tile.LoadOp) -> SSAValue:
    shape, element, parts = tile_type(op.result).get_shape(), element_of(i64), list[SSAValue]()
    for axis in _open_axes(op):
        positions = build.add(tile.IotaOp(op.offsets[axis], axis, TensorType(element, shape)))
        size = build.add(arith.IndexCastOp(build.add(tile.DimOp(op.view, axis)), element))
        parts.append(build.ew("lt", positions, build.full(0, element, shape)))
        parts.append(build.ew("ge", positions, build.add(tile.FullOp(size, shape))))
    return build.any(parts)


def _of_halves(build: Builder, op: tile.UnpackOp | tile.PackOp, mark: SSAValue) -> SSAValue:
    """The halves of a byte that is made up are; so is a byte of which one half is."""
    shape, element, along = tile_type(op.result).get_shape(), element_of(i64), op.axis.value.data
    zero = build.add(materialize(0, IndexType()))
    places = [build.add(tile.IotaOp(zero, axis, TensorType(element, shape))) for axis in range(len(shape))]
    at, one = places[along], build.full(1, element, shape)

    def taken(position: SSAValue) -> SSAValue:
        return build.add(tile.TakeOp(mark, [*places[:along], position, *places[along + 1 :]]))

    if isinstance(op, tile.UnpackOp):
        return taken(build.ew("shr", at, one))
    first = build.ew("shl", at, one)
    return build.any([taken(first), taken(build.ew("or", first, one))])


def _of_reduce(build: Builder, op: tile.ReduceOp, mark: SSAValue) -> SSAValue:
    axis, dtype = op.axis.value.data, tile_dtype(op.operand)
    counted = _both(build, _counts(build, op.operand, reductions.TABLE[op.kind.data].identity(dtype)), mark)
    assert counted is not None
    alone, among = (build.add(tile.ReduceOp(kind, part, axis)) for kind, part in (("and", mark), ("or", counted)))
    return build.any([alone, among])


def _counts(build: Builder, value: SSAValue, neutral: Any) -> SSAValue:
    """Where a value changes what it is combined with. No integer makes a NaN, so that all of them may count."""
    type_ = tile_type(value)
    if not tile_dtype(value).is_float:
        return build.full(1, _TRUTH, type_.get_shape())
    return build.ew("ne", value, build.full(neutral, type_.element_type, type_.get_shape()))


def _both(build: Builder, truth: SSAValue, mark: SSAValue | None) -> SSAValue | None:
    return None if mark is None else build.ew("and", truth, mark)


def _moved(op: tile.ExpandOp | tile.BroadcastOp | tile.TransOp, mark: SSAValue) -> Operation:
    if isinstance(op, tile.ExpandOp):
        return tile.ExpandOp(mark, op.axis.value.data)
    if isinstance(op, tile.BroadcastOp):
        return tile.BroadcastOp(mark, tile_type(op.result).get_shape())
    return tile.TransOp(mark, tuple(op.permutation.iter_values()))
