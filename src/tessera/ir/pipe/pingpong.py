"""Ping-pong barriers: consumers issue their dots one after the other, in a ring.

Dots of several consumers that begin at the same time end at the same time, too; then all of them compute, and nothing
multiplies. Consumers that begin their dots one after the other compute while others multiply.
"""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.checking import ops_of
from tessera.ir.common.effects import OrderedOp
from tessera.ir.pipe.warp_groups import is_in_consumer


class _PingpongOp(OrderedOp):
    """A step at a ping-pong barrier. No access to memory moves across it."""

    assembly_format = "attr-dict"

    def verify_(self) -> None:
        if not is_in_consumer(self):
            raise VerifyException("only consumers have ping-pong barriers")


@irdl_op_definition
class PingpongWaitOp(_PingpongOp):
    """Waits until the consumer before this one has arrived. Consumer 0 goes first without waiting."""

    name = "pipe.pingpong_wait"


@irdl_op_definition
class PingpongArriveOp(_PingpongOp):
    """Lets the next consumer go on; the last one lets consumer 0."""

    name = "pipe.pingpong_arrive"


OPS = ops_of(__name__)
