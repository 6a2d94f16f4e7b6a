"""Epilogue subtiling: an epilogue is computed some columns at a time.

A tile that is loaded beside an accumulator takes as many registers as the accumulator, and there are not so many. Where
each element depends on those at its own position only, a piece of the columns is loaded and finished before the next
one.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tessera.ir.common.elements import TileType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.hopper.consumer_layouts import is_accumulator
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ir.layouts import accumulator
from tessera.targets.cuda.ir.types import laid_out, layout_of
from tessera.targets.cuda.lower.layout_analysis import is_tile
from tessera.transforms.core.function_pass import function_pass
from tessera.transforms.core.rewriting import replace

PIECE = 64
"""Columns that one copy stores."""


def subtile_epilogues(function: nv.FuncOp) -> int:
    """Subtiles epilogues that load tiles behind the wait for an accumulator, and returns how many."""
    waits = [op for op in function.body.walk() if isinstance(op, wgmma.WgmmaWaitOp)]
    return sum(_cut(op) for wait in waits for op in _ends(wait))


SubtileEpilogues = function_pass("subtile-epilogues", subtile_epilogues, nv.FuncOp)


def _ends(wait: wgmma.WgmmaWaitOp) -> Iterator[tile.EwOp]:
    """The last elementwise ops behind a wait, which others than elementwise ops use."""
    behind = wait.next_op
    found: list[tile.EwOp] = []
    while behind is not None:
        if isinstance(behind, tile.EwOp) and _is_wide(behind.result):
            users = [use.operation for use in behind.result.uses]
            if not any(isinstance(user, tile.EwOp) for user in users):
                found.append(behind)
        behind = behind.next_op
    yield from found


def _is_wide(value: SSAValue) -> bool:
    """Whether a tile has the layout of accumulators, and several pieces."""
    if not is_tile(value) or len(tile_type(value).get_shape()) != 2:
        return False
    columns = tile_type(value).get_shape()[1]
    return is_accumulator(layout_of(value), value) and columns > PIECE and columns % PIECE == 0


def _cut(end: tile.EwOp) -> bool:
    """Writes an op, and those that only it uses, once for each piece."""
    inside = _slice(end)
    if not any(isinstance(op, tile.LoadOp) for op in inside):
        return False
    columns = tile_type(end.result).get_shape()[1]
    made: list[Operation] = []
    pieces: list[SSAValue] = []
    for first in range(0, columns, PIECE):
        values: dict[SSAValue, SSAValue] = {}
        for op in inside:
            made += _piece(op, first, values)
        pieces.append(values[end.result])
    joined = wgmma.JoinOp(pieces)
    replace(end, [*made, joined])
    for op in reversed(inside[:-1]):
        op.detach()
        op.erase()
    return True


def _slice(end: tile.EwOp) -> list[Operation]:
    """The elementwise ops and loads in the block of an op that only it uses, in order."""
    found: set[Operation] = {end}
    before = end.prev_op
    while before is not None:
        if isinstance(before, tile.EwOp | tile.LoadOp) and _is_wide(before.result):
            users = {use.operation for use in before.result.uses}
            if users and users <= found:
                found.add(before)
        elif isinstance(before, wgmma.WgmmaWaitOp) or not _may_pass(before):
            break
        before = before.prev_op
    block = end.parent_block()
    assert block is not None
    return [op for op in block.ops if op in found]


def _may_pass(op: Operation) -> bool:
    """Whether loads may be done behind an op that they are in front of now."""
    return not isinstance(op, tile.Writer) and not op.regions


def _piece(op: Operation, first: int, values: dict[SSAValue, SSAValue]) -> list[Operation]:
    """An op for the columns from `first` on; `values` maps other values to their pieces."""
    made: list[Operation] = []
    is_load = isinstance(op, tile.LoadOp)
    for value in () if is_load else op.operands:
        if value not in values:
            part = wgmma.ColumnsOp(value, first, _narrow(value))
            made.append(part)
            values[value] = part.result
    clone = op.clone(dict(values))
    if is_load:
        # The last offset alone moves: the same value may be an offset along another axis, too.
        clone.operands[len(op.offsets)] = _moved(op.offsets[-1], first, made)
    Rewriter.replace_value_with_new_type(clone.results[0], _narrow(op.results[0]))
    values[op.results[0]] = clone.results[0]
    return [*made, clone]


def _moved(offset: SSAValue, more: int, made: list[Operation]) -> SSAValue:
    number = arith.ConstantOp(IntegerAttr(more, IndexType()))
    made += [number, found := arith.AddiOp(offset, number.result)]
    return found.result


def _narrow(value: SSAValue) -> TileType:
    type_, rows = tile_type(value), tile_type(value).get_shape()[0]
    return laid_out(TensorType(type_.element_type, (rows, PIECE)), accumulator(rows, PIECE))
