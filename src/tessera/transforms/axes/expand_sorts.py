"""expand-sorts: sorting becomes a network of compares, whole tiles at a time, of elements that are taken crosswise.

For targets that have no code of their own for it.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tessera.dtypes.types import i64
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.folding import materialize
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace
from tessera.transforms.core.tile_ops import TileOps


def expand_sorts(function: tile.FuncOp) -> None:
    """Rewrites all sorts of a function."""
    for op in [one for one in function.body.walk() if isinstance(one, tile.SortOp)]:
        if tile_type(op.operand).get_shape()[op.axis.value.data] > 1:
            replace(op, _Network(op).ops)
        else:
            op.result.replace_all_uses_with(op.operand)
            op.detach()
            op.erase()


ExpandSorts = function_pass("expand-sorts", expand_sorts)


class _Network(TileOps):
    """The ops of one sort, the last of which gives its result."""

    def __init__(self, op: tile.SortOp) -> None:
        super().__init__()
        self.shape, self.along = tile_type(op.operand).get_shape(), op.axis.value.data
        self.extent = self.shape[self.along]
        zero, places = self.index(0), tile_of(self.shape, i64)
        self.at = [self.add(tile.IotaOp(zero, axis, places)) for axis in range(len(self.shape))]
        self.largest = self._cast_full(int(tile_dtype(op.operand).max_value), op.operand)
        value, run = op.operand, 1
        while run < self.extent:
            value = self._step(value, 2 * run - 1, run)
            reach = run // 2
            while reach:
                value = self._step(value, reach, reach)
                reach //= 2
            run *= 2

    def _full(self, number: int) -> SSAValue:
        return self.add(tile.FullOp(self.add(materialize(number, element_of(i64))), self.shape))

    def _cast_full(self, number: int, like: SSAValue) -> SSAValue:
        # Scalars are signed: the same bits, taken for unsigned ones.
        return self.cast(self._full(number if number < 1 << 63 else number - (1 << 64)), tile_dtype(like))

    def _step(self, value: SSAValue, mask: int, top: int) -> SSAValue:
        """Each element meets the one whose position differs in these bits; what would lie behind the end is larger."""
        position = self.at[self.along]
        partner = self.ew("xor", position, self._full(mask))
        is_lower = self.ew("eq", self.ew("and", position, self._full(top)), self._full(0))
        other = self.add(tile.TakeOp(value, [*self.at[: self.along], partner, *self.at[self.along + 1 :]]))
        if self.extent & (self.extent - 1):
            other = self.ew("select", self.ew("lt", partner, self._full(self.extent)), other, self.largest)
        return self.ew("select", is_lower, self.ew("min", value, other), self.ew("max", value, other))
