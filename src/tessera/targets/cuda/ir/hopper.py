"""Ops of the nv level for sm_90a: warp groups, barriers that count bytes, clusters, memory of tile schedulers.

Each is one instruction or a fixed group of them. Copies are in `hopper_copies`, dots in `wgmma`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.attributes import IntegerConstraint, Name, integer
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp, flag
from tessera.ir.common.effects import OrderedOp
from tessera.targets.cuda.ir.dialect import function_of
from tessera.targets.cuda.ir.hopper_types import AnyBarriers, AnyWords, BarriersType, WordsType, barriers_type

_i1 = IntegerType(1)
IDS = ("thread", "lane", "warp", "warpgroup", "block", "blocks", "rank")
MOST_ARRIVALS = (1 << 20) - 1
MOST_COUNTERS = 16


# Numbers of threads


@irdl_op_definition
class IdOp(DeclaredOp):
    """A number of this thread, or a count.

    `thread`, `warp` and `warpgroup` are numbers in the block, `lane` in the warp, `block` in the grid, `rank` that of
    the block in its cluster; `blocks` says how many blocks there are. `warpgroup` is the same for all threads of a warp
    as the machine sees it: branches on it are not divergent.
    """

    name = "nv.id"
    kind: Name = fields.prop_def(Name, converter=Name)
    result: OpResult = fields.result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "`` $kind attr-dict"

    def verify_(self) -> None:
        if self.kind.data not in IDS:
            raise VerifyException(f"expected one of {', '.join(IDS)}, got {self.kind.data}")


@irdl_op_definition
class ExtentOp(DeclaredOp):
    """The number of program instances along an axis of the grid. Blocks of a persistent kernel share them."""

    name = "nv.extent"
    axis: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    result: OpResult = fields.result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def verify_(self) -> None:
        rank = len(function_of(self).grid.data)
        if not 0 <= self.axis.value.data < rank:
            raise VerifyException(f"axis {self.axis.value.data} of a grid that has {rank}")


@irdl_op_definition
class SetmaxnregOp(OrderedOp):
    """Gives registers back (`dec`) or takes more (`inc`): from here on each thread of the warpgroup has so many."""

    name = "nv.setmaxnreg"
    direction: Name = fields.prop_def(Name, converter=Name)
    count: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "`` $direction $count attr-dict"

    def verify_(self) -> None:
        if self.direction.data not in ("inc", "dec"):
            raise VerifyException(f"expected inc or dec, got {self.direction.data}")
        if not 24 <= self.count.value.data <= 256 or self.count.value.data % 8:
            raise VerifyException(f"a thread has 24 to 256 registers, in steps of 8, not {self.count.value.data}")


@irdl_op_definition
class AdvanceOp(DeclaredOp):
    """The next slot of a ring and its phase: behind the last slot comes the first, in the other phase."""

    name = "nv.advance"
    slot: SSAValue = fields.operand_def(i32)
    phase: SSAValue = fields.operand_def(i32)
    depth: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    next_slot: OpResult = fields.result_def(i32)
    next_phase: OpResult = fields.result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$slot `,` $phase `,` $depth attr-dict"

    def verify_(self) -> None:
        if self.depth.value.data < 1:
            raise VerifyException(f"a ring has at least one slot, not {self.depth.value.data}")


# Barriers


@irdl_op_definition
class MbarriersOp(DeclaredOp):
    """Mbarriers in shared memory, not initialised yet."""

    name = "nv.mbarriers"
    result: OpResult = fields.result_def(AnyBarriers, converter=GIVEN)
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        check_near(self.result)

    @property
    def shared_bytes(self) -> int:
        return 8 * barriers_type(self.result).count.data

    @property
    def shared_align(self) -> int:
        return 8


def check_near(barriers: SSAValue) -> None:
    if barriers_type(barriers).scope.data != "block":
        raise VerifyException(f"expected mbarriers of this block, got {barriers.type}")


@irdl_op_definition
class MbarrierInitOp(OrderedOp):
    """Initialises mbarriers: a phase of each ends with so many arrivals. One thread does it, and fences."""

    name = "nv.mbarrier_init"
    barriers: SSAValue = fields.operand_def(AnyBarriers)
    arrivals: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$barriers `,` $arrivals attr-dict `:` type($barriers)"

    def verify_(self) -> None:
        check_near(self.barriers)
        if not 1 <= self.arrivals.value.data <= MOST_ARRIVALS:
            raise VerifyException(f"expected 1 to {MOST_ARRIVALS} arrivals, got {self.arrivals.value.data}")


@irdl_op_definition
class MbarrierWaitOp(OrderedOp):
    """Waits until the phase of this parity has ended."""

    name = "nv.mbarrier_wait"
    barriers: SSAValue = fields.operand_def(AnyBarriers)
    number: SSAValue = fields.operand_def(i32)
    parity: SSAValue = fields.operand_def(i32)
    assembly_format = "$barriers `[` $number `]` `,` $parity attr-dict `:` type($barriers)"

    def verify_(self) -> None:
        check_near(self.barriers)


@irdl_op_definition
class MbarrierArriveOp(OrderedOp):
    """Arrives at an mbarrier, without a branch only where the condition holds; it may be another block's."""

    name = "nv.mbarrier_arrive"
    barriers: SSAValue = fields.operand_def(AnyBarriers)
    number: SSAValue = fields.operand_def(i32)
    condition: SSAValue | None = fields.opt_operand_def(_i1, default=None)
    assembly_format = "$barriers `[` $number `]` (`if` $condition^)? attr-dict `:` type($barriers)"


@irdl_op_definition
class MbarrierExpectOp(OrderedOp):
    """Arrives at an mbarrier, whose phase then ends only when so many bytes have been copied, too."""

    name = "nv.mbarrier_expect"
    barriers: SSAValue = fields.operand_def(AnyBarriers)
    number: SSAValue = fields.operand_def(i32)
    bytes: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$barriers `[` $number `]` `,` $bytes attr-dict `:` type($barriers)"

    def verify_(self) -> None:
        check_near(self.barriers)
        if not 1 <= self.bytes.value.data <= MOST_ARRIVALS:
            raise VerifyException(f"expected 1 to {MOST_ARRIVALS} bytes, got {self.bytes.value.data}")


@irdl_op_definition
class FenceOp(OrderedOp):
    """`init`: other blocks see initialised mbarriers. `async`: copies and dots see what threads wrote."""

    name = "nv.fence"
    kind: Name = fields.prop_def(Name, converter=Name)
    assembly_format = "`` $kind attr-dict"

    def verify_(self) -> None:
        if self.kind.data not in ("init", "async"):
            raise VerifyException(f"expected init or async, got {self.kind.data}")


class _NamedBarrierOp(OrderedOp):
    """A step at a named barrier, where so many threads come."""

    number: SSAValue = fields.operand_def(i32)
    threads: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$number `,` $threads attr-dict"

    def verify_(self) -> None:
        threads = self.threads.value.data
        if threads < 32 or threads % 32 or threads > 1024:
            raise VerifyException(f"whole warps meet at a barrier, at most 1024 threads, not {threads}")


@irdl_op_definition
class BarrierSyncOp(_NamedBarrierOp):
    """Waits at a named barrier until so many threads have come, or announced that they need not wait."""

    name = "nv.barrier_sync"


@irdl_op_definition
class BarrierArriveOp(_NamedBarrierOp):
    """Counts as having come to a named barrier, and goes on."""

    name = "nv.barrier_arrive"


@irdl_op_definition
class WarpSyncOp(OrderedOp):
    """The threads of a warp wait for each other, and see each other's memory."""

    name = "nv.warp_sync"
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        function_of(self)


@irdl_op_definition
class ClusterSyncOp(OrderedOp):
    """All threads of the cluster wait for each other. `aligned`: warps come as a whole."""

    name = "nv.cluster_sync"
    aligned: UnitAttr | None = fields.opt_prop_def(UnitAttr, converter=flag, default=False)
    assembly_format = "(`aligned` $aligned^)? attr-dict"

    def verify_(self) -> None:
        if "cluster" not in function_of(self).attributes:
            raise VerifyException("blocks of this function have no cluster: give it the attribute `cluster`")


@irdl_op_definition
class MapaOp(DeclaredOp):
    """The same mbarriers in the block of another rank of the cluster."""

    name = "nv.mapa"
    barriers: SSAValue = fields.operand_def(AnyBarriers)
    rank: SSAValue = fields.operand_def(i32)
    result: OpResult = fields.result_def(AnyBarriers)
    traits = traits_def(Pure())
    assembly_format = "$barriers `,` $rank attr-dict `:` type($barriers) `->` type($result)"

    def result_type(self) -> Attribute:
        return BarriersType(barriers_type(self.barriers).count, "cluster")

    def verify_(self) -> None:
        check_near(self.barriers)
        if self.result.type != self.result_type():
            raise VerifyException(f"{self.barriers.type} in another block is not {self.result.type}")


# Tile schedulers


@irdl_op_definition
class WordsOp(DeclaredOp):
    """Words in shared memory, with nothing in them."""

    name = "nv.words"
    result: OpResult = fields.result_def(AnyWords, converter=GIVEN)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, count: int) -> None:
        super().__init__(WordsType(count))

    @property
    def shared_bytes(self) -> int:
        assert isinstance(self.result.type, WordsType)
        return 4 * self.result.type.count.data

    @property
    def shared_align(self) -> int:
        return 4


@irdl_op_definition
class PutOp(OrderedOp):
    """Writes a word."""

    name = "nv.put"
    value: SSAValue = fields.operand_def(i32)
    words: SSAValue = fields.operand_def(AnyWords)
    number: SSAValue = fields.operand_def(i32)
    assembly_format = "$value `,` $words `[` $number `]` attr-dict `:` type($words)"


@irdl_op_definition
class GetOp(OrderedOp):
    """Reads a word."""

    name = "nv.get"
    words: SSAValue = fields.operand_def(AnyWords)
    number: SSAValue = fields.operand_def(i32)
    result: OpResult = fields.result_def(i32)
    assembly_format = "$words `[` $number `]` attr-dict `:` type($words)"


def _check_counter(number: int) -> None:
    if not 0 <= number < MOST_COUNTERS:
        raise VerifyException(f"counters have the numbers 0 to {MOST_COUNTERS - 1}, not {number}")


@irdl_op_definition
class CountOp(OrderedOp):
    """Adds to a counter of the launch, which began with 0, and gives what it was before."""

    name = "nv.count"
    counter: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    amount: SSAValue = fields.operand_def(i32)
    result: OpResult = fields.result_def(i32)
    assembly_format = "$counter `,` $amount attr-dict"

    def verify_(self) -> None:
        _check_counter(self.counter.value.data)


@irdl_op_definition
class ResetOp(OrderedOp):
    """Sets a counter of the launch to 0 again: the next launch finds it so."""

    name = "nv.reset"
    counter: IntegerAttr = fields.prop_def(IntegerConstraint, converter=integer)
    assembly_format = "$counter attr-dict"

    def verify_(self) -> None:
        _check_counter(self.counter.value.data)


OPS = ops_of(__name__)
