"""Warp specialization in the pipe dialect: a producer and consumers, the rings between them, and asynchronous dots.

A pipeline state counts the uses of a ring by one warp group: use `n` is of slot `n` modulo the ring's depth. The
producer fills slots in order, as far ahead as there are any; every consumer waits for each of them and releases it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, OpResult, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    param_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, Integers, integer, integers, number
from tessera.ir.common.checking import around, ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag
from tessera.ir.common.effects import HasEffects, OrderedOp
from tessera.ir.common.elements import TileType, dtype_of
from tessera.ir.pipe.copies import AnyRing, check_copy, is_tile_type, ring_type, slot_type
from tessera.ir.tile.dialect import FuncOp, ProgramIdOp, accesses
from tessera.ir.tile.types import AnyTile, AnyView, boxes_in, check_axis, check_boxes, check_tile, tile_type


class _Slots(ParametrizedAttribute, TypeAttribute):
    """A type whose one parameter is a number of slots."""

    depth: IntAttr

    def verify(self) -> None:
        if self.depth.data < 1:
            raise VerifyException(f"a ring has at least one slot, got {self.depth.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.depth.data))


@irdl_attr_definition
class PipelineStateType(_Slots):
    """Which use of a ring of so many slots comes next, for one warp group: `!pipe.pipeline_state<3>`."""

    name = "pipe.pipeline_state"

    depth: IntAttr = param_def(converter=number)


@irdl_attr_definition
class WorkQueueType(_Slots):
    """A ring of so many slots for numbers of program instances: `!pipe.work_queue<2>`."""

    name = "pipe.work_queue"

    depth: IntAttr = param_def(converter=number)


@irdl_attr_definition
class PendingType(ParametrizedAttribute, TypeAttribute):
    """An accumulator that dots in flight still add to: `!pipe.pending<64x128xf32>`. Nothing can read it."""

    name = "pipe.pending"

    tile: Attribute

    def verify(self) -> None:
        if not is_tile_type(self.tile):
            raise VerifyException(f"dots give tiles, got {self.tile}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes, element = parser.parse_ranked_shape()
            return (TensorType(element, sizes),)

    def print_parameters(self, printer: Printer) -> None:
        tile = self.tile
        assert isinstance(tile, TensorType)
        with printer.in_angle_brackets():
            printer.print_string(f"{'x'.join(map(str, tile.get_shape()))}x")
            printer.print_attribute(tile.element_type)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


AnyPipelineState = BaseAttr(PipelineStateType)
AnyWorkQueue = BaseAttr(WorkQueueType)
AnyPending = BaseAttr(PendingType)
_AnyAccumulator = AnyTile | AnyPending


def state_depth(value: SSAValue) -> int:
    assert isinstance(value.type, PipelineStateType)
    return value.type.depth.data


def ring_depth(value: SSAValue) -> int:
    """The number of slots of a ring or of a work queue."""
    return value.type.depth.data if isinstance(value.type, WorkQueueType) else ring_type(value).depth.data


def accumulator_type(value: SSAValue) -> TileType:
    """The type of an accumulator, complete or pending."""
    if not isinstance(value.type, PendingType):
        return tile_type(value)
    tile = value.type.tile
    assert isinstance(tile, TensorType)
    return tile  # pyright: ignore[reportUnknownVariableType]


# Partitions


@irdl_op_definition
class WarpSpecializeOp(DeclaredOp):
    """Warp groups that run concurrently: a producer, so many consumers, and perhaps a preparer between them, which
    transposes tiles or computes operands.

    Each region is a partition. Memory is all that leaves it. In the region `consumer`, tiles are those of one consumer.
    """

    name = "pipe.warp_specialize"
    consumers: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    producer: Region = fields.region_def("single_block")
    preparer: Region | None = fields.opt_region_def("single_block", default=None)
    consumer: Region = fields.region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$consumers attr-dict `producer` $producer (`preparer` $preparer^)? `consumer` $consumer"

    def verify_(self) -> None:
        if self.consumers.value.data < 1:
            raise VerifyException(f"expected at least one consumer, got {self.consumers.value.data}")
        around = self.parent_op()
        if not isinstance(around, FuncOp):
            raise VerifyException("pipe.warp_specialize stands at the top of a tile function")
        if any(isinstance(op, WarpSpecializeOp) and op is not self for op in around.body.block.ops):
            raise VerifyException("a function is specialized once")
        if any(region.block.args for region in self.regions):
            raise VerifyException("partitions take no arguments")
        # Text cannot tell an empty block from none.
        if not all(region.block.ops for region in self.regions):
            raise VerifyException("a partition has at least one op")


def partitions_around(op: IRDLOperation) -> WarpSpecializeOp:
    """The specialized warp groups that an op belongs to."""
    return around(op, WarpSpecializeOp, "pipe.warp_specialize")


def is_in_consumer(op: IRDLOperation) -> bool:
    """Whether an op is in the partition of the consumers."""
    return partitions_around(op).consumer.is_ancestor(op)


def is_in_preparer(op: IRDLOperation) -> bool:
    """Whether an op is in the partition between the producer and the consumers."""
    preparer = partitions_around(op).preparer
    return preparer is not None and preparer.is_ancestor(op)


def is_in_producer(op: IRDLOperation) -> bool:
    """Whether an op is in the partition of the producer."""
    return partitions_around(op).producer.is_ancestor(op)


def _function_around(op: IRDLOperation) -> FuncOp:
    return around(op, FuncOp, "a tile function")


def check_persistent(op: IRDLOperation) -> None:
    """Refuses an op that only persistent CTAs have."""
    around = _function_around(op)
    if "persistent" not in around.attributes:
        raise VerifyException("a function for persistent CTAs has the attribute `persistent`")
    if any(isinstance(inner, ProgramIdOp) for inner in around.body.walk()):
        raise VerifyException("a persistent CTA runs many program instances: tile.program_id would be none of them")


def _check_younger(op: DotWaitOp | DotsWaitOp) -> None:
    if not is_in_consumer(op):
        raise VerifyException("the producer has no dots")
    if op.younger.value.data < 0:
        raise VerifyException(f"a number of dots is not negative, got {op.younger.value.data}")


@irdl_op_definition
class ConsumerIdOp(DeclaredOp):
    """The number of this consumer."""

    name = "pipe.consumer_id"
    result: OpResult = fields.result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        if not is_in_consumer(self):
            raise VerifyException("the producer has no number")


class _CtaOp(DeclaredOp):
    """A number that persistent CTAs have: a function with the attribute `persistent` runs once for each of them."""

    result: OpResult = fields.result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        check_persistent(self)


@irdl_op_definition
class CtaIdOp(_CtaOp):
    """The number of this persistent CTA.

    They share the program instances of the grid: each goes through some of them in a loop.
    """

    name = "pipe.cta_id"


@irdl_op_definition
class CtaCountOp(_CtaOp):
    """The number of persistent CTAs."""

    name = "pipe.cta_count"


@irdl_op_definition
class GridExtentOp(DeclaredOp):
    """The number of program instances along an axis of the grid."""

    name = "pipe.grid_extent"
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def verify_(self) -> None:
        check_axis(self.axis.value.data, len(_function_around(self).grid.data))


# Rings


@irdl_op_definition
class PipelineStateOp(DeclaredOp):
    """The state before the first use of a ring or of a work queue."""

    name = "pipe.pipeline_state"
    ring: SSAValue = fields.operand_def(AnyRing | AnyWorkQueue)
    result: OpResult = fields.result_def(AnyPipelineState)
    traits = traits_def(Pure())
    assembly_format = "$ring attr-dict `:` type($ring) `->` type($result)"

    def result_type(self) -> Attribute:
        return PipelineStateType(ring_depth(self.ring))

    def verify_(self) -> None:
        check_state(self.ring, self.result)


@irdl_op_definition
class AdvanceOp(DeclaredOp):
    """The state of the next use."""

    name = "pipe.advance"
    T: ClassVar = VarConstraint("T", AnyPipelineState)
    state: SSAValue = fields.operand_def(T)
    result: OpResult = fields.result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$state attr-dict `:` type($state)"

    def result_type(self) -> Attribute:
        return self.state.type


def check_state(ring: SSAValue, state: SSAValue) -> None:
    """Refuses a pipeline state of another ring."""
    depth = ring_depth(ring)
    if state_depth(state) != depth:
        raise VerifyException(f"a pipeline state of {state_depth(state)} slots in a ring of {depth}")


@irdl_op_definition
class ProducerCopyOp(DeclaredOp):
    """Waits until all consumers have released a slot (producer acquire), and begins to copy a tile into it.

    The tile is at `offsets` of a view; zeros where it leaves the view. The copy is asynchronous.
    """

    name = "pipe.producer_copy"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    ring: SSAValue = fields.operand_def(AnyRing)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("ring",))
    assembly_format = (
        "$view `[` $offsets `]` `,` $ring `[` $state `]` attr-dict `:` type($view) `,` type($ring) `,` type($state)"
    )

    def verify_(self) -> None:
        check_state(self.ring, self.state)
        if not is_in_producer(self):
            raise VerifyException("rings are filled by the producer")
        check_copy(self.view, self.offsets, self.ring)


@irdl_op_definition
class ProducerCopyBoxesOp(DeclaredOp):
    """Waits until all consumers have released a slot, and begins to copy boxes of a view into it, as `tile.load_boxes`.

    The copies are asynchronous, and count as one.
    """

    name = "pipe.producer_copy_boxes"
    view: SSAValue = fields.operand_def(AnyView)
    starts: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    until: SSAValue | None = fields.opt_operand_def(IndexType, default=None)
    axes: Integers = fields.prop_def(Integers, converter=integers)
    ring: SSAValue = fields.operand_def(AnyRing)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("ring",))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$view `[` $starts `]` `along` $axes (`until` $until^)? `,` $ring `[` $state `]` attr-dict "
        "`:` type($view) `,` type($ring) `,` type($state)"
    )

    @property
    def boxes(self) -> list[Sequence[SSAValue]]:
        """Where each box starts."""
        return boxes_in(self.view, self.starts)

    def verify_(self) -> None:
        check_state(self.ring, self.state)
        if not is_in_producer(self):
            raise VerifyException("rings are filled by the producer")
        check_boxes(self.view, self.starts, tuple(self.axes.iter_values()), slot_type(self.ring))


ProducerCopies = ProducerCopyOp | ProducerCopyBoxesOp


@irdl_op_definition
class ConsumerWaitOp(DeclaredOp):
    """Waits until the tile of a slot has been copied, and gives it; with `part`, this consumer's share of its rows, or
    of its `columns`.

    They are shared evenly, those of consumer 0 first. The tile stays until it is released.
    """

    name = "pipe.consumer_wait"
    ring: SSAValue = fields.operand_def(AnyRing)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    part: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    columns: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    result: OpResult = fields.result_def(AnyTile, converter=GIVEN)
    traits = traits_def(HasEffects())
    effects = accesses(read=("ring",))
    assembly_format = (
        "(`part` $part^)? (`columns` $columns^)? $ring `[` $state `]` "
        "attr-dict `:` type($ring) `,` type($state) `->` type($result)"
    )

    def __init__(self, ring: SSAValue, state: SSAValue, consumers: int | None = None, axis: int = 0) -> None:
        """With `consumers`, what there is along `axis` is shared by so many."""
        held = slot_type(ring)
        shape = list(held.get_shape())
        if consumers is not None:
            shape[axis] //= consumers
        made, part = TensorType(held.element_type, shape), consumers is not None
        super().__init__(ring, state, made, part=part, columns=part and axis == 1)

    @property
    def shared_axis(self) -> int | None:
        """The axis along which consumers share the tile; None where each has all of it."""
        return None if self.part is None else 0 if self.columns is None else 1

    def verify_(self) -> None:
        check_state(self.ring, self.state)
        if self.part is None and is_in_preparer(self):
            pass
        elif not is_in_consumer(self):
            raise VerifyException("the producer does not read what it has copied")
        held, made, axis = slot_type(self.ring), tile_type(self.result), self.shared_axis
        if axis is None:
            if self.columns is not None:
                raise VerifyException("columns are shared as a part only")
            if made != held:
                raise VerifyException(f"a ring of {held} does not hold {made}")
            return
        consumers = partitions_around(self).consumers.value.data
        shape = list(made.get_shape())
        if axis < len(shape):
            shape[axis] *= consumers
        if axis >= len(shape) or TensorType(made.element_type, shape) != held:
            raise VerifyException(f"{consumers} of {made} are not {held}")


@irdl_op_definition
class ConsumerReleaseOp(DeclaredOp):
    """Says that this consumer no longer reads a slot."""

    name = "pipe.consumer_release"
    ring: SSAValue = fields.operand_def(AnyRing)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    traits = traits_def(HasEffects())
    effects = accesses(read=("ring",), written=("ring",))
    assembly_format = "$ring `[` $state `]` attr-dict `:` type($ring) `,` type($state)"

    def verify_(self) -> None:
        check_state(self.ring, self.state)
        if not is_in_consumer(self) and not is_in_preparer(self):
            raise VerifyException("the producer waits for no tile, and has none to release")


# Dots


@irdl_op_definition
class DotStartOp(OrderedOp):
    """Begins a dot, `c + a · b`; the accumulator may itself be pending.

    The slots that it reads may be released only when it has been waited for.
    """

    name = "pipe.dot_start"
    a: SSAValue = fields.operand_def(AnyTile)
    b: SSAValue = fields.operand_def(AnyTile)
    c: SSAValue = fields.operand_def(_AnyAccumulator)
    result: OpResult = fields.result_def(AnyPending)
    assembly_format = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c) `->` type($result)"

    def result_type(self) -> Attribute:
        return PendingType(accumulator_type(self.c))

    def verify_(self) -> None:
        if not is_in_consumer(self):
            raise VerifyException("the producer does not multiply")
        a, b, c = check_tile(self.a, "an operand"), check_tile(self.b, "an operand"), accumulator_type(self.c)
        if accumulator_type(self.result) != c:
            raise VerifyException(f"an accumulator of {c} is not {accumulator_type(self.result)}")
        match a.get_shape(), b.get_shape(), c.get_shape():
            case (m, k), (k2, n), (m2, n2) if (m, k, n) == (m2, k2, n2):
                pass
            case _:
                raise VerifyException(f"the dot of {a} and {b} is not {c}: expected [M, K], [K, N] and [M, N]")
        left, right, total = (dtype_of(tile.element_type) for tile in (a, b, c))
        if left is not right or left.kind is not total.kind or total.bits < left.bits:
            raise VerifyException(
                f"{left} times {right} into {total}: expected equal operands, and an accumulator of their kind and no "
                "fewer bits"
            )


@irdl_op_definition
class DotWaitOp(OrderedOp):
    """Waits for a dot; `younger` ones that were begun after it may still run."""

    name = "pipe.dot_wait"
    pending: SSAValue = fields.operand_def(AnyPending)
    younger: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(AnyTile)
    assembly_format = "$pending `younger` $younger attr-dict `:` type($pending) `->` type($result)"

    def result_type(self) -> Attribute:
        return accumulator_type(self.pending)

    def verify_(self) -> None:
        if tile_type(self.result) != accumulator_type(self.pending):
            raise VerifyException(
                f"{self.pending.type} becomes {accumulator_type(self.pending)}, not {self.result.type}"
            )
        _check_younger(self)


@irdl_op_definition
class DotsWaitOp(OrderedOp):
    """Waits until at most `younger` dots run: slots that older ones have read may be released."""

    name = "pipe.dots_wait"
    younger: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$younger attr-dict"

    def verify_(self) -> None:
        _check_younger(self)


OPS = ops_of(__name__)
TYPES: tuple[type[ParametrizedAttribute], ...] = (PipelineStateType, WorkQueueType, PendingType)
