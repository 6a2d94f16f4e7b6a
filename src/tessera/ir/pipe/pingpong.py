"""Ping-pong barriers: consumers issue their dots one after the other, in a ring.

Dots of several consumers that begin at the same time end at the same time, too; then all of them compute, and nothing
multiplies. Consumers that begin their dots one after the other compute while others multiply.
"""

from __future__ import annotations

from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.effects import Synchronizing
from tessera.ir.pipe.warp_groups import is_in_consumer


class _PingpongOp(Synchronizing):
    """A step at a ping-pong barrier."""

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()

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


OPS: tuple[type[IRDLOperation], ...] = (PingpongWaitOp, PingpongArriveOp)
