"""Writes a nest that is one matmul by the matrix unit: strips of rows, from memory to memory."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import TILE_ROWS, rounded_up
from tessera.targets.cpu.lower.clipping import STEP
from tessera.targets.cpu.lower.nest_writer import NestWriter
from tessera.targets.cpu.lower.nests import shape_of
from tessera.transforms.algebra.masks import constant_of


def write_matrix(writer: NestWriter) -> None:
    """Strips of 32 rows, and of 16 or 32 for the rest."""
    lowering, dot = writer.lowering, writer.nest.phases[0].dot
    assert dot is not None
    if dot.result not in lowering.held:
        return
    out = lowering.held[dot.result]
    added = constant_of(dot.c) != 0
    if added and lowering.held.get(dot.c) is not out:
        writer.copy_to(dot.c, out)
    left = lowering.held[dot.a]
    right, number = lowering.packed[dot]
    writer.zero = lowering.constant(0)
    rows, cols = shape_of(dot.result)

    tiles = frozenset[SSAValue]() if lowering.clipping is None else lowering.clipping.tiles
    depth = lowering.live if dot.a in tiles else None

    def strip(row: SSAValue, height: int, col: SSAValue, width: int) -> None:
        lowering.add(cpu.MatmulOp(left, right, number, out, row, col, (height, width), added=added, depth=depth))

    def band(row: SSAValue, height: int) -> None:
        if dot.result in tiles:
            writer.steps(cols, STEP, lambda col, width: strip(row, height, col, width), lowering.live)
        else:
            strip(row, height, writer.zero, rounded_up(cols, TILE_ROWS))

    whole = rows // (2 * TILE_ROWS) * 2 * TILE_ROWS
    writer.steps(whole, 2 * TILE_ROWS, band)
    if whole < rows:
        band(lowering.constant(whole), rounded_up(rows - whole, TILE_ROWS))
