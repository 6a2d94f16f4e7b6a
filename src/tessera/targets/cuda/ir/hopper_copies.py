"""Ops of the nv level for sm_90a: copies by tensor maps, into and out of shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, UnitAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.attributes import IntegerConstraint, integer
from tessera.ir.common.checking import ops_of
from tessera.ir.common.effects import OrderedOp
from tessera.ir.tile.types import AnyView, check_axis, view_type
from tessera.targets.cuda.ir.dialect import function_of
from tessera.targets.cuda.ir.hopper import check_near
from tessera.targets.cuda.ir.hopper_types import AnyBarriers, AnyMap, MapAxesAttr, MapType, map_type
from tessera.targets.cuda.ir.types import AnyShared, SharedType, check_plain, shared_type

_i1 = IntegerType(1)
MOST_GROUPS = 7


@irdl_op_definition
class TensorMapOp(IRDLOperation):
    """A tensor map of an argument, which the host makes for each launch; `axes` say how it sees the array."""

    name = "nv.tensor_map"
    view = operand_def(AnyView)
    axes = prop_def(MapAxesAttr)
    result = result_def(AnyMap)
    traits = traits_def(Pure())
    assembly_format = "$view $axes attr-dict `:` type($view) `->` type($result)"

    def __init__(self, view: SSAValue, axes: Sequence[tuple[int, str, int]], result: MapType) -> None:
        super().__init__(operands=[view], properties={"axes": MapAxesAttr(tuple(axes))}, result_types=[result])

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
    map = operand_def(AnyMap)
    assembly_format = "$map attr-dict `:` type($map)"

    def __init__(self, map_: SSAValue) -> None:
        super().__init__(operands=[map_])


def _check_box(map_: SSAValue, offsets: Sequence[SSAValue], shared: SSAValue) -> None:
    made, there = map_type(map_), shared_type(shared)
    check_plain(there)
    if len(offsets) != len(made.box):
        raise VerifyException(f"{len(offsets)} offsets into {made}, which has {len(made.box)} axes")
    if len(there.shape) != 2 or there.element != made.element:
        raise VerifyException(f"expected one tile of {made.element} in shared memory, got {there}")
    if there.panel.data != (made.swizzle.data or 16) or made.bytes != there.panels * there.panel_bytes:
        raise VerifyException(f"a box of {made} does not fill {there}")


@irdl_op_definition
class TmaLoadOp(OrderedOp):
    """Begins to copy the box at `offsets` (innermost first) into shared memory; its bytes count at an mbarrier.

    What lies outside the array becomes zeros. With `multicast`, every block of the cluster whose bit is set gets it,
    at the same offset, and its mbarrier counts.
    """

    name = "nv.tma_load"
    map = operand_def(AnyMap)
    offsets = var_operand_def(i32)
    shared = operand_def(AnyShared)
    barriers = operand_def(AnyBarriers)
    number = operand_def(i32)
    multicast = opt_operand_def(i32)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$map `[` $offsets `]` `,` $shared `,` $barriers `[` $number `]` (`multicast` $multicast^)? attr-dict "
        "`:` type($map) `,` type($shared) `,` type($barriers)"
    )

    def __init__(
        self,
        map_: SSAValue,
        offsets: Sequence[SSAValue],
        shared: SSAValue,
        barriers: SSAValue,
        number: SSAValue,
        multicast: SSAValue | None = None,
    ) -> None:
        super().__init__(operands=[map_, offsets, shared, barriers, number, multicast])

    def verify_(self) -> None:
        check_near(self.barriers)
        _check_box(self.map, self.offsets, self.shared)


@irdl_op_definition
class TmaStoreOp(OrderedOp):
    """Begins to copy a tile from shared memory to the box at `offsets`, without a branch only where the condition
    holds; what lies outside the array is left out."""

    name = "nv.tma_store"
    shared = operand_def(AnyShared)
    map = operand_def(AnyMap)
    offsets = var_operand_def(i32)
    condition = opt_operand_def(_i1)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$shared `,` $map `[` $offsets `]` (`if` $condition^)? attr-dict `:` type($shared) `,` type($map)"

    def __init__(
        self, shared: SSAValue, map_: SSAValue, offsets: Sequence[SSAValue], condition: SSAValue | None = None
    ) -> None:
        super().__init__(operands=[shared, map_, offsets, condition])

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
    pending = prop_def(IntegerConstraint)
    read = opt_prop_def(UnitAttr)
    assembly_format = "$pending (`read` $read^)? attr-dict"

    def __init__(self, pending: int, *, read: bool = False) -> None:
        super().__init__(properties={"pending": integer(pending), "read": UnitAttr() if read else None})

    def verify_(self) -> None:
        if not 0 <= self.pending.value.data <= MOST_GROUPS:
            raise VerifyException(
                f"expected 0 to {MOST_GROUPS} groups that are under way, got {self.pending.value.data}"
            )


@irdl_op_definition
class RecastOp(IRDLOperation):
    """The same shared memory seen as tiles of other sizes: the same rows, or rows of one panel.

    Columns that were paired may be seen as they lie, and the other way round.
    """

    name = "nv.recast"
    shared = operand_def(AnyShared)
    result = result_def(AnyShared)
    traits = traits_def(Pure())
    assembly_format = "$shared attr-dict `:` type($shared) `->` type($result)"

    def __init__(self, shared: SSAValue, result: SharedType) -> None:
        super().__init__(operands=[shared], result_types=[result])

    def verify_(self) -> None:
        before, after = shared_type(self.shared), shared_type(self.result)
        alike = (before.element, before.panel, before.size) == (after.element, after.panel, after.size)
        if not alike or (before.rows != after.rows and (before.panels, after.panels) != (1, 1)):
            raise VerifyException(f"{before} cannot be seen as {after}")


OPS = ops_of(__name__)
