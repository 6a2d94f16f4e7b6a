"""How passes write Tile IR: each call adds an op of `ir/tile/` and gives its value, so that calls nest."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.rewriting import insert_before


class Ops:
    """Ops in a list, which `rewriting.replace` puts in place of another; or each at once in front of one, `before`."""

    def __init__(self, before: Operation | None = None) -> None:
        self.before = before
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        if self.before is None:
            self.ops.append(op)
        else:
            insert_before(self.before, [op])
        return op.results[0]

    def index(self, number: int) -> SSAValue:
        """A whole number."""
        return self.add(arith.ConstantOp(IntegerAttr(number, IndexType())))


class TileOps(Ops):
    """Ops on tiles."""

    def ew(self, fn: str, *operands: SSAValue) -> SSAValue:
        return self.add(tile.EwOp(fn, operands))

    def cast(self, value: SSAValue, dtype: DType) -> SSAValue:
        """A tile in an element type, with its policy for the rounding; one that has the type stays as it is."""
        return value if tile_dtype(value) is dtype.base else self.add(tile.EwOp("cast", [value], to=dtype))

    def spread(self, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        """A tile of a larger size along the axes where it has size 1."""
        return value if tile_type(value).get_shape() == shape else self.add(tile.BroadcastOp(value, shape))

    def folded(self, kind: str, value: SSAValue, axis: int) -> SSAValue:
        """A reduction along an axis, which stays with size 1."""
        return self.add(tile.ExpandOp(self.add(tile.ReduceOp(kind, value, axis)), axis))

    def filled(self, number: float, like: SSAValue) -> SSAValue:
        """A tile of one number of f32, as large as another."""
        scalar = self.add(arith.ConstantOp(FloatAttr(number, Float32Type())))
        return self.add(tile.FullOp(scalar, tile_type(like).get_shape()))

    def multiple(self, value: SSAValue, number: float) -> SSAValue:
        return value if number == 1.0 else self.ew("mul", value, self.filled(number, value))
