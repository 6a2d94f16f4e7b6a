"""Ops of the nv level for sm_90a: asynchronous dots of a warp group, and work on their accumulators.

An accumulator of a warp group has 64 rows and the layout `accumulator`. The result of a dot must not be touched before
`nv.wgmma_wait` has handed it on. The element types that can be multiplied are in `tensor_cores.py`, `WGMMA_TYPES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, UnitAttr
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    RangeOf,
    RangeVarConstraint,
    VarConstraint,
    irdl_op_definition,
    traits_def,
)
from xdsl.traits import EffectInstance, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import DType
from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, Name, integer
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import GIVEN, GIVEN_ALL, DeclaredOp, flag
from tessera.ir.common.effects import MEMORY, HasEffects, OrderedOp, reads
from tessera.ir.common.elements import TileType
from tessera.ir.tile.dialect import accesses
from tessera.ir.tile.types import AnyTile, check_axis, check_tile, tile_dtype, tile_type
from tessera.ir.tile.values import check_truths, verify_reduction
from tessera.targets.cuda.ir.layouts import Digit, Layout, accumulator, left_operand, paired_operand
from tessera.targets.cuda.ir.tensor_cores import WGMMA_TYPES, depth_step, operand_bits, transposes_in_memory
from tessera.targets.cuda.ir.types import AnyShared, SharedType, laid_out, layout_of, shared_type

ROWS, MOST_COLUMNS = 64, 256
"""Of one dot: its rows, and the most columns."""
COLUMN_STEP = 8
"""Columns of an accumulator come in groups of so many."""
STEP_BYTES = 32
"""Of each row and column, the depth of one step: 16 elements of 16 bits, 32 of 8, 8 of tf32."""
PANEL = 128
MOST_GROUPS = 7


def _check_accumulator(value: SSAValue, what: str) -> tuple[int, int]:
    """Shape of a tile that has the layout of an accumulator."""
    rows, columns = _shape(check_tile(value, what), what)
    if rows != ROWS or layout_of(value) != accumulator(rows, columns):
        raise VerifyException(f"{what} has 64 rows and the layout of an accumulator, not {value.type}")
    return rows, columns


def _shape(type_: TileType, what: str) -> tuple[int, int]:
    shape = type_.get_shape()
    if len(shape) != 2:
        raise VerifyException(f"{what} has rows and columns, not {type_}")
    return shape[0], shape[1]


def _check_left(value: SSAValue, *, paired: bool) -> tuple[int, int]:
    """Shape of a left operand in registers."""
    rows, depth = _shape(check_tile(value, "the left operand"), "the left operand")
    if rows != ROWS or layout_of(value) != left_operand_layout(depth, tile_dtype(value), paired=paired):
        which = "paired left operands" if paired else "left operands"
        raise VerifyException(f"the left operand has 64 rows and the layout of {which}, not {value.type}")
    return rows, depth


def left_operand_layout(depth: int, dtype: DType, *, paired: bool = False) -> Layout:
    """The layout of a left operand in registers: that of accumulators for 16 bits, else 4 bytes of a row side by side.

    Its depth is `paired` if that of the right operand is.
    """
    return paired_operand(ROWS, depth) if paired else left_operand(ROWS, depth, (4, 1), operand_bits(dtype))


def is_wgmma_width(columns: int, total: DType) -> bool:
    """Whether wgmma has a form with so many columns (N). Accumulators of integers have fewer of them."""
    if not 0 < columns <= MOST_COLUMNS or columns % 8:
        return False
    return not total.is_integer or columns % 16 == 0 or columns in (8, 24)


def _check_operand(shared: SharedType, what: str) -> tuple[int, int]:
    if len(shared.shape) != 2 or shared.panel.data != PANEL:
        raise VerifyException(f"{what} is one tile in panels of {PANEL} bytes, not {shared}")
    return shared.rows, shared.columns


@irdl_op_definition
class WgmmaOp(OrderedOp):
    """Begins sum + a·b: 64 rows of a warpgroup, all steps of the depth as one group. Without `sum` it starts from 0.

    `a` lies in shared memory or in registers, 4 bytes of a row side by side: as accumulators do, if it has 16 bits. `b`
    holds [depth, columns], or, `transposed`, [columns, depth], which is the only way for elements that do not have 16
    bits. What lies `beside` it are more columns: those behind the 64 of `b`. If the depth of `b` is paired, so is that
    of `a`, which is in registers then. In shared memory `a` of 16 bits may lie `across`, as [depth, 64 rows].
    """

    name = "nv.wgmma"
    T: ClassVar = VarConstraint("T", AnyAttr())
    a: SSAValue = fields.operand_def(AnyShared | AnyTile)
    b: SSAValue = fields.operand_def(AnyShared)
    across: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    transposed: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    beside: SSAValue | None = fields.opt_operand_def(AnyShared, default=None)
    sum: SSAValue | None = fields.opt_operand_def(T, default=None)
    result: OpResult = fields.result_def(T, converter=GIVEN)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "(`across` $across^)? $a `,` (`transposed` $transposed^)? $b (`beside` $beside^ `:` type($beside))? "
        "(`onto` $sum^)? attr-dict "
        "`:` type($a) `,` type($b) `->` type($result)"
    )

    def verify_(self) -> None:
        _, columns = _check_accumulator(self.result, "the result")
        right, total = shared_type(self.b), tile_dtype(self.result)
        if isinstance(self.a.type, SharedType):
            dtype, (rows, depth) = self.a.type.dtype, _check_operand(self.a.type, "the left operand")
            if self.a.type.is_paired or right.is_paired:
                raise VerifyException("columns that are paired meet a left operand in registers")
            if self.across is not None:
                rows, depth = depth, rows
                if not transposes_in_memory(dtype):
                    raise VerifyException(f"a left operand of {dtype} lies across: the depth lies side by side")
        else:
            if self.across is not None:
                raise VerifyException("a left operand in registers does not lie across")
            dtype, (rows, depth) = tile_dtype(self.a), _check_left(self.a, paired=right.is_paired)
        if (dtype.base, right.dtype.base, total.base) not in WGMMA_TYPES:
            raise VerifyException(f"wgmma does not multiply {dtype} by {right.dtype} with an accumulator of {total}")
        if self.transposed is None and not transposes_in_memory(right.dtype):
            raise VerifyException(f"a right operand of {right.dtype} is transposed: the depth lies side by side")
        held = _check_operand(right, "the right operand")
        inner, outer = held if self.transposed is None else held[::-1]
        if self.beside is not None:
            outer = self._check_beside(inner, columns)
        if rows != ROWS or depth != inner or outer != columns:
            raise VerifyException(f"{self.a.type} times {right} does not give {self.result.type}")
        step = depth_step(right.dtype)
        if depth % step or not is_wgmma_width(columns, total):
            wide = 16 if total.is_integer else 8
            raise VerifyException(
                f"a depth of {step}·k and {wide}·n columns up to {MOST_COLUMNS}, not {depth} and {columns}"
            )

    def _check_beside(self, depth: int, columns: int) -> int:
        assert self.beside is not None
        more, right = shared_type(self.beside), shared_type(self.b)
        _check_operand(more, "what lies beside")
        if self.transposed is not None or right.panels != 1 or more.panels != 1:
            raise VerifyException("one panel lies beside another one, neither transposed")
        if more.rows != depth or more.element != right.element or not 0 < columns - right.columns <= more.columns:
            raise VerifyException(f"{more} beside {right} does not give {columns} columns")
        return columns


_values = RangeVarConstraint("V", RangeOf(AnyTile))


@irdl_op_definition
class WgmmaWaitOp(OrderedOp):
    """Waits until at most `pending` groups of dots run, and hands on the accumulators of those that are done.

    `keeping` names operands in registers that the dots read until then.
    """

    name = "nv.wgmma_wait"
    pending: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    values: Sequence[SSAValue] = fields.var_operand_def(_values)
    kept: Sequence[SSAValue] = fields.var_operand_def(RangeOf(AnyTile))
    handed: Sequence[OpResult] = fields.var_result_def(_values, converter=GIVEN_ALL)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$pending (`,` $values^ `:` type($values))? (`keeping` $kept^ `:` type($kept))? attr-dict"

    def __init__(self, pending: int, values: Sequence[SSAValue] = (), kept: Sequence[SSAValue] = ()) -> None:
        DeclaredOp.__init__(self, pending, values, kept, [value.type for value in values])

    def verify_(self) -> None:
        if not 0 <= self.pending.value.data <= MOST_GROUPS:
            raise VerifyException(f"expected 0 to {MOST_GROUPS} groups that still run, got {self.pending.value.data}")
        for value in self.values:
            _check_accumulator(value, "what is handed on")


@irdl_op_definition
class StmatrixOp(DeclaredOp):
    """Puts columns of a tile of 16 or 8 bits, from `column` on, into shared memory.

    64 rows there are the warpgroup's; 16 rows are those of this warp, and each warp has a tile of its own.
    """

    name = "nv.stmatrix"
    value: SSAValue = fields.operand_def(AnyTile)
    column: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    shared: SSAValue = fields.operand_def(AnyShared)
    traits = traits_def(HasEffects())
    effects = accesses(written=("shared",))
    assembly_format = "$value `[` $column `]` `,` $shared attr-dict `:` type($value) `,` type($shared)"

    def verify_(self) -> None:
        _, columns = _check_accumulator(self.value, "the value")
        there, first = shared_type(self.shared), self.column.value.data
        rows, wide = _check_operand(there, "the target")
        if rows not in (16, ROWS) or tile_type(self.value).element_type != there.element or there.itemsize > 2:
            raise VerifyException(f"{self.value.type} does not go into {there}: 16 or 64 rows of the same 16 or 8 bits")
        if first < 0 or first % 16 or wide % 16 or first + wide > columns:
            raise VerifyException(f"columns {first} to {first + wide} of {self.value.type}: whole groups of 16")


@irdl_op_definition
class ColumnsOp(DeclaredOp):
    """Some columns of a tile, from `first` on: its registers, unchanged."""

    name = "nv.columns"
    operand: SSAValue = fields.operand_def(AnyTile)
    first: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operand `[` $first `]` attr-dict `:` type($operand) `->` type($result)"

    def verify_(self) -> None:
        _, before = _check_accumulator(self.operand, "the operand")
        _, after = _check_accumulator(self.result, "the result")
        first = self.first.value.data
        if first < 0 or first % 8 or after % 8 or first + after > before:
            raise VerifyException(f"columns {first} to {first + after} of {before}: whole groups of 8")
        if tile_type(self.operand).element_type != tile_type(self.result).element_type:
            raise VerifyException(f"{self.operand.type} has no columns of {self.result.type}")


@irdl_op_definition
class JoinOp(DeclaredOp):
    """Tiles side by side, as one: their registers, unchanged."""

    name = "nv.join"
    pieces: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$pieces attr-dict `:` type($pieces) `->` type($result)"

    def result_type(self) -> Attribute:
        columns = sum(tile_type(piece).get_shape()[1] for piece in self.pieces)
        type_ = TensorType(tile_type(self.pieces[0]).element_type, (ROWS, columns))
        return laid_out(type_, accumulator(ROWS, columns))

    def verify_(self) -> None:
        _, columns = _check_accumulator(self.result, "the result")
        widths = [_check_accumulator(piece, "a piece")[1] for piece in self.pieces]
        if sum(widths) != columns or any(width % 8 for width in widths):
            raise VerifyException(f"columns {widths} are not {columns}: whole groups of 8")
        if any(tile_type(piece).element_type != tile_type(self.result).element_type for piece in self.pieces):
            raise VerifyException(f"pieces of another type than {self.result.type}")


@irdl_op_definition
class PartialOp(DeclaredOp):
    """Folds what each thread holds along an axis: one element is left of each thread, a reduction not finished yet."""

    name = "nv.partial"
    kind: Name = fields.prop_def(Name, converter=Name)
    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "`` $kind $operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> Attribute:
        return partial_type(tile_type(self.operand), self.axis.value.data)

    def verify_(self) -> None:
        source = check_tile(self.operand, "the operand")
        check_axis(self.axis.value.data, source.get_num_dims())
        verify_reduction(self.kind.data, tile_dtype(self.operand))
        layout = layout_of(self.operand)
        if layout.has_ghosts(source.get_shape()):
            raise VerifyException(f"{source} has elements that belong to no tile: fold it as a whole")
        expected = partial_type(source, self.axis.value.data)
        if self.result.type != expected:
            raise VerifyException(f"what threads hold of {source} along axis {self.axis.value.data} gives {expected}")


def partial_type(source: TileType, axis: int) -> TileType:
    """One element along `axis` for each thread that holds any."""
    layout, threads, held = layout_of(source), list[Digit](), 1
    for digit in layout.threads:
        threads.append(digit._replace(step=held) if digit.axis == axis else digit)
        held *= digit.size if digit.axis == axis else 1
    registers = [digit for digit in layout.registers if digit.axis != axis]
    shape = source.get_shape()
    plain = TensorType(source.element_type, (*shape[:axis], held, *shape[axis + 1 :]))
    return laid_out(plain, Layout(tuple(threads), tuple(registers)))


@irdl_op_definition
class AnyOp(DeclaredOp):
    """Whether any thread of the warp holds an element that is true: the same answer for all of them."""

    name = "nv.any"
    operand: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(IntegerType(1))
    traits = traits_def(HasEffects())
    assembly_format = "$operand attr-dict `:` type($operand)"

    def verify_(self) -> None:
        check_truths(self.operand)

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY)}


OPS = ops_of(__name__)
