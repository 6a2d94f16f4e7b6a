"""Transposes in shared memory: tiles that lie row by row in one ring come out of another column by column.

Dots read some operands only along the depth. Where memory has them the other way round, a warp group of its own stands
between the producer and the consumers: it waits for a tile, and puts its transpose into another ring.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import DeclaredOp
from tessera.ir.common.effects import HasEffects
from tessera.ir.pipe.copies import AnyRing, slot_type
from tessera.ir.pipe.warp_groups import AnyPipelineState, check_state, is_in_preparer
from tessera.ir.tile.dialect import accesses


@irdl_op_definition
class TransposeSmemOp(DeclaredOp):
    """Waits until a tile has been copied, and until consumers have released the same slot of `transposed`.

    The tile's transpose is there then, and its own slot is free.
    """

    name = "pipe.transpose_smem"
    ring: SSAValue = fields.operand_def(AnyRing)
    transposed: SSAValue = fields.operand_def(AnyRing)
    state: SSAValue = fields.operand_def(AnyPipelineState)
    traits = traits_def(HasEffects())
    effects = accesses(read=("ring",), written=("ring", "transposed"))
    assembly_format = (
        "$ring `,` $transposed `[` $state `]` attr-dict `:` type($ring) `,` type($transposed) `,` type($state)"
    )

    def verify_(self) -> None:
        check_state(self.ring, self.state)
        check_state(self.transposed, self.state)
        if not is_in_preparer(self):
            raise VerifyException("tiles are transposed by the partition `preparer`")
        before, after = slot_type(self.ring), slot_type(self.transposed)
        if before.get_num_dims() != 2 or after != TensorType(before.element_type, before.get_shape()[::-1]):
            raise VerifyException(f"{before} transposed is not {after}")


def is_transposed_from(ring: SSAValue) -> bool:
    """Whether the tiles of a ring are transposed into another; consumers read that one then."""
    return any(isinstance(use.operation, TransposeSmemOp) and use.index == 0 for use in ring.uses)


def is_transposed_into(ring: SSAValue) -> bool:
    """Whether a ring gets its tiles by being transposed from another."""
    return any(isinstance(use.operation, TransposeSmemOp) and use.index == 1 for use in ring.uses)


OPS = ops_of(__name__)
