"""Values of a region as tiles of one program instance: the common part of the writers for matmuls.

A program instance stands at a place of an iteration space. Along some axes it has one coordinate, along others a block
of them; the values of the region at that place are tiles whose axes are those of the blocks. Index maps are followed by
digits (`index_digits.py`) down to the arguments, which are loaded as boxes wherever they are: an axis of the argument
for every axis of the tile, one coordinate along all others.

Floats of 16 bits are carried in f32 between ops, as long as nothing but the kernel sees them: they are rounded where
they are stored, where a dot takes them, and where a cast says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes.types import BY_NAME, NO_POLICY, DType, Kind, Policy, bf16, f16, f32, i32, i64
from tessera.errors import CompileError
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.shapes.expr import Dim, Quotient, Shape, Size, dim, size
from tessera.transforms.core.folding import materialize
from tessera.transforms.core.index_digits import PULL, Digit, Index, Map, plain, whole
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.fusion.kernel_numbers import KernelNumbers, Scalar, Signature, kernel_of
from tessera.transforms.fusion.regions import is_splat

_index = IndexType()


@dataclass(frozen=True)
class Axis:
    """An axis of the iteration space: its size, and a program instance's place; with an extent it has a block there."""

    size: Size
    start: Scalar
    extent: int | None = None


@dataclass(frozen=True)
class Value:
    """A tile, and which axes of the iteration space its axes are. A scalar alone fills whatever shape is wanted."""

    ssa: SSAValue
    axes: tuple[int, ...] = ()
    splat: bool = False

    def axes_in(self, where: Map) -> bool:
        """Whether a position goes along all axes of the tile: one may not if its size is 1, where its block is more."""
        return set(self.axes) <= {axis for index in where for axis in index.axes}


@dataclass(frozen=True)
class _Along:
    """One axis of a view that is loaded from: how far it reaches, and where the tile begins."""

    size: Size
    argument_axis: int
    step: Size
    offset: Scalar
    extent: int
    axis: int | None


class RegionTiles(KernelNumbers):
    """Writes ops for the values of one region into a tile function."""

    def __init__(
        self,
        name: str,
        region: schedule.RegionOp,
        grid: Callable[[Callable[[Size], Size]], Sequence[Size]],
        signature: Signature | None = None,
    ) -> None:
        """`grid` is made of sizes as the function's head spells them. Without a signature it is that of the region."""
        self.region = region
        signature = Signature.of(region) if signature is None else signature
        self.given_types, self.result_types = signature.given, signature.results
        self.spelled = spelled([tensor.shape for tensor in signature.tensors])
        self.function = kernel_of(name, region, self.spell, grid(self.spell), signature)
        self.given = self.function.arguments[: len(signature.given)]
        """Arguments besides those of the region."""
        self.views: dict[SSAValue, SSAValue] = dict(
            zip(signature.values, self.function.arguments[len(self.given) :], strict=False)
        )
        self.axes: dict[int, Axis] = {}
        self.folded: int | None = None
        """The axis of the iteration that reductions fold, if the program instance has all of it."""
        self.source: Operation = region
        self.outer: Block = self.function.body.block
        self.block: Block = self.outer
        self.known: dict[tuple[SSAValue, Map], Value] = {}
        self._told: set[tuple[SSAValue, Map]] = set()
        self._scalars: dict[tuple[Any, ...], SSAValue] = {}

    @property
    def results(self) -> tuple[SSAValue, ...]:
        return self.function.arguments[self.function.input_count :]

    def spell(self, extent: Size) -> Size:
        """A size in the symbols of the tile function."""
        return size(self.spelled[extent]) if extent in self.spelled else extent

    # Ops.

    def add(self, op: Operation, block: Block | None = None) -> SSAValue:
        adopt_location([op], self.source)
        (self.block if block is None else block).add_op(op)
        return op.results[0] if op.results else None  # pyright: ignore[reportReturnType]  # stores have none

    def scalar(self, kind: Callable[..., Operation], *operands: Any) -> SSAValue:
        """A number, computed once, and outside of loops wherever it can be."""
        key = (kind, *operands)
        if key not in self._scalars:
            inside = any(self._is_inner(one) for one in _values(operands))
            self._scalars[key] = self.add(kind(*operands), self.block if inside else self.outer)
        return self._scalars[key]

    def _is_inner(self, value: SSAValue) -> bool:
        owner = value.owner
        return self.block is not self.outer and (owner is self.block or getattr(owner, "parent", None) is self.block)

    def number(self, value: Scalar) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.scalar(_constant, value)

    def computed(self, kind: Callable[[SSAValue, SSAValue], Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        return self.scalar(kind, left, right)

    def size(self, extent: Size) -> Scalar:
        """A size as a number of the kernel: from an argument that has it, or computed from its symbols."""
        if isinstance(extent, int):
            return extent
        wanted = self.spell(extent)
        for view, shape in zip(self.function.arguments, self.function.shapes, strict=True):
            if wanted in shape.data:
                return self.scalar(tile.DimOp, view, shape.data.index(wanted))
        if str(extent).isidentifier():
            return self._left_over(extent)
        total: Scalar = 0
        for monomial, coefficient in dim(extent).terms:
            term: Scalar = coefficient
            for atom in monomial:
                part = (
                    self.over(self.size(size(atom.numerator)), atom.divisor)
                    if isinstance(atom, Quotient)
                    else self.size(size(atom))
                )
                term = self.times(term, part)
            total = self.plus(total, term)
        return total

    def _left_over(self, symbol: Dim) -> Scalar:
        """A symbol that no argument has alone: what is left of a sum with it, such as T of S + T, where S is known."""
        alone = {str(one) for shape in self.function.shapes for one in shape.data if str(one).isidentifier()}
        for sum_ in self.spelled:
            rest = dim(sum_) - symbol
            if str(symbol) not in rest.symbols and rest.symbols <= alone:
                return self.minus(self.size(sum_), self.size(size(rest)))
        raise CompileError(f"no argument of a region has the size {symbol}", span=span_of(self.source.location))

    def loop(
        self,
        stop: Scalar,
        step: int,
        carried: Sequence[SSAValue],
        body: Callable[..., Sequence[SSAValue]],
        start: Scalar = 0,
    ) -> list[SSAValue]:
        """A loop over what is carried; `body` is given the counter and what is carried, and gives the next."""
        block = Block(arg_types=[_index, *(value.type for value in carried)])
        before = dict(self.known)
        first, width, last = self.number(start), self.number(step), self.number(stop)
        self.block = block
        following = body(*block.args)
        self.add(scf.YieldOp(*following))
        self._scalars = {key: value for key, value in self._scalars.items() if not self._is_inner(value)}
        self.block, self.known = self.outer, before
        made = scf.ForOp(first, last, width, list(carried), block)
        self.add(made)
        return list(made.results)

    # Positions.

    def digit(self, digit: Digit) -> Scalar:
        """A digit of the coordinate at which the program instance, or its block, stands."""
        axis = self.axes[digit.axis]
        found = self.over(axis.start, self.size(digit.divisor))
        if size(dim(digit.size) * digit.divisor) == axis.size:
            return found
        modulus = self.size(digit.size)
        return self.minus(found, self.times(self.over(found, modulus), modulus))

    def parts(self, index: Index) -> tuple[Scalar, list[tuple[Digit, Size]]]:
        """A position as a number, and the digits in which a block of coordinates goes on."""
        base: Scalar = self.size(index.constant)
        blocks: list[tuple[Digit, Size]] = []
        for digit, factor in index.terms:
            kind = kind_of(digit, self.axes[digit.axis])
            if kind == "block":
                blocks.append((digit, factor))
            elif kind == "number":
                base = self.plus(base, self.times(self.digit(digit), self.size(factor)))
            else:
                raise CompileError(
                    f"a block of {self.axes[digit.axis].extent} does not fit an axis that is cut into {digit.size}s",
                    span=span_of(self.source.location),
                    hint="give the region a block that divides it",
                )
        return base, blocks

    def _along(self, where: Map, shape: Shape) -> tuple[list[_Along], dict[int, Scalar]]:
        """The axes of a view at a position, and the coordinate along every axis of the argument that is fixed."""
        found: list[_Along] = []
        fixed: dict[int, Scalar] = {}
        for position, (index, extent) in enumerate(zip(where, shape, strict=True)):
            base, blocks = self.parts(index)
            if not blocks:
                fixed[position] = base
            for digit, factor in blocks:
                axis = self.axes[digit.axis]
                assert axis.extent is not None
                start = self.digit(digit)
                ends = (digit.size == extent and base == 0) or (
                    isinstance(digit.size, int) and digit.size % axis.extent == 0
                )
                if factor == 1 and len(blocks) == 1 and ends:
                    found.append(_Along(extent, position, 1, self.plus(base, start), axis.extent, digit.axis))
                else:
                    # The block may end before the argument does: the view ends there.
                    fixed[position] = base
                    found.append(_Along(digit.size, position, factor, start, axis.extent, digit.axis))
        return found, fixed

    def view_along(
        self, view: SSAValue, where: Map, shape: Shape, needed: Sequence[int] = ()
    ) -> tuple[SSAValue, list[_Along]]:
        """A view of an argument on whose axes the blocks lie, in the argument's order.

        Axes that are `needed` and that the argument does not have are there with size 1.
        """
        along, fixed = self._along(where, shape)
        missing = [axis for axis in needed if axis not in {one.axis for one in along}]
        along = [*(_Along(1, -1, 1, 0, self.extents([axis])[0], axis) for axis in missing), *along]
        if not along:
            # One element: a block of 1 along the last axis.
            last = len(shape) - 1
            along = [_Along(shape[last] if shape else 1, last, 1, fixed.pop(last, 0), 1, None)]
        if [one.argument_axis for one in along] == list(range(len(shape))) and not fixed:
            return view, along
        offset: Scalar = 0
        for axis, coordinate in fixed.items():
            if coordinate != 0:
                stride = self.scalar(tile.StrideOp, view, axis)
                term = stride if coordinate == 1 else self.scalar(arith.MuliOp, self.number(coordinate), stride)
                offset = self.plus(offset, term)
        sizes = [self.number(self.size(one.size)) for one in along]
        strides = [
            self.number(1)
            if one.argument_axis < 0
            else self.number(self.times(self.scalar(tile.StrideOp, view, one.argument_axis), self.size(one.step)))
            for one in along
        ]
        made = self.scalar(tile.ViewOp, view, self.number(offset), tuple(sizes), tuple(strides))
        return made, along

    def load(self, argument: SSAValue, where: Map) -> Value:
        tensor = graph_type(argument)
        digits = [digit for index in where for digit, _ in index.terms if digit.size != 1]
        if tensor.dtype.kind is Kind.INT and all(kind_of(one, self.axes[one.axis]) == "number" for one in digits):
            # A number for the whole program instance: masks that compare with it shorten loops.
            places = tuple(self.number(self.parts(index)[0]) for index in where)
            return Value(self.scalar(tile.ItemOp, self.views[argument], places), splat=True)
        return self._load(self.views[argument], tensor.shape, where)

    def load_given(self, number: int, where: Map) -> Value:
        """The tile of an argument that the region does not have."""
        return self._load(self.given[number], self.given_types[number].shape, where)

    def _load(self, argument: SSAValue, shape: Shape, where: Map) -> Value:
        view, along = self.view_along(argument, where, shape)
        offsets = [self.number(one.offset) for one in along]
        loaded = self.add(tile.LoadOp(view, offsets, [one.extent for one in along]))
        return Value(loaded, tuple(one.axis for one in along if one.axis is not None))

    def store(self, value: Value, number: int, where: Map) -> None:
        """Stores a tile as the part of a result that it is."""
        result = self.result_types[number]
        value = self.rounded(value, result.dtype)
        view, along = self.view_along(self.results[number], where, result.shape, () if value.splat else value.axes)
        axes = tuple(one.axis for one in along if one.axis is not None)
        fitted = self.fit(value, axes)
        self.add(tile.StoreOp(fitted.ssa, view, [self.number(one.offset) for one in along]))

    # Tiles.

    def inside(self, axis: int) -> Value | None:
        """Which coordinates of a block lie before the end of its axis; None where all of them surely do."""
        along = self.axes[axis]
        assert along.extent is not None
        if isinstance(along.size, int) and along.size > 0 and along.size % along.extent == 0:
            return None
        positions = self.add(tile.IotaOp(self.number(along.start), 0, tile_of((along.extent,), i64)))
        return self.ew("lt", Value(positions, (axis,)), self.counted(along.size))

    def position(self, index: Index) -> Value:
        """A position as numbers in a tile, whatever part of a block's coordinates its digits are."""
        total = self.counted(index.constant)
        for digit, factor in index.terms:
            axis = self.axes[digit.axis]
            if kind_of(digit, axis) == "number":
                found = Value(self.scalar(arith.IndexCastOp, self.number(self.digit(digit)), element_of(i64)), (), True)
            else:
                assert axis.extent is not None
                counted = self.add(tile.IotaOp(self.number(axis.start), 0, tile_of((axis.extent,), i64)))
                found = Value(counted, (digit.axis,))
                if digit.divisor != 1:
                    found = self.ew("floordiv", found, self.counted(digit.divisor))
                if size(dim(digit.size) * digit.divisor) != axis.size:
                    found = self.ew("rem", found, self.counted(digit.size))
            if factor != 1:
                found = self.ew("mul", found, self.counted(factor))
            total = self.ew("add", total, found)
        return total

    def counted(self, extent: Size) -> Value:
        """A size as an element of tiles."""
        number = self.scalar(arith.IndexCastOp, self.number(self.size(extent)), element_of(i64))
        return Value(number, splat=True)

    def ended(self, value: SSAValue, found: Value, axis: int) -> Value:
        """The tile of a value, with 0 behind the end of an axis: there, only what is loaded is 0 by itself."""
        if (axis in found.axes and self._is_loaded(value)) or (inside := self.inside(axis)) is None:
            return found
        dtype = tile_dtype(found.ssa) if not found.splat else graph_type(value).dtype.base
        return self.ew("select", inside, found, self.full(0, dtype))

    def _is_loaded(self, value: SSAValue) -> bool:
        """Whether a value is an argument, moved and cast at most."""
        while value not in self.views:
            op = value.owner
            if not isinstance(op, Operation) or not (type(op) in PULL or _is_cast(op)):
                return False
            value = op.operands[0]
        return True

    def extents(self, axes: Sequence[int]) -> tuple[int, ...]:
        found = tuple(self.axes[axis].extent for axis in axes)
        return tuple(extent for extent in found if extent is not None) or (1,)

    def fit(self, value: Value, axes: tuple[int, ...]) -> Value:
        """A tile with these axes, in this order: transposed, and repeated along those that it does not have."""
        shape = self.extents(axes)
        if value.splat:
            return Value(self.add(tile.FullOp(value.ssa, shape)), axes)
        if value.axes == axes:
            return value
        wanted = tuple(axis for axis in axes if axis in value.axes)
        ssa = value.ssa
        if wanted != value.axes:
            ssa = self.add(tile.TransOp(ssa, [value.axes.index(axis) for axis in wanted]))
        # Without axes a tile has one element, which stays as the last axis.
        missing = [axis_number for axis_number, axis in enumerate(axes) if axis not in wanted]
        for axis_number in missing if wanted else missing[:-1]:
            ssa = self.add(tile.ExpandOp(ssa, axis_number))
        if tile_type(ssa).get_shape() != shape:
            ssa = self.add(tile.BroadcastOp(ssa, shape))
        return Value(ssa, axes)

    def full(self, number: Any, dtype: DType) -> Value:
        """One number everywhere."""
        if dtype.kind is Kind.UINT:
            # Scalars of a kernel are signed: the same bits, cast as a tile.
            signed = BY_NAME[f"i{dtype.bits}"]
            wrapped = int(number) - (1 << dtype.bits) if int(number) > signed.max_value else int(number)
            ones = self.add(tile.FullOp(self.scalar(_element, wrapped, signed), (1,)))
            return Value(self.add(tile.EwOp("cast", [ones], to=dtype)))
        return Value(self.scalar(_element, number, dtype), splat=True)

    def ew(self, fn: str, *operands: Value, policy: Policy = NO_POLICY) -> Value:
        """An elementwise op; of operands without an axis, elements repeat along it."""
        orders = [value.axes for value in operands if not value.splat]
        union = {axis for order in orders for axis in order}
        axes = next((order for order in orders if set(order) == union), tuple(sorted(union)))
        tiles = [self.fit(value, axes).ssa for value in operands]
        return Value(self.add(tile.EwOp(fn, tiles, policy=policy)), axes)

    def cast(self, value: Value, dtype: DType) -> Value:
        """Another element type, and its policy for the rounding."""
        if value.splat and dtype is i64 and value.ssa.type == element_of(i32):
            place = self.scalar(arith.IndexCastOp, value.ssa, _index)
            return Value(self.scalar(arith.IndexCastOp, place, element_of(i64)), splat=True)
        if value.splat:
            value = self.fit(value, ())
        return replace(value, ssa=self.add(tile.EwOp("cast", [value.ssa], to=dtype)))

    def rounded(self, value: Value, dtype: DType) -> Value:
        """A value as it is stored, or multiplied."""
        if not value.splat and tile_dtype(value.ssa) is dtype.base:
            return value
        return self.cast(value, dtype)

    def carried(self, value: Value) -> Value:
        """A value as work on it is done."""
        return self.cast(value, f32) if not value.splat and is_carried(tile_dtype(value.ssa)) else value

    def evaluate(self, value: SSAValue, where: Map) -> Value:
        """The tile of a value at a position."""
        key = value, plain(where)
        if key in self.known and (key in self._told or self.known[key].axes_in(where)):
            return self.known[key]
        if value in self.views:
            found = self.load(value, where)
        else:
            op = value.owner
            assert isinstance(op, Operation)
            rule = RULES.get(type(op))
            if rule is None or (isinstance(op, graph.ReduceOp) and self.folded is None and not is_count(op)):
                raise CompileError(
                    f"{op.name} is not computed beside a matmul at {list(where)}",
                    span=span_of(op.location),
                    hint="leave it outside of the region",
                )
            source, self.source = self.source, op
            found = rule(self, op, where)
            self.source = source
        self.known[key] = found
        return found

    def know(self, value: SSAValue, where: Map, found: Value) -> None:
        """Says what the tile of a value at a position is: there is no other way to it."""
        self.known[value, plain(where)] = found
        self._told.add((value, plain(where)))


def _is_cast(op: Operation) -> bool:
    return isinstance(op, graph.EwOp) and op.fn.data == "cast"


def _constant(value: int) -> Operation:
    return materialize(value, _index)


def _element(value: Any, dtype: DType) -> Operation:
    return materialize(value, element_of(dtype))


def _values(operands: Sequence[Any]) -> Iterator[SSAValue]:
    for one in operands:
        if isinstance(one, SSAValue):
            yield one
        elif isinstance(one, tuple):
            yield from _values(cast("tuple[Any, ...]", one))


def kind_of(digit: Digit, axis: Axis) -> str | None:
    """How a program instance sees a digit: as a number, as a block of positions, or (None) neither."""
    if axis.extent is None:
        return "number"
    if digit.divisor == 1 and (digit.size == axis.size or _divides(axis.extent, digit.size)):
        return "block"
    return "number" if _divides(axis.extent, digit.divisor) else None


def _divides(extent: int, other: Size) -> bool:
    return isinstance(other, int) and other % extent == 0


def spelled(shapes: Sequence[Shape]) -> dict[Size, str]:
    """Names for the sizes of arguments that cannot be told from their symbols, such as B*S alone."""
    plain = {str(one) for shape in shapes for one in shape if str(one).isidentifier()}
    names: dict[Size, str] = {}
    taken = {symbol for shape in shapes for one in shape for symbol in dim(one).symbols}
    for one in (one for shape in shapes for one in shape):
        if isinstance(one, Dim) and one not in names and not one.symbols <= plain:
            number = len(names)
            while f"n{number}" in taken:
                number += 1
            taken.add(f"n{number}")
            names[one] = f"n{number}"
    return names


def _elementwise(tiles: RegionTiles, op: graph.EwOp, where: Map) -> Value:
    if (problem := refusal(op)) is not None:
        raise problem
    operands = [tiles.evaluate(operand, where) for operand in op.operands_]
    dtype = graph_type(op.result).dtype
    if op.fn.data == "cast":
        source = graph_type(op.operands_[0]).dtype
        if is_carried(source) and dtype.base is f32:
            return tiles.carried(operands[0])
        # What a float is cut off to depends on its last digit.
        is_number = operands[0].splat and operands[0].ssa.type == element_of(source.base)
        value = operands[0] if dtype.is_float or is_number else tiles.rounded(operands[0], source)
        return tiles.cast(value, dtype)
    policy = NO_POLICY if is_carried(dtype) else replace(dtype.policy, accum=None)
    if op.fn.data == "select" and all(_is_stored(value, dtype) for value in operands[1:]):
        # What is only chosen need not be widened.
        return tiles.ew("select", *operands, policy=policy)
    return tiles.ew(op.fn.data, *(tiles.carried(value) for value in operands), policy=policy)


def _is_stored(value: Value, dtype: DType) -> bool:
    """Whether a tile has elements as they lie in memory."""
    return not value.splat and tile_dtype(value.ssa) is dtype.base


def _mapped(tiles: RegionTiles, op: Any, where: Map) -> Value:
    inner = PULL[type(op)](op, where)
    if inner is None:
        raise CompileError(f"{op.name} has no index map at {list(where)}", span=span_of(op.location))
    return tiles.evaluate(op.operand, inner)


def _iota(tiles: RegionTiles, op: graph.IotaOp, where: Map) -> Value:
    index, dtype = where[op.axis.value.data], graph_type(op.result).dtype
    if any(kind_of(digit, tiles.axes[digit.axis]) is None for digit, _ in index.terms):
        return tiles.cast(tiles.position(index), dtype)
    base, blocks = tiles.parts(index)
    if not blocks:
        counted = tiles.add(tile.IotaOp(tiles.number(base), 0, tile_of((1,), dtype)))
        return Value(counted)
    total: Value | None = None
    for digit, factor in blocks:
        start = tiles.digit(digit)
        plain = factor == 1 and len(blocks) == 1
        first = tiles.plus(base, start) if plain else start
        counted = Value(
            tiles.add(tile.IotaOp(tiles.number(first), 0, tile_of(tiles.extents([digit.axis]), dtype))), (digit.axis,)
        )
        if plain:
            return counted
        by = tiles.add(arith.IndexCastOp(tiles.number(tiles.size(factor)), element_of(i64)))
        scaled = tiles.ew("mul", counted, tiles.cast(Value(by, splat=True), dtype))
        total = scaled if total is None else tiles.ew("add", total, scaled)
    assert total is not None
    more = tiles.add(arith.IndexCastOp(tiles.number(base), element_of(i64)))
    return tiles.ew("add", total, tiles.cast(Value(more, splat=True), dtype))


def _splat(tiles: RegionTiles, op: graph.ConstantOp, where: Map) -> Value:
    dtype = graph_type(op.result).dtype
    number = np.frombuffer(op.value.data, dtype.storage)[0]
    if is_carried(dtype):
        return tiles.full(float(number), f32)
    return tiles.full(number, dtype)


def _counted(tiles: RegionTiles, op: graph.ReduceOp, where: Map) -> Value:
    """A sum of equal numbers: how code that traces sizes writes them."""
    dtype, shape = graph_type(op.operand).dtype, graph_type(op.operand).shape
    constant = op.operand.owner
    assert isinstance(constant, graph.ConstantOp)
    count: Scalar = int(np.frombuffer(constant.value.data, dtype.storage)[0])
    for axis in op.axes.iter_values():
        count = tiles.times(count, tiles.size(shape[axis]))
    return Value(tiles.scalar(arith.IndexCastOp, tiles.number(count), element_of(dtype)), splat=True)


def _reduced(tiles: RegionTiles, op: graph.ReduceOp, where: Map) -> Value:
    """A count, or rows of which the program instance holds all elements."""
    if is_count(op):
        return _counted(tiles, op, where)
    axis = tiles.folded
    assert axis is not None
    operand = tiles.carried(tiles.evaluate(op.operand, folded_map(op, where, axis)))
    others = tuple(one for one in operand.axes if one != axis)
    held = tiles.fit(operand, (*others, axis)).ssa
    # Without another axis there is one row, which stays as the only element.
    held = held if others else tiles.add(tile.ExpandOp(held, 0))
    return Value(tiles.add(tile.ReduceOp(op.kind.data, held, max(1, len(others)))), others)


def folded_map(op: graph.ReduceOp, where: Map, axis: int) -> Map:
    """The position in a reduction's operand, which goes along an axis of the iteration where the operand is folded."""
    (axis_number,) = op.axes.iter_values()
    behind = where[axis_number + 1 :] if op.keepdims is not None else where[axis_number:]
    return (*where[:axis_number], whole(axis, graph_type(op.operand).shape[axis_number]), *behind)


def is_count(op: Operation) -> bool:
    """Whether an op only counts elements: a sum of one integer, again and again."""
    if not isinstance(op, graph.ReduceOp) or op.kind.data != "sum" or not is_splat(op.operand):
        return False
    return graph_type(op.operand).dtype.base in (i32, i64)


FOLDS = ("sum", "max", "min")
"""Reductions that a program instance may do of rows it holds."""
Rule = Callable[[RegionTiles, Any, Map], Value]
RULES: Mapping[type[Operation], Rule] = MappingProxyType(
    {
        graph.EwOp: _elementwise,
        graph.IotaOp: _iota,
        graph.ConstantOp: _splat,
        graph.ReduceOp: _reduced,
        **dict.fromkeys(PULL, _mapped),
    }
)


def is_carried(dtype: DType) -> bool:
    """Whether values of a type stay in f32 between ops."""
    return dtype.base in (bf16, f16)


def refusal(op: graph.EwOp) -> CompileError | None:
    """Why an elementwise op cannot be computed beside a matmul."""
    values = (*op.operands_, op.result)
    if op.seed is not None or any(graph_type(value).dtype.policy.loss_scale is not None for value in values):
        return CompileError(
            f"{op.fn.data} with a seed or a loss scale is not computed beside a matmul",
            span=span_of(op.location),
            shapes=[str(value.type) for value in values],
            hint="leave it outside of the region",
        )
    return None
