"""The dynamic tile scheduler: persistent CTAs fetch the next program instance when they are done with the last.

The producer comes to a new instance first: it fetches the number, and hands it to the consumers through a work queue,
which has pipeline states as rings have. A CTA's first instance has its own number; those that are fetched follow.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import OpResult, SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import GIVEN, DeclaredOp
from tessera.ir.common.effects import OrderedOp
from tessera.ir.pipe.warp_groups import (
    AnyPipelineState,
    AnyWorkQueue,
    WorkQueueType,
    check_persistent,
    check_state,
    is_in_producer,
)


@irdl_op_definition
class WorkQueueOp(DeclaredOp):
    """Slots for numbers of program instances, with nothing in them."""

    name = "pipe.work_queue"
    result: OpResult = fields.result_def(AnyWorkQueue, converter=GIVEN)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, depth: int) -> None:
        super().__init__(WorkQueueType(depth))


class _SchedulerOp(OrderedOp):
    """The number of a program instance, at a slot of a work queue."""

    work_queue: SSAValue = fields.operand_def(AnyWorkQueue)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    result: OpResult = fields.result_def(IndexType)
    assembly_format = "$work_queue `[` $state `]` attr-dict `:` type($work_queue) `,` type($state)"

    def verify_(self) -> None:
        check_state(self.work_queue, self.state)


@irdl_op_definition
class SchedulerFetchOp(_SchedulerOp):
    """Waits until all consumers have read a slot, fetches the next number, and puts it there.

    No two fetches of any CTAs give the same number. The first is the number of CTAs; they go on by one, also behind the
    last program instance.
    """

    name = "pipe.scheduler_fetch"

    def verify_(self) -> None:
        super().verify_()
        check_persistent(self)
        if not is_in_producer(self):
            raise VerifyException("the producer fetches for all")


@irdl_op_definition
class SchedulerReadOp(_SchedulerOp):
    """Waits until the number of a slot has been fetched, and gives it. Reading it releases the slot, too."""

    name = "pipe.scheduler_read"

    def verify_(self) -> None:
        super().verify_()
        if is_in_producer(self):
            raise VerifyException("the producer has the number from pipe.scheduler_fetch")


OPS = ops_of(__name__)
