"""Ops of the nv level for sm_90a: transposes of tiles of 8 bits in shared memory."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import declared_ops as fields
from tessera.ir.common.checking import ops_of
from tessera.ir.common.declared_ops import DeclaredOp
from tessera.ir.common.effects import HasEffects
from tessera.ir.tile.dialect import accesses
from tessera.targets.cuda.ir.types import AnyShared, check_plain, shared_type
from tessera.targets.cuda.ir.wgmma import PANEL

ROWS, COLUMNS = 32, 16
"""The part of a tile that four matrices of 8 by 8 pairs of bytes are."""


@irdl_op_definition
class TransposeSmemOp(DeclaredOp):
    """Puts the transpose of a tile of 8 bits into other shared memory, its columns in the order that they have there.

    The threads of a warpgroup do so together.
    """

    name = "nv.transpose_smem"
    shared: SSAValue = fields.operand_def(AnyShared)
    transposed: SSAValue = fields.operand_def(AnyShared)
    traits = traits_def(HasEffects())
    effects = accesses(read=("shared",), written=("transposed",))
    assembly_format = "$shared `,` $transposed attr-dict `:` type($shared) `,` type($transposed)"

    def verify_(self) -> None:
        before, after = shared_type(self.shared), shared_type(self.transposed)
        check_plain(before)
        alike = before.element == after.element and (before.panel.data, after.panel.data) == (PANEL, PANEL)
        if not alike or len(before.shape) != 2 or before.shape != after.shape[::-1]:
            raise VerifyException(f"{before} transposed is not {after}: expected panels of {PANEL} bytes")
        if before.itemsize != 1 or before.rows % ROWS or before.columns % COLUMNS:
            raise VerifyException(f"{ROWS}·n rows of {COLUMNS}·n columns of 8 bits are transposed, not {before}")


OPS = ops_of(__name__)
