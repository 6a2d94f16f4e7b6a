"""What kernels do wrong, and the errors that say what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tessera.dtypes.types import bool_
from tessera.errors import DtypeError, ShapeError
from tessera.tile.language.values import BlockIndex, Pages, Scalar, Tile, Undefined, View, shown


def hint_of_position(value: object) -> str:
    """What to write where a position is needed."""
    if isinstance(value, Tile):
        return "tile.gather and tile.scatter take a tile of places; tile.item(x, i) gives one number from memory"
    if isinstance(value, View):
        return "tile.item(x, i) gives one number from memory, x.shape[0] is a size"
    if isinstance(value, Scalar):
        if value.dtype is bool_:
            return "a flag is a condition: write 1 if flag else 0, or an if"
        return "positions are integers: tile.cast(x, i64) cuts the fraction off"
    if isinstance(value, BlockIndex):
        return "a block of tile.range_n begins at block.start; tile.load(x, block) takes its rows"
    if isinstance(value, Pages):
        return "tile.load takes pages; store to one page at a time: x[tile.item(table, b, i)]"
    if isinstance(value, tuple | list):
        return "give one number, such as x.shape[0]"
    return "use integers"


def check_view(view: object, what: str) -> None:
    """Refuses what is no memory."""
    if isinstance(view, Undefined):
        view.refuse()
    if not isinstance(view, View):
        hint = "pass a kernel argument"
        if isinstance(view, Tile):
            hint += "; tile.take gives elements of a tile, tile.where makes a tile with other elements"
        raise DtypeError(f"tile.{what} works on an array argument, got {shown(view)}", hint=hint)


def check_tile(value: object, what: str) -> None:
    """Refuses what is no tile."""
    if isinstance(value, Undefined):
        value.refuse()
    if not isinstance(value, Tile):
        raise DtypeError(f"tile.{what} takes a tile, got {shown(value)}", hint="make one with tile.load or tile.full")


def check_pad(pad: object) -> None:
    """Refuses padding that is no number known now."""
    if not isinstance(pad, int | float | np.generic):
        raise DtypeError(
            f"pad= takes a number that is known now, got {shown(pad)}",
            hint="load with pad=0 and choose with tile.where what lies beyond the array",
        )


def check_item(view: View, at: Sequence[object]) -> None:
    """Refuses places that are not those of one element."""
    joined = [shown(one) for one in at if one.__class__ in (tuple, list)]
    if len(at) != view.rank or joined:
        raise ShapeError(
            f"an item of {view}, at {joined[0] if joined else f'{len(at)} places'}",
            hint=f"give {view.rank} places, one after the other: one element is an item",
        )
    for place in at:
        if isinstance(place, Tile):
            raise DtypeError(
                f"an item of {view}, at {place}", hint="tile.gather looks up many elements at once; an item is one"
            )


def check_loaded(view: View, at: Sequence[object], shape: Sequence[int]) -> None:
    """Refuses a block with another number of axes than its array."""
    if len(at) != view.rank or len(shape) != view.rank:
        leading = ", or index leading axes first: x[i]" if len(shape) < view.rank else ""
        raise ShapeError(
            f"loading {list(shape)} at {len(at)} offsets from {view}",
            hint=f"give {view.rank} offsets and {view.rank} sizes{leading}",
        )


def check_box(what: str, view: View, value: Tile, at: Sequence[object]) -> None:
    """Refuses a tile that does not go into an array at some offsets."""
    if len(at) != view.rank or value.ndim != view.rank:
        raise ShapeError(
            f"{what} at {len(at)} offsets into {view}", hint=f"give {view.rank} offsets and a tile of that rank"
        )
    check_elements(view, value)


def check_elements(view: View, value: Tile) -> None:
    """Refuses elements of another type than those of an array that they are to go to."""
    if value.dtype.base is not view.dtype.base:
        raise DtypeError(
            f"storing {value.dtype} elements into {view}", hint=f"cast the tile: tile.cast(x, {view.dtype.base})"
        )


def check_combined(name: str, value: Tile) -> None:
    """Refuses elements that are no numbers."""
    if value.dtype is bool_:
        raise DtypeError(
            f"tile.{name} of {value}: flags are not combined in memory",
            hint="keep them as numbers: cast the tile to i32 and give an array of i32",
        )
