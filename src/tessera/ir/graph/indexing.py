"""Graph ops that read or write at computed places, or go along an axis step by step."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tessera.errors import DtypeError
from tessera.ir.common import declared_ops as fields
from tessera.ir.common import reductions
from tessera.ir.common.attributes import IntegerConstraint, Integers, Name, integer, integers, verifying
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag
from tessera.ir.graph.effects import AnyTensor
from tessera.ir.graph.types import GraphTensorType, graph_type, telling
from tessera.ir.tile.types import check_axis
from tessera.shapes import rules
from tessera.shapes.expr import DimLike, Shape, Size, dim, format_shape, shape_of

SCATTERS = ("set", "add", "mul", "max", "min")
"""How an update is combined with the old element: it replaces it, or is added, multiplied and so on."""
CUMULATES = ("sum", "prod", "max", "min")


def _verify_starts(starts: Sequence[SSAValue], rank: int) -> None:
    if len(starts) != rank:
        raise VerifyException(f"{len(starts)} starts for {rank} axes")
    for start in starts:
        type_ = graph_type(start)
        if type_.shape or not type_.dtype.is_integer:
            raise VerifyException(f"a start is one whole number, not {type_}")


def _verify_part(part: Sequence[Size], whole: Sequence[Size]) -> None:
    """A part has as many axes as the whole, and is surely no larger where sizes can be compared."""
    if len(part) != len(whole):
        raise VerifyException(f"{format_shape(part)} is no part of {format_shape(whole)}: they have other ranks")
    for small, large in zip(part, whole, strict=True):
        room = (dim(large) - dim(small)).constant
        if room is not None and room < 0:
            raise VerifyException(f"{format_shape(part)} is no part of {format_shape(whole)}: {small} is above {large}")


@irdl_op_definition
class DynamicSliceOp(DeclaredOp):
    """A part of a tensor from starts on that are known at run time, moved so that all of it is inside."""

    name = "graph.dynamic_slice"
    operand: SSAValue = fields.operand_def(AnyTensor)
    starts: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operand `[` $starts `]` attr-dict `:` type($operand) `,` type($starts) `->` type($result)"

    def __init__(self, operand: SSAValue, starts: Sequence[SSAValue], sizes: Sequence[DimLike]) -> None:
        super().__init__(operand, starts, graph_type(operand).with_shape(shape_of(sizes)))

    def verify_(self) -> None:
        source, result = graph_type(self.operand), graph_type(self.result)
        _verify_starts(self.starts, len(source.shape))
        _verify_part(result.shape, source.shape)
        if result.dtype is not source.dtype:
            raise VerifyException(f"a slice of {source.dtype} does not give {result.dtype}")


@irdl_op_definition
class DynamicUpdateSliceOp(DeclaredOp):
    """A tensor with a part replaced, at starts that are moved so that all of the part is inside."""

    name = "graph.dynamic_update_slice"
    operand: SSAValue = fields.operand_def(AnyTensor)
    update: SSAValue = fields.operand_def(AnyTensor)
    starts: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(Pure())
    assembly_format = (
        "$update `into` $operand `[` $starts `]` attr-dict "
        "`:` type($update) `into` type($operand) `,` type($starts) `->` type($result)"
    )

    def result_type(self) -> Attribute:
        return self.operand.type

    def verify_(self) -> None:
        source, update = graph_type(self.operand), graph_type(self.update)
        _verify_starts(self.starts, len(source.shape))
        _verify_part(update.shape, source.shape)
        if update.dtype is not source.dtype or self.result.type != source:
            raise VerifyException(f"{update} put into {source} does not give {self.result.type}")


@irdl_op_definition
class CumulateOp(DeclaredOp):
    """Running reductions along an axis: of all elements up to each one, or with `exclusive`, of all before it."""

    name = "graph.cumulate"
    kind: Name = fields.prop_def(Name, converter=Name)
    operand: SSAValue = fields.operand_def(AnyTensor)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    exclusive: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(Pure())
    assembly_format = (
        "`` $kind $operand `,` $axis (`exclusive` $exclusive^)? attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(self, kind: str, operand: SSAValue, axis: int, *, exclusive: bool = False) -> None:
        source = graph_type(operand)
        with telling(operand):
            check_cumulation(kind, source)
            axis = rules.normalize_axis(axis, len(source.shape))
        super().__init__(kind, operand, axis, exclusive=exclusive)

    def result_type(self) -> Attribute:
        return self.operand.type

    def verify_(self) -> None:
        source = graph_type(self.operand)
        check_axis(self.axis.value.data, len(source.shape))
        with verifying:
            check_cumulation(self.kind.data, source)
        if self.result.type != source:
            raise VerifyException(f"cumulating {source} gives the same type, not {self.result.type}")


def check_cumulation(kind: str, type_: GraphTensorType) -> None:
    if kind not in CUMULATES:
        raise DtypeError(f"unknown cumulation {kind}", hint=f"cumulations are {', '.join(CUMULATES)}")
    reductions.check(kind, type_.dtype)


def gathered_shape(operand: SSAValue, indices: Sequence[SSAValue], axes: Integers) -> Shape:
    """The shape of slices at indices along axes, which are checked: whole numbers of one shape, for axes in order."""
    shape, along = graph_type(operand).shape, list(axes.iter_values())
    for axis in along:
        check_axis(axis, len(shape))
    if len(along) != len(indices) or not along or along != sorted(set(along)):
        raise VerifyException(f"each axis, in order, has indices: {len(indices)} of them for axes {along}")
    for value in indices:
        type_ = graph_type(value)
        if not type_.dtype.is_integer:
            raise VerifyException(f"indices are integers, got {type_.dtype}")
        if type_.shape != graph_type(indices[0]).shape:
            raise VerifyException(f"indices have one shape, got {graph_type(indices[0])} and {type_}")
    return rules.gather(shape, graph_type(indices[0]).shape, along)


@irdl_op_definition
class ScatterOp(DeclaredOp):
    """A tensor with updates at indices along axes, one after the other; every index must be in range."""

    name = "graph.scatter"
    kind: Name = fields.prop_def(Name, converter=Name)
    operand: SSAValue = fields.operand_def(AnyTensor)
    updates: SSAValue = fields.operand_def(AnyTensor)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    axes: Integers = fields.prop_def(Integers, converter=integers)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(Pure())
    assembly_format = (
        "`` $kind $updates `into` $operand `[` $indices `]` `,` $axes attr-dict "
        "`:` type($updates) `into` type($operand) `,` type($indices) `->` type($result)"
    )

    def __init__(
        self, kind: str, operand: SSAValue, updates: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int]
    ) -> None:
        axes = [rules.normalize_axis(axis, len(graph_type(operand).shape)) for axis in axes]
        super().__init__(kind, operand, updates, indices, axes)

    def result_type(self) -> Attribute:
        return self.operand.type

    def verify_(self) -> None:
        source, updates = graph_type(self.operand), graph_type(self.updates)
        if self.kind.data not in SCATTERS:
            raise VerifyException(f"unknown way to scatter {self.kind.data}: ways are {', '.join(SCATTERS)}")
        expected = gathered_shape(self.operand, self.indices, self.axes)
        if tuple(expected) != updates.shape or updates.dtype is not source.dtype:
            raise VerifyException(f"updates are {source.with_shape(expected)}, not {updates}")
        if self.result.type != source:
            raise VerifyException(f"scattering into {source} gives the same type, not {self.result.type}")
