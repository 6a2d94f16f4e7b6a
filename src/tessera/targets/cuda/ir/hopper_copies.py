"""Ops of the nv level for sm_90a: copies by tensor maps, into and out of shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.ir import OpResult, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, irdl_op_definition, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, integer
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag
from tessera.ir.common.effects import OrderedOp
from tessera.ir.tile.types import AnyView, check_axis, view_type
from tessera.targets.cuda.ir.dialect import function_of
from tessera.targets.cuda.ir.hopper import check_near
from tessera.targets.cuda.ir.hopper_types import AnyBarriers, AnyMap, MapAxesAttr, map_type
from tessera.targets.cuda.ir.types import AnyShared, check_plain, shared_type

_i1 = IntegerType(1)
MOST_GROUPS = 7


@irdl_op_definition
class TensorMapOp(DeclaredOp):
    """A tensor map of an argument, which the host makes for each launch; `axes` say how it sees the array."""

    name = "nv.tensor_map"
    view: SSAValue = fields.operand_def(AnyView)
    axes: MapAxesAttr = fields.prop_def(MapAxesAttr, converter=MapAxesAttr)
    result: OpResult = fields.result_def(AnyMap, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$view $axes attr-dict `:` type($view) `->` type($result)"

    def verify_(self) -> None:
        seen, made = view_type(self.view), map_type(self.result)
        if len(self.axes.data) != len(made.box):
            raise VerifyException(f"{len(self.axes.data)} axes for {made}, which has {len(made.box)}")
        if seen.element != made.element:
            raise VerifyException(f"the view holds {seen.element}, the map {made.element}")
        for axis, _, step in self.axes.data:
            check_axis(axis, seen.rank.data)
            if step < 1:
                raise VerifyException(f"an axis is split into steps of at least 1, got {step}")


@irdl_op_definition
class PrefetchOp(OrderedOp):
    """Brings a tensor map into the cache that copies read it from."""

    name = "nv.prefetch"
    map: SSAValue = fields.operand_def(AnyMap)
    assembly_format = "$map attr-dict `:` type($map)"


def _check_box(map_: SSAValue, offsets: Sequence[SSAValue], shared: SSAValue, *, is_part: bool = False) -> None:
    made, there = map_type(map_), shared_type(shared)
    check_plain(there)
    if len(offsets) != len(made.box):
        raise VerifyException(f"{len(offsets)} offsets into {made}, which has {len(made.box)} axes")
    if len(there.shape) != 2 or there.element != made.element:
        raise VerifyException(f"expected one tile of {made.element} in shared memory, got {there}")
    if is_part:
        fills = there.panels == 1 and made.bytes <= there.panel_bytes and made.bytes % there.panel.data == 0
    else:
        fills = made.bytes == there.panels * there.panel_bytes
    if there.panel.data != (made.swizzle.data or 16) or not fills:
        raise VerifyException(f"a box of {made} does not fill {there}")


@irdl_op_definition
class TmaLoadOp(OrderedOp):
    """Begins to copy the box at `offsets` (innermost first) into shared memory; its bytes count at an mbarrier.

    What lies outside the array becomes zeros. A box may be some rows of a panel, from `row` on. With `multicast`, every
    block of the cluster whose bit is set gets it, at the same offset, and its mbarrier counts.
    """

    name = "nv.tma_load"
    map: SSAValue = fields.operand_def(AnyMap)
    offsets: Sequence[SSAValue] = fields.var_operand_def(i32)
    shared: SSAValue = fields.operand_def(AnyShared)
    barriers: SSAValue = fields.operand_def(AnyBarriers)
    number: SSAValue = fields.operand_def(i32)
    row: SSAValue | None = fields.opt_operand_def(i32, default=None)
    multicast: SSAValue | None = fields.opt_operand_def(i32, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$map `[` $offsets `]` `,` $shared (`row` $row^)? `,` $barriers `[` $number `]` "
        "(`multicast` $multicast^)? attr-dict `:` type($map) `,` type($shared) `,` type($barriers)"
    )

    def verify_(self) -> None:
        check_near(self.barriers)
        _check_box(self.map, self.offsets, self.shared, is_part=self.row is not None)


@irdl_op_definition
class TmaStoreOp(OrderedOp):
    """Begins to copy a tile from shared memory to the box at `offsets`, without a branch only where the condition
    holds; what lies outside the array is left out."""

    name = "nv.tma_store"
    shared: SSAValue = fields.operand_def(AnyShared)
    map: SSAValue = fields.operand_def(AnyMap)
    offsets: Sequence[SSAValue] = fields.var_operand_def(i32)
    condition: SSAValue | None = fields.opt_operand_def(_i1, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$shared `,` $map `[` $offsets `]` (`if` $condition^)? attr-dict `:` type($shared) `,` type($map)"

    def verify_(self) -> None:
        _check_box(self.map, self.offsets, self.shared)


@irdl_op_definition
class TmaCommitOp(OrderedOp):
    """This thread's copies out since the last commit become one group."""

    name = "nv.tma_commit"
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        function_of(self)


@irdl_op_definition
class TmaWaitOp(OrderedOp):
    """Waits until at most `pending` groups of this thread are under way, or, with `read`, still read shared memory."""

    name = "nv.tma_wait"
    pending: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    read: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    assembly_format = "$pending (`read` $read^)? attr-dict"

    def verify_(self) -> None:
        if not 0 <= self.pending.value.data <= MOST_GROUPS:
            raise VerifyException(
                f"expected 0 to {MOST_GROUPS} groups that are under way, got {self.pending.value.data}"
            )


@irdl_op_definition
class RecastOp(DeclaredOp):
    """The same shared memory seen as tiles of other sizes: the same rows, or rows of one panel.

    Columns that were paired may be seen as they lie, and the other way round.
    """

    name = "nv.recast"
    shared: SSAValue = fields.operand_def(AnyShared)
    result: OpResult = fields.result_def(AnyShared, converter=GIVEN)
    traits = traits_def(Pure())
    assembly_format = "$shared attr-dict `:` type($shared) `->` type($result)"

    def verify_(self) -> None:
        before, after = shared_type(self.shared), shared_type(self.result)
        alike = (before.element, before.panel, before.size) == (after.element, after.panel, after.size)
        if not alike or (before.rows != after.rows and (before.panels, after.panels) != (1, 1)):
            raise VerifyException(f"{before} cannot be seen as {after}")


OPS = ops_of(__name__)
