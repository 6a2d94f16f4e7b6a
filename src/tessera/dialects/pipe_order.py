"""Agents one by one: what stands between `pipe.enter` and `pipe.leave` only one of them does at a time.

They enter in the order of their numbers, and then the first again. So all of them must enter equally often.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def
from xdsl.traits import EffectInstance
from xdsl.utils.exceptions import VerifyException

from tessera.dialects.effects import MEMORY, HasEffects, reads, writes
from tessera.dialects.pipe_agents import computes


class _Ordered(IRDLOperation):
    """An op that stays where it is among products and waits."""

    traits = traits_def(HasEffects())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()

    def verify_(self) -> None:
        if not computes(self):
            raise VerifyException("only those that compute go one by one")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


@irdl_op_definition
class EnterOp(_Ordered):
    """Waits until the agent before this one has left, as often as this one enters; before the first, the last one."""

    name = "pipe.enter"


@irdl_op_definition
class LeaveOp(_Ordered):
    """Lets the next agent enter."""

    name = "pipe.leave"


OPS: tuple[type[IRDLOperation], ...] = (EnterOp, LeaveOp)
