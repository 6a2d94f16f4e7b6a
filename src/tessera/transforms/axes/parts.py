"""Parts of tiles: what there is of a tile at one place along one of its axes, a tile with an axis less.

A part is written as the op that made the tile, for that place only. Where an op has no rule, or is not to be done
again, the part is taken out of the whole tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, TensorType, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import bool_, i64
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import give_hints, hints_of
from tessera.ir.tile.parts import BELOW, PART
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.folding import FoldedValue, can_fold, fold, literal, materialize
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.tile_ops import TileOps

_PRODUCT = 2
"""Axes of a dot that is one product."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tile_type(value).get_shape()


def rank_of(value: SSAValue) -> int:
    """How many axes a tile has; none that it is no tile."""
    return tile_type(value).get_num_dims() if isinstance(value.type, TensorType) else 0


def is_batched(op: Operation) -> bool:
    """Whether an op is a dot of several products at once."""
    return isinstance(op, tile.DotOp) and rank_of(op.result) > _PRODUCT


class Numbers:
    """Whole numbers of a function, each written once, at its start: `numbers(3)`."""

    def __init__(self, function: tile.FuncOp) -> None:
        self._function = function
        self._made: dict[int, SSAValue] = {}

    def __call__(self, number: int) -> SSAValue:
        if number not in self._made:
            constant = materialize(number, IndexType())
            adopt_location([constant], self._function)
            Rewriter.insert_op(constant, InsertPoint.at_start(self._function.body.block))
            self._made[number] = constant.result
        return self._made[number]


class FoldingOps(TileOps):
    """Ops on tiles, written one behind the other at a point of a function, with the location of a source op.

    Scalar ops that amount to less are folded.
    """

    def __init__(self, where: InsertPoint, source: Operation) -> None:
        super().__init__()
        self._where, self._source = where, source

    @property
    def block(self) -> Block:
        return self._where.block

    def add(self, op: Operation) -> SSAValue:
        """The first result of an op that is written; of a scalar op that amounts to less, that."""
        known = [literal(operand) for operand in op.operands]
        found = fold(op, known) if can_fold(type(op)) else None
        if found is None:
            return self._put(op)
        kept = (
            found.value if isinstance(found, FoldedValue) else self._put(materialize(found.value, op.results[0].type))
        )
        op.erase()
        return kept

    def effect(self, op: Operation) -> None:
        """Puts an op without results here."""
        adopt_location([op], self._source)
        Rewriter.insert_op(op, self._where)

    def _put(self, op: Operation) -> SSAValue:
        self.effect(op)
        return op.results[0]

    def sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(arith.AddiOp(a, b))

    def full(self, at: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A tile whose every element is one position."""
        return self.add(tile.FullOp(self.add(arith.IndexCastOp(at, element_of(i64))), shape))

    def iota(self, shape: Sequence[int], axis: int) -> SSAValue:
        return self.add(tile.IotaOp(self.index(0), axis, tile_of(tuple(shape), i64)))

    def squeezed(self, value: SSAValue, axis: int) -> SSAValue:
        """A tile without an axis of size 1."""
        return self.add(tile.ReduceOp("or" if tile_dtype(value) is bool_ else "max", value, axis))

    def view(
        self, view: SSAValue, offsets: Sequence[SSAValue], axis: int, at: SSAValue
    ) -> tuple[SSAValue, list[SSAValue]]:
        """The view at a place behind an offset along an axis, and the other offsets; it is empty where nothing is."""
        rest = [other for other in range(len(offsets)) if other != axis]
        position, size = self.sum(offsets[axis], at), self.add(tile.DimOp(view, axis))
        sizes = [self.add(tile.DimOp(view, other)) for other in rest]
        strides = [self.add(tile.StrideOp(view, other)) for other in rest]
        # As a user's `x[i]`: targets know such a part of an array, whatever number the place is.
        far = self._put(arith.MuliOp(position, self.add(tile.StrideOp(view, axis))))
        number, extent = literal(position), literal(size)
        certain = number is not None and extent is not None and 0 <= number < extent
        if not certain:
            inside = self._put(arith.CmpiOp(position, size, BELOW))
            sizes[0] = self._put(arith.SelectOp(inside, sizes[0], self.index(0)))
        made = tile.ViewOp(view, far, sizes, strides)
        if not certain:
            made.attributes[PART] = UnitAttr()
        return self._put(made), [offsets[other] for other in rest]


class Parts:
    """Writes parts of tiles by the `ops` for a tile; `is_followed` says which ops may be done again for a part.

    `split` has tiles of which the parts along the first axis are there already.
    """

    def __init__(self, ops: Callable[[SSAValue], FoldingOps], is_followed: Callable[[Operation], bool]) -> None:
        self._ops, self._is_followed = ops, is_followed
        self._made: dict[tuple[SSAValue, int, object], SSAValue] = {}
        self.split: dict[SSAValue, Sequence[SSAValue]] = {}

    def part(self, value: SSAValue, axis: int, at: SSAValue) -> SSAValue:
        """What there is of a tile at a place along an axis."""
        number: int | None = literal(at)
        if value in self.split and axis == 0 and number is not None:
            return self.split[value][number]
        key = value, axis, at if number is None else number
        if key not in self._made:
            self._made[key] = self._find(value, axis, at)
        return self._made[key]

    def _find(self, value: SSAValue, axis: int, at: SSAValue) -> SSAValue:
        owner = value.owner
        rule = rule_of(owner, axis) if isinstance(owner, Operation) and self._is_followed(owner) else None
        return self._taken(value, axis, at) if rule is None else rule(self, owner, axis, at)

    def add(self, source: SSAValue, op: Operation) -> SSAValue:
        """Writes an op in place of the one that made a tile."""
        return self._ops(source).add(op)

    def here(self, source: SSAValue) -> FoldingOps:
        return self._ops(source)

    def _taken(self, value: SSAValue, axis: int, at: SSAValue) -> SSAValue:
        """The part out of the whole tile."""
        ops, shape = self._ops(value), shape_of(value)
        rest = tuple(size for other, size in enumerate(shape) if other != axis)
        places = [
            ops.full(at, rest) if other == axis else ops.iota(rest, other - (other > axis))
            for other in range(len(shape))
        ]
        return ops.add(tile.TakeOp(value, places))


def _of_full(parts: Parts, op: tile.FullOp, axis: int, at: SSAValue) -> SSAValue:
    return parts.add(op.result, tile.FullOp(op.value, _without(shape_of(op.result), axis)))


def _of_iota(parts: Parts, op: tile.IotaOp, axis: int, at: SSAValue) -> SSAValue:
    along, shape, dtype = op.axis.value.data, _without(shape_of(op.result), axis), tile_dtype(op.result)
    ops = parts.here(op.result)
    if along != axis:
        return ops.add(tile.IotaOp(op.base, along - (along > axis), tile_of(shape, dtype)))
    found = ops.full(ops.sum(op.base, at), shape)
    return found if dtype is i64 else ops.add(tile.EwOp("cast", [found], to=dtype))


def _of_elementwise(parts: Parts, op: tile.EwOp, axis: int, at: SSAValue) -> SSAValue:
    operands = [parts.part(operand, axis, at) for operand in op.operands_]
    type_ = tile_of(_without(shape_of(op.result), axis), tile_dtype(op.result))
    made = tile.EwOp.create(operands=operands, properties=op.properties, result_types=[type_])
    made.attributes.update(op.attributes)
    return parts.add(op.result, made)


def _of_reduce(parts: Parts, op: tile.ReduceOp, axis: int, at: SSAValue) -> SSAValue:
    folded = op.axis.value.data
    inner = parts.part(op.operand, axis + (axis >= folded), at)
    return parts.add(op.result, tile.ReduceOp(op.kind.data, inner, folded - (folded > axis)))


def _of_halves(parts: Parts, op: tile.UnpackOp | tile.PackOp, axis: int, at: SSAValue) -> SSAValue:
    along = op.axis.value.data
    inner = parts.part(op.operand, axis, at)
    return parts.add(op.result, type(op)(inner, along - (along > axis), tile_dtype(op.result)))


def _of_expand(parts: Parts, op: tile.ExpandOp, axis: int, at: SSAValue) -> SSAValue:
    inserted = op.axis.value.data
    if inserted == axis:
        return op.operand
    inner = parts.part(op.operand, axis - (axis > inserted), at)
    return parts.add(op.result, tile.ExpandOp(inner, inserted - (inserted > axis)))


def _of_broadcast(parts: Parts, op: tile.BroadcastOp, axis: int, at: SSAValue) -> SSAValue:
    shape = _without(shape_of(op.result), axis)
    ops = parts.here(op.result)
    repeats = shape_of(op.operand)[axis] == 1
    inner = parts.part(op.operand, axis, ops.index(0) if repeats else at)
    return inner if shape_of(inner) == shape else ops.add(tile.BroadcastOp(inner, shape))


def _of_trans(parts: Parts, op: tile.TransOp, axis: int, at: SSAValue) -> SSAValue:
    permutation = list(op.permutation.iter_values())
    gone = permutation[axis]
    inner = parts.part(op.operand, gone, at)
    left = [one - (one > gone) for one in permutation if one != gone]
    return inner if left == sorted(left) else parts.add(op.result, tile.TransOp(inner, left))


def _of_take(parts: Parts, op: tile.TakeOp, axis: int, at: SSAValue) -> SSAValue:
    cut = _cut_of(op, axis)
    if cut is not None:
        ops, (source, factor, offset) = parts.here(op.result), cut
        there = ops.add(arith.MuliOp(at, ops.index(factor)))
        there = ops.add(arith.AddiOp(there, ops.index(offset)))
        inner = parts.part(op.operand, source, there)
        left = [parts.part(index, axis, at) for other, index in enumerate(op.indices) if other != source]
        return parts.add(op.result, tile.TakeOp(inner, left))
    return parts.add(op.result, tile.TakeOp(op.operand, [parts.part(index, axis, at) for index in op.indices]))


def _cut_of(op: tile.TakeOp, axis: int) -> tuple[int, int, int] | None:
    """The axis of the operand of which a part along an axis of the result takes one place, and which: a·i + b."""
    size = shape_of(op.result)[axis]
    for source, (index, extent) in enumerate(zip(op.indices, shape_of(op.operand), strict=True)):
        found = _along(index, axis) if len(op.indices) > 1 else None
        if found is not None and all(0 <= found[0] * end + found[1] < extent for end in (0, size - 1)):
            return source, *found
    return None


def _along(value: SSAValue, axis: int) -> tuple[int, int] | None:
    """A tile of whole numbers as a·i + b of the place i along an axis, if it depends on nothing else."""
    op = value.owner
    match op:
        case tile.FullOp():
            number = literal(op.value)
            return None if number is None else (0, int(number))
        case tile.IotaOp():
            base = literal(op.base)
            return None if base is None or op.axis.value.data != axis else (1, int(base))
        case tile.BroadcastOp() if shape_of(op.operand)[axis] == shape_of(op.result)[axis]:
            return _along(op.operand, axis)
        case tile.EwOp() if op.fn.data in ("add", "sub", "mul"):
            left, right = (_along(operand, axis) for operand in op.operands_)
            if left is None or right is None:
                return None
            (a, b), (c, d) = left, right
            if op.fn.data == "mul":
                return None if a and c else (a * d + b * c, b * d)
            return (a + c, b + d) if op.fn.data == "add" else (a - c, b - d)
        case _:
            return None


def _of_read(parts: Parts, op: tile.ReadOp, axis: int, at: SSAValue) -> SSAValue:
    indices = [parts.part(index, axis, at) for index in op.indices]
    mask = None if op.mask is None else parts.part(op.mask, axis, at)
    return parts.add(op.result, tile.ReadOp(op.view, indices, mask=mask))


def _of_dot(parts: Parts, op: tile.DotOp, axis: int, at: SSAValue) -> SSAValue:
    made = tile.DotOp(*(parts.part(operand, axis, at) for operand in op.operands), accum=op.accum)
    made.attributes.update(op.attributes)
    return parts.add(op.result, made)


def _of_load(parts: Parts, op: tile.LoadOp, axis: int, at: SSAValue) -> SSAValue:
    ops, pad = parts.here(op.result), None if op.pad is None else op.pad_value
    if len(op.offsets) == 1:
        return ops.squeezed(ops.add(tile.LoadOp(op.view, [ops.sum(op.offsets[0], at)], (1,), pad)), 0)
    view, offsets = ops.view(op.view, op.offsets, axis, at)
    part = tile.LoadOp(view, offsets, _without(shape_of(op.result), axis), pad)
    give_hints(part, hints_of(op))
    return ops.add(part)


Rule = Callable[..., SSAValue]
"""Takes the writer, an op of its kind, an axis, and the place along it."""
_RULES: Mapping[type[Operation], Rule] = {
    tile.FullOp: _of_full,
    tile.IotaOp: _of_iota,
    tile.EwOp: _of_elementwise,
    tile.ReduceOp: _of_reduce,
    tile.ExpandOp: _of_expand,
    tile.BroadcastOp: _of_broadcast,
    tile.TransOp: _of_trans,
    tile.TakeOp: _of_take,
    tile.UnpackOp: _of_halves,
    tile.PackOp: _of_halves,
    tile.ReadOp: _of_read,
    tile.DotOp: _of_dot,
    tile.LoadOp: _of_load,
}


def rule_of(op: Operation, axis: int) -> Rule | None:
    """How a part of an op's tile along an axis is written; None if it comes out of the whole."""
    if isinstance(op, tile.EwOp) and op.seed is not None:
        return None  # what is drawn for an element depends on where it stands
    if isinstance(op, tile.UnpackOp | tile.PackOp) and axis == op.axis.value.data:
        return None
    if isinstance(op, tile.DotOp) and axis >= rank_of(op.result) - _PRODUCT:
        return None
    return _RULES.get(type(op))


def operands_of(op: Operation, axis: int) -> Iterator[tuple[SSAValue, int]]:
    """The tiles whose parts a part of an op's tile is made of, with the axis along which each of them is cut."""
    match op:
        case tile.ReduceOp():
            yield op.operand, axis + (axis >= op.axis.value.data)
        case tile.ExpandOp():
            if op.axis.value.data != axis:
                yield op.operand, axis - (axis > op.axis.value.data)
        case tile.TransOp():
            yield op.operand, list(op.permutation.iter_values())[axis]
        case tile.TakeOp():
            cut = _cut_of(op, axis)
            if cut is not None:
                yield op.operand, cut[0]
            yield from ((one, axis) for other, one in enumerate(op.indices) if cut is None or other != cut[0])
        case _:
            yield from ((operand, axis) for operand in op.operands if isinstance(operand.type, TensorType))


def sink_part(parts: Parts, ops: FoldingOps, op: tile.Writer | tile.AssertOp, at: SSAValue) -> None:
    """Writes what an op does to memory, or asks of a tile, at a place along the first axis of its tile."""
    if isinstance(op, tile.AssertOp):
        ops.effect(tile.AssertOp(parts.part(op.condition, 0, at), op.message.data))
        return
    piece = parts.part(op.value, 0, at)
    if isinstance(op, tile.WriteOp | tile.AtomicAtOp):
        indices = [parts.part(index, 0, at) for index in op.indices]
        mask = None if op.mask is None else parts.part(op.mask, 0, at)
        if isinstance(op, tile.WriteOp):
            ops.effect(tile.WriteOp(piece, op.view, indices, mask=mask))
        else:
            ops.effect(tile.AtomicAtOp(op.kind.data, piece, op.view, indices, mask=mask))
        return
    if len(op.offsets) == 1:
        view, offsets = op.view, [ops.sum(op.offsets[0], at)]
        piece = ops.add(tile.ExpandOp(piece, 0))
    else:
        view, offsets = ops.view(op.view, op.offsets, 0, at)
    if isinstance(op, tile.StoreOp):
        stored = tile.StoreOp(piece, view, offsets)
        give_hints(stored, hints_of(op))
        ops.effect(stored)
    else:
        ops.effect(tile.AtomicOp(op.kind.data, piece, view, offsets))


def tiles_of_sink(op: tile.Writer | tile.AssertOp) -> Iterator[SSAValue]:
    """The tiles that an op with an effect takes; all have the same sizes."""
    yield from (operand for operand in op.operands if isinstance(operand.type, TensorType))


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
