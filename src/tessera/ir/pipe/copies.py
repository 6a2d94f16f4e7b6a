"""The pipe dialect: operands of dots are copied several iterations ahead of their use. It knows no layouts yet.

A ring is some slots for tiles, outside of registers. A copy into a slot is asynchronous; groups of copies end in the
order in which they were begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, OpResult, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import BaseAttr, irdl_attr_definition, irdl_op_definition, param_def, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, integer, number
from tessera.ir.common.checking import around, ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag
from tessera.ir.common.effects import MEMORY, HasEffects, OrderedOp, writes
from tessera.ir.common.elements import TileType, is_element, typed
from tessera.ir.tile.dialect import FuncOp, accesses
from tessera.ir.tile.types import AnyTile, AnyView, tile_type, view_type

VERSION = 3


@irdl_attr_definition
class RingType(ParametrizedAttribute, TypeAttribute):
    """`depth` slots for tiles of one type: `!pipe.ring<3, 64x128xbf16>`."""

    name = "pipe.ring"

    depth: IntAttr = param_def(converter=number)
    tile: Attribute

    def verify(self) -> None:
        if self.depth.data < 1:
            raise VerifyException(f"a ring has at least one slot, got {self.depth.data}")
        if not is_tile_type(self.tile):
            raise VerifyException(f"a ring holds tiles, got {self.tile}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            depth = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            sizes, element = parser.parse_ranked_shape()
            return IntAttr(depth), TensorType(element, sizes)

    def print_parameters(self, printer: Printer) -> None:
        tile = self.tile
        assert isinstance(tile, TensorType)
        with printer.in_angle_brackets():
            printer.print_string(f"{self.depth.data}, {'x'.join(map(str, tile.get_shape()))}x")
            printer.print_attribute(tile.element_type)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def is_tile_type(type_: Attribute) -> bool:
    if not isinstance(type_, TensorType) or not is_element(type_.element_type):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return False
    return all(size > 0 for size in type_.get_shape())


AnyRing = BaseAttr(RingType)
ring_type = typed(RingType)


def slot_type(value: SSAValue) -> TileType:
    """The type of the tiles in a ring."""
    tile = ring_type(value).tile
    assert isinstance(tile, TensorType)
    return tile  # pyright: ignore[reportUnknownVariableType]


@irdl_op_definition
class RingOp(DeclaredOp):
    """Slots with nothing in them.

    A ring that is `multicast` gets the same tiles in the same order in all CTAs of a cluster: each of them copies a
    part of every tile, for all.
    """

    name = "pipe.ring"
    multicast: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    result: OpResult = fields.result_def(AnyRing, converter=GIVEN)
    assembly_format = "(`multicast` $multicast^)? attr-dict `:` type($result)"

    def __init__(self, depth: int, tile: TileType) -> None:
        super().__init__(RingType(depth, tile))

    def verify_(self) -> None:
        around = self.parent_op()
        if self.multicast is not None and not (isinstance(around, FuncOp) and cluster_of(around) > 1):
            raise VerifyException("a multicast ring is in a function with the attribute `cluster`, a number above 1")


def cluster_of(function: FuncOp) -> int:
    """The number of CTAs, one after the other in the grid, that run as a cluster."""
    found = function.attributes.get("cluster")
    return found.value.data if isinstance(found, IntegerAttr) else 1


def check_copy(view: SSAValue, offsets: Sequence[SSAValue], ring: SSAValue) -> None:
    """Refuses to copy what does not fit into a slot."""
    seen, held = view_type(view), slot_type(ring)
    if len(offsets) != seen.rank.data or held.get_num_dims() != seen.rank.data:
        raise VerifyException(f"{len(offsets)} offsets into {seen}, for slots of {held}")
    if seen.element != held.element_type:
        raise VerifyException(f"the view holds {seen.element}, the ring {held.element_type}")


@irdl_op_definition
class CopyOp(DeclaredOp):
    """Begins to copy the tile at `offsets` of a view into a slot; zeros where it leaves the view."""

    name = "pipe.copy"
    view: SSAValue = fields.operand_def(AnyView)
    offsets: Sequence[SSAValue] = fields.var_operand_def(IndexType)
    ring: SSAValue = fields.operand_def(AnyRing)
    slot: SSAValue = fields.operand_def(IndexType)
    traits = traits_def(HasEffects())
    effects = accesses(read=("view",), written=("ring",))
    assembly_format = "$view `[` $offsets `]` `,` $ring `[` $slot `]` attr-dict `:` type($view) `,` type($ring)"

    def verify_(self) -> None:
        check_copy(self.view, self.offsets, self.ring)


@irdl_op_definition
class CommitOp(DeclaredOp):
    """All copies begun since the last commit become one group."""

    name = "pipe.commit"
    traits = traits_def(HasEffects())
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        around(self, FuncOp, "a tile function")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {writes(MEMORY)}


@irdl_op_definition
class WaitOp(OrderedOp):
    """Waits until at most `pending` groups are under way. Tiles got from slots before are no longer read then."""

    name = "pipe.wait"
    pending: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$pending attr-dict"

    def verify_(self) -> None:
        around(self, FuncOp, "a tile function")
        if self.pending.value.data < 0:
            raise VerifyException(f"a number of groups is not negative, got {self.pending.value.data}")


@irdl_op_definition
class GetOp(DeclaredOp):
    """The tile in a slot."""

    name = "pipe.get"
    ring: SSAValue = fields.operand_def(AnyRing)
    slot: SSAValue = fields.operand_def(IndexType)
    result: OpResult = fields.result_def(AnyTile)
    traits = traits_def(HasEffects())
    effects = accesses(read=("ring",))
    assembly_format = "$ring `[` $slot `]` attr-dict `:` type($ring) `->` type($result)"

    def result_type(self) -> Attribute:
        return slot_type(self.ring)

    def verify_(self) -> None:
        if tile_type(self.result) != slot_type(self.ring):
            raise VerifyException(f"a ring of {slot_type(self.ring)} does not hold {self.result.type}")


OPS = ops_of(__name__)
