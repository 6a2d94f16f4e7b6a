"""Columns that a mask leaves out: an analysis of nests.

Where a mask is false for all rows of a group, what a nest computes is known: reductions take in nothing new, and a
dot's left operand is 0. Phases need not run over such columns, and dots that take them in are shortened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Block, Operation, SSAValue

from tessera.ir.common import reductions
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.emit.memory import UNROLL
from tessera.targets.cpu.lower.nests import Analysis, Nest, Phase, shape_of
from tessera.transforms.algebra.masks import (
    Edge,
    Known,
    Linear,
    Splat,
    Window,
    dead_before,
    dead_from,
    known_where_false,
)

STEP = 64
"""Columns by which the work of a run of nests is cut off: whole steps of all its phases."""
COLUMN = Block(arg_types=[IndexType()]).args[0]
"""Stands for the column that is asked about."""


@dataclass(frozen=True)
class Clipping:
    """A mask, the phases that stop where it leaves nothing, and the dots that do."""

    mask: SSAValue
    phases: frozenset[int]
    dots: frozenset[tile.DotOp]

    @property
    def cols(self) -> int:
        return shape_of(self.mask)[1]

    def edges(self, start: Linear, rows: int) -> Sequence[Sequence[Edge]]:
        """The columns from which on nothing counts for some rows; see `dead_from`."""
        return _edges(self.mask, start, rows)


def clipping(analysis: Analysis, nest: Nest, kept: set[SSAValue]) -> Clipping | None:
    """The columns that a nest may leave out; `kept` are its values that others read."""
    for op in nest.ops:
        if isinstance(op, tile.EwOp) and op.fn.data == "select" and len(shape_of(op.result)) == 2:
            found = _with_mask(analysis, nest, kept, op.operands_[0])
            if found is not None:
                return found
    return None


def _with_mask(analysis: Analysis, nest: Nest, kept: set[SSAValue], mask: SSAValue) -> Clipping | None:
    cols = shape_of(mask)[1]
    block = next(iter(nest.ops)).parent_block()
    if nest.rows == 1 or block is None or not _edges(mask, Linear(), nest.rows):
        return None
    known = known_where_false(block.ops, mask)
    phases = {
        number
        for number, phase in enumerate(nest.phases)
        if phase.cols == cols and all(_changes_nothing(op, known, kept) for op in phase.ops)
    }
    while True:
        inside: dict[SSAValue, int] = {}
        for number in phases:
            inside |= {result: number for op in nest.phases[number].ops for result in op.results}
        dots = {op for phase in nest.phases for op in phase.ops if isinstance(op, tile.DotOp) and op.a in inside}
        # What others need in full is computed in full: columns of other tiles may be as many by chance.
        whole = {inside[op.a] for op in dots if known.get(op.a) != Splat(0)}
        for number, phase in enumerate(nest.phases):
            if number not in phases:
                whole |= {inside[leaf] for op in phase.ops for leaf in _read(analysis, nest, op) if leaf in inside}
        if not whole:
            break
        phases -= whole
    if dots and cols % UNROLL:
        return None
    return Clipping(mask, frozenset(phases), frozenset(dots)) if phases else None


@dataclass(frozen=True)
class BlockClipping:
    """For a whole run of nests: tiles whose columns begin and end where a mask is false for all rows."""

    mask: SSAValue
    tiles: frozenset[SSAValue]

    @property
    def cols(self) -> int:
        return shape_of(self.mask)[1]

    def edges(self) -> Sequence[Sequence[Edge]]:
        """The columns from which on nothing counts; see `dead_from`."""
        return _edges(self.mask, Linear(), shape_of(self.mask)[0])

    def starts(self) -> Sequence[Sequence[Edge]]:
        """The columns below which nothing counts; see `dead_before`."""
        return dead_before(self.mask, COLUMN, one_column(self.mask, Linear(), shape_of(self.mask)[0]))

    def covers(self, phase: Phase) -> bool:
        """Whether a phase works on such tiles, and on nothing else."""
        return bool(phase.ops) and all(
            op.operand in self.tiles if isinstance(op, tile.ReduceOp) else op.results and op.results[0] in self.tiles
            for op in phase.ops
        )


def block_clipping(analysis: Analysis, nests: Sequence[Nest]) -> BlockClipping | None:
    """The columns that a run of nests may leave out where some use the matrix unit, whose blocks have many rows."""
    if not any(nest.matrix for nest in nests):
        return None
    for nest in nests:
        for op in nest.ops:
            if isinstance(op, tile.EwOp) and op.fn.data == "select" and len(shape_of(op.result)) == 2:
                found = _block_with_mask(analysis, nests, op.operands_[0])
                if found is not None:
                    return found
    return None


def _block_with_mask(analysis: Analysis, nests: Sequence[Nest], mask: SSAValue) -> BlockClipping | None:
    cols = shape_of(mask)[1]
    block = next(op for nest in nests for op in nest.ops).parent_block()
    whole = BlockClipping(mask, frozenset())
    if cols % STEP or block is None or not (whole.edges() or whole.starts()):
        return None
    known = known_where_false(block.ops, mask)
    made = {value for nest in nests for value, (_, is_row) in nest.phase_of.items() if not is_row}
    phases = {op: phase for nest in nests for phase in nest.phases for op in phase.ops}

    def is_harmless(value: SSAValue, found: BlockClipping) -> bool:
        """Whether a tile's other columns are not needed: all its readers are in these nests and leave them out, too."""
        for use in value.uses:
            user = use.operation
            if user not in phases:
                return False
            if isinstance(user, tile.ReduceOp):
                nothing = reductions.TABLE[user.kind.data].identity(tile_dtype(value))
                harmless = user.axis.value.data == 1 and known.get(value) == Splat(nothing)
            elif isinstance(user, tile.DotOp):
                if use.index != 0 or known.get(value) != Splat(0) or user not in analysis.matrix:
                    return False
                continue
            else:
                harmless = isinstance(user, tile.EwOp) and user.result in found.tiles
            if not harmless or not found.covers(phases[user]):
                return False
        return True

    found = BlockClipping(mask, frozenset(v for v in made if len(shape_of(v)) == 2 and shape_of(v)[1] == cols))
    # A tile that others need in full takes those with it that it is made of.
    while harmful := {value for value in found.tiles if not is_harmless(value, found)}:
        found = BlockClipping(mask, found.tiles - harmful)
    return found if found.tiles else None


def _read(analysis: Analysis, nest: Nest, op: Operation) -> Iterator[SSAValue]:
    """The tiles of a nest that an op reads column by column."""
    for index, operand in enumerate(op.operands):
        if isinstance(operand.type, TensorType) and not (isinstance(op, tile.DotOp) and index == 0):
            for leaf, _ in analysis.leaves(operand, nest.rows):
                if leaf in nest.phase_of and not nest.phase_of[leaf][1]:
                    yield leaf


def _edges(mask: SSAValue, start: Linear, rows: int) -> Sequence[Sequence[Edge]]:
    return dead_from(mask, COLUMN, one_column(mask, start, rows))


def one_column(mask: SSAValue, start: Linear, rows: int) -> Window:
    """Some rows of one column."""
    shape = shape_of(mask)
    at = Linear() if shape[0] == 1 else start
    return Window((at, Linear(((COLUMN, 1),))), (min(rows, shape[0]), 1))


def _changes_nothing(op: Operation, known: Mapping[SSAValue, Known], kept: set[SSAValue]) -> bool:
    """Whether an op may be left out on columns where everything is as `known`."""
    if isinstance(op, tile.ReduceOp):
        nothing = reductions.TABLE[op.kind.data].identity(tile_dtype(op.operand))
        return known.get(op.operand) == Splat(nothing)
    return bool(op.results) and op.results[0] not in kept
