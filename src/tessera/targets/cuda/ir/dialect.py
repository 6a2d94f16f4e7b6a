"""The nv dialect: the work of a block of threads. Tiles have layouts, operands of dots lie in shared memory.

Loops are `scf`, scalars `arith`, and work on tiles is spelled with the tile dialect's own ops, on tiles with layouts:
`tile.load` and `tile.store` move registers, `tile.reduce` goes through shuffles and shared memory. What follows runs on
every GPU from sm_80 on; ops for sm_90a are in `hopper`.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, OpResult, Region, SSAValue
from xdsl.irdl import BaseAttr, EqAttrConstraint, IRDLOperation, irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, SizesAttr, integer
from tessera.ir.common.checking import around, ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag, optional
from tessera.ir.common.effects import MEMORY, HasEffects, OrderedOp, writes
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.functions import Facts, Function, extents, parse_count, parse_extents, print_extents
from tessera.ir.tile.dialect import accesses, verify_signature
from tessera.ir.tile.types import AnyTile, AnyView, check_axis, check_tile, view_type
from tessera.shapes.expr import Size
from tessera.targets.cuda.ir import tensor_cores
from tessera.targets.cuda.ir.layouts import WARP
from tessera.targets.cuda.ir.types import AnyShared, SharedType, check_plain, lacks_layout, layout_of, shared_type

VERSION = 2
MOST_THREADS = 1024
ORDERED = "nv.ordered"
"""Marks an access that threads of a block do one after the other, in the order of their numbers."""


@irdl_op_definition
class FuncOp(Function):
    """A kernel as a block of `threads` threads runs it; the last `outputs` arguments are its results.

    Attributes say what launching it takes besides (see `host_plan`): `cluster`, `persistent`, `blocks` (the least
    number that share a multiprocessor), `counters`; in which order blocks go through the grid (`group`); and of which
    arguments all rows are aligned (`row_aligned`).
    """

    name = "nv.func"

    outputs: IntegerAttr = fields.prop_def(IntegerConstraint)
    shapes: ArrayAttr[SizesAttr] = fields.prop_def(ArrayAttr[SizesAttr])
    grid: SizesAttr = fields.prop_def(SizesAttr)
    threads: IntegerAttr = fields.prop_def(IntegerConstraint)

    def __init__(
        self,
        name: str,
        arguments: Sequence[Attribute],
        outputs: int,
        shapes: Sequence[Sequence[Size]],
        grid: Sequence[Size],
        threads: int,
        body: Region | None = None,
    ) -> None:
        facts = {"outputs": integer(outputs), **extents(shapes, grid), "threads": integer(threads)}
        super().__init__(name, arguments, [], facts, body)

    @property
    def thread_count(self) -> int:
        return self.threads.value.data

    def verify_(self) -> None:
        self.verify_header()
        verify_signature(self.function_type.inputs.data, self.shapes, self.grid)
        threads = self.thread_count
        if not 0 < threads <= MOST_THREADS or threads % WARP:
            raise VerifyException(f"a block has whole warps and at most {MOST_THREADS} threads, not {threads}")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("an nv function ends with nv.return")
        for op in self.body.walk():
            for value in (
                *op.results,
                *(one for region in op.regions for block in region.blocks for one in block.args),
            ):
                if lacks_layout(value.type):
                    raise VerifyException(f"{op.name} gives {value.type}: tiles of the nv level have layouts")

    @classmethod
    def parse_facts(cls, parser: Parser) -> tuple[Facts, Sequence[Attribute]]:
        outputs = integer(parse_count(parser, "outputs"))
        return {"outputs": outputs, **parse_extents(parser), "threads": integer(parse_count(parser, "threads"))}, ()

    def print_facts(self, printer: Printer) -> None:
        printer.print_string(f" outputs {self.outputs.value.data}")
        print_extents(printer, self.shapes, self.grid)
        printer.print_string(f" threads {self.thread_count}")


@irdl_op_definition
class ReturnOp(DeclaredOp):
    """The end of an nv function."""

    name = "nv.return"
    traits = traits_def(IsTerminator(), HasParent(FuncOp), Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class ConvertOp(DeclaredOp):
    """The same tile in another layout."""

    name = "nv.convert"
    operand: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        if (source.get_shape(), source.element_type) != (result.get_shape(), result.element_type):
            raise VerifyException(f"converting keeps shape and element: {source} became {result}")


@irdl_op_definition
class AllocOp(DeclaredOp):
    """Shared memory of the block, with nothing in it."""

    name = "nv.alloc"
    result: OpResult = fields.result_def(AnyShared, converter=GIVEN)
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class SlotOp(DeclaredOp):
    """One of several tiles in shared memory, by an index or an i32."""

    name = "nv.slot"
    ring: SSAValue = fields.operand_def(AnyShared)
    number: SSAValue = fields.operand_def(BaseAttr(IndexType) | EqAttrConstraint(i32))
    result: OpResult = fields.result_def(AnyShared)
    traits = traits_def(Pure())

    def result_type(self) -> Attribute:
        return shared_type(self.ring).slot

    def verify_(self) -> None:
        ring = shared_type(self.ring)
        if len(ring.shape) < 3 or self.result.type != ring.slot:
            raise VerifyException(f"a slot of {ring} is not {self.result.type}")

    # The number's type is not spelled: it is that of a value above.

    @classmethod
    def parse(cls, parser: Parser) -> SlotOp:
        ring = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            unresolved = parser.parse_unresolved_operand()
        known = parser.ssa_values.get(unresolved.operand_name)
        number = parser.resolve_operand(unresolved, known[unresolved.index].type if known else IndexType())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        op = cls.create(operands=[parser.resolve_operand(ring, type_), number], result_types=[result])
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.ring)
        with printer.in_square_brackets():
            printer.print_operand(self.number)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.ring.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


def _check_same(moved: Sequence[int], element: Attribute, shared: SharedType) -> None:
    if tuple(moved) != shared.shape or element != shared.element:
        raise VerifyException(f"a tile of {'x'.join(map(str, moved))}x{element} does not fit {shared}")


@irdl_op_definition
class CopyAsyncOp(DeclaredOp):
    """Begins to copy the tile at `offsets` of a view into shared memory; zeros where it leaves the view."""

    name = "nv.copy_async"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    shared: SSAValue = fields.operand_def(AnyShared)
    transposed: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    """The view's last two axes are exchanged on the way: shared memory holds the transposed tile."""
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("shared",))
    assembly_format = (
        "$view `[` $offsets `]` `,` $shared (`transposed` $transposed^)? attr-dict `:` type($view) `,` type($shared)"
    )

    def verify_(self) -> None:
        seen, shared = view_type(self.view), shared_type(self.shared)
        if len(self.offsets) != seen.rank.data or seen.rank.data < 2:
            raise VerifyException(
                f"{len(self.offsets)} offsets into {seen}: expected one for each of at least two axes"
            )
        if len(shared.shape) != 2:
            raise VerifyException(f"a copy fills one tile, not {shared}: take a slot")
        if seen.element != shared.element:
            raise VerifyException(f"the view holds {seen.element}, shared memory {shared.element}")


def function_of(op: IRDLOperation) -> FuncOp:
    """The kernel that an op is a part of."""
    return around(op, FuncOp, "an nv function")


@irdl_op_definition
class CommitOp(DeclaredOp):
    """All copies begun since the last commit become one group."""

    name = "nv.commit"
    traits = traits_def(HasEffects())
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        function_of(self)

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(MEMORY)}


@irdl_op_definition
class WaitOp(OrderedOp):
    """Waits until at most `pending` groups of copies are under way; then all threads see what the others copied."""

    name = "nv.wait"
    pending: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$pending attr-dict"

    def verify_(self) -> None:
        if self.pending.value.data < 0:
            raise VerifyException(f"expected a number of groups, got {self.pending.value.data}")


@irdl_op_definition
class BarrierOp(OrderedOp):
    """All threads of the block wait for each other, and see each other's memory."""

    name = "nv.barrier"
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        function_of(self)


class _SemaphoreOp(OrderedOp):
    """A step of blocks that do something in the order of their numbers, by a counter in memory."""

    assembly_format = "attr-dict"

    def verify_(self) -> None:
        function = self.parent_op()
        if not isinstance(function, FuncOp):
            raise VerifyException(f"{self.name} stands in an nv function, in no loop or branch of it")
        if "counters" not in function.attributes or "persistent" in function.attributes:
            raise VerifyException(f"{self.name} needs a counter, and a block for each program instance of the grid")


@irdl_op_definition
class SemaphoreWaitOp(_SemaphoreOp):
    """Waits until the block before this one has signalled; then all threads see what it did to memory."""

    name = "nv.semaphore_wait"


@irdl_op_definition
class SemaphoreSignalOp(_SemaphoreOp):
    """Lets the next block go on. The last one leaves the counter at 0, as it was."""

    name = "nv.semaphore_signal"


@irdl_op_definition
class GriddepcontrolWaitOp(OrderedOp):
    """Waits until the kernels in front of this one have ended; what they wrote is seen from here on.

    A kernel with it may be started while the one in front of it runs, and from here on lets the next one be started.
    """

    name = "nv.griddepcontrol_wait"
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        parent = self.parent_op()
        if not isinstance(parent, FuncOp):
            raise VerifyException(
                "nv.griddepcontrol_wait stands in an nv.func itself: all blocks wait, whatever they do then"
            )
        if next(op for op in parent.body.block.ops if isinstance(op, GriddepcontrolWaitOp)) is not self:
            raise VerifyException("a kernel waits once for those in front of it")


@irdl_op_definition
class ReadOp(DeclaredOp):
    """A tile out of shared memory, or a part of it from `row` and `column` on; with `transposed`, its transpose."""

    name = "nv.read"
    shared: SSAValue = fields.operand_def(AnyShared)
    row: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    column: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    transposed: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("shared",))
    assembly_format = (
        "$shared `[` $row `,` $column `]` (`transposed` $transposed^)? attr-dict `:` type($shared) `->` type($result)"
    )

    def __init__(
        self, shared: SSAValue, result: Attribute, *, row: int = 0, column: int = 0, transposed: bool = False
    ) -> None:
        super().__init__(shared, row, column, result, transposed=transposed)

    def verify_(self) -> None:
        shared, result = shared_type(self.shared), check_tile(self.result, "the result")
        check_plain(shared)
        if len(shared.shape) != 2 or result.get_num_dims() != 2 or result.element_type != shared.element:
            raise VerifyException(f"{result} cannot be read from {shared}: expected two axes and the same element")
        rows, columns = result.get_shape() if self.transposed is None else reversed(result.get_shape())
        row, column = self.row.value.data, self.column.value.data
        if min(row, column) < 0 or row + rows > shared.rows or column + columns > shared.columns:
            raise VerifyException(f"{rows} by {columns} at {row}, {column} are not a part of {shared}")


@irdl_op_definition
class WriteOp(DeclaredOp):
    """Puts a tile into shared memory; or, from a `row` on, some rows of one."""

    name = "nv.write"
    value: SSAValue = fields.operand_def(AnyTile)
    shared: SSAValue = fields.operand_def(AnyShared)
    row: IntegerAttr | None = fields.opt_prop_def(IntegerConstraint, converter=optional(integer), default=None)
    traits = traits_def(HasEffects())
    effects = accesses(written=("shared",))
    assembly_format = "$value `,` $shared (`row` $row^)? attr-dict `:` type($value) `,` type($shared)"

    @property
    def first_row(self) -> int:
        return 0 if self.row is None else self.row.value.data

    def verify_(self) -> None:
        value, shared = check_tile(self.value, "the value"), shared_type(self.shared)
        check_plain(shared)
        if self.row is None:
            _check_same(value.get_shape(), value.element_type, shared)
            return
        (rows, columns), first = value.get_shape(), self.first_row
        if (columns, value.element_type) != (shared.columns, shared.element) or len(shared.shape) != 2:
            raise VerifyException(f"{value} are no rows of {shared}")
        if first < 0 or first + rows > shared.rows:
            raise VerifyException(f"rows {first} to {first + rows} of {shared}")


@irdl_op_definition
class RowsOp(DeclaredOp):
    """A part of a tile along an axis, from `first` on: registers of the threads that hold it, unchanged."""

    name = "nv.rows"
    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    first: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $axis `[` $first `]` attr-dict `:` type($operand) `->` type($result)"

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        axis, first = self.axis.value.data, self.first.value.data
        check_axis(axis, source.get_num_dims())
        shape = list(source.get_shape())
        wide, shape[axis] = shape[axis], result.get_shape()[axis]
        if tuple(shape) != result.get_shape() or source.element_type != result.element_type:
            raise VerifyException(f"{result} is no part of {source} along axis {axis}")
        if first < 0 or first + shape[axis] > wide:
            raise VerifyException(f"elements {first} to {first + shape[axis]} along axis {axis} of {source}")
        if layout_of(source).threads != layout_of(result).threads:
            raise VerifyException(f"threads hold other elements of {result} than of {source}")


@irdl_op_definition
class MmaOp(DeclaredOp):
    """c + a·b by the tensor cores, a warp at a time; layouts are those that the instruction asks for."""

    name = "nv.mma"
    a: SSAValue = fields.operand_def(AnyTile)
    b: SSAValue = fields.operand_def(AnyTile)
    c: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c) `->` type($result)"

    def result_type(self) -> Attribute:
        return self.c.type

    def verify_(self) -> None:
        a, b, c = (check_tile(value, "an operand") for value in (self.a, self.b, self.c))
        shapes = a.get_shape(), b.get_shape(), c.get_shape()
        match shapes:
            case (rows, depth), (depth_, columns), accumulator if depth == depth_ and accumulator == (rows, columns):
                pass
            case _:
                raise VerifyException(f"mma of {a} and {b} into {c}: expected [M, K], [K, N] and [M, N]")
        if self.result.type != c:
            raise VerifyException(f"the result has the type of c, {c}, not {self.result.type}")
        left, right, total = (dtype_of(type_.element_type).base for type_ in (a, b, c))
        if (left, right, total) not in tensor_cores.INSTRUCTIONS:
            raise VerifyException(f"the tensor cores have no dot of {left} and {right} into {total}")
        grid = tensor_cores.grid_of(layout_of(c), rows, columns)
        if grid is None:
            raise VerifyException(f"{layout_of(c)} is not the layout of an accumulator")
        for value, needed in zip(
            (a, b), tensor_cores.operand_layouts(grid, rows, depth, columns, left, right), strict=True
        ):
            if not tensor_cores.same(layout_of(value), needed):
                raise VerifyException(f"the operand {value} needs the layout {needed}")


OPS = ops_of(__name__)
