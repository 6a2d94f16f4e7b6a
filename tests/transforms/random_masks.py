"""Random masks of positions: comparisons of counted axes and scalars, joined, some the same for all rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tessera.dtypes import types
from tessera.interpreters.core.engine import Frame
from tessera.interpreters.core.machine import Machine
from tessera.interpreters.levels import tile as tile_interpreter
from tessera.ir.common.elements import element_of, tile_of
from tessera.ir.tile import dialect as tile

index = IndexType()
MEANINGS = (tile_interpreter,)  # it registers itself


@dataclass
class Writer:
    """Writes ops into a block; `numbers` are the scalars that masks are made of, by default the block's arguments."""

    chance: random.Random
    block: Block = field(default_factory=lambda: Block(arg_types=[index] * 4))
    numbers: Sequence[SSAValue] = ()

    def __post_init__(self) -> None:
        self.numbers = self.numbers or list(self.block.args)

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: int) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(value, index)))

    def scalar(self, depth: int = 2) -> SSAValue:
        """A sum of arguments, each times a number."""
        choice = self.chance.random()
        if depth == 0 or choice < 0.3:
            known = self.chance.random() < 0.3
            return self.number(self.chance.randint(-9, 9)) if known else self.chance.choice(self.numbers)
        if choice < 0.5:
            some, times = self.scalar(depth - 1), self.number(self.chance.choice((-2, -1, 2, 3, 16)))
            return self.add(arith.MuliOp(some, times) if choice < 0.4 else arith.MuliOp(times, some))
        kind = arith.AddiOp if choice < 0.8 else arith.SubiOp
        return self.add(kind(self.scalar(depth - 1), self.scalar(depth - 1)))

    def positions(self, shape: tuple[int, int], depth: int = 1) -> SSAValue:
        """Whole numbers in a tile: counted along an axis, the same everywhere, or sums of such."""
        choice = self.chance.random()
        if depth and choice < 0.3:
            both = [self.positions(shape, 0), self.positions(shape, 0)]
            return self.add(tile.EwOp(self.chance.choice(("add", "sub")), both))
        if choice < 0.45:
            scalar = self.add(arith.IndexCastOp(self.scalar(), element_of(types.i64)))
            return self.add(tile.FullOp(scalar, shape))
        axis, how = self.chance.randrange(2), self.chance.randrange(4)
        if how == 0:
            return self.add(tile.IotaOp(self.scalar(), axis, tile_of(shape, types.i64)))
        if how == 1:
            counted = self.add(tile.IotaOp(self.scalar(), 0, tile_of((shape[axis],), types.i64)))
            thin = self.add(tile.ExpandOp(counted, 1 - axis))
        else:
            # Counted along the axis that is kept, or along the one that is repeated: there it counts one.
            kept = (shape[0], 1) if self.chance.randrange(2) else (1, shape[1])
            thin = self.add(tile.IotaOp(self.scalar(), axis, tile_of(kept, types.i64)))
        return self.add(tile.BroadcastOp(thin, shape))

    def mask(self, shape: tuple[int, int], depth: int = 2) -> SSAValue:
        choice = self.chance.random()
        if depth and choice < 0.5:
            name = self.chance.choice(("and", "and", "or"))
            return self.add(tile.EwOp(name, [self.mask(shape, depth - 1), self.mask(shape, depth - 1)]))
        name = self.chance.choice(("lt", "le", "gt", "ge"))
        if choice < 0.6 and shape[1] > 1:
            # The same for all rows, such as a prefix.
            row = self.add(tile.EwOp(name, [self.positions((1, shape[1]), 0), self.positions((1, shape[1]), 0)]))
            return self.add(tile.BroadcastOp(row, shape))
        return self.add(tile.EwOp(name, [self.positions(shape), self.positions(shape)]))

    def run(self, values: Sequence[Any]) -> dict[SSAValue, Any]:
        """Every value of the block."""
        if not isinstance(self.block.last_op, tile.ReturnOp):
            self.block.add_op(tile.ReturnOp())
        frame = Frame(Machine())
        frame.run(self.block, list(values))
        return frame.values
