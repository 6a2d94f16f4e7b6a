"""How far program instances reach into an array, as expressions over sizes: into all of it, or not beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tessera.errors import ShapeError
from tessera.shapes.expr import Shape, Size, evaluator


class Cover(NamedTuple):
    """Programs reach so far along an axis of an array; `shape` is the array's.

    An array that is to be filled they must reach the end of; with `inside`, it is one that they must not leave.
    """

    name: str
    axis: int
    reach: Size
    shape: Shape
    inside: bool = False

    def check(self, kernel: str, grid: Sequence[int], sizes: Mapping[str, int]) -> None:
        """Raises where no program instance writes a part of the array, or where some work outside of it."""
        reach, *shape = evaluator((self.reach, *self.shape))(sizes)
        size = shape[self.axis]
        if self.inside:
            # Parts without elements may lie anywhere.
            if reach > size and 0 not in grid and 0 not in shape[: self.axis] + shape[self.axis + 1 :]:
                raise ShapeError(
                    f"program instances of {kernel} index {self.name} up to {reach - 1} along axis {self.axis}, and "
                    f"its size there is {size}",
                    shapes=[f"{self.name} {list(shape)}", f"grid {list(grid)}"],
                    hint="give a smaller grid, or check the index",
                )
            return
        if reach >= size or any(one == 0 for one in shape):
            return
        part = f"{self.name}[{', '.join([':'] * self.axis + [f'{max(reach, 0)}:'])}]"
        raise ShapeError(
            f"no program instance of {kernel} writes {part}: its size along axis {self.axis} is {size}, and they reach "
            f"{max(reach, 0)}",
            shapes=[f"{self.name} {list(shape)}", f"grid {list(grid)}"],
            hint="give a larger grid or a larger block, or a smaller array; an array that is filled in part only is an "
            "input, without Out",
        )
