"""fold-leading-axes: a tile [A, B, C] becomes a tile [A·B, C], which has the same elements row by row.

Ops that go along the leading axes become elementwise work on the numbers of rows, and elements taken at places that are
worked out of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import f64, i64
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.transforms.axes.parts import FoldingOps, rank_of, shape_of
from tessera.transforms.core.dead_code import sweep
from tessera.transforms.core.folding import literal, materialize
from tessera.transforms.core.function_pass import function_pass

_MANY = 3
"""Axes from which on a tile is folded."""
Shape = tuple[int, ...]


def fold_leading_axes(function: tile.FuncOp) -> None:
    """Folds all tiles of three axes or more."""
    if any(rank_of(value) >= _MANY for op in function.body.walk() for value in (*op.results, *op.operands)):
        _Folding().block(function.body.block)
        sweep(function.body.block)


def folded_shape(shape: Sequence[int]) -> Shape:
    """The sizes of a tile whose leading axes are folded into one."""
    return tuple(shape) if len(shape) < _MANY else (prod(shape[:-1]), shape[-1])


class _Folding:
    """The tiles of one function that were folded, and where what is written for an op goes."""

    def __init__(self) -> None:
        self._folded: dict[SSAValue, SSAValue] = {}
        self._same_elements: dict[SSAValue, SSAValue] = {}
        """Tiles that were made of another by giving it other sizes."""
        self._shapes: dict[SSAValue, Shape] = {}
        self._positions: dict[tuple[Block, Shape], list[SSAValue]] = {}
        """Positions that were written before, by the block in which they are."""
        self.ops: FoldingOps

    def block(self, block: Block) -> None:
        for argument in list(block.args):
            self._retype(argument)
        for op in list(block.ops):
            if op.regions:
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)
                self._control(op)
            elif any(rank_of(value) >= _MANY for value in (*op.results, *op.operands)) or any(
                operand in self._shapes for operand in op.operands
            ):
                self._op(op)

    def _retype(self, value: SSAValue) -> None:
        if rank_of(value) >= _MANY:
            shape = shape_of(value)
            type_ = tile_of(folded_shape(shape), tile_dtype(value))
            made = Rewriter.replace_value_with_new_type(value, type_)
            self._shapes[made] = shape

    def _control(self, op: Operation) -> None:
        """A loop or branch takes and gives folded tiles."""
        for index, operand in enumerate(op.operands):
            op.operands[index] = self.folded(operand)
        for result in list(op.results):
            self._retype(result)

    def _op(self, op: Operation) -> None:
        rule = _RULES.get(type(op))
        if rule is None:
            # The end of a block; other ops have refusals of their own, which name their tiles.
            if op.name.startswith("scf."):
                for index, operand in enumerate(op.operands):
                    op.operands[index] = self.folded(operand)
            return
        self.ops = FoldingOps(InsertPoint.before(op), op)
        made = rule(self, op)
        if made is None:
            op.detach()
            op.erase()
        elif self.rank(op.results[0]) >= _MANY:
            self._folded[op.results[0]] = made
        else:
            op.results[0].replace_all_uses_with(made)

    def shape(self, value: SSAValue) -> Shape:
        """The sizes that a tile had before it was folded."""
        return self._shapes.get(value, shape_of(value))

    def rank(self, value: SSAValue) -> int:
        return len(self.shape(value))

    def folded(self, value: SSAValue) -> SSAValue:
        return self._folded.get(value, value)

    # What rules are written with.

    def ew(self, fn: str, *operands: SSAValue) -> SSAValue:
        return self.ops.ew(fn, *operands)

    def number(self, number: int, shape: Shape) -> SSAValue:
        return self.ops.add(tile.FullOp(self.ops.add(materialize(number, element_of(i64))), shape))

    def digits(self, flat: SSAValue, sizes: Sequence[int]) -> list[SSAValue]:
        """The position along each axis of what stands at a place, counted row by row."""
        found, shape, left = list[SSAValue](), shape_of(flat), flat
        for size in reversed(sizes[1:]):
            found.insert(0, self.number(0, shape) if size == 1 else self.ew("rem", left, self.number(size, shape)))
            left = left if size == 1 else self.ew("floordiv", left, self.number(size, shape))
        return [left, *found]

    def positions(self, shape: Shape) -> list[SSAValue]:
        """The position along each axis of a tile of such sizes, in a tile of the folded sizes."""
        key = self.ops.block, shape
        if key not in self._positions:
            made = folded_shape(shape)
            last = self.ops.iota(made, len(made) - 1)
            rows = self.digits(self.ops.iota((made[0],), 0), shape[:-1]) if len(shape) >= _MANY else []
            first = [self.ops.iota(made, 0)] if len(shape) == 2 else []
            self._positions[key] = [*(self.over_columns(row, made) for row in rows), *first, last]
        return self._positions[key]

    def over_columns(self, row: SSAValue, shape: Shape) -> SSAValue:
        return self.ops.add(tile.BroadcastOp(self.ops.add(tile.ExpandOp(row, 1)), shape))

    def taken(self, value: SSAValue, shape: Shape, at: Sequence[SSAValue], *, inside: bool) -> SSAValue:
        """Elements at places along each axis that a tile had; `inside` says that none is outside of it."""
        if len(shape) < _MANY:
            return self.ops.add(tile.TakeOp(value, at))
        row, sizes = at[0], shape_of(at[0])
        for index, size in zip(at[1:-1], shape[1:-1], strict=True):
            row = self.ew("add", self.ew("mul", row, self.number(size, sizes)), index)
        if not inside:
            # One that is outside along its own axis may be a row of another.
            for index, size in zip(at[:-1], shape[:-1], strict=True):
                there = self.ew(
                    "and", self.ew("ge", index, self.number(0, sizes)), self.ew("lt", index, self.number(size, sizes))
                )
                row = self.ew("select", there, row, self.number(-1, sizes))
        return self.ops.add(tile.TakeOp(value, [row, at[-1]]))

    def reshaped(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The same elements in a tile of other sizes, of two axes at most."""
        while shape_of(value) != shape and value in self._same_elements:
            value = self._same_elements[value]
        before = shape_of(value)
        if before == shape:
            return value
        if (*before, 1) == shape:
            made = self.ops.add(tile.ExpandOp(value, len(before)))
        elif (1, *before) == shape:
            made = self.ops.add(tile.ExpandOp(value, 0))
        elif before in ((*shape, 1), (1, *shape)):
            made = self.ops.squeezed(value, 1 if before == (*shape, 1) else 0)
        else:
            flat = self.ops.iota(shape, len(shape) - 1) if shape else self.number(0, shape)
            if len(shape) == 2:
                rows = self.ew("mul", self.ops.iota(shape, 0), self.number(shape[1], shape))
                flat = self.ew("add", rows, flat)
            made = self.ops.add(tile.TakeOp(value, self.digits(flat, before)))
        self._same_elements[made] = value
        return made

    def places(self, offsets: Sequence[SSAValue], shape: Shape) -> list[SSAValue]:
        """Where in an array each element of a tile at some offsets lies, along each axis."""
        found = self.positions(shape)
        return [
            position if literal(offset) == 0 else self.ew("add", position, self.ops.full(offset, shape_of(position)))
            for offset, position in zip(offsets, found, strict=True)
        ]


def _full(work: _Folding, op: tile.FullOp) -> SSAValue:
    return work.ops.add(tile.FullOp(op.value, folded_shape(shape_of(op.result))))


def _iota(work: _Folding, op: tile.IotaOp) -> SSAValue:
    shape, axis, dtype = shape_of(op.result), op.axis.value.data, tile_dtype(op.result)
    made = folded_shape(shape)
    if axis == len(shape) - 1:
        return work.ops.add(tile.IotaOp(op.base, 1, tile_of(made, dtype)))
    rows = (made[0],)
    digit = work.digits(work.ops.iota(rows, 0), shape[:-1])[axis]
    found = work.ew("add", digit, work.ops.full(op.base, rows))
    found = found if dtype is i64 else work.ops.add(tile.EwOp("cast", [found], to=dtype))
    return work.over_columns(found, made)


def _elementwise(work: _Folding, op: tile.EwOp) -> SSAValue:
    type_ = tile_of(folded_shape(shape_of(op.result)), tile_dtype(op.result))
    operands = [work.folded(operand) for operand in op.operands_]
    made = tile.EwOp.create(operands=operands, properties=op.properties, result_types=[type_])
    made.attributes.update(op.attributes)
    return work.ops.add(made)


def _expand(work: _Folding, op: tile.ExpandOp) -> SSAValue:
    return work.reshaped(work.folded(op.operand), folded_shape(shape_of(op.result)))


def _broadcast(work: _Folding, op: tile.BroadcastOp) -> SSAValue:
    before, after = work.shape(op.operand), shape_of(op.result)
    value, made = work.folded(op.operand), folded_shape(after)
    if before[:-1] != after[:-1] and prod(before[:-1]) != 1:
        rows = (*after[:-1], before[-1])
        at = work.positions(rows)
        nothing = work.number(0, shape_of(at[0]))
        taken = [position if size != 1 else nothing for position, size in zip(at, before, strict=True)]
        value = work.taken(value, before, taken, inside=True)
    return work.ops.add(tile.BroadcastOp(value, made))


def _trans(work: _Folding, op: tile.TransOp) -> SSAValue:
    permutation = list(op.permutation.iter_values())
    at = work.positions(shape_of(op.result))
    places = [at[permutation.index(axis)] for axis in range(len(permutation))]
    return work.taken(work.folded(op.operand), work.shape(op.operand), places, inside=True)


def _reduce(work: _Folding, op: tile.ReduceOp) -> SSAValue:
    shape, axis, value = work.shape(op.operand), op.axis.value.data, work.folded(op.operand)
    rest = (*shape[:axis], *shape[axis + 1 :])
    if axis == len(shape) - 1:
        found = work.ops.add(tile.ReduceOp(op.kind.data, value, 1))
    else:
        made = shape[axis], prod(rest)
        others = work.digits(work.ops.iota(made, 1), rest)
        at = [*others[:axis], work.ops.iota(made, 0), *others[axis:]]
        found = work.ops.add(tile.ReduceOp(op.kind.data, work.taken(value, shape, at, inside=True), 0))
    return work.reshaped(found, folded_shape(rest))


def _halves(work: _Folding, op: tile.UnpackOp | tile.PackOp) -> SSAValue:
    shape, axis, value = work.shape(op.operand), op.axis.value.data, work.folded(op.operand)
    dtype, inner = tile_dtype(op.result), axis - (len(shape) - 2)
    if inner >= 0:
        # Neighbours along the last axis of the rows, or rows that are neighbours.
        return work.ops.add(type(op)(value, inner, dtype))
    rest = (*shape[:axis], *shape[axis + 1 :])
    made = prod(rest), shape[axis]
    others = work.digits(work.ops.iota(made, 0), rest)
    at = [*others[:axis], work.ops.iota(made, 1), *others[axis:]]
    halves = work.ops.add(type(op)(work.taken(value, shape, at, inside=True), 1, dtype))
    places = work.positions(shape_of(op.result))
    along, (row, *others) = places[axis], (*places[:axis], *places[axis + 1 :])
    for index, size in zip(others, rest[1:], strict=True):
        row = work.ew("add", work.ew("mul", row, work.number(size, shape_of(row))), index)
    return work.ops.add(tile.TakeOp(halves, [row, along]))


def _take(work: _Folding, op: tile.TakeOp) -> SSAValue:
    at = [work.folded(index) for index in op.indices]
    return work.taken(work.folded(op.operand), work.shape(op.operand), at, inside=False)


def _read(work: _Folding, op: tile.ReadOp) -> SSAValue:
    mask = None if op.mask is None else work.folded(op.mask)
    return work.ops.add(tile.ReadOp(op.view, [work.folded(index) for index in op.indices], mask=mask))


def _load(work: _Folding, op: tile.LoadOp) -> SSAValue:
    at = work.places(op.offsets, shape_of(op.result))
    found = work.ops.add(tile.ReadOp(op.view, at))
    if not op.pad_value:
        return found
    sizes, dtype, there = shape_of(at[0]), tile_dtype(op.result), list[SSAValue]()
    for axis, position in enumerate(at):
        end = work.ops.full(work.ops.add(tile.DimOp(op.view, axis)), sizes)
        there += [work.ew("ge", position, work.number(0, sizes)), work.ew("lt", position, end)]
    inside = reduce(lambda one, other: work.ew("and", one, other), there)
    scalar = materialize(op.pad_value, element_of(f64 if dtype.is_float else i64))
    pad = work.ops.add(tile.FullOp(work.ops.add(scalar), sizes))
    pad = pad if tile_dtype(pad) is dtype else work.ops.add(tile.EwOp("cast", [pad], to=dtype))
    return work.ew("select", inside, found, pad)


def _store(work: _Folding, op: tile.StoreOp | tile.AtomicOp) -> None:
    at = work.places(op.offsets, work.shape(op.value))
    value = work.folded(op.value)
    if isinstance(op, tile.StoreOp):
        work.ops.effect(tile.WriteOp(value, op.view, at))
    else:
        work.ops.effect(tile.AtomicAtOp(op.kind.data, value, op.view, at))


def _write(work: _Folding, op: tile.WriteOp | tile.AtomicAtOp) -> None:
    at, value = [work.folded(index) for index in op.indices], work.folded(op.value)
    mask = None if op.mask is None else work.folded(op.mask)
    if isinstance(op, tile.WriteOp):
        work.ops.effect(tile.WriteOp(value, op.view, at, mask=mask))
    else:
        work.ops.effect(tile.AtomicAtOp(op.kind.data, value, op.view, at, mask=mask))


def _assert(work: _Folding, op: tile.AssertOp) -> None:
    work.ops.effect(tile.AssertOp(work.folded(op.condition), op.message.data))


_RULES: Mapping[type[Operation], Callable[..., SSAValue | None]] = {
    tile.FullOp: _full,
    tile.IotaOp: _iota,
    tile.EwOp: _elementwise,
    tile.ExpandOp: _expand,
    tile.BroadcastOp: _broadcast,
    tile.TransOp: _trans,
    tile.ReduceOp: _reduce,
    tile.TakeOp: _take,
    tile.UnpackOp: _halves,
    tile.PackOp: _halves,
    tile.ReadOp: _read,
    tile.LoadOp: _load,
    tile.StoreOp: _store,
    tile.AtomicOp: _store,
    tile.WriteOp: _write,
    tile.AtomicAtOp: _write,
    tile.AssertOp: _assert,
}

FoldLeadingAxes = function_pass("fold-leading-axes", fold_leading_axes)
