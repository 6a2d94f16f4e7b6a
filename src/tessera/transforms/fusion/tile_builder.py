"""Tiles of values at coordinates of an iteration space: loads, stores, positions, loops, sizes.

Variables of the space are bound to numbers (of a program instance, of an iteration) or, if they are axes of tiles, to
blocks of numbers. A tile has as many axes as there are such variables, of size 1 where it does not depend on one. What
is the same in all iterations is written in front of the loop.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tessera.dtypes.types import DType, Kind, i64
from tessera.errors import CompileError
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.shapes.expr import Dim, Quotient, Shape, dim, exact_quotient
from tessera.transforms.core.folding import materialize
from tessera.transforms.core.index_maps import Coordinates, Index, Looked, Part, Var, pulled, solution
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.tile_ops import TileOps
from tessera.transforms.fusion.kernel_numbers import KernelNumbers, Scalar
from tessera.transforms.fusion.regions import is_splat

_index = IndexType()


@dataclass
class _Frame:
    """A block that is being written, and what it holds already."""

    block: Block
    tiles: dict[tuple[SSAValue, Coordinates], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Coordinates], SSAValue]
    )
    scalars: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])


@dataclass(frozen=True)
class _Box:
    """A view as tiles see it: for each of its axes the axis of the tile, or None, and where the tile begins."""

    view: SSAValue
    axes: tuple[int | None, ...]
    offsets: tuple[SSAValue, ...]


class TileWriter(KernelNumbers, TileOps):
    """Writes a tile function. Who derives from it says how values that are not loaded are made."""

    def __init__(
        self,
        kernel: tile.FuncOp,
        shapes: Sequence[Shape],
        inputs: Mapping[SSAValue, SSAValue],
        axes: Sequence[Var],
        blocks: Mapping[Var, int],
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.inputs = inputs
        self.axes = list(axes)
        self.widths = tuple(max(1, blocks.get(var, 1)) for var in axes)
        self.frames = [_Frame(kernel.body.block)]
        self.depth = 0
        self.bound: dict[Var, tuple[int, SSAValue]] = {}
        self._source: Operation = kernel
        self._sizes: dict[Dim, tuple[SSAValue, int]] = {}
        self._shapes: dict[SSAValue, Shape] = dict(zip(kernel.arguments, shapes, strict=True))
        for view, shape in self._shapes.items():
            for axis, extent in enumerate(shape):
                self._sizes.setdefault(dim(extent), (view, axis))

    @property
    def ones(self) -> tuple[int, ...]:
        return (1,) * len(self.axes)

    # Building

    @contextmanager
    def placing(self, source: Operation) -> Generator[None]:
        """Gives ops that are added meanwhile the location of `source`."""
        before, self._source = self._source, source
        yield
        self._source = before

    @contextmanager
    def at_depth(self, depth: int) -> Generator[None]:
        """Inserts ops that are added meanwhile in the loop of this depth."""
        before, self.depth = self.depth, depth
        yield
        self.depth = before

    def add_op(self, op: Operation) -> None:
        adopt_location([op], self._source)
        self.frames[self.depth].block.add_op(op)

    def add(self, op: Operation) -> SSAValue:
        self.add_op(op)
        return op.results[0]

    def bind(self, var: Var, number: SSAValue) -> None:
        self.bound[var] = self.depth, number

    def depth_of(self, at: Coordinates) -> int:
        return max((self.bound[var][0] for index in at for var in index.variables()), default=0)

    def loop(
        self,
        rows: Sequence[Var],
        carried: Sequence[SSAValue],
        iteration: Callable[[Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """Loops over the blocks of some variables, one in the other; gives what they carry at the end."""
        if not rows:
            return iteration(carried)
        var = rows[0]
        step = self.widths[self.axes.index(var)] if var in self.axes else 1
        bounds = self.number(0), self.size(var.extent), self.number(step)
        body = Block(arg_types=[_index, *(value.type for value in carried)])
        self.frames.append(_Frame(body))
        with self.at_depth(len(self.frames) - 1):
            self.bind(var, body.args[0])
            yielded = self.loop(rows[1:], list(body.args[1:]), iteration)
            self.add_op(scf.YieldOp(*yielded))
        self.frames.pop()
        loop = scf.ForOp(*bounds, carried, Region(body))
        self.add_op(loop)
        return list(loop.results)

    # Scalars

    def _kept(self, key: object, make: Callable[[], Operation]) -> SSAValue:
        for frame in self.frames[: self.depth + 1]:
            if key in frame.scalars:
                return frame.scalars[key]
        found = self.frames[self.depth].scalars[key] = self.add(make())
        return found

    def number(self, value: Scalar) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        with self.at_depth(0):
            return self._kept(value, lambda: materialize(value, _index))

    def computed(self, kind: Callable[[SSAValue, SSAValue], Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        return self._kept((kind, left, right), lambda: kind(left, right))

    def size(self, extent: Dim | int) -> SSAValue:
        return self.number(self._size(dim(extent)))

    def _size(self, extent: Dim) -> Scalar:
        """A size, from those of the arguments."""
        if (constant := extent.constant) is not None:
            return constant
        with self.at_depth(0):
            if extent in self._sizes:
                view, axis = self._sizes[extent]
                return self._kept(("dim", view, axis), lambda: tile.DimOp(view, axis))
            total: Scalar = 0
            for monomial, coefficient in extent.terms:
                total = self.plus(total, self.times(coefficient, self._monomial(Dim({monomial: 1}))))
            return total

    def _monomial(self, asked: Dim) -> Scalar:
        """A product of symbols: by sizes of arguments that divide it as far as there are any, else one by one."""
        if (constant := asked.constant) is not None:
            return constant
        for known in sorted(
            (size for size in self._sizes if size.symbols), key=lambda size: (-len(str(size)), str(size))
        ):
            if (rest := exact_quotient(asked, known)) is not None:
                return self.times(self._size(known), self._monomial(rest))
        ((monomial, _),) = asked.terms
        term: Scalar = 1
        for atom in monomial:
            term = self.times(term, self._symbol(atom) if isinstance(atom, str) else self._quotient(atom))
        return term

    def _symbol(self, name: str) -> Scalar:
        """A symbol, from the sizes of arguments."""
        found = solution(name, self._sizes)
        if found is None:
            raise CompileError(
                f"no argument of the kernel tells how large {name} is",
                span=span_of(self._source.location),
                hint=f"leave out of the region what needs {name}, or pass it an array with an axis of that size",
            )
        known, by, rest = found
        return self.over(self.plus(self._size(known), -rest), by)

    def _quotient(self, atom: Quotient) -> Scalar:
        return self.over(self._size(dim(atom.numerator)), atom.divisor)

    def scalar(self, index: Index) -> Scalar:
        """An index that depends on no axis of tiles."""
        with self.at_depth(max(self.depth_of((index,)), 0)):
            total = self._size(index.constant)
            for atom, factor in sorted(index.terms, key=lambda term: str(term[0])):
                total = self.plus(total, self.times(self._atom(atom), self._size(factor)))
            return total

    def _atom(self, atom: Var | Part | Looked) -> Scalar:
        match atom:
            case Var():
                return self.bound[atom][1]
            case Part():
                of, by = self.number(self.scalar(atom.of)), self.number(self._size(atom.by))
                quotient = self.computed(arith.FloorDivSIOp, of, by)
                if not atom.rest:
                    return quotient
                return self.computed(arith.SubiOp, of, self.number(self.times(quotient, by)))
            case Looked():
                number = self._looked(atom.value, atom.at)
                if atom.limit is None:
                    return number
                last, nothing = self.number(self._size(atom.limit - 1)), self.number(0)
                return self.computed(arith.MaxSIOp, self.computed(arith.MinSIOp, self.number(number), last), nothing)

    def _looked(self, value: SSAValue, at: Coordinates) -> Scalar:
        """The number at coordinates that are numbers as well: from memory, or computed of such."""
        if value in self.inputs:
            view, offsets = self.inputs[value], [self.number(self.scalar(index)) for index in at]
            found = self._kept(("item", view, *offsets), lambda: _open_item(view, offsets))
            return self._kept(("cast", found), lambda: arith.IndexCastOp(found, _index))
        op = value.owner
        if isinstance(op, graph.ConstantOp):
            return int(np.frombuffer(op.value.data, graph_type(value).dtype.storage)[0])
        if isinstance(op, graph.IotaOp):
            return self.scalar(at[op.axis.value.data])
        if not isinstance(op, graph.EwOp):
            assert isinstance(op, Operation)
            return self._looked(op.operands[0], pulled(op, 0, at))
        given = [self._looked(operand, at) for operand in op.operands_]
        if op.fn.data == "cast":
            return given[0]
        numbers = [self.number(one) for one in given]
        return self._kept((op.fn.data, *numbers), lambda: _NUMBER_OPS[op.fn.data](*numbers))

    # Tiles

    def emit(self, value: SSAValue, at: Coordinates) -> SSAValue:
        """The tile of a value at some coordinates: made, loaded, or there already."""
        for frame in self.frames[: self.depth + 1]:
            if (value, at) in frame.tiles:
                return frame.tiles[value, at]
        with self.at_depth(min(self.depth, self.needed_depth(value, at))):
            made = self.load(self.inputs[value], at) if value in self.inputs else self.make(value, at)
            self.remember(value, at, made)
        return made

    def needed_depth(self, value: SSAValue, at: Coordinates) -> int:
        """The loop that a value changes in."""
        return self.depth_of(at)

    def remember(self, value: SSAValue, at: Coordinates, made: SSAValue) -> None:
        self.frames[self.depth].tiles[value, at] = made

    @abstractmethod
    def make(self, value: SSAValue, at: Coordinates) -> SSAValue:
        """The tile of a value that an op of the region makes."""

    def shape_at(self, at: Coordinates) -> tuple[int, ...]:
        """The sizes of a tile that depends on the variables of some coordinates."""
        used = {var for index in at for var in index.variables()}
        return tuple(width if var in used else 1 for var, width in zip(self.axes, self.widths, strict=True))

    def full(self, number: object, dtype: DType, shape: tuple[int, ...]) -> SSAValue:
        if dtype.kind is Kind.UINT:
            # Scalars are signed: the same bits, taken for unsigned ones.
            scalar = self._constant(np.asarray(number).astype(np.uint64).astype(np.int64)[()], i64)
            return self.add(tile.EwOp("cast", [self.add(tile.FullOp(scalar, shape))], to=dtype))
        return self.add(tile.FullOp(self._constant(number, dtype), shape))

    def _constant(self, number: object, dtype: DType) -> SSAValue:
        with self.at_depth(0):
            # NaNs and zeros of either sign are told apart by their text.
            return self._kept((str(number), dtype), lambda: materialize(number, element_of(dtype)))

    def spread(self, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        """A tile of a larger size along the axes where it has size 1."""
        if isinstance(value.owner, tile.FullOp) and tile_type(value).get_shape() != shape:
            return self.add(tile.FullOp(value.owner.value, shape))
        return super().spread(value, shape)

    def matched(self, tiles: Sequence[SSAValue]) -> list[SSAValue]:
        """Tiles of one size, that of the largest along each axis."""
        shapes = [tile_type(value).get_shape() for value in tiles]
        shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
        return [self.spread(value, shape) for value in tiles]

    def counted(self, index: Index, dtype: DType) -> SSAValue:
        """An index as a tile of whole numbers."""
        with self.at_depth(min(self.depth, self.depth_of((index,)))):
            if (var := index.lone) is not None and var in self.axes:
                return self._positions(var, dtype)
            return self.cast(self._counted(index), dtype)

    def below(self, var: Var) -> SSAValue:
        """Where a tile lies inside the extent of a variable."""
        positions = self._positions(var, i64)
        extent = self._filled(self._size(dim(var.extent)))
        return self.ew("lt", *self.matched([positions, extent]))

    def _positions(self, var: Var, dtype: DType) -> SSAValue:
        axis = self.axes.index(var)
        shape = tuple(width if index == axis else 1 for index, width in enumerate(self.widths))
        return self.add(tile.IotaOp(self.bound[var][1], axis, tile_of(shape, dtype)))

    def _filled(self, number: Scalar) -> SSAValue:
        if isinstance(number, int):
            return self.full(number, i64, self.ones)
        wide = self.add(arith.IndexCastOp(number, element_of(i64)))
        return self.add(tile.FullOp(wide, self.ones))

    def _counted(self, index: Index) -> SSAValue:
        moving = [(atom, factor) for atom, factor in index.terms if self._moves(atom)]
        rest = Index(index.terms - frozenset(moving), index.constant)
        total = None
        if not moving or rest.terms or rest.constant.terms:
            total = self._filled(self.scalar(rest))
        for atom, factor in sorted(moving, key=lambda term: str(term[0])):
            part = self._moving(atom)
            if factor != dim(1):
                part = self.ew("mul", *self.matched([part, self._filled(self._size(factor))]))
            total = part if total is None else self.ew("add", *self.matched([total, part]))
        assert total is not None
        return total

    def _moves(self, atom: Var | Part | Looked) -> bool:
        """Whether an atom is a tile of numbers, not one."""
        if any(var in self.axes for var in Index.of(atom).variables()):
            return True
        if isinstance(atom, Part):
            return any(self._moves(inner) for inner, _ in atom.of.terms)
        return isinstance(atom, Looked) and not self._is_plain(atom.value, atom.at)

    def _is_plain(self, value: SSAValue, at: Coordinates) -> bool:
        """Whether a number is looked up in memory, at a place that is a number as well, or computed of such numbers."""
        dtype, op = graph_type(value).dtype, value.owner
        if value in self.inputs or isinstance(op, graph.IotaOp):
            whole = dtype.kind is Kind.INT and dtype.bits >= 8
            return whole and not any(self._moves(inner) for index in at for inner, _ in index.terms)
        if isinstance(op, graph.ConstantOp):
            return is_splat(value) and dtype.is_integer
        if not isinstance(op, Operation) or not computes_number(op):
            return False
        numbers = range(len(op.operands))
        return all(self._is_plain(op.operands[number], pulled(op, number, at)) for number in numbers)

    def _moving(self, atom: Var | Part | Looked) -> SSAValue:
        match atom:
            case Var():
                return self._positions(atom, i64)
            case Part():
                of, by = self.matched([self._counted(atom.of), self._filled(self._size(atom.by))])
                return self.ew("rem" if atom.rest else "floordiv", of, by)
            case Looked():
                found = self.cast(self.emit(atom.value, atom.at), i64)
                if atom.limit is None:
                    return found
                last = self._filled(self._size(atom.limit - 1))
                low = self.ew("min", *self.matched([found, last]))
                return self.ew("max", *self.matched([low, self._filled(0)]))

    # Memory

    def load(self, view: SSAValue, at: Coordinates) -> SSAValue:
        """The tile of an argument at some coordinates; 0 outside of it."""
        box = self._box(view, at, exact=False)
        if box is None:
            indices = self.matched([self._counted(index) for index in at])
            read = tile.ReadOp(view, indices)
            read.attributes[tile.OPEN] = UnitAttr()
            return self.add(read)
        shape = [1 if axis is None else self.widths[axis] for axis in box.axes]
        load = tile.LoadOp(box.view, box.offsets, shape)
        _mark(load, at)
        return self._arranged(self.add(load), box.axes)

    def _arranged(self, loaded: SSAValue, axes: Sequence[int | None]) -> SSAValue:
        """A tile in the order of the axes of tiles, with size 1 along those that it does not have."""
        if len(axes) == len(self.axes) and all(axis in (None, index) for index, axis in enumerate(axes)):
            return loaded
        order = [axis for axis in axes if axis is not None]
        assert len(order) == len(axes), "a box has axes of the tile only, or all of them"
        if order == sorted(order, reverse=True) and len(order) == 2:
            loaded, order = self.add(tile.TransOp(loaded, [1, 0])), order[::-1]
        for axis in range(len(self.axes)):
            if axis not in order:
                loaded = self.add(tile.ExpandOp(loaded, axis))
        return loaded

    def store(self, value: SSAValue, view: SSAValue, at: Coordinates) -> None:
        """Writes a tile to an argument, at coordinates that are different for different positions."""
        value = self.spread(value, self.shape_at(at))
        box = self._box(view, at, exact=True)
        if box is None:
            raise CompileError(
                "a result lies at places that are no box of its array",
                span=span_of(self._source.location),
                hint="end the region in front of the reshape",
            )
        axes = [axis for axis in box.axes if axis is not None]
        if box.axes != tuple(range(len(self.axes))) and axes != sorted(axes):
            value = self.add(tile.TransOp(value, [1, 0]))
        store = tile.StoreOp(value, box.view, box.offsets)
        _mark(store, at)
        self.add_op(store)

    def _box(self, view: SSAValue, at: Coordinates, *, exact: bool) -> _Box | None:
        """The box of an argument that a tile has its elements from; None where they are no box.

        With `exact`, positions beyond the extents of variables are outside of the box, and it has all axes of tiles.
        """
        if not all(index.is_affine_in(self.axes) for index in at):
            return None
        if any(self._moves(atom) for index in at for atom, _ in index.terms if not isinstance(atom, Var)):
            return None
        factors = [[index.factor(var) for var in self.axes] for index in at]
        rests = [Index(frozenset((a, f) for a, f in index.terms if a not in self.axes), index.constant) for index in at]
        users = [
            [axis for axis, row in enumerate(factors) if row[position].terms] for position in range(len(self.axes))
        ]
        natural = all(len(axes) <= 1 for axes in users) and all(
            sum(bool(each.terms) for each in row) <= 1 and all(each in (dim(0), dim(1)) for each in row)
            for row in factors
        )
        if natural and exact:
            natural = all(
                not axes or self._fills(var, rests[axes[0]], axes[0], view)
                for var, axes in zip(self.axes, users, strict=True)
            )
        tested = exact or any(users) or len(at) == len(self.axes) or not any(index.open for index in at)
        if natural and tested:
            return self._natural(view, at, users, rests, exact=exact)
        if any(index.open for index in at):
            return None
        return self._strided(view, factors, rests, exact=exact)

    def _fills(self, var: Var, rest: Index, axis: int, view: SSAValue) -> bool:
        """Whether a tile of a variable ends where the array does, so that nothing beyond is touched."""
        if isinstance(var.extent, int) and var.extent > 0 and var.extent % self.widths[self.axes.index(var)] == 0:
            return True
        whole = self._shapes[view][axis]
        return not rest.terms and not rest.constant.terms and dim(whole) == dim(var.extent)

    def _natural(
        self, view: SSAValue, at: Coordinates, users: Sequence[Sequence[int]], rests: Sequence[Index], *, exact: bool
    ) -> _Box:
        """Axes of tiles are axes of the array."""
        tile_axis: list[int | None] = [None] * len(at)
        for position, using in enumerate(users):
            for axis in using:
                tile_axis[axis] = position
        rank = len(self.axes)
        starts = [self._start(axis, rest) for axis, rest in zip(tile_axis, rests, strict=True)]
        if len(at) == rank and all(axis in (None, position) for position, axis in enumerate(tile_axis)):
            return _Box(view, tuple(tile_axis), tuple(map(self.number, starts)))
        order = [axis for axis in range(len(at)) if tile_axis[axis] is not None]
        if len(order) == len(at) and not (exact and len(order) < rank):
            return _Box(view, tuple(tile_axis), tuple(map(self.number, starts)))
        offset: Scalar = 0
        limit: SSAValue | None = None
        for axis, index in enumerate(at):
            if tile_axis[axis] is None:
                start = starts[axis]
                if index.open:
                    start, inside = self._inside(start, view, axis)
                    limit = inside if limit is None else self.add(arith.AndIOp(limit, inside))
                offset = self.plus(offset, self.times(start, self._stride(view, axis)))
        sizes = [self._extent(view, axis) for axis in order]
        strides = [self._stride(view, axis) for axis in order]
        axes: list[int | None] = [tile_axis[axis] for axis in order]
        offsets = [self.number(starts[axis]) for axis in order]
        if exact:
            for position in range(rank):
                if position not in axes:
                    at_front = position < min((axis for axis in axes if axis is not None), default=rank)
                    where = 0 if at_front else len(axes)
                    axes.insert(where, position)
                    sizes.insert(where, self.number(1))
                    strides.insert(where, self.number(1))
                    offsets.insert(where, self.number(0))
        if limit is not None:
            sizes[0] = self.add(arith.SelectOp(limit, sizes[0], self.number(0)))
        made = self.add(tile.ViewOp(view, self.number(offset), sizes, strides))
        return _Box(made, tuple(axes), tuple(offsets))

    def _start(self, axis: int | None, rest: Index) -> Scalar:
        start = self.scalar(rest)
        return start if axis is None else self.plus(self.bound[self.axes[axis]][1], start)

    def _inside(self, start: Scalar, view: SSAValue, axis: int) -> tuple[Scalar, SSAValue]:
        """A number, 0 if it is outside of an axis, and whether it is inside."""
        number, nothing = self.number(start), self.number(0)
        extent = self._extent(view, axis)
        low = self.add(arith.CmpiOp(number, nothing, "sge"))
        inside = self.add(arith.AndIOp(low, self.add(arith.CmpiOp(number, extent, "slt"))))
        return self.add(arith.SelectOp(inside, number, nothing)), inside

    def _extent(self, view: SSAValue, axis: int) -> SSAValue:
        with self.at_depth(0):
            return self._kept(("dim", view, axis), lambda: tile.DimOp(view, axis))

    def _stride(self, view: SSAValue, axis: int) -> SSAValue:
        with self.at_depth(0):
            return self._kept(("stride", view, axis), lambda: tile.StrideOp(view, axis))

    def _strided(
        self, view: SSAValue, factors: Sequence[Sequence[Dim]], rests: Sequence[Index], *, exact: bool
    ) -> _Box:
        """Axes of tiles go through the array in steps of their own."""
        offset: Scalar = 0
        for axis, rest in enumerate(rests):
            offset = self.plus(offset, self.times(self.scalar(rest), self._stride(view, axis)))
        steps: list[Scalar] = []
        for column in range(len(self.axes)):
            step: Scalar = 0
            for axis, row in enumerate(factors):
                if row[column].terms:
                    step = self.plus(step, self.times(self._size(row[column]), self._stride(view, axis)))
            steps.append(step)
        transposed = len(steps) == 2 and bool(factors) and factors[-1][0] == dim(1) and not factors[-1][1].terms
        used = [column for column in range(len(steps)) if exact or any(row[column].terms for row in factors)]
        if transposed:
            used.reverse()
        moved = [any(row[column].terms for row in factors) for column in range(len(steps))]
        sizes = [self.size(dim(self.axes[column].extent)) if moved[column] else self.number(1) for column in used]
        strides = [self.number(steps[column]) for column in used]
        offsets = [self.bound[self.axes[column]][1] if moved[column] else self.number(0) for column in used]
        made = self.add(tile.ViewOp(view, self.number(offset), sizes, strides))
        return _Box(made, tuple(used), tuple(offsets))


def computes_number(op: Operation) -> bool:
    """Whether single numbers of what an op makes can be computed one by one, from whole numbers."""
    if not isinstance(op, graph.EwOp):
        return isinstance(op, _ARRANGEMENTS)
    dtype = graph_type(op.result).dtype
    known = op.fn.data in _NUMBER_OPS or (op.fn.data == "cast" and graph_type(op.operands_[0]).dtype.is_integer)
    return known and (dtype.kind is Kind.BOOL or (dtype.kind is Kind.INT and dtype.bits == 64))


_ARRANGEMENTS = (graph.BroadcastOp, graph.ReshapeOp, graph.TransposeOp, graph.SliceOp)
_NUMBER_OPS: Mapping[str, Callable[..., Operation]] = MappingProxyType(
    {
        "add": arith.AddiOp,
        "sub": arith.SubiOp,
        "mul": arith.MuliOp,
        "min": arith.MinSIOp,
        "max": arith.MaxSIOp,
        "select": arith.SelectOp,
        "and": arith.AndIOp,
        "or": arith.OrIOp,
        "eq": lambda left, right: arith.CmpiOp(left, right, "eq"),
        "ne": lambda left, right: arith.CmpiOp(left, right, "ne"),
        "lt": lambda left, right: arith.CmpiOp(left, right, "slt"),
        "le": lambda left, right: arith.CmpiOp(left, right, "sle"),
        "gt": lambda left, right: arith.CmpiOp(left, right, "sgt"),
        "ge": lambda left, right: arith.CmpiOp(left, right, "sge"),
    }
)
"""Elementwise functions of whole numbers of 64 bits, and of truth values, as single numbers are computed."""


def _open_item(view: SSAValue, offsets: Sequence[SSAValue]) -> tile.ItemOp:
    """What a graph looks up, rows of padding too; indices of graphs are checked in front of it."""
    item = tile.ItemOp(view, offsets)
    item.attributes[tile.OPEN] = UnitAttr()
    return item


def _mark(op: Operation, at: Coordinates) -> None:
    """Says of an access at coordinates that may lie outside that this is meant."""
    if any(index.open for index in at):
        op.attributes[tile.OPEN] = UnitAttr()
