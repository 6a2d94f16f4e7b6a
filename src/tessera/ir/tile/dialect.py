"""The tile dialect: functions over tiles, without layouts or threads, run sequentially once per point of a grid.

Here are ops of functions, memory and effects, and the list of all ops; ops that compute are in `values.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, BlockArgument, Dialect, Operation, OpResult, Region, SSAValue
from xdsl.irdl import AnyAttr, AttrSizedOperandSegments, eq, irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import DType, Kind, bool_, i64
from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import (
    IntegerConstraint,
    Integers,
    Name,
    Number,
    SizesAttr,
    integer,
    integers,
    symbols_of,
)
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import GIVEN, GIVEN_ALL, DeclaredOp
from tessera.ir.common.effects import IO, MEMORY, HasEffects, reads, writes
from tessera.ir.common.elements import TileType, is_element
from tessera.ir.common.functions import Facts, Function, extents, parse_count, parse_extents, print_extents
from tessera.ir.tile.hint_attributes import HintsAttr
from tessera.ir.tile.types import (
    AnyTile,
    AnyView,
    ViewType,
    boxes_in,
    check_axis,
    check_boxes,
    check_tile,
    tile_dtype,
    tile_type,
    view_type,
)
from tessera.ir.tile.updates import fresh_outputs, verify_updated
from tessera.ir.tile.values import (
    AnyOp,
    BroadcastOp,
    DotOp,
    EwOp,
    ExpandOp,
    FullOp,
    IotaOp,
    PackOp,
    ReduceOp,
    ScanOp,
    SortOp,
    TakeOp,
    TransOp,
    UnpackOp,
    verify_reduction,
)
from tessera.shapes.expr import Size

VERSION = 2
index = IndexType()

OPEN = "tile.open"
"""Marks an access that may lie outside of its view on purpose: what is there is not used, or left out."""
CHECK = "tile.check"
"""Names the safety check that an assert is; without it, an assert is the user's own."""
STEP_BELOW_1 = "tile.range has a step below 1"
"""What the assert beside a loop says whose step only the program knows."""
BREAKPOINT = "tile.breakpoint"
"""Marks a print that stops in a debugger instead: only the interpreter can."""
OVERLAPPING = "tile.overlapping"
"""Says of a function's arguments, one by one, the first argument whose memory they may overlap: most are their own.

Without it, no argument that the function writes overlaps another one.
"""


def base_of(view: SSAValue) -> SSAValue:
    """The argument whose memory a view sees."""
    while isinstance(owner := view.owner, ViewOp):
        view = owner.base
    return view


def memory_of(view: SSAValue) -> SSAValue:
    """The argument that stands for the memory a view sees: one for all arguments that may overlap each other.

    Two accesses can touch the same memory only where these are equal. Arguments overlap only where the function says so
    (`OVERLAPPING`), which launches check.
    """
    base = base_of(view)
    if not isinstance(base, BlockArgument) or (function := base.block.parent_op()) is None:
        return base
    if OVERLAPPING not in function.attributes:
        return base
    return base.block.args[first_overlapping(function, len(base.block.args))[base.index]]


def accesses(*, read: Sequence[str] = (), written: Sequence[str] = ()) -> Callable[[Any], AbstractSet[EffectInstance]]:
    """The method `effects` of ops that access the memory of some of their operands and results, given by name."""

    def effects(op: Operation) -> AbstractSet[EffectInstance]:
        found = {reads(MEMORY, memory_of(getattr(op, name))) for name in read}
        return found | {writes(MEMORY, memory_of(getattr(op, name))) for name in written}

    return effects


def first_overlapping(function: Operation, count: int) -> tuple[int, ...]:
    """For each of a function's `count` arguments, the index of the first that it may overlap."""
    found = function.attributes.get(OVERLAPPING)
    return tuple(map(int, found.iter_values())) if isinstance(found, DenseArrayBase) else tuple(range(count))


def copy_overlapping(source: Operation, made: Operation) -> None:
    """Says of a function's arguments what another one, with the same arguments, says of its own."""
    if (found := source.attributes.get(OVERLAPPING)) is not None:
        made.attributes[OVERLAPPING] = found


def verify_signature(types: Sequence[Attribute], shapes: ArrayAttr[SizesAttr], grid: SizesAttr) -> None:
    """Arguments are views and scalars, each with a shape of its rank, and the grid is made of the sizes' symbols."""
    if len(shapes) != len(types):
        raise VerifyException(f"{len(shapes)} shapes for {len(types)} arguments")
    for position, (type_, shape) in enumerate(zip(types, shapes, strict=True)):
        if not isinstance(type_, ViewType | IndexType) and not is_element(type_):
            raise VerifyException(f"argument {position} must be a view or a scalar, got {type_}")
        rank = type_.rank.data if isinstance(type_, ViewType) else 0
        if len(shape.data) != rank:
            raise VerifyException(f"argument {position} has rank {rank}, its shape {len(shape.data)} sizes")
    if missing := symbols_of(grid.data) - symbols_of(size for shape in shapes for size in shape.data):
        raise VerifyException(f"no argument has the symbol {', '.join(sorted(missing))} of the grid")


@irdl_op_definition
class FuncOp(Function):
    """A function over tiles; each point of `grid` is one program instance.

    `shapes` names the sizes of each argument (none for scalars); the grid is an expression in those names. The last
    `outputs` arguments are views that the function writes and that hold nothing before; the others are inputs. Among
    those, `fills` names the caller's views that the function is to fill: they hold nothing before, either.
    """

    name = "tile.func"

    outputs: IntegerAttr = fields.prop_def(IntegerConstraint)
    fills: Integers | None = fields.opt_prop_def(Integers, default=None)
    shapes: ArrayAttr[SizesAttr] = fields.prop_def(ArrayAttr[SizesAttr])
    grid: SizesAttr = fields.prop_def(SizesAttr)

    def __init__(
        self,
        name: str,
        arguments: Sequence[Attribute],
        outputs: int,
        shapes: Sequence[Sequence[Size]],
        grid: Sequence[Size],
        body: Region | None = None,
        *,
        fills: Sequence[int] = (),
    ) -> None:
        facts = {"outputs": integer(outputs), "fills": integers(fills) if fills else None}
        super().__init__(name, arguments, [], facts | extents(shapes, grid), body)

    @property
    def input_count(self) -> int:
        return len(self.function_type.inputs) - self.outputs.value.data

    @property
    def filled(self) -> tuple[int, ...]:
        """The indices of the inputs that hold nothing before."""
        return () if self.fills is None else tuple(self.fills.iter_values())

    @property
    def blank(self) -> frozenset[int]:
        """The indices of all arguments that hold nothing before the function writes them."""
        return frozenset((*self.filled, *fresh_outputs(self, self.input_count, len(self.function_type.inputs))))

    def verify_(self) -> None:
        self.verify_header()
        types, count = self.function_type.inputs.data, self.outputs.value.data
        if not 0 <= count <= len(types):
            raise VerifyException(f"outputs {count}: the function has {len(types)} arguments")
        self._verify_fills()
        verify_updated(self, types, self.shapes.data, self.input_count)
        for position, type_ in enumerate(types):
            if position >= self.input_count and not isinstance(type_, ViewType):
                raise VerifyException(f"output argument {position} must be a view, got {type_}")
        verify_signature(types, self.shapes, self.grid)
        self._verify_overlapping()
        for op in self.body.walk():
            if isinstance(op, ProgramIdOp) and op.axis.value.data >= len(self.grid.data):
                raise VerifyException(f"program_id {op.axis.value.data} in a grid of rank {len(self.grid.data)}")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("a tile function ends with tile.return")

    def _verify_overlapping(self) -> None:
        """Checks that each argument names the first one that it overlaps: an earlier view, or itself."""
        found, types = self.attributes.get(OVERLAPPING), self.function_type.inputs.data
        if found is None:
            return
        firsts = list(found.iter_values()) if isinstance(found, DenseArrayBase) else []
        if len(firsts) != len(types) or any(
            not 0 <= first <= index
            or firsts[int(first)] != first
            or isinstance(types[index], ViewType) is not isinstance(types[int(first)], ViewType)
            for index, first in enumerate(firsts)
        ):
            raise VerifyException(
                f"{OVERLAPPING} says of each of {len(types)} arguments the first that it overlaps, not {firsts}"
            )

    def _verify_fills(self) -> None:
        """Each index once, in order, and none at all only by leaving the property out: one spelling per meaning."""
        if self.fills is not None and (not self.filled or list(self.filled) != sorted(set(self.filled))):
            raise VerifyException(f"fills {list(self.filled)}: expected indices of arguments, ascending, at least one")
        for index in self.filled:
            if not 0 <= index < self.input_count:
                raise VerifyException(f"fills {index}: the function has {self.input_count} inputs")
            if not isinstance(type_ := self.function_type.inputs.data[index], ViewType):
                raise VerifyException(f"fills {index}: argument {index} must be a view, got {type_}")

    @classmethod
    def parse_facts(cls, parser: Parser) -> tuple[Facts, Sequence[Attribute]]:
        facts: Facts = {"outputs": integer(parse_count(parser, "outputs"))}
        if parser.parse_optional_keyword("fills") is not None:
            fills = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
            )
            facts["fills"] = integers(fills)
        return facts | parse_extents(parser), ()

    def print_facts(self, printer: Printer) -> None:
        printer.print_string(f" outputs {self.outputs.value.data}")
        if self.fills is not None:
            printer.print_string(f" fills {list(self.filled)}")
        print_extents(printer, self.shapes, self.grid)


@irdl_op_definition
class ReturnOp(DeclaredOp):
    """The end of a tile function: its results are what it stored."""

    name = "tile.return"
    traits = traits_def(IsTerminator(), HasParent(FuncOp), Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class ProgramIdOp(DeclaredOp):
    """The coordinate of this program instance along one axis of the grid."""

    name = "tile.program_id"
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def verify_(self) -> None:
        if self.axis.value.data < 0:
            raise VerifyException(f"a grid axis is not negative, got {self.axis.value.data}")


@irdl_op_definition
class ViewOp(DeclaredOp):
    """Another view of the same memory: `offset` elements further on, with sizes and strides of its own."""

    name = "tile.view"
    base: SSAValue = fields.operand_def(AnyView)
    offset: SSAValue = fields.operand_def(IndexType)
    sizes: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    strides: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    result: OpResult = fields.result_def(AnyView)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$base `offset` $offset `sizes` `[` $sizes `]` `strides` `[` $strides `]` attr-dict "
        "`:` type($base) `->` type($result)"
    )

    def result_type(self) -> ViewType:
        source = view_type(self.base)
        return ViewType(len(self.sizes), source.element, source.space)

    def verify_(self) -> None:
        source, result = view_type(self.base), view_type(self.result)
        if len(self.sizes) != len(self.strides) or len(self.sizes) != result.rank.data:
            raise VerifyException(
                f"{len(self.sizes)} sizes and {len(self.strides)} strides for a view of rank {result.rank.data}"
            )
        if (source.element, source.space) != (result.element, result.space):
            raise VerifyException(f"a view keeps element and space: {source} became {result}")


_MEASURE = "$view `,` $axis attr-dict `:` type($view)"


class _Measure(DeclaredOp):
    """One number of a view's shape."""

    view: SSAValue = fields.operand_def(AnyView)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(IndexType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_axis(self.axis.value.data, view_type(self.view).rank.data)


@irdl_op_definition
class DimOp(_Measure):
    """The size of a view along one axis."""

    name = "tile.dim"
    assembly_format = _MEASURE


@irdl_op_definition
class StrideOp(_Measure):
    """The distance, in elements, between neighbours along one axis."""

    name = "tile.stride"
    assembly_format = _MEASURE


def _check_access(view: SSAValue, offsets: Sequence[SSAValue], tile: SSAValue) -> None:
    seen, moved = view_type(view), check_tile(tile, "the tile")
    if len(offsets) != seen.rank.data or moved.get_num_dims() != seen.rank.data:
        raise VerifyException(
            f"{len(offsets)} offsets and a tile of rank {moved.get_num_dims()} for a view of rank {seen.rank.data}"
        )
    if moved.element_type != seen.element:
        raise VerifyException(f"the view holds {seen.element}, the tile {moved.element_type}")


@irdl_op_definition
class LoadOp(DeclaredOp):
    """The tile at `offsets`; positions outside the view give `pad` (0 unless said)."""

    name = "tile.load"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    pad: FloatAttr | None = fields.opt_prop_def(FloatAttr.constr(type=eq(Float64Type())), default=None)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",))
    assembly_format = (
        "$view `[` $offsets `]` (`pad` custom<Number>($pad)^)? attr-dict `:` type($view) `->` type($result)"
    )
    custom_directives = (Number,)

    def __init__(
        self, view: SSAValue, offsets: Sequence[SSAValue], shape: Sequence[int], pad: float | None = None
    ) -> None:
        filler = None if pad is None else FloatAttr(pad, Float64Type())
        super().__init__(view, offsets, TensorType(view_type(view).element, shape), pad=filler)

    @property
    def pad_value(self) -> float:
        return 0.0 if self.pad is None else self.pad.value.data

    def verify_(self) -> None:
        _check_access(self.view, self.offsets, self.result)
        dtype, pad = view_type(self.view).dtype, self.pad_value
        if not dtype.is_float and not (pad.is_integer() and dtype.min_value <= pad <= dtype.max_value):
            raise VerifyException(f"pad {pad} is not a value of {view_type(self.view).element}")


@irdl_op_definition
class LoadBoxesOp(DeclaredOp):
    """Boxes of a view, one behind the other along the first axis of a tile, whose rows they share evenly.

    `starts` has a number for each axis of the view, box by box. A box goes along `axes` of the view, with one element
    along the others. What lies outside of the view is 0, as are rows of the tile from `until` on, which are not read.
    """

    name = "tile.load_boxes"
    view: SSAValue = fields.operand_def(AnyView)
    starts: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    until: SSAValue | None = fields.opt_operand_def(IndexType, default=None)
    axes: Integers = fields.prop_def(Integers, converter=integers)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$view `[` $starts `]` `along` $axes (`until` $until^)? attr-dict `:` type($view) `->` type($result)"
    )

    @property
    def pad_value(self) -> float:
        return 0.0

    @property
    def boxes(self) -> list[Sequence[SSAValue]]:
        """Where each box starts."""
        return boxes_in(self.view, self.starts)

    def verify_(self) -> None:
        check_boxes(self.view, self.starts, tuple(self.axes.iter_values()), check_tile(self.result, "the tile"))


def _check_places(
    view: SSAValue, indices: Sequence[SSAValue], mask: SSAValue | None, moved: SSAValue, what: str
) -> None:
    """Checks the tile of numbers for each axis of a view, and the mask, of elements at computed places."""
    seen, type_ = view_type(view), check_tile(moved, what)
    if not indices or len(indices) != seen.rank.data:
        raise VerifyException(f"{len(indices)} tiles of places for a view of rank {seen.rank.data}, at least 1")
    for index in indices:
        if tile_dtype(index) is not i64 or check_tile(index, "the places").get_shape() != type_.get_shape():
            raise VerifyException(f"places are i64 tiles of {what}'s sizes, {type_}, not {index.type}")
    shape = type_.get_shape()
    if mask is not None and (tile_dtype(mask) is not bool_ or check_tile(mask, "the mask").get_shape() != shape):
        raise VerifyException(f"the mask is an i1 tile of {what}'s sizes, {type_}, not {mask.type}")
    if type_.element_type != seen.element:
        raise VerifyException(f"the view holds {seen.element}, the tile {type_.element_type}")


@irdl_op_definition
class ReadOp(DeclaredOp):
    """The elements at computed places: one tile of numbers per axis of the view.

    Where they lie outside of the view, or the mask is false, the element is 0.
    """

    name = "tile.read"
    view: SSAValue = fields.operand_def(AnyView)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    mask: SSAValue | None = fields.opt_operand_def(AnyTile, default=None)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$view `[` $indices `]` (`mask` $mask^ `:` type($mask))? attr-dict "
        "`:` type($view) `,` type($indices) `->` type($result)"
    )

    def result_type(self) -> Attribute:
        return TensorType(view_type(self.view).element, tile_type(self.indices[0]).get_shape())

    def verify_(self) -> None:
        _check_places(self.view, self.indices, self.mask, self.result, "the result")


@irdl_op_definition
class WriteOp(DeclaredOp):
    """Writes each element to a computed place; those outside of the view, or not in the mask, are left out.

    Of several elements for one place, any may be what stays there.
    """

    name = "tile.write"
    value: SSAValue = fields.operand_def(AnyTile)
    view: SSAValue = fields.operand_def(AnyView)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    mask: SSAValue | None = fields.opt_operand_def(AnyTile, default=None)
    traits = traits_def(HasEffects())
    effects = accesses(written=("view",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$value `,` $view `[` $indices `]` (`mask` $mask^ `:` type($mask))? attr-dict "
        "`:` type($value) `,` type($view) `,` type($indices)"
    )

    def verify_(self) -> None:
        _check_places(self.view, self.indices, self.mask, self.value, "the tile")


@irdl_op_definition
class AtomicAtOp(DeclaredOp):
    """Combines each element into memory at a computed place, in one indivisible step; order is not defined."""

    name = "tile.atomic_at"
    kind: Name = fields.prop_def(Name, converter=Name)
    value: SSAValue = fields.operand_def(AnyTile)
    view: SSAValue = fields.operand_def(AnyView)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    mask: SSAValue | None = fields.opt_operand_def(AnyTile, default=None)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("view",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "`` $kind $value `,` $view `[` $indices `]` (`mask` $mask^ `:` type($mask))? attr-dict "
        "`:` type($value) `,` type($view) `,` type($indices)"
    )

    def verify_(self) -> None:
        _check_places(self.view, self.indices, self.mask, self.value, "the tile")
        verify_reduction(self.kind.data, tile_dtype(self.value))

    @property
    def shows_order(self) -> bool:
        """As of `AtomicOp`."""
        return _shows_order(self.kind.data, tile_dtype(self.value))


@irdl_op_definition
class ItemOp(DeclaredOp):
    """One element of a view as a scalar, 0 where the place lies outside of it; one without a sign becomes an index."""

    name = "tile.item"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    result: OpResult = fields.result_def(AnyAttr())
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",))
    assembly_format = "$view `[` $offsets `]` attr-dict `:` type($view) `->` type($result)"

    def result_type(self) -> Attribute:
        seen = view_type(self.view)
        return index if seen.dtype.kind is Kind.UINT else seen.element

    def verify_(self) -> None:
        seen, wanted = view_type(self.view), self.result_type()
        if len(self.offsets) != seen.rank.data:
            raise VerifyException(f"{len(self.offsets)} offsets for a view of rank {seen.rank.data}")
        if self.result.type != wanted:
            raise VerifyException(f"an item of {seen.element} is a scalar of {wanted}, not {self.result.type}")


@irdl_op_definition
class StoreOp(DeclaredOp):
    """Writes the tile at `offsets`; positions outside the view are left out."""

    name = "tile.store"
    value: SSAValue = fields.operand_def(AnyTile)
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    traits = traits_def(HasEffects())
    effects = accesses(written=("view",))
    assembly_format = "$value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)"

    def verify_(self) -> None:
        _check_access(self.view, self.offsets, self.value)


@irdl_op_definition
class AtomicOp(DeclaredOp):
    """Combines the tile into memory, each element in one indivisible step; order is not defined."""

    name = "tile.atomic"
    kind: Name = fields.prop_def(Name, converter=Name)
    value: SSAValue = fields.operand_def(AnyTile)
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("view",))
    assembly_format = "`` $kind $value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)"

    def verify_(self) -> None:
        _check_access(self.view, self.offsets, self.value)
        verify_reduction(self.kind.data, tile_dtype(self.value))

    @property
    def shows_order(self) -> bool:
        """Whether what is left in memory depends on the order, in the last bits, as sums and products of floats do."""
        return _shows_order(self.kind.data, tile_dtype(self.value))


def _shows_order(kind: str, dtype: DType) -> bool:
    return dtype.is_float and kind not in ("max", "min", "top")


Writer = StoreOp | AtomicOp | WriteOp | AtomicAtOp
Reader = LoadOp | LoadBoxesOp | ReadOp | ItemOp | AtomicOp | AtomicAtOp
Atomic = AtomicOp | AtomicAtOp
AtPlaces = ReadOp | WriteOp | AtomicAtOp
BoxLoad = LoadOp | LoadBoxesOp
"""Loads of boxes: of one, or of several."""


def title(op: AtPlaces | AtomicOp) -> str:
    """An access at computed places, or an atomic one, as its user knows it."""
    if isinstance(op, AtomicAtOp | AtomicOp):
        combined = "add" if op.kind.data == "sum" else op.kind.data
        return f"{'atomic' if isinstance(op, AtomicOp) else 'scatter'}_{combined}"
    return "gather" if isinstance(op, ReadOp) else "scatter"


def written_memory(function: Operation) -> frozenset[SSAValue]:
    """The arguments whose memory a function writes."""
    return frozenset(memory_of(op.view) for op in function.walk() if isinstance(op, Writer))


@irdl_op_definition
class AssertOp(DeclaredOp):
    """Ends the launch with a message unless every element is true."""

    name = "tile.assert"
    condition: SSAValue = fields.operand_def(AnyAttr())
    message: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    traits = traits_def(HasEffects())
    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"

    def verify_(self) -> None:
        type_ = self.condition.type
        if type_ == IntegerType(1):
            return
        if not isinstance(type_, TensorType) or tile_dtype(self.condition) is not bool_:
            raise VerifyException(f"assert needs an i1 or a tile of i1, got {type_}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(IO)}


@irdl_op_definition
class DebugPrintOp(DeclaredOp):
    """Prints a label and values, for people."""

    name = "tile.debug_print"
    label: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    values: Sequence[SSAValue] = fields.var_operand_def(AnyAttr())
    traits = traits_def(HasEffects())
    assembly_format = "$label (`,` $values^)? attr-dict (`:` type($values)^)?"

    def verify_(self) -> None:
        for value in self.values:
            if isinstance(value.type, ViewType):
                raise VerifyException("a view cannot be printed: load a tile from it")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(IO)}


@irdl_op_definition
class PrintRecordOp(DeclaredOp):
    """A record of what a print shows: a view of fresh memory for each of the `tiles`, by their types.

    Stores to the views fill it, and the host prints it when the launch is over, in the order of program instances: so
    prints reach people from machine code. A launch has room for so many records; the views of others are empty. For
    that, the view of a tile without axes has one, of size 1.
    """

    name = "tile.print_record"
    site: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    label: StringAttr = fields.prop_def(StringAttr, converter=StringAttr)
    tiles: ArrayAttr[Attribute] = fields.prop_def(ArrayAttr[Attribute], converter=ArrayAttr)
    program: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    views: Sequence[OpResult] = fields.var_result_def(AnyView, converter=GIVEN_ALL)
    traits = traits_def(HasEffects())
    assembly_format = "$site $label `at` `[` $program `]` $tiles attr-dict (`:` type($views)^)?"

    @property
    def types(self) -> list[TileType]:
        """The types of the tiles."""
        return [cast(TileType, one) for one in self.tiles.data]

    def verify_(self) -> None:
        if self.site.value.data < 0:
            raise VerifyException(f"sites are counted from 0, got {self.site.value.data}")
        if len(self.tiles.data) != len(self.views):
            raise VerifyException(f"{len(self.views)} views for {len(self.tiles.data)} tiles")
        for one, view in zip(self.tiles.data, self.views, strict=True):
            if not isinstance(one, TensorType):
                raise VerifyException(f"a record holds tiles, not {one}")
            shown = check_tile(cast(TileType, one), "a tile of a record")
            if view.type != ViewType(max(1, shown.get_num_dims()), shown.element_type):
                raise VerifyException(f"the record holds {shown}, the view is {view.type}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(IO)}


def prints_of(function: Operation) -> list[DebugPrintOp]:
    """The prints of a function, in order: the number of one is its site. Those that stop in a debugger are none."""
    return [op for op in function.walk() if isinstance(op, DebugPrintOp) and BREAKPOINT not in op.attributes]


def records_prints(function: Operation) -> bool:
    """Whether a launch of a function needs a buffer for records of what it prints."""
    return any(isinstance(op, PrintRecordOp) for op in function.walk())


_COMPUTE = (
    *(AnyOp, BroadcastOp, DotOp, EwOp, ExpandOp, FullOp, IotaOp),
    *(PackOp, ReduceOp, ScanOp, SortOp, TakeOp, TransOp, UnpackOp),
)
Tile = Dialect("tile", [*ops_of(__name__), *_COMPUTE], [ViewType, HintsAttr])
