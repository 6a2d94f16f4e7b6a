"""Builds the tile program of a kernel while the kernel's Python runs on traced values."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, LocationAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tessera.dtypes.promotion import accumulator, promote_exactly
from tessera.dtypes.types import BY_NAME, DType, Kind, bool_, f32, f64, i64
from tessera.errors import CompileError, DtypeError, RangeError, ShapeError, SourceSpan, caller_frame
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.common.locations import location_of
from tessera.ir.common.locations import span_of as source_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import give_hints
from tessera.ir.tile.hints import NO_HINTS, Hints
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type
from tessera.shapes import rules
from tessera.shapes.expr import Dim, Shape, Size, dim, format_shape, size
from tessera.tile.language.call_chain import Position, positions_within, span_with_callers
from tessera.tile.language.dots import batch_of, bounds_of_dot, check_dot, wrong_sum
from tessera.tile.language.misuse import check_box, check_combined, check_item, check_loaded, hint_of_position
from tessera.tile.language.schedule import Schedule
from tessera.tile.language.values import AxisBound, AxisBounds, Places, Scalar, Tile, Undefined, View, is_dynamic, shown
from tessera.transforms.checks.guard_parts import guard_looked_up
from tessera.transforms.core.facts import FactKind, Facts, Recorder, fact
from tessera.transforms.core.folding import materialize

_INTEGER_OPS: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "floordiv": arith.FloorDivSIOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}
_FLOAT_OPS: dict[str, type[Operation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "min": arith.MinimumfOp,
    "max": arith.MaximumfOp,
}
_INTEGER_COMPARES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_FLOAT_COMPARES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


# By: from a float, to a float, to a wider type.
_FLOAT_CASTS: dict[tuple[bool, bool, bool], Callable[..., Operation]] = {
    (True, True, True): arith.ExtFOp,
    (True, True, False): arith.TruncFOp,
    **{(False, True, wider): arith.SIToFPOp for wider in (True, False)},
    **{(True, False, wider): arith.FPToSIOp for wider in (True, False)},
}


_COUNTING = frozenset({"add", "sub", "mul", "floordiv", "rem"})
"""Operations on numbers that flags are numbers for."""
_INTEGER_CASTS: dict[bool, Callable[..., Operation]] = {True: arith.ExtSIOp, False: arith.TruncIOp}


def _met(tiles: Iterable[Tile]) -> dict[int, AxisBounds]:
    """Where a tile lies that is made of others, element by element."""
    axis_bounds: dict[int, AxisBounds] = {}
    for axis, found in (item for value in tiles for item in value.axis_bounds.items()):
        axis_bounds[axis] = axis_bounds[axis].beside(found) if axis in axis_bounds else found
    return axis_bounds


def _number(value: Any) -> Any:
    """NumPy's scalars are numbers, too."""
    return cast("np.generic[Any]", value).item() if isinstance(value, np.generic) else value


@dataclass
class Argument:
    """One argument of the tile function: where its value comes from, what its sizes are called, whether it is `Out`."""

    path: str
    ssa: SSAValue
    shape: Shape = ()
    dtype: DType | None = None
    filled: bool = False


@dataclass
class Tracer:
    """The program under construction. `facts` are those of the arguments at hand; asking for one makes it a guard."""

    name: str
    schedule: Schedule
    facts: Facts = field(default_factory=Facts)
    given: tuple[int, ...] | None = None
    """The grid, where it is not inferred."""

    def __post_init__(self) -> None:
        self.entry = Block()
        self.block = self.entry
        self.arguments: list[Argument] = []
        self.outputs: list[Argument] = []
        self.recorder = Recorder(self.facts)
        self.constants: dict[str, int] = {}
        self.sizes: dict[tuple[SSAValue, int], Scalar] = {}
        self.numbers: dict[tuple[str, Attribute], SSAValue] = {}
        # Where the kernel returned; set when its results are stored.
        self.ending: SourceSpan | None = None
        self.finishing: SourceSpan | None = None
        # Where the kernel is defined.
        self.source: SourceSpan | None = None
        self.code: CodeType | None = None
        # By the positions in the user's code, with that code: as long as it is alive, its number is its own.
        self.locations: dict[object, tuple[LocationAttr, Sequence[Position]]] = {}
        # Worked out by the context; and the axes that the kernel asks for, with where it first does.
        self.grid: list[Size] = []
        self.axes: dict[int, SourceSpan | None] = {}
        self.driver: View | None = None
        # Set by the first use of tile.context().
        self.context: Any = None
        # The driving argument's, where the kernel works on whole rows.
        self.row_width: int | None = None

    # Building.

    def emit(self, op: Operation) -> Any:
        """Adds an op at the user's line; gives its first result, if it has one."""
        self.locate(op)
        self.block.add_op(op)
        return op.results[0] if op.results else None

    def locate(self, op: Operation) -> None:
        """Gives an op the user's line; in a helper, with the lines that call it."""
        frame = None if self.finishing is not None else caller_frame()
        positions = positions_within(frame, self.code)
        key = tuple((id(code), instruction) for code, instruction in positions) or self.finishing
        if key not in self.locations:
            span = span_with_callers(positions) or self.finishing
            self.locations[key] = location_of(span), positions
        op.location = self.locations[key][0]

    def number(self, value: bool | float, type_: Attribute) -> SSAValue:
        """A constant; each is made once, at the top."""
        key = (str(value), type_)
        if key not in self.numbers:
            with self.at_the_top():
                self.numbers[key] = self.emit(materialize(value, type_))
        return self.numbers[key]

    def position(self, value: Any) -> SSAValue:
        """A value as `index`."""
        value = _number(value)
        if isinstance(value, Scalar):
            if value.dtype is None:
                return value.ssa
            if value.dtype.is_integer:
                return self.emit(arith.IndexCastOp(value.ssa, IndexType()))
        elif isinstance(value, int) and not isinstance(value, bool):
            if not i64.min_value <= value <= i64.max_value:
                raise DtypeError(f"{value} is no position: those have 64 bits", hint="check how the number is made")
            return self.number(value, IndexType())
        if isinstance(value, Undefined):
            value.refuse()
        raise DtypeError(f"expected a position or a size, got {shown(value)}", hint=hint_of_position(value))

    # Arguments.

    def add_view(self, path: str, rank: int, dtype: DType, shape: Shape, *, filled: bool = False) -> View:
        ssa = self.entry.insert_arg(ViewType(rank, element_of(dtype)), len(self.entry.args))
        ssa.name_hint = path.replace(".", "_")
        self.arguments.append(Argument(path, ssa, shape, dtype, filled))
        view = View(ssa, path, range(rank), dtype)
        if self.driver is None:
            self.driver = view
        return view

    def add_scalar(self, path: str, dtype: DType | None) -> Scalar:
        type_ = IndexType() if dtype is None else element_of(dtype)
        ssa = self.entry.insert_arg(type_, len(self.entry.args))
        ssa.name_hint = path
        self.arguments.append(Argument(path, ssa))
        return Scalar(ssa, dtype)

    def argument_of(self, view: View) -> Argument:
        return next(argument for argument in self.arguments if argument.ssa is view.whole.ssa)

    @contextmanager
    def building(self, block: Block) -> Generator[None]:
        """Ops built meanwhile go into a block."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    def at_the_top(self) -> AbstractContextManager[None]:
        """Ops built meanwhile come before every loop and branch that is open: those are added when complete."""
        return self.building(self.entry)

    def symbolic_size(self, view: View, axis: int) -> Size:
        argument = self.argument_of(view.whole)
        return size(dim(argument.shape[view.axes[axis]]).substitute(self.constants))

    def size(self, view: View, axis: int) -> int | Scalar:
        """A size: an integer where the signature fixes it, else a scalar read once, at the top."""
        known = self.symbolic_size(view, axis)
        if isinstance(known, int):
            return known
        view, axis = view.whole, view.axes[axis]
        if (view.ssa, axis) not in self.sizes:
            with self.at_the_top():
                self.sizes[view.ssa, axis] = Scalar(self.emit(tile.DimOp(view.ssa, axis)), None)
        return self.sizes[view.ssa, axis]

    def static_size(self, view: View, axis: int, why: str) -> int:
        """A size that must be an integer now: it becomes a guard of this instance."""
        known = self.symbolic_size(view, axis)
        if isinstance(known, int):
            return known
        argument = self.arguments.index(self.argument_of(view))
        axis = view.axes[axis]
        for atom in self.facts.about(FactKind.SIZE, f"arg{argument}.size[{axis}]"):
            if len(known.symbols) == 1:
                self.recorder.ask(atom)
                self._bind(known, int(atom.value))
                return int(atom.value)
        raise CompileError(
            f"{why} needs axis {axis} of {view.name} as a number, and it is {known}",
            hint="give the size in the annotation, in the schedule, or call the kernel with an array",
        )

    def is_alike(self, view: View, axis: int) -> bool:
        """Whether a size is that of the driving argument, if programs may depend on that: then it becomes a guard."""
        assert self.driver is not None
        first, other = (self.arguments.index(self.argument_of(one)) for one in (self.driver, view))
        return self.recorder.ask(fact(FactKind.EQUAL, f"arg{first}.size[{axis}]", f"arg{other}.size[{axis}]"))

    def _bind(self, known: Dim, value: int) -> None:
        (symbol,) = known.symbols
        for candidate in (value, *range(value)):  # a size is a symbol nearly always
            if known.substitute({symbol: candidate}).constant == value:
                self.constants[symbol] = candidate
                return
        raise ShapeError(f"{known} is never {value}", hint="check the annotation")

    # Views.

    def part(self, view: View, indices: Mapping[int, Any]) -> View:
        """The view at an index of each of some axes."""
        if not indices:
            return view
        offset: SSAValue | None = None
        for axis, index in indices.items():
            if isinstance(index, int) and index < 0:
                raise RangeError(
                    f"index {index} of axis {axis} of {view}: indices count from 0",
                    hint=f"count from the end of the array: x[x.shape[{axis}] - {-index}]",
                )
            stride = self.emit(tile.StrideOp(view.ssa, axis))
            step = self.emit(arith.MuliOp(self.position(index), stride))
            offset = step if offset is None else self.emit(arith.AddiOp(offset, step))
        assert offset is not None
        rest = [axis for axis in range(view.rank) if axis not in indices]
        sizes = [self.position(self.size(view, axis)) for axis in rest]
        strides = [self.emit(tile.StrideOp(view.ssa, axis)) for axis in rest]
        ssa = self.emit(tile.ViewOp(view.ssa, offset, sizes, strides))
        return View(ssa, f"{view.name}[…]", [view.axes[axis] for axis in rest], view.dtype, view.whole)

    def load(self, view: View, at: Sequence[Any], shape: Sequence[int], pad: float, hints: Hints = NO_HINTS) -> Tile:
        check_loaded(view, at, shape)
        offsets = [self.position(one) for one in at]
        made = tile.LoadOp(view.ssa, offsets, shape, pad or None)
        give_hints(made, hints)
        ssa = self.emit(made)
        axis_bounds: dict[int, AxisBounds] = {}
        for axis, start in enumerate(at):
            bound = AxisBound(start, self.size(view, axis), self.symbolic_size(view, axis))
            axis_bounds[axis] = AxisBounds((bound,), not self._covers(view, axis, start, shape[axis]))
        return Tile(ssa, tuple(shape), view.dtype, axis_bounds=axis_bounds)

    def _covers(self, view: View, axis: int, at: Any, extent: int) -> bool:
        """Whether a block is known to lie inside the array along an axis."""
        known = self.symbolic_size(view, axis)
        return isinstance(known, int) and isinstance(at, int) and at >= 0 and at + extent <= known

    def item(self, view: View, at: Sequence[Any]) -> Scalar:
        """One element as a scalar: an integer is a position, a float narrower than f32 an f32."""
        check_item(view, at)
        made, dtype = tile.ItemOp(view.ssa, [self.position(one) for one in at]), view.dtype.base
        found = self.emit(made)
        if dtype.is_integer:
            if found.type != IndexType():
                found = self.emit(arith.IndexCastOp(found, IndexType()))
            return Scalar(found, None)
        return self.convert(Scalar(found, dtype), dtype if dtype in (bool_, f32, f64) else f32)

    def store(self, view: View, value: Tile, at: Sequence[Any], hints: Hints = NO_HINTS) -> None:
        check_box(f"storing {value}", view, value, at)
        made = tile.StoreOp(value.ssa, view.ssa, [self.position(one) for one in at])
        give_hints(made, hints)
        self.emit(made)

    def atomic(self, kind: str, view: View, value: Tile, at: Sequence[Any]) -> None:
        check_combined(f"atomic_{'add' if kind == 'sum' else kind}", value)
        check_box(f"combining {value}", view, value, at)
        self.emit(tile.AtomicOp(kind, value.ssa, view.ssa, [self.position(one) for one in at]))

    # Computed places.

    def read(self, view: View, places: Places, pad: float, hints: Hints = NO_HINTS) -> Tile:
        """The elements at some places; `pad` where nothing is there."""
        op = tile.ReadOp(
            view.ssa, [one.ssa for one in places.indices], mask=None if places.mask is None else places.mask.ssa
        )
        give_hints(op, hints)
        found = self.wrap(self.emit(op))
        if pad:
            found = self.where(self._there(view, places), found, pad)
        return Tile(found.ssa, found.shape, view.dtype, axis_bounds=places.axis_bounds)

    def take(self, value: Tile, indices: Sequence[Tile]) -> Tile:
        """The elements of a tile at some places."""
        return self.wrap(self.emit(tile.TakeOp(value.ssa, [one.ssa for one in indices])))

    def unpacked(self, value: Tile, axis: int, dtype: DType, axis_bounds: Mapping[int, AxisBounds]) -> Tile:
        return self.wrap(self.emit(tile.UnpackOp(value.ssa, axis, dtype)), axis_bounds=axis_bounds)

    def packed(self, value: Tile, axis: int, dtype: DType, axis_bounds: Mapping[int, AxisBounds]) -> Tile:
        return self.wrap(self.emit(tile.PackOp(value.ssa, axis, dtype)), axis_bounds=axis_bounds)

    def cut(self, value: Tile, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> Tile:
        """So many elements along each axis, from a start on, in steps."""
        shape = tuple(sizes)
        if shape == value.shape and all(step == 1 for step in steps):
            return value
        places: list[Tile] = []
        for axis, (start, step) in enumerate(zip(starts, steps, strict=True)):
            position = self.iota(shape, axis, 0, i64)
            position = position if step == 1 else self.combine("mul", position, step)
            places.append(self.combine("add", position, start) if start else position)
        return self.take(value, places)

    def write(self, view: View, places: Places, value: Tile) -> None:
        mask = None if places.mask is None else places.mask.ssa
        self.emit(tile.WriteOp(value.ssa, view.ssa, [one.ssa for one in places.indices], mask=mask))

    def atomic_at(self, kind: str, view: View, places: Places, value: Tile) -> None:
        mask = None if places.mask is None else places.mask.ssa
        self.emit(tile.AtomicAtOp(kind, value.ssa, view.ssa, [one.ssa for one in places.indices], mask=mask))

    def _there(self, view: View, places: Places) -> Tile:
        """Which places are in a view, and asked for."""
        there = places.mask
        for axis, index in enumerate(places.indices):
            for condition in (self.combine("ge", index, 0), self.combine("lt", index, self.size(view, axis))):
                there = condition if there is None else self.combine("and", there, condition)
        assert there is not None
        return there

    def program_id(self, axis: int) -> Scalar:
        made = tile.ProgramIdOp(axis)
        found = Scalar(self.emit(made), None)
        self.axes.setdefault(axis, source_of(made.location))
        return found

    # Tiles.

    def wrap(self, ssa: SSAValue, **marks: Any) -> Tile:
        return Tile(ssa, tile_type(ssa).get_shape(), tile_dtype(ssa), **marks)

    def full(self, shape: Sequence[int], value: Any, dtype: DType) -> Tile:
        if dtype.kind is Kind.UINT and not isinstance(value, Scalar):
            # Scalars of the program are signed: the same bits, cast as a tile.
            signed = BY_NAME[f"i{dtype.bits}"]
            wrapped = value - (1 << dtype.bits) if value > signed.max_value else value
            return self.cast(self.full(shape, wrapped, signed), dtype)
        ssa = value.ssa if isinstance(value, Scalar) else self.number(value, element_of(dtype))
        return self.wrap(self.emit(tile.FullOp(ssa, shape)))

    def iota(self, shape: Sequence[int], axis: int, base: Any, dtype: DType) -> Tile:
        if dtype.is_float:
            return self.cast(self.iota(shape, axis, base, i64), dtype)
        return self.wrap(self.emit(tile.IotaOp(self.position(base), axis, tile_of(tuple(shape), dtype))))

    def tile_like(self, value: Any, like: Tile) -> Tile:
        """A number or scalar beside a tile: weakly typed, it takes the tile's element type."""
        if isinstance(value, Tile):
            return value
        if isinstance(value, bool) and like.dtype is not bool_:
            raise DtypeError(f"the flag {value} beside {like}", hint="compare, or use tile.where")
        if isinstance(value, float) and not like.dtype.is_float:
            raise DtypeError(f"the number {value} does not go with {like}", hint="cast the tile to a float type first")
        if isinstance(value, int | float):
            return self.full(like.shape, value, like.dtype)
        if isinstance(value, Scalar):
            return self.full(like.shape, self.convert(value, like.dtype), like.dtype)
        if isinstance(value, Undefined):
            value.refuse()
        raise DtypeError(f"{value!r} is not an operand of a tile operation", hint="use tiles, scalars and numbers")

    def align(self, tiles: Sequence[Tile], where: str) -> list[Tile]:
        """The tiles at their common shape."""
        shape = rules.broadcast(*(value.shape for value in tiles), where=where)
        return [self.broadcast(value, tuple(int(s) for s in shape)) for value in tiles]  # pyright: ignore[reportArgumentType]  # tiles have constant sizes

    def elementwise(self, name: str, operands: Sequence[Tile], **options: Any) -> Tile:
        aligned = self.align(operands, name)
        axis_bounds = _met(aligned)
        try:
            op = tile.EwOp(name, [value.ssa for value in aligned], **options)
        except DtypeError as error:
            error.shapes = tuple(str(value) for value in operands)
            raise
        return self.wrap(self.emit(op), axis_bounds=axis_bounds)

    def combine(self, name: str, left: Any, right: Any) -> Any:
        """A binary operator between tiles, scalars and numbers."""
        left, right = _number(left), _number(right)
        for value in (left, right):
            if isinstance(value, Undefined):
                value.refuse()
            if isinstance(value, View):
                value.refuse()
            if not is_dynamic(value) and not isinstance(value, bool | int | float):
                raise DtypeError(f"{name}: {value!r} is not a tile, a scalar or a number", hint="load or cast it first")
        if isinstance(left, Tile) or isinstance(right, Tile):
            first = self.tile_like(left, right) if not isinstance(left, Tile) else left
            second = self.tile_like(right, first)
            if name == "div" and second.denominator:
                return self._safe_division(first, second)
            try:
                common = promote_exactly(first.dtype, second.dtype)
            except DtypeError as error:
                error.shapes = (str(first), str(second))
                raise
            return self.elementwise(name, [self.cast(first, common), self.cast(second, common)])
        return self._combine_scalars(name, left, right)

    def _safe_division(self, numerator: Tile, denominator: Tile) -> Tile:
        """Row sums of a softmax are 0 only where everything was masked; the result is 0 there."""
        empty = self.elementwise("eq", [denominator, self.tile_like(0.0, denominator)])
        divisor = self.elementwise("select", [empty, self.tile_like(1.0, denominator), denominator])
        common = promote_exactly(numerator.dtype, denominator.dtype)
        quotient = self.elementwise("div", [self.cast(numerator, common), self.cast(divisor, common)])
        return self.where(empty, 0.0, quotient)

    def _combine_scalars(self, name: str, left: Any, right: Any) -> Scalar:
        if name in ("floordiv", "rem") and isinstance(right, int) and right == 0:
            raise CompileError(f"{left} is divided by 0", hint="divide by another number")
        dtype = self.scalar_type(left, right)
        if dtype is bool_ and name in _COUNTING:
            dtype = None  # to Python, True is 1 there
        if name == "rem":
            whole = self._combine_scalars("floordiv", left, right)
            return self._combine_scalars("sub", left, self._combine_scalars("mul", whole, right))
        first, second = self.convert(left, dtype).ssa, self.convert(right, dtype).ssa
        is_float = dtype is not None and dtype.is_float
        if name in _INTEGER_COMPARES:
            op = (
                arith.CmpfOp(first, second, _FLOAT_COMPARES[name])
                if is_float
                else arith.CmpiOp(first, second, _INTEGER_COMPARES[name])
            )
            return Scalar(self.emit(op), bool_)
        kind = (_FLOAT_OPS if is_float else _INTEGER_OPS).get(name)
        if kind is None:
            raise DtypeError(
                f"{name} is not defined for {'positions' if dtype is None else f'scalars of {dtype}'}",
                hint="multiply by a power of two, or divide by one with //"
                if name in ("shl", "shr")
                else "use // for integers, or convert with tile.cast(x, f32)",
            )
        return Scalar(self.emit(kind(first, second)), dtype)  # pyright: ignore[reportCallIssue]  (every one takes two operands)

    def scalar_type(self, left: Any, right: Any) -> DType | None:
        scalars = [value for value in (left, right) if isinstance(value, Scalar)]
        numbers = [value for value in (left, right) if not isinstance(value, Scalar)]
        types = {value.dtype for value in scalars}
        if len(types) == 1:
            (dtype,) = types
            if any(isinstance(number, float) for number in numbers) and not (dtype is not None and dtype.is_float):
                return f32
            if dtype is bool_ and any(not isinstance(number, bool) for number in numbers):
                return None
            return dtype
        floats = [dtype for dtype in types if dtype is not None and dtype.is_float]
        if floats:
            return promote_exactly(*floats) if len(floats) > 1 else floats[0]
        return None if None in types else promote_exactly(*(dtype for dtype in types if dtype is not None))

    def convert(self, value: Any, dtype: DType | None) -> Scalar:
        """A scalar or number as a scalar of a type; scalars are weakly typed, so this may round."""
        type_ = IndexType() if dtype is None else element_of(dtype)
        if not isinstance(value, Scalar):
            return Scalar(self.number(bool(value) if dtype is bool_ else value, type_), dtype)
        if value.dtype is dtype:
            return value
        if dtype is bool_:  # as Python takes it: all but zero holds
            return self._combine_scalars("ne", value, 0)
        source = value.dtype
        if source is None or dtype is None:
            if dtype is not None and dtype.is_float:
                return self.convert(self.convert(value, i64), dtype)
            if (dtype or source or i64).kind is Kind.FLOAT:
                raise DtypeError(f"{value} cannot be a position", hint="positions are integers")
            return Scalar(self.emit(arith.IndexCastOp(value.ssa, type_)), dtype)
        if source.is_float or dtype.is_float:
            op: Callable[..., Operation] = _FLOAT_CASTS[source.is_float, dtype.is_float, dtype.bits > source.bits]
        else:
            op = _INTEGER_CASTS[dtype.bits > source.bits]
        return Scalar(self.emit(op(value.ssa, type_)), dtype)

    def apply(self, name: str, value: Any) -> Any:
        """A function of one operand, on a tile or a scalar."""
        if isinstance(value, Tile):
            return self.elementwise(name, [value])
        if isinstance(value, Scalar):
            if name == "neg" and value.dtype is not None and value.dtype.is_float:
                return Scalar(self.emit(arith.NegfOp(value.ssa)), value.dtype)
            if name == "neg":
                return self._combine_scalars("sub", 0, value)
            if name == "not" and value.dtype is bool_:
                return self._combine_scalars("xor", value, True)
            if name == "abs":
                return self._combine_scalars("max", value, self.apply("neg", value))
            # Scalars have arithmetic only; as a tile without axes it goes with any other tile.
            dtype = value.dtype if value.dtype is not None and value.dtype.is_float else f32
            return self.elementwise(name, [self.full((), self.convert(value, dtype), dtype)])
        if isinstance(value, Undefined):
            value.refuse()
        raise DtypeError(f"{name} of {value!r}", hint="use tiles and scalars")

    def where(self, condition: Any, first: Any, second: Any) -> Any:
        tiles = [value for value in (first, second) if isinstance(value, Tile)]
        if not isinstance(condition, Tile) and tiles:
            condition = self.full((), self.convert(condition, bool_), bool_)
        if not isinstance(condition, Tile):
            condition_ = self.convert(condition, bool_)
            dtype = self.scalar_type(first, second) if isinstance(first, Scalar) or isinstance(second, Scalar) else f32
            a, b = self.convert(first, dtype), self.convert(second, dtype)
            return Scalar(self.emit(arith.SelectOp(condition_.ssa, a.ssa, b.ssa)), dtype)
        if not tiles:
            raise DtypeError(
                "tile.where needs a tile for at least one of its values", hint="use tile.full for the other"
            )
        a, b = self.tile_like(first, tiles[0]), self.tile_like(second, tiles[0])
        common = promote_exactly(a.dtype, b.dtype)
        return self.elementwise("select", [condition, self.cast(a, common), self.cast(b, common)])

    def cast(self, value: Any, dtype: DType) -> Any:
        if isinstance(value, Scalar):
            return self.convert(value, dtype)
        if isinstance(value, Undefined):
            value.refuse()
        if not isinstance(value, Tile):
            raise DtypeError(f"tile.cast of {value!r}", hint="cast tiles and scalars; load a tile from a view first")
        if value.dtype.base is dtype.base and dtype.policy == value.dtype.policy:
            return value
        if value.dtype.base is dtype.base and not (dtype.policy.saturate or dtype.policy.loss_scale):
            return value
        return self.elementwise("cast", [value], to=dtype)

    def expand(self, value: Tile, axis: int) -> Tile:
        axis_bounds = {old + (old >= axis): found for old, found in value.axis_bounds.items()}
        return self.wrap(self.emit(tile.ExpandOp(value.ssa, axis)), axis_bounds=axis_bounds)

    def broadcast(self, value: Tile, shape: tuple[int, ...]) -> Tile:
        if value.shape == shape:
            return value
        result = value
        while result.ndim < len(shape):
            result = self.expand(result, 0)
        if result.shape == shape:
            return result
        ssa = self.emit(tile.BroadcastOp(result.ssa, shape))
        # A repeated element has one place in the array, not one along the axis.
        axis_bounds = {axis: found for axis, found in result.axis_bounds.items() if result.shape[axis] == shape[axis]}
        return self.wrap(ssa, axis_bounds=axis_bounds, denominator=value.denominator)

    def transpose(self, value: Tile, permutation: Sequence[int]) -> Tile:
        if sorted(permutation) != list(range(value.ndim)):
            raise ShapeError(
                f"{list(permutation)} does not name each axis of {value} once", shapes=[format_shape(value.shape)]
            )
        axis_bounds = {list(permutation).index(axis): found for axis, found in value.axis_bounds.items()}
        return self.wrap(self.emit(tile.TransOp(value.ssa, permutation)), axis_bounds=axis_bounds)

    def reduce(self, kind: str, value: Tile, axis: int) -> Tile:
        axis = rules.normalize_axis(axis, value.ndim, where=kind)
        axis_bounds = {old - (old > axis): found for old, found in value.axis_bounds.items() if old != axis}
        return self.wrap(self.emit(tile.ReduceOp(kind, value.ssa, axis)), axis_bounds=axis_bounds)

    def sorted(self, value: Tile, axis: int) -> Tile:
        """Whole numbers in ascending order."""
        return self.wrap(self.emit(tile.SortOp(value.ssa, axis)))

    def scanned(self, kind: str, value: Tile, axis: int) -> Tile:
        """Running reductions along an axis."""
        return self.wrap(self.emit(tile.ScanOp(kind, value.ssa, axis)))

    def dot(self, a: Tile, b: Tile, c: Tile | None, out: DType | None) -> Tile:
        check_dot(a, b)
        if a.dtype.base is not b.dtype.base:
            raise DtypeError(
                f"dot of {a.dtype} and {b.dtype} elements", hint="cast one of the two", shapes=[str(a), str(b)]
            )
        total = out or (c.dtype if c is not None else accumulator(a.dtype))
        front = batch_of(a, b)
        a, b = (self.broadcast(one, (*front, *one.shape[-2:])) for one in (a, b))
        shape = (*a.shape[:-1], b.shape[-1])
        start = c if c is not None else self.full(shape, 0, total.base)
        if start.shape != shape:
            raise wrong_sum(a, b, start)
        axis_bounds = bounds_of_dot(a, b, start)
        declared = {value.dtype.policy.accum for value in (a, b)} - {None}
        narrow = [one for one in declared if one is not None and one.bits < start.dtype.bits]
        accum = element_of(narrow[0]) if len(declared) == len(narrow) == 1 else None
        return self.wrap(self.emit(tile.DotOp(a.ssa, b.ssa, start.ssa, accum=accum)), axis_bounds=axis_bounds)

    def masked(self, value: Tile, axis: int, fill: float) -> Tile:
        """The tile with everything beyond the array along an axis replaced."""
        bounds = value.axis_bounds.get(axis)
        if bounds is None or not bounds.ragged:
            return value
        if not bounds.is_known:
            raise CompileError(
                f"{value} was carried by a loop or chosen by an if, and where it lies along axis {axis} is not known",
                hint="load the block in the same iteration or branch that uses it",
            )
        shape = tuple(extent if other == axis else 1 for other, extent in enumerate(value.shape))
        kept = value
        for bound in bounds.bounds:
            positions = self.iota(shape, axis, bound.start, i64)
            inside = self.elementwise("lt", [positions, self.tile_like(bound.limit, positions)])
            kept = self.where(inside, kept, fill)
        axis_bounds = value.axis_bounds | {axis: bounds._replace(ragged=False)}
        return Tile(kept.ssa, kept.shape, kept.dtype, axis_bounds=axis_bounds)

    def check(self, condition: Any, message: str) -> None:
        if not isinstance(condition, Tile | Scalar) or condition.dtype is not bool_:
            raise DtypeError(f"an assertion needs a condition, got {condition!r}", hint="compare something")
        self.emit(tile.AssertOp(condition.ssa, message))

    def check_step(self, step: Scalar) -> None:
        """Fails where a loop would not go upward."""
        op = tile.AssertOp(self.combine("ge", step, 1).ssa, tile.STEP_BELOW_1)
        op.attributes[tile.CHECK] = StringAttr("steps")
        self.emit(op)

    def show(self, label: str, values: Sequence[Any], *, stop: bool = False) -> None:
        given = [value if is_dynamic(value) else self.convert(value, f32) for value in values]
        op = tile.DebugPrintOp(label, [value.ssa for value in given])
        if stop:
            op.attributes[tile.BREAKPOINT] = UnitAttr()
        self.emit(op)

    # Control flow.

    def inside(self, region: Region, run: Callable[[Block], list[SSAValue]]) -> None:
        """Runs `run` with a region's block as the insertion point, and ends the block with its results."""
        with self.building(region.block):
            self.emit(scf.YieldOp(*run(region.block)))

    def finish(self, outputs: int, grid: Sequence[Size]) -> tile.FuncOp:
        """The tile function, complete."""
        end = tile.ReturnOp()
        self.locate(end)
        self.entry.add_op(end)
        shapes = [
            tuple(size(dim(one).substitute(self.constants)) for one in argument.shape) for argument in self.arguments
        ]
        function = tile.FuncOp(
            self.name,
            [argument.ssa.type for argument in self.arguments],
            outputs,
            shapes,
            [size(dim(extent).substitute(self.constants)) for extent in grid],
            Region(self.entry),
            fills=[index for index, argument in enumerate(self.arguments) if argument.filled],
        )
        give_hints(function, Hints(swizzle=self.schedule.swizzle))
        function.location = location_of(self.source)
        guard_looked_up(function)
        return function
