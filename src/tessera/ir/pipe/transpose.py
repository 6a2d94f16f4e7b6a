"""Tiles that are turned on their way: what lies row by row in one ring comes out of another column by column.

Products read some factors only along the depth. Where memory has them the other way round, an agent of its own stands
between the one that copies and those that compute: it takes what has arrived, and puts its transpose into another ring.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, traits_def
from xdsl.traits import EffectInstance
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.effects import MEMORY, HasEffects, reads, writes
from tessera.ir.pipe.copies import AnyRing, slot_type
from tessera.ir.pipe.warp_groups import AnyCursor, check_cursor, roles_around


@irdl_op_definition
class TurnOp(IRDLOperation):
    """Waits until a turn's tile has been copied, and until all have released what was in the same turn of `turned`.

    The tile's transpose is there then, and its own slot is free.
    """

    name = "pipe.turn"
    ring = operand_def(AnyRing)
    turned = operand_def(AnyRing)
    cursor = operand_def(AnyCursor)
    traits = traits_def(HasEffects())
    assembly_format = "$ring `,` $turned `[` $cursor `]` attr-dict `:` type($ring) `,` type($turned) `,` type($cursor)"

    def __init__(self, ring: SSAValue, turned: SSAValue, cursor: SSAValue) -> None:
        super().__init__(operands=[ring, turned, cursor])

    def verify_(self) -> None:
        check_cursor(self.ring, self.cursor)
        check_cursor(self.turned, self.cursor)
        turns = roles_around(self).turns
        if turns is None or not turns.is_ancestor(self):
            raise VerifyException("tiles are turned by the agent that turns")
        before, after = slot_type(self.ring), slot_type(self.turned)
        if before.get_num_dims() != 2 or after != TensorType(before.element_type, before.get_shape()[::-1]):
            raise VerifyException(f"{before} turned is not {after}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY, self.ring), writes(MEMORY, self.ring), writes(MEMORY, self.turned)}


def is_turned_from(ring: SSAValue) -> bool:
    """Whether what is filled into a ring is turned, and nobody else takes it."""
    return any(isinstance(use.operation, TurnOp) and use.index == 0 for use in ring.uses)


def is_turned_into(ring: SSAValue) -> bool:
    """Whether a ring is filled by the agent that turns."""
    return any(isinstance(use.operation, TurnOp) and use.index == 1 for use in ring.uses)


OPS: tuple[type[IRDLOperation], ...] = (TurnOp,)
