"""Register tiles: a small tile as vectors, each made when first asked for.

The lanes of a vector run along a tile's last axis; a tile with one column (or one axis) has its rows in the lanes.
Every element type has as many lanes to a vector, so that tiles of different types line up. Lanes beyond the tile hold
anything.

Making vectors late lets one pass over rows and columns emit a whole chain of ops for each vector: nothing else keeps
the number of live registers small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tessera.dtypes.types import DType
from tessera.targets.llvm.text import Value

Maker = Callable[[int, int], Value]


def is_column(shape: Sequence[int]) -> bool:
    """Whether the lanes run along the rows."""
    return len(shape) == 2 and shape[1] == 1 and shape[0] != 1


def extent(shape: Sequence[int]) -> tuple[int, int]:
    """Rows of vectors, and elements that each row of vectors covers."""
    match tuple(shape):
        case ():
            return 1, 1
        case (cols,):
            return 1, cols
        case (rows, cols):
            return (1, rows) if is_column(shape) else (rows, cols)
        case _:
            raise AssertionError(f"register tiles have at most two axes, not {shape}")


class RegisterTile:
    """A tile in vector registers, by row and by the number of the vector in its row; `make` makes each one, once."""

    def __init__(self, shape: Sequence[int], dtype: DType, lanes: int, make: Maker) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.rows, self.elements = extent(shape)
        self.count = -(-self.elements // lanes)
        self._make = make
        self._made: dict[tuple[int, int], Value] = {}

    def vector(self, row: int, number: int) -> Value:
        position = row, number
        if position not in self._made:
            self._made[position] = self._make(row, number)
        return self._made[position]

    @property
    def positions(self) -> Iterator[tuple[int, int]]:
        return ((row, number) for row in range(self.rows) for number in range(self.count))

    def all(self) -> list[Value]:
        """Every vector, row by row."""
        return [self.vector(*position) for position in self.positions]

    @staticmethod
    def of(shape: Sequence[int], dtype: DType, lanes: int, vectors: Sequence[Value]) -> RegisterTile:
        """A tile whose vectors are there already, row by row."""
        tile = RegisterTile(shape, dtype, lanes, lambda row, number: vectors[row * count + number])
        count = tile.count
        return tile
