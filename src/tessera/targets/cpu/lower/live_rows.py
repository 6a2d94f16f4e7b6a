"""Rows that no store writes: an analysis of tile functions.

The last program instance along an axis has fewer rows than its block, often far fewer. What its other rows hold goes
nowhere if every op on the way to the stores takes row r from row r alone: then nests need not run over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue, Use

from tessera.ir.tile import dialect as tile
from tessera.targets.cpu.lower.extents import Extents
from tessera.targets.cpu.lower.hoisting import scalars_behind
from tessera.targets.cpu.lower.in_bounds import is_inside
from tessera.targets.cpu.lower.nests import Nest, shape_of


@dataclass(frozen=True)
class LiveRows:
    """Tiles whose rows count only as far as stores write them, and what decides how far that is."""

    rows: int
    tiles: frozenset[SSAValue]
    stores: Sequence[tile.StoreOp]
    scalars: Sequence[Operation]

    def covers(self, nest: Nest, *, careful: bool) -> bool:
        """Whether a nest may end with the last of these rows: not if it stores without tests, where all rows are there.

        A nest without ops copies what others may need.
        """
        ops = list(nest.ops)
        covered = nest.rows == self.rows and bool(ops) and nest.folds is None and all(map(self._leaves_out, ops))
        return covered and (careful or all(op.results for op in ops))

    def _leaves_out(self, op: Operation) -> bool:
        return self.tiles.issuperset(op.results) if op.results else op in self.stores


def live_rows(function: tile.FuncOp, extents: Extents) -> LiveRows | None:
    """The rows that stores leave out; None where there are none, or where what they hold matters."""
    stores = [op for op in function.body.walk() if isinstance(op, tile.StoreOp)]
    heights = {shape[0] for op in stores if len(shape := shape_of(op.value)) == 2}
    if len(heights) != 1 or all(is_inside(extents, op) for op in stores):
        return None
    (rows,) = heights
    stores = [op for op in stores if shape_of(op.value)[:1] == (rows,)]
    scalars = scalars_behind([root for op in stores for root in (op.view, op.offsets[0])])
    if rows == 1 or scalars is None:
        return None
    tiles = {value for value in _values(function) if shape_of(value)[:1] == (rows,)}
    waiting = list(tiles)
    while waiting:
        value = waiting.pop()
        if value in tiles and not all(_is_harmless(use, tiles, stores) for use in value.uses):
            tiles.remove(value)
            waiting += _behind(value)
    return LiveRows(rows, frozenset(tiles), stores, scalars)


def _values(function: tile.FuncOp) -> list[SSAValue]:
    """Every tile of a function."""
    found: list[SSAValue] = []
    for op in function.body.walk():
        found += op.results
        found += [argument for region in op.regions for block in region.blocks for argument in block.args]
    return [value for value in found if isinstance(value.type, TensorType)]


def _is_harmless(use: Use, tiles: set[SSAValue], stores: Sequence[tile.StoreOp]) -> bool:
    """Whether a use of a tile takes row r to row r, of a tile whose rows are as harmless."""
    user = use.operation
    match user:
        case tile.StoreOp():
            return user in stores
        case tile.EwOp() | tile.ReadOp():
            return user.results[0] in tiles
        case tile.ExpandOp():
            return user.axis.value.data == 1 and user.result in tiles
        case tile.BroadcastOp():
            return shape_of(user.operand)[0] == shape_of(user.result)[0] and user.result in tiles
        case tile.ReduceOp():
            return len(shape_of(user.operand)) == 2 and user.axis.value.data == 1 and user.result in tiles
        case tile.DotOp():
            return use.index != 1 and user.result in tiles
        case scf.ForOp():
            index = use.index - 3
            return index >= 0 and user.body.block.args[index + 1] in tiles and user.results[index] in tiles
        case scf.YieldOp():
            return all(value in tiles for value in _carried(user, use.index))
        case _:
            return False


def _carried(op: scf.YieldOp, index: int) -> list[SSAValue]:
    """The values that a yielded value becomes."""
    parent = op.parent_op()
    if isinstance(parent, scf.ForOp):
        return [parent.body.block.args[index + 1], parent.results[index]]
    return [parent.results[index]] if isinstance(parent, scf.IfOp) else []


def _behind(value: SSAValue) -> list[SSAValue]:
    """The values that a value is made of, one step back."""
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, scf.ForOp) or owner.last_op is None:
            return []
        index = owner.args.index(value) - 1
        return [loop.iter_args[index], owner.last_op.operands[index]] if index >= 0 else []
    if isinstance(owner, scf.ForOp | scf.IfOp):
        index = owner.results.index(value)
        ends = [region.block.last_op for region in owner.regions if region.blocks]
        starts = [owner.iter_args[index]] if isinstance(owner, scf.ForOp) else []
        return [*starts, *(end.operands[index] for end in ends if end is not None)]
    return list(owner.operands)
