"""How far programs of a grid write into an array that they are to fill, as expressions over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tessera.errors import ShapeError
from tessera.shapes.expr import Shape, Size, evaluator


class Cover(NamedTuple):
    """No program writes an array beyond `reach` along an axis; `shape` is the array's."""

    name: str
    axis: int
    reach: Size
    shape: Shape

    def check(self, kernel: str, grid: Sequence[int], sizes: Mapping[str, int]) -> None:
        """Raises where parts of the array stay unwritten whatever programs do."""
        reach, *shape = evaluator((self.reach, *self.shape))(sizes)
        size = shape[self.axis]
        if reach >= size or any(one == 0 for one in shape):
            return
        part = f"{self.name}[{', '.join([':'] * self.axis + [f'{max(reach, 0)}:'])}]"
        raise ShapeError(
            f"no program of {kernel} writes {part}: its size along axis {self.axis} is {size}, and programs reach "
            f"{max(reach, 0)}",
            shapes=[f"{self.name} {list(shape)}", f"grid {list(grid)}"],
            hint="give a larger grid or a larger block, or a smaller array; an array that is filled in part only is an "
            "input, without Out",
        )
