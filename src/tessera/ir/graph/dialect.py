"""The graph dialect: whole-array algebra with symbolic sizes, numerics policies and typed effects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Dialect, OpResult, SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import DType, f64
from tessera.errors import ShapeError
from tessera.ir.common import declared_ops as fields
from tessera.ir.common import elementwise, reductions
from tessera.ir.common.attributes import IntegerConstraint, Integers, Name, integer, integers, verifying
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag, optional
from tessera.ir.graph import indexing as graph_indexing
from tessera.ir.graph.control import CondOp, ScanOp, WhileOp, YieldOp
from tessera.ir.graph.effects import AllReduceOp, AnyTensor, PrintOp, RandomOp, StateOp, StateReadOp, StateWriteOp
from tessera.ir.graph.functions import CallKernelOp, CallOp, FuncOp, ReturnOp
from tessera.ir.graph.slices import known_sizes, slice_shape
from tessera.ir.graph.types import (
    DenseAttr,
    GraphTensorType,
    dense,
    graph_type,
    parse_dense,
    print_dense,
    spare_bits_are_zero,
    story_of,
    telling,
)
from tessera.ir.tile.types import check_axis
from tessera.ir.tile.values import verify_elementwise
from tessera.shapes import rules
from tessera.shapes.bounds import Interval
from tessera.shapes.expr import DimLike, Size, ceil_div, shape_of

VERSION = 1


def _expect_shape(result: SSAValue, expected: Sequence[Size], what: str) -> None:
    if graph_type(result).shape != tuple(expected):
        shape = graph_type(result).with_shape(expected)
        raise VerifyException(f"{what} gives {shape}, not {result.type}")


def _expect_dtype(result: SSAValue, expected: DType, what: str) -> None:
    if graph_type(result).dtype is not expected:
        raise VerifyException(f"{what} gives elements of {expected}, not {graph_type(result).dtype}")


@irdl_op_definition
class ConstantOp(DeclaredOp):
    """A tensor known now: `graph.constant !graph.tensor<[3], f32> = [1.0, 2.0, 3.0]`; one element fills all."""

    name = "graph.constant"
    value: DenseAttr = fields.prop_def(DenseAttr)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())

    @classmethod
    def splat(cls, number: float, result: GraphTensorType) -> ConstantOp:
        value = cast(np.asarray(number, np.float64), f64, result.dtype.base)
        return cls(dense(value, result.dtype), result)

    def verify_(self) -> None:
        type_ = graph_type(self.result)
        item, stored = type_.dtype.storage.itemsize, len(self.value.data)
        count = 1
        for size in type_.shape if stored != item else ():
            if not isinstance(size, int):
                raise VerifyException(f"a constant of {type_} needs constant sizes, or one element to fill it")
            count *= size
        if stored != item * count:
            raise VerifyException(f"{stored} bytes for {count} elements of {item} bytes each")
        if not spare_bits_are_zero(self.value, type_.dtype):
            raise VerifyException(f"the bytes of a constant of {type_} have bits set that {type_.dtype} does not use")

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        type_ = parser.parse_type()
        if not isinstance(type_, GraphTensorType):
            parser.raise_error(f"expected a graph tensor type, got {type_}")
        parser.parse_punctuation("=")
        op = cls(parse_dense(parser, type_.dtype), type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        type_ = graph_type(self.result)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(type_)
        printer.print_string(" = ")
        print_dense(printer, self.value, type_.dtype)


@irdl_op_definition
class EwOp(DeclaredOp):
    """One row of the elementwise table over tensors of one shape."""

    name = "graph.ew"
    fn: Name = fields.prop_def(Name, converter=Name)
    operands_: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    seed: IntegerAttr | None = fields.opt_prop_def(IntegerConstraint, converter=optional(integer), default=None)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "`` $fn $operands_ (`seed` $seed^)? attr-dict `:` type($operands_) `->` type($result)"

    def __init__(
        self, fn: str, operands: Sequence[SSAValue], *, to: DType | None = None, seed: int | None = None
    ) -> None:
        types = [graph_type(operand) for operand in operands]
        shape = types[0].shape
        for type_ in types:
            if type_.shape != shape:
                raise ShapeError(
                    f"{fn}: operands have one shape",
                    shapes=[str(t) for t in types],
                    story=story_of(*operands),
                    hint="broadcast the operands first",
                )
        with telling(*operands):
            dtype = elementwise.result_dtype(fn, [type_.dtype for type_ in types], to=to)
        super().__init__(fn, operands, GraphTensorType.of(shape, dtype), seed=seed)

    def verify_(self) -> None:
        if not self.operands_:
            raise VerifyException("an elementwise op has at least one operand")
        for operand in self.operands_:
            _expect_shape(self.result, graph_type(operand).shape, f"{self.fn.data} of {operand.type}")
        verify_elementwise(
            self.fn.data,
            [graph_type(operand).dtype for operand in self.operands_],
            graph_type(self.result).dtype,
            self.seed is not None,
        )


class _Unary(DeclaredOp, ABC):
    """One tensor in, one tensor out, elements unchanged."""

    operand: SSAValue = fields.operand_def(AnyTensor)
    result: OpResult = fields.result_def(AnyTensor)
    traits = traits_def(Pure())

    @abstractmethod
    def expected_shape(self) -> Sequence[Size]:
        """The sizes of the result, by the op's shape rule."""

    def result_type(self) -> Attribute:
        with telling(self.operand):
            return graph_type(self.operand).with_shape(self.expected_shape())

    def verify_(self) -> None:
        with verifying:
            expected = self.expected_shape()
        _expect_shape(self.result, expected, f"{self.name} of {self.operand.type}")
        _expect_dtype(self.result, graph_type(self.operand).dtype, self.name)


@irdl_op_definition
class BroadcastOp(_Unary):
    """NumPy's rule: missing leading axes appear, axes of size 1 repeat."""

    name = "graph.broadcast"
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Sequence[DimLike]) -> None:
        DeclaredOp.__init__(self, operand, graph_type(operand).with_shape(shape_of(shape)))
        with telling(operand):
            self.expected_shape()

    def expected_shape(self) -> Sequence[Size]:
        target = graph_type(self.result).shape
        found = rules.broadcast(graph_type(self.operand).shape, target, where="broadcast")
        if tuple(found) != target:
            raise ShapeError(
                f"{self.operand.type} does not broadcast to {self.result.type}",
                hint="only missing axes and axes of size 1 grow",
            )
        return target


@irdl_op_definition
class ReshapeOp(_Unary):
    """The same elements, row by row, under other sizes."""

    name = "graph.reshape"
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Sequence[DimLike]) -> None:
        source = graph_type(operand)
        with telling(operand):
            target = rules.reshape(source.shape, shape_of(shape))
        DeclaredOp.__init__(self, operand, source.with_shape(target))

    def expected_shape(self) -> Sequence[Size]:
        return rules.reshape(graph_type(self.operand).shape, graph_type(self.result).shape)


@irdl_op_definition
class TransposeOp(_Unary):
    """Result axis `i` is operand axis `permutation[i]`."""

    name = "graph.transpose"
    permutation: Integers = fields.prop_def(Integers, converter=integers)
    assembly_format = "$operand `,` $permutation attr-dict `:` type($operand) `->` type($result)"

    def expected_shape(self) -> Sequence[Size]:
        return rules.transpose(graph_type(self.operand).shape, list(self.permutation.iter_values()))


@irdl_op_definition
class SliceOp(_Unary):
    """Every `steps[i]`-th element from `starts[i]` up to, not including, `stops[i]`; LAST is the end of any axis."""

    name = "graph.slice"
    starts: Integers = fields.prop_def(Integers, converter=integers)
    stops: Integers = fields.prop_def(Integers, converter=integers)
    steps: Integers = fields.prop_def(Integers, converter=integers)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    assembly_format = "$operand $starts `to` $stops `by` $steps attr-dict `:` type($operand) `->` type($result)"

    def __init__(
        self,
        operand: SSAValue,
        starts: Sequence[int],
        stops: Sequence[int],
        steps: Sequence[int],
        *,
        known: Mapping[str, Interval] | None = None,
    ) -> None:
        source = graph_type(operand)
        with telling(operand):
            target = slice_shape(source.shape, starts, stops, steps, known)
        DeclaredOp.__init__(self, operand, starts, stops, steps, source.with_shape(target))

    def expected_shape(self) -> Sequence[Size]:
        starts, stops, steps = (list(bound.iter_values()) for bound in (self.starts, self.stops, self.steps))
        return slice_shape(graph_type(self.operand).shape, starts, stops, steps, known_sizes(self))


@irdl_op_definition
class ReduceOp(_Unary):
    """Folds `axes` away with one row of the reduction table, accumulating as the policy says."""

    name = "graph.reduce"
    kind: Name = fields.prop_def(Name, converter=Name)
    axes: Integers = fields.prop_def(Integers, converter=integers)
    keepdims: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    assembly_format = (
        "`` $kind $operand `,` $axes (`keepdims` $keepdims^)? attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(self, kind: str, operand: SSAValue, axes: Sequence[int], *, keepdims: bool = False) -> None:
        with telling(operand):
            axes = [rules.normalize_axis(axis, len(graph_type(operand).shape), where="reduce") for axis in axes]
        DeclaredOp.__init__(self, operand, kind, axes, keepdims=keepdims)

    def expected_shape(self) -> Sequence[Size]:
        reductions.check(self.kind.data, graph_type(self.operand).dtype)
        axes = list(self.axes.iter_values())
        return rules.reduce(graph_type(self.operand).shape, axes, self.keepdims is not None)


@irdl_op_definition
class ConcatenateOp(DeclaredOp):
    """Tensors one after the other along an axis."""

    name = "graph.concatenate"
    operands_: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$operands_ `axis` $axis attr-dict `:` type($operands_) `->` type($result)"

    def __init__(self, operands: Sequence[SSAValue], axis: int) -> None:
        types = [graph_type(operand) for operand in operands]
        with telling(*operands):
            axis = rules.normalize_axis(axis, len(types[0].shape))
            shape = rules.concatenate([type_.shape for type_ in types], axis)
        super().__init__(operands, axis, types[0].with_shape(shape))

    def verify_(self) -> None:
        with verifying:
            shapes = [graph_type(operand).shape for operand in self.operands_]
            expected = rules.concatenate(shapes, self.axis.value.data)
        _expect_shape(self.result, expected, "concatenation")
        for operand in self.operands_:
            _expect_dtype(self.result, graph_type(operand).dtype, "concatenation")


@irdl_op_definition
class MatmulOp(DeclaredOp):
    """A matmul over the last two axes, leading axes broadcast; accumulated as the policy says, rounded once.

    In `parts` of the depth, matrices give one matrix for each part. Parts follow each other, and are of equal length
    but for the last ones, which may be shorter or empty: a multiple of `step`.
    """

    name = "graph.matmul"
    a: SSAValue = fields.operand_def(AnyTensor)
    b: SSAValue = fields.operand_def(AnyTensor)
    parts: IntegerAttr | None = fields.opt_prop_def(IntegerConstraint, converter=integer, default=None)
    step: IntegerAttr | None = fields.opt_prop_def(IntegerConstraint, converter=integer, default=None)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b (`parts` $parts^)? (`step` $step^)? attr-dict `:` type($a) `,` type($b) `->` type($result)"
    )

    def __init__(
        self, a: SSAValue, b: SSAValue, *, to: DType | None = None, parts: int | None = None, step: int | None = None
    ) -> None:
        left, right = graph_type(a), graph_type(b)
        with telling(a, b):
            shape = rules.matmul(left.shape, right.shape)
        dtype = left.dtype if to is None else to
        shape = shape if parts is None else (parts, *shape)
        super().__init__(a, b, left.with_shape(shape).with_dtype(dtype), parts=parts, step=step)

    @property
    def part_count(self) -> int | None:
        """How many parts of the depth it is done in; None where it is done as a whole."""
        return None if self.parts is None else self.parts.value.data

    @property
    def part_length(self) -> Size:
        """How much of the depth a part has, but for the last ones."""
        assert self.parts is not None
        assert self.step is not None
        step = self.step.value.data
        whole = ceil_div(graph_type(self.a).shape[-1], step)
        return shape_of((ceil_div(whole, self.parts.value.data) * step,))[0]

    @property
    def accumulator(self) -> DType:
        return accumulator(graph_type(self.a).dtype)

    def verify_(self) -> None:
        left, right, result = graph_type(self.a), graph_type(self.b), graph_type(self.result)
        with verifying:
            expected = rules.matmul(left.shape, right.shape)
        if (self.parts is None) is not (self.step is None):
            raise VerifyException("parts of a depth have a step, and only they have")
        if self.parts is not None and self.step is not None:
            if len(expected) != 2 or min(self.parts.value.data, self.step.value.data) < 1:
                raise VerifyException(
                    f"{left} and {right} in parts: matrices are, in 1 or more, by a step of 1 or more"
                )
            expected = (self.parts.value.data, *expected)
        _expect_shape(self.result, expected, f"matmul of {left} and {right}")
        if left.element != right.element:
            raise VerifyException(f"matmul of {left.dtype} and {right.dtype}: cast to one element type")
        if result.dtype.kind is not left.dtype.kind:
            raise VerifyException(f"matmul of {left.dtype} does not give {result.dtype}")


@irdl_op_definition
class IotaOp(DeclaredOp):
    """The position along one axis."""

    name = "graph.iota"
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict `:` type($result)"

    def verify_(self) -> None:
        check_axis(self.axis.value.data, len(graph_type(self.result).shape))
        if not graph_type(self.result).dtype.is_integer:
            raise VerifyException(f"iota counts in an integer type, got {graph_type(self.result).dtype}")


@irdl_op_definition
class GatherOp(DeclaredOp):
    """Slices of `operand` at indices along axes, one tensor of them for each axis; every index must be in range."""

    name = "graph.gather"
    operand: SSAValue = fields.operand_def(AnyTensor)
    indices: Sequence[SSAValue] = fields.var_operand_def(AnyTensor)
    axes: Integers = fields.prop_def(Integers, converter=integers)
    result: OpResult = fields.result_def(AnyTensor, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `[` $indices `]` `,` $axes attr-dict `:` type($operand) `,` type($indices) `->` type($result)"
    )

    def __init__(self, operand: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int]) -> None:
        source = graph_type(operand)
        with telling(operand, *indices):
            axes = [rules.normalize_axis(axis, len(source.shape)) for axis in axes]
            target = rules.gather(source.shape, graph_type(indices[0]).shape, axes)
        super().__init__(operand, indices, axes, source.with_shape(target))

    def verify_(self) -> None:
        shape = graph_indexing.gathered_shape(self.operand, self.indices, self.axes)
        _expect_shape(self.result, shape, "gathering")
        _expect_dtype(self.result, graph_type(self.operand).dtype, "gathering")


_HANDED_ON = (
    *(FuncOp, ReturnOp, CallOp, CallKernelOp, CondOp, WhileOp, ScanOp, YieldOp),
    *(RandomOp, StateOp, StateReadOp, StateWriteOp, AllReduceOp, PrintOp),
)
Graph = Dialect(
    "graph", [*ops_of(__name__), *ops_of(graph_indexing.__name__), *_HANDED_ON], [GraphTensorType, DenseAttr]
)
