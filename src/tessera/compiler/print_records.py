"""Buffers for what kernels print: how records lie in them, which machine code writes and the host reads.

A buffer begins with words of 8 bytes: where the next record begins, how many records were written, how many found no
room, and how many bytes there are. A record is the number of its print among those of the kernel, the program
instance's coordinates, and the elements of each value, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tessera.dtypes.types import DType

WORD = 8
NEXT, WRITTEN, LOST, SIZE = (WORD * word for word in range(4))
"""The bytes of a buffer at which its words are."""
HEAD = 4 * WORD
ALIGNMENT = 16
"""Of records and of the values in them."""


@dataclass(frozen=True, slots=True)
class Print:
    """A print of a kernel: its label, and the types and shapes of the values."""

    label: str
    values: tuple[tuple[DType, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """The bytes of a record: where each value begins, and how many there are."""

    offsets: tuple[int, ...]
    size: int

    @staticmethod
    def of(axes: int, values: Sequence[tuple[DType, Sequence[int]]]) -> RecordLayout:
        """For a grid of so many axes, and values of such types and shapes."""
        offsets: list[int] = []
        end = _aligned(WORD * (1 + axes))
        for dtype, shape in values:
            offsets.append(end)
            end = _aligned(end + dtype.storage.itemsize * prod(shape))
        return RecordLayout(tuple(offsets), end)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
