"""Programs by the draw: workers whose programs differ in length take the next one when they have done the last.

The agent that copies comes to a new program first: it draws the number, and hands it on to those that compute through a
mailbox, which has cursors as rings have. A worker's first program has its own number; those that are drawn follow.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import EffectInstance
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.effects import MEMORY, HasEffects, reads, writes
from tessera.ir.pipe.warp_groups import AnyCursor, AnyMailbox, MailboxType, check_cursor, check_worker, copies


@irdl_op_definition
class MailboxOp(IRDLOperation):
    """Slots for numbers, with nothing in them."""

    name = "pipe.mailbox"
    result = result_def(AnyMailbox)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, depth: int) -> None:
        super().__init__(result_types=[MailboxType(depth)])


@irdl_op_definition
class DrawOp(IRDLOperation):
    """Waits until all agents have read what was in a turn's slot, draws a number, and puts it there.

    No two draws give the same one, whichever workers they are of. The first is the number of workers; they go on by
    one, behind the last program, too: there are as many draws as somebody asks for.
    """

    name = "pipe.draw"
    mailbox = operand_def(AnyMailbox)
    cursor = operand_def(AnyCursor)
    result = result_def(IndexType)
    traits = traits_def(HasEffects())
    assembly_format = "$mailbox `[` $cursor `]` attr-dict `:` type($mailbox) `,` type($cursor)"

    def __init__(self, mailbox: SSAValue, cursor: SSAValue) -> None:
        super().__init__(operands=[mailbox, cursor], result_types=[IndexType()])

    def verify_(self) -> None:
        check_cursor(self.mailbox, self.cursor)
        check_worker(self)
        if not copies(self):
            raise VerifyException("the agent that copies draws for all")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


@irdl_op_definition
class DrawnOp(IRDLOperation):
    """Waits until a turn's number has been drawn, and gives it. This agent has read it then: nothing is released."""

    name = "pipe.drawn"
    mailbox = operand_def(AnyMailbox)
    cursor = operand_def(AnyCursor)
    result = result_def(IndexType)
    traits = traits_def(HasEffects())
    assembly_format = "$mailbox `[` $cursor `]` attr-dict `:` type($mailbox) `,` type($cursor)"

    def __init__(self, mailbox: SSAValue, cursor: SSAValue) -> None:
        super().__init__(operands=[mailbox, cursor], result_types=[IndexType()])

    def verify_(self) -> None:
        check_cursor(self.mailbox, self.cursor)
        if copies(self):
            raise VerifyException("the agent that copies knows what it has drawn")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


OPS: tuple[type[IRDLOperation], ...] = (MailboxOp, DrawOp, DrawnOp)
