"""Tile ops that compute: pure functions from tiles to tiles.

Targets and analyses have tables of them by type; "An op" in CONTRIBUTING lists those that a new one needs a row in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import AnyAttr, VarConstraint, irdl_op_definition, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.types import BYTES, FOURS, NO_POLICY, DType, Policy, bool_, i64
from tessera.ir.common import declared_ops as fields
from tessera.ir.common import elementwise, reductions
from tessera.ir.common.attributes import IntegerConstraint, Integers, Name, PolicyAttr, integer, integers, verifying
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, optional
from tessera.ir.common.elements import TileType, dtype_of, tile_of
from tessera.ir.tile.types import AnyTile, check_axis, check_tile, tile_dtype, tile_type


def verify_reduction(kind: str, dtype: DType) -> None:
    with verifying:
        reductions.check(kind, dtype)


def check_truths(value: SSAValue) -> None:
    """What `any` looks at is a tile of truths."""
    check_tile(value, "the operand")
    if tile_dtype(value) is not bool_:
        raise VerifyException(f"any looks at a tile of i1, not {value.type}")


def _plain(type_: TileType) -> tuple[Attribute, tuple[int, ...]]:
    """A type without its layout: targets lay tiles out below this level, and the same ops work on them."""
    return type_.element_type, type_.get_shape()


@irdl_op_definition
class FullOp(DeclaredOp):
    """A tile whose every element is one scalar."""

    name = "tile.full"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value: SSAValue = fields.operand_def(T)
    result: OpResult = fields.result_def(TensorType.constr(T), converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(value, TensorType(value.type, shape))

    def verify_(self) -> None:
        check_tile(self.result, "the result")


@irdl_op_definition
class IotaOp(DeclaredOp):
    """`base` plus the position along one axis."""

    name = "tile.iota"
    base: SSAValue = fields.operand_def(IndexType)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$base `,` $axis attr-dict `:` type($result)"

    def verify_(self) -> None:
        result = check_tile(self.result, "the result")
        check_axis(self.axis.value.data, result.get_num_dims())
        if not dtype_of(result.element_type).is_integer:
            raise VerifyException(f"iota counts in an integer type, got {result.element_type}")


@irdl_op_definition
class EwOp(DeclaredOp):
    """One row of the elementwise table, applied at every position; `policy` governs the final rounding."""

    name = "tile.ew"
    fn: Name = fields.prop_def(Name, converter=Name)
    operands_: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    policy: PolicyAttr | None = fields.opt_prop_def(PolicyAttr, converter=optional(PolicyAttr), default=None)
    seed: IntegerAttr | None = fields.opt_prop_def(IntegerConstraint, converter=optional(integer), default=None)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
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
        given = None if dtype.policy == NO_POLICY else dtype.policy
        result = tile_of(tile_type(operands[0]).get_shape(), dtype)
        super().__init__(fn, operands, result, policy=given, seed=seed)

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
        with verifying:
            rounded = self.result_dtype
        dtypes = [tile_dtype(operand) for operand in self.operands_]
        verify_elementwise(self.fn.data, dtypes, rounded, self.seed is not None)


def verify_elementwise(fn: str, dtypes: Sequence[DType], result: DType, seeded: bool) -> None:
    """Typing of one row, shared by the graph and tile levels."""
    with verifying:
        expected = elementwise.result_dtype(fn, dtypes, to=result if fn == "cast" else None)
    if expected.base is not result.base:
        raise VerifyException(f"{fn} of {', '.join(map(str, dtypes))} gives {expected}, not {result}")
    if result.policy.stochastic and not seeded:
        raise VerifyException("stochastic rounding needs a seed")


@irdl_op_definition
class ReduceOp(DeclaredOp):
    """Folds one axis away with one row of the reduction table."""

    name = "tile.reduce"
    kind: Name = fields.prop_def(Name, converter=Name)
    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "`` $kind $operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> TileType:
        shape, axis = tile_type(self.operand).get_shape(), self.axis.value.data
        return TensorType(tile_type(self.operand).element_type, shape[:axis] + shape[axis + 1 :])

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        check_axis(self.axis.value.data, source.get_num_dims())
        verify_reduction(self.kind.data, tile_dtype(self.operand))
        if _plain(result) != _plain(self.result_type()):
            raise VerifyException(f"folding axis {self.axis.value.data} of {source} does not give {result}")


@irdl_op_definition
class ScanOp(DeclaredOp):
    """Running reductions along an axis: each element with all before it, by one row of the reduction table."""

    name = "tile.scan"
    kind: Name = fields.prop_def(Name, converter=Name)
    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "`` $kind $operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> Attribute:
        return self.operand.type

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        check_axis(self.axis.value.data, source.get_num_dims())
        verify_reduction(self.kind.data, tile_dtype(self.operand))
        if _plain(result) != _plain(source):
            raise VerifyException(f"running along axis {self.axis.value.data} of {source} does not give {result}")


@irdl_op_definition
class SortOp(DeclaredOp):
    """Whole numbers in ascending order along an axis."""

    name = "tile.sort"
    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> Attribute:
        return self.operand.type

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        check_axis(self.axis.value.data, source.get_num_dims())
        dtype = tile_dtype(self.operand)
        if not dtype.is_integer or dtype.bits < 8:
            raise VerifyException(f"whole numbers of 8 bits or more are sorted, not {dtype}; floats have keys")
        if _plain(result) != _plain(source):
            raise VerifyException(f"sorting axis {self.axis.value.data} of {source} does not give {result}")


@irdl_op_definition
class AnyOp(DeclaredOp):
    """Whether any element is true: one answer for the whole tile."""

    name = "tile.any"
    operand: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(IntegerType(1))
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand)"

    def verify_(self) -> None:
        check_truths(self.operand)


@irdl_op_definition
class ExpandOp(DeclaredOp):
    """Inserts an axis of size 1."""

    name = "tile.expand"
    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> TileType:
        shape, axis = tile_type(self.operand).get_shape(), self.axis.value.data
        return TensorType(tile_type(self.operand).element_type, (*shape[:axis], 1, *shape[axis:]))

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        check_axis(self.axis.value.data, source.get_num_dims() + 1)
        if _plain(result) != _plain(self.result_type()):
            raise VerifyException(f"inserting axis {self.axis.value.data} into {source} does not give {result}")


@irdl_op_definition
class BroadcastOp(DeclaredOp):
    """Repeats axes of size 1; ranks are equal."""

    name = "tile.broadcast"
    operand: SSAValue = fields.operand_def(AnyTile)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operand, TensorType(tile_type(operand).element_type, shape))

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        pairs = zip(source.get_shape(), result.get_shape(), strict=False)
        if source.get_num_dims() != result.get_num_dims() or any(s not in (1, r) for s, r in pairs):
            raise VerifyException(f"{source} does not broadcast to {result}: only axes of size 1 repeat")
        if source.element_type != result.element_type:
            raise VerifyException(f"broadcasting keeps the element type: {source} became {result}")


@irdl_op_definition
class TransOp(DeclaredOp):
    """Result axis `i` is operand axis `permutation[i]`."""

    name = "tile.trans"
    operand: SSAValue = fields.operand_def(AnyTile)
    permutation: Integers = fields.prop_def(Integers, converter=integers)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $permutation attr-dict `:` type($operand) `->` type($result)"

    def result_type(self) -> TileType:
        source = tile_type(self.operand)
        return TensorType(source.element_type, [source.get_shape()[axis] for axis in self.permutation.iter_values()])

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        permutation = tuple(self.permutation.iter_values())
        if sorted(permutation) != list(range(source.get_num_dims())):
            raise VerifyException(f"{list(permutation)} is not a permutation of {source.get_num_dims()} axes")
        if _plain(result) != _plain(self.result_type()):
            raise VerifyException(f"permuting {source} by {list(permutation)} does not give {result}")


@irdl_op_definition
class TakeOp(DeclaredOp):
    """The elements of a tile at computed places: one tile of numbers for each axis; 0 where they lie outside of it."""

    name = "tile.take"
    operand: SSAValue = fields.operand_def(AnyTile)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTile)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = "$operand `[` $indices `]` attr-dict `:` type($operand) `,` type($indices) `->` type($result)"

    def result_type(self) -> TileType:
        return TensorType(tile_type(self.operand).element_type, tile_type(self.indices[0]).get_shape())

    def verify_(self) -> None:
        source, result = check_tile(self.operand, "the operand"), check_tile(self.result, "the result")
        if not self.indices or len(self.indices) != source.get_num_dims():
            raise VerifyException(
                f"{len(self.indices)} tiles of places for a tile of rank {source.get_num_dims()}, at least 1"
            )
        for index in self.indices:
            if tile_dtype(index) is not i64 or check_tile(index, "the places").get_shape() != result.get_shape():
                raise VerifyException(f"places are i64 tiles of the result's sizes, {result}, not {index.type}")
        if result.element_type != source.element_type:
            raise VerifyException(f"taking elements of {source} does not give {result}")


class _Halves(DeclaredOp):
    """Bytes, and their halves as elements of 4 bits: along an axis twice as many, each byte's low half first."""

    operand: SSAValue = fields.operand_def(AnyTile)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $axis attr-dict `:` type($operand) `->` type($result)"

    def _verify(self, packed: SSAValue, halves: SSAValue) -> None:
        whole, fours, axis = check_tile(packed, "the tile"), check_tile(halves, "the tile"), self.axis.value.data
        for value, possible in ((packed, BYTES), (halves, FOURS)):
            if tile_dtype(value) not in possible:
                raise VerifyException(f"expected elements of {', '.join(map(str, possible))}, got {value.type}")
        check_axis(axis, whole.get_num_dims())
        shape = whole.get_shape()
        if fours.get_shape() != (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]):
            raise VerifyException(f"{whole} has two elements of 4 bits to a byte along axis {axis}, unlike {fours}")


@irdl_op_definition
class UnpackOp(_Halves):
    """The two elements of 4 bits that each byte holds along an axis, that in its low half first."""

    name = "tile.unpack"

    def __init__(self, operand: SSAValue, axis: int, dtype: DType) -> None:
        shape = tile_type(operand).get_shape()
        super().__init__(operand, axis, tile_of((*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), dtype))

    def verify_(self) -> None:
        self._verify(self.operand, self.result)


@irdl_op_definition
class PackOp(_Halves):
    """Bytes that hold two neighbours along an axis, the first in the low half: what `tile.unpack` undoes."""

    name = "tile.pack"

    def __init__(self, operand: SSAValue, axis: int, dtype: DType) -> None:
        shape = tile_type(operand).get_shape()
        super().__init__(operand, axis, tile_of((*shape[:axis], shape[axis] // 2, *shape[axis + 1 :]), dtype))

    def verify_(self) -> None:
        self._verify(self.result, self.operand)


@irdl_op_definition
class DotOp(DeclaredOp):
    """c + a·b, accumulated in the element type of c; where a narrower one stands behind `in`, that is enough.

    The last two axes multiply; those in front, the same of all three, number independent products.
    """

    name = "tile.dot"
    a: SSAValue = fields.operand_def(AnyTile)
    b: SSAValue = fields.operand_def(AnyTile)
    c: SSAValue = fields.operand_def(AnyTile)
    accum: Attribute | None = fields.opt_prop_def(AnyAttr(), default=None)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b `,` $c (`in` $accum^)? attr-dict `:` type($a) `,` type($b) `,` type($c) `->` type($result)"
    )

    def result_type(self) -> Attribute:
        return self.c.type

    def verify_(self) -> None:
        a, b, c = (check_tile(operand, "the operand") for operand in (self.a, self.b, self.c))
        if self.result.type != c:
            raise VerifyException(f"the result has the type of c, {c}, not {self.result.type}")
        match a.get_shape(), b.get_shape(), c.get_shape():
            case (*front, m, k), (*right, k2, n), (*total, m2, n2) if [front, m, k, n] == [right, m2, k2, n2]:
                alike = front == total
            case _:
                alike = False
        if not alike:
            raise VerifyException(
                f"dot of {a} and {b} into {c}: expected [M, K], [K, N] and [M, N], behind equal leading axes"
            )
        left, right, total = (dtype_of(tile.element_type) for tile in (a, b, c))
        if left is not right or left.kind is not total.kind or total.bits < left.bits:
            raise VerifyException(
                f"dot of {left} and {right} into {total}: expected equal operands and a sum of their kind, no narrower"
            )
        if self.accum is not None and dtype_of(self.accum).kind is not total.kind:
            raise VerifyException(f"an accumulator of {total} is not carried in {self.accum}")
