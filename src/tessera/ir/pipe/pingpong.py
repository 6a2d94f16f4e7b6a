"""Agents that do something one after the other: there is one place for all of them, and they hand it on in a ring.

Products of several agents that begin at the same time end at the same time, too; then all of them compute, and nothing
multiplies. Agents that begin their products one after the other compute while others multiply.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def
from xdsl.traits import EffectInstance
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.effects import MEMORY, HasEffects, reads, writes
from tessera.ir.pipe.warp_groups import computes


class _PlaceOp(IRDLOperation):
    """What has to do with the place: nothing moves from one side of it to the other."""

    traits = traits_def(HasEffects())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()

    def verify_(self) -> None:
        if not computes(self):
            raise VerifyException("only agents that compute have a place in the order")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


@irdl_op_definition
class AwaitPlaceOp(_PlaceOp):
    """Waits until this agent has the place. Agent 0 has it first."""

    name = "pipe.await_place"


@irdl_op_definition
class PassPlaceOp(_PlaceOp):
    """Hands the place, which this agent has waited for, to the next one; the last hands it to agent 0."""

    name = "pipe.pass_place"


OPS: tuple[type[IRDLOperation], ...] = (AwaitPlaceOp, PassPlaceOp)
