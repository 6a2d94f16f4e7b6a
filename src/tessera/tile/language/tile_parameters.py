"""Parameters annotated `Tile`: tiles of their arrays, loaded before the kernel's first line.

The first one's array drives the grid, and the parameter is this program instance's rows of it. Every other one is the
whole matrix of its array at this instance's point of the leading axes, so that its sizes are guards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera.errors import ShapeError, SourceSpan
from tessera.tile.language.context import current_context
from tessera.tile.language.tracer import Tracer
from tessera.tile.language.values import Tile, View


def load_tiles(work: Tracer, spans: Mapping[str, SourceSpan | None], arguments: Mapping[str, Any]) -> dict[str, Tile]:
    """The tiles of the parameters with `spans`; the source of each load is its annotation."""
    found: dict[str, Tile] = {}
    for name, span in spans.items():
        view: View = arguments[name]
        if view.rank == 0:
            raise ShapeError(
                f"argument {name}: a Tile is cut from an array with axes, got one without",
                hint=f"reshape it to (1,), or pass a number; the annotation is at {span}",
            )
        if not found:
            work.driver = view
        work.finishing = span
        try:
            found[name] = _whole(work, view) if found else _rows(work, view)
        finally:
            work.finishing = None
    return found


def _rows(work: Tracer, view: View) -> Tile:
    here = current_context(work)
    matrix, start = here.rows_at(view, None)
    if matrix.rank == 1:
        return work.load(matrix, [start], (here.m,), 0)
    return work.load(matrix, [start, 0], (here.m, here.width_of(view, "a Tile")), 0)


def _whole(work: Tracer, view: View) -> Tile:
    matrix = current_context(work).matrix(view)
    axes = range(view.rank - matrix.rank, view.rank)
    return work.load(matrix, [0] * matrix.rank, [work.static_size(view, axis, "a Tile") for axis in axes], 0)
