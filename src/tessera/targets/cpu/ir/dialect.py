"""The cpu dialect: what one thread does. Tiles are now small enough for registers; the large ones live in buffers.

Loops are `scf.for`, scalars `arith`, and work on register tiles is spelled with the tile dialect's own ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, IntegerType, TensorType, UnitAttr
from xdsl.ir import Attribute, Dialect, OpResult, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, BaseAttr, irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import BYTES, FOURS, DType, i64
from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, Integers, Name, SizesAttr, integer, integers
from tessera.ir.common.checking import enclosing, ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag
from tessera.ir.common.effects import HasEffects
from tessera.ir.common.functions import Facts, Function, extents, parse_extents, print_extents
from tessera.ir.tile.dialect import ProgramIdOp, accesses, verify_signature
from tessera.ir.tile.types import AnyTile, AnyView, check_axis, check_tile, tile_dtype, tile_type, view_type
from tessera.ir.tile.values import check_truths, verify_reduction
from tessera.shapes.expr import Size
from tessera.targets.cpu.ir.types import (
    TILE_ROWS,
    AnyBuffer,
    AnyPanels,
    BufferType,
    PanelsType,
    buffer_type,
    panels_type,
)

VERSION = 2
_index = IndexType()


@irdl_op_definition
class FuncOp(Function):
    """A kernel as each thread runs it. Arguments, shapes and grid are those of the tile function it came from."""

    name = "cpu.func"

    shapes: ArrayAttr[SizesAttr] = fields.prop_def(ArrayAttr[SizesAttr])
    grid: SizesAttr = fields.prop_def(SizesAttr)

    def __init__(
        self,
        name: str,
        arguments: Sequence[Attribute],
        shapes: Sequence[Sequence[Size]],
        grid: Sequence[Size],
        body: Region | None = None,
    ) -> None:
        super().__init__(name, arguments, [], extents(shapes, grid), body)

    def verify_(self) -> None:
        self.verify_header()
        verify_signature(self.function_type.inputs.data, self.shapes, self.grid)
        if any(isinstance(op, ProgramIdOp) for op in self.body.walk()):
            raise VerifyException("tile.program_id is not allowed at the cpu level: cpu.parallel gives its indices")
        if sum(isinstance(op, ParallelOp) for op in self.body.block.ops) > 1:
            raise VerifyException("the threads share the work of one cpu.parallel")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("a cpu function ends with cpu.return")

    @classmethod
    def parse_facts(cls, parser: Parser) -> tuple[Facts, Sequence[Attribute]]:
        return parse_extents(parser), ()

    def print_facts(self, printer: Printer) -> None:
        print_extents(printer, self.shapes, self.grid)


@irdl_op_definition
class ReturnOp(DeclaredOp):
    """The end of a cpu function."""

    name = "cpu.return"
    traits = traits_def(IsTerminator(), HasParent(FuncOp), Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class GridOp(DeclaredOp):
    """How many program instances there are along one axis of the grid."""

    name = "cpu.grid"
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def verify_(self) -> None:
        function = enclosing(self, FuncOp)
        check_axis(self.axis.value.data, len(function.grid.data) if function is not None else 3)


@irdl_op_definition
class ParallelOp(DeclaredOp):
    """Shares the pairs (outer, inner) among threads. The first thread with another `outer` runs `once` for it.

    What `once` yields, packed operands for example, every body with that `outer` may read.
    """

    name = "cpu.parallel"
    outer: SSAValue = fields.operand_def(IndexType)
    inner: SSAValue = fields.operand_def(IndexType)
    once: Region = fields.region_def("single_block")
    body: Region = fields.region_def("single_block")
    traits = traits_def(HasParent(FuncOp))

    def verify_(self) -> None:
        if tuple(self.once.block.arg_types) != (_index,):
            raise VerifyException("`once` takes the outer index")
        end = self.once.block.last_op
        if not isinstance(end, YieldOp) or not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("both regions end with cpu.yield")
        if self.body.block.last_op.operands:
            raise VerifyException("`body` yields nothing")
        if tuple(self.body.block.arg_types) != (_index, _index, *(value.type for value in end.values)):
            raise VerifyException("`body` takes the outer and inner index, and what `once` yields")

    @classmethod
    def parse(cls, parser: Parser) -> ParallelOp:
        outer = parser.resolve_operand(parser.parse_unresolved_operand(), _index)
        parser.parse_punctuation(",")
        inner = parser.resolve_operand(parser.parse_unresolved_operand(), _index)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_keyword("once")
        once = parser.parse_region()
        parser.parse_keyword("do")
        op = cls(outer, inner, once, parser.parse_region())
        op.attributes |= attributes.data if attributes else {}
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.outer, self.inner), printer.print_operand)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" once ")
        printer.print_region(self.once)
        printer.print_string(" do ")
        printer.print_region(self.body)


@irdl_op_definition
class YieldOp(DeclaredOp):
    """The end of a region of `cpu.parallel`. Memory and numbers outlive `once`; tiles in registers do not."""

    name = "cpu.yield"
    values: Sequence[SSAValue] = fields.var_operand_def(AnyBuffer | AnyPanels | BaseAttr(IndexType))
    traits = traits_def(IsTerminator(), HasParent(ParallelOp), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(values)


@irdl_op_definition
class BufferOp(DeclaredOp):
    """Memory of this thread, with nothing in it."""

    name = "cpu.buffer"
    result: OpResult = fields.result_def(AnyBuffer, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(written=("result",))
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        if buffer_type(self.result).dense.data:
            raise VerifyException("only borrowed rows lie side by side")


@irdl_op_definition
class BorrowOp(DeclaredOp):
    """Rows of a view as a buffer, where they are: all of them are inside, and side by side.

    Where one of the `written` views has memory in common with them, they are copied as they are now.
    """

    name = "cpu.borrow"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    written: Sequence[SSAValue] = fields.var_operand_def(AnyView)
    result: OpResult = fields.result_def(AnyBuffer, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("result",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$view `[` $offsets `]` (`written` $written^ `:` type($written))? attr-dict `:` type($view) `->` type($result)"
    )

    def verify_(self) -> None:
        seen, made = view_type(self.view), buffer_type(self.result)
        if seen.rank.data != 2 or len(self.offsets) != 2:
            raise VerifyException("rows are borrowed from a view of rank 2, at two offsets")
        if seen.dtype is not made.dtype or not made.dense.data:
            raise VerifyException(f"rows of {seen} make a dense buffer of {seen.dtype}, not {made}")


def _check_own(buffer: SSAValue) -> None:
    if buffer_type(buffer).dense.data:
        raise VerifyException("borrowed rows are only read")


def _check_access(buffer: SSAValue, tile: SSAValue) -> None:
    held, moved = buffer_type(buffer), check_tile(tile, "the tile")
    if moved.element_type != held.element:
        raise VerifyException(f"the buffer holds {held.element}, the tile {moved.element_type}")
    if moved.get_num_dims() > 2:
        raise VerifyException(f"{moved} has more than rows and columns")


@irdl_op_definition
class LoadOp(DeclaredOp):
    """The tile at a row and column of a buffer. A tile of one axis or one column lies along a row of the buffer.

    With `column`, a tile of one column is a column of the buffer, too.
    """

    name = "cpu.load"
    buffer: SSAValue = fields.operand_def(AnyBuffer)
    row: SSAValue = fields.operand_def(IndexType)
    col: SSAValue = fields.operand_def(IndexType)
    column: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("buffer",))
    assembly_format = (
        "(`column` $column^)? $buffer `[` $row `,` $col `]` attr-dict `:` type($buffer) `->` type($result)"
    )

    def verify_(self) -> None:
        _check_access(self.buffer, self.result)
        if self.column is not None and tile_type(self.result).get_shape()[1:] != (1,):
            raise VerifyException(f"a column of a buffer is a tile of one column, not {self.result.type}")


@irdl_op_definition
class TakeOp(DeclaredOp):
    """Elements of a tile of `shape` that a buffer holds, at computed places: a tile of numbers for each of its axes.

    A tile of one axis or one column lies along a row of the buffer. Places outside of the tile give 0.
    """

    name = "cpu.take"
    buffer: SSAValue = fields.operand_def(AnyBuffer)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    shape: Integers = fields.prop_def(Integers, converter=integers)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(HasEffects())
    effects = accesses(read=("buffer",))
    assembly_format = (
        "$buffer `[` $indices `]` `of` $shape attr-dict `:` type($buffer) `,` type($indices) `->` type($result)"
    )

    def result_type(self) -> Attribute:
        return TensorType(buffer_type(self.buffer).element, tile_type(self.indices[0]).get_shape())

    def verify_(self) -> None:
        type_, shape = buffer_type(self.buffer), tuple(self.shape.iter_values())
        if not 1 <= len(shape) <= 2 or len(self.indices) != len(shape):
            raise VerifyException(
                f"{len(self.indices)} tiles of places for a tile of {list(shape)}, of one or two axes"
            )
        if prod(shape) > type_.rows.data * type_.cols.data:
            raise VerifyException(f"a tile of {list(shape)} does not lie in {type_}")
        for index in self.indices:
            if tile_dtype(index) is not i64 or index.type != self.indices[0].type:
                raise VerifyException(f"places are i64 tiles of one shape, not {index.type}")
        if tile_type(self.result).element_type != type_.element:
            raise VerifyException(f"the buffer holds {type_.element}, the tile {tile_type(self.result).element_type}")


class _LoadPart(DeclaredOp):
    """A part of a tile, from its first places on, made of bytes or their 4-bit halves: a buffer has all of those.

    They are a tile of `shape`, in which two halves that are neighbours along an axis make a byte, the first its low
    bits. A tile of one axis or one column lies along a row of the buffer.
    """

    buffer: SSAValue = fields.operand_def(AnyBuffer)
    starts: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    shape: Integers = fields.prop_def(Integers, converter=integers)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("buffer",))
    assembly_format = "$buffer `[` $starts `]` `of` $shape `along` $axis attr-dict `:` type($buffer) `->` type($result)"

    def _verify(self, held: Sequence[DType], made: Sequence[DType]) -> None:
        type_, shape = buffer_type(self.buffer), tuple(self.shape.iter_values())
        if not 1 <= len(shape) <= 2 or not len(self.starts) == len(shape) == tile_type(self.result).get_num_dims():
            raise VerifyException(f"{len(self.starts)} starts of {self.result.type} for a tile of {list(shape)}")
        check_axis(self.axis.value.data, len(shape))
        if prod(shape) > type_.rows.data * type_.cols.data:
            raise VerifyException(f"a tile of {list(shape)} does not lie in {type_}")
        for dtype, possible in ((type_.dtype, held), (tile_dtype(self.result), made)):
            if dtype not in possible:
                raise VerifyException(f"expected elements of {', '.join(map(str, possible))}, got {dtype}")


@irdl_op_definition
class LoadHalvesOp(_LoadPart):
    """The halves of bytes in a buffer: a part of the tile of elements of 4 bits that they are."""

    name = "cpu.load_halves"

    def verify_(self) -> None:
        self._verify(BYTES, FOURS)


@irdl_op_definition
class LoadPairsOp(_LoadPart):
    """Elements of 4 bits in a buffer, two to a byte: a part of the tile of bytes that they make."""

    name = "cpu.load_pairs"

    def verify_(self) -> None:
        self._verify(FOURS, BYTES)


@irdl_op_definition
class StoreOp(DeclaredOp):
    """Puts a tile at a row and column of a buffer; one of one axis or one column goes along a row."""

    name = "cpu.store"
    value: SSAValue = fields.operand_def(AnyTile)
    buffer: SSAValue = fields.operand_def(AnyBuffer)
    row: SSAValue = fields.operand_def(IndexType)
    col: SSAValue = fields.operand_def(IndexType)
    traits = traits_def(HasEffects())
    effects = accesses(written=("buffer",))
    assembly_format = "$value `,` $buffer `[` $row `,` $col `]` attr-dict `:` type($value) `,` type($buffer)"

    def verify_(self) -> None:
        _check_access(self.buffer, self.value)
        _check_own(self.buffer)


@irdl_op_definition
class ReserveOp(DeclaredOp):
    """Memory of this thread for `count` packed matrices."""

    name = "cpu.reserve"
    count: SSAValue = fields.operand_def(IndexType)
    result: OpResult = fields.result_def(AnyPanels, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(written=("result",))
    assembly_format = "$count attr-dict `:` type($result)"


@irdl_op_definition
class PackOp(DeclaredOp):
    """Copies the matrix at `offsets` of a view, zeros where it leaves the view, into matrix `number` of the panels.

    With `transposed`, the view's rows become columns.
    """

    name = "cpu.pack"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    panels: SSAValue = fields.operand_def(AnyPanels)
    number: SSAValue = fields.operand_def(IndexType)
    transposed: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("panels",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "(`transposed` $transposed^)? $view `[` $offsets `]` `,` $panels `[` $number `]` attr-dict "
        "`:` type($view) `,` type($panels)"
    )

    def verify_(self) -> None:
        if view_type(self.view).rank.data != 2 or len(self.offsets) != 2:
            raise VerifyException("a matrix is packed from a view of rank 2, at two offsets")


@irdl_op_definition
class DotOp(DeclaredOp):
    """c + a·b for the rows of a buffer from `row` on, and columns from `col` on of matrix `number` of the panels.

    The right operand may be a buffer, too; then its number is not looked at. With `depth`, only so many columns of
    `a` count.
    """

    name = "cpu.dot"
    a: SSAValue = fields.operand_def(AnyBuffer)
    row: SSAValue = fields.operand_def(IndexType)
    b: SSAValue = fields.operand_def(AnyPanels | AnyBuffer)
    number: SSAValue = fields.operand_def(IndexType)
    col: SSAValue = fields.operand_def(IndexType)
    c: SSAValue = fields.operand_def(AnyTile)
    depth: SSAValue | None = fields.opt_operand_def(IndexType, default=None)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(HasEffects())
    effects = accesses(read=("a", "b"))
    assembly_format = (
        "$a `[` $row `]` `,` $b `[` $number `,` $col `]` `,` $c (`depth` $depth^)? attr-dict "
        "`:` type($a) `,` type($b) `,` type($c) `->` type($result)"
    )

    def result_type(self) -> Attribute:
        return self.c.type

    def verify_(self) -> None:
        left, right, total = buffer_type(self.a), self.b.type, check_tile(self.c, "c")
        assert isinstance(right, BufferType | PanelsType)
        # A buffer may have rows beyond those of its tile.
        fits = left.cols == right.rows if isinstance(right, PanelsType) else left.cols.data <= right.rows.data
        if not fits:
            raise VerifyException(f"{left} has {left.cols.data} columns, {right} has {right.rows.data} rows")
        if left.element != right.element:
            raise VerifyException(f"{left} and {right} hold different elements")
        if self.result.type != total or total.get_num_dims() != 2:
            raise VerifyException(f"the result has the type of c, a tile of two axes, not {self.result.type}")
        kind = tile_dtype(self.c)
        if kind.kind is not left.dtype.kind or kind.bits < left.dtype.bits:
            raise VerifyException(f"dots of {left.dtype} do not accumulate in {kind}")


@irdl_op_definition
class MatmulOp(DeclaredOp):
    """A strip of 16 or 32 rows of a·b, by the matrix unit, put into a buffer or added to what it holds.

    It has a multiple of 16 columns, and may go beyond what the operands hold: then what is there means nothing. With
    `depth`, only the columns of `a` from one to another count.
    """

    name = "cpu.matmul"
    a: SSAValue = fields.operand_def(AnyBuffer)
    b: SSAValue = fields.operand_def(AnyPanels)
    number: SSAValue = fields.operand_def(IndexType)
    out: SSAValue = fields.operand_def(AnyBuffer)
    row: SSAValue = fields.operand_def(IndexType)
    col: SSAValue = fields.operand_def(IndexType)
    depth: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    size: Integers = fields.prop_def(Integers, converter=integers)
    added: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    traits = traits_def(HasEffects())
    effects = accesses(read=("a", "b", "out"), written=("out",))
    assembly_format = (
        "(`added` $added^)? $a `,` $b `[` $number `]` `,` $out `[` $row `,` $col `]` `size` $size (`depth` $depth^)? "
        "attr-dict `:` type($a) `,` type($b) `,` type($out)"
    )

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        number: SSAValue,
        out: SSAValue,
        row: SSAValue,
        col: SSAValue,
        size: tuple[int, int],
        *,
        added: bool,
        depth: tuple[SSAValue, SSAValue] | None = None,
    ) -> None:
        super().__init__(a, b, number, out, row, col, depth or (), size, added=added)

    def verify_(self) -> None:
        left, right, out = buffer_type(self.a), panels_type(self.b), buffer_type(self.out)
        _check_own(self.out)
        if left.cols != right.rows or left.element != right.element:
            raise VerifyException(f"{left} cannot be multiplied by {right}")
        if right.width.data != TILE_ROWS or right.depth.data * right.dtype.storage.itemsize != 4:
            raise VerifyException(f"{right} is not packed for the matrix unit: 16 columns, 4 bytes deep")
        size = tuple(self.size.iter_values())
        if len(size) != 2 or size[0] not in (16, 32) or size[1] <= 0 or size[1] % TILE_ROWS:
            raise VerifyException("a strip has 16 or 32 rows and 16 columns or a multiple")
        if len(self.depth) not in (0, 2):
            raise VerifyException(f"a depth goes from one column to another, got {len(self.depth)} numbers")
        if out.dtype.bits != 32 or out.dtype.kind is not left.dtype.kind:
            raise VerifyException(f"dots of {left.dtype} do not accumulate in {out.dtype}")


@irdl_op_definition
class ClearOp(DeclaredOp):
    """Fills a buffer with zeros, what lies between its rows too."""

    name = "cpu.clear"
    buffer: SSAValue = fields.operand_def(AnyBuffer)
    traits = traits_def(HasEffects())
    effects = accesses(written=("buffer",))
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def verify_(self) -> None:
        _check_own(self.buffer)


@irdl_op_definition
class AnyOp(DeclaredOp):
    """Whether any element of a tile is true."""

    name = "cpu.any"
    operand: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(IntegerType(1))
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand)"

    def verify_(self) -> None:
        check_truths(self.operand)


@irdl_op_definition
class PartialOp(DeclaredOp):
    """Folds the columns of `x` into the fewer columns of `acc`, in any order: a reduction that is not finished yet."""

    name = "cpu.partial"
    kind: Name = fields.prop_def(Name, converter=Name)
    acc: SSAValue = fields.operand_def(AnyTile)
    x: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "`` $kind $acc `,` $x attr-dict `:` type($acc) `,` type($x)  `->` type($result)"

    def result_type(self) -> Attribute:
        return self.acc.type

    def verify_(self) -> None:
        acc, x = check_tile(self.acc, "the partial result"), check_tile(self.x, "the operand")
        if self.result.type != acc:
            raise VerifyException(f"the result has the type of the partial result, {acc}")
        if acc.element_type != x.element_type or acc.get_shape()[:-1] != x.get_shape()[:-1]:
            raise VerifyException(f"{x} cannot be folded into {acc}: only the last axis may differ")
        if not any(acc.get_shape()[-1:]):
            raise VerifyException(f"{acc} has no columns to fold anything into")
        verify_reduction(self.kind.data, tile_dtype(self.acc))


Cpu = Dialect("cpu", [*ops_of(__name__)], [BufferType, PanelsType])
