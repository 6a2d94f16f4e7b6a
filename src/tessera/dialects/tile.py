"""The tile dialect: sequential programs over tiles, without layouts or threads, one per point of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    Float64Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    eq,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, HasParent, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tessera.dialects import elementwise, reductions
from tessera.dialects.attributes import (
    IntegerConstraint,
    Integers,
    Name,
    Number,
    PolicyAttr,
    SizesAttr,
    integer,
    integers,
    parse_header,
    print_body,
    print_header,
    symbols_of,
    verify_header,
)
from tessera.dialects.effects import IO, MEMORY, HasEffects, reads, writes
from tessera.dialects.elements import TileType, dtype_of, is_element, tile_of
from tessera.dialects.tile_types import (
    AnyTile,
    AnyView,
    ViewType,
    check_axis,
    check_tile,
    tile_dtype,
    tile_type,
    view_type,
)
from tessera.dtypes.types import NO_POLICY, DType, Policy, bool_
from tessera.errors import TesseraError
from tessera.shapes.expr import Size

VERSION = 1
index = IndexType()


def base_of(view: SSAValue) -> SSAValue:
    """The argument whose memory a view sees."""
    while isinstance(owner := view.owner, ViewOp):
        view = owner.base
    return view


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A tile program, run once per point of `grid`.

    `shapes` names the sizes of each argument (none for scalars); the grid is an expression in those names. The last
    `outputs` arguments are views that the program writes and that hold nothing before; the others are inputs.
    """

    name = "tile.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    outputs = prop_def(IntegerConstraint)
    shapes = prop_def(ArrayAttr[SizesAttr])
    grid = prop_def(SizesAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        arguments: Sequence[Attribute],
        outputs: int,
        shapes: Sequence[Sequence[Size]],
        grid: Sequence[Size],
        body: Region | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(list(arguments), []),
                "outputs": integer(outputs),
                "shapes": ArrayAttr([SizesAttr(tuple(shape)) for shape in shapes]),
                "grid": SizesAttr(tuple(grid)),
            },
            regions=[Region(Block(arg_types=arguments)) if body is None else body],
        )

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        return tuple(self.body.block.args)

    @property
    def input_count(self) -> int:
        return len(self.function_type.inputs) - self.outputs.value.data

    def verify_(self) -> None:
        verify_header(self.function_type, self.body)
        types, count = self.function_type.inputs.data, self.outputs.value.data
        if not 0 <= count <= len(types):
            raise VerifyException(f"outputs {count}: the function has {len(types)} arguments")
        if len(self.shapes) != len(types):
            raise VerifyException(f"{len(self.shapes)} shapes for {len(types)} arguments")
        for position, (type_, shape) in enumerate(zip(types, self.shapes, strict=True)):
            if position >= self.input_count and not isinstance(type_, ViewType):
                raise VerifyException(f"output argument {position} must be a view, got {type_}")
            if not isinstance(type_, ViewType | IndexType) and not is_element(type_):
                raise VerifyException(f"argument {position} must be a view or a scalar, got {type_}")
            rank = type_.rank.data if isinstance(type_, ViewType) else 0
            if len(shape.data) != rank:
                raise VerifyException(f"argument {position} has rank {rank}, its shape {len(shape.data)} sizes")
        if missing := symbols_of(self.grid.data) - symbols_of(s for shape in self.shapes for s in shape.data):
            raise VerifyException(f"no argument has the symbol {', '.join(sorted(missing))} of the grid")
        for op in self.body.walk():
            if isinstance(op, ProgramIdOp) and op.axis.value.data >= len(self.grid.data):
                raise VerifyException(f"program_id {op.axis.value.data} in a grid of rank {len(self.grid.data)}")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("a tile function ends with tile.return")

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        header = parse_header(parser)
        parser.parse_keyword("outputs")
        outputs = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("shapes")
        shapes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: SizesAttr.parse_bare(parser))
        parser.parse_keyword("grid")
        grid = SizesAttr.parse_bare(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(header.name, header.types, outputs, shapes, grid, parser.parse_region(header.arguments))
        op.attributes |= attributes.data if attributes else {}
        return op

    def print(self, printer: Printer) -> None:
        print_header(printer, self.sym_name, self.body.block)
        printer.print_string(f" outputs {self.outputs.value.data} shapes ")
        with printer.in_square_brackets():
            printer.print_list(self.shapes, lambda shape: shape.print_bare(printer))
        printer.print_string(" grid ")
        self.grid.print_bare(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        print_body(printer, self.body)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a tile function: its results are what it stored."""

    name = "tile.return"
    traits = traits_def(IsTerminator(), HasParent(FuncOp), Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class ProgramIdOp(IRDLOperation):
    """This program's coordinate along one axis of the grid."""

    name = "tile.program_id"
    axis = prop_def(IntegerConstraint)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int) -> None:
        super().__init__(properties={"axis": integer(axis)}, result_types=[index])

    def verify_(self) -> None:
        if self.axis.value.data < 0:
            raise VerifyException(f"a grid axis is not negative, got {self.axis.value.data}")


@irdl_op_definition
class ViewOp(IRDLOperation):
    """Another view of the same memory: `offset` elements further on, with sizes and strides of its own."""

    name = "tile.view"
    base = operand_def(AnyView)
    offset = operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    result = result_def(AnyView)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$base `offset` $offset `sizes` `[` $sizes `]` `strides` `[` $strides `]` attr-dict "
        "`:` type($base) `->` type($result)"
    )

    def __init__(
        self, base: SSAValue, offset: SSAValue, sizes: Sequence[SSAValue], strides: Sequence[SSAValue]
    ) -> None:
        source = view_type(base)
        super().__init__(
            operands=[base, offset, sizes, strides], result_types=[ViewType(len(sizes), source.element, source.space)]
        )

    def verify_(self) -> None:
        source, result = view_type(self.base), view_type(self.result)
        if len(self.sizes) != len(self.strides) or len(self.sizes) != result.rank.data:
            raise VerifyException(
                f"{len(self.sizes)} sizes and {len(self.strides)} strides for a view of rank {result.rank.data}"
            )
        if (source.element, source.space) != (result.element, result.space):
            raise VerifyException(f"a view keeps element and space: {source} became {result}")


_MEASURE = "$view `,` $axis attr-dict `:` type($view)"


class _Measure(IRDLOperation):
    """One number of a view's shape."""

    view = operand_def(AnyView)
    axis = prop_def(IntegerConstraint)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, view: SSAValue, axis: int) -> None:
        super().__init__(operands=[view], properties={"axis": integer(axis)}, result_types=[index])

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
class LoadOp(IRDLOperation):
    """The tile at `offsets`; positions outside the view give `pad` (0 unless said)."""

    name = "tile.load"
    view = operand_def(AnyView)
    offsets = var_operand_def(IndexType)
    pad = opt_prop_def(FloatAttr.constr(type=eq(Float64Type())))
    result = result_def(AnyTile)
    traits = traits_def(HasEffects())
    assembly_format = (
        "$view `[` $offsets `]` (`pad` custom<Number>($pad)^)? attr-dict `:` type($view) `->` type($result)"
    )
    custom_directives = (Number,)

    def __init__(
        self, view: SSAValue, offsets: Sequence[SSAValue], shape: Sequence[int], pad: float | None = None
    ) -> None:
        super().__init__(
            operands=[view, offsets],
            properties={"pad": None if pad is None else FloatAttr(pad, Float64Type())},
            result_types=[TensorType(view_type(view).element, shape)],
        )

    @property
    def pad_value(self) -> float:
        return 0.0 if self.pad is None else self.pad.value.data

    def verify_(self) -> None:
        _check_access(self.view, self.offsets, self.result)
        dtype, pad = view_type(self.view).dtype, self.pad_value
        if not dtype.is_float and not (pad.is_integer() and dtype.min_value <= pad <= dtype.max_value):
            raise VerifyException(f"pad {pad} is not a value of {view_type(self.view).element}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY, base_of(self.view))}


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes the tile at `offsets`; positions outside the view are left out."""

    name = "tile.store"
    value = operand_def(AnyTile)
    view = operand_def(AnyView)
    offsets = var_operand_def(IndexType)
    traits = traits_def(HasEffects())
    assembly_format = "$value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)"

    def __init__(self, value: SSAValue, view: SSAValue, offsets: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, view, offsets])

    def verify_(self) -> None:
        _check_access(self.view, self.offsets, self.value)

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(MEMORY, base_of(self.view))}


@irdl_op_definition
class AtomicOp(IRDLOperation):
    """Combines the tile into memory, each element in one indivisible step; order is not defined."""

    name = "tile.atomic"
    kind = prop_def(Name)
    value = operand_def(AnyTile)
    view = operand_def(AnyView)
    offsets = var_operand_def(IndexType)
    traits = traits_def(HasEffects())
    assembly_format = "`` $kind $value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)"

    def __init__(self, kind: str, value: SSAValue, view: SSAValue, offsets: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, view, offsets], properties={"kind": Name(kind)})

    def verify_(self) -> None:
        _check_access(self.view, self.offsets, self.value)
        _reduction(self.kind.data, tile_dtype(self.value))

    def effects(self) -> AbstractSet[EffectInstance]:
        base = base_of(self.view)
        return {reads(MEMORY, base), writes(MEMORY, base)}


def _reduction(kind: str, dtype: DType) -> None:
    try:
        reductions.check(kind, dtype)
    except TesseraError as error:
        raise VerifyException(error.message) from error


@irdl_op_definition
class FullOp(IRDLOperation):
    """A tile whose every element is one scalar."""

    name = "tile.full"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    result = result_def(TensorType.constr(T))
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operands=[value], result_types=[TensorType(value.type, shape)])

    def verify_(self) -> None:
        check_tile(self.result, "the result")


@irdl_op_definition
class IotaOp(IRDLOperation):
    """`base` plus the position along one axis."""

    name = "tile.iota"
    base = operand_def(IndexType)
    axis = prop_def(IntegerConstraint)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$base `,` $axis attr-dict `:` type($result)"

    def __init__(self, base: SSAValue, axis: int, result: TileType) -> None:
        super().__init__(operands=[base], properties={"axis": integer(axis)}, result_types=[result])

    def verify_(self) -> None:
        result = check_tile(self.result, "the result")
        check_axis(self.axis.value.data, result.get_num_dims())
        if not dtype_of(result.element_type).is_integer:
            raise VerifyException(f"iota counts in an integer type, got {result.element_type}")


@irdl_op_definition
class EwOp(IRDLOperation):
    """One row of the elementwise table, applied at every position; `policy` governs the final rounding."""

    name = "tile.ew"
    fn = prop_def(Name)
    operands_ = var_operand_def(AnyTile)
    policy = opt_prop_def(PolicyAttr)
    seed = opt_prop_def(IntegerConstraint)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = (
        "`` $fn $operands_ (`policy` $policy^)? (`seed` $seed^)? attr-dict `:` type($operands_) `->` type($result)"
    )

    def __init__(
        self,
        fn: str,
        operands: Sequence[SSAValue],
        *,
        to: DType | None = None,
        policy: Policy = NO_POLICY,
        seed: int | None = None,
    ) -> None:
        dtype = elementwise.result_dtype(fn, [tile_dtype(operand) for operand in operands], to=to)
        dtype = dtype.with_policy(dtype.policy @ policy)
        super().__init__(
            operands=[operands],
            properties={
                "fn": Name(fn),
                "policy": None if dtype.policy == NO_POLICY else PolicyAttr(dtype.policy),
                "seed": None if seed is None else integer(seed),
            },
            result_types=[tile_of(tile_type(operands[0]).get_shape(), dtype)],
        )

    @property
    def result_dtype(self) -> DType:
        """The type of the result with the policy under which it is rounded."""
        plain = tile_dtype(self.result)
        return plain if self.policy is None else plain.with_policy(self.policy.data)

    def verify_(self) -> None:
        if not self.operands_:
            raise VerifyException("an elementwise op has at least one operand")
        result = check_tile(self.result, "the result")
        for operand in self.operands_:
            if check_tile(operand, "the operand").get_shape() != result.get_shape():
                raise VerifyException(
                    f"operands and result have one shape; {operand.type} and {result} differ: expand and broadcast"
                )
        try:
            rounded = self.result_dtype
        except TesseraError as error:
            raise VerifyException(error.message) from error
        dtypes = [tile_dtype(operand) for operand in self.operands_]
        verify_elementwise(self.fn.data, dtypes, rounded, self.seed is not None)


def verify_elementwise(fn: str, dtypes: Sequence[DType], result: DType, seeded: bool) -> None:
    """Typing of one row, shared by the graph and tile levels."""
    try:
        expected = elementwise.result_dtype(fn, dtypes, to=result if fn == "cast" else None)
    except TesseraError as error:
        raise VerifyException(error.message) from error
    if expected.base is not result.base:
        raise VerifyException(f"{fn} of {', '.join(map(str, dtypes))} gives {expected}, not {result}")
    if result.policy.stochastic and not seeded:
        raise VerifyException("stochastic rounding needs a seed")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Folds one axis away with one row of the reduction table."""

    name = "tile.reduce"
    kind = prop_def(Name)
    operand = operand_def(AnyTile)
    axis = prop_def(IntegerConstraint)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "`` $kind $operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, kind: str, operand: SSAValue, axis: int) -> None:
        source = tile_type(operand)
        shape = source.get_shape()
        super().__init__(
            operands=[operand],
            properties={"kind": Name(kind), "axis": integer(axis)},
            result_types=[TensorType(source.element_type, shape[:axis] + shape[axis + 1 :])],
        )

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        axis, shape = self.axis.value.data, source.get_shape()
        check_axis(axis, len(shape))
        _reduction(self.kind.data, tile_dtype(self.operand))
        if result != TensorType(source.element_type, shape[:axis] + shape[axis + 1 :]):
            raise VerifyException(f"folding axis {axis} of {source} does not give {result}")


@irdl_op_definition
class ExpandOp(IRDLOperation):
    """Inserts an axis of size 1."""

    name = "tile.expand"
    operand = operand_def(AnyTile)
    axis = prop_def(IntegerConstraint)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, axis: int) -> None:
        source = tile_type(operand)
        shape = source.get_shape()
        super().__init__(
            operands=[operand],
            properties={"axis": integer(axis)},
            result_types=[TensorType(source.element_type, (*shape[:axis], 1, *shape[axis:]))],
        )

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        axis, shape = self.axis.value.data, source.get_shape()
        check_axis(axis, len(shape) + 1)
        if result != TensorType(source.element_type, (*shape[:axis], 1, *shape[axis:])):
            raise VerifyException(f"inserting axis {axis} into {source} does not give {result}")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Repeats axes of size 1; ranks are equal."""

    name = "tile.broadcast"
    operand = operand_def(AnyTile)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operands=[operand], result_types=[TensorType(tile_type(operand).element_type, shape)])

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        pairs = zip(source.get_shape(), result.get_shape(), strict=False)
        if source.get_num_dims() != result.get_num_dims() or any(s not in (1, r) for s, r in pairs):
            raise VerifyException(f"{source} does not broadcast to {result}: only axes of size 1 repeat")
        if source.element_type != result.element_type:
            raise VerifyException(f"broadcasting keeps the element type: {source} became {result}")


@irdl_op_definition
class TransOp(IRDLOperation):
    """Result axis `i` is operand axis `permutation[i]`."""

    name = "tile.trans"
    operand = operand_def(AnyTile)
    permutation = prop_def(Integers)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $permutation attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, permutation: Sequence[int]) -> None:
        source = tile_type(operand)
        shape = tuple(source.get_shape()[axis] for axis in permutation)
        super().__init__(
            operands=[operand],
            properties={"permutation": integers(permutation)},
            result_types=[TensorType(source.element_type, shape)],
        )

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        permutation = tuple(self.permutation.iter_values())
        if sorted(permutation) != list(range(source.get_num_dims())):
            raise VerifyException(f"{list(permutation)} is not a permutation of {source.get_num_dims()} axes")
        if result != TensorType(source.element_type, tuple(source.get_shape()[axis] for axis in permutation)):
            raise VerifyException(f"permuting {source} by {list(permutation)} does not give {result}")


@irdl_op_definition
class DotOp(IRDLOperation):
    """c + a·b, accumulated in the element type of c."""

    name = "tile.dot"
    a = operand_def(AnyTile)
    b = operand_def(AnyTile)
    c = operand_def(AnyTile)
    result = result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c) `->` type($result)"

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue) -> None:
        super().__init__(operands=[a, b, c], result_types=[c.type])

    def verify_(self) -> None:
        a, b, c = (check_tile(operand, "the operand") for operand in (self.a, self.b, self.c))
        if self.result.type != c:
            raise VerifyException(f"the result has the type of c, {c}, not {self.result.type}")
        shapes = a.get_shape(), b.get_shape(), c.get_shape()
        match shapes:
            case (m, k), (k2, n), (m2, n2) if (m, k, n) == (m2, k2, n2):
                pass
            case _:
                raise VerifyException(f"dot of {a} and {b} into {c}: expected [M, K], [K, N] and [M, N]")
        left, right, total = (dtype_of(tile.element_type) for tile in (a, b, c))
        if left is not right or left.kind is not total.kind or total.bits < left.bits:
            raise VerifyException(
                f"dot of {left} and {right} into {total}: expected equal operands and a sum of their kind, no narrower"
            )


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Stops the program with a message unless every element is true."""

    name = "tile.assert"
    condition = operand_def(AnyAttr())
    message = prop_def(StringAttr)
    traits = traits_def(HasEffects())
    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"

    def __init__(self, condition: SSAValue, message: str) -> None:
        super().__init__(operands=[condition], properties={"message": StringAttr(message)})

    def verify_(self) -> None:
        type_ = self.condition.type
        if type_ == IntegerType(1):
            return
        if not isinstance(type_, TensorType) or tile_dtype(self.condition) is not bool_:
            raise VerifyException(f"assert needs an i1 or a tile of i1, got {type_}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(IO)}


@irdl_op_definition
class DebugPrintOp(IRDLOperation):
    """Prints a label and values, for people."""

    name = "tile.debug_print"
    label = prop_def(StringAttr)
    values = var_operand_def(AnyAttr())
    traits = traits_def(HasEffects())
    assembly_format = "$label (`,` $values^)? attr-dict (`:` type($values)^)?"

    def __init__(self, label: str, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values], properties={"label": StringAttr(label)})

    def verify_(self) -> None:
        for value in self.values:
            if isinstance(value.type, ViewType):
                raise VerifyException("a view cannot be printed: load a tile from it")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(IO)}


Tile = Dialect(
    "tile",
    [
        FuncOp,
        ReturnOp,
        ProgramIdOp,
        ViewOp,
        DimOp,
        StrideOp,
        LoadOp,
        StoreOp,
        AtomicOp,
        FullOp,
        IotaOp,
        EwOp,
        ReduceOp,
        ExpandOp,
        BroadcastOp,
        TransOp,
        DotOp,
        AssertOp,
        DebugPrintOp,
    ],
    [ViewType],
)
