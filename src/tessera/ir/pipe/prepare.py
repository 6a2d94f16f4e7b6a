"""Prepared operands: warp groups that compute operands of dots, and put them into rings for the consumers.

Dots read right operands from shared memory only. Where one is computed of tiles that are loaded, such as weights of few
bits with their scales, warp groups of their own stand between the producer and the consumers: they wait for tiles as
consumers do, and write what they make of them into another ring.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import DeclaredOp
from tessera.ir.common.effects import HasEffects
from tessera.ir.pipe.copies import AnyRing, slot_type
from tessera.ir.pipe.warp_groups import AnyPipelineState, ConsumerWaitOp, check_state, is_in_preparer
from tessera.ir.tile.dialect import accesses
from tessera.ir.tile.types import AnyTile, tile_type


@irdl_op_definition
class ProducerWriteOp(DeclaredOp):
    """Waits until all consumers have released a slot (producer acquire), and puts a tile into it: it is there then."""

    name = "pipe.producer_write"
    value: SSAValue = fields.operand_def(AnyTile)
    ring: SSAValue = fields.operand_def(AnyRing)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    traits = traits_def(HasEffects())
    effects = accesses(written=("ring",))
    assembly_format = "$value `,` $ring `[` $state `]` attr-dict `:` type($value) `,` type($ring) `,` type($state)"

    def verify_(self) -> None:
        check_state(self.ring, self.state)
        if not is_in_preparer(self):
            raise VerifyException("operands are computed by the partition `preparer`")
        if tile_type(self.value) != slot_type(self.ring):
            raise VerifyException(f"a ring of {slot_type(self.ring)} does not hold {tile_type(self.value)}")


def is_prepared(ring: SSAValue) -> bool:
    """Whether the tiles of a ring are computed, and not copied or transposed."""
    return any(isinstance(use.operation, ProducerWriteOp) for use in ring.uses)


def feeds_preparer(ring: SSAValue) -> bool:
    """Whether the preparer reads a ring."""
    waits = [use.operation for use in ring.uses if isinstance(use.operation, ConsumerWaitOp)]
    return any(is_in_preparer(op) for op in waits)


OPS = ops_of(__name__)
