"""Bounds of kernels in the interpreter: accesses that begin outside of an array, and places that lie there.

In machine code the same is checked by asserts, which `transforms/checks/instrument.py` writes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tessera.errors import RangeError, ShapeError
from tessera.interpreters.core.places import Placed
from tessera.interpreters.core.views import ArrayView
from tessera.ir.tile import dialect as tile

MemoryOp = tile.Reader | tile.Writer


def check_places(op: tile.AtPlaces, view: ArrayView, at: Placed, program: tuple[int, ...]) -> None:
    """Refuses places outside of a view, unless a mask leaves them out."""
    bad = at.asked & ~at.inside
    if not bad.any():
        return
    place = tuple(int(one) for one in np.argwhere(bad)[0])
    found = [int(index[place]) for index in at.indices]
    axis = next(axis for axis, (index, size) in enumerate(zip(found, view.sizes, strict=True)) if not 0 <= index < size)
    raise RangeError(
        f"{tile.title(op)} of element {list(place)} in program instance {list(program)}: "
        f"index {found[axis]} of axis {axis} is out of range, the size is {view.sizes[axis]}",
        shapes=[f"{int(bad.sum())} of {bad.size} places are outside of a view of {list(view.sizes)}"],
        hint="indices count from 0; leave out what is not there with mask=, or check where the indices come from",
    )


def check_bounds(
    op: MemoryOp, view: ArrayView, offsets: Sequence[int], shape: Sequence[int], program: tuple[int, ...]
) -> None:
    """Refuses blocks without any element, and offsets before the first; a ragged edge is legal."""
    if 0 in view.sizes or 0 in shape:
        return
    for axis, (offset, size) in enumerate(zip(offsets, view.sizes, strict=True)):
        if not 0 <= offset < size:
            if isinstance(op, tile.ItemOp):
                raise RangeError(
                    f"item at {list(offsets)} in program instance {list(program)}: "
                    f"index {offset} of axis {axis} is out of range, the size is {size}",
                    hint="indices count from 0: check the table that it comes from, or clamp the number",
                )
            what = tile.title(op) if isinstance(op, tile.AtomicOp) else op.name.split(".")[-1]
            raise ShapeError(
                f"{what} at {list(offsets)} in program instance {list(program)}: "
                f"index {offset} of axis {axis} is out of range, "
                f"the size is {size}",
                shapes=[f"a block of {list(shape)} in a view of {list(view.sizes)}"],
                hint="a block may reach over the end, but starts inside: check the grid, the block size and the offset",
            )


def check_index(index: int, axis: int, size: int, program: tuple[int, ...]) -> None:
    """Refuses an index of a part of a view that is out of range."""
    if not 0 <= index < size:
        raise RangeError(
            f"a view in program instance {list(program)}: index {index} of axis {axis} is out of range, "
            f"the size is {size}",
            hint="indices count from 0: check the table that it comes from, or clamp the number",
        )
