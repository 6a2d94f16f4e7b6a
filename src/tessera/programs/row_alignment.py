"""Along which axis the arrays of a launch have rows that begin at multiples of 16 bytes: code may depend on that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from tessera.programs.buffer_assignment import (
    ARGUMENT,
    VARIABLE,
    Act,
    BufferAssignment,
    BufferSlice,
    Choose,
    KernelLaunch,
    Repeat,
)
from tessera.runtime.device.memory import ALIGNMENT
from tessera.tile.calls.arguments import LINE, aligned_axis


@dataclass(frozen=True)
class RowAlignment:
    """The alignment of all arrays of a program, from that of its arguments."""

    buffers: BufferAssignment
    alignments: Sequence[int]
    """Of the addresses of arguments, in bytes."""

    def lines(self, run: KernelLaunch) -> tuple[int, ...]:
        """The axis of each argument of a launch along which its rows are aligned, counted from the end; 0 for none."""
        return tuple(self._row_axis(one) if isinstance(one, BufferSlice) else 0 for one in run.operands)

    def _row_axis(self, buffer: BufferSlice) -> int:
        """As `row_axis` says it of tensors."""
        if self._alignment(buffer.piece, set()) % LINE or buffer.offset % LINE:
            return 0
        return aligned_axis(buffer.shape, buffer.strides, buffer.dtype.storage.itemsize)

    def _alignment(self, number: int, seen: set[int]) -> int:
        piece = self.buffers.pieces[number]
        if piece.kind == ARGUMENT:
            return self.alignments[piece.number]
        if piece.kind != VARIABLE or number in seen:
            return ALIGNMENT
        found = min((self._alignment(one, seen | {number}) for one in piece.behind), default=ALIGNMENT)
        return gcd(found, piece.grain)


def launches_in(acts: Sequence[Act]) -> Iterator[KernelLaunch]:
    """All launches among acts, those inside of branches and loops too."""
    for act in acts:
        if isinstance(act, KernelLaunch):
            yield act
        elif isinstance(act, Choose):
            yield from launches_in((*act.first, *act.second))
        elif isinstance(act, Repeat):
            yield from launches_in((*act.check, *act.body))
