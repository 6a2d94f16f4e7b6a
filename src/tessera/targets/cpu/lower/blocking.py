"""How large register tiles are: rows by columns, from what a nest does and how many registers the machine has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from xdsl.ir import Operation

from tessera.dtypes.types import DType, bf16, f32, i8, i32, u8, u32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cpu.emit.emitter import TargetMachine
from tessera.targets.cpu.lower.nests import Nest, Phase
from tessera.targets.llvm.elements import is_arm

SHORT_CODE_ROWS = 4
"""Rows of a register tile of a dot in short code."""


@dataclass(frozen=True)
class Blocking:
    """Accumulators, the vectors of one row of the right operand, and one more must fit the registers."""

    machine: TargetMachine
    small: bool = False
    """Whether code is to be short, not fast: a step works on one vector, or on a few rows of one."""

    @property
    def _registers(self) -> int:
        return 32 if self.machine.lanes >= 16 or is_arm(self.machine.level) else 16

    def _vectors(self, dtype: DType) -> int:
        """Vectors to a row of accumulators: the square of the registers, roughly, and a bit less."""
        if self.small:
            return 1
        wide = 2 if dtype.bits > 32 else 1
        return max(1, (4 if self._registers == 32 else 2) // wide)

    def has_matrix_unit(self, op: tile.DotOp) -> bool:
        """Whether the matrix unit multiplies these elements; it works on blocks of rows, not on a single one."""
        dtypes, rows = (tile_dtype(op.a), tile_dtype(op.c)), tile_type(op.a).get_shape()[0]
        return self.machine.level == "amx" and rows > 1 and dtypes in ((bf16, f32), (i8, i32), (u8, u32))

    def panel(self, cols: int, dtype: DType) -> int:
        """The width of a panel. No tile may be left with one column: its elements would lie across the lanes."""
        lanes = self.machine.lanes
        width = min(self._vectors(dtype) * lanes, max(lanes, -(-cols // lanes) * lanes))
        while width > lanes and cols % width == 1 and cols > 1:
            width -= lanes
        return width

    def rows(self, nest: Nest, *, careful: bool) -> int:
        """Rows to a group of rows."""
        if nest.rows == 1 or any(self._leaves_one(nest, phase, careful=careful) for phase in nest.phases):
            return 1
        dots = [phase.dot for phase in nest.phases if phase.dot is not None]
        if dots:
            count = self._vectors(_accumulator(dots[0]))
            wide = 2 if _accumulator(dots[0]).bits > 32 else 1
            if self.small:
                return min(nest.rows, SHORT_CODE_ROWS)
            return self._balanced(nest.rows, max(1, (self._registers - 1 - count * wide) // (count * wide)))
        if careful:
            return 1
        if _transposes(nest):
            return min(nest.rows, self.machine.lanes)
        if self.small or not any(isinstance(op, tile.ReduceOp) for op in nest.ops):
            return 1
        return min(nest.rows, 2 if _streams(nest) else 4)

    def _leaves_one(self, nest: Nest, phase: Phase, *, careful: bool) -> bool:
        """Whether a step has one column of many: then a group must have one row, or the rows would be in the lanes."""
        step = self.cols(nest, phase, careful=careful)
        return phase.cols > 1 and (step == 1 or phase.cols % step == 1)

    @staticmethod
    def _balanced(rows: int, most: int) -> int:
        """As many groups as `most` rows to each would give, but of more equal size."""
        return rows if rows <= most else most

    def cols(self, nest: Nest, phase: Phase, *, careful: bool) -> int:
        """Columns to a step of a phase."""
        if phase.cols <= 1:
            return max(1, phase.cols)
        if phase.dot is not None:
            return self.panel(phase.cols, _accumulator(phase.dot))
        lanes = self.machine.lanes
        if careful or self.small or _transposes(nest):
            width = lanes
        elif self._registers == 32:
            # About eight vectors at work at a time hide the time that each takes; two do where memory takes longer.
            several = nest.rows > 1 and any(isinstance(op, tile.DotOp | tile.ReduceOp) for op in nest.ops)
            width = ((1 if _streams(nest) else 2) if several else 4) * lanes
        else:
            width = 2 * lanes
        # Steps that end where those of a dot end can be left out together with them.
        for other in nest.phases:
            if other.dot is not None and other.cols == phase.cols:
                width = gcd(width, self.panel(other.cols, _accumulator(other.dot)))
        width = min(width, phase.cols)
        if nest.rows > 1 and phase.cols % width == 1:
            # Nothing may be left with one column.
            others = width - lanes, width + lanes, lanes + lanes // 2
            width = next((other for other in others if other > 1 and phase.cols % other != 1), 1)
        return width


def _accumulator(dot: tile.DotOp) -> DType:
    return tile_dtype(dot.c)


def _transposes(nest: Nest) -> bool:
    """Whether a nest's ops use transposed values; right operands of dots are packed apart."""
    return any(
        isinstance(source, tile.TransOp) and 1 not in tile_type(source.result).get_shape() for source in _sources(nest)
    )


def _streams(nest: Nest) -> bool:
    """Whether a nest reads tiles from arrays."""
    return any(
        isinstance(source, tile.LoadOp) and len(tile_type(source.result).get_shape()) == 2
        for source in (*nest.ops, *_sources(nest))
    )


def _sources(nest: Nest) -> Iterator[Operation]:
    """The ops outside a nest behind what it uses, as far as these are done again in it."""
    seen: set[Operation] = set(nest.ops)
    waiting = [value for op in nest.ops for value in ([op.a, op.c] if isinstance(op, tile.DotOp) else op.operands)]
    while waiting:
        owner = waiting.pop().owner
        if not isinstance(owner, Operation) or owner in seen:
            continue
        seen.add(owner)
        yield owner
        if isinstance(owner, tile.ExpandOp | tile.BroadcastOp | tile.EwOp):
            waiting += owner.operands
