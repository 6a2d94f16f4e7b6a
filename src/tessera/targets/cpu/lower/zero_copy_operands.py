"""Dot operands that are read from their memory without a copy: facts say that their rows are there, side by side."""

from __future__ import annotations

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.targets.cpu.ir.types import LINE, TILE_ROWS
from tessera.targets.cpu.lower.blocking import Blocking
from tessera.targets.cpu.lower.extents import Extents
from tessera.targets.cpu.lower.in_bounds import is_inside
from tessera.targets.cpu.lower.nests import shape_of


def can_borrow(
    extents: Extents, blocking: Blocking, load: tile.LoadOp, op: tile.DotOp, index: int, by_matrix_unit: bool
) -> bool:
    """Whether a dot can read its operand of this index without a copy; the facts it rests on become guards."""
    rows, cols = shape_of(load.result)
    step, dtype = extents.stride(load.view, 0), tile_dtype(load.result)
    if by_matrix_unit:
        # Its right side is packed, and its left has whole lines and whole strips of rows.
        fits = index == 0 and rows % TILE_ROWS == 0 and cols * dtype.storage.itemsize % LINE == 0
    else:
        # Rows of a right side are as long as those of a panel: of longer ones a dot would read parts.
        fits = dtype is tile_dtype(op.c) and (index == 0 or cols == blocking.panel(cols, dtype))
    if not fits or step.number != cols or not is_inside(extents, load):
        return False
    extents.decide(step)
    return True
