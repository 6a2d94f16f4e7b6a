"""Pages: rows that lie in several pieces of an array, in the order in which a table lists them."""

from __future__ import annotations

from collections.abc import Sequence

from tessera.dtypes.types import i64
from tessera.errors import DtypeError, ShapeError
from tessera.ir.tile.hints import Hints
from tessera.tile.language.current_tracer import tracer
from tessera.tile.language.misuse import check_view
from tessera.tile.language.places import places_of_each
from tessera.tile.language.values import BlockIndex, Pages, Position, Scalar, Tile, View, shown


def page(table: View, *at: object, length: object = None) -> Pages:
    """Rows of a sequence in pages, as a place for tile.load: `at=(tile.page(table, b, block), h, 0, 0)`.

    Entry i of the table's row has the number of the page with rows i·P and on, where a page has P rows. The last of
    `at` is the first row, or a block of tile.range_n. Rows from `length` on are `pad`, and their pages are not read.
    """
    check_view(table, "page")
    if len(at) != table.rank:
        raise ShapeError(
            f"tile.page of {table} at {len(at)} places",
            hint=f"give {table.rank}: the row of the table, and a block of tile.range_n or the first row wanted",
        )
    if not table.dtype.is_integer:
        raise DtypeError(f"{table} has no numbers of pages: they are integers", hint="pass a table of i32 or i64")
    *row, last = at
    start = last.start if isinstance(last, BlockIndex) else _position(last)
    return Pages(table, tuple(row), start, None if length is None else _position(length))


def _position(value: object) -> Position:
    return value if isinstance(value, int) else Scalar(tracer().position(value), None)


def load_pages(view: View, at: Sequence[object], shape: Sequence[int], pad: float, hints: Hints) -> Tile:
    """A tile whose first axis goes through pages; `shape` is that of the axes behind those that places index."""
    leading = view.rank - len(shape)
    places = [axis for axis, one in enumerate(at) if isinstance(one, Pages)]
    if len(at) != view.rank or len(places) != 1 or places[0] >= leading:
        raise ShapeError(
            f"loading {list(shape)} from {view} at {len(at)} places, {len(places)} of which are pages",
            hint="index the axis of pages by tile.page, give a place for each axis, and a size for each of the last: "
            "at=(tile.page(table, b, block), h, 0, 0), shape=(n, d)",
        )
    found = at[places[0]]
    assert isinstance(found, Pages)
    if at[leading] != 0:
        raise ShapeError(
            f"rows of pages begin at {shown(at[leading])}",
            hint="write 0 there: tile.page says where they begin, tile.page(table, b, first)",
        )
    size, rows = tracer().static_size(view, leading, "a load through tile.page"), shape[0]
    if size < 1 or (rows % size and size % rows):
        raise ShapeError(
            f"a block of {rows} rows is no whole number of pages of {size} rows, and no whole part of one",
            hint="choose a block that is a multiple of the pages, or divides them",
        )

    if rows > size:
        return _gathered(view, at, found, shape, pad, hints)
    indices = {axis: one for axis, one in enumerate(at[:leading]) if axis != places[0]}
    indices[places[0]] = _number(found, size)
    first = found.start % size if rows < size else 0
    whole = tracer().load(tracer().part(view, indices), [first, *at[leading + 1 :]], (rows, *shape[1:]), pad, hints)
    return whole if found.length is None else _ended(whole, found.start, found.length, pad)


def _number(found: Pages, size: int) -> Scalar:
    """The number of the page of a block; behind the last one that there is, the last."""
    place = found.start // size
    if found.length is not None:
        last = tracer().combine("max", (found.length - 1) // size, 0)
        place = tracer().combine("min", place, last)
    return tracer().item(found.table, [*found.row, place])


def _gathered(view: View, at: Sequence[object], found: Pages, shape: Sequence[int], pad: float, hints: Hints) -> Tile:
    """A tile whose rows lie in several pages: every row has the number of its page, and its place there."""
    work, leading = tracer(), view.rank - len(shape)
    size = work.static_size(view, leading, "a load through tile.page")
    upright = (shape[0], *(1 for _ in shape[1:]))
    row = work.iota(upright, 0, 0, i64)
    place = work.combine("add", work.combine("floordiv", row, size), found.start // size)
    there = None if found.length is None else work.combine("lt", work.iota(upright, 0, found.start, i64), found.length)
    number = work.read(found.table, places_of_each(work, found.table, [*found.row, place], there), 0)
    indices: list[object] = [number if isinstance(one, Pages) else one for one in at[:leading]]
    indices.append(work.combine("rem", row, size))
    for axis, extent in enumerate(shape[1:], 1):
        along, first = tuple(extent if one == axis else 1 for one in range(len(shape))), at[leading + axis]
        index, end = work.iota(along, axis, first, i64), work.size(view, leading + axis)
        indices.append(index)
        if not (isinstance(end, int) and isinstance(first, int) and 0 <= first <= end - extent):
            inside = work.combine("lt", index, end)
            there = inside if there is None else work.combine("and", there, inside)
    there = None if there is None else work.broadcast(there, tuple(shape))
    return work.read(view, places_of_each(work, view, indices, there), pad, hints)


def _ended(whole: Tile, start: Position, length: Position, pad: float) -> Tile:
    """The tile with `pad` in the rows that are no more."""
    return tracer().where(tracer().iota(whole.shape, 0, start, i64) < length, whole, pad)
