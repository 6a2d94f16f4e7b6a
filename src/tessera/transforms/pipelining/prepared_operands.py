"""Right operands of dots that are computed of what all rows share: of loaded tiles, element by element.

Warp groups besides the consumers can compute them, once for all consumers: they need nothing that a consumer has.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.transforms.core.slices import operand_source
from tessera.transforms.pipelining.make_async import feeds_dots, is_transposed, why_not_copied

_PREPARES = (
    tile.EwOp,
    tile.BroadcastOp,
    tile.ExpandOp,
    tile.UnpackOp,
    tile.PackOp,
    tile.TransOp,
    tile.FullOp,
    tile.IotaOp,
)
"""Ops that threads do element by element, whichever layout their tiles have."""


MOST_COLUMNS, CHUNK = 256, 16
"""Elements of a row that one copy brings, and the bytes that it brings at least."""


class PreparedOperand:
    """A right operand that is computed: the op that makes it, and the loads and other ops that it rests on."""

    def __init__(self, maker: Operation) -> None:
        self.maker = maker
        self.ops: list[Operation] = []
        self.loads: list[tile.LoadOp] = []
        """Those that copies bring to shared memory: whole tiles, which nothing else reads."""
        self.refused: Operation | None = None
        """An op for which only consumers could compute it."""
        inside = set[Operation]()
        for op in self._behind(maker):
            inside.add(op)
            self.ops.append(op)
            if isinstance(op, tile.LoadOp):
                continue
            if not isinstance(op, _PREPARES) or (isinstance(op, tile.EwOp) and op.seed is not None):
                self.refused = op
        if self.refused is None:
            loads = [op for op in self.ops if isinstance(op, tile.LoadOp)]
            self.loads = [
                op for op in loads if _is_whole(op) and all(use.operation in inside for use in op.result.uses)
            ]

    def _behind(self, maker: Operation) -> Iterator[Operation]:
        """The ops that make tiles in front of an op, and the op; a tile that a loop carries refuses the operand."""
        pending, seen = [maker], {maker}
        while pending:
            op = pending.pop()
            yield op
            if isinstance(op, tile.LoadOp):
                continue
            for value in op.operands:
                owner = value.owner
                if not isinstance(value.type, TensorType) or owner in seen:
                    continue
                if isinstance(owner, Block):
                    self.refused = maker
                    continue
                seen.add(owner)
                pending.append(owner)


def prepared_operands(dots: list[tile.DotOp]) -> dict[Operation, PreparedOperand]:
    """The computed right operands of some dots, by the ops that make them; those with no other users."""
    found: dict[Operation, PreparedOperand] = {}
    for op in dots:
        maker = operand_source(op.b)
        if isinstance(maker, Block) or maker in found:
            continue
        if isinstance(maker, tile.LoadOp) and feeds_dots(maker):
            continue
        made = PreparedOperand(maker)
        if made.refused is None and not isinstance(maker, tile.LoadOp) and is_right_operand(maker.results[0]):
            found[maker] = made
    return found


def is_right_operand(value: SSAValue) -> bool:
    """Whether a tile is a right operand of dots, as it is or transposed, and nothing else."""
    uses = list(value.uses)
    for use in tuple(uses):
        if isinstance(transposed := use.operation, tile.TransOp) and is_transposed(transposed):
            uses.remove(use)
            uses += transposed.result.uses
    return bool(uses) and all(isinstance(use.operation, tile.DotOp) and use.index == 1 for use in uses)


def prepared_loads(function: tile.FuncOp) -> list[tile.LoadOp]:
    """The loads of a function whose tiles copies bring for computed right operands."""
    dots = [op for op in function.body.walk() if isinstance(op, tile.DotOp)]
    return list(dict.fromkeys(load for one in prepared_operands(dots).values() for load in one.loads))


def _is_whole(load: tile.LoadOp) -> bool:
    """Whether a load is of a tile with two axes, and no column: copies bring rows of whole chunks."""
    if why_not_copied(load) is not None:
        return False
    rows, columns = tile_type(load.result).get_shape()
    return columns > 1 and (rows > 1 or is_short_row(load.result))


def is_short_row(value: SSAValue) -> bool:
    """Whether a tile is one row of whole chunks, which one copy brings."""
    shape, itemsize = tile_type(value).get_shape(), tile_dtype(value).storage.itemsize
    return len(shape) == 2 and shape[0] == 1 and shape[1] <= MOST_COLUMNS and shape[1] * itemsize % CHUNK == 0
